/*
 * What this worker did to a turn, as spans of the turn's trace: taken, tried, settled, passed on, parked,
 * replayed, cancelled. They wait beside the batch and go to the collector once the log has it, so a trace tells
 * what is true; a decision that is made again gives the same spans.
 *
 *   send (who published, or the pass before)      the traceparent of the record
 *     receive SERVICE                             from the append to the decision
 *     attempt SERVICE                             the executor; TRACEPARENT of its environment
 *       settle, send (a pass), dead letter        what followed from its end
 *     replay, cancel
 *
 * In: worker/move.c, worker/claim.c, worker/delegate.c  Out: common/trace/span_about.h, worker/round.c (sends them)
 */
#include "worker/spans.h"

#include "common/base/check.h"
#include "common/base/config.h"
#include "common/base/traceparent.h"
#include "common/record/receipt.h"
#include "common/trace/span.h"
#include "common/trace/span_about.h"
#include "common/trace/tracer.h"
#include "topics/catalogue.h"
#include "worker/decision.h"
#include "worker/internal.h"

#include <stdio.h>
#include <string.h>

#define ATTEMPT "attempt"

/* The trace of a turn, if its spans are wanted. */
static bool traced(const struct worker *w, const struct turn_record *record,
                   struct traceparent *ret_trace)
{
    return w->tracer != NULL && record->traceparent != NULL &&
           traceparent_parse(record->traceparent, strlen(record->traceparent), ret_trace) &&
           ret_trace->sampled;
}

/* What every span of a turn says. ret_turn is kept until it is added. */
static struct span span_of(const struct worker *w, const struct turn_record *record,
                           const struct traceparent *trace, const char *name, int attempt,
                           struct span_turn *ret_turn)
{
    struct span span = {.trace = trace->trace,
                        .id = span_id_of(name, record->id.s, attempt),
                        .parent = trace->span,
                        .name = name,
                        .target = w->service->name.s,
                        .kind = SPAN_KIND_internal,
                        .start = wall_now()};
    *ret_turn = (struct span_turn){.id = record->id.s,
                                   .attempt = attempt,
                                   .role = record->role,
                                   .service = w->service->name.s,
                                   .task = record->task_id.s,
                                   .task_rev = record->task_rev};
    span_about_turn(&span, ret_turn);
    span_about_run(&span, record->run_id.s, record->epoch);
    span_int(&span, SPAN_attempt, attempt);
    return span;
}

/* ---- taken ---- */

char *spans_context(const struct receipt *receipt)
{
    struct traceparent trace = {.sampled = true};
    if (receipt->traceparent != NULL) {
        return decision_text(receipt->traceparent);
    }
    /* Who published it gave it none, or none that is well-formed. */
    snprintf(trace.trace, sizeof(trace.trace), "%s", receipt->turn->id.s);
    memcpy(trace.span, span_id_of_receive(receipt->turn->id.s, receipt->attempt).s,
           sizeof(trace.span));
    return decision_text(traceparent_text_of(&trace).s);
}

void spans_taken(struct worker *w, const struct turn_record *record,
                 const struct log_record *handoff)
{
    struct traceparent trace;
    struct span_turn turn;
    if (!traced(w, record, &trace)) {
        return;
    }
    struct span span = span_of(w, record, &trace, "receive", record->attempt, &turn);
    if (strcmp(span.id.s, trace.span) == 0) {
        span.parent = NULL; /* it begins the trace */
    }
    span.kind = SPAN_KIND_consumer;
    if (handoff->at.v > 0) {
        span.start = handoff->at; /* of a log that dates its records */
    }
    span_topic(&span, w->config, "receive", handoff->topic);
    span_text(&span, SPAN_group, w->group.s);
    span_place(&span, w->config, handoff->partition, handoff->offset);
    span_add(&w->spans, &span);
}

/* ---- tried ---- */

static const char *executor_word(enum executor_kind kind)
{
    switch (kind) {
    case EXECUTOR_KIND_exec:
        return "exec";
    case EXECUTOR_KIND_child:
        return "child";
    case EXECUTOR_KIND_agent:
        return "agent";
    case EXECUTOR_KIND_callback:
        break;
    }
    return "callback";
}

bool spans_attempt(const struct worker *w, const struct turn_record *record,
                   struct traceparent_text *ret_text)
{
    struct traceparent trace;
    if (record->traceparent == NULL ||
        !traceparent_parse(record->traceparent, strlen(record->traceparent), &trace)) {
        return false;
    }
    if (w->tracer != NULL) {
        memcpy(trace.span, span_id_of(ATTEMPT, record->id.s, record->attempt).s,
               sizeof(trace.span));
    }
    *ret_text = traceparent_text_of(&trace);
    return true;
}

static void tell_attempt(struct worker *w, const struct turn_record *record,
                         const struct traceparent *trace, const struct attempt *attempt)
{
    struct span_turn turn;
    struct span span = span_of(w, record, trace, ATTEMPT, attempt->no, &turn);
    span.start = attempt->started_at.v != 0 ? attempt->started_at : attempt->ended_at;
    span.end = attempt->ended_at.v > span.start.v ? attempt->ended_at : span.start;
    if (attempt->state != ATTEMPT_completed) {
        span.error =
            attempt->has_class ? failure_word(attempt->class) : attempt_state_word(attempt->state);
    }
    span_text(&span, SPAN_type, "process");
    span_text(&span, SPAN_state, attempt_state_word(attempt->state));
    span_text(&span, SPAN_executor,
              executor_word(w->options->callback != NULL ? EXECUTOR_KIND_callback
                                                         : w->service->executor.kind));
    span_text(&span, SPAN_profile, attempt->profile.s);
    span_add(&w->spans, &span);
}

/* ---- settled ---- */

static void tell_settled(struct worker *w, const struct turn_record *record,
                         const struct traceparent *trace, const struct attempt *attempt)
{
    struct span_turn turn;
    struct span span = span_of(w, record, trace, "settle", attempt->no, &turn);
    if (attempt->ended_at.v != 0) {
        span.start = attempt->ended_at; /* recorded then; the log has it when the span ends */
    }
    span_topic(&span, w->config, "settle", w->names[TOPIC_turns].s);
    span_text(&span, SPAN_state, turn_state_word(record->state));
    span_add(&w->spans, &span);
}

static void tell_dead_letter(struct worker *w, const struct turn_record *record,
                             const struct traceparent *trace)
{
    struct span_turn turn;
    struct span span = span_of(w, record, trace, "dead_letter", record->attempt, &turn);
    span.kind = SPAN_KIND_producer;
    span.error = baton_code_word(record->code);
    span_topic(&span, w->config, "send", w->names[TOPIC_dlq].s);
    span_add(&w->spans, &span);
}

/* By whom the next service is handed the turn: its span, if this one tells any. */
static struct span_id pass_id(const struct turn_record *record)
{
    return span_id_of("pass", record->id.s, record->to_attempt);
}

struct traceparent_text spans_pass(const struct worker *w, const struct turn_record *record)
{
    struct traceparent trace;
    if (!traced(w, record, &trace)) {
        struct traceparent_text same;
        snprintf(same.s, sizeof(same.s), "%s", record->traceparent);
        return same;
    }
    memcpy(trace.span, pass_id(record).s, sizeof(trace.span));
    return traceparent_text_of(&trace);
}

static void tell_passed(struct worker *w, const struct turn_record *record,
                        const struct traceparent *trace)
{
    const struct topic_name topic =
        topic_name(TOPIC_handoff, w->config->prefix.s, record->to_service.s);
    struct span_turn turn;
    struct span span = span_of(w, record, trace, "send", record->to_attempt, &turn);
    span.id = pass_id(record);
    span.kind = SPAN_KIND_producer;
    span.target = topic.s;
    span_topic(&span, w->config, "send", topic.s);
    span_text(&span, SPAN_to, record->to_service.s);
    span_add(&w->spans, &span);
}

static void tell_operated(struct worker *w, const struct turn_record *record,
                          const struct traceparent *trace, const char *name, int attempt)
{
    struct span_turn turn;
    struct span span = span_of(w, record, trace, name, attempt, &turn);
    span.kind = SPAN_KIND_consumer;
    span_topic(&span, w->config, "process", w->names[TOPIC_control].s);
    span_text(&span, SPAN_group, w->group.s);
    span_text(&span, SPAN_state, turn_state_word(record->state));
    span_add(&w->spans, &span);
}

void spans_moved(struct worker *w, const struct turn_record *record, bool birth,
                 enum turn_state from)
{
    struct traceparent trace;
    if (record->state == TURN_running || !traced(w, record, &trace)) {
        return; /* of one that runs its end tells */
    }
    if (!birth && from == TURN_running && record->n_attempts > 0) {
        const struct attempt *attempt = &record->attempts[record->n_attempts - 1];
        tell_attempt(w, record, &trace, attempt);
        memcpy(trace.span, span_id_of(ATTEMPT, record->id.s, attempt->no).s, sizeof(trace.span));
        tell_settled(w, record, &trace, attempt);
    }
    if (!birth && from == TURN_parked && record->state != TURN_cancelled) {
        /* by the attempt that it gives, here or elsewhere: one and the next are two */
        tell_operated(w, record, &trace, "replay",
                      record->state == TURN_delegated ? record->to_attempt : record->attempt);
    }
    if (record->state == TURN_parked) {
        tell_dead_letter(w, record, &trace);
    } else if (record->state == TURN_delegated) {
        tell_passed(w, record, &trace);
    } else if (record->state == TURN_cancelled) {
        tell_operated(w, record, &trace, "cancel", record->attempt);
    }
}
