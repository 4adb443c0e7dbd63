/* Settings of topics as the brokers have them. Called by topic.c and topic_cache.c. */
#ifndef BATON_COMMON_LOG_KAFKA_TOPIC_H
#define BATON_COMMON_LOG_KAFKA_TOPIC_H

#include "common/log/kafka/internal.h"

/* ---- topic_settings.c ---- */

#define TOPIC_SETTINGS_MAX 10

struct topic_setting {
    const char *name;
    char value[32];
    bool own; /* the driver's, not one of struct log_topic */
};
/* Every setting that such a topic has; how many. */
size_t topic_settings_wanted(const struct log_topic *topic, int32_t copies,
                             struct topic_setting ret_settings[TOPIC_SETTINGS_MAX]);
/* Reads what is there into *topic: cleanup, times, size, and what differs of the driver's own;
 * partitions and copies are set already. */
void topic_settings_read(const rd_kafka_ConfigEntry_t **entries, size_t count,
                         struct log_topic *topic);
bool topic_settings_valid(const struct log_topic *topic, struct baton_error *err);

/* ---- topic.c ---- */

/* The settings of a topic as the broker has them; they live in *ret_event, which the caller
 * destroys. */
baton_code topic_entries(struct kafka_log *log, const char *name, int64_t timeout_ms,
                         rd_kafka_event_t **ret_event, const rd_kafka_ConfigEntry_t ***ret_entries,
                         size_t *ret_count, struct baton_error *err);

#endif
