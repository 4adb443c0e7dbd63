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

#define METRIC_ENUM(id, name, kind, unit, help) METRIC_##id,
enum metric { METRICS(METRIC_ENUM) METRIC_COUNT };
#undef METRIC_ENUM

/* Adds to a counter (n >= 0) or a gauge. */
void metric_add(enum metric metric, int64_t n);
/* Sets a gauge. */
void metric_set(enum metric metric, int64_t value);
/* Puts a duration into a histogram. */
void metric_observe(enum metric metric, int64_t duration_ms);
/* The number of a counter or gauge; how many durations a histogram has. */
int64_t metric_get(enum metric metric);
/* Text exposition format 0.0.4 of all of them. */
void metrics_text(struct buf *out);
/* For tests: all numbers back to zero. */
void metrics_test_reset(void);

#endif
