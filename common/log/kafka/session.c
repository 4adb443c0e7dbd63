/*
 * How long a session may be: the brokers' setting, asked once when a member is opened, so that a
 * wrong configuration is said at the start and not by a member that never joins.
 *
 * In: member.c  Out: admin.c
 */
#include "common/log/kafka/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASK_TIMEOUT_MS 5000

/* The id of a broker, whichever answers first in the list. */
static bool first_broker(struct kafka_log *log, char *ret_id, size_t size)
{
    const struct rd_kafka_metadata *metadata = NULL;
    bool found = false;
    if (kafka_metadata(log, NULL, ASK_TIMEOUT_MS, &metadata, NULL) == BATON_OK) {
        if (metadata->broker_cnt > 0) {
            snprintf(ret_id, size, "%d", metadata->brokers[0].id);
            found = true;
        }
        rd_kafka_metadata_destroy(metadata);
    }
    return found;
}

static void take_number(const rd_kafka_ConfigEntry_t *entry, const char *name, int64_t *ret_number)
{
    const char *value = rd_kafka_ConfigEntry_value(entry);
    if (value != NULL && strcmp(rd_kafka_ConfigEntry_name(entry), name) == 0) {
        *ret_number = strtoll(value, NULL, 10);
    }
}

bool kafka_session_bounds(struct kafka_log *log, int64_t *ret_low, int64_t *ret_high)
{
    rd_kafka_event_t *event = NULL;
    const rd_kafka_ConfigEntry_t **entries = NULL;
    size_t count = 0;
    char id[16];
    int64_t low = -1;
    int64_t high = -1;

    if (!first_broker(log, id, sizeof(id)) ||
        kafka_settings_of(log, RD_KAFKA_RESOURCE_BROKER, id, ASK_TIMEOUT_MS, &event, &entries,
                          &count, NULL) != BATON_OK) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        take_number(entries[i], "group.min.session.timeout.ms", &low);
        take_number(entries[i], "group.max.session.timeout.ms", &high);
    }
    rd_kafka_event_destroy(event);
    if (low < 0 || high < 0) {
        return false;
    }
    *ret_low = low;
    *ret_high = high;
    return true;
}
