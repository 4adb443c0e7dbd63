/*
 * Settling: how an attempt ended, times the turn's budget, gives its one continuation: completed,
 * queued again (retry, rotate), passed on to another service, or parked with its dead letter.
 *
 * Every function decides into the batch; nothing has happened before the log has it.
 *
 * In: worker/round.c, worker/restore.c, worker/lease/report.c  Out: worker/move.c, worker/decision.c,
 * worker/delegate.c, worker/circuit.c
 */
#include "worker/settle.h"

#include "common/base/check.h"
#include "common/base/metrics.h"
#include "common/engine/engine.h"
#include "common/log/log.h"
#include "common/record/outcome.h"
#include "common/record/turn.h"
#include "common/record/turn_record.h"
#include "common/store/store.h"
#include "worker/circuit.h"
#include "worker/dead_letter.h"
#include "worker/decision.h"
#include "worker/delegate.h"
#include "worker/failure_table.h"
#include "worker/internal.h"
#include "worker/move.h"
#include "worker/rest.h"
#include "worker/tell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEADLINE_SLACK_MS 1000

static double draw(void)
{
    uint32_t bits;
    random_bytes(&bits, sizeof(bits));
    return bits / 4294967295.0;
}

/* A wait that its turn's deadline cuts short: it is parked then, and not when the wait would be over. A
 * little later, since what the log would date a record with is known about so well, and a try that early is
 * none that the provider asked for. */
static int64_t within_deadline(const struct worker *w, const struct turn_record *record,
                               int64_t delay_ms)
{
    static const char name[] = "\"deadline\"";
    struct turn *turn = NULL;
    if (delay_ms <= DEADLINE_SLACK_MS || record->handoff == NULL ||
        memmem(record->handoff, record->handoff_len, name, strlen(name)) == NULL ||
        turn_parse(w->fleet.s, record->handoff, record->handoff_len, &turn, NULL) != BATON_OK) {
        return delay_ms; /* has none, or is judged before it starts again */
    }
    const int64_t left = turn->deadline.v - log_date(w->log).v + DEADLINE_SLACK_MS;
    if (turn->deadline.v != 0 && left < delay_ms) {
        delay_ms = left > DEADLINE_SLACK_MS ? left : DEADLINE_SLACK_MS;
    }
    turn_free(turn);
    return delay_ms;
}

/* Attempt n+1 of the same turn, same role, at this service. */
static void queue_next(struct worker *w, struct turn_record *record, const char *profile,
                       int64_t delay_ms)
{
    delay_ms = within_deadline(w, record, delay_ms);
    record->attempt++;
    turn_move(w, record, false, TURN_queued);
    record->delay_ms = delay_ms;
    record->not_before.v = delay_ms > 0 ? log_date(w->log).v + delay_ms : 0;
    (void)attempt_begin(w, record, ATTEMPT_queued, profile);
}

static struct decision *finish(struct worker *w, int32_t partition, struct turn_record *take_record,
                               const struct recorded_end *end)
{
    struct decision *decision = decide(w, partition, take_record, NULL);
    if (end != NULL) {
        decision->settled_attempt = end->attempt;
        decision->settled_boot = end->boot;
    }
    return decision;
}

static void complete(struct worker *w, int32_t partition, struct turn_record *record,
                     struct attempt *attempt, const struct recorded_end *end)
{
    attempt_usage(attempt, end->usage);
    attempt_move(record, attempt, ATTEMPT_completed, end->ended_at);
    record->result_len = strlen(end->result);
    record->result = decision_text(end->result);
    turn_move(w, record, false, TURN_completed);
    tell_turn(w, record, OUTCOME_completed);
    (void)finish(w, partition, record, end);
}

static void park(struct worker *w, int32_t partition, struct turn_record *record, baton_code code,
                 const struct log_record *source, const struct recorded_end *end, bool birth)
{
    record->code = code;
    turn_move(w, record, birth, TURN_parked);
    dead_letter_parked(w, record, source);
    tell_turn(w, record, OUTCOME_parked);
    (void)finish(w, partition, record, end);
}

/* What follows, and the pass if that is a delegation. One whose pass cannot be made cannot be had. */
static struct next_step next_of(struct worker *w, const struct turn_record *record,
                                const struct recorded_end *end, char **ret_pass)
{
    struct all_rest rest;
    struct chances chances = {delegate_target(w, record), rest_look(w, &rest)};
    const double drawn = draw();
    struct next_step step = failure_next(w->config, w->service, record, end->class,
                                         end->retry_after_ms, &chances, drawn);
    *ret_pass = NULL;
    if (step.kind == NEXT_delegate &&
        (*ret_pass = delegate_sign(w, record, step.to, end->class)) == NULL) {
        chances.delegate_to = NULL;
        step = failure_next(w->config, w->service, record, end->class, end->retry_after_ms,
                            &chances, drawn);
    }
    return step;
}

/* Can all be written that such a step has to write? */
static bool can_do(const struct worker *w, enum next_kind kind)
{
    switch (kind) {
    case NEXT_park:
        return can_bury(w) && can_tell(w);
    case NEXT_delegate:
        return can_tell(w);
    case NEXT_start:
    case NEXT_retry:
    case NEXT_rotate:
    case NEXT_hold:
        break;
    }
    return true;
}

static void take_step(struct worker *w, int32_t partition, struct turn_record *record,
                      const struct next_step *step, char *take_pass, const struct recorded_end *end)
{
    char profile[ID_MAX + 1];

    switch (step->kind) {
    case NEXT_retry:
        snprintf(profile, sizeof(profile), "%s", step->profile);
        queue_next(w, record, profile, step->delay_ms);
        metric_add(METRIC_turns_retried, 1);
        break;
    case NEXT_rotate:
        record->tried[record->n_tried++] = record->attempts[record->n_attempts - 1].profile;
        queue_next(w, record, step->profile, 0);
        metric_add(METRIC_turns_rotated, 1);
        break;
    case NEXT_delegate:
        delegate_put(w, record, step->to, take_pass);
        break;
    case NEXT_start:
    case NEXT_hold:
    case NEXT_park:
        park(w, partition, record, step->code, NULL, end, false);
        return;
    }
    (void)finish(w, partition, record, end);
}

/* False, and nothing is decided: what follows cannot be written now. */
static bool fail(struct worker *w, int32_t partition, struct turn_record *record,
                 struct attempt *attempt, const struct recorded_end *end)
{
    struct next_step step;
    char *pass = NULL;

    attempt->has_class = true;
    attempt->class = end->class;
    attempt_note(attempt, end->note);
    attempt_usage(attempt, end->usage);
    if (end->uncounted) {
        attempt->started_at = end->started_at; /* 0: it never did */
        step = uncounted_next(w->config, record, end->class, draw());
    } else {
        if (circuit_uncounted(attempt, end->class)) {
            record->probes++;
        } else if (failure_counts_in(end->class) == COUNTER_losses) {
            record->losses++;
        } else {
            record->failures++;
        }
        step = next_of(w, record, end, &pass);
        circuit_settle(w, record, end, &step);
    }
    if (!can_do(w, step.kind)) {
        free(pass);
        return false;
    }
    attempt_move(record, attempt, step.kind == NEXT_delegate ? ATTEMPT_delegated : ATTEMPT_failed,
                 end->ended_at);
    take_step(w, partition, record, &step, pass, end);
    return true;
}

bool settle_end(struct worker *w, int32_t partition, struct turn_record *take_record,
                const struct recorded_end *end)
{
    bool decided_now = true;
    struct attempt *attempt = turn_record_attempt(take_record, end->attempt);
    BATON_PRE(take_record->state == TURN_running && take_record->attempt == end->attempt);
    BATON_PRE(attempt != NULL && attempt->state == ATTEMPT_running);
    if (end->failed) {
        decided_now = fail(w, partition, take_record, attempt, end);
    } else if (can_tell(w)) {
        complete(w, partition, take_record, attempt, end);
    } else {
        decided_now = false;
    }
    if (!decided_now) {
        turn_record_done(take_record);
    }
    return decided_now;
}

void settle_ended(struct worker *w)
{
    struct live *next;
    for (struct live *live = w->lives.ended; live != NULL; live = next) {
        struct turn_record record;
        next = live->ended_next;
        if (live->in_batch || live->held || !engine_owns(w->engine, live->partition)) {
            continue;
        }
        if (turn_record_copy(&live->record, &record) != BATON_OK) {
            return; /* without memory now: the end stays, the next round tries again */
        }
        live->in_batch = settle_end(w, live->partition, &record, &live->end);
    }
}

bool settle_lost(struct worker *w, int32_t partition, struct turn_record *take_record, bool counted,
                 const char *note)
{
    struct recorded_end end = {
        .turn = take_record->id,
        .attempt = take_record->attempt,
        .boot = take_record->lease_boot,
        .partition = partition,
        .failed = true,
        .class = FAILURE_lost,
        .uncounted = !counted,
        .ended_at = wall_now(),
    };
    snprintf(end.note, sizeof(end.note), "%s", note);
    if (!settle_end(w, partition, take_record, &end)) {
        return false;
    }
    metric_add(METRIC_attempts_lost, 1);
    return true;
}

void settle_park(struct worker *w, int32_t partition, struct turn_record *take_record, bool birth,
                 baton_code code, const char *note, const struct log_record *source)
{
    struct attempt *attempt = turn_record_attempt(take_record, take_record->attempt);
    if (attempt == NULL) {
        attempt = attempt_begin(w, take_record, ATTEMPT_failed, w->service->profiles[0].name.s);
    } else {
        attempt_move(take_record, attempt, ATTEMPT_failed, wall_now());
    }
    attempt_note(attempt, note);
    park(w, partition, take_record, code, source, NULL, birth);
}
