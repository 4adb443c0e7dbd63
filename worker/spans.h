/*
 * What was done to a turn, as spans for the collector, traces.endpoint (spans.c).
 *
 * Included by move.c, claim.c and delegate.c. Engine's thread.
 */
#ifndef BATON_WORKER_SPANS_H
#define BATON_WORKER_SPANS_H

#include "common/base/state.h"
#include "common/base/traceparent.h"

#include <stdbool.h>

struct log_record;
struct receipt;
struct turn_record;
struct worker;

/* The traceparent of a turn that is taken in: the one it came with, or a new one. */
char *spans_context(const struct receipt *receipt);
/* A handoff was taken in. */
void spans_taken(struct worker *w, const struct turn_record *record,
                 const struct log_record *handoff);
/* A turn has moved, and its newest attempt has before it. */
void spans_moved(struct worker *w, const struct turn_record *record, bool birth,
                 enum turn_state from);
/* For the executor of its newest attempt, and for the record by which it is passed on (which has one).
 * False: the turn has none. */
bool spans_attempt(const struct worker *w, const struct turn_record *record,
                   struct traceparent_text *ret_text);
struct traceparent_text spans_pass(const struct worker *w, const struct turn_record *record);

#endif
