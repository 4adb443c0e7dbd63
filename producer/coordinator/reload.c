/*
 * SIGHUP at a coordinator: the list of workflows and its private key are read again. Workflow files are
 * read at each start of a run, and a run keeps the bytes that it began with, so a list is all there is.
 * What the log, the group and its topics were opened with needs a restart, and is named: a new service, say.
 *
 * In: coordinator.c  Out: common/base/config_again.h, common/record/signer_again.h
 */
#include "producer/coordinator/internal.h"

#include "common/base/config_again.h"
#include "common/base/metrics.h"
#include "common/record/signer_again.h"

#include <stdlib.h>
#include <string.h>

/* The configuration that it was started with, with the workflows of another. */
struct reloaded {
    struct config *fresh;
    struct config view;
};

void coordinator_reloaded_free(struct reloaded *reloaded)
{
    if (reloaded != NULL) {
        config_free(reloaded->fresh);
        free(reloaded);
    }
}

static enum config_effect effect_of(const char *key, const void *arg)
{
    static const char *const restart[] = {"prefix", "log",       "lease", "keys",
                                          "trust",  "state_dir", "proof"};
    static const char *const restart_below[] = {"local.", "kafka.", "http.", "traces."};
    (void)arg;
    if (strcmp(key, "workflows") == 0) {
        return CONFIG_EFFECT_now;
    }
    for (size_t i = 0; i < sizeof(restart) / sizeof(restart[0]); i++) {
        if (strcmp(key, restart[i]) == 0) {
            return CONFIG_EFFECT_restart;
        }
    }
    for (size_t i = 0; i < sizeof(restart_below) / sizeof(restart_below[0]); i++) {
        if (strncmp(key, restart_below[i], strlen(restart_below[i])) == 0) {
            return CONFIG_EFFECT_restart;
        }
    }
    /* Which services there are and which roles they have, where a hook runs: of a service's own settings
     * its workers alone make something. */
    const char *dot = strrchr(key, '.');
    const bool services = strncmp(key, "services.", strlen("services.")) == 0;
    return services && dot != NULL && (strcmp(dot, ".roles") == 0 || strcmp(dot, ".place") == 0)
               ? CONFIG_EFFECT_restart
               : CONFIG_EFFECT_none;
}

static baton_code reload_config(struct coordinator *c, struct buf *changed, struct buf *restart,
                                struct baton_error *err)
{
    const struct config *base = c->options->config;
    const struct config *before = c->reloaded != NULL ? c->reloaded->fresh : base;
    struct config *fresh = NULL;
    baton_code rc = config_load_again(base, c->options->sets, c->options->n_sets, &fresh, err);
    if (rc != BATON_OK) {
        return rc;
    }
    struct reloaded *reloaded = calloc(1, sizeof(*reloaded));
    if (reloaded == NULL) {
        config_free(fresh);
        return baton_fail(err, BATON_E_no_memory, "out of memory");
    }
    config_differs(before, fresh, effect_of, NULL, CONFIG_EFFECT_now, changed);
    config_differs(base, fresh, effect_of, NULL, CONFIG_EFFECT_restart, restart);
    *reloaded = (struct reloaded){fresh, *base};
    reloaded->view.workflows = fresh->workflows;
    reloaded->view.n_workflows = fresh->n_workflows;
    c->config = &reloaded->view;
    coordinator_reloaded_free(c->reloaded);
    c->reloaded = reloaded;
    return BATON_OK;
}

static baton_code reload_key(struct coordinator *c, struct buf *changed, struct baton_error *err)
{
    const struct signer_again again = {
        .keys_dir = c->config->keys,
        .principal = COORDINATOR_PRINCIPAL,
        .trust = c->trust,
        .trust_dir = c->config->trust,
        .required = c->config->proof_required,
    };
    struct signer *fresh = NULL;
    const baton_code rc = signer_load_again(&again, c->signer, &fresh, err);
    if (rc != BATON_OK || fresh == NULL) {
        return rc;
    }
    signer_free(c->signer);
    c->signer = fresh;
    buf_printf(changed, "%sthe key, %s now", changed->len > 0 ? ", " : "",
               signer_key_id(c->signer).s);
    return BATON_OK;
}

void coordinator_reload(struct coordinator *c)
{
    struct buf changed = BUF_INIT;
    struct buf restart = BUF_INIT;
    struct baton_error err = {BATON_OK, ""};
    const baton_code rc = reload_config(c, &changed, &restart, &err);
    if (rc != BATON_OK) {
        config_again_tell_not("coordinator.not_reloaded", "the configuration", rc, &err);
    }
    const baton_code key = reload_key(c, &changed, &err);
    if (key != BATON_OK) {
        config_again_tell_not("coordinator.not_reloaded", "the key", key, &err);
    }
    config_again_tell_restart(&restart, "coordinator");
    if (rc == BATON_OK || changed.len > 0) {
        diag_line(
            DIAG_info, "coordinator.reloaded", D_TEXT("coordinator", c->id.s),
            D_TEXT("changed", changed.len > 0 && buf_ok(&changed) ? changed.data : "nothing"));
        metric_add(METRIC_reloads, 1);
    }
    buf_done(&changed);
    buf_done(&restart);
}
