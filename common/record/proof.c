/*
 * Digests and the bytes that a proof signs. Called by turn.c (ids, content), signer.c and trust.c.
 */
#include "common/record/proof.h"

#include "common/base/check.h"

#include <openssl/evp.h>
#include <pthread.h>
#include <string.h>

static const char *const class_words[] = {
    [PROOF_turn] = "turn",       [PROOF_pass] = "pass",       [PROOF_control] = "control",
    [PROOF_request] = "request", [PROOF_outcome] = "outcome",
};

const char *proof_class_word(enum proof_class class)
{
    BATON_PRE((unsigned)class < COUNT_OF(class_words));
    return class_words[class];
}

/* Fetched once: looking the algorithm up for each digest costs more than a short digest. */
static EVP_MD *sha256;
static pthread_once_t sha256_once = PTHREAD_ONCE_INIT;

static void fetch_sha256(void)
{
    sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    BATON_INVARIANT(sha256 != NULL);
}

static EVP_MD_CTX *begin_digest(void)
{
    pthread_once(&sha256_once, fetch_sha256);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    /* A digest cannot be left out, and its callers cannot go on without it: no memory stops here.
     */
    BATON_INVARIANT(ctx != NULL && EVP_DigestInit_ex2(ctx, sha256, NULL) == 1);
    return ctx;
}

static void add_bytes(EVP_MD_CTX *ctx, const void *bytes, size_t len)
{
    BATON_INVARIANT(len == 0 || EVP_DigestUpdate(ctx, bytes, len) == 1);
}

static struct digest end_digest(EVP_MD_CTX *ctx)
{
    struct digest digest;
    BATON_INVARIANT(EVP_DigestFinal_ex(ctx, digest.b, NULL) == 1);
    EVP_MD_CTX_free(ctx);
    return digest;
}

struct digest digest_of(const void *bytes, size_t len)
{
    EVP_MD_CTX *ctx = begin_digest();
    add_bytes(ctx, bytes, len);
    return end_digest(ctx);
}

static void put_length(uint8_t *at, size_t len)
{
    at[0] = (uint8_t)(len >> 24);
    at[1] = (uint8_t)(len >> 16);
    at[2] = (uint8_t)(len >> 8);
    at[3] = (uint8_t)len;
}

struct digest digest_of_parts(const void *prefix, size_t prefix_len, const struct json_span *parts,
                              size_t n_parts)
{
    EVP_MD_CTX *ctx = begin_digest();
    add_bytes(ctx, prefix, prefix_len);
    for (size_t i = 0; i < n_parts; i++) {
        uint8_t length[4];
        size_t len = parts[i].at == NULL ? 0 : parts[i].len;
        put_length(length, len);
        add_bytes(ctx, length, sizeof(length));
        add_bytes(ctx, parts[i].at, len);
    }
    return end_digest(ctx);
}

static uint8_t *put_lp(uint8_t *at, const void *bytes, size_t len)
{
    put_length(at, len);
    if (len > 0) {
        memcpy(at + 4, bytes, len);
    }
    return at + 4 + len;
}

size_t proof_message(const char *fleet, enum proof_class class, const void *key, size_t key_len,
                     const char *statement, const struct digest *digest,
                     uint8_t ret_message[PROOF_MESSAGE_MAX])
{
    static const char label[] = "BATON-PROOF-1"; /* its NUL is signed too */
    const char *word = proof_class_word(class);
    size_t fleet_len = strlen(fleet);
    size_t statement_len = statement == NULL ? 0 : strlen(statement);
    if (fleet_len > ID_MAX || key_len > PROOF_RECORD_KEY_MAX ||
        statement_len > PROOF_STATEMENT_MAX) {
        return 0;
    }
    uint8_t *at = ret_message;
    memcpy(at, label, sizeof(label));
    at = put_lp(at + sizeof(label), fleet, fleet_len);
    at = put_lp(at, word, strlen(word));
    at = put_lp(at, key, key_len);
    at = put_lp(at, statement, statement_len);
    memcpy(at, digest->b, DIGEST_LEN);
    return (size_t)(at + DIGEST_LEN - ret_message);
}

bool proof_text_parse(const char *text, size_t text_len, struct key_id *ret_key_id,
                      const char **ret_signature_hex)
{
    if (text_len != PROOF_TEXT_LEN || memcmp(text, "1 ", 2) != 0 || !hex_valid(text + 2, 16, 16) ||
        text[18] != ' ' || !hex_valid(text + 19, SIGNATURE_HEX, SIGNATURE_HEX)) {
        return false;
    }
    memcpy(ret_key_id->s, text + 2, 16);
    ret_key_id->s[16] = '\0';
    *ret_signature_hex = text + 19;
    return true;
}
