/*
 * What a span is about, as attributes: a turn, a run, a topic of the log. Whoever tells of one of them says
 * the same of it.
 *
 * Makers of spans: producer/publish_trace.c, producer/coordinator/spans.c, worker/spans.c. Any thread.
 */
#ifndef BATON_COMMON_TRACE_SPAN_ABOUT_H
#define BATON_COMMON_TRACE_SPAN_ABOUT_H

#include "common/base/config.h"
#include "common/base/id.h"
#include "common/base/role.h"
#include "common/trace/span.h"

#include <stdint.h>

/* A turn at one of its attempts. Texts are borrowed until the span is added, and so is this. */
struct span_turn {
    const char *id;
    int attempt;
    enum role role;
    const char *service;
    const char *task;
    int64_t task_rev;
    char message[ID_MAX + 16]; /* span_about_turn's */
};
void span_about_turn(struct span *span, struct span_turn *turn);

/* A run, or the run of a turn; run NULL or "": it is of none. Borrowed until the span is added. */
void span_about_run(struct span *span, const char *run, int64_t epoch);

/* What is done to a topic of the log: send, receive, process or settle; and where in it, once that is known. The
 * topic's name is borrowed until the span is added. */
void span_topic(struct span *span, const struct config *config, const char *type,
                const char *topic);
void span_place(struct span *span, const struct config *config, int32_t partition, int64_t offset);

#endif
