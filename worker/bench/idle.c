/*
 * A worker that has nothing to do, and how long one needs from its start to its first turn.
 * In: worker/cmd_bench.c  Out: process.c
 */
#include "worker/bench/bench.h"

#include "common/base/clock.h"

#include <poll.h>

#define SETTLE_MS 1500 /* after the start: the first heartbeats, and memory that is given back */

static baton_code one_start(const struct bench_set *set, int64_t number, int64_t *ret_ns,
                            struct baton_error *err)
{
    struct bench_worker worker;
    atomic_store(&set->page->first_ns, 0);
    atomic_store(&set->page->started, 0);
    baton_code rc = bench_publish_backlog(set, number, 1, err);
    if (rc != BATON_OK || (rc = bench_worker_start(set, BENCH_WORKER, &worker, err)) != BATON_OK) {
        return rc;
    }
    rc = bench_wait(&worker, &set->page->started, 1, err);
    *ret_ns = atomic_load(&set->page->first_ns) - worker.spawned_ns;
    baton_code stopped = bench_worker_stop(&worker, NULL, rc == BATON_OK ? err : NULL);
    return rc == BATON_OK ? stopped : rc;
}

static baton_code rest(const struct bench_set *set, int64_t seconds, struct bench_idle *ret,
                       struct baton_error *err)
{
    struct bench_worker worker;
    struct bench_use before;
    struct bench_use after;
    atomic_store(&set->page->ready_ns, 0);
    baton_code rc = bench_worker_start(set, BENCH_WORKER, &worker, err);
    if (rc != BATON_OK) {
        return rc;
    }
    if ((rc = bench_wait(&worker, &set->page->ready_ns, 1, err)) == BATON_OK) {
        (void)poll(NULL, 0, SETTLE_MS);
        before = bench_worker_use(&worker);
        const int64_t begin_ns = mono_ns();
        (void)poll(NULL, 0, (int)(seconds * 1000));
        after = bench_worker_use(&worker);
        ret->rss_kib = after.rss_kib;
        ret->cpu_percent =
            (after.cpu_s - before.cpu_s) * 100 / ((double)(mono_ns() - begin_ns) / 1e9);
    }
    baton_code stopped = bench_worker_stop(&worker, NULL, rc == BATON_OK ? err : NULL);
    return rc == BATON_OK ? stopped : rc;
}

baton_code bench_idle(const struct bench_set *set, int64_t seconds, struct bench_idle *ret,
                      struct baton_error *err)
{
    int64_t took[BENCH_STARTS];
    baton_code rc = BATON_OK;
    for (size_t i = 0; rc == BATON_OK && i < BENCH_STARTS; i++) {
        rc = one_start(set, (int64_t)i, &took[i], err);
    }
    if (rc != BATON_OK) {
        return rc;
    }
    ret->first_ms = (double)bench_quantile(took, BENCH_STARTS, 0.5) / 1e6;
    return rest(set, seconds, ret, err);
}
