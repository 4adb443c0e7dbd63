/* Counters and their text. Called where states move; read by the HTTP endpoint and by commands. */
#include "common/base/metrics.h"

#include "common/base/check.h"

#include <stdatomic.h>

enum metric_kind { METRIC_KIND_counter, METRIC_KIND_gauge, METRIC_KIND_histogram };

struct metric_row {
    const char *name;
    enum metric_kind kind;
    const char *kind_word;
    const char *help;
};

static const struct metric_row rows[] = {
#define METRIC_ROW(id, name, kind, unit, help) {name, METRIC_KIND_##kind, #kind, help},
    METRICS(METRIC_ROW)
#undef METRIC_ROW
};

/* Upper ends of the buckets: from a callback's microseconds to an agent's queue of an hour. */
static const int64_t bounds_ms[] = {1,   2,    5,    10,   20,    50,    100,    200,
                                    500, 1000, 2000, 5000, 20000, 60000, 600000, 3600000};

static struct {
    atomic_llong value; /* of a histogram: how many */
    atomic_llong sum_ms;
    atomic_llong buckets[COUNT_OF(bounds_ms)];
} cells[METRIC_COUNT];

static void relaxed_add(atomic_llong *cell, int64_t n)
{
    atomic_fetch_add_explicit(cell, n, memory_order_relaxed);
}

void metric_add(enum metric metric, int64_t n)
{
    BATON_PRE((unsigned)metric < METRIC_COUNT && rows[metric].kind != METRIC_KIND_histogram);
    BATON_PRE(n >= 0 || rows[metric].kind == METRIC_KIND_gauge);
    relaxed_add(&cells[metric].value, n);
}

void metric_set(enum metric metric, int64_t value)
{
    BATON_PRE((unsigned)metric < METRIC_COUNT && rows[metric].kind == METRIC_KIND_gauge);
    atomic_store_explicit(&cells[metric].value, value, memory_order_relaxed);
}

void metric_observe(enum metric metric, int64_t duration_ms)
{
    BATON_PRE((unsigned)metric < METRIC_COUNT && rows[metric].kind == METRIC_KIND_histogram);
    int64_t ms = duration_ms > 0 ? duration_ms : 0;
    for (size_t i = 0; i < COUNT_OF(bounds_ms); i++) {
        if (ms <= bounds_ms[i]) {
            relaxed_add(&cells[metric].buckets[i], 1);
            break;
        }
    }
    relaxed_add(&cells[metric].sum_ms, ms);
    relaxed_add(&cells[metric].value, 1);
}

int64_t metric_get(enum metric metric)
{
    BATON_PRE((unsigned)metric < METRIC_COUNT);
    return atomic_load_explicit(&cells[metric].value, memory_order_relaxed);
}

/* Buckets count up; the total is taken from them and those above, so that a reader of a moving
 * histogram never sees a bucket above +Inf. */
static void histogram_text(struct buf *out, enum metric metric)
{
    const char *name = rows[metric].name;
    int64_t total = metric_get(metric);
    int64_t below = 0;
    for (size_t i = 0; i < COUNT_OF(bounds_ms); i++) {
        below += atomic_load_explicit(&cells[metric].buckets[i], memory_order_relaxed);
        buf_printf(out, "%s_bucket{le=\"%g\"} %lld\n", name, (double)bounds_ms[i] / 1000,
                   (long long)below);
    }
    total = total > below ? total : below;
    buf_printf(out, "%s_bucket{le=\"+Inf\"} %lld\n", name, (long long)total);
    buf_printf(out, "%s_sum %.3f\n", name,
               (double)atomic_load_explicit(&cells[metric].sum_ms, memory_order_relaxed) / 1000);
    buf_printf(out, "%s_count %lld\n", name, (long long)total);
}

void metrics_text(struct buf *out)
{
    for (unsigned i = 0; i < METRIC_COUNT; i++) {
        buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", rows[i].name, rows[i].help, rows[i].name,
                   rows[i].kind_word);
        if (rows[i].kind == METRIC_KIND_histogram) {
            histogram_text(out, (enum metric)i);
        } else {
            buf_printf(out, "%s %lld\n", rows[i].name, (long long)metric_get((enum metric)i));
        }
    }
}

void metrics_test_reset(void)
{
    for (unsigned i = 0; i < METRIC_COUNT; i++) {
        atomic_store(&cells[i].value, 0);
        atomic_store(&cells[i].sum_ms, 0);
        for (size_t b = 0; b < COUNT_OF(bounds_ms); b++) {
            atomic_store(&cells[i].buckets[b], 0);
        }
    }
}
