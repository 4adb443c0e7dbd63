/*
 * What `baton doctor` says of trust, keys and proofs.
 * In: deploy/cmd_doctor.c. Out: common/record/trust.h, common/record/keys.h, producer/identity.h
 */
#include "deploy/doctor.h"

#include "common/base/safe_file.h"
#include "common/record/keyfile.h"
#include "common/record/keys.h"
#include "common/record/trust.h"
#include "producer/identity.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void doctor_check_trust(struct doctor *d)
{
    struct trust *trust = NULL;
    struct buf findings = BUF_INIT;
    struct baton_error err = {BATON_OK, ""};
    baton_code rc = trust_load(d->config->trust, &trust, &findings, &err);
    if (rc == BATON_OK) {
        doctor_found(d, LEVEL_ok, BATON_OK, MEND_NONE, NULL, "%s, fleet %s", d->config->trust,
                     trust_fleet(trust));
    } else if (findings.len > 0) {
        doctor_found_lines(d, LEVEL_error, rc, MEND_COMMAND("baton keys list"), &findings);
    } else {
        doctor_found(d, d->config->proof_required ? LEVEL_error : LEVEL_warn, rc,
                     rc == BATON_E_key_unsafe ? MEND_SAID : MEND_COMMAND("baton keys apply"), NULL,
                     "%s", err.text);
    }
    trust_free(trust);
    buf_done(&findings);
}

/* The private key of one principal: may it be used, is it here? True: both. */
static bool check_private(struct doctor *d, const char *name, const char *what)
{
    char path[4096];
    char mend[160];
    struct key_id id;
    bool encrypted = false;
    struct baton_error err = {BATON_OK, ""};
    baton_code rc = BATON_E_key_not_found;
    int n = snprintf(path, sizeof(path), "%s/%s.pem", d->config->keys, name);
    if (n > 0 && (size_t)n < sizeof(path)) {
        rc = keyfile_private_id(path, &id, &encrypted, &err);
    }
    if (rc == BATON_E_key_not_found) {
        snprintf(mend, sizeof(mend), "baton keys generate %s", name);
        doctor_found(d, LEVEL_warn, BATON_OK, (struct mend){mend, "if this is the host for it"},
                     NULL, "%s has no private key here: %s", name, what);
    } else if (rc != BATON_OK) {
        doctor_found(d, LEVEL_error, rc, MEND_SAID, NULL, "%s", err.text);
    }
    return rc == BATON_OK;
}

/* Is the key that is here one that the others take? */
static bool check_public(struct doctor *d, const struct trust *trust, const char *name)
{
    char path[4096];
    char mend[160];
    struct key_id id;
    bool encrypted = false;
    struct baton_error err = {BATON_OK, ""};
    int n = snprintf(path, sizeof(path), "%s/%s.pem", d->config->keys, name);
    if (n <= 0 || (size_t)n >= sizeof(path) ||
        keyfile_private_id(path, &id, &encrypted, &err) != BATON_OK ||
        trust_key_find(trust, id.s) != NULL) {
        return true;
    }
    snprintf(mend, sizeof(mend), "baton keys rotate %s", name);
    doctor_found(d, LEVEL_error, BATON_E_unauthenticated,
                 (struct mend){mend, "and trust/ to every host, as it says"},
                 "what it signs is taken by nobody", "the key %s of %s is %s", id.s, name,
                 trust_revokes(trust, id.s) ? "revoked" : "not in the trust folder");
    return false;
}

/* What this host needs to publish and to run workers. */
static bool check_private_all(struct doctor *d)
{
    char identity[ID_MAX + 1];
    struct baton_error err = {BATON_OK, ""};
    struct trust *trust = NULL;
    struct buf ignored = BUF_INIT; /* told above */
    baton_code rc = safe_folder_check(d->config->keys, SAFE_secret, &err);
    if (rc == BATON_OK && access(d->config->keys, X_OK) != 0) { /* once, and not for each key */
        rc = baton_fail(&err, BATON_E_key_unsafe,
                        "cannot look into %s: %s; run this as the user whose folder it is",
                        d->config->keys, strerror(errno));
    }
    if (rc == BATON_OK) {
        rc = identity_name(d->config, identity, &err);
    }
    if (rc != BATON_OK) {
        doctor_found(d, LEVEL_error, rc, MEND_SAID, NULL, "%s", err.text);
        return false;
    }
    const bool known = trust_load(d->config->trust, &trust, &ignored, &err) == BATON_OK;
    bool whole = check_private(d, identity, "nothing can be published or operated") &&
                 (!known || check_public(d, trust, identity));
    for (size_t i = 0; i < d->config->n_services; i++) {
        const char *name = d->config->services[i].name.s;
        whole = check_private(d, name, "no worker of it can run") &&
                (!known || check_public(d, trust, name)) && whole;
    }
    trust_free(trust);
    buf_done(&ignored);
    return whole;
}

void doctor_check_keys(struct doctor *d)
{
    bool whole = true;
    struct keys_plan plan = {NULL, 0};
    struct baton_error err = {BATON_OK, ""};
    baton_code rc = keys_plan_config(d->config, &plan, &err);
    if (rc == BATON_E_unauthenticated && d->config->proof_required && !check_private_all(d)) {
        whole = false; /* a revoked key, named */
    } else if (rc != BATON_OK) {
        doctor_found(d, LEVEL_error, rc, MEND_SAID, NULL, "%s", err.text);
        whole = false;
    } else if (plan.count == 0 && d->config->proof_required) {
        whole = check_private_all(d);
    }
    if (whole && plan.count == 0) {
        const bool named = d->config->identity.s[0] != '\0';
        doctor_found(d, LEVEL_ok, BATON_OK, MEND_NONE, NULL,
                     "%s has the private keys of %s%severy service", d->config->keys,
                     d->config->identity.s, named ? " and of " : "");
    }
    /* On a host of a fleet only some of the keys belong: what is lacking is no error. */
    for (size_t i = 0; i < plan.count; i++) {
        doctor_found(d, LEVEL_warn, BATON_OK, MEND_COMMAND("baton keys apply"), NULL, "lacking: %s",
                     plan.steps[i].text);
    }
    keys_plan_done(&plan);
}

void doctor_check_proof(struct doctor *d)
{
    if (d->config->proof_required) {
        doctor_found(d, LEVEL_ok, BATON_OK, MEND_NONE, NULL, "required: every record is verified");
    } else {
        doctor_found(d, LEVEL_warn, BATON_OK,
                     MEND_HINT("set `proof: required` in the configuration"), NULL,
                     "proof is off: records are not verified, whoever can write to the log can "
                     "create turns");
    }
}
