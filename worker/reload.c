/*
 * SIGHUP: configuration, secrets of profiles, key and trust are read again while turns run.
 *
 * What holds from then on: budgets, retry, circuit, on_failure, read_only of roles; of this service
 * deadline, heartbeat, grace, place, profiles and the environment of its executor; its private key. An
 * attempt keeps what it started with: executor_start has copied its job, and shares its environment.
 * What the log, the pool of executors or the group were opened with needs a restart, and is named.
 *
 * Threads: the configuration is looked at by the engine's thread alone (log, pool, leases and listener
 * have copied what they need), so another one takes its place between two rounds, when no claim waits
 * for its start. The key is shared with the leases' thread, which takes the new one under its lock.
 *
 * In: worker/stop.c (asked), worker/round.c (due)  Out: common/base/config_again.h,
 * common/record/signer_again.h, worker/rest.c, worker/lease/lease.c
 */
#include "worker/reload.h"

#include "common/base/config.h"
#include "common/base/config_again.h"
#include "common/base/diag.h"
#include "common/base/metrics.h"
#include "common/record/signer.h"
#include "common/record/signer_again.h"
#include "worker/executor/environment.h"
#include "worker/internal.h"
#include "worker/lease/lease.h"
#include "worker/profiles.h"
#include "worker/rest.h"

#include <stdlib.h>
#include <string.h>

/* A configuration in force that is made of two: what may change of `fresh`, the rest of the one that
 * the worker was started with, which outlives it. */
struct reloaded {
    struct config *fresh;
    struct config view;
    struct config_service *services; /* the view's */
};

void reloaded_free(struct reloaded *reloaded)
{
    if (reloaded != NULL) {
        config_free(reloaded->fresh);
        free(reloaded->services);
        free(reloaded);
    }
}

/* ---- what a key's change means here ---- */

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static enum config_effect effect_of_service(const char *key)
{
    static const char *const now[] = {"deadline", "heartbeat", "grace", "place", "profiles"};
    for (size_t i = 0; i < sizeof(now) / sizeof(now[0]); i++) {
        if (strcmp(key, now[i]) == 0) {
            return CONFIG_EFFECT_now;
        }
    }
    return CONFIG_EFFECT_restart;
}

static enum config_effect effect_of(const char *key, const void *arg)
{
    static const char *const now[] = {"budget.", "retry.", "circuit.", "on_failure."};
    static const char *const none[] = {"identity", "workflows", "version"};
    const char *service = arg;
    const size_t len = strlen(service);
    for (size_t i = 0; i < sizeof(now) / sizeof(now[0]); i++) {
        if (begins(key, now[i])) {
            return CONFIG_EFFECT_now;
        }
    }
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        if (strcmp(key, none[i]) == 0) {
            return CONFIG_EFFECT_none;
        }
    }
    if (begins(key, "roles.")) {
        return strstr(key, ".read_only") != NULL ? CONFIG_EFFECT_now : CONFIG_EFFECT_restart;
    }
    if (!begins(key, "services.")) {
        return CONFIG_EFFECT_restart;
    }
    key += strlen("services.");
    return begins(key, service) && key[len] == '.' ? effect_of_service(key + len + 1)
                                                   : CONFIG_EFFECT_none;
}

/* ---- the view ---- */

/* fresh belongs to what is returned; with NULL, out of memory, it stays the caller's. */
static struct reloaded *view_of(const struct config *base, struct config *fresh,
                                const struct config_service *mine)
{
    struct reloaded *reloaded = calloc(1, sizeof(*reloaded));
    struct config_service *services = calloc(base->n_services + 1, sizeof(*services));
    if (reloaded == NULL || services == NULL) {
        free(reloaded);
        free(services);
        return NULL;
    }
    *reloaded = (struct reloaded){fresh, *base, services};
    struct config *view = &reloaded->view;
    view->budget = fresh->budget;
    view->retry = fresh->retry;
    view->circuit = fresh->circuit;
    memcpy(view->on_failure, fresh->on_failure, sizeof(view->on_failure));
    for (int role = 0; role < ROLE_COUNT; role++) {
        view->roles[role].read_only = fresh->roles[role].read_only;
    }
    for (size_t i = 0; i < base->n_services; i++) {
        struct config_service *one = &services[i];
        *one = base->services[i];
        if (strcmp(one->name.s, mine->name.s) == 0) {
            one->deadline_ms = mine->deadline_ms;
            one->heartbeat_ms = mine->heartbeat_ms;
            one->grace_ms = mine->grace_ms;
            one->place = mine->place;
            one->profiles = mine->profiles;
            one->n_profiles = mine->n_profiles;
            one->executor.env = mine->executor.env;
            one->executor.n_env = mine->executor.n_env;
        }
    }
    view->services = services;
    return reloaded;
}

/* ---- profiles ---- */

static size_t profile_at(const struct config_service *service, const char *name)
{
    size_t i = 0;
    while (i < service->n_profiles && strcmp(service->profiles[i].name.s, name) != 0) {
        i++;
    }
    return i;
}

/* Each profile keeps, by its name, whether and why it rests; one whose credential is another one does
 * not. take_envs takes the place of w->envs. */
static void switch_profiles(struct worker *w, const struct config_service *to,
                            struct executor_env **take_envs, struct buf *changed)
{
    const struct config_service *from = w->service;
    struct rest rests[LIMIT_PROFILES] = {{.until = {0}}};
    bool other[LIMIT_PROFILES] = {false};
    for (size_t i = 0; i < to->n_profiles; i++) {
        const size_t at = profile_at(from, to->profiles[i].name.s);
        if (at < from->n_profiles) {
            rests[i] = w->rests[at];
            other[i] = !executor_env_equal(w->envs[at], take_envs[i]);
        }
        if (other[i]) {
            buf_printf(changed, "%scredential of profile %s", changed->len > 0 ? ", " : "",
                       to->profiles[i].name.s);
        }
    }
    profiles_free(w->envs, from->n_profiles);
    w->envs = take_envs;
    w->envs_read = mono_now();
    memcpy(w->rests, rests, sizeof(rests));
    w->service = to;
    for (size_t i = 0; i < to->n_profiles; i++) {
        rest_look_again(w, i, other[i]);
    }
}

/* ---- configuration ---- */

static baton_code reload_config(struct worker *w, struct buf *changed, struct buf *restart,
                                struct baton_error *err)
{
    const struct config *base = w->options->config;
    const struct config *before = w->reloaded != NULL ? w->reloaded->fresh : base;
    const struct config_service *mine = NULL;
    struct executor_env **envs = NULL;
    struct config *fresh = NULL;
    const char *name = w->service->name.s;
    baton_code rc = config_load_again(base, w->options->sets, w->options->n_sets, &fresh, err);
    if (rc != BATON_OK) {
        return rc;
    }
    if ((rc = config_service_get(fresh, name, &mine, err)) != BATON_OK ||
        (rc = profiles_resolve(mine, &envs, err)) != BATON_OK) {
        config_free(fresh);
        return rc;
    }
    struct reloaded *reloaded = view_of(base, fresh, mine);
    if (reloaded == NULL) {
        profiles_free(envs, mine->n_profiles); /* first: mine is in fresh */
        config_free(fresh);
        return baton_fail(err, BATON_E_no_memory, "out of memory");
    }
    config_differs(before, fresh, effect_of, name, CONFIG_EFFECT_now, changed);
    config_differs(base, fresh, effect_of, name, CONFIG_EFFECT_restart, restart);
    const struct config_service *to = config_service_find(&reloaded->view, name);
    switch_profiles(w, to, envs, changed);
    w->config = &reloaded->view;
    reloaded_free(w->reloaded);
    w->reloaded = reloaded;
    return BATON_OK;
}

/* ---- the key ---- */

static baton_code reload_key(struct worker *w, struct buf *changed, struct baton_error *err)
{
    const struct signer_again again = {
        .keys_dir = w->config->keys,
        .principal = w->service->name.s,
        .trust = w->trust,
        .trust_dir = w->config->trust,
        .required = w->config->proof_required,
    };
    struct signer *fresh = NULL;
    const baton_code rc = signer_load_again(&again, w->signer, &fresh, err);
    if (rc != BATON_OK || fresh == NULL) {
        return rc;
    }
    leases_sign(w->leases, fresh);
    signer_free(w->signer);
    w->signer = fresh;
    rest_mark_anew(w); /* what is noted of refused credentials was made with the old one */
    buf_printf(changed, "%sthe key, %s now", changed->len > 0 ? ", " : "",
               signer_key_id(w->signer).s);
    return BATON_OK;
}

/* ---- all of it ---- */

void worker_reload_due(struct worker *w)
{
    struct buf changed = BUF_INIT;
    struct buf restart = BUF_INIT;
    struct baton_error err = {BATON_OK, ""};
    if (!w->reload_asked) {
        return;
    }
    w->reload_asked = false;
    baton_code rc = reload_config(w, &changed, &restart, &err);
    if (rc != BATON_OK) {
        config_again_tell_not("worker.not_reloaded", "the configuration", rc, &err);
    }
    const baton_code key = reload_key(w, &changed, &err);
    if (key != BATON_OK) {
        config_again_tell_not("worker.not_reloaded", "the key", key, &err);
    }
    config_again_tell_restart(&restart, "worker");
    if (rc == BATON_OK || changed.len > 0) {
        diag_line(
            DIAG_info, "worker.reloaded", D_TEXT("service", w->service->name.s),
            D_TEXT("worker", w->id.s),
            D_TEXT("changed", changed.len > 0 && buf_ok(&changed) ? changed.data : "nothing"));
        metric_add(METRIC_reloads, 1);
    }
    buf_done(&changed);
    buf_done(&restart);
}
