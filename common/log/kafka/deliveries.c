/*
 * The records of a transaction: sent, awaited, and which of them is to blame if they fail.
 *
 * In: commit.c; producer.c and librdkafka (deliveries_note)  Out: topic_cache.c (kafka_produce)
 */
#include "common/log/kafka/member.h"

#include "common/base/check.h"

#include <stdlib.h>

#define FLUSH_STEP_MS 250
#define QUEUE_STEP_MS 5

bool deliveries_begin(struct kafka_member *member, size_t n)
{
    if (member->cap_deliveries < n) {
        struct delivery *more = realloc(member->deliveries, n * sizeof(*more));
        if (more == NULL) {
            return false;
        }
        member->deliveries = more;
        member->cap_deliveries = n;
    }
    for (size_t i = 0; i < n; i++) {
        member->deliveries[i] =
            (struct delivery){RD_KAFKA_RESP_ERR__NOENT, -1, LOG_OFFSET_NONE, {0}};
    }
    member->n_deliveries = n;
    member->txn_no++;
    return true;
}

void deliveries_note(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
    const struct kafka_client *client = opaque;
    struct kafka_member *member = client->owner;
    const uint64_t tag = (uint64_t)(uintptr_t)message->_private;
    const size_t index = (size_t)(tag & 0xffffffff);
    (void)rk;
    if (member == NULL || (uint32_t)(tag >> 32) != member->txn_no ||
        index >= member->n_deliveries) {
        return; /* of a transaction that was aborted */
    }
    /* A success without an offset is inferred from a later batch's: see publisher.c. */
    member->deliveries[index].cause =
        message->err == RD_KAFKA_RESP_ERR_NO_ERROR && message->offset < 0
            ? RD_KAFKA_RESP_ERR__MSG_TIMED_OUT
            : message->err;
    member->deliveries[index].partition = message->partition;
    member->deliveries[index].offset = message->offset;
    if (member->deliveries[index].cause == RD_KAFKA_RESP_ERR_NO_ERROR) {
        member->deliveries[index].at = kafka_dated(member->log, message);
    }
}

rd_kafka_resp_err_t deliveries_send(struct kafka_member *member, const struct log_record *record,
                                    size_t index)
{
    const uint64_t tag = (uint64_t)member->txn_no << 32 | index;
    rd_kafka_resp_err_t cause;
    do {
        cause = kafka_produce(member->producer, record, (void *)(uintptr_t)tag);
        if (cause == RD_KAFKA_RESP_ERR__QUEUE_FULL) {
            rd_kafka_poll(member->producer, QUEUE_STEP_MS);
        }
    } while (cause == RD_KAFKA_RESP_ERR__QUEUE_FULL &&
             rd_kafka_fatal_error(member->producer, NULL, 0) == RD_KAFKA_RESP_ERR_NO_ERROR);
    return cause;
}

static bool names_record(rd_kafka_resp_err_t cause)
{
    switch ((int)cause) {
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
    case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
    case RD_KAFKA_RESP_ERR_INVALID_RECORD:
    case RD_KAFKA_RESP_ERR_INVALID_MSG:
    case RD_KAFKA_RESP_ERR_POLICY_VIOLATION:
        return true;
    default:
        return false;
    }
}

static size_t undelivered(const struct kafka_member *member)
{
    size_t n = 0;
    for (size_t i = 0; i < member->n_deliveries; i++) {
        n += member->deliveries[i].cause == RD_KAFKA_RESP_ERR__NOENT;
    }
    return n;
}

static rd_kafka_resp_err_t first_failure(const struct kafka_member *member)
{
    for (size_t i = 0; i < member->n_deliveries; i++) {
        const rd_kafka_resp_err_t cause = member->deliveries[i].cause;
        if (cause != RD_KAFKA_RESP_ERR_NO_ERROR && cause != RD_KAFKA_RESP_ERR__NOENT) {
            return cause;
        }
    }
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* Has the transaction failed already, though its records wait? Beginning another one within it says
 * so and does nothing else. */
static bool must_abort(struct kafka_member *member, rd_kafka_resp_err_t *ret_cause)
{
    rd_kafka_error_t *error = rd_kafka_begin_transaction(member->producer);
    if (error == NULL) {
        check_failed("transaction", "two at a time", __FILE__, __LINE__);
    }
    const bool must =
        rd_kafka_error_txn_requires_abort(error) != 0 || rd_kafka_error_is_fatal(error) != 0;
    if (must) {
        *ret_cause = rd_kafka_error_code(error);
    }
    rd_kafka_error_destroy(error);
    return must;
}

rd_kafka_resp_err_t deliveries_why(struct kafka_member *member, rd_kafka_resp_err_t failed)
{
    rd_kafka_resp_err_t cause;
    return failed != RD_KAFKA_RESP_ERR_NO_ERROR && !names_record(failed) &&
                   must_abort(member, &cause)
               ? cause
               : failed;
}

rd_kafka_resp_err_t deliveries_await(struct kafka_member *member, struct deadline deadline)
{
    rd_kafka_resp_err_t cause = RD_KAFKA_RESP_ERR_NO_ERROR;
    while (undelivered(member) > 0 && first_failure(member) == RD_KAFKA_RESP_ERR_NO_ERROR) {
        const int left = deadline_left_ms(deadline);
        rd_kafka_flush(member->producer, left < FLUSH_STEP_MS ? left : FLUSH_STEP_MS);
        if (undelivered(member) == 0) {
            break;
        }
        if (must_abort(member, &cause)) {
            return cause;
        }
        if (member_over(member, deadline)) {
            return RD_KAFKA_RESP_ERR__TIMED_OUT;
        }
    }
    return deliveries_why(member, first_failure(member));
}

/* All of a batch are blamed for one that is too large: that is the largest. */
int64_t deliveries_blamed(const struct kafka_member *member, const struct log_txn *txn,
                          rd_kafka_resp_err_t *ret_cause)
{
    int64_t culprit = -1;
    size_t largest = 0;
    for (size_t i = 0; i < txn->n_records && i < member->n_deliveries; i++) {
        const rd_kafka_resp_err_t cause = member->deliveries[i].cause;
        const struct log_record *record = &txn->records[i];
        const size_t size = record->key_len + record->value_len;
        if (!names_record(cause)) {
            continue;
        }
        if (cause == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE ? size <= largest : culprit >= 0) {
            continue;
        }
        culprit = (int64_t)i;
        largest = size;
        *ret_cause = cause;
    }
    return culprit;
}
