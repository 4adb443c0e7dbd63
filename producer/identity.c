/* Loads the identity. Called by session.c (commands), publish.c (embedding programs) and
 * worker/bench/setup.c. */
#include "producer/identity.h"

#include "common/base/text.h"

#include <ctype.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static baton_code mode_check(struct baton_error *err)
{
    const char *mode = getenv("BATON_MODE");
    if (mode == NULL || strcmp(mode, "attended") == 0 || strcmp(mode, "unattended") == 0) {
        return BATON_OK;
    }
    return baton_fail(err, BATON_E_bad_mode,
                      "BATON_MODE is '%s'; it may be attended, unattended, or not set",
                      text_quote_of(mode).s);
}

baton_code identity_name(const struct config *config, char ret_name[ID_MAX + 1],
                         struct baton_error *err)
{
    struct passwd entry;
    struct passwd *found = NULL;
    char memory[4096];
    if (config->identity.s[0] != '\0') {
        snprintf(ret_name, ID_MAX + 1, "%s", config->identity.s);
        return BATON_OK;
    }
    if (getpwuid_r(geteuid(), &entry, memory, sizeof(memory), &found) != 0 || found == NULL) {
        return baton_fail(err, BATON_E_bad_config,
                          "user %ld has no login name: set `identity:` in the configuration",
                          (long)geteuid());
    }
    char name[ID_MAX + 1] = "";
    size_t len = 0;
    for (const char *at = found->pw_name; *at != '\0' && len < ID_MAX; at++) {
        name[len++] = (char)tolower((unsigned char)*at);
    }
    if (!plain_id_valid(name, len)) {
        return baton_fail(err, BATON_E_bad_config,
                          "the login name '%s' is no id [a-z0-9._-]: set `identity:` in the "
                          "configuration",
                          text_quote_of(found->pw_name).s);
    }
    memcpy(ret_name, name, sizeof(name));
    return BATON_OK;
}

static baton_code load_trust(const struct config *config, struct identity *identity,
                             struct baton_error *err)
{
    struct baton_error why = {BATON_OK, ""};
    baton_code rc = trust_load(config->trust, &identity->trust, NULL, &why);
    if (rc == BATON_OK) {
        snprintf(identity->fleet, sizeof(identity->fleet), "%s", trust_fleet(identity->trust));
        identity->principal = trust_principal_find(identity->trust, identity->name);
        return BATON_OK;
    }
    if (config->proof_required || rc == BATON_E_key_unsafe) {
        return baton_fail(err, rc, "%s", why.text);
    }
    /* Without proofs there need be no folder: the prefix stands for the fleet. */
    snprintf(identity->fleet, sizeof(identity->fleet), "%s", config->prefix.s);
    return BATON_OK;
}

/* What this key signs would only be rejected by every worker: said before anything is written. */
static baton_code check_key(const struct config *config, const struct identity *identity,
                            struct baton_error *err)
{
    if (!config->proof_required || identity->signer == NULL) {
        return BATON_OK;
    }
    struct key_id id = signer_key_id(identity->signer);
    if (trust_revokes(identity->trust, id.s)) {
        return baton_fail(err, BATON_E_unauthenticated,
                          "the key %s of %s is revoked; `baton keys rotate %s` makes another", id.s,
                          identity->name, identity->name);
    }
    return BATON_OK;
}

baton_code identity_open(const struct config *config, struct identity *ret_identity,
                         struct baton_error *err)
{
    struct identity identity = {.required = config->proof_required};
    baton_code rc = mode_check(err);
    if (rc == BATON_OK) {
        process_hold_keys();
        rc = identity_name(config, identity.name, err);
    }
    if (rc == BATON_OK) {
        rc = signer_load(config->keys, identity.name, &identity.signer, err);
        if (rc == BATON_E_unauthenticated && !config->proof_required) {
            rc = BATON_OK; /* goes unsigned under that name */
        }
    }
    if (rc == BATON_OK) {
        rc = load_trust(config, &identity, err);
    }
    if (rc == BATON_OK) {
        rc = check_key(config, &identity, err);
    }
    if (rc != BATON_OK) {
        identity_close(&identity);
        return rc;
    }
    *ret_identity = identity;
    return BATON_OK;
}

void identity_close(struct identity *identity)
{
    signer_free(identity->signer);
    trust_free(identity->trust);
    memset(identity, 0, sizeof(*identity));
}

baton_code identity_prove(const struct identity *identity, enum proof_class class, const char *key,
                          const struct digest *digest, struct proof_text *ret_proof,
                          struct baton_error *err)
{
    if (identity->signer == NULL) {
        ret_proof->s[0] = '\0';
        return BATON_OK;
    }
    return signer_sign(identity->signer, identity->fleet, class, key, strlen(key), NULL, digest,
                       ret_proof, err);
}

baton_code identity_may_create(const struct identity *identity, const char *service, enum role role,
                               struct baton_error *err)
{
    if (!identity->required || trust_may_create(identity->principal, service, role)) {
        return BATON_OK;
    }
    return baton_fail(err, BATON_E_not_permitted,
                      "%s may not create the role %s at %s: trust/%s.yaml grants no `create: {%s: "
                      "[%s]}`",
                      identity->name, role_word(role), service, identity->name, service,
                      role_word(role));
}

baton_code identity_may_operate(const struct identity *identity, const char *service,
                                struct baton_error *err)
{
    if (!identity->required || trust_may_operate(identity->principal, service)) {
        return BATON_OK;
    }
    return baton_fail(err, BATON_E_not_permitted,
                      "%s may not operate %s: trust/%s.yaml grants no `operate: [%s]`",
                      identity->name, service, identity->name, service);
}
