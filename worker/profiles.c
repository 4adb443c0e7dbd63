/*
 * What the credential profiles of a service hold: the environment that an executor gets with each. Read
 * at the start, on SIGHUP, and again by time, since secrets are rotated where they lie.
 *
 * In: worker/start.c, worker/worker.c, worker/reload.c, worker/operate.c
 * Out: worker/executor/executor.h, worker/rest.c
 */
#include "worker/profiles.h"

#include "common/base/diag.h"
#include "worker/executor/environment.h"
#include "worker/executor/executor.h"
#include "worker/internal.h"
#include "worker/rest.h"

#include <stdlib.h>

#define ENV_REREAD_MS 60000
#define ENV_REFUSED_MS 5000

static baton_code resolve(const struct config_service *service, size_t i,
                          struct executor_env **ret_env, struct baton_error *err)
{
    const struct config_executor *executor = &service->executor;
    const struct config_profile *profile = &service->profiles[i];
    return executor_env_resolve(executor->env, executor->n_env, profile->env, profile->n_env,
                                ret_env, err);
}

void profiles_free(struct executor_env **envs, size_t n)
{
    for (size_t i = 0; envs != NULL && i < n; i++) {
        executor_env_free(envs[i]);
    }
    free(envs);
}

baton_code profiles_resolve(const struct config_service *service, struct executor_env ***ret_envs,
                            struct baton_error *err)
{
    struct executor_env **envs = calloc(service->n_profiles, sizeof(struct executor_env *));
    baton_code rc = envs != NULL ? BATON_OK : baton_fail(err, BATON_E_no_memory, "out of memory");
    for (size_t i = 0; rc == BATON_OK && i < service->n_profiles; i++) {
        rc = resolve(service, i, &envs[i], err);
        if (rc != BATON_OK) {
            rc = baton_fail_context(err, rc,
                                    "profile %s of service %s: ", service->profiles[i].name.s,
                                    service->name.s);
        }
    }
    if (rc != BATON_OK) {
        profiles_free(envs, service->n_profiles);
        return rc;
    }
    *ret_envs = envs;
    return BATON_OK;
}

baton_code profiles_load(struct worker *w, struct baton_error *err)
{
    baton_code rc = profiles_resolve(w->service, &w->envs, err);
    w->envs_read = mono_now();
    return rc;
}

/* Rotated secrets are seen within a minute, sooner while one is refused, since somebody may be mending it;
 * one that cannot be read leaves the one before in use. */
struct mono_ms profiles_due(const struct worker *w)
{
    return (struct mono_ms){w->envs_read.v +
                            (rest_any_refused(w) ? ENV_REFUSED_MS : ENV_REREAD_MS)};
}

void profiles_stale(struct worker *w)
{
    w->envs_read.v = INT64_MIN / 2;
}

void profiles_reread(struct worker *w)
{
    if (mono_now().v < profiles_due(w).v) {
        return;
    }
    w->envs_read = mono_now();
    for (size_t i = 0; i < w->service->n_profiles; i++) {
        struct executor_env *fresh = NULL;
        struct baton_error err;
        if (resolve(w->service, i, &fresh, &err) == BATON_OK) {
            const bool changed = !executor_env_equal(w->envs[i], fresh);
            executor_env_free(w->envs[i]);
            w->envs[i] = fresh;
            rest_look_again(w, i, changed);
        } else {
            diag_line(DIAG_warn, "profile.not_read",
                      D_TEXT("profile", w->service->profiles[i].name.s), D_TEXT("error", err.text));
        }
    }
}
