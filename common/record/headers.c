/* The headers of a record. Called by receipt.c, first of all. */
#include "common/record/headers.h"

#include "common/base/check.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/base/traceparent.h"
#include "common/record/proof.h"

#include <string.h>
#include <strings.h>

static bool text_is(struct header_text text, const char *word)
{
    return text.len == strlen(word) && memcmp(text.at, word, text.len) == 0;
}

static baton_code check_sizes(const struct log_record *record, struct baton_error *err)
{
    size_t bytes = 0;
    if (record->n_headers > LIMIT_HEADERS) {
        return baton_fail(err, BATON_E_invalid_envelope, "%zu headers, at most %d are taken",
                          record->n_headers, LIMIT_HEADERS);
    }
    for (size_t i = 0; i < record->n_headers; i++) {
        bytes += strlen(record->headers[i].name) + record->headers[i].value_len;
    }
    if (bytes > HEADER_BYTES_MAX) {
        return baton_fail(err, BATON_E_invalid_envelope,
                          "headers of %zu bytes, at most %d are taken", bytes, HEADER_BYTES_MAX);
    }
    return BATON_OK;
}

static baton_code take_signature(struct proofs *proofs, struct header_text text,
                                 struct baton_error *err)
{
    if (proofs->signature.at != NULL) {
        return baton_fail(err, BATON_E_bad_signature, "baton-sig stands twice");
    }
    if (text.at == NULL ||
        !proof_text_parse(text.at, text.len, &proofs->key_id, &proofs->signature_hex)) {
        return baton_fail(err, BATON_E_bad_signature,
                          "baton-sig is not `1 <key id> <128 lower-case hex digits>`");
    }
    proofs->signature = text;
    return BATON_OK;
}

static baton_code take_pass(struct proofs *proofs, struct header_text text, bool required,
                            struct baton_error *err)
{
    if (proofs->n_passes == PASSES_MAX) {
        return baton_fail(err, BATON_E_invalid_envelope, "more than %d passes", PASSES_MAX);
    }
    struct pass_parts *parts = &proofs->parts[proofs->n_passes];
    if (text.at == NULL || text.len > PASS_TEXT_MAX || !pass_split(text.at, text.len, parts) ||
        (required && !parts->is_signed)) {
        return baton_fail(
            err, BATON_E_bad_signature,
            "baton-pass %zu is not `<statement> <key id> <128 lower-case hex digits>`",
            proofs->n_passes + 1);
    }
    proofs->passes[proofs->n_passes++] = text;
    return BATON_OK;
}

static baton_code no_signature(struct baton_error *err)
{
    return baton_fail(err, BATON_E_bad_signature, "the record has no baton-sig");
}

baton_code headers_read(const struct log_record *record, bool required, bool may_pass,
                        struct headers *ret_headers, struct baton_error *err)
{
    struct headers h;
    const char *unknown = NULL;
    baton_code rc = check_sizes(record, err);
    memset(&h, 0, sizeof(h));
    for (size_t i = 0; rc == BATON_OK && i < record->n_headers; i++) {
        const char *name = record->headers[i].name;
        struct header_text text = {record->headers[i].value, record->headers[i].value_len};
        if (strcmp(name, HEADER_SIG) == 0) {
            rc = take_signature(&h.proofs, text, err);
        } else if (strcmp(name, HEADER_PASS) == 0 && may_pass) {
            rc = take_pass(&h.proofs, text, required, err);
        } else if (strcmp(name, HEADER_WAIT) == 0) {
            h.wait_claimed = text.at != NULL && text_is(text, HEADER_WAIT_CLAIMED);
        } else if (strcmp(name, HEADER_ATTEMPTS) == 0) {
            if (text.at != NULL && text.len <= HEADER_HISTORY_MAX &&
                memchr(text.at, '\0', text.len) == NULL) {
                h.history = text;
            }
        } else if (strcmp(name, HEADER_TRACEPARENT) == 0) {
            if (traceparent_parse(text.at, text.len, NULL)) {
                h.traceparent = text;
            }
        } else if (strcmp(name, HEADER_CODE) != 0 && strcmp(name, HEADER_CLASS) != 0 &&
                   strncasecmp(name, "baton-", 6) == 0 && unknown == NULL) {
            unknown = name; /* also ours in another case: names are exact */
        }
    }
    if (rc != BATON_OK) {
        return rc;
    }
    if (required && h.proofs.signature.at == NULL) {
        return no_signature(err);
    }
    if (unknown != NULL) {
        return baton_fail(err, BATON_E_schema_unsupported,
                          "the header '%s' is not known to this program", text_quote_of(unknown).s);
    }
    *ret_headers = h;
    return BATON_OK;
}

baton_code proofs_read(const char *signature, char *const *passes, size_t n_passes, bool required,
                       struct proofs *ret_proofs, struct baton_error *err)
{
    struct proofs proofs;
    baton_code rc = BATON_OK;
    memset(&proofs, 0, sizeof(proofs));
    if (signature != NULL) {
        rc = take_signature(&proofs, (struct header_text){signature, strlen(signature)}, err);
    } else if (required) {
        rc = no_signature(err);
    }
    for (size_t i = 0; rc == BATON_OK && i < n_passes; i++) {
        rc = take_pass(&proofs, (struct header_text){passes[i], strlen(passes[i])}, required, err);
    }
    if (rc == BATON_OK) {
        *ret_proofs = proofs;
    }
    return rc;
}
