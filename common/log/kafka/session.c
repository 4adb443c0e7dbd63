/*
 * How long a session may be: the brokers' setting, asked once when a member is opened, so that a
 * wrong configuration is said at the start and not by a member that never joins.
 *
 * In: member.c
 */
#include "common/log/kafka/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASK_TIMEOUT_MS 5000

static bool first_broker(rd_kafka_t *rk, char *ret_id, size_t size)
{
    const struct rd_kafka_metadata *metadata = NULL;
    bool found = false;
    if (rd_kafka_metadata(rk, 0, NULL, &metadata, ASK_TIMEOUT_MS) == RD_KAFKA_RESP_ERR_NO_ERROR) {
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

static void read_bounds(const rd_kafka_DescribeConfigs_result_t *result, int64_t *ret_low,
                        int64_t *ret_high)
{
    size_t n = 0;
    const rd_kafka_ConfigResource_t **resources =
        rd_kafka_DescribeConfigs_result_resources(result, &n);
    if (n != 1 || rd_kafka_ConfigResource_error(resources[0]) != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return;
    }
    const rd_kafka_ConfigEntry_t **entries = rd_kafka_ConfigResource_configs(resources[0], &n);
    for (size_t i = 0; i < n; i++) {
        take_number(entries[i], "group.min.session.timeout.ms", ret_low);
        take_number(entries[i], "group.max.session.timeout.ms", ret_high);
    }
}

bool kafka_session_bounds(struct kafka_log *log, int64_t *ret_low, int64_t *ret_high)
{
    rd_kafka_t *rk = kafka_admin(log);
    char id[16];
    int64_t low = -1;
    int64_t high = -1;

    if (!first_broker(rk, id, sizeof(id))) {
        return false;
    }
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_ConfigResource_t *broker = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_BROKER, id);
    rd_kafka_AdminOptions_t *options =
        rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS);
    char text[128];
    (void)rd_kafka_AdminOptions_set_request_timeout(options, ASK_TIMEOUT_MS, text, sizeof(text));
    rd_kafka_DescribeConfigs(rk, &broker, 1, options, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, ASK_TIMEOUT_MS + 1000);
    if (event != NULL && rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR_NO_ERROR &&
        rd_kafka_event_DescribeConfigs_result(event) != NULL) {
        read_bounds(rd_kafka_event_DescribeConfigs_result(event), &low, &high);
    }
    if (event != NULL) {
        rd_kafka_event_destroy(event);
    }
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_ConfigResource_destroy(broker);
    rd_kafka_queue_destroy(queue);
    if (low < 0 || high < 0) {
        return false;
    }
    *ret_low = low;
    *ret_high = high;
    return true;
}
