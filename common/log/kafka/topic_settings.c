/* What the settings of a topic must be, and what is found. In: topic.c. */
#include "common/log/kafka/topic.h"

#include "common/base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LEN 249 /* Kafka's */
#define SEGMENT_BYTES (64LL * 1024 * 1024)
#define COMPACTION_LAG_MS 3600000LL

static const char *const cleanup_words[] = {"delete", "compact"};

static void add_text(struct topic_setting *settings, size_t *count, bool own, const char *name,
                     const char *value)
{
    BATON_PRE(*count < TOPIC_SETTINGS_MAX);
    struct topic_setting *to = &settings[(*count)++];
    to->name = name;
    to->own = own;
    snprintf(to->value, sizeof(to->value), "%s", value);
}

static void add_number(struct topic_setting *settings, size_t *count, bool own, const char *name,
                       int64_t value)
{
    char text[32];
    snprintf(text, sizeof(text), "%lld", (long long)value);
    add_text(settings, count, own, name, text);
}

size_t topic_settings_wanted(const struct log_topic *topic, int32_t copies,
                             struct topic_setting ret_settings[TOPIC_SETTINGS_MAX])
{
    struct topic_setting *to = ret_settings;
    size_t n = 0;
    add_text(to, &n, false, "cleanup.policy", cleanup_words[topic->cleanup]);
    add_number(to, &n, false, "max.message.bytes", (int64_t)topic->record_bytes_max);
    /* A publisher's clock means nothing: one that is a month behind would lose its records. */
    add_text(to, &n, true, "message.timestamp.type", "LogAppendTime");
    add_number(to, &n, true, "min.insync.replicas", copies > 2 ? copies - 1 : 1);
    switch (topic->cleanup) {
    case LOG_CLEANUP_delete:
        add_number(to, &n, false, "retention.ms", topic->retention_ms);
        add_text(to, &n, true, "retention.bytes", "-1");
        break;
    case LOG_CLEANUP_compact:
        add_number(to, &n, false, "delete.retention.ms", topic->tombstone_ms);
        add_number(to, &n, true, "segment.bytes", SEGMENT_BYTES);
        add_text(to, &n, true, "min.cleanable.dirty.ratio", "0.1");
        add_number(to, &n, true, "max.compaction.lag.ms", COMPACTION_LAG_MS);
        break;
    }
    return n;
}

static const char *value_of(const rd_kafka_ConfigEntry_t **entries, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(rd_kafka_ConfigEntry_name(entries[i]), name) == 0) {
            return rd_kafka_ConfigEntry_value(entries[i]);
        }
    }
    return NULL;
}

static int64_t number_of(const rd_kafka_ConfigEntry_t **entries, size_t count, const char *name)
{
    const char *value = value_of(entries, count, name);
    return value != NULL ? strtoll(value, NULL, 10) : 0;
}

static void add_difference(struct log_topic *topic, const char *name, const char *is,
                           const char *wanted)
{
    static const char more[] = "; more";
    const size_t len = strlen(topic->differs);
    const size_t room = sizeof(topic->differs) - len;
    int n = snprintf(topic->differs + len, room, "%s%s is %s, not %s", len > 0 ? "; " : "", name,
                     is, wanted);
    if (n < 0 || (size_t)n >= room) { /* not half a sentence */
        snprintf(topic->differs + len, room, "%s", room >= sizeof(more) ? more : "");
    }
}

void topic_settings_read(const rd_kafka_ConfigEntry_t **entries, size_t count,
                         struct log_topic *topic)
{
    struct topic_setting wanted[TOPIC_SETTINGS_MAX];
    const char *cleanup = value_of(entries, count, "cleanup.policy");
    topic->cleanup = cleanup != NULL && strstr(cleanup, "compact") != NULL ? LOG_CLEANUP_compact
                                                                           : LOG_CLEANUP_delete;
    topic->retention_ms = number_of(entries, count, "retention.ms");
    topic->tombstone_ms = number_of(entries, count, "delete.retention.ms");
    topic->record_bytes_max = (size_t)number_of(entries, count, "max.message.bytes");
    topic->differs[0] = '\0';
    if (cleanup != NULL && topic->cleanup == LOG_CLEANUP_compact &&
        strcmp(cleanup, "compact") != 0) {
        add_difference(topic, "cleanup.policy", cleanup, "compact");
    }
    size_t n = topic_settings_wanted(topic, topic->copies, wanted);
    for (size_t i = 0; i < n; i++) {
        const char *is = value_of(entries, count, wanted[i].name);
        if (wanted[i].own && is != NULL && strcmp(is, wanted[i].value) != 0) {
            add_difference(topic, wanted[i].name, is, wanted[i].value);
        }
    }
}

static bool name_valid(const char *name)
{
    size_t len = strlen(name);
    return len > 0 && len <= NAME_MAX_LEN && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == len;
}

bool topic_settings_valid(const struct log_topic *topic, struct baton_error *err)
{
    if (!name_valid(topic->name)) {
        baton_fail(err, BATON_E_invalid_request,
                   "topic name `%.100s`: letters, digits, '.', '_' and '-', at most %d of them",
                   topic->name, NAME_MAX_LEN);
        return false;
    }
    if (topic->partitions < 1 || topic->partitions > LOG_PARTITIONS_MAX) {
        baton_fail(err, BATON_E_invalid_request, "topic %s: %d partitions; 1 to %d are possible",
                   topic->name, topic->partitions, LOG_PARTITIONS_MAX);
        return false;
    }
    if (topic->retention_ms < -1 || topic->tombstone_ms < 0 || topic->record_bytes_max == 0 ||
        topic->record_bytes_max > INT32_MAX) {
        baton_fail(err, BATON_E_invalid_request,
                   "topic %s: retention %lld ms, tombstones %lld ms, records of %zu bytes: out of "
                   "range",
                   topic->name, (long long)topic->retention_ms, (long long)topic->tombstone_ms,
                   topic->record_bytes_max);
        return false;
    }
    return true;
}
