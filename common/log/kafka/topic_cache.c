/*
 * What is known of topics, and what of a record is judged before it is sent. In: publisher.c,
 * commit.c, reader.c, member.c.
 */
#include "common/log/kafka/state.h"
#include "common/log/kafka/topic.h"

#include "common/log/batch.h"

#include <stdlib.h>
#include <string.h>

#define ASK_AGAIN_MS 1000 /* of what was missing or too small */
#define ASK_SIZE_MS 3000
#define SILENT_MS 60000 /* sizes are not asked for again */
/* What a record is wrapped in, alone in its batch: 61 bytes of the batch, lengths of the record and
 * of each header. Topics limit all of it. */
#define RECORD_WRAPPING 100
#define HEADER_WRAPPING 10

struct topic_entry {
    struct topic_entry *next;
    struct kafka_topic topic; /* partitions 0: not there */
    int64_t asked_ms;
    char name[];
};

void kafka_topics_forget_all(struct kafka_log *log)
{
    while (log->topics != NULL) {
        struct topic_entry *entry = log->topics;
        log->topics = entry->next;
        free(entry);
    }
}

void kafka_topic_forget(struct kafka_log *log, const char *name)
{
    pthread_mutex_lock(&log->lock);
    for (struct topic_entry **at = &log->topics; *at != NULL; at = &(*at)->next) {
        if (strcmp((*at)->name, name) == 0) {
            struct topic_entry *entry = *at;
            *at = entry->next;
            free(entry);
            break;
        }
    }
    pthread_mutex_unlock(&log->lock);
}

/* Under the lock. */
static struct topic_entry *find(struct kafka_log *log, const char *name)
{
    struct topic_entry *entry = log->topics;
    while (entry != NULL && strcmp(entry->name, name) != 0) {
        entry = entry->next;
    }
    return entry;
}

/* True if it is known: then *ret_topic says what. */
static bool recall(struct kafka_log *log, const char *name, struct kafka_topic *ret_topic,
                   int64_t *ret_asked_ms)
{
    pthread_mutex_lock(&log->lock);
    const struct topic_entry *entry = find(log, name);
    const int64_t age_ms = entry != NULL ? mono_now().v - entry->asked_ms : 0;
    const bool known = entry != NULL && (entry->topic.partitions == 0 ? age_ms < ASK_AGAIN_MS
                                         : entry->topic.record_bytes_max == 0 ? age_ms < SILENT_MS
                                                                              : true);
    if (known) {
        *ret_topic = entry->topic;
        *ret_asked_ms = entry->asked_ms;
    }
    pthread_mutex_unlock(&log->lock);
    return known;
}

/* Without memory it is simply asked again. */
static void remember(struct kafka_log *log, const char *name, const struct kafka_topic *topic)
{
    size_t len = strlen(name) + 1;
    pthread_mutex_lock(&log->lock);
    struct topic_entry *entry = find(log, name);
    if (entry == NULL && (entry = calloc(1, sizeof(*entry) + len)) != NULL) {
        memcpy(entry->name, name, len);
        entry->next = log->topics;
        log->topics = entry;
    }
    if (entry != NULL) {
        entry->topic = *topic;
        entry->asked_ms = mono_now().v;
    }
    pthread_mutex_unlock(&log->lock);
}

static baton_code ask_partitions(struct kafka_log *log, const char *name, enum kafka_tried tried,
                                 int64_t timeout_ms, int32_t *ret_partitions,
                                 struct baton_error *err)
{
    const struct rd_kafka_metadata *metadata = NULL;
    baton_code rc = kafka_metadata(log, name, timeout_ms, &metadata, err);
    if (rc != BATON_OK) {
        return rc;
    }
    rd_kafka_resp_err_t cause = metadata->topic_cnt == 1 ? metadata->topics[0].err
                                                         : RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    int32_t partitions = metadata->topic_cnt == 1 ? metadata->topics[0].partition_cnt : 0;
    rd_kafka_metadata_destroy(metadata);
    if (cause != RD_KAFKA_RESP_ERR_NO_ERROR && kafka_code(cause) != BATON_E_topic_missing) {
        return kafka_fail(err, log, cause, tried, name);
    }
    *ret_partitions = cause == RD_KAFKA_RESP_ERR_NO_ERROR ? partitions : 0;
    return BATON_OK;
}

/* 0 without the right to ask, or where nobody answers that: the broker judges then. */
static baton_code ask_size(struct kafka_log *log, const char *name, int64_t timeout_ms,
                           size_t *ret_bytes, struct baton_error *err)
{
    rd_kafka_event_t *event = NULL;
    const rd_kafka_ConfigEntry_t **entries = NULL;
    size_t count = 0;
    struct log_topic topic = {.name = name};
    const int64_t wait_ms = timeout_ms < ASK_SIZE_MS ? timeout_ms : ASK_SIZE_MS;
    if (mono_now().v < atomic_load(&log->silent_until)) {
        *ret_bytes = 0;
        return BATON_OK;
    }
    baton_code rc = kafka_settings_of(log, RD_KAFKA_RESOURCE_TOPIC, name, wait_ms, &event, &entries,
                                      &count, err);
    if (rc == BATON_E_timed_out) {
        atomic_store(&log->silent_until, mono_now().v + SILENT_MS);
    }
    if (rc == BATON_E_not_permitted || rc == BATON_E_timed_out) {
        *ret_bytes = 0;
        return BATON_OK;
    }
    if (rc == BATON_OK) {
        topic_settings_read(entries, count, &topic);
        *ret_bytes = topic.record_bytes_max;
        rd_kafka_event_destroy(event);
    }
    return rc;
}

baton_code topic_not_there(const char *name, struct baton_error *err)
{
    return baton_fail(err, BATON_E_topic_missing,
                      "topic %s is not there: `baton topics apply` makes what is missing", name);
}

baton_code kafka_topic_for(struct kafka_log *log, const char *name, enum kafka_tried tried,
                           int64_t timeout_ms, struct kafka_topic *ret_topic,
                           struct baton_error *err)
{
    const int64_t end_ms = mono_now().v + timeout_ms;
    struct kafka_topic topic = {0};
    int64_t asked_ms = 0;
    if (!recall(log, name, &topic, &asked_ms)) {
        baton_code rc = ask_partitions(log, name, tried, timeout_ms, &topic.partitions, err);
        if (rc == BATON_OK && topic.partitions > 0) {
            rc = ask_size(log, name, end_ms - mono_now().v, &topic.record_bytes_max, err);
        }
        if (rc != BATON_OK) {
            return rc;
        }
        remember(log, name, &topic);
    }
    if (topic.partitions == 0) {
        return topic_not_there(name, err);
    }
    *ret_topic = topic;
    return BATON_OK;
}

baton_code kafka_topic_of(struct kafka_log *log, const char *name, int64_t timeout_ms,
                          struct kafka_topic *ret_topic, struct baton_error *err)
{
    return kafka_topic_for(log, name, KAFKA_TRIED_describe, timeout_ms, ret_topic, err);
}

static baton_code check_number(const char *name, const struct kafka_topic *topic, int32_t partition,
                               struct baton_error *err)
{
    return partition >= 0 && partition < topic->partitions
               ? BATON_OK
               : baton_fail(err, BATON_E_topic_missing,
                            "topic %s has %d partitions and no number %d", name, topic->partitions,
                            partition);
}

baton_code kafka_partition_for(struct kafka_log *log, const char *name, int32_t partition,
                               enum kafka_tried tried, int64_t timeout_ms, struct baton_error *err)
{
    struct kafka_topic topic;
    baton_code rc = kafka_topic_for(log, name, tried, timeout_ms, &topic, err);
    return rc == BATON_OK ? check_number(name, &topic, partition, err) : rc;
}

/* ---- records ---- */

static baton_code check_headers(const struct log_record *record, struct baton_error *err)
{
    if (record->n_headers > LOG_HEADERS_MAX) {
        return baton_fail(err, BATON_E_invalid_request,
                          "topic %s: a record with %zu headers; %d fit", record->topic,
                          record->n_headers, LOG_HEADERS_MAX);
    }
    return BATON_OK;
}

static baton_code check_size(struct kafka_log *log, const struct log_record *record,
                             int64_t timeout_ms, struct kafka_topic *topic, struct baton_error *err)
{
    size_t bytes = record_bytes(record) + RECORD_WRAPPING + HEADER_WRAPPING * record->n_headers;
    int64_t asked_ms = 0;
    if (topic->record_bytes_max > 0 && bytes > topic->record_bytes_max &&
        recall(log, record->topic, topic, &asked_ms) && mono_now().v - asked_ms >= ASK_AGAIN_MS) {
        /* Its limit may have been raised meanwhile. */
        kafka_topic_forget(log, record->topic);
        baton_code rc = kafka_topic_of(log, record->topic, timeout_ms, topic, err);
        if (rc != BATON_OK) {
            return rc;
        }
    }
    if (topic->record_bytes_max > 0 && bytes > topic->record_bytes_max) {
        return baton_fail(err, BATON_E_record_too_large,
                          "topic %s: a record of %zu bytes (key, value, headers and what they are "
                          "wrapped in); %zu fit",
                          record->topic, bytes, topic->record_bytes_max);
    }
    return BATON_OK;
}

baton_code kafka_record_check(struct kafka_log *log, struct log_record *record, int64_t timeout_ms,
                              struct baton_error *err)
{
    struct kafka_topic topic;
    /* Who may write may ask: a refusal of the question is about the right to write. */
    baton_code rc = kafka_topic_for(log, record->topic, KAFKA_TRIED_write, timeout_ms, &topic, err);
    if (rc != BATON_OK || (rc = check_headers(record, err)) != BATON_OK ||
        (rc = check_size(log, record, timeout_ms, &topic, err)) != BATON_OK) {
        return rc;
    }
    if (record->partition == LOG_PARTITION_BY_KEY) {
        record->partition =
            record->key != NULL
                ? log_partition_of(record->key, record->key_len, topic.partitions)
                : (int32_t)(atomic_fetch_add(&log->turn, 1) % (unsigned)topic.partitions);
    }
    return check_number(record->topic, &topic, record->partition, err);
}

static rd_kafka_headers_t *headers_of(const struct log_record *record)
{
    if (record->n_headers == 0) {
        return NULL;
    }
    rd_kafka_headers_t *headers = rd_kafka_headers_new(record->n_headers);
    for (size_t i = 0; i < record->n_headers; i++) {
        const struct log_header *header = &record->headers[i];
        rd_kafka_header_add(headers, header->name, -1, header->value,
                            header->value != NULL ? (ssize_t)header->value_len : -1);
    }
    return headers;
}

rd_kafka_resp_err_t kafka_produce(rd_kafka_t *rk, const struct log_record *record, void *opaque)
{
    rd_kafka_headers_t *headers = headers_of(record);
    rd_kafka_resp_err_t cause = rd_kafka_producev(
        rk, RD_KAFKA_V_TOPIC(record->topic), RD_KAFKA_V_PARTITION(record->partition),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(record->key, record->key_len),
        RD_KAFKA_V_VALUE((void *)(uintptr_t)record->value, record->value_len),
        RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_OPAQUE(opaque), RD_KAFKA_V_END);
    if (cause != RD_KAFKA_RESP_ERR_NO_ERROR && headers != NULL) {
        rd_kafka_headers_destroy(headers);
    }
    return cause;
}
