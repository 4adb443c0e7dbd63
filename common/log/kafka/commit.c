/*
 * One transaction: produce, flush, offsets, commit (protocol rules 11 to 15).
 *
 *   none -> open -> committing -> unseen -> none
 *             \-> aborting ---/        broken: only kafka_member_renew goes on from there
 *
 * Every offset that is named goes to the broker with the group metadata kept from the assign
 * callback, as the last thing before the commit and after a flush, so that an owner who has been
 * replaced is refused. A record that cannot be written is found before anything is sent where that
 * can be known, else by its delivery report, else by asking for each topic alone.
 *
 * In: common/log/log.c (kafka_commit)  Out: deliveries.c, confirm.c
 */
#include "common/log/kafka/member.h"

#include "common/base/check.h"
#include "common/base/fault.h"

#include <stdlib.h>
#include <string.h>

#define ABORT_TIMEOUT_MS 5000
#define TOPIC_TIMEOUT_MS 2000
#define STEP_MS 1000

/* Of one call of librdkafka that may be repeated: so that a stop is heard meanwhile. */
static int step_ms(struct deadline deadline)
{
    const int left = deadline_left_ms(deadline);
    return left < STEP_MS ? left : STEP_MS;
}

/* ---- verdicts ---- */

static struct log_commit_result verdict(enum log_verdict kind, baton_code code, int64_t culprit)
{
    return (struct log_commit_result){kind, code, culprit};
}

/* The producer is of no use any more. */
static struct log_commit_result broken(struct kafka_member *member, rd_kafka_resp_err_t cause,
                                       struct baton_error *err)
{
    const bool fenced = cause == RD_KAFKA_RESP_ERR__FENCED ||
                        cause == RD_KAFKA_RESP_ERR_PRODUCER_FENCED ||
                        cause == RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH;
    member->txn = TXN_broken;
    kafka_fail(err, member->log, cause, KAFKA_TRIED_transact, member->transactional_id.s);
    diag_line(DIAG_warn, "kafka.producer_broken", D_TEXT("id", member->transactional_id.s),
              D_TEXT("error", rd_kafka_err2name(cause)));
    return verdict(fenced ? LOG_VERDICT_fenced : LOG_VERDICT_unknown, kafka_code(cause), -1);
}

/* What the group says to offsets of an assignment that is over. */
static bool says_lost(rd_kafka_resp_err_t cause)
{
    return cause == RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION ||
           cause == RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID ||
           cause == RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID;
}

/* ---- ending ---- */

/*
 * Every topic that the transaction named so far was refused, so for the coordinator it has never
 * begun, and there is nothing to abort: it says that this is no state to do so from, and the client
 * takes that for fatal. Nothing has happened; a new producer goes on.
 */
static bool never_began(const struct kafka_member *member, rd_kafka_resp_err_t cause)
{
    return cause == RD_KAFKA_RESP_ERR_INVALID_TXN_STATE &&
           (member->settled.code == BATON_E_not_permitted ||
            member->settled.code == BATON_E_topic_missing) &&
           member->settled.verdict == LOG_VERDICT_aborted;
}

static struct log_commit_result go_on_anew(struct kafka_member *member, struct baton_error *err)
{
    const struct log_commit_result settled = member->settled;
    struct baton_error why;
    confirm_never_begun(member);
    if (kafka_member_renew(&member->base, &why) != BATON_OK || member->txn != TXN_none) {
        return broken(member, RD_KAFKA_RESP_ERR_INVALID_TXN_STATE, err);
    }
    if (err != NULL) {
        *err = member->why;
    }
    return settled;
}

/* Ends the transaction without effect; the verdict is `settled` once it has ended. */
static struct log_commit_result abort_now(struct kafka_member *member, struct deadline deadline,
                                          struct baton_error *err)
{
    member->txn = TXN_aborting;
    for (;;) {
        rd_kafka_error_t *error = rd_kafka_abort_transaction(member->producer, step_ms(deadline));
        if (error == NULL) {
            member->txn = TXN_none;
            if (member->current != NULL) {
                confirm_ended(member, member->current, HANG_abort);
            }
            if (err != NULL) {
                *err = member->why;
            }
            return member->settled;
        }
        const rd_kafka_resp_err_t cause = rd_kafka_error_code(error);
        const bool fatal = rd_kafka_error_is_fatal(error) != 0;
        const bool again = rd_kafka_error_is_retriable(error) != 0;
        rd_kafka_error_destroy(error);
        if (never_began(member, cause)) {
            return go_on_anew(member, err);
        }
        if (fatal || !again) {
            return broken(member, cause, err);
        }
        if (member_over(member, deadline)) {
            kafka_fail_client(err, &member->producer_client, cause, KAFKA_TRIED_abort,
                              member->transactional_id.s);
            return verdict(LOG_VERDICT_unknown, kafka_code(cause), -1);
        }
    }
}

/* Nothing of it is to happen: why, and then the abort. */
static struct log_commit_result give_up(struct kafka_member *member, enum log_verdict kind,
                                        rd_kafka_resp_err_t cause, enum kafka_tried tried,
                                        const char *on, int64_t culprit, struct baton_error *err)
{
    const struct deadline deadline = deadline_in(ABORT_TIMEOUT_MS);
    const baton_code code =
        kafka_fail_client(&member->why, &member->producer_client, cause, tried, on);
    member->settled = verdict(kind, code, culprit);
    if (kind == LOG_VERDICT_lost) {
        member_found_lost(member);
    }
    return abort_now(member, deadline, err);
}

/* It is committed once readers see it. */
static struct log_commit_result say_committed(struct kafka_member *member,
                                              const struct log_txn *txn, struct deadline deadline,
                                              struct baton_error *err)
{
    const baton_code rc = confirm_wait(member, deadline, err);
    if (rc != BATON_OK || member->txn == TXN_broken) {
        return verdict(LOG_VERDICT_unknown, rc != BATON_OK ? rc : BATON_E_service_unavailable, -1);
    }
    member->txn = TXN_none;
    for (size_t i = 0; i < txn->n_records; i++) {
        txn->records[i].partition = member->deliveries[i].partition;
        txn->records[i].offset = member->deliveries[i].offset;
        txn->records[i].at = member->deliveries[i].at;
    }
    return verdict(LOG_VERDICT_committed, BATON_OK, -1);
}

static struct log_commit_result commit_now(struct kafka_member *member, const struct log_txn *txn,
                                           struct deadline deadline, struct baton_error *err)
{
    member->txn = TXN_committing;
    for (;;) {
        rd_kafka_error_t *error = rd_kafka_commit_transaction(member->producer, step_ms(deadline));
        if (error == NULL) {
            break;
        }
        const rd_kafka_resp_err_t cause = rd_kafka_error_code(error);
        const bool fatal = rd_kafka_error_is_fatal(error) != 0;
        const bool again = rd_kafka_error_is_retriable(error) != 0;
        const bool abortable = rd_kafka_error_txn_requires_abort(error) != 0;
        rd_kafka_error_destroy(error);
        if (abortable) {
            return give_up(member, LOG_VERDICT_aborted, cause, KAFKA_TRIED_commit,
                           member->transactional_id.s, -1, err);
        }
        if (fatal || !again) {
            confirm_unknown(member, txn);
            return broken(member, cause, err);
        }
        if (member_over(member, deadline)) {
            kafka_fail_client(err, &member->producer_client, cause, KAFKA_TRIED_commit,
                              member->transactional_id.s);
            return verdict(LOG_VERDICT_unknown, kafka_code(cause), -1);
        }
    }
    member->txn = TXN_unseen;
    confirm_ended(member, txn, HANG_commit);
    if (FAULT_FAILS(log_after_commit)) {
        return verdict(LOG_VERDICT_unknown, BATON_E_service_unavailable, -1);
    }
    return say_committed(member, txn, deadline, err);
}

/* ---- whose fault it is ---- */

/* Is it this topic that the transaction may not write? Asked in a transaction of its own, which is
 * aborted: readers at read_committed never see it. */
static bool denied(struct kafka_member *member, struct log_record record)
{
    const struct deadline deadline = deadline_in(TOPIC_TIMEOUT_MS);
    rd_kafka_error_t *error = rd_kafka_begin_transaction(member->producer);
    if (error != NULL) {
        rd_kafka_error_destroy(error);
        return false;
    }
    bool yes = false;
    member->current = NULL;
    if (deliveries_begin(member, 1) &&
        kafka_record_check(member->log, &record, TOPIC_TIMEOUT_MS, NULL) == BATON_OK &&
        deliveries_send(member, &record, 0) == RD_KAFKA_RESP_ERR_NO_ERROR) {
        yes = deliveries_await(member, deadline) == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
    }
    member->settled = verdict(LOG_VERDICT_aborted, yes ? BATON_E_not_permitted : BATON_OK, -1);
    (void)abort_now(member, deadline_in(ABORT_TIMEOUT_MS), NULL);
    return yes && member->txn == TXN_none;
}

/* Does an earlier record go to the same topic? */
static bool asked_before(const struct log_txn *txn, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (strcmp(txn->records[i].topic, txn->records[index].topic) == 0) {
            return true;
        }
    }
    return false;
}

static int64_t find_denied(struct kafka_member *member, const struct log_txn *txn)
{
    for (size_t i = 0; i < txn->n_records; i++) {
        if (!asked_before(txn, i) && denied(member, txn->records[i])) {
            return (int64_t)i;
        }
        if (member->txn != TXN_none) {
            break;
        }
    }
    return -1;
}

/* A topic that went away while its records waited. */
static int64_t find_missing(struct kafka_member *member, const struct log_txn *txn)
{
    struct kafka_topic topic;
    for (size_t i = 0; i < txn->n_records && i < member->n_deliveries; i++) {
        const rd_kafka_resp_err_t cause = member->deliveries[i].cause;
        if (cause == RD_KAFKA_RESP_ERR_NO_ERROR) {
            continue;
        }
        if (asked_before(txn, i)) {
            continue;
        }
        kafka_topic_forget(member->log, txn->records[i].topic);
        const baton_code rc =
            kafka_topic_of(member->log, txn->records[i].topic, TOPIC_TIMEOUT_MS, &topic, NULL);
        if (rc == BATON_E_topic_missing) {
            return (int64_t)i;
        }
        if (rc != BATON_OK) {
            break; /* nobody answers: it is not the topics */
        }
    }
    return -1;
}

/* May a topic have gone away, though no record's report names it? The coordinator of transactions
 * can hear of it before the client does, and then refuses all partitions that it is given at once. */
static bool may_be_missing(rd_kafka_resp_err_t cause)
{
    return cause == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT || cause == RD_KAFKA_RESP_ERR__TIMED_OUT ||
           cause == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
}

static struct log_commit_result delivery_failed(struct kafka_member *member,
                                                const struct log_txn *txn,
                                                rd_kafka_resp_err_t cause, struct baton_error *err)
{
    rd_kafka_resp_err_t fatal = rd_kafka_fatal_error(member->producer, NULL, 0);
    if (fatal != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return broken(member, fatal, err);
    }
    int64_t culprit = deliveries_blamed(member, txn, &cause);
    if (culprit < 0 && may_be_missing(cause)) {
        culprit = find_missing(member, txn);
        cause = culprit >= 0 ? RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART : cause;
    }
    if (culprit >= 0 && kafka_code(cause) == BATON_E_topic_missing) {
        kafka_topic_forget(member->log, txn->records[culprit].topic);
    }
    struct log_commit_result result = give_up(
        member, LOG_VERDICT_aborted, cause, KAFKA_TRIED_write,
        culprit >= 0 ? txn->records[culprit].topic : member->transactional_id.s, culprit, err);
    if (result.verdict == LOG_VERDICT_aborted && culprit < 0 &&
        cause == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED) {
        culprit = find_denied(member, txn);
        if (member->txn == TXN_broken) {
            return verdict(LOG_VERDICT_unknown, BATON_E_service_unavailable, -1);
        }
        result.culprit = culprit;
        if (culprit >= 0) {
            result.code =
                kafka_fail(err, member->log, cause, KAFKA_TRIED_write, txn->records[culprit].topic);
        }
    }
    return result;
}

/* ---- the steps in order ---- */

static bool ours(const struct kafka_member *member, int32_t partition)
{
    return partition >= 0 && partition < LOG_PARTITIONS_MAX && member->owned[partition];
}

/* The broker checks generation and member, not ownership: this is the second line (rule 13). */
static bool assignment_holds(const struct kafka_member *member, const struct log_txn *txn)
{
    if (member->place != PLACE_assigned || member->metadata == NULL ||
        txn->generation != member->generation) {
        return false;
    }
    for (size_t i = 0; i < txn->n_offsets; i++) {
        if (!ours(member, txn->offsets[i].partition)) {
            return false;
        }
    }
    for (size_t i = 0; i < txn->n_records; i++) {
        if (txn->records[i].partition != LOG_PARTITION_BY_KEY &&
            !ours(member, txn->records[i].partition)) {
            return false;
        }
    }
    return true;
}

/* Refuses before anything is sent. *ret_culprit: whose fault. */
static baton_code check_records(struct kafka_member *member, struct log_record *records,
                                const struct log_txn *txn, int64_t *ret_culprit,
                                struct baton_error *err)
{
    for (size_t i = 0; i < txn->n_records; i++) {
        records[i] = txn->records[i];
        baton_code rc = kafka_record_check(member->log, &records[i], TOPIC_TIMEOUT_MS, err);
        if (rc != BATON_OK) {
            *ret_culprit = (int64_t)i;
            return rc;
        }
    }
    return BATON_OK;
}

static struct log_commit_result send_offsets(struct kafka_member *member, const struct log_txn *txn,
                                             struct deadline deadline, struct baton_error *err)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)txn->n_offsets);
    for (size_t i = 0; i < txn->n_offsets; i++) {
        const struct log_offset *offset = &txn->offsets[i];
        rd_kafka_topic_partition_list_add(list, member->spec.inputs[offset->input],
                                          offset->partition)
            ->offset = offset->next;
    }
    rd_kafka_error_t *error = rd_kafka_send_offsets_to_transaction(
        member->producer, list, member->metadata, deadline_left_ms(deadline));
    rd_kafka_topic_partition_list_destroy(list);
    if (error == NULL) {
        return verdict(LOG_VERDICT_committed, BATON_OK, -1);
    }
    const rd_kafka_resp_err_t cause = rd_kafka_error_code(error);
    const bool fatal = rd_kafka_error_is_fatal(error) != 0;
    rd_kafka_error_destroy(error);
    if (fatal) {
        return broken(member, cause, err);
    }
    return give_up(member, says_lost(cause) ? LOG_VERDICT_lost : LOG_VERDICT_aborted, cause,
                   KAFKA_TRIED_move, member->spec.group, -1, err);
}

/* `records` are those of txn with their partitions. */
static struct log_commit_result run(struct kafka_member *member, const struct log_txn *txn,
                                    const struct log_record *records, struct deadline deadline,
                                    struct baton_error *err)
{
    rd_kafka_resp_err_t cause = RD_KAFKA_RESP_ERR_NO_ERROR;
    rd_kafka_error_t *error = rd_kafka_begin_transaction(member->producer);
    if (error != NULL) {
        cause = rd_kafka_error_code(error);
        rd_kafka_error_destroy(error);
        return broken(member, cause, err);
    }
    member->txn = TXN_open;
    confirm_begun(member);
    for (size_t i = 0; i < txn->n_records && cause == RD_KAFKA_RESP_ERR_NO_ERROR; i++) {
        cause = deliveries_send(member, &records[i], i);
        if (cause != RD_KAFKA_RESP_ERR_NO_ERROR) {
            member->n_deliveries = i + 1; /* the others were never sent */
            member->deliveries[i].cause = cause;
        }
    }
    cause = cause == RD_KAFKA_RESP_ERR_NO_ERROR ? deliveries_await(member, deadline)
                                                : deliveries_why(member, cause);
    if (cause != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return delivery_failed(member, txn, cause, err);
    }
    struct log_commit_result result = send_offsets(member, txn, deadline, err);
    if (result.verdict != LOG_VERDICT_committed) {
        return result;
    }
    if (FAULT_FAILS(log_before_commit)) {
        member->txn = TXN_aborting;
        member->settled = verdict(LOG_VERDICT_aborted, BATON_E_service_unavailable, -1);
        return verdict(LOG_VERDICT_unknown, BATON_E_service_unavailable, -1);
    }
    return commit_now(member, txn, deadline, err);
}

baton_code kafka_commit(struct log_member *base, const struct log_txn *txn, int64_t timeout_ms,
                        struct log_commit_result *ret_result, struct baton_error *err)
{
    struct kafka_member *member = (struct kafka_member *)base;
    const struct deadline deadline = deadline_in(timeout_ms);
    int64_t culprit = -1;

    member->current = txn;
    switch (member->txn) {
    case TXN_committing: /* the same call again */
        *ret_result = commit_now(member, txn, deadline, err);
        return BATON_OK;
    case TXN_aborting:
        *ret_result = abort_now(member, deadline, err);
        return BATON_OK;
    case TXN_unseen:
        *ret_result = say_committed(member, txn, deadline, err);
        return BATON_OK;
    case TXN_broken:
        *ret_result = verdict(LOG_VERDICT_unknown, BATON_E_service_unavailable, -1);
        return BATON_OK;
    case TXN_none:
    case TXN_open:
        break;
    }
    BATON_PRE(member->txn == TXN_none);
    baton_code rc = confirm_wait(member, deadline, err); /* of one that was aborted */
    if (rc != BATON_OK) {
        return rc; /* nothing was begun */
    }
    if (member->txn == TXN_broken) {
        *ret_result = verdict(LOG_VERDICT_unknown, BATON_E_service_unavailable, -1);
        return BATON_OK;
    }
    if (!assignment_holds(member, txn)) {
        *ret_result = verdict(LOG_VERDICT_lost, BATON_OK, -1);
        return BATON_OK;
    }
    struct log_record *records = malloc((txn->n_records + 1) * sizeof(*records));
    if (records == NULL || !deliveries_begin(member, txn->n_records)) {
        free(records);
        return baton_fail(err, BATON_E_no_memory, "out of memory for a transaction");
    }
    rc = check_records(member, records, txn, &culprit, err);
    if (rc != BATON_OK) {
        free(records);
        if (baton_code_class(rc) == BATON_CLASS_retry && rc != BATON_E_topic_missing) {
            return rc; /* nothing was sent */
        }
        *ret_result = verdict(LOG_VERDICT_aborted, rc, culprit);
        return BATON_OK;
    }
    *ret_result = run(member, txn, records, deadline, err);
    free(records);
    return BATON_OK;
}
