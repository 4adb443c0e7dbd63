/* Reading a partition: for readers without a group here, for members by local_read. */
#include "common/log/local/internal.h"
#include "common/log/local/queries.h"

#include "common/log/batch.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NET_MS 1000 /* a bell may be lost with the process that was to ring it */

struct local_reader {
    struct log_reader base;
    struct local_conn *conn;
    char *topic;
    int32_t partition;
    int64_t part;
    int64_t pos;
    bool listening; /* the bell is watched, or this process is deaf */
    int bell_fd;    /* -1: deaf, or not listening yet */
};

static baton_code add_row(struct local_conn *conn, const struct stmt *stmt, struct log_batch *batch,
                          int64_t *ret_offset, size_t *ret_bytes, struct baton_error *err)
{
    size_t key_len;
    size_t value_len;
    size_t headers_len;
    bool damaged = false;
    int64_t id = stmt_get_int(stmt, 0);
    const void *key = stmt_get_null(stmt, 2) ? NULL : stmt_get_blob(stmt, 2, &key_len);
    const void *value = stmt_get_null(stmt, 3) ? NULL : stmt_get_blob(stmt, 3, &value_len);
    const void *headers = stmt_get_null(stmt, 4) ? NULL : stmt_get_blob(stmt, 4, &headers_len);
    key_len = key != NULL ? key_len : 0;
    value_len = value != NULL ? value_len : 0;
    headers_len = headers != NULL ? headers_len : 0;

    *ret_offset = id & LOCAL_OFFSET_MAX;
    if (!batch_add(batch, *ret_offset, (struct wall_ms){stmt_get_int(stmt, 1)}, key, key_len, value,
                   value_len, headers, headers_len, &damaged)) {
        return damaged ? baton_fail(err, BATON_E_store_failed,
                                    "%s: record %lld has damaged headers: keep the file as "
                                    "evidence",
                                    conn->log->path, (long long)id)
                       : baton_fail(err, BATON_E_no_memory, "%s: out of memory", conn->log->path);
    }
    *ret_bytes += key_len + value_len + headers_len;
    return BATON_OK;
}

baton_code local_read(struct local_conn *conn, const char *topic, int32_t partition, int64_t part,
                      int64_t *pos, size_t max, size_t bytes_max, struct log_batch *batch,
                      struct baton_error *err)
{
    int64_t low = 0;
    int64_t next = 0;
    size_t bytes = 0;
    bool row = true;

    if (!batch_begin(batch, topic, partition)) {
        return baton_fail(err, BATON_E_no_memory, "%s: out of memory", conn->log->path);
    }
    /* The end first: what lies below it is committed, and compaction only moves records up. */
    baton_code rc = local_part_marks(conn, part, &low, &next, err);
    if (rc != BATON_OK) {
        return rc;
    }
    int64_t at = *pos < low ? low : *pos > next ? next : *pos;
    if (at < next) {
        struct stmt stmt = db_stmt(&conn->db, RECORD_RANGE);
        stmt_int(&stmt, ":from", local_record_id(part, at));
        stmt_int(&stmt, ":end", local_record_id(part, next));
        stmt_int(&stmt, ":max", max > INT32_MAX ? INT32_MAX : (int64_t)max);
        while (row && batch->count < max && (batch->count == 0 || bytes < bytes_max)) {
            if ((rc = stmt_step(&stmt, &row, err)) != BATON_OK) {
                return rc;
            }
            if (row && (rc = add_row(conn, &stmt, batch, &at, &bytes, err)) != BATON_OK) {
                stmt_reset(&stmt);
                return rc;
            }
        }
        stmt_reset(&stmt);
        at = row ? at + 1 : next;
    }
    batch->next_offset = at;
    batch->at_end = at == next;
    *pos = at;
    return BATON_OK;
}

baton_code local_reader_open(struct log *base, const char *topic, int32_t partition, int64_t from,
                             enum log_isolation isolation, struct log_reader **ret_reader,
                             struct baton_error *err)
{
    struct local_log *log = (struct local_log *)base;
    struct local_reader *reader = calloc(1, sizeof(*reader));
    baton_code rc;

    (void)isolation; /* nothing is ever there before its commit */
    if (reader == NULL || (reader->topic = strdup(topic)) == NULL) {
        free(reader);
        return baton_fail(err, BATON_E_no_memory, "%s: out of memory", log->path);
    }
    reader->base.ops = &local_ops;
    reader->partition = partition;
    reader->pos = from;
    reader->bell_fd = -1;
    if ((rc = local_conn_take(log, &reader->conn, err)) != BATON_OK ||
        (rc = local_part_find(reader->conn, topic, partition, &reader->part, err)) != BATON_OK) {
        local_reader_close(&reader->base);
        return rc;
    }
    *ret_reader = &reader->base;
    return BATON_OK;
}

void local_reader_close(struct log_reader *base)
{
    struct local_reader *reader = (struct local_reader *)base;
    if (reader->bell_fd >= 0) {
        close(reader->bell_fd);
    }
    local_conn_give(reader->conn);
    free(reader->topic);
    free(reader);
}

/* Begins to listen; true: what is there must be looked at once more before waiting. */
static bool listen_first(struct local_reader *reader)
{
    if (reader->listening) {
        return false;
    }
    reader->listening = true;
    reader->bell_fd = bell_open();
    if (reader->bell_fd >= 0 &&
        bell_watch(reader->conn->log, reader->bell_fd, BELL_topic, reader->topic) < 0) {
        close(reader->bell_fd);
        reader->bell_fd = -1;
    }
    return true;
}

static void wait_for_bell(struct local_reader *reader, int64_t rest_ms)
{
    int64_t most_ms = reader->bell_fd >= 0 ? NET_MS : LOCAL_DEAF_MS;
    struct pollfd waited = {.fd = reader->bell_fd, .events = POLLIN};
    int watch;
    bool gone = false;
    poll(&waited, 1, (int)(rest_ms < most_ms ? rest_ms : most_ms));
    while (reader->bell_fd >= 0 && bell_heard(reader->bell_fd, &watch, &gone)) {
        if (gone) {
            close(reader->bell_fd);
            reader->bell_fd = -1;
        }
    }
}

baton_code local_reader_next(struct log_reader *base, size_t max, int64_t timeout_ms,
                             struct log_batch *batch, struct baton_error *err)
{
    struct local_reader *reader = (struct local_reader *)base;
    int64_t end_ns = local_end_ns(timeout_ms);
    for (;;) {
        baton_code rc = local_read(reader->conn, reader->topic, reader->partition, reader->part,
                                   &reader->pos, max, LOG_READ_BYTES, batch, err);
        int64_t rest_ms = (end_ns - mono_ns() + 999999) / 1000000;
        if (rc != BATON_OK || batch->count > 0 || timeout_ms <= 0 || rest_ms <= 0) {
            return rc;
        }
        if (!listen_first(reader)) {
            wait_for_bell(reader, rest_ms);
        }
    }
}
