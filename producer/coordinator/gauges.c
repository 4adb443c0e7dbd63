/*
 * What a coordinator shows of itself: what waits for it, how many runs are open, and whether it can do
 * its work.
 * In: producer/coordinator/coordinator.c  Out: common/base/metrics.h, common/http/health.h
 */
#include "producer/coordinator/internal.h"

#include "common/base/metrics.h"
#include "common/http/health.h"

#define LOOK_MS 5000

static void look_at_input(const struct coordinator *c, int input)
{
    int32_t partitions[LOG_PARTITIONS_MAX];
    const size_t n = engine_partitions(c->engine, partitions);
    const int64_t now_ms = log_date(c->log).v;
    int64_t records = 0;
    int64_t oldest_ms = 0;
    for (size_t i = 0; i < n; i++) {
        const struct engine_waiting waiting = engine_waiting(c->engine, input, partitions[i]);
        records += waiting.records;
        if (waiting.since.v != 0 && now_ms - waiting.since.v > oldest_ms) {
            oldest_ms = now_ms - waiting.since.v;
        }
    }
    metric_set_of(METRIC_waiting, METRIC_INPUT_coordinator + input, records);
    metric_set_of(METRIC_oldest_waiting, METRIC_INPUT_coordinator + input, oldest_ms / 1000);
}

void coordinator_gauges(struct coordinator *c)
{
    struct engine_target targets[ENGINE_TARGETS_MAX];
    int32_t partitions[LOG_PARTITIONS_MAX];
    const size_t blocked = c->engine != NULL ? engine_blocked(c->engine, targets) : 0;
    const char *reason = c->stopping      ? "it stops"
                         : !c->ready_told ? "it has not joined its group yet"
                         : blocked > 0    ? "a topic cannot be written (its log names it)"
                                          : NULL;
    health_ready(reason);
    if (c->http == NULL || mono_now().v < c->gauges_due.v) {
        return;
    }
    c->gauges_due.v = mono_now().v + LOOK_MS;
    look_at_input(c, ENGINE_INPUT);
    look_at_input(c, ENGINE_CONTROL_INPUT);
    metric_set(METRIC_topics_blocked, (int64_t)blocked);
    metric_set(METRIC_runs_open, (int64_t)c->image.n_open);
    metric_set(METRIC_partitions_owned, (int64_t)engine_partitions(c->engine, partitions));
}
