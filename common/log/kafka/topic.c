/*
 * Topics: described, listed, made and mended. In: common/log/log.c. Out: admin.c, topic_settings.c.
 */
#include "common/log/kafka/topic.h"

#include "common/base/clock.h"
#include "common/base/text.h"
#include "common/log/kafka/state.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ASK_TIMEOUT_MS 10000
#define CREATE_TIMEOUT_MS 60000
#define CREATE_AT_ONCE 50
#define KNOWN_PAUSE_MS 20

/* ---- describing ---- */

/* Partitions and copies of one topic. */
static baton_code shape_of(struct kafka_log *log, const char *name, struct log_topic *topic,
                           struct baton_error *err)
{
    const struct rd_kafka_metadata *metadata = NULL;
    baton_code rc = kafka_metadata(log, name, ASK_TIMEOUT_MS, &metadata, err);
    if (rc != BATON_OK) {
        return rc;
    }
    const struct rd_kafka_metadata_topic *found =
        metadata->topic_cnt == 1 ? &metadata->topics[0] : NULL;
    if (found == NULL || kafka_code(found->err) == BATON_E_topic_missing) {
        rc = topic_not_there(name, err);
    } else if (found->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        rc = kafka_fail(err, log, found->err, KAFKA_TRIED_describe, name);
    } else {
        topic->partitions = found->partition_cnt;
        topic->copies = found->partition_cnt > 0 ? found->partitions[0].replica_cnt : 0;
    }
    rd_kafka_metadata_destroy(metadata);
    return rc;
}

baton_code kafka_topic_describe(struct log *base, const char *name, struct log_topic *ret_topic,
                                struct baton_error *err)
{
    struct kafka_log *log = (struct kafka_log *)base;
    struct log_topic topic = {.name = name};
    rd_kafka_event_t *event = NULL;
    const rd_kafka_ConfigEntry_t **entries = NULL;
    size_t count = 0;
    baton_code rc = shape_of(log, name, &topic, err);
    if (rc == BATON_OK) {
        rc = kafka_settings_of(log, RD_KAFKA_RESOURCE_TOPIC, name, ASK_TIMEOUT_MS, &event, &entries,
                               &count, err);
    }
    if (rc == BATON_OK) {
        topic_settings_read(entries, count, &topic);
        rd_kafka_event_destroy(event);
        *ret_topic = topic;
    }
    return rc;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

baton_code kafka_topics_list(struct log *base, const char *prefix, char ***ret_names,
                             size_t *ret_count, struct baton_error *err)
{
    struct kafka_log *log = (struct kafka_log *)base;
    const struct rd_kafka_metadata *metadata = NULL;
    size_t count = 0;
    baton_code rc = kafka_metadata(log, KAFKA_ALL_TOPICS, ASK_TIMEOUT_MS, &metadata, err);
    if (rc != BATON_OK) {
        return rc;
    }
    char **names = calloc((size_t)metadata->topic_cnt + 1, sizeof(*names));
    bool full = names == NULL;
    for (int i = 0; !full && i < metadata->topic_cnt; i++) {
        const char *name = metadata->topics[i].topic;
        if (strncmp(name, prefix, strlen(prefix)) == 0) {
            full = (names[count] = strdup(name)) == NULL;
            count += full ? 0 : 1;
        }
    }
    rd_kafka_metadata_destroy(metadata);
    if (full) {
        log_names_free(names, count);
        return baton_fail(err, BATON_E_no_memory, "names of topics: out of memory");
    }
    qsort(names, count, sizeof(*names), by_name);
    *ret_names = names;
    *ret_count = count;
    return BATON_OK;
}

/* ---- making ---- */

static rd_kafka_NewTopic_t *new_topic(const struct log_topic *topic, int32_t copies)
{
    struct topic_setting settings[TOPIC_SETTINGS_MAX];
    char text[8];
    rd_kafka_NewTopic_t *made =
        rd_kafka_NewTopic_new(topic->name, topic->partitions, copies, text, sizeof(text));
    size_t n = topic_settings_wanted(topic, copies, settings);
    for (size_t i = 0; made != NULL && i < n; i++) {
        rd_kafka_NewTopic_set_config(made, settings[i].name, settings[i].value);
    }
    return made;
}

static baton_code judge_made(struct kafka_log *log, rd_kafka_event_t *event,
                             struct baton_error *err)
{
    size_t count = 0;
    const rd_kafka_topic_result_t **results =
        rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
    for (size_t i = 0; i < count; i++) {
        rd_kafka_resp_err_t cause = rd_kafka_topic_result_error(results[i]);
        const char *name = rd_kafka_topic_result_name(results[i]);
        if (cause == RD_KAFKA_RESP_ERR_NO_ERROR ||
            cause == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS) {
            continue;
        }
        baton_code rc = kafka_fail(err, log, cause, KAFKA_TRIED_create, name);
        const char *said = rd_kafka_topic_result_error_string(results[i]);
        return rc == BATON_E_not_permitted || said == NULL
                   ? rc
                   : baton_fail(err, rc, "creating %s: %s", name, text_quote_of(said).s);
    }
    return BATON_OK;
}

static baton_code create_some(struct kafka_log *log, const struct log_topic *topics, size_t count,
                              int32_t brokers, struct baton_error *err)
{
    rd_kafka_NewTopic_t *made[CREATE_AT_ONCE];
    struct kafka_request request;
    rd_kafka_event_t *event = NULL;
    char text[64];
    for (size_t i = 0; i < count; i++) {
        int32_t copies = topics[i].copies > 0 ? topics[i].copies : brokers < 3 ? brokers : 3;
        made[i] = new_topic(&topics[i], copies);
        if (made[i] == NULL) {
            rd_kafka_NewTopic_destroy_array(made, i);
            return baton_fail(err, BATON_E_invalid_request, "topic %s: cannot be asked for",
                              topics[i].name);
        }
    }
    kafka_request_begin(log, RD_KAFKA_ADMIN_OP_CREATETOPICS, CREATE_TIMEOUT_MS, &request);
    rd_kafka_AdminOptions_set_operation_timeout(request.options, CREATE_TIMEOUT_MS / 2, text,
                                                sizeof(text));
    rd_kafka_CreateTopics(log->admin, made, count, request.options, request.queue);
    baton_code rc = kafka_request_end(&request, KAFKA_TRIED_create, topics[0].name, &event, err);
    rd_kafka_NewTopic_destroy_array(made, count);
    if (rc == BATON_OK) {
        rc = judge_made(log, event, err);
        rd_kafka_event_destroy(event);
    }
    return rc;
}

static bool usable(const struct rd_kafka_metadata *metadata, const char *name)
{
    for (int i = 0; i < metadata->topic_cnt; i++) {
        const struct rd_kafka_metadata_topic *topic = &metadata->topics[i];
        if (strcmp(topic->topic, name) != 0) {
            continue;
        }
        bool led = topic->err == RD_KAFKA_RESP_ERR_NO_ERROR && topic->partition_cnt > 0;
        for (int p = 0; led && p < topic->partition_cnt; p++) {
            led = topic->partitions[p].leader >= 0;
        }
        return led;
    }
    return false;
}

/* The brokers answer before they know the topics themselves: until every one has its leaders. */
static baton_code await_known(struct kafka_log *log, const struct log_topic *topics, size_t count,
                              struct baton_error *err)
{
    const int64_t end_ms = mono_now().v + CREATE_TIMEOUT_MS;
    size_t known = 0;
    for (;;) {
        const struct rd_kafka_metadata *metadata = NULL;
        /* One topic is asked for by name: a big cluster has many others. */
        baton_code rc = kafka_metadata(log, count == 1 ? topics[0].name : KAFKA_ALL_TOPICS,
                                       ASK_TIMEOUT_MS, &metadata, err);
        if (rc != BATON_OK) {
            return rc;
        }
        while (known < count && usable(metadata, topics[known].name)) {
            kafka_topic_forget(log, topics[known].name);
            known++;
        }
        rd_kafka_metadata_destroy(metadata);
        if (known == count) {
            return BATON_OK;
        }
        if (mono_now().v >= end_ms) {
            return baton_fail(err, BATON_E_service_unavailable,
                              "topic %s was made, and has no leader after %d s; look at the "
                              "brokers' logs",
                              topics[known].name, CREATE_TIMEOUT_MS / 1000);
        }
        nanosleep(&(struct timespec){0, KNOWN_PAUSE_MS * 1000000}, NULL);
    }
}

static baton_code count_brokers(struct kafka_log *log, int32_t *ret_brokers,
                                struct baton_error *err)
{
    const struct rd_kafka_metadata *metadata = NULL;
    baton_code rc = kafka_metadata(log, NULL, ASK_TIMEOUT_MS, &metadata, err);
    if (rc == BATON_OK) {
        *ret_brokers = metadata->broker_cnt > 0 ? metadata->broker_cnt : 1;
        rd_kafka_metadata_destroy(metadata);
    }
    return rc;
}

baton_code kafka_topics_create(struct log *base, const struct log_topic *topics, size_t count,
                               struct baton_error *err)
{
    struct kafka_log *log = (struct kafka_log *)base;
    int32_t brokers = 0;
    baton_code rc = count_brokers(log, &brokers, err);
    for (size_t i = 0; rc == BATON_OK && i < count; i++) {
        rc = topic_settings_valid(&topics[i], err) ? BATON_OK : BATON_E_invalid_request;
    }
    for (size_t i = 0; rc == BATON_OK && i < count; i += CREATE_AT_ONCE) {
        size_t some = count - i < CREATE_AT_ONCE ? count - i : CREATE_AT_ONCE;
        rc = create_some(log, topics + i, some, brokers, err);
    }
    return rc == BATON_OK && count > 0 ? await_known(log, topics, count, err) : rc;
}

/* ---- mending ---- */

static bool is_wanted(const struct topic_setting *settings, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(settings[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* A request replaces all that was set for the topic, so what is not ours is written again. */
static rd_kafka_ConfigResource_t *merged(const struct log_topic *topic, int32_t copies,
                                         const rd_kafka_ConfigEntry_t **entries, size_t count)
{
    struct topic_setting settings[TOPIC_SETTINGS_MAX];
    size_t n = topic_settings_wanted(topic, copies, settings);
    rd_kafka_ConfigResource_t *resource =
        rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic->name);
    for (size_t i = 0; i < count; i++) {
        const char *name = rd_kafka_ConfigEntry_name(entries[i]);
        if (rd_kafka_ConfigEntry_source(entries[i]) ==
                RD_KAFKA_CONFIG_SOURCE_DYNAMIC_TOPIC_CONFIG &&
            !is_wanted(settings, n, name)) {
            rd_kafka_ConfigResource_set_config(resource, name,
                                               rd_kafka_ConfigEntry_value(entries[i]));
        }
    }
    for (size_t i = 0; i < n; i++) {
        rd_kafka_ConfigResource_set_config(resource, settings[i].name, settings[i].value);
    }
    return resource;
}

static baton_code write_settings(struct kafka_log *log, rd_kafka_ConfigResource_t *resource,
                                 const char *name, struct baton_error *err)
{
    struct kafka_request request;
    rd_kafka_event_t *event = NULL;
    size_t count = 0;
    kafka_request_begin(log, RD_KAFKA_ADMIN_OP_ALTERCONFIGS, ASK_TIMEOUT_MS, &request);
    rd_kafka_AlterConfigs(log->admin, &resource, 1, request.options, request.queue);
    baton_code rc = kafka_request_end(&request, KAFKA_TRIED_mend, name, &event, err);
    if (rc != BATON_OK) {
        return rc;
    }
    const rd_kafka_ConfigResource_t **results =
        rd_kafka_AlterConfigs_result_resources(rd_kafka_event_AlterConfigs_result(event), &count);
    rd_kafka_resp_err_t cause =
        count == 1 ? rd_kafka_ConfigResource_error(results[0]) : RD_KAFKA_RESP_ERR__BAD_MSG;
    if (cause != RD_KAFKA_RESP_ERR_NO_ERROR) {
        rc = kafka_fail(err, log, cause, KAFKA_TRIED_mend, name);
    }
    rd_kafka_event_destroy(event);
    return rc;
}

static bool all_written(const struct log_topic *topic, int32_t copies,
                        const rd_kafka_ConfigEntry_t **entries, size_t count)
{
    struct topic_setting settings[TOPIC_SETTINGS_MAX];
    size_t n = topic_settings_wanted(topic, copies, settings);
    size_t same = 0;
    for (size_t i = 0; i < count; i++) {
        const char *value = rd_kafka_ConfigEntry_value(entries[i]);
        for (size_t k = 0; value != NULL && k < n; k++) {
            same += strcmp(rd_kafka_ConfigEntry_name(entries[i]), settings[k].name) == 0 &&
                            strcmp(value, settings[k].value) == 0
                        ? 1
                        : 0;
        }
    }
    return same == n;
}

/* The brokers answer before they know of it themselves. They have it, so nothing fails here. */
static void await_written(struct kafka_log *log, const struct log_topic *topic, int32_t copies)
{
    const int64_t end_ms = mono_now().v + ASK_TIMEOUT_MS;
    bool written = false;
    while (!written && mono_now().v < end_ms) {
        rd_kafka_event_t *event = NULL;
        const rd_kafka_ConfigEntry_t **entries = NULL;
        size_t count = 0;
        if (kafka_settings_of(log, RD_KAFKA_RESOURCE_TOPIC, topic->name, ASK_TIMEOUT_MS, &event,
                              &entries, &count, NULL) != BATON_OK) {
            return;
        }
        written = all_written(topic, copies, entries, count);
        rd_kafka_event_destroy(event);
        if (!written) {
            nanosleep(&(struct timespec){0, KNOWN_PAUSE_MS * 1000000}, NULL);
        }
    }
}

baton_code kafka_topic_alter(struct log *base, const struct log_topic *topic,
                             struct baton_error *err)
{
    struct kafka_log *log = (struct kafka_log *)base;
    struct log_topic found = {.name = topic->name};
    rd_kafka_event_t *event = NULL;
    const rd_kafka_ConfigEntry_t **entries = NULL;
    size_t count = 0;
    baton_code rc = topic_settings_valid(topic, err) ? shape_of(log, topic->name, &found, err)
                                                     : BATON_E_invalid_request;
    if (rc == BATON_OK && topic->partitions != found.partitions) {
        return baton_fail(err, BATON_E_invalid_request,
                          "topic %s has %d partitions, not %d: their number is fixed when a topic "
                          "is made, since keys would move",
                          topic->name, found.partitions, topic->partitions);
    }
    if (rc == BATON_OK) {
        rc = kafka_settings_of(log, RD_KAFKA_RESOURCE_TOPIC, topic->name, ASK_TIMEOUT_MS, &event,
                               &entries, &count, err);
    }
    if (rc == BATON_OK) {
        rd_kafka_ConfigResource_t *resource = merged(topic, found.copies, entries, count);
        rd_kafka_event_destroy(event);
        rc = write_settings(log, resource, topic->name, err);
        rd_kafka_ConfigResource_destroy(resource);
        if (rc == BATON_OK) {
            await_written(log, topic, found.copies);
        }
        kafka_topic_forget(log, topic->name);
    }
    return rc;
}
