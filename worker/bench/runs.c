/*
 * Runs through a coordinator: how long it needs to start over a run log that holds many, how long from
 * the end of a turn to the start of the next one's executor, and how many such handoffs it does in a
 * second. Every run is a paired review in which the reviewer asks for changes as often as it may.
 *
 * In: worker/cmd_bench.c  Out: runs_fill.c, runs_start.c, process.c
 */
#include "worker/bench/runs.h"

#include "common/base/check.h"
#include "common/base/clock.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_MS 1
#define STALL_MS 120000
#define MARKS (2 * BENCH_RUN_TURNS) /* of a run in the page: start and end of each turn */

/* ---- the executor's side ---- */

const char *bench_do_run_turn(struct bench_page *page, const char *number, const char *role)
{
    const int64_t now_ns = mono_ns();
    const long long run = strtoll(number, NULL, 10);
    _Atomic int64_t *marks = &page->start_ns[run * MARKS];
    size_t turn = 0;
    BATON_PRE(run >= 0 && run < page->runs);
    while (turn < BENCH_RUN_TURNS && atomic_load(&marks[2 * turn]) != 0) {
        turn++;
    }
    BATON_PRE(turn < BENCH_RUN_TURNS); /* a run has one turn at a time, and so many of them */
    atomic_store(&marks[2 * turn], now_ns);
    atomic_fetch_add(turn == 0 ? &page->again : &page->started, 1);
    const int64_t takes_ms = atomic_load(&page->turn_ms);
    if (takes_ms > 0) {
        (void)poll(NULL, 0, (int)takes_ms);
    }
    atomic_store(&marks[2 * turn + 1], mono_ns());
    return strcmp(role, "owner") == 0    ? BENCH_VERDICT
           : turn + 1 == BENCH_RUN_TURNS ? "approve"
                                         : "changes";
}

/* ---- the measuring side ---- */

struct field {
    const struct bench_set *set;
    struct bench_worker worker;
    struct bench_worker coordinator;
    struct bench_starter *starter;
    int64_t next; /* run */
};

/* Waits until both processes have brought the number so far, for as long as it moves. */
static baton_code wait_for(const struct field *field, const _Atomic int64_t *value,
                           int64_t at_least, struct baton_error *err)
{
    int64_t before = -1;
    int64_t moved_ms = mono_now().v;
    for (;;) {
        const int64_t now = atomic_load(value);
        if (now >= at_least) {
            return BATON_OK;
        }
        if (now != before) {
            before = now;
            moved_ms = mono_now().v;
        }
        if (!bench_worker_runs(&field->worker) || !bench_worker_runs(&field->coordinator) ||
            mono_now().v - moved_ms > STALL_MS) {
            return baton_fail(err, BATON_E_unexpected, "what is measured stopped at %lld of %lld",
                              (long long)now, (long long)at_least);
        }
        (void)poll(NULL, 0, LOOK_MS);
    }
}

/* Handoffs of all runs so far: every turn but the first of each. */
static int64_t handoffs_of(int64_t runs)
{
    return runs * (BENCH_RUN_TURNS - 1);
}

static baton_code start_both(struct field *field, struct bench_runs *ret, struct baton_error *err)
{
    struct bench_page *page = field->set->page;
    baton_code rc = bench_worker_start(field->set, BENCH_WORKER, &field->worker, err);
    if (rc != BATON_OK) {
        return rc;
    }
    field->coordinator.pid = 0;
    if ((rc = bench_wait(&field->worker, &page->ready_ns, 1, err)) != BATON_OK ||
        (rc = bench_start_runs(field->starter, 0, BENCH_WARM_RUNS, err)) != BATON_OK ||
        (rc = bench_coordinator_start(field->set, BENCH_WORKER, &field->coordinator, err)) !=
            BATON_OK) {
        return rc;
    }
    field->next = BENCH_WARM_RUNS;
    /* They lie in all partitions: each of them has been restored once the last one has begun. */
    if ((rc = wait_for(field, &page->again, BENCH_WARM_RUNS, err)) == BATON_OK) {
        int64_t last_ns = 0;
        for (int run = 0; run < BENCH_WARM_RUNS; run++) {
            const int64_t at_ns = atomic_load(&page->start_ns[run * MARKS]);
            last_ns = at_ns > last_ns ? at_ns : last_ns;
        }
        ret->start_s = (double)(last_ns - field->coordinator.spawned_ns) / 1e9;
        const struct bench_use use = bench_worker_use(&field->coordinator);
        ret->rss_kib = use.rss_kib;
        ret->start_cpu_s = use.cpu_s;
        rc = wait_for(field, &page->started, handoffs_of(field->next), err);
    }
    return rc;
}

/* ---- the plan in numbers of runs ---- */

static int64_t runs_timed(const struct bench_runs_plan *plan)
{
    return plan->rate > 0 ? plan->rate * plan->seconds / BENCH_RUN_TURNS + 1 : 0;
}

static int64_t runs_at_once(const struct bench_runs_plan *plan)
{
    return plan->turns / BENCH_RUN_TURNS + 1;
}

int64_t bench_runs_room(const struct bench_runs_plan *plan)
{
    return (BENCH_WARM_RUNS + runs_timed(plan) + runs_at_once(plan)) * MARKS;
}

/* ---- measuring ---- */

/* Runs begin one after the other, so that at that rate turns start. Their executors take a while, as
 * real ones do: the end of a turn is not right behind its claim. */
static baton_code few_at_a_time(struct field *field, const struct bench_runs_plan *plan,
                                struct bench_runs *ret, struct baton_error *err)
{
    struct bench_page *page = field->set->page;
    const int64_t runs = runs_timed(plan);
    const int64_t first = field->next;
    const int64_t interval_ns = BENCH_RUN_TURNS * INT64_C(1000000000) / plan->rate;
    const int64_t begin_ns = mono_ns();
    int64_t *waits = calloc((size_t)handoffs_of(runs), sizeof(*waits));
    baton_code rc = waits != NULL ? BATON_OK : baton_fail(err, BATON_E_no_memory, "out of memory");
    atomic_store(&page->turn_ms, BENCH_RUN_TURN_MS);
    for (; rc == BATON_OK && field->next < first + runs; field->next++) {
        bench_sleep_until(begin_ns + (field->next - first) * interval_ns);
        rc = bench_start_runs(field->starter, field->next, 1, err);
    }
    if (rc == BATON_OK) {
        rc = wait_for(field, &page->started, handoffs_of(field->next), err);
    }
    if (rc == BATON_OK) {
        size_t n = 0;
        for (int64_t run = first; run < field->next; run++) {
            const _Atomic int64_t *marks = &page->start_ns[run * MARKS];
            for (size_t turn = 1; turn < BENCH_RUN_TURNS; turn++) {
                waits[n++] = atomic_load(&marks[2 * turn]) - atomic_load(&marks[2 * turn - 1]);
            }
        }
        ret->p50_ms = (double)bench_quantile(waits, n, 0.5) / 1e6;
        ret->p99_ms = (double)bench_quantile(waits, n, 0.99) / 1e6;
        ret->worst_ms = (double)waits[n - 1] / 1e6;
    }
    atomic_store(&page->turn_ms, 0);
    free(waits);
    return rc;
}

/* Many runs at once. */
static baton_code many_at_once(struct field *field, int64_t runs, struct bench_runs *ret,
                               struct baton_error *err)
{
    const _Atomic int64_t *started = &field->set->page->started;
    const struct bench_use before = bench_worker_use(&field->coordinator);
    const int64_t begin_ns = mono_ns();
    baton_code rc = bench_start_runs(field->starter, field->next, runs, err);
    field->next += runs;
    if (rc == BATON_OK &&
        (rc = wait_for(field, started, handoffs_of(field->next), err)) == BATON_OK) {
        const struct bench_use after = bench_worker_use(&field->coordinator);
        const double handoffs = (double)handoffs_of(runs);
        ret->handoffs_s = handoffs * 1e9 / (double)(mono_ns() - begin_ns);
        ret->cpu_s_1000 = (after.cpu_s - before.cpu_s) * 1000 / handoffs;
        ret->peak_kib = after.peak_kib;
    }
    return rc;
}

baton_code bench_runs(const struct bench_set *set, const struct bench_runs_plan *plan,
                      struct bench_runs *ret, struct baton_error *err)
{
    struct field field = {.set = set};
    const int64_t begin_ns = mono_ns();
    set->page->runs = set->turns / MARKS;
    atomic_store(&set->page->threads, BENCH_RUN_THREADS);
    baton_code rc = bench_fill_runs(set, plan->runs, plan->open, err);
    ret->fill_s = (double)(mono_ns() - begin_ns) / 1e9;
    if (rc != BATON_OK || (rc = bench_starter_open(set, &field.starter, err)) != BATON_OK) {
        return rc;
    }
    if ((rc = start_both(&field, ret, err)) == BATON_OK && plan->rate > 0) {
        rc = few_at_a_time(&field, plan, ret, err);
    }
    if (rc == BATON_OK) {
        rc = many_at_once(&field, runs_at_once(plan), ret, err);
    }
    baton_code stopped = BATON_OK;
    if (field.coordinator.pid > 0) {
        stopped = bench_worker_stop(&field.coordinator, NULL, rc == BATON_OK ? err : NULL);
    }
    if (field.worker.pid > 0) {
        const baton_code ended =
            bench_worker_stop(&field.worker, NULL, rc == BATON_OK ? err : NULL);
        stopped = stopped == BATON_OK ? ended : stopped;
    }
    bench_starter_close(field.starter);
    return rc == BATON_OK ? stopped : rc;
}
