/*
 * The floor on a log: what a turn costs there alone. Handoffs are read and written back as a worker
 * writes them (the claim, then the end and the outcome in a later transaction), in transactions with
 * their offsets, through the same functions of the log, without deciding, executing, proving or a
 * store.
 *
 * In: worker/cmd_bench.c  Out: common/log/log.h
 */
#include "worker/bench/bench.h"

#include "common/base/check.h"
#include "common/base/clock.h"
#include "topics/catalogue.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 512
#define FETCH_BYTES (1024 * 1024)
#define CLAIM_BYTES 1800 /* as long as those of a turn of BENCH_PAYLOAD bytes with proofs */
#define END_BYTES 730
#define OUTCOME_BYTES 530
#define COMMIT_TIMEOUT_MS 30000
#define CLOSE_TIMEOUT_MS 5000
#define HEARTBEAT_MS 100
#define COMMITS_MAX 65536

struct mark {
    char key[ID_MAX + 1];
    int32_t partition;
};

struct floor {
    struct log *log;
    struct log_member *member;
    struct topic_name inputs[LOG_INPUTS];
    struct topic_name turns;
    struct topic_name outcomes;
    struct log_event assigned;
    int64_t next[LOG_PARTITIONS_MAX];
    bool written[LOG_PARTITIONS_MAX];
    struct mark claims[BATCH];
    struct mark ends[BATCH];
    size_t n_claims;
    size_t n_ends;
    struct log_batch batch;
    struct log_record records[3 * BATCH];
    char value[CLAIM_BYTES];
    int64_t took_ns[COMMITS_MAX];
    size_t n_took;
};

static baton_code join(struct floor *at, const struct bench_set *set, struct baton_error *err)
{
    const struct topic_name group = group_of_workers(set->config->prefix.s, BENCH_SERVICE);
    const char *const outputs[] = {at->turns.s, at->outcomes.s};
    const struct log_member_spec spec = {
        .group = group.s,
        .worker = BENCH_WORKER,
        .boot = boot_id_new(),
        .inputs = {at->inputs[0].s, at->inputs[1].s},
        .outputs = outputs,
        .n_outputs = COUNT_OF(outputs),
        .session_ms = set->config->session_ms,
        .heartbeat_ms = set->config->heartbeat_ms,
    };
    baton_code rc = log_member_open(at->log, &spec, &at->member, err);
    while (rc == BATON_OK && at->assigned.kind != LOG_EVENT_assigned) {
        struct pollfd fd = {.fd = log_member_fd(at->member), .events = POLLIN};
        (void)poll(&fd, 1, HEARTBEAT_MS);
        rc = log_member_poll(at->member, &at->assigned, err);
    }
    for (size_t i = 0; rc == BATON_OK && i < at->assigned.count; i++) {
        for (int input = 0; rc == BATON_OK && input < LOG_INPUTS; input++) {
            rc = log_member_seek(at->member, input, at->assigned.partitions[i], 0, err);
        }
    }
    return rc;
}

/* Takes what is there, from each partition in turn. */
static baton_code take(struct floor *at, struct baton_error *err)
{
    baton_code rc = BATON_OK;
    at->n_claims = 0;
    for (size_t i = 0; rc == BATON_OK && i < at->assigned.count && at->n_claims < BATCH; i++) {
        const int32_t partition = at->assigned.partitions[i];
        rc = log_member_fetch(at->member, 0, partition, BATCH - at->n_claims, FETCH_BYTES,
                              &at->batch, err);
        for (size_t k = 0; rc == BATON_OK && k < at->batch.count; k++) {
            struct mark *mark = &at->claims[at->n_claims++];
            const struct log_record *record = &at->batch.records[k];
            const size_t len = record->key_len < ID_MAX ? record->key_len : ID_MAX;
            memcpy(mark->key, record->key, len);
            mark->key[len] = '\0';
            mark->partition = partition;
        }
        if (rc == BATON_OK && at->batch.count > 0) {
            at->next[partition] = at->batch.next_offset;
        }
    }
    return rc;
}

static struct log_record record_of(const struct floor *at, const struct topic_name *topic,
                                   int32_t partition, const char *key, size_t len)
{
    return (struct log_record){.topic = topic->s,
                               .partition = partition,
                               .key = key,
                               .key_len = strlen(key),
                               .value = at->value,
                               .value_len = len};
}

static baton_code commit(struct floor *at, struct baton_error *err)
{
    struct log_offset offsets[LOG_PARTITIONS_MAX];
    struct log_txn txn = {at->assigned.generation, at->records, 0, offsets, 0};
    struct log_commit_result result;
    memset(at->written, 0, sizeof(at->written));
    for (size_t i = 0; i < at->n_claims; i++) {
        const struct mark *mark = &at->claims[i];
        at->written[mark->partition] = true;
        at->records[txn.n_records++] =
            record_of(at, &at->turns, mark->partition, mark->key, CLAIM_BYTES);
    }
    for (size_t i = 0; i < at->n_ends; i++) {
        const struct mark *mark = &at->ends[i];
        at->written[mark->partition] = true;
        at->records[txn.n_records++] =
            record_of(at, &at->turns, mark->partition, mark->key, END_BYTES);
        at->records[txn.n_records++] =
            record_of(at, &at->outcomes, LOG_PARTITION_BY_KEY, mark->key, OUTCOME_BYTES);
    }
    for (int32_t p = 0; p < LOG_PARTITIONS_MAX; p++) {
        if (at->written[p]) {
            offsets[txn.n_offsets++] = (struct log_offset){0, p, at->next[p]};
        }
    }
    const int64_t begin_ns = mono_ns();
    baton_code rc = log_commit(at->member, &txn, COMMIT_TIMEOUT_MS, &result, err);
    if (rc == BATON_OK && result.verdict != LOG_VERDICT_committed) {
        rc =
            baton_fail(err, BATON_E_unexpected, "a transaction of the log alone was not committed");
    }
    if (at->n_took < COMMITS_MAX) {
        at->took_ns[at->n_took++] = mono_ns() - begin_ns;
    }
    return rc;
}

static baton_code run(struct floor *at, int64_t turns, struct baton_error *err)
{
    struct log_event event;
    baton_code rc = BATON_OK;
    for (int64_t done = 0; rc == BATON_OK && done < turns;) {
        rc = log_member_poll(at->member, &event, err);
        if (rc == BATON_OK) {
            rc = take(at, err);
        }
        if (rc == BATON_OK && at->n_claims == 0 && at->n_ends == 0) {
            struct pollfd fd = {.fd = log_member_fd(at->member), .events = POLLIN};
            (void)poll(&fd, 1, HEARTBEAT_MS);
            continue;
        }
        if (rc == BATON_OK) {
            rc = commit(at, err);
        }
        done += (int64_t)at->n_ends;
        memcpy(at->ends, at->claims, at->n_claims * sizeof(at->claims[0]));
        at->n_ends = at->n_claims;
    }
    return rc;
}

baton_code bench_floor(const struct bench_set *set, int64_t turns, struct bench_floor *ret,
                       struct baton_error *err)
{
    struct floor *at = calloc(1, sizeof(*at));
    if (at == NULL) {
        return baton_fail(err, BATON_E_no_memory, "out of memory");
    }
    const char *prefix = set->config->prefix.s;
    at->inputs[0] = topic_name(TOPIC_handoff, prefix, BENCH_SERVICE);
    at->inputs[1] = topic_name(TOPIC_control, prefix, BENCH_SERVICE);
    at->turns = topic_name(TOPIC_turns, prefix, BENCH_SERVICE);
    at->outcomes = topic_name(TOPIC_outcomes, prefix, NULL);
    memset(at->value, 'x', sizeof(at->value));
    baton_code rc = bench_publish_backlog(set, 0, turns, err);
    if (rc == BATON_OK && (rc = log_open(set->config, &at->log, err)) == BATON_OK) {
        rc = join(at, set, err);
    }
    if (rc == BATON_OK) {
        const int64_t begin_ns = mono_ns();
        rc = run(at, turns, err);
        ret->turns_s = (double)turns / ((double)(mono_ns() - begin_ns) / 1e9);
        ret->commit_ms = (double)bench_quantile(at->took_ns, at->n_took, 0.5) / 1e6;
    }
    if (at->member != NULL) {
        log_member_close(at->member, true, CLOSE_TIMEOUT_MS);
    }
    log_batch_free(&at->batch);
    log_close(at->log);
    free(at);
    return rc;
}
