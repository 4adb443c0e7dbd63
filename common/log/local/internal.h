/*
 * What the files of the local driver share: the open log, its connections, topics, slots and bells.
 *
 * Beside the SQLite file PATH stands the folder PATH.d: `write.lock` (the writers' queue),
 * `members/<n>` (a member's lock and beat), `bells/` (one file for each topic and group), `clock`.
 * A connection belongs to one thread at a time; the log itself may be used by any.
 */
#ifndef BATON_COMMON_LOG_LOCAL_INTERNAL_H
#define BATON_COMMON_LOG_LOCAL_INTERNAL_H

#include "common/base/buf.h"
#include "common/log/driver.h"
#include "common/sqlite/db.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#define LOCAL_NAME_MAX 240   /* of topics and groups: a bell's file name has room for it */
#define LOCAL_OFFSET_BITS 40 /* record.id is part << 40 | offset */
#define LOCAL_OFFSET_MAX (((int64_t)1 << LOCAL_OFFSET_BITS) - 1)
#define LOCAL_WAIT_MS 5000    /* calls without a time of their own wait so long for the queue */
#define LOCAL_DEAF_MS 50      /* how often who has no inotify looks by itself */
#define LOCAL_POLL_WAIT_MS 20 /* a poll never waits, except so long for the queue */

extern const struct log_driver_ops local_ops;
/* Makes the folders beside the file, those that are missing. errno says why it failed. */
bool local_make_side(const char *side);

struct local_conn;
struct clock_page;

struct local_log {
    struct log base;
    char *path;
    char *side;               /* path.d */
    struct clock_page *clock; /* NULL: it could not be had */
    char cluster[32 + 1];
    dev_t dev; /* the file as it was opened */
    ino_t ino;
    pthread_mutex_t lock; /* guards idle and n_idle */
    struct local_conn *idle;
    size_t n_idle;
};

/* Is the open file still the one with that name? Else (topic_missing) nobody sees what is written.
 */
baton_code local_log_there(const struct local_log *log, struct baton_error *err);

/* ---- connections (conn.c) and the writers' queue (queue.c) ---- */

struct local_conn {
    struct db db;
    struct local_log *log;
    int queue_fd;
    struct local_conn *next;
};

/* A connection for the caller alone; give it back, also after an error. */
baton_code local_conn_take(struct local_log *log, struct local_conn **ret_conn,
                           struct baton_error *err);
void local_conn_give(struct local_conn *conn);
void local_conn_close(struct local_conn *conn);

/* Queues for at most timeout_ms (timed_out) and begins a write transaction. */
baton_code local_begin(struct local_conn *conn, int64_t timeout_ms, struct baton_error *err);
/*
 * Commits and leaves the queue. After an error the transaction is not visible; *ret_unsure (may be
 * NULL) says whether it might still become so after a crash of the host.
 */
baton_code local_commit(struct local_conn *conn, bool *ret_unsure, struct baton_error *err);
/* Rolls back, if a transaction is open, and leaves the queue. */
void local_rollback(struct local_conn *conn);

/* When a wait of timeout_ms that begins now is over, of mono_ns. */
int64_t local_end_ns(int64_t timeout_ms);
/* false after timeout_ms. One queue for all processes; the kernel takes the dead out of it. */
bool queue_enter(int fd, int64_t timeout_ms);
void queue_leave(int fd);

/* ---- the log's time (clock.c); any thread ---- */

/* Of the folder PATH.d; NULL: it cannot be had. */
struct clock_page *clock_open(const char *side);
void clock_close(struct clock_page *page);
/* The date of records that are appended now: the wall clock. page may be NULL. */
struct wall_ms clock_date(struct clock_page *page);
/* The log's time (log_time); false: page is NULL. */
bool clock_time(struct clock_page *page, struct wall_ms *ret_now);

/* ---- topics (topic.c) ---- */

struct local_topic {
    int64_t id;
    int64_t first_part;
    struct log_topic about; /* name: the caller's */
};

baton_code local_topic_find(struct local_conn *conn, const char *name,
                            struct local_topic *ret_topic, struct baton_error *err);
/* The same, and the id of the partition; topic_missing if there is no such partition. */
baton_code local_part_find(struct local_conn *conn, const char *topic, int32_t partition,
                           int64_t *ret_part, struct baton_error *err);
baton_code local_part_marks(struct local_conn *conn, int64_t part, int64_t *ret_low,
                            int64_t *ret_next, struct baton_error *err);
bool local_name_valid(const char *name);
/* In a write transaction: deletes the records from low to before, and moves the low mark there. */
baton_code local_delete_below(struct local_conn *conn, int64_t part, int64_t low, int64_t before,
                              struct baton_error *err);

static inline int64_t local_record_id(int64_t part, int64_t offset)
{
    return part << LOCAL_OFFSET_BITS | offset;
}

/* ---- appending (append.c) ---- */

struct append_topic {
    const char *name;
    struct local_topic topic;
    int64_t next[LOG_PARTITIONS_MAX]; /* -1: not read yet */
    bool changed[LOG_PARTITIONS_MAX];
};

/* Appends records in one open write transaction; `struct append append = {.conn = conn}`. */
struct append {
    struct local_conn *conn;
    struct append_topic *topics;
    size_t n_topics;
    size_t n_topics_max;
    size_t last;
    struct buf headers;
    uint32_t turn; /* which partition the next record without a key gets */
};

struct append_place {
    int32_t partition;
    int64_t offset;
};

/* Appends one; the record is not changed. Codes of the record: topic_missing, record_too_large,
 * invalid_request (no key on a compacted topic, malformed headers). */
baton_code append_record(struct append *append, const struct log_record *record, struct wall_ms at,
                         struct append_place *ret_place, struct baton_error *err);
/* Is the code about the record itself, so that the transaction is possible without it? */
bool append_is_culprit(baton_code code);
/* Writes the partitions' ends; before the commit. */
baton_code append_finish(struct append *append, struct baton_error *err);
/* Wakes who waits for the topics; after the commit. */
void append_ring(const struct append *append);
void append_done(struct append *append);

/* ---- reading (read.c) ---- */

/* Fills batch from *pos on (clamped) with at most max records, about bytes_max bytes; moves *pos.
 */
baton_code local_read(struct local_conn *conn, const char *topic, int32_t partition, int64_t part,
                      int64_t *pos, size_t max, size_t bytes_max, struct log_batch *batch,
                      struct baton_error *err);

/* ---- bells (bell.c) ---- */

enum bell_kind { BELL_topic, BELL_group };

void bell_ring(const struct local_log *log, enum bell_kind kind, const char *name);
/* An inotify descriptor, or -1: this process is deaf and looks by itself every LOCAL_DEAF_MS. */
int bell_open(void);
/* Watches a bell; its number for bell_heard, or -1. */
int bell_watch(const struct local_log *log, int fd, enum bell_kind kind, const char *name);
/* Takes the next rung bell off the descriptor; false: none. *ret_gone: the bell will not ring
 * again. */
bool bell_heard(int fd, int *ret_watch, bool *ret_gone);

/* ---- slots (slot.c) ---- */

/* members/<n>, mapped: who has the slot, and when he was last heard. */
struct slot_page {
    uint32_t magic;
    int32_t pid;
    _Atomic int64_t beat_ms; /* CLOCK_BOOTTIME of the host */
    _Atomic int64_t session_ms;
    char boot[32 + 1];
};

struct slot {
    int number;
    int fd; /* holds the lock; -1: none */
    struct slot_page *page;
};

baton_code slot_take(const struct local_log *log, const struct boot_id *boot, int64_t session_ms,
                     struct slot *ret_slot, struct baton_error *err);
/* Takes another slot if somebody has deleted this one: for the others its process is dead. */
baton_code slot_keep(const struct local_log *log, const struct boot_id *boot, int64_t session_ms,
                     struct slot *slot, struct baton_error *err);
void slot_free(struct slot *slot);
void slot_beat(struct slot *slot);

enum slot_state {
    SLOT_dead,   /* nobody holds it, or somebody else does */
    SLOT_alive,  /* its process is there and was heard within its session */
    SLOT_silent, /* its process is there and was not heard for a session: stopped or hung */
};
/* What became of the process with that boot; *ret_pid (may be NULL) its pid, 0 if dead. */
enum slot_state slot_look(const struct local_log *log, int number, const char *boot,
                          int32_t *ret_pid);

/* Did the process with that boot die in its slot? False, too, when somebody has the slot since. */
bool slot_died_in(const struct local_log *log, const char *boot);

/* ---- groups (group.c) ---- */

struct group_row {
    char worker[ID_MAX + 1];
    char boot[32 + 1];
    int slot;
    int64_t session_ms;
    int64_t away_until; /* monotonic ms; 0: present */
};

/* All members, sorted by worker; free the array. */
baton_code group_rows(struct local_conn *conn, int64_t group, struct group_row **ret_rows,
                      size_t *ret_count, struct baton_error *err);
/* May this row stay? A silent one goes only if the caller has given it time to be heard. */
bool group_row_stays(const struct local_log *log, const struct group_row *row, bool drop_silent);
/* In a write transaction: removes who may not stay, but never `self` (may be NULL). */
baton_code group_bury(struct local_conn *conn, int64_t group, const char *self, bool drop_silent,
                      bool *ret_changed, struct baton_error *err);
/* In a write transaction: raises the generation and gives out all partitions anew (range). */
baton_code group_rebalance(struct local_conn *conn, int64_t group, int32_t partitions,
                           struct baton_error *err);
/* The group's id; 0 if there is no such group. */
baton_code group_find(struct local_conn *conn, const char *name, int64_t *ret_group,
                      struct baton_error *err);
/* Committed offset, LOG_OFFSET_NONE if there is none. */
baton_code group_committed(struct local_conn *conn, int64_t group, int64_t part,
                           int64_t *ret_offset, struct baton_error *err);

/* ---- a member (member.c; its transactions: commit.c) ---- */

struct member_peer {
    int slot;
    char boot[32 + 1];
    int pidfd;
};

enum member_state {
    MEMBER_out,     /* no place in the group: joins at the next poll */
    MEMBER_waiting, /* has a place, was not told what is assigned */
    MEMBER_told,    /* was told, under `generation` */
};

struct local_member {
    struct log_member base;
    struct local_conn *conn;
    char *group;
    char *worker;
    char *inputs[LOG_INPUTS];
    struct boot_id boot;
    int64_t session_ms;
    int64_t heartbeat_ms;
    int64_t group_id;
    int32_t partitions; /* of each input */
    int64_t first_part[LOG_INPUTS];

    struct slot slot;
    struct member_peer *peers;
    size_t n_peers;
    int epoll_fd; /* over all the others */
    int bell_fd;  /* -1: deaf */
    int timer_fd;
    int wake_fd; /* readable: poll again at once */
    int watch_group;
    int watch_inputs[LOG_INPUTS];

    enum member_state state;
    int64_t generation;
    uint64_t assigned;          /* a bit for each partition number that was told */
    bool look;                  /* the group may have changed */
    bool bury;                  /* somebody may have died */
    uint64_t fresh[LOG_INPUTS]; /* partitions that may have more than was fetched */
    int64_t pos[LOG_INPUTS][LOG_PARTITIONS_MAX];

    int64_t duties_at; /* monotonic ms of the last duties */
    bool judges;       /* the others have had time to be heard: a silent one is removed */
    int64_t keep_at;   /* when housekeeping is tried next */
    int64_t keep_cursor;

    int64_t txn; /* number of the newest transaction that was begun */
    bool unsure; /* its outcome is unknown: the next commit is its repetition */
    struct append_place *unsure_places;
    struct wall_ms unsure_at;
    uint32_t turn;
};

/* What the log knows of a member, at one moment. */
struct standing {
    bool member; /* has a place */
    bool twin;   /* it belongs to another process */
    int64_t generation;
    int64_t txn; /* its newest committed transaction */
    uint64_t owned;
};
baton_code member_standing(struct local_member *member, struct standing *ret_standing,
                           struct baton_error *err);
/* Takes a place in the group, or the place that this worker id has (membership.c). */
baton_code member_join(struct local_member *member, int64_t timeout_ms, struct baton_error *err);
/* Gives the place up, or keeps it for a session. */
baton_code member_leave(struct local_member *member, bool leave_group, int64_t timeout_ms,
                        struct baton_error *err);
/* Removes members that are dead, gone for a session, or silent for one. */
baton_code member_bury(struct local_member *member, struct baton_error *err);
/* Starts the timer that makes log_member_fd readable: each heartbeat, or more often for the deaf.
 */
void member_set_timer(const struct local_member *member);
/* Makes log_member_fd readable until the next poll. */
void member_wake(struct local_member *member);
/* The outcome of an earlier commit is no question any more. */
void member_forget_unsure(struct local_member *member);

/* ---- housekeeping (keep.c) ---- */

#define KEEP_EVERY_MS 60000
/* Deletes a bounded number of aged records and tombstones, if nobody has in the last minute.
 * *ret_more: there is more to do, call again soon. */
baton_code local_keep(struct local_conn *conn, int64_t *cursor, bool *ret_more,
                      struct baton_error *err);

/* ---- log.h, by the file that does it ---- */

baton_code local_topic_describe(struct log *log, const char *name, struct log_topic *ret_topic,
                                struct baton_error *err);
baton_code local_topics_create(struct log *log, const struct log_topic *topics, size_t count,
                               struct baton_error *err);
baton_code local_topic_alter(struct log *log, const struct log_topic *topic,
                             struct baton_error *err);
baton_code local_topics_list(struct log *log, const char *prefix, char ***ret_names,
                             size_t *ret_count, struct baton_error *err);
baton_code local_watermarks(struct log *log, const char *topic, int32_t partition, int64_t *ret_low,
                            int64_t *ret_high, struct baton_error *err);
baton_code local_trim(struct log *log, const char *topic, int32_t partition, int64_t before,
                      struct baton_error *err);
baton_code local_publisher_open(struct log *log, struct log_publisher **ret_publisher,
                                struct baton_error *err);
void local_publisher_close(struct log_publisher *publisher);
baton_code local_publish(struct log_publisher *publisher, struct log_record *records, size_t count,
                         int64_t timeout_ms, struct baton_error *err);
baton_code local_reader_open(struct log *log, const char *topic, int32_t partition, int64_t from,
                             enum log_isolation isolation, struct log_reader **ret_reader,
                             struct baton_error *err);
void local_reader_close(struct log_reader *reader);
baton_code local_reader_next(struct log_reader *reader, size_t max, int64_t timeout_ms,
                             struct log_batch *batch, struct baton_error *err);
baton_code local_member_open(struct log *log, const struct log_member_spec *spec,
                             struct log_member **ret_member, struct baton_error *err);
void local_member_close(struct log_member *member, bool leave_group, int64_t timeout_ms);
int local_member_fd(const struct log_member *member);
baton_code local_member_poll(struct log_member *member, struct log_event *ret_event,
                             struct baton_error *err);
baton_code local_member_committed(struct log_member *member, const int32_t *partitions,
                                  size_t count, int64_t timeout_ms,
                                  int64_t (*ret_offsets)[LOG_PARTITIONS_MAX],
                                  struct baton_error *err);
baton_code local_member_seek(struct log_member *member, int input, int32_t partition,
                             int64_t offset, struct baton_error *err);
baton_code local_member_fetch(struct log_member *member, int input, int32_t partition, size_t max,
                              size_t bytes_max, struct log_batch *batch, struct baton_error *err);
baton_code local_member_commit(struct log_member *member, const struct log_txn *txn,
                               int64_t timeout_ms, struct log_commit_result *ret_result,
                               struct baton_error *err);
int64_t local_member_end(struct log_member *member, int input, int32_t partition);
baton_code local_member_renew(struct log_member *member, struct baton_error *err);
baton_code local_fence(struct log *log, const char *group, const char *worker,
                       const char *const *topics, size_t n_topics, int64_t timeout_ms,
                       struct baton_error *err);
bool local_member_died(struct log *log, const char *boot);
baton_code local_group_members(struct log *log, const char *group, int64_t timeout_ms,
                               struct log_group_member **ret_members, size_t *ret_count,
                               struct baton_error *err);
baton_code local_group_offset(struct log *log, const char *group, const char *topic,
                              int32_t partition, int64_t *ret_offset, struct baton_error *err);

#endif
