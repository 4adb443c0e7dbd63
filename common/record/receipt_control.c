/*
 * On receipt of a control record: that its signer may send this kind to this service.
 * In: common/engine/intake.c, worker/operate.c (receipt_may_cancel)
 */
#include "common/record/receipt_stages.h"

#include "common/base/limits.h"
#include "common/base/text.h"

#include <string.h>

static bool may_control(const struct judgement *j)
{
    const struct trust_principal *who = j->receipt->signer;
    const char *here = j->receiver->service;
    switch (j->receipt->control->kind) {
    case CONTROL_cancel:
        /* Whether this turn's origin, or who operates its first service, is asked once it is known.
         */
        return trust_principal_kind(who) != PRINCIPAL_service &&
               (trust_may_operate_any(who) || trust_may_create_any(who));
    case CONTROL_replay:
    case CONTROL_pause:
    case CONTROL_resume:
    case CONTROL_clear:
        return trust_may_operate(who, here);
    case CONTROL_renew:
    case CONTROL_report:
        return trust_principal_kind(who) == PRINCIPAL_service &&
               strcmp(trust_principal_name(who), here) == 0;
    case CONTROL_COUNT:
        break;
    }
    return false;
}

static baton_code check_control(struct judgement *j, const struct log_record *record)
{
    const struct control *control = j->receipt->control;
    const char *service_key = control_service_key(control->kind);
    const bool by_number = service_key != NULL;
    const char *due = by_number ? service_key : control->turn_id.s;
    if (j->key_len != strlen(due) || memcmp(j->key, due, j->key_len) != 0) {
        return baton_fail(&j->err, BATON_E_invalid_envelope,
                          "the key of this %s must be '%s', not '%s'", control_word(control->kind),
                          due, text_quote(j->key, j->key_len).s);
    }
    if (j->receiver->proof_required && !may_control(j)) {
        return baton_fail(&j->err, BATON_E_not_permitted, "%s may not send a %s to %s",
                          trust_principal_name(j->receipt->signer), control_word(control->kind),
                          j->receiver->service);
    }
    baton_code rc = by_number ? BATON_OK : judge_partition(j, record);
    return rc != BATON_OK ? rc : judge_ahead(j, control->at, record->at);
}

bool receipt_may_cancel(const struct receiver *receiver, const struct receipt *receipt,
                        const char *origin, const char *born)
{
    if (!receiver->proof_required) {
        return true;
    }
    const struct trust_principal *who = receipt->signer;
    return who != NULL && trust_principal_kind(who) != PRINCIPAL_service &&
           (strcmp(trust_principal_name(who), origin) == 0 || trust_may_operate(who, born) ||
            trust_may_operate(who, receiver->service));
}

baton_code receipt_control(const struct receiver *receiver, const struct log_record *record,
                           struct receipt *ret_receipt)
{
    struct judgement j = judge_begin(receiver, PROOF_control, ret_receipt);
    struct headers headers;
    baton_code rc;
    if ((rc = judge_headers(&j, record, LIMIT_HANDOFF_RECORD, false, &headers)) != BATON_OK ||
        (rc = judge_proof(&j)) != BATON_OK ||
        (rc = control_parse(j.value, j.value_len, &ret_receipt->control, &j.err)) != BATON_OK) {
        return judge_finish(&j, rc);
    }
    return judge_finish(&j, check_control(&j, record));
}
