/*
 * Gives spans to the collector: a bounded queue and a thread of its own, so that nobody waits for it.
 *
 * tracer_send never blocks but for the moment of a lock; when the queue is full the oldest spans are dropped, and
 * counted (baton_trace_spans_dropped_total). A tracer that is NULL is none: every function takes it.
 */
#ifndef BATON_COMMON_TRACE_TRACER_H
#define BATON_COMMON_TRACE_TRACER_H

#include "baton/code.h"
#include "common/base/config.h"
#include "common/trace/span.h"

#include <stdint.h>

struct tracer;

/* Bounds of the last try, at the end of a process. */
#define TRACER_CLOSE_MS 1000
#define TRACER_CLOSE_COMMAND_MS 500 /* of a command that somebody waits for */

/*
 * *ret_tracer is NULL where no traces.endpoint is configured. service and instance: whose spans they are; "": no
 * instance. config outlives it. Errors: as collector_open, and unexpected (no thread).
 */
baton_code tracer_open(const struct config *config, const char *service, const char *instance,
                       struct tracer **ret_tracer, struct baton_error *err);
/* Sends what waits, for so long at most; what is left is dropped, and counted. */
void tracer_close(struct tracer *tracer, int64_t within_ms);

/* Takes the spans of the list, which is empty then; those that are open end now. Any thread. */
void tracer_send(struct tracer *tracer, struct span_list *take_list);

#endif
