/*
 * Whom this worker believes, and the key with which others believe it: read at its start; trust again
 * once a second when its folder has changed, and when a record names a key that is not known.
 *
 * In: worker/start.c, worker/worker.c, worker/stop.c (SIGHUP), worker/claim.c, worker/operate.c
 * Out: common/record/trust.h, common/record/signer.h
 */
#include "worker/trust.h"

#include "common/base/diag.h"
#include "common/base/metrics.h"
#include "common/engine/engine.h"
#include "common/record/receipt.h"
#include "common/record/signer.h"
#include "common/record/trust.h"
#include "worker/internal.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define TRUST_TRIES 5
#define TRUST_PAUSE_NS 10000000

baton_code worker_load_keys(struct worker *w, struct baton_error *err)
{
    struct buf findings = BUF_INIT;
    const bool required = w->config->proof_required;

    process_hold_keys();
    baton_code rc = trust_load(w->config->trust, &w->trust, &findings, err);
    buf_done(&findings);
    if (rc != BATON_OK) {
        if (required) {
            return rc;
        }
        diag_line(DIAG_warn, "trust.not_read", D_CODE("code", rc), D_TEXT("error", err->text));
    }
    w->trust_read = mono_now();
    snprintf(w->fleet.s, sizeof(w->fleet.s), "%s",
             w->trust != NULL ? trust_fleet(w->trust) : w->config->prefix.s);
    rc = signer_load(w->config->keys, w->service->name.s, &w->signer, err);
    if (rc != BATON_OK && (required || rc != BATON_E_unauthenticated)) {
        return rc;
    }
    if (required && trust_revokes(w->trust, signer_key_id(w->signer).s)) {
        return baton_fail(
            err, BATON_E_unauthenticated,
            "the key %s of service %s is revoked, so nobody would believe its outcomes; "
            "`baton keys rotate %s` makes another",
            signer_key_id(w->signer).s, w->service->name.s, w->service->name.s);
    }
    metric_set(METRIC_proof_off, required ? 0 : 1);
    if (!required) {
        diag_line(
            DIAG_warn, "proof.off", D_TEXT("service", w->service->name.s),
            D_TEXT("meaning", "records are not verified: any writer of the topics is believed"));
    }
    return BATON_OK;
}

/* Somebody may be putting a principal and its key there just now: a record is not refused for that. */
static baton_code read_fresh(const struct worker *w, bool unknown, struct trust **ret_fresh,
                             struct baton_error *err)
{
    struct buf findings = BUF_INIT;
    baton_code rc = trust_load(w->config->trust, ret_fresh, &findings, err);
    for (int tries = 0; unknown && rc == BATON_E_bad_config && tries < TRUST_TRIES; tries++) {
        nanosleep(&(struct timespec){0, TRUST_PAUSE_NS}, NULL);
        buf_clear(&findings);
        rc = trust_load(w->config->trust, ret_fresh, &findings, err);
    }
    buf_done(&findings);
    return rc;
}

bool worker_reload_trust(struct worker *w, bool unknown)
{
    struct trust *fresh = NULL;
    struct baton_error err;
    const struct mono_ms now = mono_now();

    /* Looking whether the folder has changed is cheap; a folder that cannot be read is tried once a
     * second. */
    if (unknown && ((w->trust != NULL && !trust_changed(w->trust)) ||
                    (w->trust_failed && now.v - w->trust_read.v < TRUST_RELOAD_MS))) {
        return false;
    }
    w->trust_read = now;
    baton_code rc = read_fresh(w, unknown, &fresh, &err);
    if (rc == BATON_OK && strcmp(trust_fleet(fresh), w->fleet.s) != 0) {
        rc = baton_fail(&err, BATON_E_bad_config,
                        "%s: names another fleet; restart the worker for that", w->config->trust);
        trust_free(fresh);
    }
    w->trust_failed = rc != BATON_OK;
    if (rc != BATON_OK) {
        diag_limited(&w->limit, DIAG_error, "trust.not_read", D_CODE("code", rc),
                     D_TEXT("error", err.text),
                     D_TEXT("meaning", "the one read before stays in force"));
        return false;
    }
    if (w->engine != NULL) {
        engine_trust(w->engine, fresh);
    }
    trust_free(w->trust);
    w->trust = fresh;
    diag_line(DIAG_info, "trust.read", D_TEXT("folder", w->config->trust));
    return true;
}

struct receiver worker_receiver(const struct worker *w)
{
    return (struct receiver){w->trust, w->fleet.s, w->config->proof_required, w->service->name.s,
                             w->config->partitions};
}
