/*
 * The span of a publish: the first of its turn's trace, or one of the trace that the publisher was given.
 * In: producer/publish.c  Out: common/trace/span_about.h, common/trace/tracer.c
 */
#include "producer/publish.h"

#include "common/base/traceparent.h"
#include "common/trace/span_about.h"
#include "common/trace/tracer.h"
#include "topics/catalogue.h"

#include <stdio.h>
#include <string.h>

bool traceparent_valid(const char *text)
{
    return text != NULL && traceparent_parse(text, strlen(text), NULL);
}

void publish_trace_begin(const struct publisher *publisher, const char *given,
                         struct published *published)
{
    const char *turn_id = published->turn_id.s;
    struct traceparent trace = {.sampled = true};
    published->trace_parent[0] = '\0';
    if (given != NULL && traceparent_parse(given, strlen(given), &trace)) {
        memcpy(published->trace_parent, trace.span, sizeof(trace.span));
    } else { /* named by the turn: published once more, it is in the same one */
        snprintf(trace.trace, sizeof(trace.trace), "%s", turn_id);
    }
    if (publisher->tracer != NULL) {
        random_hex(trace.span, 16);
    } else if (published->trace_parent[0] == '\0') {
        memcpy(trace.span, span_id_of_receive(turn_id, 1).s, sizeof(trace.span));
    } /* else: the worker's are children of the span that it was given, as this one is not told */
    snprintf(published->traceparent, sizeof(published->traceparent), "%s",
             traceparent_text_of(&trace).s);
}

void publish_trace_end(struct publisher *publisher, const struct turn *turn,
                       const struct published *published, struct wall_ms start, baton_code rc)
{
    const struct topic_name topic =
        topic_name(TOPIC_handoff, publisher->config->prefix.s, published->service.s);
    struct span_list list = {NULL, NULL, 0};
    struct traceparent trace;
    if (publisher->tracer == NULL ||
        !traceparent_parse(published->traceparent, strlen(published->traceparent), &trace) ||
        !trace.sampled) {
        return;
    }
    struct span span = {.trace = trace.trace,
                        .parent = published->trace_parent,
                        .name = "send",
                        .target = topic.s,
                        .kind = SPAN_KIND_producer,
                        .start = start,
                        .end = wall_now(),
                        .error = rc != BATON_OK ? baton_code_word(rc) : NULL};
    memcpy(span.id.s, trace.span, sizeof(span.id.s));
    struct span_turn about = {.id = turn->id.s,
                              .attempt = 1,
                              .role = turn->role,
                              .service = published->service.s,
                              .task = turn->task_id.s,
                              .task_rev = turn->task_rev};
    span_about_turn(&span, &about);
    span_topic(&span, publisher->config, "send", topic.s);
    if (published->offset != LOG_OFFSET_NONE) {
        span_place(&span, publisher->config, published->partition, published->offset);
    }
    span_add(&list, &span);
    tracer_send(publisher->tracer, &list);
}
