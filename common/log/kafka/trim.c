/* The ends of a partition, and deleting from its front. In: common/log/log.c, reader.c. */
#include "common/log/kafka/state.h"

#include "common/base/clock.h"

#include <time.h>

#define ASK_TIMEOUT_MS 10000
#define ASK_SLICE_MS 2000
#define ASK_PAUSE_MS 50

/* Leaders that have moved, or are not chosen yet, are asked again. A client whose broker is just
 * stopping forgets the partitions of a topic for a while: whether they are there is judged by who
 * knows the topic (topic_cache.c). */
static bool passing(rd_kafka_resp_err_t cause)
{
    baton_code code = kafka_code(cause);
    return code == BATON_E_service_unavailable || code == BATON_E_timed_out ||
           cause == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION;
}

/* One end of a partition. rd_kafka_query_watermark_offsets would give both, but while its broker is
 * away it waits for ever, whatever time it was given (2.0.2); this one keeps to it, and takes the
 * same two names of the ends. */
static rd_kafka_resp_err_t ask_offset(rd_kafka_t *rk, const char *topic, int32_t partition,
                                      int64_t which, int64_t end_ms, int64_t *ret_offset)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_t *asked = rd_kafka_topic_partition_list_add(list, topic, partition);
    rd_kafka_resp_err_t cause;
    do {
        int64_t rest_ms = end_ms - mono_now().v;
        int64_t wait_ms = rest_ms < ASK_SLICE_MS ? rest_ms : ASK_SLICE_MS;
        asked->offset = which;
        asked->err = RD_KAFKA_RESP_ERR_NO_ERROR;
        cause = rd_kafka_offsets_for_times(rk, list, (int)(wait_ms > 1 ? wait_ms : 1));
        cause = cause == RD_KAFKA_RESP_ERR_NO_ERROR ? asked->err : cause;
        if (cause == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION) { /* said at once, without waiting */
            nanosleep(&(struct timespec){0, ASK_PAUSE_MS * 1000000}, NULL);
        }
    } while (passing(cause) && mono_now().v < end_ms);
    if (cause == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION) {
        cause = RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE;
    }
    if (cause == RD_KAFKA_RESP_ERR_NO_ERROR && asked->offset < 0) {
        cause = RD_KAFKA_RESP_ERR__BAD_MSG;
    }
    if (cause == RD_KAFKA_RESP_ERR_NO_ERROR) {
        *ret_offset = asked->offset;
    }
    rd_kafka_topic_partition_list_destroy(list);
    return cause;
}

rd_kafka_resp_err_t kafka_ends(rd_kafka_t *rk, const char *topic, int32_t partition,
                               int64_t timeout_ms, int64_t *ret_low, int64_t *ret_end)
{
    const int64_t end_ms = mono_now().v + timeout_ms;
    rd_kafka_resp_err_t cause = RD_KAFKA_RESP_ERR_NO_ERROR;
    if (ret_low != NULL) {
        cause = ask_offset(rk, topic, partition, RD_KAFKA_OFFSET_BEGINNING, end_ms, ret_low);
    }
    return cause != RD_KAFKA_RESP_ERR_NO_ERROR
               ? cause
               : ask_offset(rk, topic, partition, RD_KAFKA_OFFSET_END, end_ms, ret_end);
}

baton_code kafka_watermarks(struct log *base, const char *topic, int32_t partition,
                            int64_t *ret_low, int64_t *ret_high, struct baton_error *err)
{
    struct kafka_log *log = (struct kafka_log *)base;
    int64_t low = 0;
    int64_t high = 0;
    baton_code rc =
        kafka_partition_for(log, topic, partition, KAFKA_TRIED_describe, ASK_TIMEOUT_MS, err);
    if (rc != BATON_OK) {
        return rc;
    }
    rd_kafka_resp_err_t cause =
        kafka_ends(log->admin, topic, partition, ASK_TIMEOUT_MS, &low, &high);
    if (cause != RD_KAFKA_RESP_ERR_NO_ERROR) {
        rd_kafka_poll(log->admin, 0);
        kafka_topic_forget(log, topic);
        return kafka_unreachable(
            kafka_fail_client(err, &log->client, cause, KAFKA_TRIED_describe, topic), err);
    }
    *ret_low = low;
    *ret_high = high;
    return BATON_OK;
}

static rd_kafka_resp_err_t delete_below(struct kafka_log *log, const char *topic, int32_t partition,
                                        int64_t before, baton_code *ret_code,
                                        struct baton_error *err)
{
    struct kafka_request request;
    rd_kafka_event_t *event = NULL;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, topic, partition)->offset = before;
    rd_kafka_DeleteRecords_t *asked = rd_kafka_DeleteRecords_new(list);
    rd_kafka_topic_partition_list_destroy(list);
    kafka_request_begin(log, RD_KAFKA_ADMIN_OP_DELETERECORDS, ASK_TIMEOUT_MS, &request);
    rd_kafka_DeleteRecords(log->admin, &asked, 1, request.options, request.queue);
    *ret_code = kafka_request_end(&request, KAFKA_TRIED_trim, topic, &event, err);
    rd_kafka_DeleteRecords_destroy(asked);
    if (*ret_code != BATON_OK) {
        return RD_KAFKA_RESP_ERR__FAIL;
    }
    const rd_kafka_topic_partition_list_t *done =
        rd_kafka_DeleteRecords_result_offsets(rd_kafka_event_DeleteRecords_result(event));
    rd_kafka_resp_err_t cause =
        done != NULL && done->cnt == 1 ? done->elems[0].err : RD_KAFKA_RESP_ERR__BAD_MSG;
    rd_kafka_event_destroy(event);
    return cause;
}

baton_code kafka_trim(struct log *base, const char *topic, int32_t partition, int64_t before,
                      struct baton_error *err)
{
    struct kafka_log *log = (struct kafka_log *)base;
    baton_code rc =
        kafka_partition_for(log, topic, partition, KAFKA_TRIED_trim, ASK_TIMEOUT_MS, err);
    if (rc != BATON_OK || before <= 0) {
        return rc;
    }
    rd_kafka_resp_err_t cause = delete_below(log, topic, partition, before, &rc, err);
    if (cause == RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE) { /* behind the end: all of it */
        int64_t low = 0;
        int64_t high = 0;
        if ((rc = kafka_watermarks(base, topic, partition, &low, &high, err)) != BATON_OK ||
            before <= low) {
            return rc;
        }
        cause = delete_below(log, topic, partition, high, &rc, err);
    }
    if (rc != BATON_OK || cause == RD_KAFKA_RESP_ERR_NO_ERROR) {
        return rc;
    }
    if (cause == RD_KAFKA_RESP_ERR_POLICY_VIOLATION) {
        return baton_fail(err, BATON_E_invalid_request,
                          "topic %s is compacted: records go by their key, none is trimmed", topic);
    }
    return kafka_fail(err, log, cause, KAFKA_TRIED_trim, topic);
}
