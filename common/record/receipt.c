/*
 * On receipt: the stages from bytes to a record that may change something, in the order of
 * RECORD.md section 3, and turns. Each stage is one function; the first that refuses ends it.
 *
 * In: common/engine/intake.c (handoffs), worker/claim.c (receipt_stored), receipt_control.c,
 * receipt_run.c (the stages)
 * Out: a struct receipt: a proven record, or the code of its rejection
 */
#include "common/record/receipt_stages.h"

#include "common/base/check.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/record/proof.h"

#include <stdlib.h>
#include <string.h>

#define AHEAD_MAX_MS (24LL * 3600 * 1000) /* how far a signature may lie in the future */

void receipt_done(struct receipt *receipt)
{
    turn_free(receipt->turn);
    control_free(receipt->control);
    request_free(receipt->request);
    outcome_free(receipt->outcome);
    free(receipt->signature);
    for (size_t i = 0; i < receipt->n_passes; i++) {
        free(receipt->passes[i].text);
    }
    free(receipt->traceparent);
    free(receipt->history);
    memset(receipt, 0, sizeof(*receipt));
}

/* ---- size ---- */

static baton_code check_size(struct judgement *j, size_t value_max)
{
    if (j->value == NULL || j->value_len == 0) {
        return baton_fail(&j->err, BATON_E_invalid_envelope, "the value is empty");
    }
    if (j->value_len > value_max) {
        return baton_fail(&j->err, BATON_E_record_too_large,
                          "a value of %zu bytes, at most %zu are taken", j->value_len, value_max);
    }
    if (j->key == NULL || j->key_len == 0 || j->key_len > ID_MAX) {
        return baton_fail(&j->err, BATON_E_invalid_envelope,
                          "a key of %zu bytes, 1 to %d are taken", j->key_len, ID_MAX);
    }
    return BATON_OK;
}

/* ---- key ids, signatures ---- */

static baton_code unknown_key(struct judgement *j, const char *key_id)
{
    return baton_fail(
        &j->err, BATON_E_unknown_key,
        "key %s is not in the trust folder, or is revoked; `baton keys list` shows which are",
        key_id);
}

static baton_code check_keys(struct judgement *j)
{
    const struct trust *trust = j->receiver->trust;
    bool required = j->receiver->proof_required;
    j->receipt->key_id = j->proofs.key_id;
    if (j->proofs.signature.at != NULL && trust != NULL) {
        j->signer_key = trust_key_find(trust, j->proofs.key_id.s);
    }
    j->receipt->signer = j->signer_key == NULL ? NULL : trust_key_owner(j->signer_key);
    if (!required) {
        return BATON_OK;
    }
    if (j->signer_key == NULL) {
        return unknown_key(j, j->proofs.key_id.s);
    }
    for (size_t i = 0; i < j->proofs.n_passes; i++) {
        j->pass_keys[i] = trust_key_find(trust, j->proofs.parts[i].key_id.s);
        if (j->pass_keys[i] == NULL) {
            return unknown_key(j, j->proofs.parts[i].key_id.s);
        }
    }
    return BATON_OK;
}

/* Each hop is signed over the turn. */
static baton_code check_hops(struct judgement *j, const struct digest *digest)
{
    for (size_t i = 0; j->receiver->proof_required && i < j->proofs.n_passes; i++) {
        const struct pass_parts *parts = &j->proofs.parts[i];
        if (!trust_key_verify(j->pass_keys[i], j->receiver->fleet, PROOF_pass, j->key, j->key_len,
                              parts->statement, digest, parts->signature_hex)) {
            return baton_fail(&j->err, BATON_E_bad_signature,
                              "the signature of pass %zu by key %s does not verify", i + 1,
                              parts->key_id.s);
        }
    }
    return BATON_OK;
}

static baton_code check_signatures(struct judgement *j)
{
    if (j->receiver->proof_required) {
        const char *fleet = j->receiver->fleet;
        struct digest digest = digest_of(j->value, j->value_len);
        if (!trust_key_verify(j->signer_key, fleet, j->class, j->key, j->key_len, NULL, &digest,
                              j->proofs.signature_hex)) {
            return baton_fail(&j->err, BATON_E_bad_signature,
                              "the signature by key %s does not verify as a %s of fleet %s",
                              j->proofs.key_id.s, proof_class_word(j->class), fleet);
        }
        baton_code rc = check_hops(j, &digest);
        if (rc != BATON_OK) {
            return rc;
        }
    }
    j->receipt->proven = true;
    return BATON_OK;
}

/* ---- what the receipt keeps ---- */

bool judge_keep(struct header_text text, char **ret_text)
{
    char *copy = NULL;
    if (text.at != NULL) {
        copy = malloc(text.len + 1);
        if (copy == NULL) {
            return false;
        }
        memcpy(copy, text.at, text.len);
        copy[text.len] = '\0';
    }
    *ret_text = copy;
    return true;
}

baton_code judge_no_memory(struct judgement *j)
{
    return baton_fail(&j->err, BATON_E_no_memory, "no memory for a record");
}

/* ---- schema of the chain ---- */

/* Attempts rise, costs never fall, no service comes twice. Gaps are judged with the address. */
static baton_code read_chain(struct judgement *j)
{
    struct receipt *r = j->receipt;
    int attempt = 1;
    int64_t cost = 0;
    r->attempt = 1;
    for (size_t i = 0; i < j->proofs.n_passes; i++) {
        struct pass *pass = &r->passes[i];
        baton_code rc = pass_parse(j->proofs.parts[i].statement, pass, &j->err);
        if (rc != BATON_OK) {
            return rc;
        }
        if (!judge_keep(j->proofs.passes[i], &pass->text)) {
            return judge_no_memory(j);
        }
        r->n_passes++;
        if (pass->attempt <= attempt) {
            return baton_fail(&j->err, BATON_E_invalid_envelope,
                              "pass %zu begins attempt %d, which does not follow attempt %d", i + 1,
                              pass->attempt, attempt);
        }
        attempt = pass->attempt;
        if (pass->cost_micros < cost) {
            return baton_fail(&j->err, BATON_E_invalid_envelope,
                              "pass %zu tells costs of %lld, and the one before it %lld", i + 1,
                              (long long)pass->cost_micros, (long long)cost);
        }
        cost = pass->cost_micros;
        bool again = strcmp(pass->to.s, j->born) == 0;
        for (size_t k = 0; k < i; k++) {
            again = again || strcmp(pass->to.s, r->passes[k].to.s) == 0;
        }
        if (again) {
            return baton_fail(&j->err, BATON_E_invalid_envelope,
                              "pass %zu leads back to %s, which has had the turn", i + 1,
                              pass->to.s);
        }
    }
    if (r->n_passes > 0) {
        const struct pass *last = &r->passes[r->n_passes - 1];
        r->attempt = last->attempt;
        r->failures = last->failures;
        r->losses = last->losses;
        r->replays = last->replays;
    }
    return BATON_OK;
}

/* ---- identity, rights, address ---- */

static baton_code check_identity(struct judgement *j)
{
    const struct turn *turn = j->receipt->turn;
    if (j->key_len != strlen(turn->id.s) || memcmp(j->key, turn->id.s, j->key_len) != 0) {
        return baton_fail(&j->err, BATON_E_invalid_envelope,
                          "the record's key '%s' is not the turn's id %s",
                          text_quote(j->key, j->key_len).s, turn->id.s);
    }
    if (j->receiver->proof_required &&
        strcmp(turn->origin.s, trust_principal_name(j->receipt->signer)) != 0) {
        return baton_fail(&j->err, BATON_E_not_permitted,
                          "the turn names %s as its origin, and is signed by %s", turn->origin.s,
                          trust_principal_name(j->receipt->signer));
    }
    return BATON_OK;
}

/* Each hop is signed by its `from`, which may pass this role to its `to`. */
static baton_code check_grants(struct judgement *j)
{
    const struct receipt *r = j->receipt;
    for (size_t i = 0; j->receiver->proof_required && i < r->n_passes; i++) {
        const struct pass *pass = &r->passes[i];
        const struct trust_principal *who = trust_key_owner(j->pass_keys[i]);
        if (strcmp(trust_principal_name(who), pass->from.s) != 0) {
            return baton_fail(&j->err, BATON_E_not_permitted,
                              "pass %zu is made in the name of %s, and is signed by %s", i + 1,
                              pass->from.s, trust_principal_name(who));
        }
        if (!trust_may_pass(who, pass->to.s, j->role)) {
            return baton_fail(&j->err, BATON_E_not_permitted,
                              "%s may not pass turns of role %s to %s", pass->from.s,
                              role_word(j->role), pass->to.s);
        }
    }
    return BATON_OK;
}

static baton_code check_rights(struct judgement *j)
{
    const struct receipt *r = j->receipt;
    if (!j->receiver->proof_required) {
        return BATON_OK;
    }
    if (!trust_may_create(r->signer, r->turn->service.s, r->turn->role)) {
        return baton_fail(&j->err, BATON_E_not_permitted,
                          "%s may not create turns of role %s at service %s", r->turn->origin.s,
                          role_word(r->turn->role), r->turn->service.s);
    }
    return check_grants(j);
}

static baton_code check_address(struct judgement *j)
{
    const struct receipt *r = j->receipt;
    const char *at = j->born;
    for (size_t i = 0; i < r->n_passes; i++) {
        if (strcmp(r->passes[i].from.s, at) != 0) {
            return baton_fail(&j->err, BATON_E_wrong_service,
                              "pass %zu comes from %s, but the turn was at %s", i + 1,
                              r->passes[i].from.s, at);
        }
        at = r->passes[i].to.s;
    }
    if (strcmp(at, j->end) != 0) {
        return baton_fail(&j->err, BATON_E_wrong_service,
                          "the turn is addressed to %s, and this is %s", at, j->end);
    }
    return BATON_OK;
}

baton_code judge_partition(struct judgement *j, const struct log_record *record)
{
    int32_t due = log_partition_of(j->key, j->key_len, j->receiver->partitions);
    if (record->partition != due) {
        return baton_fail(&j->err, BATON_E_wrong_partition,
                          "the record is on partition %d, and its key belongs on %d of %d",
                          (int)record->partition, (int)due, (int)j->receiver->partitions);
    }
    return BATON_OK;
}

/* ---- time: what counts is when the log appended the record, not when it is read ---- */

baton_code judge_ahead(struct judgement *j, struct wall_ms signed_at, struct wall_ms appended)
{
    if (signed_at.v > appended.v + AHEAD_MAX_MS) {
        return baton_fail(&j->err, BATON_E_handoff_expired,
                          "signed at %s, more than a day ahead of the log's %s",
                          wall_text(signed_at).s, wall_text(appended).s);
    }
    return BATON_OK;
}

static baton_code check_time(struct judgement *j, struct wall_ms appended)
{
    const struct receipt *r = j->receipt;
    struct wall_ms limit = r->turn->expires_at;
    baton_code rc = judge_ahead(j, r->turn->created_at, appended);
    for (size_t i = 0; rc == BATON_OK && i < r->n_passes; i++) {
        rc = judge_ahead(j, r->passes[i].at, appended);
        limit.v = r->passes[i].at.v + TURN_LIFE_MAX_MS;
    }
    if (rc == BATON_OK && appended.v > limit.v) {
        return baton_fail(&j->err, BATON_E_handoff_expired,
                          "appended at %s, later than %s; its origin may sign it again",
                          wall_text(appended).s, wall_text(limit).s);
    }
    return rc;
}

/* ---- the judgements ---- */

struct judgement judge_begin(const struct receiver *receiver, enum proof_class class,
                             struct receipt *ret_receipt)
{
    BATON_PRE(receiver->trust != NULL || !receiver->proof_required);
    BATON_PRE(receiver->service != NULL || class == PROOF_request || class == PROOF_outcome);
    struct judgement j;
    memset(&j, 0, sizeof(j));
    memset(ret_receipt, 0, sizeof(*ret_receipt));
    j.receiver = receiver;
    j.receipt = ret_receipt;
    j.class = class;
    return j;
}

/* A refused record keeps its code and who signed it, and nothing that could be acted on. */
baton_code judge_finish(struct judgement *j, baton_code rc)
{
    struct receipt *r = j->receipt;
    r->code = rc;
    if (rc != BATON_OK) {
        struct receipt refused;
        memset(&refused, 0, sizeof(refused));
        refused.code = rc;
        refused.proven = r->proven;
        refused.signer = r->signer;
        refused.key_id = r->key_id;
        refused.attempt = r->attempt;
        size_t n = strnlen(j->err.text, sizeof(refused.note) - 1);
        memcpy(refused.note, j->err.text, n);
        receipt_done(r);
        *r = refused;
    }
    return rc;
}

baton_code judge_proof(struct judgement *j)
{
    baton_code rc = check_keys(j);
    if (rc == BATON_OK) {
        rc = check_signatures(j);
    }
    if (rc == BATON_OK && !judge_keep(j->proofs.signature, &j->receipt->signature)) {
        rc = judge_no_memory(j);
    }
    return rc;
}

/* Everything about a turn that does not depend on where and when the log took it. */
static baton_code judge_turn(struct judgement *j)
{
    baton_code rc = judge_proof(j);
    if (rc != BATON_OK || (rc = turn_parse(j->receiver->fleet, j->value, j->value_len,
                                           &j->receipt->turn, &j->err)) != BATON_OK) {
        return rc;
    }
    j->born = j->receipt->turn->service.s;
    j->role = j->receipt->turn->role;
    j->end = j->receiver->service;
    if ((rc = read_chain(j)) != BATON_OK || (rc = check_identity(j)) != BATON_OK ||
        (rc = check_rights(j)) != BATON_OK) {
        return rc;
    }
    return check_address(j);
}

baton_code judge_headers(struct judgement *j, const struct log_record *record, size_t value_max,
                         bool may_pass, struct headers *ret_headers)
{
    j->key = record->key;
    j->key_len = record->key_len;
    j->value = record->value;
    j->value_len = record->value_len;
    baton_code rc = check_size(j, value_max);
    if (rc == BATON_OK) {
        rc = headers_read(record, j->receiver->proof_required, may_pass, ret_headers, &j->err);
    }
    if (rc == BATON_OK) {
        j->proofs = ret_headers->proofs;
    }
    return rc;
}

baton_code receipt_handoff(const struct receiver *receiver, const struct log_record *record,
                           struct receipt *ret_receipt)
{
    struct judgement j = judge_begin(receiver, PROOF_turn, ret_receipt);
    struct headers headers;
    baton_code rc;
    if ((rc = judge_headers(&j, record, TURN_BYTES_MAX, true, &headers)) != BATON_OK ||
        (rc = judge_turn(&j)) != BATON_OK || (rc = judge_partition(&j, record)) != BATON_OK ||
        (rc = check_time(&j, record->at)) != BATON_OK) {
        return judge_finish(&j, rc);
    }
    ret_receipt->wait_claimed = headers.wait_claimed;
    if (!judge_keep(headers.traceparent, &ret_receipt->traceparent) ||
        !judge_keep(headers.history, &ret_receipt->history)) {
        rc = judge_no_memory(&j);
    }
    return judge_finish(&j, rc);
}

baton_code receipt_stored(const struct receiver *receiver, const char *turn_id, const void *bytes,
                          size_t len, const char *signature, char *const *passes, size_t n_passes,
                          struct receipt *ret_receipt)
{
    struct judgement j = judge_begin(receiver, PROOF_turn, ret_receipt);
    baton_code rc;
    j.key = turn_id;
    j.key_len = strlen(turn_id);
    j.value = bytes;
    j.value_len = len;
    if ((rc = check_size(&j, TURN_BYTES_MAX)) != BATON_OK ||
        (rc = proofs_read(signature, passes, n_passes, receiver->proof_required, &j.proofs,
                          &j.err)) != BATON_OK) {
        return judge_finish(&j, rc);
    }
    return judge_finish(&j, judge_turn(&j));
}

baton_code receipt_outcome_chain(const struct receiver *receiver, const struct receipt *receipt,
                                 const struct receipt_turn *turn, struct pass *ret_last,
                                 struct baton_error *err)
{
    struct receipt chain;
    struct judgement j = judge_begin(receiver, PROOF_outcome, &chain);
    char *texts[PASSES_MAX];
    j.key = turn->id;
    j.key_len = strlen(turn->id);
    j.born = turn->born;
    j.role = turn->role;
    j.end = receipt->outcome->service.s;
    for (size_t i = 0; i < receipt->n_passes; i++) {
        texts[i] = receipt->passes[i].text;
    }
    baton_code rc = proofs_read(receipt->signature, texts, receipt->n_passes,
                                receiver->proof_required, &j.proofs, &j.err);
    if (rc == BATON_OK && (rc = check_keys(&j)) == BATON_OK &&
        (rc = check_hops(&j, turn->digest)) == BATON_OK && (rc = read_chain(&j)) == BATON_OK &&
        (rc = check_grants(&j)) == BATON_OK) {
        rc = check_address(&j);
    }
    if (rc == BATON_OK) {
        memset(ret_last, 0, sizeof(*ret_last));
        ret_last->attempt = 1;
        if (chain.n_passes > 0) {
            *ret_last = chain.passes[chain.n_passes - 1];
            ret_last->text = NULL;
        }
    } else {
        /* Nobody but the service at the end of the chain speaks for the turn. */
        rc = baton_fail(err, rc == BATON_E_wrong_service ? BATON_E_not_permitted : rc, "%s",
                        j.err.text);
    }
    receipt_done(&chain);
    return rc;
}
