/* A pass: making and reading one hop. Called by receipt.c and by whoever delegates or replays. */
#include "common/record/pass.h"

#include "common/base/check.h"
#include "common/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUFFIX_LEN (1 + 16 + 1 + 128) /* ` <key id> <signature>` */

bool pass_split(const char *text, size_t text_len, struct pass_parts *ret_parts)
{
    size_t statement_len = text_len;
    memset(ret_parts, 0, sizeof(*ret_parts));
    if (text_len > SUFFIX_LEN) {
        const char *suffix = text + text_len - SUFFIX_LEN;
        if (suffix[0] == ' ' && hex_valid(suffix + 1, 16, 16) && suffix[17] == ' ' &&
            hex_valid(suffix + 18, 128, 128)) {
            ret_parts->is_signed = true;
            memcpy(ret_parts->key_id.s, suffix + 1, 16);
            memcpy(ret_parts->signature_hex, suffix + 18, 128);
            statement_len -= SUFFIX_LEN;
        }
    }
    if (statement_len == 0 || statement_len > PASS_STATEMENT_MAX ||
        memchr(text, '\0', statement_len) != NULL) {
        return false;
    }
    memcpy(ret_parts->statement, text, statement_len);
    return true;
}

struct word {
    const char *at;
    size_t len;
};

#define STATEMENT_WORDS 9

/* Exactly nine words with single spaces between. */
static bool words_of(const char *statement, struct word words[STATEMENT_WORDS])
{
    const char *at = statement;
    for (int i = 0; i < STATEMENT_WORDS; i++) {
        words[i] = (struct word){at, strcspn(at, " ")};
        at += words[i].len;
        if (words[i].len == 0 || (i < STATEMENT_WORDS - 1 && *at != ' ')) {
            return false;
        }
        at += i < STATEMENT_WORDS - 1 ? 1 : 0;
    }
    return *at == '\0';
}

/* Decimal without sign and leading zero, at most PASS_COUNT_MAX: no counter wraps or starts again.
 */
static bool count_of(struct word word, int *ret_count)
{
    int value = 0;
    if (word.len > 5 || (word.len > 1 && word.at[0] == '0')) {
        return false;
    }
    for (size_t i = 0; i < word.len; i++) {
        if (word.at[i] < '0' || word.at[i] > '9') {
            return false;
        }
        value = value * 10 + (word.at[i] - '0');
    }
    *ret_count = value;
    return value <= PASS_COUNT_MAX;
}

static bool service_of(struct word word, struct service_id *ret_service)
{
    if (!service_id_valid(word.at, word.len)) {
        return false;
    }
    memset(ret_service, 0, sizeof(*ret_service));
    memcpy(ret_service->s, word.at, word.len);
    return true;
}

baton_code pass_parse(const char *statement, struct pass *ret_pass, struct baton_error *err)
{
    struct word w[STATEMENT_WORDS];
    struct pass p;
    memset(&p, 0, sizeof(p));
    if (!words_of(statement, w)) {
        return baton_fail(err, BATON_E_invalid_envelope, "pass: '%s' is no statement of nine words",
                          text_quote_of(statement).s);
    }
    if (w[0].len != 1 || w[0].at[0] != '1') {
        return baton_fail(err, BATON_E_schema_unsupported,
                          "pass: version '%s' is not known to this program, which reads version 1",
                          text_quote(w[0].at, w[0].len).s);
    }
    if (!count_of(w[1], &p.attempt) || p.attempt < 1 || !service_of(w[2], &p.from) ||
        !service_of(w[3], &p.to) || !count_of(w[4], &p.failures) || !count_of(w[5], &p.losses) ||
        !count_of(w[6], &p.replays) || !failure_parse(w[7].at, w[7].len, &p.class) ||
        !wall_parse(w[8].at, w[8].len, &p.at)) {
        return baton_fail(err, BATON_E_invalid_envelope,
                          "pass: '%s' holds a number, name, class or time that cannot be",
                          text_quote_of(statement).s);
    }
    *ret_pass = p;
    return BATON_OK;
}

baton_code pass_make(const struct pass *pass, const struct signer *signer, const char *fleet,
                     const char *turn_id, const struct digest *digest, char **ret_text,
                     struct baton_error *err)
{
    char statement[PASS_STATEMENT_MAX + 1];
    char text[PASS_TEXT_MAX + 1];
    struct proof_text proof;
    struct pass again;
    snprintf(statement, sizeof(statement), "1 %d %s %s %d %d %d %s %s", pass->attempt, pass->from.s,
             pass->to.s, pass->failures, pass->losses, pass->replays, failure_word(pass->class),
             wall_text(pass->at).s);
    /* Nothing is handed on that the receiver would refuse. */
    baton_code rc = pass_parse(statement, &again, err);
    if (rc != BATON_OK) {
        return baton_fail_context(err, BATON_E_invalid_request, "%s", "");
    }
    if (signer == NULL) {
        snprintf(text, sizeof(text), "%s", statement);
    } else {
        rc = signer_sign(signer, fleet, PROOF_pass, turn_id, strlen(turn_id), statement, digest,
                         &proof, err);
        if (rc != BATON_OK) {
            return rc;
        }
        /* The proof's own version word stands in the statement already. */
        snprintf(text, sizeof(text), "%s %s", statement, proof.s + 2);
    }
    char *copy = strdup(text);
    if (copy == NULL) {
        return baton_fail(err, BATON_E_no_memory, "no memory for a pass");
    }
    *ret_text = copy;
    return BATON_OK;
}
