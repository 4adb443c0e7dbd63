/* Appends records inside a write transaction. Called by publish.c and commit.c. */
#include "common/log/local/internal.h"
#include "common/log/local/queries.h"

#include "common/log/batch.h"

#include <stdlib.h>
#include <string.h>

#define HEADER_NAME_MAX 256

static baton_code topic_of(struct append *append, const char *name, struct append_topic **ret_topic,
                           struct baton_error *err)
{
    if (append->last < append->n_topics && strcmp(append->topics[append->last].name, name) == 0) {
        *ret_topic = &append->topics[append->last];
        return BATON_OK;
    }
    for (size_t i = 0; i < append->n_topics; i++) {
        if (strcmp(append->topics[i].name, name) == 0) {
            append->last = i;
            *ret_topic = &append->topics[i];
            return BATON_OK;
        }
    }
    if (append->n_topics == append->n_topics_max) {
        size_t max = append->n_topics_max == 0 ? 8 : 2 * append->n_topics_max;
        struct append_topic *topics = realloc(append->topics, max * sizeof(*topics));
        if (topics == NULL) {
            return baton_fail(err, BATON_E_no_memory, "topic %s: out of memory", name);
        }
        append->topics = topics;
        append->n_topics_max = max;
    }
    struct append_topic *topic = &append->topics[append->n_topics];
    *topic = (struct append_topic){.name = name};
    baton_code rc = local_topic_find(append->conn, name, &topic->topic, err);
    if (rc != BATON_OK) {
        return rc;
    }
    for (size_t i = 0; i < LOG_PARTITIONS_MAX; i++) {
        topic->next[i] = LOG_OFFSET_NONE;
    }
    append->last = append->n_topics++;
    *ret_topic = topic;
    return BATON_OK;
}

static baton_code check_record(const struct log_record *record, const struct log_topic *topic,
                               struct baton_error *err)
{
    if (record->n_headers > LOG_HEADERS_MAX) {
        return baton_fail(err, BATON_E_invalid_request,
                          "topic %s: a record with %zu headers; %d fit", topic->name,
                          record->n_headers, LOG_HEADERS_MAX);
    }
    for (size_t i = 0; i < record->n_headers; i++) {
        if (strlen(record->headers[i].name) > HEADER_NAME_MAX) {
            return baton_fail(err, BATON_E_invalid_request,
                              "topic %s: a header's name is longer than %d bytes", topic->name,
                              HEADER_NAME_MAX);
        }
    }
    size_t bytes = record_bytes(record);
    if (bytes > topic->record_bytes_max) {
        return baton_fail(err, BATON_E_record_too_large,
                          "topic %s: a record of %zu bytes (key, value and headers); %zu fit",
                          topic->name, bytes, topic->record_bytes_max);
    }
    if (topic->cleanup == LOG_CLEANUP_compact && record->key == NULL) {
        return baton_fail(err, BATON_E_invalid_request,
                          "topic %s is compacted by key, and the record has none", topic->name);
    }
    return BATON_OK;
}

static baton_code partition_of(struct append *append, const struct log_record *record,
                               const struct log_topic *topic, int32_t *ret_partition,
                               struct baton_error *err)
{
    if (record->partition != LOG_PARTITION_BY_KEY) {
        if (record->partition < 0 || record->partition >= topic->partitions) {
            return baton_fail(err, BATON_E_topic_missing,
                              "topic %s has %d partitions and no number %d", topic->name,
                              topic->partitions, record->partition);
        }
        *ret_partition = record->partition;
    } else if (record->key == NULL) {
        *ret_partition = (int32_t)(append->turn++ % (uint32_t)topic->partitions);
    } else {
        *ret_partition = log_partition_of(record->key, record->key_len, topic->partitions);
    }
    return BATON_OK;
}

static baton_code insert(struct append *append, const struct append_topic *topic, int64_t part,
                         int64_t offset, const struct log_record *record, struct wall_ms at,
                         struct baton_error *err)
{
    bool compact = topic->topic.about.cleanup == LOG_CLEANUP_compact;
    struct stmt stmt = db_stmt(&append->conn->db, compact ? RECORD_REPLACE : RECORD_ADD);
    stmt_int(&stmt, ":id", local_record_id(part, offset));
    stmt_int(&stmt, ":at", at.v);
    stmt_blob(&stmt, ":key", record->key, record->key_len);
    stmt_blob(&stmt, ":value", record->value, record->value_len);
    if (record->n_headers > 0) {
        buf_clear(&append->headers);
        headers_encode(&append->headers, record->headers, record->n_headers);
        if (!buf_ok(&append->headers)) {
            stmt_reset(&stmt);
            return baton_fail(err, BATON_E_no_memory, "topic %s: out of memory", topic->name);
        }
        stmt_blob(&stmt, ":headers", append->headers.data, append->headers.len);
    }
    if (compact) {
        stmt_int(&stmt, ":part", part);
    }
    return stmt_run(&stmt, NULL, err);
}

baton_code append_record(struct append *append, const struct log_record *record, struct wall_ms at,
                         struct append_place *ret_place, struct baton_error *err)
{
    struct append_topic *topic = NULL;
    int32_t partition = 0;
    baton_code rc;

    if ((rc = topic_of(append, record->topic, &topic, err)) != BATON_OK ||
        (rc = check_record(record, &topic->topic.about, err)) != BATON_OK ||
        (rc = partition_of(append, record, &topic->topic.about, &partition, err)) != BATON_OK) {
        return rc;
    }
    int64_t part = topic->topic.first_part + partition;
    int64_t *next = &topic->next[partition];
    int64_t low = 0;
    if (*next == LOG_OFFSET_NONE &&
        (rc = local_part_marks(append->conn, part, &low, next, err)) != BATON_OK) {
        return rc;
    }
    if ((rc = insert(append, topic, part, *next, record, at, err)) != BATON_OK) {
        return rc;
    }
    *ret_place = (struct append_place){.partition = partition, .offset = *next};
    *next += 1;
    topic->changed[partition] = true;
    return BATON_OK;
}

bool append_is_culprit(baton_code code)
{
    return code == BATON_E_topic_missing || code == BATON_E_record_too_large ||
           code == BATON_E_invalid_request;
}

baton_code append_finish(struct append *append, struct baton_error *err)
{
    baton_code rc = BATON_OK;
    for (size_t i = 0; i < append->n_topics; i++) {
        struct append_topic *topic = &append->topics[i];
        for (int32_t no = 0; rc == BATON_OK && no < topic->topic.about.partitions; no++) {
            if (topic->changed[no]) {
                struct stmt stmt = db_stmt(&append->conn->db, PART_SET_NEXT);
                stmt_int(&stmt, ":next", topic->next[no]);
                stmt_int(&stmt, ":part", topic->topic.first_part + no);
                rc = stmt_run(&stmt, NULL, err);
            }
        }
    }
    return rc;
}

void append_ring(const struct append *append)
{
    for (size_t i = 0; i < append->n_topics; i++) {
        bell_ring(append->conn->log, BELL_topic, append->topics[i].name);
    }
}

void append_done(struct append *append)
{
    free(append->topics);
    buf_done(&append->headers);
}
