/*
 * The engine: consume, decide, commit. Worker and coordinator share it (ENGINE.md).
 *
 * It is called and never calls: engine_next gives one event, the caller folds and decides into the
 * batch, engine_commit makes the batch one transaction of the log. The engine keeps the protocol
 * rules that concern membership, restore, ownership, offsets and commits; the caller keeps those of
 * its records.
 *
 * The order of events is fixed. Between rounds: assignment events (restoring, fold, assigned,
 * moved) and mail. A round is
 *     ENGINE_tick       fold the last commit into the store, record ends, start executors, decide
 *                       what is due
 *     ENGINE_control    records of the second input, all there are (bounded)
 *     ENGINE_record     records of the first input, as many as the caller has capacity for
 *     ENGINE_round      call engine_commit
 * A record counts as taken in when engine_take was called for it: its offset moves with the batch.
 * One that was not taken is given again in the next round.
 *
 * Thread: one, the caller's; verification runs on helper threads inside engine_next.
 */
#ifndef BATON_COMMON_ENGINE_H
#define BATON_COMMON_ENGINE_H

#include "baton/code.h"
#include "common/base/clock.h"
#include "common/base/mailbox.h"
#include "common/log/log.h"
#include "common/record/receipt.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine;

enum { ENGINE_INPUT = 0, ENGINE_CONTROL_INPUT = 1 };

/* What the records of an input are: as what they are judged before they are given. */
enum engine_records { ENGINE_HANDOFFS, ENGINE_CONTROLS, ENGINE_REQUESTS, ENGINE_OUTCOMES };

struct engine_input {
    const char *topic;
    enum engine_records records;
    /* engine_trim deletes what was taken. Not where others read it, too (outcomes): it goes by age then,
     * and may be given again from the beginning of what is there (after a restore in doubt, rule 5). */
    bool trimmed;
};

struct engine_spec {
    struct log *log;
    const char *group;
    const char *worker;
    struct boot_id boot;
    struct engine_input
        inputs[LOG_INPUTS];     /* what is asked; what is heard before it (control records,
                                               outcomes) */
    const char *state;          /* the state topic: turn log or run log */
    const char *const *outputs; /* every other topic that batches may name */
    size_t n_outputs;
    int64_t session_ms;
    int64_t heartbeat_ms;
    struct receiver receiver; /* for the proofs of both inputs; trust is set by engine_trust */
    int verify_threads;       /* helpers beside the engine; 0: verify on the engine's thread */
    struct mailbox *mail;     /* of executors; borrowed */
    int wake_fd; /* readable: the caller has something to say (ENGINE_wake); -1: none */
};

enum engine_event_kind {
    ENGINE_none,      /* nothing within the time given */
    ENGINE_mail,      /* a message of the mailbox: the caller's now */
    ENGINE_wake,      /* wake_fd is readable: read it */
    ENGINE_restoring, /* a partition was assigned: answer with engine_restore_from */
    ENGINE_fold,      /* records of the state topic, to be folded; owner's notes too */
    ENGINE_assigned,  /* restored, and the owner record is committed: decide about what is open */
    ENGINE_moved, /* partitions are going (or gone, `lost`): nothing of them may be decided any more
                   */
    ENGINE_tick,
    ENGINE_control,
    ENGINE_record,
    ENGINE_round,
};

struct engine_event {
    enum engine_event_kind kind;
    int32_t partition;                /* restoring, fold, assigned, control, record */
    void *mail;                       /* mail */
    int64_t low;                      /* restoring: first offset of the state topic */
    int64_t high;                     /* restoring: its end */
    const struct log_record *records; /* fold */
    size_t n_records;
    int64_t next;         /* fold: checkpoint once these are folded */
    const int32_t *moved; /* moved: partitions */
    size_t n_moved;
    bool lost;                       /* moved: the session is over, others may run already */
    const struct log_record *record; /* control, record: the bytes as they came */
    struct receipt *receipt; /* control, record: its judgement, as the records of its input */
};

/* Joins the group. Errors: those of log_member_open. */
baton_code engine_open(const struct engine_spec *spec, struct engine **ret_engine,
                       struct baton_error *err);
/* Leaves: leave_group gives the partitions away at once. */
void engine_close(struct engine *engine, bool leave_group, int64_t timeout_ms);

/* Who is trusted, for receipts from now on; borrowed until it is replaced. What is buffered is
 * judged again, so the one before it may be freed. */
void engine_trust(struct engine *engine, const struct trust *trust);

/*
 * The next event; waits at most until `until` (and not at all inside a round). What the event
 * points to lives until the next call. Errors: twin, store_failed and others that end the worker;
 * service_unavailable is not one of them: the engine waits and tries again.
 */
baton_code engine_next(struct engine *engine, struct mono_ms until, struct engine_event *ret_event,
                       struct baton_error *err);

/* ---- answers ---- */

/* ENGINE_restoring: where the store's image of this partition ends; LOG_OFFSET_NONE: read it whole.
 * A value outside of what is there is refused (contract): the caller has dropped its image then. */
void engine_restore_from(struct engine *engine, int64_t next);
/* The store could not take what was read (a full disk, say): wait, then restore every partition
 * again; the batch is dropped. */
void engine_restore_again(struct engine *engine, baton_code code, const struct baton_error *err);
/* How many records of the first input the caller can take this round (set it at ENGINE_tick). */
void engine_capacity(struct engine *engine, size_t records);
/* A partition whose first input is not read (paused); control goes on. */
void engine_hold(struct engine *engine, int32_t partition, bool hold);
/* After a restore the handoffs of a partition wait for the end of its control topic. No longer: the
 * record that is given now cannot be taken for as long as something is broken. */
void engine_heard(struct engine *engine, int32_t partition);
/* There is more to do: the next round comes without waiting. */
void engine_again(struct engine *engine);
/* Whoever wrote into wake_fd's pipe is gone: it is not looked at any more. */
void engine_ignore_wake(struct engine *engine);
/* Stops reading the first input at all (a clean stop). */
void engine_stop_taking(struct engine *engine);

/* ---- the batch ---- */

/*
 * Adds a record to the batch; key, value and headers are copied. For the state topic the partition
 * is given, for others LOG_PARTITION_BY_KEY. Returns its index, for engine_offset.
 */
size_t engine_put(struct engine *engine, const struct log_record *record);
/* The record of the present event is taken in: its offset moves with this batch (protocol rule 17).
 */
void engine_take(struct engine *engine);
/* Is this partition ours and restored, so that the batch may write its state? */
bool engine_owns(const struct engine *engine, int32_t partition);
/* Records in the batch so far. */
size_t engine_batch_count(const struct engine *engine);
/* How far the first input (or control) of a partition is taken in. */
int64_t engine_position(const struct engine *engine, int input, int32_t partition);
/* What waits in an input of a partition that is ours, as far as this process has heard. */
struct engine_waiting {
    int64_t records;      /* offsets that are not taken in: Kafka counts some that are no records */
    struct wall_ms since; /* when the first of them was appended, by the log's time; 0: not known */
};
struct engine_waiting engine_waiting(const struct engine *engine, int input, int32_t partition);
/* Was the first input read to its end, with nothing waiting? (idle, for --drain) */
bool engine_drained(const struct engine *engine);

enum engine_result {
    ENGINE_COMMITTED,  /* the batch is in the log (also an empty one) */
    ENGINE_DROPPED,    /* nothing happened and nothing was lost but the decisions: decide again */
    ENGINE_START_OVER, /* decisions are dropped; every partition will be restored */
};

/*
 * Commits the batch with an offset of every partition whose state it writes. A record that aborts
 * it (too large, topic missing) makes its topic unavailable for 30 s: *ret_culprit is its index or
 * -1. The batch is empty afterwards, but engine_offset answers until the next engine_put.
 */
baton_code engine_commit(struct engine *engine, enum engine_result *ret_result,
                         int64_t *ret_culprit, struct baton_error *err);
/* Offset of a record of the batch that was just committed. */
int64_t engine_offset(const struct engine *engine, size_t index);
/* When the log appended it, by its own time; 0: it did not say. */
struct wall_ms engine_appended(const struct engine *engine, size_t index);
/* Is writing to this topic known to fail just now? (for decisions made anew) *ret_code: why. */
bool engine_unavailable(const struct engine *engine, const char *topic, baton_code *ret_code);

#define ENGINE_TARGETS_MAX 16
struct engine_target {
    const char *topic; /* until the next commit; this, too: */
    const char *cause; /* the log's words, with what is missing and to whom */
    baton_code code;
    struct wall_ms since;
};
/* The topics that could not be written when it was tried last, for a while after that, too, the state
 * topic among them: how many of ENGINE_TARGETS_MAX. To be shown; engine_unavailable decides. */
size_t engine_blocked(const struct engine *engine, struct engine_target *ret_targets);

/* When the membership was last kept alive: how long the caller's thread has not come round. Any
 * thread. */
struct mono_ms engine_polled(const struct engine *engine);
/* Every partition that is ours, and how many. */
size_t engine_partitions(const struct engine *engine, int32_t *ret_partitions);
/* Deletes what lies below the committed offsets of inputs that are trimmed, and looks whether a topic was
 * made again (once a minute; failures are logged). */
void engine_trim(struct engine *engine);

#endif
