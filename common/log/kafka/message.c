/*
 * A consumed message, copied into a batch; the date of one that was produced.
 *
 * In: queue.c, reader.c, deliveries.c  Out: common/log/batch.c
 */
#include "common/log/kafka/state.h"

#include "common/base/buf.h"
#include "common/log/batch.h"

#include <stdlib.h>
#include <string.h>

/* Longer names than a batch can hold (brokers take any) are cut: no name of ours is longer than a
 * line, and a record must not be able to stop who reads it. */
#define NAME_MAX_LEN 0xffff

static void encode(struct buf *buf, const rd_kafka_headers_t *headers)
{
    struct log_header header;
    for (size_t i = 0; rd_kafka_header_get_all(headers, i, &header.name, &header.value,
                                               &header.value_len) == RD_KAFKA_RESP_ERR_NO_ERROR;
         i++) {
        char *cut = strlen(header.name) > NAME_MAX_LEN ? strndup(header.name, NAME_MAX_LEN) : NULL;
        header.name = cut != NULL ? cut : header.name;
        headers_encode(buf, &header, 1);
        free(cut);
    }
}

/* A note of hang.c: it carries a marker, and nothing for readers. */
static bool is_note(const rd_kafka_message_t *message)
{
    return message->payload == NULL && message->key_len == strlen(KAFKA_NOTE_KEY) &&
           memcmp(message->key, KAFKA_NOTE_KEY, message->key_len) == 0;
}

bool kafka_batch_add(struct log_batch *batch, const rd_kafka_message_t *message)
{
    if (is_note(message)) {
        batch->noted = message->offset + 1;
        return true;
    }
    struct buf buf = BUF_INIT;
    rd_kafka_headers_t *headers = NULL;
    rd_kafka_timestamp_type_t type;
    const struct wall_ms at = {rd_kafka_message_timestamp(message, &type)};
    bool damaged = false;

    if (rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR) {
        encode(&buf, headers);
    }
    const bool added =
        batch_add(batch, message->offset, at, message->key, message->key_len, message->payload,
                  message->len, buf.len > 0 ? buf.data : NULL, buf.len, &damaged);
    buf_done(&buf);
    return added;
}

struct wall_ms kafka_dated(struct kafka_log *log, const rd_kafka_message_t *message)
{
    rd_kafka_timestamp_type_t type;
    const struct wall_ms at = {rd_kafka_message_timestamp(message, &type)};
    if (type == RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME && at.v > 0) {
        const int64_t ahead = at.v - mono_now().v;
        int64_t least = atomic_load(&log->ahead_ms);
        atomic_store(&log->dated_ms, ahead);
        while (ahead < least && !atomic_compare_exchange_weak(&log->ahead_ms, &least, ahead)) {
        }
    }
    return (struct wall_ms){at.v > 0 ? at.v : 0};
}
