/*
 * Which topics may be written, found out without writing: a record is sent with a demand for acknowledgements
 * that no broker takes. It looks for the right first, so the answer is "no right", or the refusal of that demand.
 * In: common/log/log.c (baton doctor).
 */
#include "common/log/kafka/state.h"

#include "common/base/clock.h"

#include <stdlib.h>

#define NO_SUCH_ACKS "2" /* brokers know 0, 1 and all */
#define ANSWER_MS 10000
#define CLOSE_MS 2000

struct probe {
    rd_kafka_topic_t *topic;
    rd_kafka_resp_err_t cause; /* INVALID_REQUIRED_ACKS: it may be written */
    bool waits;
};

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
    if (rd_kafka_metadata(rk, 0, probe->topic, &metadata, ANSWER_MS) ==
        RD_KAFKA_RESP_ERR_NO_ERROR) {
        rd_kafka_metadata_destroy(metadata);
    }
    probe->cause = kafka_produce(rk, &record, probe);
    probe->waits = probe->cause == RD_KAFKA_RESP_ERR_NO_ERROR;
}

static bool any_waits(const struct probe *probes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (probes[i].waits) {
            return true;
        }
    }
    return false;
}

static void ask(struct kafka_client *client, rd_kafka_t *rk, const char *const *topics,
                size_t count, struct probe *probes, struct baton_error *errs)
{
    const int64_t end_ms = mono_now().v + ANSWER_MS;
    for (size_t i = 0; i < count; i++) {
        send_one(rk, topics[i], &probes[i]);
    }
    while (any_waits(probes, count) && mono_now().v < end_ms) {
        rd_kafka_poll(rk, 100);
    }
    if (any_waits(probes, count)) {
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
        rd_kafka_poll(rk, CLOSE_MS);
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

baton_code kafka_may_write(struct log *base, const char *const *topics, size_t count,
                           struct baton_error *ret_errs, struct baton_error *err)
{
    struct probe *probes = calloc(count + 1, sizeof(*probes));
    struct kafka_client *client = calloc(1, sizeof(*client));
    rd_kafka_t *rk = NULL;
    rd_kafka_conf_t *conf = NULL;
    baton_code rc = BATON_E_no_memory;
    if (probes == NULL || client == NULL) {
        baton_fail(err, rc, "%zu topics: out of memory", count);
    } else if ((conf = kafka_conf_new((struct kafka_log *)base, client, KAFKA_USE_publisher,
                                      err)) == NULL) {
        rc = BATON_E_bad_config;
    } else if ((rc = kafka_set(conf, "enable.idempotence", "false", err)) != BATON_OK ||
               (rc = kafka_set(conf, "acks", NO_SUCH_ACKS, err)) != BATON_OK ||
               (rc = kafka_set(conf, "retries", "0", err)) != BATON_OK) {
        rd_kafka_conf_destroy(conf);
    } else {
        rd_kafka_conf_set_dr_msg_cb(conf, on_answer);
        rc = kafka_handle_new(client, conf, &rk, err);
    }
    if (rc == BATON_OK) {
        ask(client, rk, topics, count, probes, ret_errs);
    }
    if (rk == NULL || kafka_destroy_bounded(rk, CLOSE_MS)) {
        free(client);
        free(probes);
    } /* else a late answer may still look for them */
    return rc;
}
