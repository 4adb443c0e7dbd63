/* What the files about topics share. Included by topic.c, topic_cache.c and topic_settings.c. */
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

/* ---- topic_cache.c ---- */

/* topic_missing, and what makes it. */
baton_code topic_not_there(const char *name, struct baton_error *err);

#endif
