/* A pass: making and reading one hop. Called by receipt.c and by whoever delegates or replays. */
#include "common/record/pass.h"

#include "common/base/check.h"
#include "common/base/text.h"
#include "common/record/json.h"

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
#define WORDS_MAX (STATEMENT_WORDS + 1) /* version 2 has the costs behind them */

/* The words, with single spaces between; 0: it is none, or has more than ten. */
static int words_of(const char *statement, struct word words[WORDS_MAX])
{
    const char *at = statement;
    for (int n = 0; n < WORDS_MAX; at++) {
        words[n] = (struct word){at, strcspn(at, " ")};
        at += words[n].len;
        if (words[n++].len == 0) {
            return 0;
        }
        if (*at == '\0') {
            return n;
        }
    }
    return 0;
}

/* Decimal without sign and leading zero, at most max. */
static bool number_of(struct word word, int64_t max, int64_t *ret_number)
{
    int64_t value = 0;
    if (word.len > 16 || (word.len > 1 && word.at[0] == '0')) {
        return false;
    }
    for (size_t i = 0; i < word.len; i++) {
        if (word.at[i] < '0' || word.at[i] > '9') {
            return false;
        }
        value = value * 10 + (word.at[i] - '0');
    }
    *ret_number = value;
    return value <= max;
}

/* At most PASS_COUNT_MAX: no counter wraps or starts again. */
static bool count_of(struct word word, int *ret_count)
{
    int64_t value = 0;
    bool ok = number_of(word, PASS_COUNT_MAX, &value);
    *ret_count = (int)value;
    return ok;
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
    struct word w[WORDS_MAX];
    struct pass p;
    memset(&p, 0, sizeof(p));
    int n = words_of(statement, w);
    if (n < STATEMENT_WORDS) {
        return baton_fail(err, BATON_E_invalid_envelope,
                          "pass: '%s' is no statement of nine or ten words",
                          text_quote_of(statement).s);
    }
    bool costs = w[0].len == 1 && w[0].at[0] == '2' && n == STATEMENT_WORDS + 1;
    bool plain = w[0].len == 1 && w[0].at[0] == '1';
    if (!costs && !plain) {
        return baton_fail(err, BATON_E_schema_unsupported,
                          "pass: version '%s' with %d words is not known to this program, which "
                          "reads version 1, nine words, and version 2, ten",
                          text_quote(w[0].at, w[0].len).s, n);
    }
    if (plain && n != STATEMENT_WORDS) {
        return baton_fail(err, BATON_E_invalid_envelope,
                          "pass: '%s' has a tenth word, which version 1 has not",
                          text_quote_of(statement).s);
    }
    /* One form for each fact: nothing is version 1. */
    if (costs && (!number_of(w[9], JSON_INT_MAX, &p.cost_micros) || p.cost_micros == 0)) {
        return baton_fail(err, BATON_E_invalid_envelope,
                          "pass: '%s' ends with costs that cannot be", text_quote_of(statement).s);
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

bool pass_read(const char *text, struct pass *ret_pass)
{
    struct pass_parts parts;
    return pass_split(text, strlen(text), &parts) &&
           pass_parse(parts.statement, ret_pass, NULL) == BATON_OK;
}

baton_code pass_make(const struct pass *pass, const struct signer *signer, const char *fleet,
                     const char *turn_id, const struct digest *digest, char **ret_text,
                     struct baton_error *err)
{
    char statement[PASS_STATEMENT_MAX + 1];
    char text[PASS_TEXT_MAX + 1];
    struct proof_text proof;
    struct pass again;
    int n = snprintf(statement, sizeof(statement), "%d %d %s %s %d %d %d %s %s",
                     pass->cost_micros != 0 ? 2 : 1, pass->attempt, pass->from.s, pass->to.s,
                     pass->failures, pass->losses, pass->replays, failure_word(pass->class),
                     wall_text(pass->at).s);
    if (pass->cost_micros != 0) {
        snprintf(statement + n, sizeof(statement) - (size_t)n, " %lld",
                 (long long)pass->cost_micros);
    }
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
