/* What the files of the engine share; nobody else includes it. */
#ifndef BATON_COMMON_ENGINE_INTERNAL_H
#define BATON_COMMON_ENGINE_INTERNAL_H

#include "common/base/buf.h"
#include "common/base/diag.h"
#include "common/engine/engine.h"
#include "common/engine/verify.h"

#include <stdatomic.h>

#define FETCH_RECORDS_MAX 512         /* of one partition at a time */
#define FETCH_BYTES_MAX (1024 * 1024) /* of one partition at a time: bounds memory */
#define UNAVAILABLE_MS 30000          /* a topic whose record aborted a transaction */
#define UNAVAILABLE_MAX ENGINE_TARGETS_MAX
#define RETRY_FIRST_MS 100 /* the log cannot be reached: first wait, doubled up to the last */
#define RETRY_LAST_MS 5000
#define PATIENCE_MS 50 /* after a round that took nothing, although it was given something */
#define FENCES_MAX 5   /* so often within a minute: two processes fence each other in turn */
#define FENCES_WITHIN_MS 60000
#define EOF_IDLE_MS 1000 /* an end that was reached is committed alone after so long */

enum part_state {
    PART_none,      /* not ours */
    PART_waiting,   /* assigned; offsets and ends are not known */
    PART_asked,     /* ENGINE_restoring was given; engine_restore_from is due */
    PART_restoring, /* the state topic is being read */
    PART_read,      /* read to its end; the owner record is not committed */
    PART_restored,  /* committed; ENGINE_assigned is due */
    PART_owned,
};

/* What was fetched of one input of one partition. */
struct feed {
    int64_t committed; /* offset that the log has for the group */
    int64_t taken;     /* offset that the next commit sends */
    int64_t low;       /* the first offset that was there when last asked: it only rises */
    struct log_batch batch;
    struct receipt *receipts; /* one for each record of the batch */
    size_t at;                /* next record to give */
    size_t safe;              /* records before it are in a committed batch */
    bool postponed;           /* the caller did not take one this round */
    bool at_end;
};

struct part {
    enum part_state state;
    int64_t low;
    int64_t high;
    int64_t from;
    struct log_reader *reader;
    int64_t reached;         /* how far the reader has come */
    struct mono_ms moved_at; /* when it last came further */
    int64_t hidden_at;       /* monotonic ms: since when readers are given nothing; 0: not so */
    int64_t note_at;         /* the newest note of the log's (log_batch), */
    int64_t owner_at;        /* and of an owner, among what was read */
    struct feed feeds[LOG_INPUTS];
    bool held;
    bool heard;    /* its control topic was read to the end once: then handoffs are taken */
    bool in_batch; /* the batch writes its state, or moves its offsets */
};

enum phase { PHASE_between, PHASE_control, PHASE_record, PHASE_round };

/* A record of the batch; its bytes are in one allocation. */
struct put {
    struct log_record record;
    void *memory;
};

struct unavailable {
    char topic[256];
    struct mono_ms until;
    struct mono_ms told; /* engine_blocked names it until then; 0: a record has come through */
    struct wall_ms since;
    baton_code code;
    char cause[sizeof(((struct baton_error *)NULL)->text)];
};

/* Where a record of the batch is in the log, and since when. */
struct place {
    int64_t offset;
    struct wall_ms at;
};

struct engine {
    struct engine_spec spec;
    struct log_member *member;
    struct verify *verify;
    char **written; /* every topic that batches name: where a dead owner's records may hang */
    size_t n_written;

    struct part parts[LOG_PARTITIONS_MAX];
    /* What the committed offsets say of this partition is not believed, until an owner's note is
     * there: its inputs are read again from what is not trimmed. */
    bool reread[LOG_PARTITIONS_MAX];
    int64_t generation;
    int32_t moved[LOG_PARTITIONS_MAX];

    enum phase phase;
    bool work;              /* something happened that a round should look at */
    bool postponed;         /* a record of this round was not taken */
    bool renew;             /* a new producer is needed before anything is restored */
    bool stopping;          /* the first input is not read any more */
    atomic_llong polled_at; /* monotonic ms of the last poll of the member */
    bool joined;            /* the group says what is ours now, if only that nothing is */
    size_t capacity;
    size_t given;       /* records of the first input in this round */
    int32_t next_part;  /* fairness: where the round begins */
    int32_t event_part; /* of the present event */
    int event_input;    /* of the present event; -1: no record */
    bool event_taken;
    struct log_batch restore_batch;

    struct put *puts;
    size_t n_puts;
    size_t cap_puts;
    struct place *places; /* of the last committed batch */
    size_t n_places;
    bool committed;

    struct mono_ms patience;              /* what was not taken is not given again before */
    struct mono_ms fenced_at[FENCES_MAX]; /* the last times, in a ring */
    size_t n_fenced;
    int64_t gap_until_ns;       /* a transaction before then costs more than waiting for it */
    bool gathered;              /* in this round it was waited for */
    struct mono_ms pause_until; /* the log could not be reached */
    int64_t pause_ms;
    struct mono_ms eof_since; /* 0: nothing waits */
    struct unavailable unavailable[UNAVAILABLE_MAX];
    struct diag_limit limit;
};

/* ownership.c: what the member says, and restoring */
baton_code ownership_poll(struct engine *engine, struct engine_event *ret_event, bool *ret_given,
                          struct baton_error *err);
baton_code ownership_restore(struct engine *engine, struct engine_event *ret_event, bool *ret_given,
                             struct baton_error *err);
/* Every partition of ours is restored again. */
void ownership_start_over(struct engine *engine);
void part_clear(struct part *part);

/* A chunk that is being judged. */
struct judging {
    const struct receiver *receiver;
    struct feed *feed;
    enum engine_records records;
};

/* intake.c: what the inputs hold */
bool intake_ahead(struct engine *engine, struct judging *ret_judging);
baton_code intake_fetch(struct engine *engine, int input, size_t wanted, bool *ret_any,
                        struct baton_error *err);
bool intake_give(struct engine *engine, int input, struct engine_event *ret_event);
void intake_settle_event(struct engine *engine);
void intake_committed(struct engine *engine);
void intake_rewind(struct engine *engine);
baton_code intake_begin_anew(struct engine *engine, int32_t number, int input, int64_t low,
                             struct baton_error *err);

/* batch.c */
void batch_clear(struct engine *engine);
/* Is there anything in it: records, or offsets that move? */
bool batch_any(const struct engine *engine);
/* Has a topic's time of being unavailable passed since the last call? */
bool batch_target_returned(struct engine *engine);
baton_code batch_commit(struct engine *engine, enum engine_result *ret_result, int64_t *ret_culprit,
                        struct baton_error *err);

/* engine.c */
/* The log cannot be reached, or refused everything: wait before the next try. */
void engine_pause(struct engine *engine, baton_code code, const struct baton_error *err,
                  const char *what);

#endif
