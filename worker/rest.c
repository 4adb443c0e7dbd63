/*
 * Credential profiles that rest: one that the provider has refused is not taken for the first
 * attempt of other turns, nor by `rotate`, for a while. Kept in this worker's memory: a restart, a
 * success, and a changed secret try it again.
 *
 * In: worker/round.c (ends), worker/start.c (secrets)  Out: worker/begin.c, worker/settle.c
 */
#include "worker/internal.h"

#include "common/base/check.h"

#include <string.h>

#define NAMED_MAX_MS (24LL * 3600 * 1000) /* a provider that names a longer time is asked again */

/* How long a profile rests after such a failure; 0: it does not. A refusal of one request
 * (access_denied) says nothing about others, and a provider that asks to wait without naming a time
 * is waited for by the turn alone. */
static int64_t rest_ms_of(const struct config *config, enum failure class, int64_t retry_after_ms,
                          bool *ret_named)
{
    *ret_named = false;
    if (class != FAILURE_auth && class != FAILURE_quota && class != FAILURE_rate_limited) {
        return 0;
    }
    if (class != FAILURE_auth && retry_after_ms > 0) {
        *ret_named = true;
        return retry_after_ms < NAMED_MAX_MS ? retry_after_ms : NAMED_MAX_MS;
    }
    return class == FAILURE_rate_limited ? 0 : config->retry.rest_ms;
}

static size_t index_of(const struct worker *w, const char *profile)
{
    for (size_t i = 0; i < w->service->n_profiles; i++) {
        if (strcmp(w->service->profiles[i].name.s, profile) == 0) {
            return i;
        }
    }
    return w->service->n_profiles;
}

void rest_over(struct worker *w, size_t profile)
{
    BATON_PRE(profile < LIMIT_PROFILES);
    w->rests[profile].until.v = 0;
}

void rest_note(struct worker *w, const char *profile, bool failed, enum failure class,
               int64_t retry_after_ms)
{
    bool named = false;
    const size_t at = index_of(w, profile);
    if (at == w->service->n_profiles) {
        return; /* the configuration has it no more */
    }
    if (!failed) {
        rest_over(w, at);
        return;
    }
    const int64_t ms = rest_ms_of(w->config, class, retry_after_ms, &named);
    if (ms > 0) {
        const struct wall_ms since = wall_now();
        w->rests[at] = (struct rest){{mono_now().v + ms}, class, named, since, {since.v + ms}};
        diag_line(DIAG_warn, "profile.rests", D_TEXT("service", w->service->name.s),
                  D_TEXT("profile", profile), D_TEXT("class", failure_word(class)),
                  D_INT("ms", ms));
    }
}

unsigned rest_look(const struct worker *w, struct all_rest *ret_rest)
{
    const struct mono_ms now = mono_now();
    unsigned resting = 0;
    size_t first = 0;
    for (size_t i = 0; i < w->service->n_profiles; i++) {
        if (w->rests[i].until.v > now.v) {
            resting |= 1u << i;
        }
        if (w->rests[i].until.v < w->rests[first].until.v) {
            first = i;
        }
    }
    *ret_rest = (struct all_rest){.class = w->rests[first].class,
                                  .wait_ms = w->rests[first].until.v - now.v,
                                  .named = w->rests[first].named,
                                  .profile = w->service->profiles[first].name.s};
    return resting;
}
