/*
 * What was decided in a round: new records of turns and notes of the owner, in the batch until the log
 * has taken them, and what is to be folded into the store then (decision.c).
 *
 * Included by internal.h, and by every file of the worker that decides about a turn. Engine's thread.
 */
#ifndef BATON_WORKER_DECISION_H
#define BATON_WORKER_DECISION_H

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/record/turn.h"
#include "common/record/turn_record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct worker;

struct decision {
    struct turn_record record; /* the new state */
    int32_t partition;
    struct buf bytes;  /* its value */
    size_t put;        /* index in the batch */
    int64_t offset;    /* once committed */
    struct wall_ms at; /* the same: when, by the log's time */
    struct turn *turn; /* a claim: the verified bytes; its executor starts once this is folded */
    struct wall_ms appended; /* a claim: when its handoff was appended; 0 for a later attempt */
    int settled_attempt;     /* the fact that this decision ends, 0: none */
    struct boot_id settled_boot;
    bool tombstone;   /* the record leaves the log */
    size_t slot_next; /* of its slot: index + 1 of the next decision, 0: none */
};

/* A change of an owner's note. */
struct note_change {
    int32_t partition;
    char key[160];
    struct buf value;
    bool drop;
    size_t put;
    int64_t offset;
};

#define DECISION_SLOTS 2048 /* a round of LIMIT_PARALLEL turns ends as many as it claims */
struct decisions {
    struct decision *list;
    size_t count;
    size_t cap;
    uint32_t slots[DECISION_SLOTS]; /* by turn: index + 1 of its first decision, 0: none */
    struct note_change *notes;
    size_t n_notes;
    size_t cap_notes;
};

void decisions_clear(struct decisions *decisions);
void decisions_done(struct decisions *decisions);

/* A copy for a record; NULL of NULL. Without memory the program ends: the log has what this worker
 * knew, so nothing is lost, and a text left out would change what a turn is. Any thread. */
char *decision_text(const char *text);
/* Is something about this turn decided already in this round? (rule 10: one decision at a time) */
bool decided(const struct worker *w, const char *turn_id);
/*
 * Puts a turn's new record into the batch. Takes record and turn. The state must be a legal move of
 * the table from the record's former state: that is worker/move.c's business, before.
 */
struct decision *decide(struct worker *w, int32_t partition, struct turn_record *take_record,
                        struct turn *take_turn);
/* Sets a note of the owner, or drops it. */
void decide_note(struct worker *w, int32_t partition, const char *key, const struct buf *value);
void decide_note_gone(struct worker *w, int32_t partition, const char *key);
void decide_tombstone(struct worker *w, int32_t partition, const char *turn_id);

#endif
