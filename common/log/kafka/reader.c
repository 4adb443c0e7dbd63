/*
 * Reading one partition without a group. In: common/log/log.c. Out: reader_pool.c, message.c.
 *
 * Each call asks for the partition's end first and then brings what lies below it, so that "there is
 * nothing more" is true; only beyond that end does it wait. The end as such is an event of the
 * client (control records never show, and offsets pass over them). Nothing is fetched before there
 * is something to fetch: looking at an empty partition is one question.
 */
#include "common/log/kafka/reader.h"
#include "common/log/kafka/state.h"

#include "common/base/clock.h"
#include "common/log/batch.h"

#include <stdlib.h>
#include <string.h>

#define ANSWER_TIMEOUT_MS 10000
#define WAIT_SLICE_MS 500

struct kafka_reader {
    struct log_reader base;
    struct kafka_log *log;
    struct reader_handle *handle;
    rd_kafka_topic_t *topic;
    rd_kafka_queue_t *queue;
    char *name;
    int32_t partition;
    int64_t pos;
    bool clamped; /* pos lies in what is there */
    bool started; /* the client fetches */
};

void kafka_reader_close(struct log_reader *base)
{
    struct kafka_reader *reader = (struct kafka_reader *)base;
    if (reader->started) {
        rd_kafka_consume_stop(reader->topic, reader->partition);
    }
    if (reader->queue != NULL) {
        rd_kafka_queue_destroy(reader->queue);
    }
    if (reader->topic != NULL) {
        rd_kafka_topic_destroy(reader->topic);
    }
    if (reader->handle != NULL) {
        reader_pool_give(reader->handle, reader->name, reader->partition);
    }
    free(reader->name);
    free(reader);
}

static baton_code fail(struct kafka_reader *reader, rd_kafka_resp_err_t cause,
                       struct baton_error *err)
{
    rd_kafka_poll(reader->handle->rk, 0);
    baton_code rc =
        kafka_fail_client(err, &reader->handle->client, cause, "reading from", reader->name);
    if (rc == BATON_E_topic_missing) {
        kafka_topic_forget(reader->log, reader->name);
    }
    return rc;
}

baton_code kafka_reader_open(struct log *base, const char *topic, int32_t partition, int64_t from,
                             enum log_isolation isolation, struct log_reader **ret_reader,
                             struct baton_error *err)
{
    struct kafka_log *log = (struct kafka_log *)base;
    struct kafka_topic known;
    baton_code rc = kafka_topic_of(log, topic, ANSWER_TIMEOUT_MS, &known, err);
    if (rc == BATON_OK && (partition < 0 || partition >= known.partitions)) {
        rc = baton_fail(err, BATON_E_topic_missing, "topic %s has %d partitions and no number %d",
                        topic, known.partitions, partition);
    }
    if (rc != BATON_OK) {
        return rc;
    }
    struct kafka_reader *reader = calloc(1, sizeof(*reader));
    if (reader == NULL || (reader->name = strdup(topic)) == NULL) {
        free(reader);
        return baton_fail(err, BATON_E_no_memory, "topic %s: out of memory", topic);
    }
    reader->base.ops = base->ops;
    reader->log = log;
    reader->partition = partition;
    reader->pos = from > 0 ? from : 0;
    rc = reader_pool_take(log, isolation, topic, partition, &reader->handle, err);
    if (rc == BATON_OK) {
        reader->queue = rd_kafka_queue_new(reader->handle->rk);
        reader->topic = rd_kafka_topic_new(reader->handle->rk, topic, NULL);
        rc = reader->topic != NULL ? BATON_OK : fail(reader, rd_kafka_last_error(), err);
    }
    if (rc != BATON_OK) {
        kafka_reader_close(&reader->base);
        return rc;
    }
    *ret_reader = &reader->base;
    return BATON_OK;
}

static baton_code start(struct kafka_reader *reader, struct baton_error *err)
{
    if (reader->started) {
        return BATON_OK;
    }
    if (rd_kafka_consume_start_queue(reader->topic, reader->partition, reader->pos,
                                     reader->queue) != 0) {
        return fail(reader, rd_kafka_last_error(), err);
    }
    reader->started = true;
    return BATON_OK;
}

/* An error of the client that no waiting mends. */
static bool final(rd_kafka_resp_err_t cause)
{
    baton_code code = kafka_code(cause);
    return code == BATON_E_topic_missing || code == BATON_E_not_permitted;
}

/* Takes in one message of the queue, whatever it is. */
static baton_code take(struct kafka_reader *reader, rd_kafka_message_t *message,
                       struct log_batch *batch, struct baton_error *err)
{
    baton_code rc = BATON_OK;
    rd_kafka_resp_err_t cause = message->err;
    if (cause == RD_KAFKA_RESP_ERR_NO_ERROR) {
        if (kafka_batch_add(batch, message)) {
            reader->pos = message->offset + 1;
        } else {
            rc = baton_fail(err, BATON_E_no_memory, "topic %s: out of memory", reader->name);
        }
    } else if (cause == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        reader->pos = message->offset > reader->pos ? message->offset : reader->pos;
    } else if (final(cause)) {
        rc = fail(reader, cause, err);
    }
    rd_kafka_message_destroy(message);
    return rc;
}

/* Takes what is in the queue; waits at most wait_ms for the first message. */
static baton_code drain(struct kafka_reader *reader, size_t max, int64_t wait_ms,
                        struct log_batch *batch, struct baton_error *err)
{
    baton_code rc = BATON_OK;
    while (rc == BATON_OK && batch->count < max) {
        rd_kafka_message_t *message =
            rd_kafka_consume_queue(reader->queue, (int)(wait_ms > 0 ? wait_ms : 0));
        if (message == NULL) {
            break;
        }
        wait_ms = 0;
        rc = take(reader, message, batch, err);
    }
    return rc;
}

/* Where reading may begin: not before what is there, and not behind what was ever written. */
static baton_code clamp(struct kafka_reader *reader, int64_t low, int64_t end,
                        struct baton_error *err)
{
    if (reader->clamped) {
        return BATON_OK;
    }
    if (reader->pos >
        end) { /* a transaction may be open there: then it is the real end that counts */
        rd_kafka_resp_err_t cause = kafka_ends(reader->log->admin, reader->name, reader->partition,
                                               ANSWER_TIMEOUT_MS, &low, &end);
        if (cause != RD_KAFKA_RESP_ERR_NO_ERROR) {
            return fail(reader, cause, err);
        }
    }
    reader->pos = reader->pos < low ? low : reader->pos > end ? end : reader->pos;
    reader->clamped = true;
    return BATON_OK;
}

/* Brings what is there at this moment, up to max records. */
static baton_code bring(struct kafka_reader *reader, size_t max, struct log_batch *batch,
                        struct baton_error *err)
{
    const int64_t until_ms = mono_now().v + ANSWER_TIMEOUT_MS;
    int64_t low = 0;
    int64_t end = 0;
    baton_code rc = reader->started ? drain(reader, max, 0, batch, err) : BATON_OK;
    if (rc != BATON_OK || batch->count >= max) {
        return rc;
    }
    rd_kafka_resp_err_t cause = kafka_ends(reader->handle->rk, reader->name, reader->partition,
                                           ANSWER_TIMEOUT_MS, &low, &end);
    if (cause != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return fail(reader, cause, err);
    }
    if ((rc = clamp(reader, low, end, err)) != BATON_OK) {
        return rc;
    }
    if (reader->pos < end) {
        rc = start(reader, err);
    }
    while (rc == BATON_OK && reader->pos < end && batch->count < max) {
        if (mono_now().v >= until_ms) {
            return fail(reader, RD_KAFKA_RESP_ERR__TIMED_OUT, err);
        }
        rc = drain(reader, max, WAIT_SLICE_MS, batch, err);
    }
    batch->at_end = reader->pos >= end;
    return rc;
}

baton_code kafka_reader_next(struct log_reader *base, size_t max, int64_t timeout_ms,
                             struct log_batch *batch, struct baton_error *err)
{
    struct kafka_reader *reader = (struct kafka_reader *)base;
    const int64_t end_ms = mono_now().v + timeout_ms;
    if (!batch_begin(batch, reader->name, reader->partition)) {
        return baton_fail(err, BATON_E_no_memory, "topic %s: out of memory", reader->name);
    }
    rd_kafka_poll(reader->handle->rk, 0);
    baton_code rc = bring(reader, max, batch, err);
    if (rc == BATON_OK && batch->count == 0 && timeout_ms > 0) {
        rc = start(reader, err);
    }
    while (rc == BATON_OK && batch->count == 0 && mono_now().v < end_ms) {
        int64_t rest_ms = end_ms - mono_now().v;
        rc = drain(reader, max, rest_ms < WAIT_SLICE_MS ? rest_ms : WAIT_SLICE_MS, batch, err);
        rd_kafka_poll(reader->handle->rk, 0);
    }
    batch->next_offset = reader->pos;
    return rc;
}
