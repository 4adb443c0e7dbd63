/* A private key in use. Called by publishers, workers and commands at their start, and by signer_again.c. */
#include "common/record/signer.h"

#include "common/base/check.h"
#include "common/base/safe_file.h"
#include "common/base/text.h"
#include "common/record/keyfile.h"
#include "common/record/proof.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

struct signer {
    EVP_PKEY *pair;
    struct key_id key_id;
};

void signer_free(struct signer *signer)
{
    if (signer != NULL) {
        keyfile_free(signer->pair); /* OpenSSL cleanses what it frees */
        free(signer);
    }
}

baton_code signer_load(const char *keys_dir, const char *principal, struct signer **ret_signer,
                       struct baton_error *err)
{
    char path[4096];
    struct signer *signer = NULL;
    baton_code rc = BATON_OK;
    size_t len = strlen(principal);
    if (!plain_id_valid(principal, len)) {
        return baton_fail(err, BATON_E_invalid_request,
                          "'%s' is no name of a principal, [a-z0-9._-]{1,64}",
                          text_quote_of(principal).s);
    }
    int n = snprintf(path, sizeof(path), "%s/%s.pem", keys_dir, principal);
    if (n < 0 || (size_t)n >= sizeof(path)) {
        return baton_fail(err, BATON_E_bad_config, "the path of the folder of keys is too long");
    }
    if ((signer = calloc(1, sizeof(*signer))) == NULL) {
        return baton_fail(err, BATON_E_no_memory, "no memory for a key");
    }
    rc = safe_folder_check(keys_dir, SAFE_secret, err);
    if (rc == BATON_OK) {
        rc = keyfile_read_private(path, &signer->pair, err);
    } else if (rc == BATON_E_bad_config) {
        rc = BATON_E_key_not_found; /* no folder: no key */
    }
    if (rc == BATON_E_key_not_found) {
        rc = baton_fail(
            err, BATON_E_unauthenticated,
            "there is no private key %s; `baton keys apply` makes the first of a service, "
            "`baton keys generate %s` another",
            text_quote_of(path).s, principal);
    }
    if (rc == BATON_OK && !keyfile_id(signer->pair, &signer->key_id)) {
        rc = baton_fail(err, BATON_E_no_memory, "no memory for a key");
    }
    if (rc != BATON_OK) {
        signer_free(signer);
        return rc;
    }
    *ret_signer = signer;
    return BATON_OK;
}

struct key_id signer_key_id(const struct signer *signer)
{
    return signer->key_id;
}

baton_code signer_sign(const struct signer *signer, const char *fleet, enum proof_class class,
                       const void *key, size_t key_len, const char *statement,
                       const struct digest *digest, struct proof_text *ret_proof,
                       struct baton_error *err)
{
    uint8_t message[PROOF_MESSAGE_MAX];
    uint8_t signature[SIGNATURE_LEN];
    size_t signature_len = sizeof(signature);
    BATON_PRE((class == PROOF_pass) == (statement != NULL));
    size_t len = proof_message(fleet, class, key, key_len, statement, digest, message);
    if (len == 0) {
        return baton_fail(err, BATON_E_invalid_request,
                          "fleet, key or statement of a record are longer than any of ours");
    }
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool ok = ctx != NULL && EVP_DigestSignInit(ctx, NULL, NULL, NULL, signer->pair) == 1 &&
              EVP_DigestSign(ctx, signature, &signature_len, message, len) == 1 &&
              signature_len == SIGNATURE_LEN;
    EVP_MD_CTX_free(ctx);
    if (!ok) {
        return baton_fail(err, BATON_E_unexpected, "OpenSSL could not sign with key %s",
                          signer->key_id.s);
    }
    memcpy(ret_proof->s, "1 ", 2);
    memcpy(ret_proof->s + 2, signer->key_id.s, 16);
    ret_proof->s[18] = ' ';
    hex_encode(signature, SIGNATURE_LEN, ret_proof->s + 19);
    return BATON_OK;
}

void process_hold_keys(void)
{
    const struct rlimit none = {0, 0};
    /* Both may only tighten; where even that is refused there is nothing better to do. */
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    (void)setrlimit(RLIMIT_CORE, &none);
}
