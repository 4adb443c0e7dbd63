/*
 * How fast a backlog goes: from the moment in which the worker has joined its group to the moment
 * in which the log holds the outcome of every turn.
 *
 * In: worker/cmd_bench.c  Out: process.c
 */
#include "worker/bench/bench.h"

#include "common/base/clock.h"
#include "topics/catalogue.h"

#include <poll.h>

#define LOOK_MS 10
#define READ_AT_ONCE 1000
#define STALL_MS 60000

/* Who counts outcomes: by the ends of the partitions, or by reading them, where commit markers take
 * offsets, too. */
struct counter {
    struct log *log;
    const struct config *config;
    struct topic_name topic;
    struct log_reader *readers[LOG_PARTITIONS_MAX]; /* NULL: by the ends */
    struct log_batch batch;
    int64_t count;
};

static void counter_close(struct counter *at)
{
    for (int32_t p = 0; p < LOG_PARTITIONS_MAX; p++) {
        if (at->readers[p] != NULL) {
            log_reader_close(at->readers[p]);
        }
    }
    log_batch_free(&at->batch);
    log_close(at->log);
}

static baton_code counter_open(struct counter *at, const struct bench_set *set,
                               struct baton_error *err)
{
    *at = (struct counter){.config = set->config};
    at->topic = topic_name(TOPIC_outcomes, set->config->prefix.s, NULL);
    baton_code rc = log_open(set->config, &at->log, err);
    for (int32_t p = 0; rc == BATON_OK && set->brokers != NULL && p < set->config->partitions;
         p++) {
        rc = log_reader_open(at->log, at->topic.s, p, 0, LOG_READ_committed, &at->readers[p], err);
    }
    return rc;
}

static baton_code count_outcomes(struct counter *at, struct baton_error *err)
{
    int64_t ends = 0;
    baton_code rc = BATON_OK;
    for (int32_t p = 0; rc == BATON_OK && p < at->config->partitions; p++) {
        int64_t low = 0;
        int64_t high = 0;
        if (at->readers[p] == NULL) {
            rc = log_watermarks(at->log, at->topic.s, p, &low, &high, err);
            ends += high;
            continue;
        }
        do {
            rc = log_reader_next(at->readers[p], READ_AT_ONCE, 0, &at->batch, err);
            at->count += rc == BATON_OK ? (int64_t)at->batch.count : 0;
        } while (rc == BATON_OK && at->batch.count == READ_AT_ONCE);
    }
    at->count = ends > 0 ? ends : at->count;
    return rc;
}

static baton_code wait_outcomes(const struct bench_worker *worker, struct counter *counter,
                                int64_t turns, struct baton_error *err)
{
    int64_t before = -1;
    int64_t moved_ms = mono_now().v;
    for (;;) {
        baton_code rc = count_outcomes(counter, err);
        const int64_t count = counter->count;
        if (rc != BATON_OK || count >= turns) {
            return rc;
        }
        if (count != before) {
            before = count;
            moved_ms = mono_now().v;
        }
        if (!bench_worker_runs(worker) || mono_now().v - moved_ms > STALL_MS) {
            return baton_fail(err, BATON_E_unexpected,
                              "the measured worker stopped after %lld of %lld turns",
                              (long long)count, (long long)turns);
        }
        (void)poll(NULL, 0, LOOK_MS);
    }
}

baton_code bench_drain(const struct bench_set *set, int64_t turns, struct bench_drain *ret,
                       struct baton_error *err)
{
    struct bench_worker worker;
    struct bench_use use = {0};
    struct counter counter = {0};
    int64_t end_ns = 0;

    baton_code rc = bench_publish_backlog(set, 0, turns, err);
    if (rc != BATON_OK || (rc = counter_open(&counter, set, err)) != BATON_OK ||
        (rc = bench_worker_start(set, BENCH_WORKER, &worker, err)) != BATON_OK) {
        counter_close(&counter);
        return rc;
    }
    rc = wait_outcomes(&worker, &counter, turns, err);
    end_ns = mono_ns();
    baton_code stopped = bench_worker_stop(&worker, &use, rc == BATON_OK ? err : NULL);
    counter_close(&counter);
    if (rc != BATON_OK || stopped != BATON_OK) {
        return rc != BATON_OK ? rc : stopped;
    }
    const double took_s = (double)(end_ns - atomic_load(&set->page->ready_ns)) / 1e9;
    ret->turns_s = (double)turns / took_s;
    ret->commits_s = (double)atomic_load(&set->page->commits) / took_s;
    ret->cpu_ms_turn = use.cpu_s * 1000 / (double)turns;
    ret->peak_kib = use.peak_kib;
    return BATON_OK;
}
