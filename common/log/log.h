/*
 * The log: the narrow interface that everything above it is written against.
 *
 * Two drivers stand below: `local` (one SQLite file, one host) and `kafka`. Nothing above knows
 * which one runs; tests/conformance defines the interface and runs against each. A topic has
 * numbered partitions; a partition is a sequence of records with rising offsets (gaps are normal).
 *
 * Threads: a `struct log` may be used by any thread. A member, a publisher and a reader each belong
 * to the thread that opened them. Nothing is called back.
 *
 * Memory: names and bytes handed in are borrowed for the call. Records handed out live in the batch
 * that holds them, until it is filled again or freed.
 *
 * Codes that every call may return: service_unavailable (the log cannot be reached now), disk_full,
 * not_permitted (no right; the error names right, topic and principal), store_failed (local: the
 * file is damaged or foreign), no_memory. Others are said at each function.
 */
#ifndef BATON_COMMON_LOG_H
#define BATON_COMMON_LOG_H

#include "baton/code.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/base/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOG_PARTITION_BY_KEY (-1) /* murmur2 of the key, as Kafka's Java clients do */
#define LOG_OFFSET_NONE (-1)
#define LOG_INPUTS 2
#define LOG_PARTITIONS_MAX LIMIT_PARTITIONS
#define LOG_HEADERS_MAX LIMIT_HEADERS

struct log;
struct log_member;
struct log_publisher;
struct log_reader;
struct config; /* common/base/config.h */
struct buf;    /* common/base/buf.h */

/* ---- records ---- */

struct log_header {
    const char *name;
    const void *value; /* NULL: a null value, not an empty one */
    size_t value_len;
};

struct log_record {
    const char *topic;
    int32_t partition; /* LOG_PARTITION_BY_KEY when producing by key */
    int64_t offset;    /* set by the log */
    struct wall_ms at; /* log append time, set by the log */
    const void *key;   /* NULL: a null key, not an empty one */
    size_t key_len;
    const void *value; /* NULL: a null value; on a compacted topic a tombstone */
    size_t value_len;
    const struct log_header *headers;
    size_t n_headers;
};

/* Records that were read; `struct log_batch batch = {0}` is empty. */
struct log_batch {
    struct log_record *records;
    size_t count;
    int64_t next_offset; /* where reading goes on: behind the last record, or behind the end */
    bool at_end;         /* the partition had nothing more at this moment */
    /* Behind the newest place at which the log has dropped or brought out records that lay open without
     * a transaction; 0: none. What became of that transaction elsewhere is not known: committed offsets
     * may be ahead of what this partition shows. Only a log of brokers can come to that. */
    int64_t noted;
    void *memory; /* the driver's */
};
void log_batch_free(struct log_batch *batch);

/* The partition of a key among n: murmur2, as Kafka's default partitioner for Java. */
int32_t log_partition_of(const void *key, size_t key_len, int32_t n);

/* ---- opening ---- */

/*
 * Judges what only the driver understands of the log's section (kafka.client, mechanisms, bounds of
 * the session), without a connection. Every mistake is a line of findings (may be NULL), written by
 * config_pair_found where it is about a pair; bad_config then, and err holds the first. `config
 * check` calls it, and every log_open begins with it. no_memory.
 */
baton_code log_settings_check(const struct config *config, struct buf *findings,
                              struct baton_error *err);
/* Opens the log that the configuration names. Errors: bad_config, service_unavailable, not_permitted
 * (kafka: the brokers refuse user and password), key_unsafe (kafka: the password's file). */
baton_code log_open(const struct config *config, struct log **ret_log, struct baton_error *err);
void log_close(struct log *log);
/* Makes an empty log where there is none (local: folder and file); does nothing otherwise. */
baton_code log_create(const struct config *config, struct baton_error *err);
/* Fills text with the libraries that run below the drivers, `SQLite 3.40.1, librdkafka 2.0.2`. True: one of
 * them is older than the one that this program was built with. */
bool log_versions(char *text, size_t size);
/* "local" or "kafka". */
const char *log_driver(const struct log *log);
/* Does a compacted topic hold one record of a key at any time, or older ones for a while, too? */
bool log_replaces_keys(const struct log *log);
/* A transaction that a member begins sooner after its last one costs more than this wait: what comes
 * meanwhile is better gathered for it. 0: it costs no more. */
int64_t log_commit_gap_ms(const struct log *log);
/* Identity of the cluster (local: of the file), so that a checkpoint of another one is recognised.
 */
const char *log_cluster(const struct log *log);
/*
 * The log's own time, for the age of what its records date (`at`); false: not known, as yet or at all,
 * and then nothing is old. It goes on with the monotonic clock: a wall clock that jumps or differs here
 * moves it no way. Local: one for all processes of the host; never ahead of what any of them has dated a
 * record with, and what has passed since. Kafka: what the brokers date the records of its members'
 * transactions with, the least of it, and what has passed since; not known before the first. Any thread.
 */
bool log_time(struct log *log, struct wall_ms *ret_now);
/*
 * What the log would date a record with that this process appends now, as near as it is known: for what
 * is held against such dates, in a signature say. Local, and where nothing is known yet: the wall clock.
 * Any thread.
 */
struct wall_ms log_date(struct log *log);

/* ---- topics ---- */

enum log_cleanup { LOG_CLEANUP_delete, LOG_CLEANUP_compact };

#define LOG_DIFFERS_MAX 240

/*
 * What the log has beside these, and needs to be right (kafka: log append time, segment sizes, when
 * and how soon compaction runs, how many copies must have a record), its driver derives from
 * cleanup and copies: it sets them when a topic is made or altered.
 */
struct log_topic {
    const char *name;
    int32_t partitions;
    enum log_cleanup cleanup;
    int64_t retention_ms;    /* delete: age at which records go; -1: never */
    int64_t tombstone_ms;    /* compact: how long tombstones stay at least */
    size_t record_bytes_max; /* key, value and headers of one record */
    int32_t copies;          /* of each partition; 0: 3, or as many as there are brokers. Set when
                                a topic is made and never altered; local: 1, whatever is asked */
    /* Of describe only: which of the driver's own settings are not as they should be, in words,
     * `message.timestamp.type is CreateTime, not LogAppendTime; ...`, and "" if all are. */
    char differs[LOG_DIFFERS_MAX];
};

/* What is there; topic_missing if it is not. `name` in *ret_topic is the caller's. */
baton_code log_topic_describe(struct log *log, const char *name, struct log_topic *ret_topic,
                              struct baton_error *err);
/* Creates topics that are not there and waits until they can be used. One that is there with other
 * settings is left alone: log_topic_alter mends it. */
baton_code log_topics_create(struct log *log, const struct log_topic *topics, size_t count,
                             struct baton_error *err);
/* Mends cleanup, times, size and what the driver sets by itself; other settings of the topic stay
 * as they are. Never the number of partitions (invalid_request) or of copies. */
baton_code log_topic_alter(struct log *log, const struct log_topic *topic, struct baton_error *err);
/* Names of all topics that begin with prefix, sorted; free with log_names_free. */
baton_code log_topics_list(struct log *log, const char *prefix, char ***ret_names,
                           size_t *ret_count, struct baton_error *err);
void log_names_free(char **names, size_t count);

/* The first offset that is there, and the one behind the last record, committed or not. */
baton_code log_watermarks(struct log *log, const char *topic, int32_t partition, int64_t *ret_low,
                          int64_t *ret_high, struct baton_error *err);
/* Deletes what lies below `before` (DeleteRecords). Only on topics with cleanup delete. */
baton_code log_trim(struct log *log, const char *topic, int32_t partition, int64_t before,
                    struct baton_error *err);

/*
 * Which of these topics may this principal write? Nothing is written. ret_errs has count: for each ok, or
 * not_permitted, topic_missing, service_unavailable, timed_out with its text. Returns no_memory, bad_config;
 * ok also where each was refused.
 */
baton_code log_may_write(struct log *log, const char *const *topics, size_t count,
                         struct baton_error *ret_errs, struct baton_error *err);

/* The same of reading. No record is read, and no group has to do with it. */
baton_code log_may_read(struct log *log, const char *const *topics, size_t count,
                        struct baton_error *ret_errs, struct baton_error *err);

/* ---- publishing outside of transactions ---- */

/* For publishers, operators and lease holders: every record is acknowledged (durable) or fails. */
baton_code log_publisher_open(struct log *log, struct log_publisher **ret_publisher,
                              struct baton_error *err);
void log_publisher_close(struct log_publisher *publisher);
/*
 * Publishes count records, in order for each partition, and waits at most timeout_ms. Sets
 * partition, offset and `at` of each. After a failure any prefix may be in the log: repeating is
 * the caller's right (ids make it harmless). Codes: topic_missing, record_too_large,
 * publish_failed, timed_out, invalid_request (no key on a compacted topic, too many headers).
 */
baton_code log_publish(struct log_publisher *publisher, struct log_record *records, size_t count,
                       int64_t timeout_ms, struct baton_error *err);

/* ---- reading without a group ---- */

enum log_isolation { LOG_READ_committed, LOG_READ_uncommitted };

/* Reads one partition from offset on (clamped to what is there). */
baton_code log_reader_open(struct log *log, const char *topic, int32_t partition, int64_t from,
                           enum log_isolation isolation, struct log_reader **ret_reader,
                           struct baton_error *err);
void log_reader_close(struct log_reader *reader);
/* A batch of a reader ends with the record that fills it. */
#define LOG_READ_BYTES (4 * 1024 * 1024)
/*
 * Fills batch with at most max records (about LOG_READ_BYTES) and waits at most timeout_ms for the first one (0: not at
 * all). An empty batch with at_end is no error. next_offset passes what compaction or markers left.
 */
baton_code log_reader_next(struct log_reader *reader, size_t max, int64_t timeout_ms,
                           struct log_batch *batch, struct baton_error *err);

/* ---- a member of a consumer group, with its transactional producer ---- */

struct log_member_spec {
    const char *group;
    const char *worker; /* static member id, unique within the group (protocol rule 4) */
    struct boot_id boot;
    const char *inputs[LOG_INPUTS]; /* the same number of partitions each; range assignment */
    const char *const *outputs;     /* every topic that commits may name: opened at the start */
    size_t n_outputs;
    int64_t session_ms;   /* silent for so long: the member is removed */
    int64_t heartbeat_ms; /* how often it is heard, and hears */
    /* May be NULL; asked by calls that wait for a log that does not answer: true lets them end
     * within a second (unknown, or an error that passes). */
    bool (*hurry)(void *arg);
    void *hurry_arg;
};

/*
 * Becomes a member: settles what an earlier process with this worker id left open, takes its place
 * (the older process finds out and gets `twin`), and waits for an assignment by log_member_poll.
 * Errors: topic_missing (an input), bad_config (session out of the log's bounds).
 */
baton_code log_member_open(struct log *log, const struct log_member_spec *spec,
                           struct log_member **ret_member, struct baton_error *err);
/*
 * Leaves. With leave_group the partitions go to others at once; without it the log keeps them for
 * this worker id for a session, so that a restart takes them without a rebalance. Bounded by
 * timeout_ms, also when the log cannot be reached.
 */
void log_member_close(struct log_member *member, bool leave_group, int64_t timeout_ms);

enum log_event_kind {
    LOG_EVENT_none,
    LOG_EVENT_assigned, /* these partitions, of both inputs, under this generation */
    LOG_EVENT_revoked,  /* all partitions go; they are let go by the next log_member_poll (the local
                           log has moved them already: nothing of that generation commits) */
    LOG_EVENT_lost,     /* they are gone already: the session is over */
};

struct log_event {
    enum log_event_kind kind;
    int64_t generation; /* of the assignment: hand it to log_commit */
    int32_t partitions[LOG_PARTITIONS_MAX];
    size_t count;
};

/* Becomes readable when log_member_poll or log_member_fetch may have something. */
int log_member_fd(const struct log_member *member);
/*
 * Never waits. Keeps the membership alive: call it at least every heartbeat. Every assignment
 * change is revoked/lost (of all that was assigned) and then assigned (of all that is), eager
 * protocol. What the caller must do before others get the partitions it does between `revoked` and
 * the next poll. Errors: twin (a newer process has this worker id: exit).
 */
baton_code log_member_poll(struct log_member *member, struct log_event *ret_event,
                           struct baton_error *err);
/*
 * Committed offsets of both inputs, stable: waits (timed_out) while a transaction that moves them
 * is open. offsets[input][i] belongs to partitions[i]; LOG_OFFSET_NONE where the group has none.
 */
baton_code log_member_committed(struct log_member *member, const int32_t *partitions, size_t count,
                                int64_t timeout_ms, int64_t (*ret_offsets)[LOG_PARTITIONS_MAX],
                                struct baton_error *err);
/* Where the next fetch of this input and partition reads. Must be called after each assignment. */
baton_code log_member_seek(struct log_member *member, int input, int32_t partition, int64_t offset,
                           struct baton_error *err);
/*
 * Takes at most max records (about bytes_max bytes, at least one record) of a partition's own
 * queue; never waits. What is not fetched stays in the log: that is the back-pressure. What came
 * after the last log_member_poll may not be seen; the descriptor is readable then.
 */
baton_code log_member_fetch(struct log_member *member, int input, int32_t partition, size_t max,
                            size_t bytes_max, struct log_batch *batch, struct baton_error *err);

/* The end of a partition that is assigned, as this process last heard of it: where the next record
 * would stand. Never waits. LOG_OFFSET_NONE: it has not heard yet. */
int64_t log_member_end(struct log_member *member, int input, int32_t partition);

struct log_offset {
    int input;
    int32_t partition;
    int64_t next; /* the offset to read next */
};

struct log_txn {
    int64_t generation; /* of the assignment under which the batch was decided (rule 13) */
    struct log_record *records;
    size_t n_records;
    const struct log_offset *offsets; /* of every partition whose records it holds (rule 12) */
    size_t n_offsets;
};

enum log_verdict {
    LOG_VERDICT_committed, /* offsets of the records are set, and `at` */
    LOG_VERDICT_aborted, /* nothing happened; code and `culprit` say why: decide again without it */
    LOG_VERDICT_lost,    /* the assignment is not ours any more: drop every decision */
    LOG_VERDICT_fenced,  /* another producer has our id: poll the member, then log_member_renew */
    LOG_VERDICT_unknown, /* neither success nor failure: repeat the same call, or renew and restore
                          */
};

struct log_commit_result {
    enum log_verdict verdict;
    baton_code code; /* aborted: why */
    int64_t culprit; /* aborted: index of the record that caused it, or -1 */
};

/*
 * One transaction: produce, flush, offsets, commit. Member, generation and ownership are checked
 * with the commit. Blocks for as long as the log needs, at most timeout_ms, then `unknown`.
 * An error is returned only where nothing was sent (contract: retry or give up).
 */
baton_code log_commit(struct log_member *member, const struct log_txn *txn, int64_t timeout_ms,
                      struct log_commit_result *ret_result, struct baton_error *err);
/* A new producer under the same id; settles what the old one left open. All partitions must be
 * restored after it. */
baton_code log_member_renew(struct log_member *member, struct baton_error *err);

/*
 * Ends the open transaction of a dead worker of the group, if it has one (throw-away producer), and
 * what of it hangs in these topics. A live worker that is fenced makes its producer anew.
 */
baton_code log_fence(struct log *log, const char *group, const char *worker,
                     const char *const *topics, size_t n_topics, int64_t timeout_ms,
                     struct baton_error *err);

/* Does the log know that the process with that boot died as a member of a group? Who left a group, or
 * is silent, may live. False where it cannot know. */
bool log_member_died(struct log *log, const char *boot);
/* Has none of its brokers answered just now? Goes by what was heard in the last seconds; asks nobody,
 * never waits. */
bool log_away(const struct log *log);

/* ---- what a group looks like from outside ---- */

struct log_group_member {
    char worker[ID_MAX + 1];
    int32_t partitions[LOG_PARTITIONS_MAX]; /* of the inputs */
    size_t count;
};
/* Members of a group, sorted by worker id; a group that does not exist has none. Brokers that do not
 * answer, or look for the group themselves, are waited for: LOG_GROUP_MS at most. */
#define LOG_GROUP_MS 15000
baton_code log_group_members(struct log *log, const char *group,
                             struct log_group_member **ret_members, size_t *ret_count,
                             struct baton_error *err);
/* The same, for who has less time than that. */
baton_code log_group_members_within(struct log *log, const char *group, int64_t timeout_ms,
                                    struct log_group_member **ret_members, size_t *ret_count,
                                    struct baton_error *err);
/* Committed offset of a group, not waiting for open transactions; LOG_OFFSET_NONE if none. */
baton_code log_group_offset(struct log *log, const char *group, const char *topic,
                            int32_t partition, int64_t *ret_offset, struct baton_error *err);

#endif
