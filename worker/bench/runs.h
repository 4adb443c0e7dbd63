/* What the files of `baton bench runs` share; nobody else includes it. */
#ifndef BATON_WORKER_BENCH_RUNS_H
#define BATON_WORKER_BENCH_RUNS_H

#include "producer/run/run.h"
#include "worker/bench/bench.h"

#define BENCH_WORKFLOW "paired-review"
#define BENCH_SUMMARY "Mend what the review finds"

/* Writes so many runs into the run log; of them the first `open` wait for a person. */
baton_code bench_fill_runs(const struct bench_set *set, int64_t runs, int64_t open,
                           struct baton_error *err);

/* Who asks for runs (runs_start.c); one thread. */
struct bench_starter;
baton_code bench_starter_open(const struct bench_set *set, struct bench_starter **ret_starter,
                              struct baton_error *err);
void bench_starter_close(struct bench_starter *starter);
/* Asks for the runs from number `from` on, many in a transaction of the log. */
baton_code bench_start_runs(struct bench_starter *starter, int64_t from, int64_t runs,
                            struct baton_error *err);

#endif
