/*
 * Attempts that run here, or have run and are not settled: a table by turn id (live.c).
 *
 * Included by internal.h, and by every file of the worker that looks for what runs. Engine's thread.
 */
#ifndef BATON_WORKER_LIVE_H
#define BATON_WORKER_LIVE_H

#include "common/base/clock.h"
#include "common/record/turn_record.h"
#include "common/store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum live_phase {
    LIVE_running, /* its executor was started by this boot */
    LIVE_ended,   /* its end is a fact in the store */
};

struct live {
    struct turn_record record; /* as the log has it */
    int32_t partition;
    enum live_phase phase;
    bool held;     /* its partition has moved: worker/lease/lease.c looks after it */
    bool in_batch; /* its end is in the batch that is being decided */
    bool heard;    /* its failure was told to the circuit */
    struct recorded_end end;
    struct mono_ms progress_due; /* its progress is told no earlier */
    struct live *next;           /* of the hash chain */
    struct live *ended_prev;     /* of those that have ended */
    struct live *ended_next;
};

#define LIVES_STARTS 2048

struct lives {
    struct live **slots;
    size_t n_slots;
    size_t count;
    size_t running;
    unsigned long changes; /* of what runs */
    struct live *ended;    /* list, oldest first */
    struct live *ended_last;
    uint64_t starts[LIVES_STARTS]; /* the newest attempts whose executor was started here */
    size_t n_starts;
};

/* For tables of turns by id. */
size_t turn_hash(const char *turn_id);

bool lives_init(struct lives *lives);
void lives_done(struct lives *lives);
struct live *lives_find(const struct lives *lives, const char *turn_id);
/* Takes the record. NULL without memory. */
struct live *lives_add(struct lives *lives, struct turn_record *take_record, int32_t partition);
/* Notes that the executor of this attempt is started; false: it was before (rule 19). */
bool lives_start_once(struct lives *lives, const char *turn_id, int attempt);
void lives_end(struct lives *lives, struct live *live, const struct recorded_end *take_end);
void lives_remove(struct lives *lives, struct live *live);
/* Calls fn for each; fn may remove the one that it is given. */
void lives_each(struct lives *lives, void (*fn)(struct live *, void *), void *arg);

#endif
