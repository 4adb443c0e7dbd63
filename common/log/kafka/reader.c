/*
 * Reading one partition without a group. In: common/log/log.c. Out: reader_pool.c, message.c.
 *
 * Each call asks for the partition's end first and then brings what lies below it, so that "there is
 * nothing more" is true; only beyond that end does it wait. The end as such is an event of the
 * client (control records never show, and offsets pass over them). Nothing is fetched before there
 * is something to fetch: looking at an empty partition is one question.
 *
 * Bringing and waiting are done by two clients: a broker answers one request after another, so
 * whatever is asked behind a fetch that waits, waits with it; and a fetch that never waits, repeated
 * for as long as a reader is open, would keep both sides busy.
 */
#include "common/log/kafka/reader_pool.h"
#include "common/log/kafka/state.h"

#include "common/base/clock.h"
#include "common/log/batch.h"

#include <stdlib.h>
#include <string.h>

#define ANSWER_TIMEOUT_MS 10000
#define WAIT_SLICE_MS 500

/* A place in a client. */
struct seat {
    struct reader_handle *handle; /* NULL: not taken yet */
    rd_kafka_topic_t *topic;
    rd_kafka_queue_t *queue;
    bool started; /* the client fetches */
};

struct kafka_reader {
    struct log_reader base;
    struct kafka_log *log;
    struct seat bring; /* from the beginning */
    struct seat wait;  /* from the first wait */
    char *name;
    int32_t partition;
    enum log_isolation isolation;
    int64_t pos;
    size_t bytes; /* taken by this call */
    bool clamped; /* pos lies in what is there */
};

/* ---- seats ---- */

static void seat_stop(struct kafka_reader *reader, struct seat *seat)
{
    if (seat->started) {
        rd_kafka_consume_stop(seat->topic, reader->partition);
        seat->started = false;
    }
}

static void seat_leave(struct kafka_reader *reader, struct seat *seat)
{
    seat_stop(reader, seat);
    if (seat->queue != NULL) {
        rd_kafka_queue_destroy(seat->queue);
    }
    if (seat->topic != NULL) {
        rd_kafka_topic_destroy(seat->topic);
    }
    if (seat->handle != NULL) {
        reader_pool_give(seat->handle, reader->name, reader->partition);
    }
}

static baton_code fail(struct kafka_reader *reader, struct seat *seat, rd_kafka_resp_err_t cause,
                       struct baton_error *err)
{
    rd_kafka_poll(seat->handle->rk, 0);
    baton_code rc = kafka_unreachable(
        kafka_fail_client(err, &seat->handle->client, cause, KAFKA_TRIED_read, reader->name), err);
    if (rc == BATON_E_topic_missing) {
        kafka_topic_forget(reader->log, reader->name);
    }
    return rc;
}

static baton_code seat_take(struct kafka_reader *reader, struct seat *seat, bool waits,
                            struct baton_error *err)
{
    if (seat->handle != NULL) {
        return BATON_OK;
    }
    const struct reader_kind kind = {reader->isolation, waits};
    baton_code rc =
        reader_pool_take(reader->log, kind, reader->name, reader->partition, &seat->handle, err);
    if (rc != BATON_OK) {
        return rc;
    }
    seat->topic = rd_kafka_topic_new(seat->handle->rk, reader->name, NULL);
    return seat->topic != NULL ? BATON_OK : fail(reader, seat, rd_kafka_last_error(), err);
}

static baton_code seat_start(struct kafka_reader *reader, struct seat *seat,
                             struct baton_error *err)
{
    if (seat->started) {
        return BATON_OK;
    }
    if (seat->queue != NULL) { /* nothing of an earlier start may be in it */
        rd_kafka_queue_destroy(seat->queue);
    }
    seat->queue = rd_kafka_queue_new(seat->handle->rk);
    if (rd_kafka_consume_start_queue(seat->topic, reader->partition, reader->pos, seat->queue) !=
        0) {
        return fail(reader, seat, rd_kafka_last_error(), err);
    }
    seat->started = true;
    return BATON_OK;
}

/* ---- opening and closing ---- */

void kafka_reader_close(struct log_reader *base)
{
    struct kafka_reader *reader = (struct kafka_reader *)base;
    seat_leave(reader, &reader->wait);
    seat_leave(reader, &reader->bring);
    free(reader->name);
    free(reader);
}

baton_code kafka_reader_open(struct log *base, const char *topic, int32_t partition, int64_t from,
                             enum log_isolation isolation, struct log_reader **ret_reader,
                             struct baton_error *err)
{
    struct kafka_log *log = (struct kafka_log *)base;
    baton_code rc =
        kafka_partition_for(log, topic, partition, KAFKA_TRIED_read, ANSWER_TIMEOUT_MS, err);
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
    reader->isolation = isolation;
    reader->pos = from > 0 ? from : 0;
    rc = seat_take(reader, &reader->bring, false, err);
    if (rc != BATON_OK) {
        kafka_reader_close(&reader->base);
        return rc;
    }
    *ret_reader = &reader->base;
    return BATON_OK;
}

/* ---- reading ---- */

/* An error of the client that no waiting mends. */
static bool final(rd_kafka_resp_err_t cause)
{
    baton_code code = kafka_code(cause);
    return code == BATON_E_topic_missing || code == BATON_E_not_permitted;
}

/* Takes in one message of the queue, whatever it is. */
static baton_code take(struct kafka_reader *reader, struct seat *seat, rd_kafka_message_t *message,
                       struct log_batch *batch, struct baton_error *err)
{
    baton_code rc = BATON_OK;
    rd_kafka_resp_err_t cause = message->err;
    if (cause == RD_KAFKA_RESP_ERR_NO_ERROR) {
        reader->bytes += message->key_len + message->len; /* before it is the batch's */
        if (kafka_batch_add(batch, message)) {
            reader->pos = message->offset + 1;
        } else {
            rc = baton_fail(err, BATON_E_no_memory, "topic %s: out of memory", reader->name);
        }
    } else if (cause == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        reader->pos = message->offset > reader->pos ? message->offset : reader->pos;
    } else if (final(cause)) {
        rc = fail(reader, seat, cause, err);
    }
    rd_kafka_message_destroy(message);
    return rc;
}

static bool full(const struct kafka_reader *reader, const struct log_batch *batch, size_t max)
{
    return batch->count >= max || reader->bytes >= LOG_READ_BYTES;
}

/* Takes what is in the queue; waits at most wait_ms for the first message. */
static baton_code drain(struct kafka_reader *reader, struct seat *seat, size_t max, int64_t wait_ms,
                        struct log_batch *batch, struct baton_error *err)
{
    baton_code rc = BATON_OK;
    while (rc == BATON_OK && seat->started && !full(reader, batch, max)) {
        rd_kafka_message_t *message =
            rd_kafka_consume_queue(seat->queue, (int)(wait_ms > 0 ? wait_ms : 0));
        if (message == NULL) {
            break;
        }
        wait_ms = 0;
        rc = take(reader, seat, message, batch, err);
    }
    rd_kafka_poll(seat->handle->rk, 0); /* hears what the connection says */
    return rc;
}

/* Asks where the partition begins and ends; the first time, pos is brought in between: not before
 * what is there, and not behind what was ever written. */
static baton_code ask_end(struct kafka_reader *reader, int64_t *ret_end, struct baton_error *err)
{
    struct seat *seat = &reader->bring;
    int64_t low = 0;
    int64_t end = 0;
    rd_kafka_resp_err_t cause = kafka_ends(seat->handle->rk, reader->name, reader->partition,
                                           ANSWER_TIMEOUT_MS, reader->clamped ? NULL : &low, &end);
    int64_t behind = end;
    if (cause == RD_KAFKA_RESP_ERR_NO_ERROR && !reader->clamped && reader->pos > end) {
        /* A transaction may be open there: then it is the real end that counts. */
        cause = kafka_ends(reader->log->admin, reader->name, reader->partition, ANSWER_TIMEOUT_MS,
                           NULL, &behind);
    }
    if (cause != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return fail(reader, seat, cause, err);
    }
    if (!reader->clamped) {
        reader->pos = reader->pos < low ? low : reader->pos > behind ? behind : reader->pos;
        reader->clamped = true;
    }
    *ret_end = end;
    return BATON_OK;
}

/* Brings what is there at this moment, up to max records; with `first_do` whatever has come already
 * is enough. */
static baton_code bring(struct kafka_reader *reader, size_t max, bool first_do,
                        struct log_batch *batch, struct baton_error *err)
{
    const int64_t until_ms = mono_now().v + ANSWER_TIMEOUT_MS;
    struct seat *seat = &reader->bring;
    int64_t end = 0;
    baton_code rc = BATON_OK;
    if (reader->wait.started) {
        rc = drain(reader, &reader->wait, max, 0, batch, err);
    } else if (seat->started) {
        rc = drain(reader, seat, max, 0, batch, err);
    }
    if (rc != BATON_OK || full(reader, batch, max) || (first_do && batch->count > 0)) {
        return rc;
    }
    if ((rc = ask_end(reader, &end, err)) != BATON_OK) {
        return rc;
    }
    if (reader->pos < end) {
        seat_stop(reader, &reader->wait);
        rc = seat_start(reader, seat, err);
    }
    while (rc == BATON_OK && reader->pos < end && !full(reader, batch, max)) {
        if (mono_now().v >= until_ms) {
            return fail(reader, seat, RD_KAFKA_RESP_ERR__TIMED_OUT, err);
        }
        rc = drain(reader, seat, max, WAIT_SLICE_MS, batch, err);
    }
    batch->at_end = reader->pos >= end;
    if (batch->at_end) {
        seat_stop(reader, seat);
    }
    return rc;
}

baton_code kafka_reader_next(struct log_reader *base, size_t max, int64_t timeout_ms,
                             struct log_batch *batch, struct baton_error *err)
{
    struct kafka_reader *reader = (struct kafka_reader *)base;
    const int64_t end_ms = mono_now().v + timeout_ms;
    /* A marker that ends a transaction is passed, too: who reads up to an offset waits for that. */
    const int64_t begun_at = reader->pos;
    reader->bytes = 0;
    if (!batch_begin(batch, reader->name, reader->partition)) {
        return baton_fail(err, BATON_E_no_memory, "topic %s: out of memory", reader->name);
    }
    baton_code rc = bring(reader, max, timeout_ms > 0, batch, err);
    if (rc == BATON_OK && batch->count == 0 && reader->pos == begun_at && timeout_ms > 0 &&
        (rc = seat_take(reader, &reader->wait, true, err)) == BATON_OK) {
        rc = seat_start(reader, &reader->wait, err);
    }
    while (rc == BATON_OK && batch->count == 0 && reader->pos == begun_at &&
           mono_now().v < end_ms) {
        int64_t rest_ms = end_ms - mono_now().v;
        rc = drain(reader, &reader->wait, max, rest_ms < WAIT_SLICE_MS ? rest_ms : WAIT_SLICE_MS,
                   batch, err);
        batch->at_end = batch->at_end && batch->count == 0;
    }
    batch->next_offset = reader->pos;
    return rc;
}
