/*
 * The transactional producer: made, made anew after a fatal error, and the throw-away one that ends
 * what a dead worker left open.
 *
 * In: member.c, commit.c, common/log/log.c  Out: farewell.c, hang.c, confirm.c
 */
#include "common/log/kafka/member.h"

#include "common/base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RENEW_TIMEOUT_MS 10000
#define INIT_STEP_MS 2000
#define INIT_PAUSE_MS 20
#define TRANSACTION_TIMEOUT_MIN_MS 1000

/* ---- making one ---- */

struct transactional_id transactional_id_of(const char *group, const char *worker)
{
    struct transactional_id id;
    snprintf(id.s, sizeof(id.s), "%s.%s", group, worker);
    return id;
}

/* Takes the transactional id over: retried inside until the time is over. */
static baton_code init_transactions(struct kafka_client *client, rd_kafka_t *rk, const char *id,
                                    int64_t timeout_ms, struct baton_error *err)
{
    const struct kafka_member *member = client->owner; /* NULL: a throw-away one's */
    const int64_t begun = mono_now().v;
    const int64_t end = begun + timeout_ms;
    for (;;) {
        const int64_t left = end - mono_now().v;
        rd_kafka_error_t *error =
            rd_kafka_init_transactions(rk, left < INIT_STEP_MS ? (int)left : INIT_STEP_MS);
        if (error == NULL) {
            return BATON_OK;
        }
        const rd_kafka_resp_err_t cause = rd_kafka_error_code(error);
        const bool again = rd_kafka_error_is_retriable(error) != 0;
        rd_kafka_error_destroy(error);
        rd_kafka_poll(rk, again ? INIT_PAUSE_MS : 0); /* what the connection says */
        if (!again || mono_now().v >= end || (member != NULL && member_hurried(member, begun)) ||
            atomic_load(&client->cause) == RD_KAFKA_RESP_ERR__AUTHENTICATION) {
            return kafka_fail_client(err, client, cause, KAFKA_TRIED_take_over, id);
        }
    }
}

/* delivered NULL: a throw-away one. */
static baton_code make(struct kafka_log *log, struct kafka_client *client, const char *id,
                       int64_t transaction_ms,
                       void (*delivered)(rd_kafka_t *, const rd_kafka_message_t *, void *),
                       rd_kafka_t **ret_rk, struct baton_error *err)
{
    struct baton_error local = {BATON_OK, ""};
    struct baton_error *why = err != NULL ? err : &local;
    rd_kafka_conf_t *conf = kafka_conf_new(log, client, KAFKA_USE_txn, why);
    if (conf == NULL) {
        return why->code;
    }
    baton_code rc = kafka_set(conf, "transactional.id", id, why);
    if (rc == BATON_OK) {
        rc = kafka_set_int(conf, "transaction.timeout.ms",
                           transaction_ms < TRANSACTION_TIMEOUT_MIN_MS ? TRANSACTION_TIMEOUT_MIN_MS
                                                                       : transaction_ms,
                           why);
    }
    if (rc != BATON_OK) {
        rd_kafka_conf_destroy(conf);
        return rc;
    }
    if (delivered != NULL) {
        rd_kafka_conf_set_dr_msg_cb(conf, delivered); /* else commits poll in steps of 10 ms */
    }
    return kafka_handle_new(client, conf, ret_rk, why);
}

/*
 * Topics are opened before the first transaction: else the first record of each waits up to a second
 * (librdkafka #5032). The handle keeps a topic only once it knows its partitions, so it is asked
 * for them before the topics are let go. One that is missing or denied makes only itself unavailable.
 */
static void open_outputs(struct kafka_member *member)
{
    struct kafka_topic known;
    const struct rd_kafka_metadata *metadata = NULL;
    rd_kafka_topic_t **topics = calloc(member->spec.n_outputs + 1, sizeof(rd_kafka_topic_t *));
    for (size_t i = 0; topics != NULL && i < member->spec.n_outputs; i++) {
        const char *name = member->spec.outputs[i];
        if (kafka_topic_of(member->log, name, RENEW_TIMEOUT_MS, &known, NULL) != BATON_OK) {
            continue;
        }
        topics[i] = rd_kafka_topic_new(member->producer, name, NULL);
        if (topics[i] == NULL) {
            diag_line(DIAG_warn, "kafka.topic_not_opened", D_TEXT("topic", name),
                      D_TEXT("error", rd_kafka_err2str(rd_kafka_last_error())));
        }
    }
    if (topics != NULL && rd_kafka_metadata(member->producer, 0, NULL, &metadata,
                                            RENEW_TIMEOUT_MS) == RD_KAFKA_RESP_ERR_NO_ERROR) {
        rd_kafka_metadata_destroy(metadata);
    }
    for (size_t i = 0; topics != NULL && i < member->spec.n_outputs; i++) {
        if (topics[i] != NULL) {
            rd_kafka_topic_destroy(topics[i]);
        }
    }
    free(topics);
}

baton_code producer_open(struct kafka_member *member, int64_t timeout_ms, struct baton_error *err)
{
    BATON_PRE(member->producer == NULL);
    atomic_store(&member->producer_client.cause, RD_KAFKA_RESP_ERR_NO_ERROR);
    baton_code rc = make(member->log, &member->producer_client, member->transactional_id.s,
                         member->spec.session_ms, deliveries_note, &member->producer, err);
    if (rc != BATON_OK) {
        return rc;
    }
    rc = init_transactions(&member->producer_client, member->producer, member->transactional_id.s,
                           timeout_ms, err);
    if (rc == BATON_OK) {
        open_outputs(member); /* the brokers are there, so this does not wait long */
        member->txn = TXN_none;
        if (!hang_end_records(member->log, member->producer, member->spec.outputs,
                              member->spec.n_outputs, confirm_judge(member))) {
            member->txn = TXN_broken; /* the next commit says so, and it is made anew */
        } else {
            confirm_forget(member);
        }
    }
    return rc;
}

void producer_close(struct kafka_member *member, int64_t timeout_ms)
{
    /* What is open is not ended here: the next process with this id ends it, or the broker. */
    member->n_deliveries = 0;
    rd_kafka_purge(member->producer, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT |
                                         RD_KAFKA_PURGE_F_NON_BLOCKING);
    rd_kafka_poll(member->producer, 0);
    if (kafka_destroy_bounded(member->producer, timeout_ms)) {
        member->producer = NULL;
    }
}

void producer_unhang(struct kafka_member *member)
{
    if (!hang_end_offsets(member->producer, member->spec.group, member->spec.inputs[0])) {
        member->txn = TXN_broken;
    }
}

baton_code kafka_member_renew(struct log_member *base, struct baton_error *err)
{
    struct kafka_member *member = (struct kafka_member *)base;
    if (member->producer != NULL) {
        producer_close(member, RENEW_TIMEOUT_MS);
        if (member->producer != NULL) {
            return baton_fail(err, BATON_E_unexpected,
                              "worker %s: the producer that is of no use any more cannot be "
                              "closed; start the worker again",
                              member->spec.worker);
        }
    }
    baton_code rc = producer_open(member, RENEW_TIMEOUT_MS, err);
    diag_line(rc == BATON_OK ? DIAG_info : DIAG_warn, "kafka.producer_renewed",
              D_TEXT("id", member->transactional_id.s), D_CODE("code", rc),
              D_TEXT("error", rc != BATON_OK && err != NULL ? err->text : NULL));
    return rc;
}

baton_code kafka_fence(struct log *log, const char *group, const char *worker,
                       const char *const *topics, size_t n_topics, int64_t timeout_ms,
                       struct baton_error *err)
{
    struct kafka_client *client = calloc(1, sizeof(*client));
    struct transactional_id id;
    rd_kafka_t *rk = NULL;

    if (client == NULL) {
        return baton_fail(err, BATON_E_no_memory, "out of memory");
    }
    client->log = (struct kafka_log *)log;
    client->use = KAFKA_USE_txn;
    id = transactional_id_of(group, worker);
    baton_code rc =
        make(client->log, client, id.s, TRANSACTION_TIMEOUT_MIN_MS * 10, NULL, &rk, err);
    if (rc == BATON_OK) {
        rc = init_transactions(client, rk, id.s, timeout_ms, err);
        if (rc == BATON_OK && n_topics > 0 &&
            hang_end_records(client->log, rk, topics, n_topics, HANG_abort)) {
            (void)hang_end_offsets(rk, group, topics[0]);
        }
        if (!kafka_destroy_bounded(rk, timeout_ms)) {
            return rc; /* the client is still called back */
        }
    }
    free(client);
    return rc;
}
