/*
 * Which topics may be written, found out without writing: a record is sent with a demand for acknowledgements
 * that no broker takes. It looks for the right first, so the answer is "no right", or the refusal of that demand.
 * In: common/log/log.c (baton doctor). Out: probe.c
 */
#include "common/log/kafka/probe.h"

#include "common/base/clock.h"

#define NO_SUCH_ACKS "2" /* brokers know 0, 1 and all */
#define PURGE_MS 2000

static void on_answer(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
    struct probe *probe = message->_private;
    (void)rk;
    (void)opaque;
    probe->cause = message->err;
    probe->waits = false;
}

/* Asked for before: a record of a topic that the client does not know waits. */
static void send_one(rd_kafka_t *rk, const char *name, struct probe *probe)
{
    const struct rd_kafka_metadata *metadata = NULL;
    const struct log_record record = {
        .topic = name, .partition = 0, .key = "~", .key_len = 1, .value = "", .value_len = 0};
    probe->topic = rd_kafka_topic_new(rk, name, NULL);
    if (probe->topic == NULL) {
        probe->cause = rd_kafka_last_error();
        return;
    }
    if (rd_kafka_metadata(rk, 0, probe->topic, &metadata, PROBE_ANSWER_MS) ==
        RD_KAFKA_RESP_ERR_NO_ERROR) {
        rd_kafka_metadata_destroy(metadata);
    }
    probe->cause = kafka_produce(rk, &record, probe);
    probe->waits = probe->cause == RD_KAFKA_RESP_ERR_NO_ERROR;
}

static void ask(struct kafka_log *log, struct kafka_client *client, rd_kafka_t *rk,
                const char *const *topics, size_t count, struct probe *probes,
                struct baton_error *errs)
{
    (void)log;
    const int64_t end_ms = mono_now().v + PROBE_ANSWER_MS;
    for (size_t i = 0; i < count; i++) {
        send_one(rk, topics[i], &probes[i]);
    }
    while (probes_wait(probes, count) && mono_now().v < end_ms) {
        rd_kafka_poll(rk, 100);
    }
    if (probes_wait(probes, count)) {
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
        rd_kafka_poll(rk, PURGE_MS);
    }
    for (size_t i = 0; i < count; i++) {
        errs[i] = (struct baton_error){BATON_OK, ""};
        if (probes[i].cause != RD_KAFKA_RESP_ERR_INVALID_REQUIRED_ACKS) {
            kafka_fail_client(&errs[i], client, probes[i].cause, KAFKA_TRIED_write, topics[i]);
        }
        if (probes[i].topic != NULL) {
            rd_kafka_topic_destroy(probes[i].topic);
        }
    }
}

static baton_code configure(rd_kafka_conf_t *conf, struct baton_error *err)
{
    baton_code rc;
    if ((rc = kafka_set(conf, "enable.idempotence", "false", err)) != BATON_OK ||
        (rc = kafka_set(conf, "acks", NO_SUCH_ACKS, err)) != BATON_OK ||
        (rc = kafka_set(conf, "retries", "0", err)) != BATON_OK) {
        return rc;
    }
    rd_kafka_conf_set_dr_msg_cb(conf, on_answer);
    return BATON_OK;
}

baton_code kafka_may_write(struct log *base, const char *const *topics, size_t count,
                           struct baton_error *ret_errs, struct baton_error *err)
{
    static const struct probe_question question = {KAFKA_USE_publisher, configure, ask};
    return probe_topics((struct kafka_log *)base, &question, topics, count, ret_errs, err);
}
