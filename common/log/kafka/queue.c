/*
 * A partition's own queue: taken off the consumer's main queue, sought, and read only when there is
 * capacity. That is the back-pressure; pause and resume are not used.
 *
 * In: rebalance.c (opening, closing), common/log/log.c (seek, fetch)
 */
#include "common/log/kafka/member.h"

#include "common/base/check.h"
#include "common/log/batch.h"

#include <string.h>
#include <unistd.h>

#define SEEK_TIMEOUT_MS 1000

void queue_open(struct kafka_member *member, int input, int32_t partition)
{
    static const uint64_t one = 1;
    struct kafka_queue *own = &member->queues[input][partition];
    BATON_PRE(own->queue == NULL);
    own->queue =
        rd_kafka_queue_get_partition(member->consumer, member->spec.inputs[input], partition);
    if (own->queue == NULL) {
        check_failed("allocation", "the queue of a partition", __FILE__, __LINE__);
    }
    rd_kafka_queue_forward(own->queue, NULL);
    rd_kafka_queue_io_event_enable(own->queue, member->fd, &one, sizeof(one));
    own->next = LOG_OFFSET_NONE;
    own->started = LOG_OFFSET_NONE;
    own->going = false;
    own->at_end = false;
}

void queues_close(struct kafka_member *member)
{
    for (int input = 0; input < LOG_INPUTS; input++) {
        for (int32_t p = 0; p < LOG_PARTITIONS_MAX; p++) {
            struct kafka_queue *own = &member->queues[input][p];
            if (own->queue != NULL) {
                rd_kafka_queue_io_event_enable(own->queue, -1, NULL, 0);
                rd_kafka_queue_destroy(own->queue);
                own->queue = NULL;
            }
        }
    }
}

/* Throws away what the client had fetched from where it was. */
static baton_code seek_client(struct kafka_member *member, int input, int32_t partition,
                              int64_t offset, struct baton_error *err)
{
    const int64_t end = mono_now().v + SEEK_TIMEOUT_MS;
    rd_kafka_resp_err_t cause;
    /* Right after an assignment the client has not begun to fetch: it says so, for some ms. */
    while ((cause = rd_kafka_seek(member->inputs[input], partition, offset, SEEK_TIMEOUT_MS)) ==
               RD_KAFKA_RESP_ERR__STATE &&
           mono_now().v < end) {
        usleep(1000);
    }
    return cause == RD_KAFKA_RESP_ERR_NO_ERROR
               ? BATON_OK
               : kafka_fail_client(err, &member->consumer_client, cause, KAFKA_TRIED_seek,
                                   member->spec.inputs[input]);
}

baton_code kafka_member_seek(struct log_member *base, int input, int32_t partition, int64_t offset,
                             struct baton_error *err)
{
    struct kafka_member *member = (struct kafka_member *)base;
    struct kafka_queue *own = &member->queues[input][partition];
    if (own->queue == NULL) {
        return baton_fail(err, BATON_E_service_unavailable,
                          "partition %d of %s is not assigned to %s any more", partition,
                          member->spec.inputs[input], member->spec.worker);
    }
    /* The client begins at the committed offset by itself. */
    if (own->started != LOG_OFFSET_NONE && own->started == offset) {
        own->next = offset;
        return BATON_OK;
    }
    baton_code rc = seek_client(member, input, partition, offset, err);
    if (rc == BATON_OK) {
        own->next = offset;
        own->going = false;
        own->at_end = false;
        own->started = LOG_OFFSET_NONE;
    }
    return rc;
}

/*
 * Is it where reading goes on? What comes below is of before a seek, and passed over; or else the
 * topic was deleted and made again, and the client has begun anew: then reading does, too.
 */
static bool expected(struct kafka_member *member, int input, struct kafka_queue *own,
                     const rd_kafka_message_t *message)
{
    if (message->offset >= own->next) {
        own->going = true;
    } else if (own->going) {
        diag_line(DIAG_warn, "kafka.topic_begins_anew", D_TEXT("topic", member->spec.inputs[input]),
                  D_INT("partition", message->partition), D_INT("offset", message->offset),
                  D_INT("expected", own->next));
    }
    return own->going;
}

/* Takes in one message of the queue; false: it was the end, or nothing for the caller. */
static bool take(struct kafka_member *member, int input, struct kafka_queue *own,
                 rd_kafka_message_t *message, struct log_batch *batch)
{
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        if (expected(member, input, own, message)) {
            own->next = message->offset;
            own->at_end = true;
        }
    } else if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        diag_limited(&member->limit, DIAG_warn, "kafka.fetch_failed",
                     D_TEXT("topic", member->spec.inputs[input]),
                     D_INT("partition", message->partition),
                     D_TEXT("error", rd_kafka_message_errstr(message)));
    } else if (expected(member, input, own, message)) {
        own->next = message->offset + 1;
        own->at_end = false;
        if (!kafka_batch_add(batch, message)) {
            check_failed("allocation", "a batch of records", __FILE__, __LINE__);
        }
        return true;
    }
    return false;
}

int64_t kafka_member_end(struct log_member *base, int input, int32_t partition)
{
    struct kafka_member *member = (struct kafka_member *)base;
    int64_t low = 0;
    int64_t high = 0;
    return rd_kafka_get_watermark_offsets(member->consumer, member->spec.inputs[input], partition,
                                          &low, &high) == RD_KAFKA_RESP_ERR_NO_ERROR &&
                   high >= 0
               ? high
               : LOG_OFFSET_NONE;
}

/* Nothing more as far as the last answer of the broker tells: the end is known without waiting for
 * the event of an empty fetch. */
static bool reached(struct kafka_member *member, int input, int32_t partition, int64_t next)
{
    const int64_t end = kafka_member_end(&member->base, input, partition);
    return end != LOG_OFFSET_NONE && next >= end;
}

baton_code kafka_member_fetch(struct log_member *base, int input, int32_t partition, size_t max,
                              size_t bytes_max, struct log_batch *batch, struct baton_error *err)
{
    struct kafka_member *member = (struct kafka_member *)base;
    struct kafka_queue *own = &member->queues[input][partition];
    size_t bytes = 0;

    if (!batch_begin(batch, member->spec.inputs[input], partition)) {
        return baton_fail(err, BATON_E_no_memory, "out of memory for a batch of records");
    }
    batch->at_end = false;
    batch->next_offset = own->next == LOG_OFFSET_NONE ? 0 : own->next;
    if (own->queue == NULL || own->next == LOG_OFFSET_NONE) {
        return BATON_OK; /* revoked meanwhile; the next poll says so */
    }
    while (batch->count < max && bytes < bytes_max) {
        rd_kafka_message_t *message = rd_kafka_consume_queue(own->queue, 0);
        if (message == NULL) {
            break;
        }
        const size_t size = message->err == 0 ? message->len + message->key_len : 0;
        if (take(member, input, own, message, batch)) {
            own->started = LOG_OFFSET_NONE;
            bytes += size;
        }
        rd_kafka_message_destroy(message);
    }
    batch->next_offset = own->next;
    batch->at_end = own->at_end || (batch->count < max && bytes < bytes_max &&
                                    reached(member, input, partition, own->next));
    return BATON_OK;
}
