/*
 * How an attempt begins while credential profiles rest or the circuit is open: with a profile that does
 * not rest, later, or at another service without a try here.
 *
 * In: worker/claim.c  Out: worker/rest.c, worker/circuit.c, worker/failure_table.c, worker/delegate.c
 */
#include "worker/begin.h"

#include "common/record/turn_record.h"
#include "worker/circuit.h"
#include "worker/decision.h"
#include "worker/delegate.h"
#include "worker/failure_table.h"
#include "worker/internal.h"
#include "worker/move.h"
#include "worker/rest.h"

#include <string.h>

/* Does the next attempt begin a series that no operator asked for? A replay is tried at once. */
static bool begins_series(const struct worker *w, const struct turn_record *record)
{
    for (size_t i = 0; i < record->n_attempts; i++) {
        const struct attempt *attempt = &record->attempts[i];
        if (strcmp(attempt->service.s, w->service->name.s) == 0 &&
            (attempt->no < record->since || attempt->started_at.v != 0)) {
            return false;
        }
    }
    return record->attempt == record->since;
}

/* Would the list of this class pass a turn on, if it were not worth a try here? */
static bool passes_on(const struct config *config, enum failure class)
{
    const struct config_actions *actions = &config->on_failure[class];
    for (size_t i = 0; i < actions->count; i++) {
        if (actions->list[i] == ACTION_delegate) {
            return true;
        }
    }
    return false;
}

/* The circuit lets nothing start: on to a fallback, if the list of its class has that, or it waits. */
static struct next_step begin_later(struct worker *w, const struct turn_record *record,
                                    enum failure *ret_class, char **ret_pass)
{
    struct next_step step = {.kind = NEXT_hold};
    const char *to = NULL;
    *ret_class = w->circuit.class;
    if (passes_on(w->config, w->circuit.class) && (to = delegate_target(w, record)) != NULL &&
        (*ret_pass = delegate_sign(w, record, to, w->circuit.class)) != NULL) {
        step.kind = NEXT_delegate;
        step.to = to;
    }
    return step;
}

struct next_step begin_next(struct worker *w, const struct turn_record *record, bool birth,
                            enum failure *ret_class, char **ret_pass)
{
    const size_t n = record->n_attempts;
    struct all_rest rest;
    struct chances chances = {.resting = rest_look(w, &rest)};
    *ret_pass = NULL;
    if (!circuit_lets(w, birth)) {
        return begin_later(w, record, ret_class, ret_pass);
    }
    *ret_class = rest.class;
    if (!birth && !begins_series(w, record)) {
        return (struct next_step){.kind = NEXT_start, .profile = record->attempts[n - 1].profile.s};
    }
    if (chances.resting != 0) {
        chances.delegate_to = delegate_target(w, record);
    }
    struct next_step step = first_next(w->config, w->service, &chances, &rest, !birth);
    if (step.kind == NEXT_delegate &&
        (*ret_pass = delegate_sign(w, record, step.to, rest.class)) == NULL) {
        chances.delegate_to = NULL;
        step = first_next(w->config, w->service, &chances, &rest, !birth);
    }
    return step;
}

void begin_elsewhere(struct worker *w, int32_t partition, struct turn_record *take_record,
                     bool birth, const char *to, enum failure class, char *take_pass)
{
    struct attempt *attempt = turn_record_attempt(take_record, take_record->attempt);
    if (birth) {
        turn_move(w, take_record, true, TURN_queued);
        attempt = attempt_begin(w, take_record, ATTEMPT_queued, w->service->profiles[0].name.s);
    }
    attempt->has_class = true;
    attempt->class = class;
    attempt_note(attempt, w->circuit.state != CIRCUIT_closed
                              ? "not started: the circuit of the service is open"
                              : "not started: every credential profile of the service rests");
    attempt_move(take_record, attempt, ATTEMPT_delegated, wall_now());
    delegate_put(w, take_record, to, take_pass);
    (void)decide(w, partition, take_record, NULL);
}
