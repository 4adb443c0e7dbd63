/*
 * Requests on the log's own handle: metadata, and those of administration. In: open.c, topic.c,
 * topic_cache.c, trim.c, groups.c, session.c. Each has one deadline; a broker that refuses the login
 * is not waited for.
 */
#include "common/log/kafka/state.h"

#include "common/base/clock.h"

#include <string.h>

#define SLICE_FIRST_MS 250
#define SLICE_MAX_MS 2000

/* Errors that the next try may not have. */
static bool passing(rd_kafka_resp_err_t cause)
{
    return cause == RD_KAFKA_RESP_ERR__TRANSPORT || cause == RD_KAFKA_RESP_ERR__TIMED_OUT ||
           cause == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN || cause == RD_KAFKA_RESP_ERR__RESOLVE ||
           cause == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE;
}

/* Hears what the connection has to say; true: it is not worth waiting. */
static bool hopeless(struct kafka_log *log, rd_kafka_t *rk)
{
    rd_kafka_poll(rk, 0);
    const baton_code code = kafka_fail_client(NULL, &log->client, RD_KAFKA_RESP_ERR__TRANSPORT,
                                              KAFKA_TRIED_connect, NULL);
    return code == BATON_E_not_permitted || code == BATON_E_bad_config;
}

baton_code kafka_metadata(struct kafka_log *log, const char *topic, int64_t timeout_ms,
                          const struct rd_kafka_metadata **ret_metadata, struct baton_error *err)
{
    const int64_t end_ms = mono_now().v + timeout_ms;
    int64_t slice_ms = SLICE_FIRST_MS;
    rd_kafka_topic_t *rkt = NULL;
    rd_kafka_resp_err_t cause;
    const bool all = topic != NULL && strcmp(topic, KAFKA_ALL_TOPICS) == 0;
    if (topic != NULL && !all && (rkt = rd_kafka_topic_new(log->admin, topic, NULL)) == NULL) {
        return kafka_fail(err, log, rd_kafka_last_error(), KAFKA_TRIED_describe, topic);
    }
    for (;;) {
        int64_t rest_ms = end_ms - mono_now().v;
        int64_t wait_ms = rest_ms < slice_ms ? rest_ms : slice_ms;
        cause =
            rd_kafka_metadata(log->admin, all, rkt, ret_metadata, (int)(wait_ms > 1 ? wait_ms : 1));
        if (!passing(cause) || hopeless(log, log->admin) || mono_now().v >= end_ms) {
            break;
        }
        slice_ms = slice_ms * 2 > SLICE_MAX_MS ? SLICE_MAX_MS : slice_ms * 2;
    }
    if (rkt != NULL) {
        rd_kafka_topic_destroy(rkt);
    }
    if (cause != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return topic == NULL
                   ? kafka_fail_client(err, &log->client, cause, KAFKA_TRIED_connect, NULL)
                   : kafka_fail_client(err, &log->client, cause, KAFKA_TRIED_describe,
                                       all ? "the topics" : topic);
    }
    kafka_client_well(&log->client);
    return BATON_OK;
}

void kafka_request_begin(struct kafka_log *log, rd_kafka_admin_op_t what, int64_t timeout_ms,
                         struct kafka_request *ret_request)
{
    kafka_request_begin_by(log, log->admin, what, timeout_ms, ret_request);
}

void kafka_request_begin_by(struct kafka_log *log, rd_kafka_t *rk, rd_kafka_admin_op_t what,
                            int64_t timeout_ms, struct kafka_request *ret_request)
{
    char text[8];
    timeout_ms = timeout_ms > 1 ? timeout_ms : 1;
    *ret_request = (struct kafka_request){.log = log,
                                          .rk = rk,
                                          .queue = rd_kafka_queue_new(rk),
                                          .options = rd_kafka_AdminOptions_new(rk, what),
                                          .timeout_ms = timeout_ms};
    rd_kafka_AdminOptions_set_request_timeout(ret_request->options, (int)timeout_ms, text,
                                              sizeof(text));
}

baton_code kafka_request_end(struct kafka_request *request, enum kafka_tried tried, const char *on,
                             rd_kafka_event_t **ret_event, struct baton_error *err)
{
    struct kafka_log *log = request->log;
    /* The client ends the request by itself; a little later nothing comes any more. */
    const int64_t end_ms = mono_now().v + request->timeout_ms + 2000;
    rd_kafka_event_t *event = NULL;
    rd_kafka_resp_err_t cause = RD_KAFKA_RESP_ERR__TIMED_OUT;
    while (event == NULL && mono_now().v < end_ms) {
        event = rd_kafka_queue_poll(request->queue, SLICE_FIRST_MS);
        if (event == NULL && hopeless(log, request->rk)) {
            break;
        }
    }
    rd_kafka_poll(request->rk, 0);
    if (event != NULL) {
        cause = rd_kafka_event_error(event);
    }
    rd_kafka_AdminOptions_destroy(request->options);
    rd_kafka_queue_destroy(request->queue);
    if (cause != RD_KAFKA_RESP_ERR_NO_ERROR) {
        baton_code rc = kafka_fail_client(err, &log->client, cause, tried, on);
        if (event != NULL) {
            rd_kafka_event_destroy(event);
        }
        return rc;
    }
    kafka_client_well(&log->client);
    *ret_event = event;
    return BATON_OK;
}

baton_code kafka_settings_of(struct kafka_log *log, rd_kafka_ResourceType_t type, const char *name,
                             int64_t timeout_ms, rd_kafka_event_t **ret_event,
                             const rd_kafka_ConfigEntry_t ***ret_entries, size_t *ret_count,
                             struct baton_error *err)
{
    static const enum kafka_tried tried = KAFKA_TRIED_settings;
    struct kafka_request request;
    rd_kafka_event_t *event = NULL;
    size_t count = 0;
    rd_kafka_ConfigResource_t *asked = rd_kafka_ConfigResource_new(type, name);
    kafka_request_begin(log, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, timeout_ms, &request);
    rd_kafka_DescribeConfigs(log->admin, &asked, 1, request.options, request.queue);
    baton_code rc = kafka_request_end(&request, tried, name, &event, err);
    rd_kafka_ConfigResource_destroy(asked);
    if (rc != BATON_OK) {
        return rc;
    }
    const rd_kafka_ConfigResource_t **found = rd_kafka_DescribeConfigs_result_resources(
        rd_kafka_event_DescribeConfigs_result(event), &count);
    rd_kafka_resp_err_t cause =
        count == 1 ? rd_kafka_ConfigResource_error(found[0]) : RD_KAFKA_RESP_ERR__BAD_MSG;
    if (cause != RD_KAFKA_RESP_ERR_NO_ERROR) {
        rd_kafka_event_destroy(event);
        return kafka_fail(err, log, cause, tried, name);
    }
    *ret_entries = rd_kafka_ConfigResource_configs(found[0], ret_count);
    *ret_event = event;
    return BATON_OK;
}
