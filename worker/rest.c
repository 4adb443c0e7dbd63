/*
 * Credential profiles that rest: other turns do not begin with one that the provider has refused, and do
 * not rotate to it.
 *
 * After `auth` it is refused: until a person clears it (operate.c), an attempt with it succeeds (a replay,
 * or one that has nowhere else to go), or its credential is another one. That outlives the worker, by the
 * note of rest_note.c. After other classes it rests for a while, and a restart tries it again.
 *
 * In: worker/round.c (ends), worker/begin.c and worker/settle.c (which may be taken), worker/profiles.c and
 * worker/reload.c (secrets), worker/operate.c, worker/rest_note.c
 * Out: worker/executor/environment.h, common/record/signer.h
 */
#include "worker/rest.h"

#include "common/base/check.h"
#include "common/base/config.h"
#include "common/base/diag.h"
#include "common/record/proof.h"
#include "common/record/rest_note.h"
#include "common/record/signer.h"
#include "worker/agent/agent.h"
#include "worker/executor/environment.h"
#include "worker/failure_table.h"
#include "worker/internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NAMED_MAX_MS (24LL * 3600 * 1000) /* a provider that names a longer time is asked again */
#define SIGNED_IN_MAX (64 * 1024)         /* read of the file in which a program keeps its login */
#define CLEAR_BEFORE_MAX_MS (24LL * 3600 * 1000) /* so far clocks of operators may be behind */
#define MARK_KEY "~credential"                   /* no record has this key */

/* ---- is it still the same credential? ---- */

/* The file in which an agent program keeps that it has signed in. */
static struct digest signed_in(const struct worker *w)
{
    char bytes[SIGNED_IN_MAX];
    const struct config_executor *executor = &w->service->executor;
    const struct agent_program *agent =
        executor->kind == EXECUTOR_KIND_agent ? agent_find(executor->agent) : NULL;
    char path[4096];
    size_t len = 0;
    if (agent != NULL && executor->home != NULL &&
        snprintf(path, sizeof(path), "%s/%s", executor->home, agent->login) < (int)sizeof(path)) {
        const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        for (ssize_t n = 1; fd >= 0 && n > 0 && len < sizeof(bytes);) {
            n = read(fd, bytes + len, sizeof(bytes) - len);
            len += n > 0 ? (size_t)n : 0;
        }
        if (fd >= 0) {
            close(fd);
        }
    }
    struct digest digest = digest_of(bytes, len);
    explicit_bzero(bytes, len);
    return digest;
}

/* Stands in the log, so it is short, and keyed by a signature that nobody else can make. */
static struct rest_mark mark_of(const struct worker *w, size_t profile)
{
    struct digest parts[2];
    struct rest_mark mark = {""};
    struct proof_text proof = {""};
    struct baton_error err;
    executor_env_digest(w->envs[profile], &parts[0]);
    parts[1] = signed_in(w);
    struct digest digest = digest_of(parts, sizeof(parts));
    if (w->signer != NULL) {
        if (signer_sign(w->signer, w->fleet.s, PROOF_outcome, MARK_KEY, strlen(MARK_KEY), NULL,
                        &digest, &proof, &err) != BATON_OK) {
            return mark;
        }
        digest = digest_of(proof.s, strlen(proof.s));
    }
    snprintf(mark.s, sizeof(mark.s), "%02x%02x", digest.b[0], digest.b[1]);
    explicit_bzero(&proof, sizeof(proof));
    return mark;
}

/* ---- the state ---- */

/* How long a profile rests after such a failure; 0: it does not. A refusal of one request
 * (access_denied) says nothing about others, and a provider that asks to wait without naming a time
 * is waited for by the turn alone. */
static int64_t rest_ms_of(const struct config *config, enum failure class, int64_t retry_after_ms,
                          bool *ret_named)
{
    *ret_named = false;
    if (class == FAILURE_auth) {
        return config->retry.rest_ms > 0 ? REST_NO_END : 0;
    }
    if (class != FAILURE_quota && class != FAILURE_rate_limited) {
        return 0;
    }
    if (retry_after_ms > 0) {
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

static void tell(const struct worker *w, const char *event, size_t profile, const char *why)
{
    diag_line(DIAG_info, event, D_TEXT("service", w->service->name.s),
              D_TEXT("profile", w->service->profiles[profile].name.s), D_TEXT("why", why));
}

void rest_over(struct worker *w, size_t profile, const char *why)
{
    BATON_PRE(profile < LIMIT_PROFILES);
    struct rest *rest = &w->rests[profile];
    if (rest->until.v == REST_NO_END) {
        tell(w, "profile.cleared", profile, why);
    }
    rest->until.v = 0;
}

static void refuse(struct worker *w, size_t profile, enum failure class, struct wall_ms since)
{
    struct rest *rest = &w->rests[profile];
    const struct rest_mark mark = mark_of(w, profile);
    const bool again = rest->until.v == REST_NO_END;
    rest->until.v = REST_NO_END;
    rest->class = class;
    rest->named = false;
    rest->mark = mark;
    rest->until_wall.v = 0;
    if (!again) {
        rest->since = since;
    }
}

void rest_note(struct worker *w, const char *profile, const struct recorded_end *end)
{
    bool named = false;
    const size_t at = index_of(w, profile);
    if (at == w->service->n_profiles) {
        return; /* the configuration has it no more */
    }
    struct rest *rest = &w->rests[at];
    const struct wall_ms now = wall_now();
    rest->tried = mono_now();
    if (!end->failed) {
        rest->worked = now;
        rest_over(w, at, "an attempt with it succeeded");
        return;
    }
    const int64_t ms = rest_ms_of(w->config, end->class, end->retry_after_ms, &named);
    if (ms == 0 || end->started_at.v < rest->changed.v) {
        return; /* what was refused was another credential than the present one */
    }
    if (ms == REST_NO_END) {
        refuse(w, at, end->class, now);
        diag_line(DIAG_warn, "profile.refused", D_TEXT("service", w->service->name.s),
                  D_TEXT("profile", profile), D_TEXT("class", failure_word(end->class)),
                  D_TEXT("mend", "mend its credential, then baton services clear"));
        return;
    }
    if (rest->until.v == REST_NO_END) {
        return; /* it waits to be cleared; that its provider is busy besides is no reason to try it */
    }
    rest->until.v = rest->tried.v + ms;
    rest->class = end->class;
    rest->named = named;
    rest->since = now;
    rest->until_wall.v = now.v + ms;
    diag_line(DIAG_warn, "profile.rests", D_TEXT("service", w->service->name.s),
              D_TEXT("profile", profile), D_TEXT("class", failure_word(end->class)),
              D_INT("ms", ms));
}

void rest_adopt(struct worker *w, const struct rest_profile *told)
{
    const size_t at = index_of(w, told->name.s);
    if (!rest_profile_refused(told) || at == w->service->n_profiles ||
        w->config->retry.rest_ms == 0) {
        return;
    }
    struct rest *rest = &w->rests[at];
    if (rest->until.v == REST_NO_END || rest->worked.v >= told->since.v ||
        strcmp(mark_of(w, at).s, told->mark.s) != 0) {
        return; /* known; or it has worked here since; or the credential is another one by now */
    }
    refuse(w, at, told->class, told->since);
    tell(w, "profile.refused_before", at, "told by the owner of before");
}

void rest_clear(struct worker *w, const char *profile, struct wall_ms at)
{
    for (size_t i = 0; i < w->service->n_profiles; i++) {
        const bool old =
            w->rests[i].until.v == REST_NO_END && at.v < w->rests[i].since.v - CLEAR_BEFORE_MAX_MS;
        if (!old && (profile[0] == '\0' || strcmp(profile, w->service->profiles[i].name.s) == 0)) {
            rest_over(w, i, "cleared by an operator");
        }
    }
}

void rest_look_again(struct worker *w, size_t profile, bool env_changed)
{
    struct rest *rest = &w->rests[profile];
    const bool refused = rest->until.v == REST_NO_END;
    if (env_changed || (refused && strcmp(mark_of(w, profile).s, rest->mark.s) != 0)) {
        rest->changed = wall_now();
        rest_over(w, profile, "its credential has changed");
    }
}

void rest_mark_anew(struct worker *w)
{
    for (size_t i = 0; i < w->service->n_profiles; i++) {
        if (w->rests[i].until.v == REST_NO_END) {
            w->rests[i].mark = mark_of(w, i);
        }
    }
}

bool rest_any_refused(const struct worker *w)
{
    for (size_t i = 0; i < w->service->n_profiles; i++) {
        if (w->rests[i].until.v == REST_NO_END) {
            return true;
        }
    }
    return false;
}

/* Which of two is to be tried first: that which is up first, then that which was tried longest ago. */
static bool before(const struct rest *a, const struct rest *b)
{
    return a->until.v != b->until.v ? a->until.v < b->until.v : a->tried.v < b->tried.v;
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
        if (before(&w->rests[i], &w->rests[first])) {
            first = i;
        }
    }
    *ret_rest = (struct all_rest){.class = w->rests[first].class,
                                  .wait_ms = w->rests[first].until.v - now.v,
                                  .named = w->rests[first].named,
                                  .profile = w->service->profiles[first].name.s};
    return resting;
}
