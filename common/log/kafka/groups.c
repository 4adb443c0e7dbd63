/* What a group looks like from outside. In: common/log/log.c. Out: admin.c. */
#include "common/log/kafka/state.h"

#include "common/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ASK_TIMEOUT_MS 10000
#define AGAIN_MS 5000 /* a coordinator that is starting, or has moved */
#define AGAIN_PAUSE_MS 100

/* Is it worth to ask once more, and is there time for it? Pauses before. */
static bool again(baton_code rc, int64_t began_ms, int64_t timeout_ms)
{
    const int64_t most_ms = timeout_ms - AGAIN_PAUSE_MS;
    if (rc != BATON_E_service_unavailable ||
        mono_now().v - began_ms >= (most_ms < AGAIN_MS ? most_ms : AGAIN_MS)) {
        return false;
    }
    nanosleep(&(struct timespec){0, AGAIN_PAUSE_MS * 1000000}, NULL);
    return true;
}

static int by_worker(const void *a, const void *b)
{
    return strcmp(((const struct log_group_member *)a)->worker,
                  ((const struct log_group_member *)b)->worker);
}

static int by_number(const void *a, const void *b)
{
    return (*(const int32_t *)a > *(const int32_t *)b) -
           (*(const int32_t *)a < *(const int32_t *)b);
}

/* The numbers are the same for both inputs: each once. */
static void partitions_of(const rd_kafka_MemberDescription_t *from, struct log_group_member *to)
{
    const rd_kafka_topic_partition_list_t *list =
        rd_kafka_MemberAssignment_partitions(rd_kafka_MemberDescription_assignment(from));
    for (int i = 0; list != NULL && i < list->cnt; i++) {
        bool there = false;
        for (size_t k = 0; k < to->count; k++) {
            there = there || to->partitions[k] == list->elems[i].partition;
        }
        if (!there && to->count < LOG_PARTITIONS_MAX) {
            to->partitions[to->count++] = list->elems[i].partition;
        }
    }
    qsort(to->partitions, to->count, sizeof(to->partitions[0]), by_number);
}

static baton_code members_of(const rd_kafka_ConsumerGroupDescription_t *group,
                             struct log_group_member **ret_members, size_t *ret_count,
                             struct baton_error *err)
{
    size_t count = rd_kafka_ConsumerGroupDescription_member_count(group);
    struct log_group_member *members = calloc(count + 1, sizeof(*members));
    if (members == NULL) {
        return baton_fail(err, BATON_E_no_memory, "members of a group: out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        const rd_kafka_MemberDescription_t *from =
            rd_kafka_ConsumerGroupDescription_member(group, i);
        const char *worker = rd_kafka_MemberDescription_group_instance_id(from);
        if (worker == NULL || worker[0] == '\0') { /* no member of ours */
            worker = rd_kafka_MemberDescription_client_id(from);
        }
        snprintf(members[i].worker, sizeof(members[i].worker), "%s", worker);
        partitions_of(from, &members[i]);
    }
    qsort(members, count, sizeof(*members), by_worker);
    *ret_members = members;
    *ret_count = count;
    return BATON_OK;
}

static baton_code ask_members(struct kafka_log *log, const char *group, int64_t timeout_ms,
                              struct log_group_member **ret_members, size_t *ret_count,
                              struct baton_error *err)
{
    struct kafka_request request;
    rd_kafka_event_t *event = NULL;
    size_t count = 0;
    kafka_request_begin(log, RD_KAFKA_ADMIN_OP_DESCRIBECONSUMERGROUPS,
                        timeout_ms < ASK_TIMEOUT_MS ? timeout_ms : ASK_TIMEOUT_MS, &request);
    rd_kafka_DescribeConsumerGroups(log->admin, &group, 1, request.options, request.queue);
    baton_code rc = kafka_request_end(&request, KAFKA_TRIED_group, group, &event, err);
    if (rc != BATON_OK) {
        return rc;
    }
    const rd_kafka_ConsumerGroupDescription_t **found =
        rd_kafka_DescribeConsumerGroups_result_groups(
            rd_kafka_event_DescribeConsumerGroups_result(event), &count);
    const rd_kafka_error_t *error =
        count == 1 ? rd_kafka_ConsumerGroupDescription_error(found[0]) : NULL;
    if (count != 1 || (error != NULL && rd_kafka_error_code(error) != RD_KAFKA_RESP_ERR_NO_ERROR &&
                       rd_kafka_error_code(error) != RD_KAFKA_RESP_ERR_GROUP_ID_NOT_FOUND)) {
        rc = kafka_fail_client(err, &log->client,
                               error != NULL ? rd_kafka_error_code(error)
                                             : RD_KAFKA_RESP_ERR__BAD_MSG,
                               KAFKA_TRIED_group, group);
    } else {
        rc = members_of(found[0], ret_members, ret_count, err);
    }
    rd_kafka_event_destroy(event);
    return rc;
}

baton_code kafka_group_members(struct log *base, const char *group, int64_t timeout_ms,
                               struct log_group_member **ret_members, size_t *ret_count,
                               struct baton_error *err)
{
    const int64_t began_ms = mono_now().v;
    baton_code rc;
    do {
        rc = ask_members((struct kafka_log *)base, group, timeout_ms - (mono_now().v - began_ms),
                         ret_members, ret_count, err);
    } while (again(rc, began_ms, timeout_ms));
    return rc;
}

/* Of one partition: the offset, LOG_OFFSET_NONE without one, or an error. */
static baton_code offset_in(struct kafka_log *log, rd_kafka_event_t *event, const char *group,
                            int64_t *ret_offset, struct baton_error *err)
{
    static const enum kafka_tried tried = KAFKA_TRIED_offsets;
    size_t count = 0;
    const rd_kafka_group_result_t **found = rd_kafka_ListConsumerGroupOffsets_result_groups(
        rd_kafka_event_ListConsumerGroupOffsets_result(event), &count);
    const rd_kafka_error_t *error = count == 1 ? rd_kafka_group_result_error(found[0]) : NULL;
    const rd_kafka_topic_partition_list_t *list =
        count == 1 ? rd_kafka_group_result_partitions(found[0]) : NULL;
    rd_kafka_resp_err_t cause = count != 1      ? RD_KAFKA_RESP_ERR__BAD_MSG
                                : error != NULL ? rd_kafka_error_code(error)
                                                : RD_KAFKA_RESP_ERR_NO_ERROR;
    if (cause == RD_KAFKA_RESP_ERR_NO_ERROR && list != NULL && list->cnt == 1) {
        cause = list->elems[0].err;
    }
    if (cause == RD_KAFKA_RESP_ERR_GROUP_ID_NOT_FOUND) {
        *ret_offset = LOG_OFFSET_NONE;
        return BATON_OK;
    }
    if (cause != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return kafka_fail_client(err, &log->client, cause, tried, group);
    }
    int64_t offset = list != NULL && list->cnt == 1 ? list->elems[0].offset : -1;
    *ret_offset = offset >= 0 ? offset : LOG_OFFSET_NONE;
    return BATON_OK;
}

/*
 * The handle for the offsets of groups. It has a group, though it never joins:
 * every librdkafka up to now looks for its own group's coordinator when an answer says that a
 * coordinator has moved, and crashes in a handle without a group. Which group does not matter; one
 * that is asked for may be described.
 */
static baton_code groups_handle(struct kafka_log *log, const char *group, rd_kafka_t **ret_rk,
                                struct baton_error *err)
{
    baton_code rc = BATON_OK;
    pthread_mutex_lock(&log->lock);
    if (log->groups == NULL) {
        rd_kafka_conf_t *conf = kafka_conf_new(log, &log->client, KAFKA_USE_admin, err);
        rc = conf != NULL ? kafka_set(conf, "group.id", group, err) : BATON_E_bad_config;
        if (rc == BATON_OK) {
            rc = kafka_handle_new(&log->client, conf, &log->groups, err);
        } else if (conf != NULL) {
            rd_kafka_conf_destroy(conf);
        }
    }
    *ret_rk = log->groups;
    pthread_mutex_unlock(&log->lock);
    return rc;
}

static baton_code ask_offset(struct kafka_log *log, const char *group, const char *topic,
                             int32_t partition, int64_t *ret_offset, struct baton_error *err)
{
    struct kafka_request request;
    rd_kafka_event_t *event = NULL;
    rd_kafka_t *rk = NULL;
    baton_code rc = groups_handle(log, group, &rk, err);
    if (rc != BATON_OK) {
        return rc;
    }
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, topic, partition);
    rd_kafka_ListConsumerGroupOffsets_t *asked = rd_kafka_ListConsumerGroupOffsets_new(group, list);
    rd_kafka_topic_partition_list_destroy(list);
    kafka_request_begin_by(log, rk, RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS, ASK_TIMEOUT_MS,
                           &request);
    rd_kafka_ListConsumerGroupOffsets(rk, &asked, 1, request.options, request.queue);
    rc = kafka_request_end(&request, KAFKA_TRIED_offsets, group, &event, err);
    rd_kafka_ListConsumerGroupOffsets_destroy(asked);
    if (rc == BATON_OK) {
        rc = offset_in(log, event, group, ret_offset, err);
        rd_kafka_event_destroy(event);
    }
    return rc;
}

baton_code kafka_group_offset(struct log *base, const char *group, const char *topic,
                              int32_t partition, int64_t *ret_offset, struct baton_error *err)
{
    struct kafka_log *log = (struct kafka_log *)base;
    const int64_t began_ms = mono_now().v;
    baton_code rc =
        kafka_partition_for(log, topic, partition, KAFKA_TRIED_describe, ASK_TIMEOUT_MS, err);
    if (rc != BATON_OK) {
        return rc;
    }
    do {
        rc = ask_offset(log, group, topic, partition, ret_offset, err);
    } while (again(rc, began_ms, ASK_TIMEOUT_MS + AGAIN_MS));
    return rc;
}
