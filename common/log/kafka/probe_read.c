/*
 * Which topics may be read, found out without reading a record and without a group: a fetch from the end of a
 * partition. A broker looks for the right first, so the answer is "no right", or that the end is reached.
 * In: common/log/log.c (baton doctor). Out: probe.c
 */
#include "common/log/kafka/probe.h"

#include "common/base/clock.h"

#include <string.h>

/* The questions for topics come one after the other, each bounded, and all of them; the fetches wait side by
 * side, and their time begins after that. */
#define ASK_ALL_MS 30000

static void start_one(rd_kafka_t *rk, rd_kafka_queue_t *queue, const char *name,
                      struct probe *probe)
{
    probe->topic = rd_kafka_topic_new(rk, name, NULL);
    probe->waits = probe->topic != NULL &&
                   rd_kafka_consume_start_queue(probe->topic, 0, RD_KAFKA_OFFSET_END, queue) == 0;
    /* While it waits: what is so if nothing comes. */
    probe->cause = probe->waits ? RD_KAFKA_RESP_ERR__TIMED_OUT : rd_kafka_last_error();
}

static void on_answer(const rd_kafka_message_t *message, struct probe *probes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (probes[i].waits && message->rkt != NULL &&
            strcmp(rd_kafka_topic_name(probes[i].topic), rd_kafka_topic_name(message->rkt)) == 0) {
            probes[i].cause = message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF
                                  ? RD_KAFKA_RESP_ERR_NO_ERROR
                                  : message->err;
            rd_kafka_consume_stop(probes[i].topic, 0);
            probes[i].waits = false;
        }
    }
}

static void ask(struct kafka_log *log, struct kafka_client *client, rd_kafka_t *rk,
                const char *const *topics, size_t count, struct probe *probes,
                struct baton_error *errs)
{
    const int64_t asked_ms = mono_now().v + ASK_ALL_MS;
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    for (size_t i = 0; i < count; i++) {
        const int64_t left_ms = asked_ms - mono_now().v;
        errs[i] = (struct baton_error){BATON_OK, ""};
        (void)kafka_partition_for(log, topics[i], 0, KAFKA_TRIED_read,
                                  left_ms < PROBE_ANSWER_MS ? left_ms : PROBE_ANSWER_MS, &errs[i]);
    }
    for (size_t i = 0; i < count; i++) {
        if (errs[i].code == BATON_OK) {
            start_one(rk, queue, topics[i], &probes[i]);
        }
    }
    const int64_t end_ms = mono_now().v + PROBE_ANSWER_MS;
    while (probes_wait(probes, count) && mono_now().v < end_ms) {
        rd_kafka_message_t *message = rd_kafka_consume_queue(queue, 100);
        rd_kafka_poll(rk, 0);
        if (message != NULL) {
            on_answer(message, probes, count);
            rd_kafka_message_destroy(message);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (probes[i].cause != RD_KAFKA_RESP_ERR_NO_ERROR) {
            kafka_fail_client(&errs[i], client, probes[i].cause, KAFKA_TRIED_read, topics[i]);
        }
        if (probes[i].waits) {
            rd_kafka_consume_stop(probes[i].topic, 0);
        }
        if (probes[i].topic != NULL) {
            rd_kafka_topic_destroy(probes[i].topic);
        }
    }
    rd_kafka_queue_destroy(queue);
}

baton_code kafka_may_read(struct log *base, const char *const *topics, size_t count,
                          struct baton_error *ret_errs, struct baton_error *err)
{
    static const struct probe_question question = {KAFKA_USE_reader, NULL, ask};
    return probe_topics((struct kafka_log *)base, &question, topics, count, ret_errs, err);
}
