/*
 * Signed requests that start runs, as `baton runs start` sends them, many at once. Nobody waits for
 * their answers. In: runs.c  Out: common/record/request.h, common/log/log.h
 */
#include "worker/bench/runs.h"

#include "common/record/headers.h"
#include "common/record/request.h"
#include "producer/identity.h"
#include "topics/catalogue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define START_AT_ONCE 250
#define START_TIMEOUT_MS 60000

struct bench_starter {
    struct identity identity;
    struct log *log;
    struct log_publisher *publisher;
    struct topic_name topic;
    struct plain_id ids[START_AT_ONCE];
    struct buf bytes[START_AT_ONCE];
    struct proof_text proofs[START_AT_ONCE];
    struct log_header headers[START_AT_ONCE];
    struct log_record records[START_AT_ONCE];
};

baton_code bench_starter_open(const struct bench_set *set, struct bench_starter **ret_starter,
                              struct baton_error *err)
{
    struct bench_starter *starter = calloc(1, sizeof(*starter));
    if (starter == NULL) {
        return baton_fail(err, BATON_E_no_memory, "out of memory");
    }
    starter->topic = topic_name(TOPIC_requests, set->config->prefix.s, NULL);
    baton_code rc = identity_open(set->config, &starter->identity, err);
    if (rc == BATON_OK && (rc = log_open(set->config, &starter->log, err)) == BATON_OK) {
        rc = log_publisher_open(starter->log, &starter->publisher, err);
    }
    if (rc != BATON_OK) {
        bench_starter_close(starter);
        return rc;
    }
    *ret_starter = starter;
    return BATON_OK;
}

void bench_starter_close(struct bench_starter *starter)
{
    if (starter == NULL) {
        return;
    }
    for (size_t i = 0; i < START_AT_ONCE; i++) {
        buf_done(&starter->bytes[i]);
    }
    if (starter->publisher != NULL) {
        log_publisher_close(starter->publisher);
    }
    log_close(starter->log);
    identity_close(&starter->identity);
    free(starter);
}

static baton_code add_start(struct bench_starter *starter, size_t at, int64_t number,
                            struct baton_error *err)
{
    struct request request = {.kind = REQUEST_start, .summary = (char *)BENCH_SUMMARY};
    struct buf *bytes = &starter->bytes[at];
    char task[32];
    snprintf(task, sizeof(task), BENCH_TASK "%lld", (long long)number);
    random_hex(request.id.s, 32);
    request.at = wall_now();
    request.workflow = plain_id_of(BENCH_WORKFLOW);
    request.task_id = task_id_of(task);
    snprintf(request.key, sizeof(request.key), "%s", task);
    request.run_id = request_run_id(starter->identity.fleet, starter->identity.name, request.key);
    buf_clear(bytes);
    request_encode(&request, bytes);
    if (!buf_ok(bytes)) {
        return baton_fail(err, BATON_E_no_memory, "out of memory");
    }
    starter->ids[at] = request.run_id;
    const struct digest digest = digest_of(bytes->data, bytes->len);
    baton_code rc = identity_prove(&starter->identity, PROOF_request, starter->ids[at].s, &digest,
                                   &starter->proofs[at], err);
    starter->headers[at] =
        (struct log_header){HEADER_SIG, starter->proofs[at].s, strlen(starter->proofs[at].s)};
    starter->records[at] = (struct log_record){
        .topic = starter->topic.s,
        .partition = LOG_PARTITION_BY_KEY,
        .key = starter->ids[at].s,
        .key_len = strlen(starter->ids[at].s),
        .value = bytes->data,
        .value_len = bytes->len,
        .headers = &starter->headers[at],
        .n_headers = starter->headers[at].value_len > 0 ? 1 : 0,
    };
    return rc;
}

baton_code bench_start_runs(struct bench_starter *starter, int64_t from, int64_t runs,
                            struct baton_error *err)
{
    baton_code rc = BATON_OK;
    for (int64_t at = 0; rc == BATON_OK && at < runs; at += START_AT_ONCE) {
        const size_t count = runs - at < START_AT_ONCE ? (size_t)(runs - at) : START_AT_ONCE;
        for (size_t i = 0; rc == BATON_OK && i < count; i++) {
            rc = add_start(starter, i, from + at + (int64_t)i, err);
        }
        if (rc == BATON_OK) {
            rc = log_publish(starter->publisher, starter->records, count, START_TIMEOUT_MS, err);
        }
    }
    return rc;
}
