/*
 * What the attempts of a turn took, for its next one: the budget that is left, and the session to go on in.
 * In: worker/claim.c. Out: common/record/usage.h
 */
#include "worker/took.h"

#include "common/record/receipt.h"
#include "common/record/turn_record.h"
#include "common/record/usage.h"
#include "worker/internal.h"

#include <stdio.h>
#include <string.h>

int64_t took_cost_left(const struct worker *w, const struct turn_record *record)
{
    const int64_t left = w->config->budget.max_cost_micros - turn_record_cost(record);
    return left > 0 ? left : w->config->budget.max_cost_micros;
}

bool took_all_before(const struct worker *w, const struct receipt *receipt)
{
    const int64_t max = w->config->budget.max_cost_micros;
    int replays = 0; /* until it was spent */
    for (size_t i = 0; max > 0 && i < receipt->n_passes; i++) {
        if (receipt->passes[i].cost_micros >= max) { /* costs never fall */
            return receipt->replays <= replays;
        }
        replays = receipt->passes[i].replays;
    }
    return false;
}

const char *took_session(const struct worker *w, const struct turn_record *record,
                         struct usage *ret_usage)
{
    struct usage one;
    *ret_usage = usage_none();
    if (!w->service->executor.resume) {
        return NULL;
    }
    for (size_t i = record->n_attempts; i > 0; i--) {
        const struct attempt *attempt = &record->attempts[i - 1];
        if (strcmp(attempt->service.s, w->service->name.s) != 0 ||
            !usage_parse(attempt->usage, &one) || one.session[0] == '\0' ||
            strcmp(one.agent, w->service->executor.agent) != 0) {
            continue;
        }
        if (ret_usage->session[0] == '\0') {
            snprintf(ret_usage->session, sizeof(ret_usage->session), "%s", one.session);
        }
        if (strcmp(one.session, ret_usage->session) == 0) {
            usage_add(ret_usage, &one);
        }
    }
    return ret_usage->session[0] != '\0' ? ret_usage->session : NULL;
}
