/*
 * What the coordinator decided, as spans of the run's trace. All turns of a run share one trace, whose id comes from
 * fleet and run: it needs no place in the run's record, and every coordinator knows it.
 *
 *   run                                  from its start to its end, for each epoch
 *     decide TRANSITION                  from the end of the turn before, which it follows from, to the commit
 *       send (a turn)                    the traceparent of the handoff: the worker's spans are below it
 *
 * They wait beside the batch and go to the collector once the log has it.
 * In: send.c, advance.c  Out: common/trace/span_about.h, changes.c (sends them)
 */
#include "producer/coordinator/internal.h"

#include "common/base/traceparent.h"
#include "common/record/signer.h"
#include "common/trace/span_about.h"

#include <stdio.h>
#include <string.h>

static struct traceparent trace_of(const struct coordinator *c, const struct run *run)
{
    struct traceparent trace = {.sampled = true};
    char name[2 * ID_MAX + 16];
    const int len = snprintf(name, sizeof(name), "baton-run %s %s", c->fleet.s, run->id.s);
    const struct digest digest = digest_of(name, (size_t)len);
    hex_encode(digest.b, 16, trace.trace);
    return trace;
}

static struct span_id run_span(const struct run *run)
{
    return span_id_of("run", run->id.s, run->epoch);
}

/* Of the n-th time that a transition was taken; the first turns come from the run itself. */
static struct span_id decision_span(const struct run *run, const char *by, int n)
{
    char what[ID_MAX + 16];
    snprintf(what, sizeof(what), "decide %s", by);
    return strcmp(by, RUN_START) == 0 ? run_span(run) : span_id_of(what, run->id.s, n);
}

static void of_run(const struct run *run, struct span *span)
{
    span_about_run(span, run->id.s, run->epoch);
    span_text(span, SPAN_task, run->task_id.s);
    span_int(span, SPAN_task_rev, run->task_rev);
}

struct traceparent_text spans_send(struct coordinator *c, const struct run *run,
                                   const struct turn *turn, const char *by, int n, const char *slot)
{
    struct traceparent trace = trace_of(c, run);
    const struct span_id parent = decision_span(run, by, n);
    const struct topic_name topic = topic_name(TOPIC_handoff, c->config->prefix.s, turn->service.s);
    struct span span = {.trace = trace.trace,
                        .id = span_id_of("send", turn->id.s, 1),
                        .parent = parent.s,
                        .name = "send",
                        .target = topic.s,
                        .kind = SPAN_KIND_producer,
                        .start = wall_now()};
    memcpy(trace.span, span.id.s, sizeof(trace.span));
    if (c->tracer == NULL) { /* nobody's parent that nobody is told of */
        memcpy(trace.span, span_id_of_receive(turn->id.s, 1).s, sizeof(trace.span));
    }
    struct span_turn about = {.id = turn->id.s,
                              .attempt = 1,
                              .role = turn->role,
                              .service = turn->service.s,
                              .task = run->task_id.s,
                              .task_rev = run->task_rev};
    span_about_turn(&span, &about);
    span_about_run(&span, run->id.s, run->epoch);
    span_topic(&span, c->config, "send", topic.s);
    span_text(&span, SPAN_transition, by);
    span_text(&span, SPAN_slot, slot);
    if (c->tracer != NULL) {
        span_add(&c->spans, &span);
    }
    return traceparent_text_of(&trace);
}

void spans_decided(struct coordinator *c, const struct run *run, const char *by, int n,
                   const struct spans_cause *cause)
{
    const struct traceparent trace = trace_of(c, run);
    const struct span_id parent = run_span(run);
    struct span span = {.trace = trace.trace,
                        .id = decision_span(run, by, n),
                        .parent = parent.s,
                        .link = cause->span.s,
                        .name = "decide",
                        .target = by,
                        .kind = SPAN_KIND_internal,
                        .start = cause->at.v != 0 ? cause->at : wall_now()};
    if (c->tracer != NULL) {
        of_run(run, &span);
        span_text(&span, SPAN_transition, by);
        span_add(&c->spans, &span);
    }
}

struct spans_cause spans_cause_of(const struct run_turn *turn)
{
    struct spans_cause cause = {.at = {0}};
    if (turn != NULL) {
        cause.span = span_id_of("attempt", turn->id.s, turn->attempt); /* as its worker tells it */
        cause.at = turn->ended_at;
    }
    return cause;
}

/* When the run of this epoch began: the first of it was started, others are from their first turn on. */
static struct wall_ms begun_at(const struct run *run)
{
    if (run->epoch <= 1) {
        return run->started_at;
    }
    for (size_t i = 0; i < run->n_kept; i++) { /* oldest first */
        if (run->turns[i].epoch == run->epoch) {
            return run->turns[i].begun_at;
        }
    }
    return wall_now(); /* it ends without one */
}

void spans_run_ended(struct coordinator *c, const struct run *run)
{
    const struct traceparent trace = trace_of(c, run);
    struct span span = {.trace = trace.trace,
                        .id = run_span(run),
                        .name = "run",
                        .target = NULL,
                        .kind = SPAN_KIND_internal,
                        .start = begun_at(run),
                        .error = run->state == RUN_completed ? NULL : run_state_word(run->state)};
    if (c->tracer != NULL) {
        of_run(run, &span);
        span_text(&span, SPAN_state, run_state_word(run->state));
        span_add(&c->spans, &span);
    }
}
