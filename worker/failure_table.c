/*
 * What follows a failure: the first possible action of the class's list, as data; and how a first
 * attempt begins while credential profiles rest.
 * Pure: no clock, no store, no log; what can be had and the draw of the jitter are given.
 *
 * In: worker/settle.c, worker/begin.c
 */
#include "worker/failure_table.h"

#include "common/base/backoff.h"
#include "common/base/check.h"
#include "common/record/turn_record.h"
#include "worker/circuit.h"

#include <string.h>

/* What the present series of tries at this service has used up. */
struct series {
    int retries;         /* provider failures that were followed by a try with the same profile */
    int crashes;         /* the executor's own, that were followed by any try */
    const char *profile; /* of the newest attempt */
};

/* Did the provider say no to it? One that never started did not get as far, and one that only tried
 * whether the provider is back was a try for all. */
static bool refused(const struct attempt *attempt)
{
    return attempt->has_class && failure_counts_in(attempt->class) == COUNTER_failures &&
           attempt->started_at.v != 0 && !circuit_uncounted(attempt, attempt->class);
}

static struct series series_of(const struct config_service *service,
                               const struct turn_record *record)
{
    struct series series = {.profile = service->profiles[0].name.s};
    const struct attempt *before = NULL;
    for (size_t i = 0; i < record->n_attempts; i++) {
        const struct attempt *attempt = &record->attempts[i];
        if (attempt->no < record->since || strcmp(attempt->service.s, service->name.s) != 0) {
            continue;
        }
        if (before != NULL && refused(before) &&
            strcmp(before->profile.s, attempt->profile.s) == 0) {
            series.retries++; /* the other profile would have been a rotation */
        }
        if (before != NULL && before->has_class && before->class == FAILURE_crash &&
            before->started_at.v != 0) {
            series.crashes++;
        }
        before = attempt;
        series.profile = attempt->profile.s;
    }
    return series;
}

static bool tried(const struct turn_record *record, const char *profile)
{
    for (size_t i = 0; i < record->n_tried; i++) {
        if (strcmp(record->tried[i].s, profile) == 0) {
            return true;
        }
    }
    return false;
}

/* The next profile in the order of the configuration that this series has not had and that does not
 * rest, or NULL. */
static const char *next_profile(const struct config_service *service,
                                const struct turn_record *record, unsigned resting, const char *now)
{
    for (size_t i = 0; i < service->n_profiles; i++) {
        const char *name = service->profiles[i].name.s;
        if (strcmp(name, now) != 0 && !tried(record, name) && (resting & (1u << i)) == 0) {
            return name;
        }
    }
    return NULL;
}

/* How often this service has tried again for that. Attempts that somebody else ended, or that ended with
 * their worker, say nothing about it (-1): the turn's budget alone bounds them. */
static int retries_for(const struct series *series, enum failure class)
{
    if (failure_counts_in(class) != COUNTER_losses) {
        return series->retries;
    }
    return class == FAILURE_crash ? series->crashes : -1;
}

static bool budget_left(const struct config *config, const struct turn_record *record,
                        baton_code *ret_code)
{
    if (record->losses >= config->budget.losses) {
        *ret_code = BATON_E_worker_killed;
        return false;
    }
    if (config->budget.max_cost_micros > 0 &&
        turn_record_cost(record) >= config->budget.max_cost_micros) {
        *ret_code = BATON_E_cost_exhausted;
        return false;
    }
    if (record->failures >= config->budget.failures ||
        record->attempt - record->probes >= config->budget.attempts) {
        *ret_code = BATON_E_attempts_exhausted;
        return false;
    }
    return true;
}

static baton_code park_code(enum failure class)
{
    if (class == FAILURE_no_verdict) {
        return BATON_E_no_verdict;
    }
    return class == FAILURE_readonly_violated ? BATON_E_readonly_violated : BATON_E_executor_failed;
}

struct next_step failure_next(const struct config *config, const struct config_service *service,
                              const struct turn_record *record, enum failure class,
                              int64_t retry_after_ms, const struct chances *chances, double draw)
{
    const struct series series = series_of(service, record);
    const struct config_actions *actions = &config->on_failure[class];
    const struct backoff backoff = {config->retry.first_ms, config->retry.factor,
                                    config->retry.max_ms, config->retry.jitter};
    const bool loss = failure_counts_in(class) == COUNTER_losses;
    struct next_step step = {
        .kind = NEXT_park, .profile = series.profile, .code = park_code(class)};

    if (!budget_left(config, record, &step.code)) {
        return step;
    }
    for (size_t i = 0; i < actions->count; i++) {
        const char *profile;
        switch (actions->list[i]) {
        case ACTION_retry:
            if (retry_after_ms > config->retry.max_wait_ms ||
                retries_for(&series, class) >= config->retry.each_service) {
                break;
            }
            step.kind = NEXT_retry;
            if (class != FAILURE_lost) { /* nobody refused anything: go on at once */
                step.delay_ms = backoff_delay_drawn_ms(
                    &backoff, loss ? record->losses : series.retries + 1, retry_after_ms, draw);
            }
            return step;
        case ACTION_rotate:
            profile = next_profile(service, record, chances->resting, series.profile);
            if (profile == NULL || record->n_tried >= TURN_TRIED_MAX) {
                break;
            }
            step.kind = NEXT_rotate;
            step.profile = profile;
            return step;
        case ACTION_delegate:
            if (chances->delegate_to == NULL) {
                break;
            }
            step.kind = NEXT_delegate;
            step.to = chances->delegate_to;
            return step;
        case ACTION_park:
        case ACTION_COUNT:
            return step;
        }
    }
    return step;
}

struct next_step uncounted_next(const struct config *config, const struct turn_record *record,
                                enum failure class, double draw)
{
    const struct backoff backoff = {config->retry.first_ms, config->retry.factor,
                                    config->retry.max_ms, config->retry.jitter};
    const struct attempt *newest = &record->attempts[record->n_attempts - 1];
    struct next_step step = {.kind = NEXT_retry, .profile = newest->profile.s};
    int in_a_row = 0;

    if (record->attempt - record->probes >= config->budget.attempts) {
        step.kind = NEXT_park;
        step.code = BATON_E_attempts_exhausted;
    } else if (class != FAILURE_killed && class != FAILURE_lost) {
        for (size_t i = record->n_attempts; i > 0; i--) {
            const struct attempt *attempt = &record->attempts[i - 1];
            if (attempt->no < record->since || !attempt->has_class || attempt->started_at.v != 0) {
                break;
            }
            in_a_row++;
        }
        step.delay_ms = backoff_delay_drawn_ms(&backoff, in_a_row > 0 ? in_a_row : 1, 0, draw);
    }
    return step;
}

struct next_step first_next(const struct config *config, const struct config_service *service,
                            const struct chances *chances, const struct all_rest *rest, bool waited)
{
    for (size_t i = 0; i < service->n_profiles; i++) {
        if ((chances->resting & (1u << i)) == 0) {
            return (struct next_step){.kind = NEXT_start, .profile = service->profiles[i].name.s};
        }
    }
    const struct config_actions *actions = &config->on_failure[rest->class];
    struct next_step step = {.kind = NEXT_start, .profile = rest->profile};
    for (size_t i = 0; i < actions->count; i++) {
        switch (actions->list[i]) {
        case ACTION_retry: /* the time is known, so there is nothing to try before it */
            if (!waited && rest->named && rest->wait_ms <= config->retry.max_wait_ms) {
                step.kind = NEXT_retry;
                step.delay_ms = rest->wait_ms;
                return step;
            }
            break;
        case ACTION_delegate:
            if (chances->delegate_to != NULL) {
                step.kind = NEXT_delegate;
                step.to = chances->delegate_to;
                return step;
            }
            break;
        case ACTION_rotate:
        case ACTION_park:
        case ACTION_COUNT:
            break;
        }
    }
    return step;
}
