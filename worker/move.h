/*
 * The movers: the only place where the state of a turn or of an attempt changes (move.c).
 *
 * Included by what decides about turns. Engine's thread.
 */
#ifndef BATON_WORKER_MOVE_H
#define BATON_WORKER_MOVE_H

#include "common/base/clock.h"
#include "common/base/state.h"
#include "common/record/turn_record.h"

#include <stdbool.h>

struct worker;

/* Moves a turn; logs and counts. birth: it had no state. Contract: the table permits it. */
void turn_move(struct worker *w, struct turn_record *record, bool birth, enum turn_state to);
/* The newest attempt, added as queued, running or failed with the number of the record. */
struct attempt *attempt_begin(struct worker *w, struct turn_record *record,
                              enum attempt_state state, const char *profile);
void attempt_move(struct turn_record *record, struct attempt *attempt, enum attempt_state to,
                  struct wall_ms at);
void attempt_note(struct attempt *attempt, const char *note);
/* The same for what it took; "": not told. */
void attempt_usage(struct attempt *attempt, const char *usage);

#endif
