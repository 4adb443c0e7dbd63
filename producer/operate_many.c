/* Sends many control records together. See operate_many.h for who calls it. */
#include "producer/operate_many.h"

#include "common/base/check.h"
#include "common/record/headers.h"
#include "topics/catalogue.h"
#include "topics/scan.h"
#include "topics/service_view.h"

#include <stdlib.h>
#include <string.h>

#define SEND_TIMEOUT_MS 10000

struct operates {
    struct session *session;
    struct log_publisher *publisher;
    struct outcome_watch *watches[LOG_PARTITIONS_MAX];
    int32_t partitions; /* of outcomes */
};

baton_code operates_open(struct session *session, struct operates **ret_operates,
                         struct baton_error *err)
{
    const struct outcome_trust trust = session_trust(session);
    const char *prefix = session->config->prefix.s;
    struct operates *operates = calloc(1, sizeof(*operates));
    if (operates == NULL) {
        return baton_fail(err, BATON_E_no_memory, "no memory to operate");
    }
    operates->session = session;
    baton_code rc = log_publisher_open(session->log, &operates->publisher, err);
    if (rc == BATON_OK) {
        rc = scan_partitions(session->log, topic_name(TOPIC_outcomes, prefix, NULL).s,
                             &operates->partitions, err);
    }
    for (int32_t p = 0; rc == BATON_OK && p < operates->partitions; p++) {
        rc = outcome_watch_open_all(session->log, prefix, p, &trust, &operates->watches[p], err);
    }
    if (rc != BATON_OK) {
        operates_close(operates);
        return rc;
    }
    *ret_operates = operates;
    return BATON_OK;
}

void operates_close(struct operates *operates)
{
    if (operates == NULL) {
        return;
    }
    for (int32_t p = 0; p < operates->partitions; p++) {
        outcome_watch_close(operates->watches[p]);
    }
    if (operates->publisher != NULL) {
        log_publisher_close(operates->publisher);
    }
    free(operates);
}

/* The bytes of what is sent, until it is. */
struct sent {
    struct buf value;
    struct proof_text proof;
    struct log_header header;
};

static baton_code write_one(struct operates *operates, const char *topic, struct operate_one *one,
                            struct sent *sent, struct log_record *record, struct baton_error *err)
{
    random_hex(one->control.id.s, 32);
    one->control.at = wall_now();
    one->operated = (struct operated){.id = one->control.id};
    control_encode(&one->control, &sent->value);
    if (!buf_ok(&sent->value)) {
        return baton_fail(err, BATON_E_no_memory, "no memory for a control record");
    }
    const struct digest digest = digest_of(sent->value.data, sent->value.len);
    const char *key = one->control.turn_id.s;
    baton_code rc = identity_prove(&operates->session->identity, PROOF_control, key, &digest,
                                   &sent->proof, err);
    sent->header = (struct log_header){HEADER_SIG, sent->proof.s, strlen(sent->proof.s)};
    *record = (struct log_record){
        .topic = topic,
        .partition = LOG_PARTITION_BY_KEY,
        .key = key,
        .key_len = strlen(key),
        .value = sent->value.data,
        .value_len = sent->value.len,
        .headers = &sent->header,
        .n_headers = sent->proof.s[0] != '\0' ? 1 : 0,
    };
    return rc;
}

static baton_code send_all(struct operates *operates, const char *service, struct operate_one *all,
                           size_t count, struct baton_error *err)
{
    const struct topic_name topic =
        topic_name(TOPIC_control, operates->session->config->prefix.s, service);
    struct log_record records[OPERATE_BATCH];
    struct sent *sent = calloc(count, sizeof(*sent));
    baton_code rc = BATON_OK;
    if (sent == NULL) {
        return baton_fail(err, BATON_E_no_memory, "no memory for control records");
    }
    for (size_t i = 0; rc == BATON_OK && i < count; i++) {
        rc = write_one(operates, topic.s, &all[i], &sent[i], &records[i], err);
    }
    if (rc == BATON_OK) {
        rc = log_publish(operates->publisher, records, count, SEND_TIMEOUT_MS, err);
    }
    if (rc == BATON_E_topic_missing) {
        rc = baton_fail(err, BATON_E_unknown_service,
                        "service '%s' has no topic %s: `baton topics apply` makes it", service,
                        topic.s);
    }
    for (size_t i = 0; i < count; i++) {
        buf_done(&sent[i].value);
    }
    free(sent);
    return rc;
}

static int32_t answered_on(const struct operates *operates, const struct operate_one *one)
{
    const char *key = one->run_id[0] != '\0' ? one->run_id : one->control.turn_id.s;
    return log_partition_of(key, strlen(key), operates->partitions);
}

static size_t waiting_on(const struct operates *operates, int32_t partition,
                         const struct operate_one *all, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        n += !all[i].operated.answered && answered_on(operates, &all[i]) == partition ? 1 : 0;
    }
    return n;
}

static void hear(const struct outcome *outcome, struct operate_one *all, size_t count)
{
    for (size_t i = 0; outcome->event == OUTCOME_answer && i < count; i++) {
        if (strcmp(outcome->answers_id.s, all[i].control.id.s) == 0) {
            all[i].operated.answered = true;
            all[i].operated.code = outcome->code;
        }
    }
}

baton_code operates_send(struct operates *operates, const char *service, struct operate_one *all,
                         size_t count, int64_t timeout_ms, struct baton_error *err)
{
    const char *prefix = operates->session->config->prefix.s;
    bool alive = false;
    BATON_PRE(count > 0 && count <= OPERATE_BATCH);
    baton_code rc = send_all(operates, service, all, count, err);
    if (rc == BATON_OK) {
        rc = service_has_worker(operates->session->log, prefix, service, &alive, err);
    }
    const struct mono_ms until = {mono_now().v + timeout_ms};
    for (int32_t p = 0; rc == BATON_OK && alive && timeout_ms > 0 && p < operates->partitions;
         p++) {
        bool late = false;
        while (rc == BATON_OK && !late && waiting_on(operates, p, all, count) > 0) {
            struct outcome *outcome = NULL;
            rc = outcome_watch_next(operates->watches[p], until, &outcome, err);
            late = outcome == NULL;
            if (outcome != NULL) {
                hear(outcome, all, count);
                outcome_free(outcome);
            }
        }
    }
    return rc;
}
