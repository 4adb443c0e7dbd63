/*
 * How long a turn waits for its executor when there is no backlog: published one by one at a steady
 * rate, as `baton publish` does. Each wait counts from the moment at which its publish was due, so
 * that a stall is seen in every turn that it delays, to the start of the executor. In:
 * worker/cmd_bench.c  Out: process.c, producer/publish.c
 */
#include "worker/bench/bench.h"

#include "common/base/clock.h"
#include "producer/publish.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void bench_sleep_until(int64_t at_ns)
{
    int64_t left_ns;
    while ((left_ns = at_ns - mono_ns()) > 0) {
        const struct timespec left = {left_ns / 1000000000, left_ns % 1000000000};
        (void)nanosleep(&left, NULL);
    }
}

static baton_code publish_all(struct publisher *publisher, int64_t turns, int64_t interval_ns,
                              int64_t *planned, struct baton_error *err)
{
    char payload[BENCH_PAYLOAD];
    char task[32];
    const int64_t begin_ns = mono_ns();
    baton_code rc = BATON_OK;

    memset(payload, 'x', sizeof(payload));
    for (int64_t i = 0; rc == BATON_OK && i < turns; i++) {
        struct published published = {0};
        snprintf(task, sizeof(task), BENCH_TASK "%lld", (long long)i);
        const struct publish_request request = {
            .service = BENCH_SERVICE,
            .role = BENCH_ROLE,
            .task_id = task,
            .payload = payload,
            .payload_len = sizeof(payload),
        };
        planned[i] = begin_ns + i * interval_ns;
        bench_sleep_until(planned[i]);
        rc = publisher_publish(publisher, &request, &published, err);
        published_done(&published);
    }
    return rc;
}

baton_code bench_latency(const struct bench_set *set, int64_t rate, int64_t seconds,
                         struct bench_latency *ret, struct baton_error *err)
{
    struct bench_worker worker;
    struct publisher publisher;
    const int64_t turns = rate * seconds + BENCH_WARM_TURNS;
    int64_t *times = calloc((size_t)turns, sizeof(*times));

    if (times == NULL) {
        return baton_fail(err, BATON_E_no_memory, "out of memory");
    }
    baton_code rc = publisher_open(set->config, &publisher, err);
    if (rc != BATON_OK) {
        free(times);
        return rc;
    }
    if ((rc = bench_worker_start(set, BENCH_WORKER, &worker, err)) == BATON_OK) {
        rc = bench_wait(&worker, &set->page->ready_ns, 1, err);
        if (rc == BATON_OK) {
            rc = publish_all(&publisher, turns, 1000000000 / rate, times, err);
        }
        if (rc == BATON_OK) {
            rc = bench_wait(&worker, &set->page->started, turns, err);
        }
        baton_code stopped = bench_worker_stop(&worker, NULL, rc == BATON_OK ? err : NULL);
        rc = rc == BATON_OK ? stopped : rc;
    }
    publisher_close(&publisher);
    if (rc == BATON_OK) {
        const size_t count = (size_t)(turns - BENCH_WARM_TURNS);
        int64_t *waits = times + BENCH_WARM_TURNS;
        ret->rate = (double)(count - 1) * 1e9 /
                    (double)(atomic_load(&set->page->start_ns[turns - 1]) -
                             atomic_load(&set->page->start_ns[BENCH_WARM_TURNS]));
        for (int64_t i = BENCH_WARM_TURNS; i < turns; i++) {
            times[i] = atomic_load(&set->page->start_ns[i]) - times[i];
        }
        ret->p50_ms = (double)bench_quantile(waits, count, 0.5) / 1e6;
        ret->p99_ms = (double)bench_quantile(waits, count, 0.99) / 1e6;
        ret->worst_ms = (double)waits[count - 1] / 1e6;
    }
    free(times);
    return rc;
}
