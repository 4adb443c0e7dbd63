/*
 * The store of one worker: the image of its turn log, and facts.
 *
 * The image is what the log said, up to a checkpoint; a decision is never here before it is in the
 * log. Facts are recorded ends of attempts that ran here. Losing the file costs work, not
 * correctness.
 *
 * It belongs to one boot of one worker: a lock file held for life, and a boot id that every write
 * transaction checks (protocol rule 2): `twin` means exit without another effect.
 *
 * Thread: engine only. Memory: what is handed out is the caller's.
 */
#ifndef BATON_COMMON_STORE_H
#define BATON_COMMON_STORE_H

#include "baton/code.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/failure.h"
#include "common/base/id.h"
#include "common/record/turn_record.h"
#include "common/record/usage.h"

#include <stdbool.h>
#include <stdint.h>

struct store;

struct store_owner {
    const char *cluster; /* of the log */
    const char *topic;   /* the turn log */
    const char *worker;  /* <service>/<worker id> */
    struct boot_id boot;
};

/*
 * Opens or makes <dir>/store.db, 0600 in a folder 0700, and takes it for this boot. An image of
 * another cluster or topic is dropped (the log is read from its start); recorded ends stay. Errors:
 * store_busy (err names the pid that has it), store_failed (foreign, newer, damaged or planted
 * objects), disk_full.
 */
baton_code store_open(const char *dir, const struct store_owner *owner, struct store **ret_store,
                      struct baton_error *err);
void store_close(struct store *store);
/* Gives memory back: for who has nothing to do. */
void store_rest(struct store *store);
/* The boot that had this store before, "" for a new one: what its claims show here had at most
 * started. */
const char *store_previous_boot(const struct store *store);

/*
 * One write transaction; nested ones are a broken contract. Begin checks the boot id (twin).
 * After a failed commit everything in it is undone and may be done again (disk_full).
 */
baton_code store_begin(struct store *store, const char *where, struct baton_error *err);
baton_code store_commit(struct store *store, struct baton_error *err);
void store_rollback(struct store *store);
/*
 * From here to store_look_end, or the next store_begin, reads see one state and take no locks of
 * their own: for those who read much in a row. That it could not begin is ignored: then each read
 * stands for itself.
 */
void store_look(struct store *store);
void store_look_end(struct store *store);

/* ---- the image ---- */

/* Where folding goes on; LOG_OFFSET_NONE if nothing was folded. *ret_at: when it last did. */
baton_code store_checkpoint_get(struct store *store, int32_t partition, int64_t *ret_next,
                                struct wall_ms *ret_at, struct baton_error *err);
baton_code store_checkpoint_set(struct store *store, int32_t partition, int64_t next,
                                struct wall_ms at, struct baton_error *err);
/* Forgets turns, notes and checkpoint of a partition; recorded ends stay. */
baton_code store_image_drop(struct store *store, int32_t partition, struct baton_error *err);

/* Where the log has a record, and since when by the log's own time. */
struct log_place {
    int32_t partition;
    int64_t offset;
    struct wall_ms at;
};
/*
 * Takes the log's word about a turn: an upsert, for compaction skips states; twice is harmless.
 * bytes are the record's value. due_ms: monotonic time at which a queued turn may start.
 * role_mismatch: the record contradicts the identity that the image holds (nothing is changed).
 */
baton_code store_turn_fold(struct store *store, const struct log_place *place,
                           const struct turn_record *record, const void *bytes, size_t len,
                           struct mono_ms due, struct baton_error *err);
/* A tombstone. */
baton_code store_turn_forget(struct store *store, const char *turn_id, struct baton_error *err);
/* A note of the owner; NULL value forgets it. */
baton_code store_note_fold(struct store *store, int32_t partition, const char *key,
                           const void *value, size_t len, struct baton_error *err);

/*
 * The image of a turn. *ret_found false: unknown. The record is parsed from the bytes that the log
 * gave; column_role (may be NULL) is the role of the column, to be compared with the verified
 * bytes.
 */
baton_code store_turn_get(struct store *store, const char *turn_id, bool *ret_found,
                          struct turn_record *ret_record, int32_t *ret_partition,
                          enum role *ret_column_role, struct baton_error *err);
/* Is the turn known? Cheaper than store_turn_get. */
baton_code store_turn_known(struct store *store, const char *turn_id, bool *ret_known,
                            struct baton_error *err);
/* The value of a note, appended to value. */
baton_code store_note_get(struct store *store, int32_t partition, const char *key, bool *ret_found,
                          struct buf *value, struct baton_error *err);

struct store_note {
    char key[160];
    struct buf value;
};
/* Notes whose key begins with prefix; free each value and the array. */
baton_code store_notes(struct store *store, int32_t partition, const char *prefix,
                       struct store_note **ret_notes, size_t *ret_count, struct baton_error *err);

struct store_due {
    struct turn_id id;
    int32_t partition;
};
/* Queued turns that may start now, the longest waiting first. */
baton_code store_turns_due(struct store *store, struct mono_ms now, struct store_due *ret_due,
                           size_t max, size_t *ret_count, struct baton_error *err);
/* When the next queued turn may start; false if none waits. */
baton_code store_next_due(struct store *store, bool *ret_any, struct mono_ms *ret_at,
                          struct baton_error *err);

struct store_open_turn {
    struct turn_id id;
    enum turn_state state;
};
/* What is open in the partitions that were added to it; oldest: of what is not parked ("": none). */
struct store_counts {
    int64_t queued;
    int64_t running;
    int64_t parked;
    struct turn_id oldest;
    struct wall_ms created_at;
};
baton_code store_count(struct store *store, int32_t partition, struct store_counts *counts,
                       struct baton_error *err);
/* Open turns of a partition in order of their ids, after `after` ("" at first). */
baton_code store_turns_open(struct store *store, int32_t partition, const char *after,
                            struct store_open_turn *ret_turns, size_t max, size_t *ret_count,
                            struct baton_error *err);
baton_code store_due_set(struct store *store, const char *turn_id, struct mono_ms due,
                         struct baton_error *err);
/* Queued turns of a partition are due at no time here: it has moved. A new boot begins with all so.
 */
baton_code store_dues_clear(struct store *store, int32_t partition, struct baton_error *err);
/* Closed turns of a partition whose end the log has dated `before` or earlier. */
baton_code store_turns_ended(struct store *store, int32_t partition, struct wall_ms before,
                             struct turn_id *ret_ids, size_t max, size_t *ret_count,
                             struct baton_error *err);

/* ---- facts ---- */

struct recorded_end {
    struct turn_id turn;
    int attempt;
    struct boot_id boot;
    int32_t partition;
    bool failed;
    enum failure class;             /* of a failure */
    char *result;                   /* raw JSON object of a success, or NULL; owned */
    char note[512];                 /* one line, masked */
    char usage[USAGE_TEXT_MAX + 1]; /* what it took, as JSON; "": not told */
    int64_t retry_after_ms;
    bool uncounted;
    struct wall_ms started_at; /* 0: never started */
    struct wall_ms ended_at;
};

/* Records an end once; the first one of a token stays. */
baton_code store_end_note(struct store *store, const struct recorded_end *end,
                          struct baton_error *err);
/* *ret_found; free ret_end->result. */
baton_code store_end_get(struct store *store, const char *turn_id, int attempt, const char *boot,
                         bool *ret_found, struct recorded_end *ret_end, struct baton_error *err);
/* At most max ends in order of turn ids, without the first `skip`; free each result. */
baton_code store_ends(struct store *store, size_t skip, struct recorded_end *ret_ends, size_t max,
                      size_t *ret_count, struct baton_error *err);
baton_code store_end_forget(struct store *store, const char *turn_id, int attempt, const char *boot,
                            struct baton_error *err);

/* ---- people ---- */

struct store_summary {
    struct {
        char cluster[64];
        char topic[200];
        char worker[128];
        char boot[40];
    } owner;
    bool running; /* a live process has it */
    int64_t pid;  /* of that process, or of the last one */
    int64_t turns[TURN_STATE_COUNT];
    int64_t size_bytes;
};

/* Looks at <dir>/store.db read-only: integrity, schema, and one line for each inconsistency. */
baton_code store_check(const char *dir, struct store_summary *ret_summary, struct buf *findings,
                       struct baton_error *err);
/* A consistent copy, also while a worker runs; to_path must not exist. */
baton_code store_backup(const char *dir, const char *to_path, struct baton_error *err);

#endif
