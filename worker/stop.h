/*
 * A worker's clean stop (stop.c).
 *
 * Included by worker.c and start.c. Engine's thread.
 */
#ifndef BATON_WORKER_STOP_H
#define BATON_WORKER_STOP_H

#include "baton/code.h"

#include <stdbool.h>

struct worker;

#define CLOSE_TIMEOUT_MS 5000
void stop_read_wake(struct worker *w);
/* The grace is over, or somebody asked twice: what still runs is told to end. */
void stop_end_what_runs(struct worker *w);
/* It has waited long enough for what runs to be settled: others shall take over. */
bool stop_waited(const struct worker *w);
/* Nothing runs here and nothing waits for log or store. */
bool stop_settled(struct worker *w);
/* Nothing is left to do at all (--drain). */
bool stop_drained(struct worker *w);
/* service_unavailable where ends are recorded that the log could not be told of. */
baton_code stop_left_nothing(struct worker *w, struct baton_error *err);
baton_code stop_as_holder(struct worker *w, struct baton_error *err);

#endif
