/*
 * On receipt of what is said about runs: requests, and the outcomes that tell a run how it goes on.
 * In: common/engine/intake.c, topics/outcomes.c (who waits for an outcome)
 */
#include "common/record/receipt_stages.h"

#include "common/base/limits.h"
#include "common/base/text.h"

#include <string.h>

static baton_code check_key(struct judgement *j, const char *what, const char *due)
{
    if (j->key_len != strlen(due) || memcmp(j->key, due, j->key_len) != 0) {
        return baton_fail(&j->err, BATON_E_invalid_envelope,
                          "the key of this %s must be '%s', not '%s'", what, due,
                          text_quote(j->key, j->key_len).s);
    }
    return BATON_OK;
}

/* ---- requests ---- */

/* Without proofs nobody knows who asks: then a start's run id is whatever it says. */
static baton_code check_request(struct judgement *j, const struct log_record *record)
{
    const struct request *request = j->receipt->request;
    const char *kind = request_word(request->kind);
    baton_code rc = check_key(j, kind, request->run_id.s);
    if (rc == BATON_OK && j->receiver->proof_required) {
        const char *who = trust_principal_name(j->receipt->signer);
        if (request->kind == REQUEST_start &&
            strcmp(request->run_id.s, request_run_id(j->receiver->fleet, who, request->key).s) !=
                0) {
            return baton_fail(&j->err, BATON_E_invalid_envelope,
                              "run_id is not the hash of fleet, requester %s and key", who);
        }
        if (!trust_may_request(j->receipt->signer, kind)) {
            return baton_fail(&j->err, BATON_E_not_permitted, "%s may not ask to %s", who, kind);
        }
    }
    if (rc != BATON_OK || (rc = judge_partition(j, record)) != BATON_OK ||
        (rc = judge_ahead(j, request->at, record->at)) != BATON_OK) {
        return rc;
    }
    /* A run that ended is forgotten one day: a start that somebody copies later would begin it anew. */
    if (record->at.v > request->at.v + REQUEST_LIFE_MAX_MS) {
        return baton_fail(&j->err, BATON_E_handoff_expired,
                          "appended at %s, more than 7 days after %s; its sender may sign it again",
                          wall_text(record->at).s, wall_text(request->at).s);
    }
    return BATON_OK;
}

baton_code receipt_request(const struct receiver *receiver, const struct log_record *record,
                           struct receipt *ret_receipt)
{
    struct judgement j = judge_begin(receiver, PROOF_request, ret_receipt);
    struct headers headers;
    baton_code rc;
    if ((rc = judge_headers(&j, record, REQUEST_BYTES_MAX, false, &headers)) != BATON_OK ||
        (rc = judge_proof(&j)) != BATON_OK ||
        (rc = request_parse(j.value, j.value_len, &ret_receipt->request, &j.err)) != BATON_OK ||
        (rc = check_request(&j, record)) != BATON_OK) {
        return judge_finish(&j, rc);
    }
    if (!judge_keep(headers.traceparent, &ret_receipt->traceparent)) {
        rc = judge_no_memory(&j);
    }
    return judge_finish(&j, rc);
}

/* ---- outcomes ---- */

/* Does it say that its service executes, or has executed, the turn? Whatever else is told of a turn (it
 * is parked, since the role is not served here; it went on elsewhere) asks for no right to the role. */
static bool tells_work(const struct outcome *o)
{
    return o->event == OUTCOME_claimed || o->event == OUTCOME_completed || o->result != NULL ||
           (o->has_state && (o->state == TURN_running || o->state == TURN_completed));
}

/* Runs end, and requests are answered, by the word of who may coordinate; all else is a service's. */
static bool of_run(const struct outcome *o)
{
    return o->event == OUTCOME_run_ended ||
           (o->event == OUTCOME_answer && !o->has_role && o->run_id.s[0] != '\0');
}

static baton_code check_speaker(struct judgement *j)
{
    const struct outcome *o = j->receipt->outcome;
    const struct trust_principal *who = j->receipt->signer;
    const char *name = trust_principal_name(who);
    if (of_run(o) || strcmp(o->service.s, OUTCOME_COORDINATOR) == 0) {
        if (!trust_may_coordinate(who) || strcmp(o->service.s, OUTCOME_COORDINATOR) != 0 ||
            !(o->event == OUTCOME_run_ended || o->event == OUTCOME_answer)) {
            return baton_fail(&j->err, BATON_E_not_permitted,
                              "%s may not say '%s' of a run in the name of %s", name,
                              outcome_word(o->event), o->service.s);
        }
        return BATON_OK;
    }
    if (trust_principal_kind(who) != PRINCIPAL_service || strcmp(name, o->service.s) != 0) {
        return baton_fail(&j->err, BATON_E_not_permitted,
                          "the outcome is told in the name of %s, and is signed by %s",
                          o->service.s, name);
    }
    if (o->has_role && tells_work(o) && !trust_may_serve(who, o->role)) {
        return baton_fail(&j->err, BATON_E_not_permitted, "%s may not serve turns of role %s", name,
                          role_word(o->role));
    }
    return BATON_OK;
}

static baton_code check_outcome(struct judgement *j, const struct log_record *record)
{
    const struct outcome *o = j->receipt->outcome;
    /* An answer about neither run nor turn goes under its own id. */
    const char *due = o->run_id.s[0] != '\0'    ? o->run_id.s
                      : o->turn_id.s[0] != '\0' ? o->turn_id.s
                                                : o->answers_id.s;
    if (o->event == OUTCOME_run_ended && o->run_id.s[0] == '\0') {
        return baton_fail(&j->err, BATON_E_invalid_envelope, "the end of a run that has no id");
    }
    baton_code rc = check_key(j, "outcome", due);
    if (rc == BATON_OK && j->receiver->proof_required) {
        rc = check_speaker(j);
    }
    return rc == BATON_OK ? judge_partition(j, record) : rc;
}

/* The passes that travel along, as they came: what they are signed over is the turn (receipt_outcome_chain). */
static baton_code keep_passes(struct judgement *j, const struct proofs *proofs)
{
    struct receipt *r = j->receipt;
    for (size_t i = 0; i < proofs->n_passes; i++) {
        struct pass *pass = &r->passes[i];
        baton_code rc = pass_parse(proofs->parts[i].statement, pass, &j->err);
        if (rc != BATON_OK) {
            return rc;
        }
        if (!judge_keep(proofs->passes[i], &pass->text)) {
            return judge_no_memory(j);
        }
        r->n_passes++;
    }
    return BATON_OK;
}

baton_code receipt_outcome(const struct receiver *receiver, const struct log_record *record,
                           struct receipt *ret_receipt)
{
    struct judgement j = judge_begin(receiver, PROOF_outcome, ret_receipt);
    struct headers headers;
    baton_code rc;
    if ((rc = judge_headers(&j, record, LIMIT_RECORD, true, &headers)) != BATON_OK) {
        return judge_finish(&j, rc);
    }
    j.proofs.n_passes = 0;
    if ((rc = judge_proof(&j)) != BATON_OK ||
        (rc = outcome_parse(j.value, j.value_len, &ret_receipt->outcome, &j.err)) != BATON_OK ||
        (rc = keep_passes(&j, &headers.proofs)) != BATON_OK ||
        (rc = check_outcome(&j, record)) != BATON_OK) {
        return judge_finish(&j, rc);
    }
    if (!judge_keep(headers.traceparent, &ret_receipt->traceparent)) {
        rc = judge_no_memory(&j);
    }
    return judge_finish(&j, rc);
}
