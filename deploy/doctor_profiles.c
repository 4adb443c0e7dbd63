/*
 * Credential profiles that were refused, for `baton doctor`.
 * In: cmd_doctor.c. Out: producer/operate.h
 */
#include "deploy/doctor_profiles.h"

#include "producer/operate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLEAR_WAIT_MS 5000

void doctor_probed_add(struct doctor_probed *probed, const struct service_id *service,
                       const struct plain_id *profile)
{
    struct doctor_worked *more = realloc(probed->list, (probed->count + 1) * sizeof(*more));
    if (more != NULL) {
        probed->list = more;
        probed->list[probed->count++] = (struct doctor_worked){*service, *profile};
    }
}

void doctor_probed_done(struct doctor_probed *probed)
{
    free(probed->list);
    *probed = (struct doctor_probed){NULL, 0};
}

static bool works(const struct doctor_probed *probed, const char *service, const char *profile)
{
    for (size_t i = 0; i < probed->count; i++) {
        if (strcmp(probed->list[i].service.s, service) == 0 &&
            strcmp(probed->list[i].profile.s, profile) == 0) {
            return true;
        }
    }
    return false;
}

/* The newest refusal of it by any worker; NULL: none. */
static const struct rest_profile *refusal(const struct service_view *view, const char *profile)
{
    const struct rest_profile *found = NULL;
    for (size_t i = 0; i < view->n_rests; i++) {
        for (size_t k = 0; k < view->rests[i].count; k++) {
            const struct rest_profile *rest = &view->rests[i].profiles[k];
            if (strcmp(rest->name.s, profile) == 0 && rest_profile_refused(rest) &&
                (found == NULL || rest->since.v > found->since.v)) {
                found = rest;
            }
        }
    }
    return found;
}

/* Says to all workers of the service that it is mended. */
static baton_code clear(struct config *config, struct log *log, const char *service,
                        const char *profile, bool *ret_answered, struct baton_error *err)
{
    struct session session = {.config = config, .log = log};
    struct control control = {.kind = CONTROL_clear, .profile = plain_id_of(profile)};
    struct operated operated = {.answered = false};
    baton_code rc = identity_open(config, &session.identity, err);
    if (rc != BATON_OK) {
        return rc;
    }
    session.has_identity = true;
    if ((rc = identity_may_operate(&session.identity, service, err)) == BATON_OK &&
        (rc = operate_service(&session, &control, service, CLEAR_WAIT_MS, &operated, err)) ==
            BATON_OK &&
        operated.answered && operated.code != BATON_OK) {
        rc = baton_fail(err, operated.code, "%s", baton_code_text(operated.code));
    }
    identity_close(&session.identity);
    *ret_answered = operated.answered;
    return rc;
}

/* Where its credential stands, for who is to mend it: "; its TOKEN is in /etc/baton/token". */
static void add_places(const struct config_profile *profile, char *text, size_t size)
{
    for (size_t i = 0; i < profile->n_env; i++) {
        const struct config_env *env = &profile->env[i];
        const size_t len = strlen(text);
        if (env->source == ENV_SOURCE_file) {
            snprintf(text + len, size - len, "; its %s is in %s", env->name, env->text);
        } else if (env->source == ENV_SOURCE_from) {
            snprintf(text + len, size - len, "; its %s is the worker's variable %s", env->name,
                     env->text);
        }
    }
}

void doctor_profiles(struct config *config, struct log *log, const struct service_view *view,
                     const struct doctor_probed *probed, doctor_agents_fn *fn, void *arg)
{
    const char *service = view->service->name.s;
    for (size_t i = 0; i < view->service->n_profiles; i++) {
        const char *profile = view->service->profiles[i].name.s;
        const struct rest_profile *rest = refusal(view, profile);
        struct baton_error err = {BATON_OK, ""};
        char mend[256];
        char text[1024];
        bool answered = false;
        if (rest == NULL) {
            continue;
        }
        snprintf(mend, sizeof(mend), "baton services clear %s --profile %s", service, profile);
        if (!works(probed, service, profile)) {
            snprintf(text, sizeof(text),
                     "%s: profile %s was refused (%s) and waits since %s to be mended and cleared",
                     service, profile, failure_word(rest->class), wall_text(rest->since).s);
            add_places(&view->service->profiles[i], text, sizeof(text));
            fn(arg, BATON_OK, mend, text);
        } else if (clear(config, log, service, profile, &answered, &err) != BATON_OK) {
            snprintf(
                text, sizeof(text),
                "%s: profile %s works and is still kept as refused, since this identity cannot "
                "clear it: %.600s",
                service, profile, err.text);
            fn(arg, BATON_OK, mend, text);
        } else {
            snprintf(
                text, sizeof(text), "%s: profile %s was refused, works, and %s", service, profile,
                answered ? "is taken again" : "is taken again as soon as a worker hears of it");
            fn(arg, BATON_OK, "", text);
        }
    }
}
