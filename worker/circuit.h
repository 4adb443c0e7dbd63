/*
 * A worker's circuit: while its provider is down, turns wait instead of being tried, retried and
 * parked one after the other. The state machine (circuit.c) is pure: time is given, and nothing but
 * its own struct changes. What it means for turns is below (circuit.c, circuit_note.c), and asked by
 * begin.c, round.c and settle.c.
 *
 * Included by internal.h, and by what begins, settles and counts attempts. Engine's thread.
 */
#ifndef BATON_WORKER_CIRCUIT_H
#define BATON_WORKER_CIRCUIT_H

#include "common/base/clock.h"
#include "common/base/config.h"
#include "common/base/failure.h"
#include "common/base/state.h"
#include "common/log/log.h"
#include "common/record/turn_record.h"
#include "common/store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct worker;
struct live;
struct recorded_end;
struct next_step;

struct circuit {
    enum circuit_state state;
    int row;              /* closed: failures in a row that said the provider is down */
    enum failure class;   /* of the newest of them */
    struct mono_ms next;  /* open: when it is over; half open: when the next probe may start */
    struct wall_ms since; /* not closed: since when */
    struct turn_id probe; /* half open: the turn that was tried last, "" at first */
    bool heard;           /* an attempt of this boot has ended */
    bool held;            /* turns are due later than they need, because of it */
};

/* An attempt has succeeded: the provider is there. */
void circuit_success(struct circuit *circuit, const char *service);
/* An attempt has failed, and no fallback took its turn; class says what that means. */
void circuit_failure(struct circuit *circuit, const struct config *config, const char *service,
                     enum failure class, struct mono_ms now);
/* Time has passed. */
void circuit_time(struct circuit *circuit, const char *service, struct mono_ms now);
/* The note of an older boot, or of a former owner, says that it was open. */
void circuit_adopt(struct circuit *circuit, const char *service, enum failure class,
                   struct wall_ms since, struct mono_ms now);
/* Is it time to start an attempt? In half open that attempt is a probe. */
bool circuit_due(const struct circuit *circuit, struct mono_ms now);
/* Contract: circuit_due. This attempt of the turn is a probe. */
void circuit_probe(struct circuit *circuit, const struct config *config, const char *turn_id,
                   struct mono_ms now);

/* ---- of this worker ---- */

/* May an attempt start now? A probe is one turn at a time. first: the first one of its turn; those
 * that have been tried come a little later, so that a turn that fails each time holds nobody up. */
bool circuit_lets(const struct worker *w, bool first);
/* How many handoffs may be taken in (first), or queued turns claimed, in this round, where there is
 * room for so many. While turns only wait, none; where a fallback can have them, they are passed on. */
size_t circuit_room(const struct worker *w, size_t room, bool first);
/* When this worker must look again; false: nothing waits for a time. */
bool circuit_next(const struct worker *w, struct mono_ms now, struct mono_ms *ret_at);
/* Beginning of a round: time passes, and the notes follow. */
baton_code circuit_tick(struct worker *w, struct baton_error *err);
/* These queued turns wait for the next probe. */
baton_code circuit_hold(struct worker *w, const struct store_due *due, size_t count,
                        struct baton_error *err);
/* What follows a failed attempt of this turn: as its list said; but where it says park because the
 * provider is down, the turn waits for it here. */
void circuit_settle(struct worker *w, const struct turn_record *record,
                    const struct recorded_end *end, struct next_step *step);
/* Does this attempt count in no budget? A probe that found the provider down as before. */
bool circuit_uncounted(const struct attempt *attempt, enum failure class);

/* ---- circuit_note.c ---- */

/* What the note of a partition says. */
struct circuit_told {
    enum circuit_state state; /* closed: there is no note */
    bool mine;                /* this boot has written it */
};
/* Reads a partition's note after a restore, and after a fold. */
baton_code circuit_restore(struct worker *w, int32_t partition, struct baton_error *err);
/* Writes the notes of those partitions that tell something else. */
void circuit_tell(struct worker *w, const int32_t *partitions, size_t n);

#endif
