/*
 * The trust folder in memory: finding keys and principals, and verifying. Called by receipt.c and
 * by everybody who judges a signer.
 */
#include "common/record/trust.h"

#include "common/base/check.h"
#include "common/record/keyfile.h"
#include "common/record/proof.h"
#include "common/record/trust_data.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

void trust_free(struct trust *trust)
{
    if (trust == NULL) {
        return;
    }
    for (size_t i = 0; i < trust->n_keys; i++) {
        keyfile_free(trust->keys[i].key);
    }
    for (size_t i = 0; i < trust->n_principals; i++) {
        trust_principal_done(&trust->principals[i]);
    }
    free(trust->keys);
    free(trust->principals);
    free(trust->dir);
    free(trust);
}

const char *trust_fleet(const struct trust *trust)
{
    return trust->fleet.s;
}

bool trust_changed(const struct trust *trust)
{
    struct digest now;
    /* A folder that cannot be listed any more has changed, too: loading it says what is wrong. */
    return !trust_stamp(trust->dir, &now) || memcmp(now.b, trust->stamp.b, DIGEST_LEN) != 0;
}

static int compare_id(const void *id, const void *key)
{
    return strcmp(id, ((const struct trust_key *)key)->id.s);
}

static int compare_name(const void *name, const void *principal)
{
    return strcmp(name, ((const struct trust_principal *)principal)->name.s);
}

static const struct trust_key *key_of(const struct trust *trust, const char *key_id)
{
    return trust->n_keys == 0
               ? NULL
               : bsearch(key_id, trust->keys, trust->n_keys, sizeof(trust->keys[0]), compare_id);
}

const struct trust_key *trust_key_find(const struct trust *trust, const char *key_id)
{
    const struct trust_key *key = key_of(trust, key_id);
    return key == NULL || key->revoked || key->owner == NULL ? NULL : key;
}

bool trust_revokes(const struct trust *trust, const char *key_id)
{
    const struct trust_key *key = key_of(trust, key_id);
    return key != NULL && key->revoked;
}

const struct trust_principal *trust_key_owner(const struct trust_key *key)
{
    return key->owner;
}

const struct trust_principal *trust_principal_find(const struct trust *trust, const char *name)
{
    return trust->n_principals == 0 ? NULL
                                    : bsearch(name, trust->principals, trust->n_principals,
                                              sizeof(trust->principals[0]), compare_name);
}

const char *trust_principal_name(const struct trust_principal *principal)
{
    return principal->name.s;
}

enum principal_kind trust_principal_kind(const struct trust_principal *principal)
{
    return principal->kind;
}

size_t trust_principals(const struct trust *trust)
{
    return trust->n_principals;
}

const struct trust_principal *trust_principal_at(const struct trust *trust, size_t i)
{
    BATON_PRE(i < trust->n_principals);
    return &trust->principals[i];
}

size_t trust_keys(const struct trust *trust)
{
    return trust->n_keys;
}

const struct trust_key *trust_key_at(const struct trust *trust, size_t i)
{
    BATON_PRE(i < trust->n_keys);
    return &trust->keys[i];
}

const char *trust_key_id(const struct trust_key *key)
{
    return key->id.s;
}

bool trust_key_revoked(const struct trust_key *key)
{
    return key->revoked;
}

struct wall_ms trust_key_made_at(const struct trust_key *key)
{
    return key->made_at;
}

bool trust_key_verify(const struct trust_key *key, const char *fleet, enum proof_class class,
                      const void *record_key, size_t record_key_len, const char *statement,
                      const struct digest *digest, const char *signature_hex)
{
    uint8_t message[PROOF_MESSAGE_MAX];
    uint8_t signature[SIGNATURE_LEN];
    size_t len =
        proof_message(fleet, class, record_key, record_key_len, statement, digest, message);
    if (len == 0 || !hex_decode(signature_hex, SIGNATURE_HEX, signature, SIGNATURE_LEN)) {
        return false;
    }
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool ok = ctx != NULL && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, key->key) == 1 &&
              EVP_DigestVerify(ctx, signature, sizeof(signature), message, len) == 1;
    EVP_MD_CTX_free(ctx);
    return ok;
}
