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
#define STALL_MS 60000

static baton_code count_outcomes(struct log *log, const struct config *config, int64_t *ret_count,
                                 struct baton_error *err)
{
    const struct topic_name topic = topic_name(TOPIC_outcomes, config->prefix.s, NULL);
    int64_t count = 0;
    baton_code rc = BATON_OK;
    for (int32_t p = 0; rc == BATON_OK && p < config->partitions; p++) {
        int64_t low = 0;
        int64_t high = 0;
        rc = log_watermarks(log, topic.s, p, &low, &high, err);
        count += high;
    }
    *ret_count = count;
    return rc;
}

static baton_code wait_outcomes(const struct bench_set *set, const struct bench_worker *worker,
                                struct log *log, int64_t turns, struct baton_error *err)
{
    int64_t count = 0;
    int64_t before = -1;
    int64_t moved_ms = mono_now().v;
    for (;;) {
        baton_code rc = count_outcomes(log, set->config, &count, err);
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
    struct log *log = NULL;
    int64_t end_ns = 0;

    baton_code rc = bench_publish_backlog(set, 0, turns, err);
    if (rc != BATON_OK || (rc = log_open(set->config, &log, err)) != BATON_OK ||
        (rc = bench_worker_start(set, &worker, err)) != BATON_OK) {
        log_close(log);
        return rc;
    }
    rc = wait_outcomes(set, &worker, log, turns, err);
    end_ns = mono_ns();
    baton_code stopped = bench_worker_stop(&worker, &use, rc == BATON_OK ? err : NULL);
    log_close(log);
    if (rc != BATON_OK || stopped != BATON_OK) {
        return rc != BATON_OK ? rc : stopped;
    }
    ret->turns_s = (double)turns / ((double)(end_ns - atomic_load(&set->page->ready_ns)) / 1e9);
    ret->cpu_ms_turn = use.cpu_s * 1000 / (double)turns;
    ret->peak_kib = use.peak_kib;
    return BATON_OK;
}
