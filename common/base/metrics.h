/*
 * Metrics: one table (tbl/metrics.h), atomic numbers, and their text for Prometheus.
 *
 * Incremented where the state moves, so that log, metric and store cannot disagree. One set for the
 * process: like the log's sink it is counted from everywhere and decides nothing. Any thread.
 */
#ifndef BATON_BASE_METRICS_H
#define BATON_BASE_METRICS_H

#include "common/base/buf.h"
#include "common/base/tbl/metrics.h"

#include <stdint.h>

/* Words of the label `input`: what a worker reads, and what a coordinator does. */
enum { METRIC_INPUT_worker = 0, METRIC_INPUT_coordinator = 2 };

#define METRIC_ENUM(id, name, kind, label, help) METRIC_##id,
enum metric { METRICS(METRIC_ENUM) METRIC_COUNT };
#undef METRIC_ENUM

/* Adds to a counter (n >= 0) or a gauge that has no label. */
void metric_add(enum metric metric, int64_t n);
/* Sets a gauge that has no label. */
void metric_set(enum metric metric, int64_t number);
/* The same for one word of its label: its place in the closed list. */
void metric_add_of(enum metric metric, int value, int64_t n);
void metric_set_of(enum metric metric, int value, int64_t number);
/* Puts a duration into a histogram. */
void metric_observe(enum metric metric, int64_t duration_ms);
/* The number of a counter or gauge, over all words of its label; how many durations a histogram has. */
int64_t metric_get(enum metric metric);
#define METRIC_OF_MAX 256
/* Whose they are, said by every series: service="…" of a worker, key="id"; "": not said. At start; a
 * second time once the id is known, not more often while others read. */
void metrics_of(const char *service, const char *key, const char *id);
/* Text exposition format 0.0.4 of all of them. */
void metrics_text(struct buf *out);
/* For tests: all numbers back to zero. */
void metrics_test_reset(void);

#endif
