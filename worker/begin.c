/*
 * How an attempt begins while credential profiles rest: with one that does not, later, or at another
 * service without a try here.
 *
 * In: worker/claim.c  Out: worker/rest.c, worker/failure_table.c, worker/delegate.c
 */
#include "worker/internal.h"

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

struct next_step begin_next(struct worker *w, const struct turn_record *record, bool birth,
                            enum failure *ret_class, char **ret_pass)
{
    const size_t n = record->n_attempts;
    struct all_rest rest;
    struct chances chances = {.resting = rest_look(w, &rest)};
    *ret_pass = NULL;
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
    attempt_note(attempt, "not started: every credential profile of the service rests");
    attempt_move(take_record, attempt, ATTEMPT_delegated, wall_now());
    delegate_put(w, take_record, to, take_pass);
    (void)decide(w, partition, take_record, NULL);
}
