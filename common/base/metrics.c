/* Counters and their text. Called where states move; read by the HTTP endpoint and by commands. */
#include "common/base/metrics.h"

#include "common/base/check.h"
#include "common/base/failure.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum metric_kind { METRIC_KIND_counter, METRIC_KIND_gauge, METRIC_KIND_histogram };

/* ---- labels: closed lists ---- */

static const char *no_word(int value)
{
    (void)value;
    return "";
}

static const char *failure_of(int value)
{
    return failure_word((enum failure)value);
}

static const char *input_of(int value)
{
    static const char *const words[] = {"handoff", "control", "requests", "outcomes"};
    return words[value];
}

enum metric_label {
#define LABEL_ENUM(id, name, count, word) METRIC_LABEL_##id,
    METRIC_LABELS(LABEL_ENUM)
#undef LABEL_ENUM
};

static const struct {
    const char *name;
    int count;
    const char *(*word)(int value);
} labels[] = {
#define LABEL_ROW(id, name, count, word) {name, count, word},
    METRIC_LABELS(LABEL_ROW)
#undef LABEL_ROW
};

#define VALUES_MAX FAILURE_COUNT

struct metric_row {
    const char *name;
    enum metric_kind kind;
    const char *kind_word;
    enum metric_label label;
    const char *help;
};

static const struct metric_row rows[] = {
#define METRIC_ROW(id, name, kind, label, help)                                                    \
    {name, METRIC_KIND_##kind, #kind, METRIC_LABEL_##label, help},
    METRICS(METRIC_ROW)
#undef METRIC_ROW
};

/* ---- the numbers ---- */

/* Upper ends of the buckets: from a callback's microseconds to an agent's queue of an hour. */
static const int64_t bounds_ms[] = {1,   2,    5,    10,   20,    50,    100,    200,
                                    500, 1000, 2000, 5000, 20000, 60000, 600000, 3600000};

static struct {
    atomic_llong values[VALUES_MAX]; /* one for each word of its label; of a histogram: how many */
    atomic_llong sum_ms;
    atomic_llong buckets[COUNT_OF(bounds_ms)];
} cells[METRIC_COUNT];

/* What every series says beside its own label. Another one is written beside it, then shown. */
static char whose_texts[2][METRIC_OF_MAX];
static _Atomic(const char *) whose_now = "";

static void relaxed_add(atomic_llong *cell, int64_t n)
{
    atomic_fetch_add_explicit(cell, n, memory_order_relaxed);
}

static bool has_value(enum metric metric, int value)
{
    return (unsigned)metric < METRIC_COUNT && rows[metric].kind != METRIC_KIND_histogram &&
           value >= 0 && value < labels[rows[metric].label].count;
}

void metric_add_of(enum metric metric, int value, int64_t n)
{
    BATON_PRE(has_value(metric, value));
    BATON_PRE(n >= 0 || rows[metric].kind == METRIC_KIND_gauge);
    relaxed_add(&cells[metric].values[value], n);
}

void metric_add(enum metric metric, int64_t n)
{
    BATON_PRE((unsigned)metric < METRIC_COUNT && rows[metric].label == METRIC_LABEL_none);
    metric_add_of(metric, 0, n);
}

void metric_set_of(enum metric metric, int value, int64_t number)
{
    BATON_PRE(has_value(metric, value) && rows[metric].kind == METRIC_KIND_gauge);
    atomic_store_explicit(&cells[metric].values[value], number, memory_order_relaxed);
}

void metric_set(enum metric metric, int64_t number)
{
    BATON_PRE((unsigned)metric < METRIC_COUNT && rows[metric].label == METRIC_LABEL_none);
    metric_set_of(metric, 0, number);
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
    relaxed_add(&cells[metric].values[0], 1);
}

static int64_t number_of(enum metric metric, int value)
{
    return atomic_load_explicit(&cells[metric].values[value], memory_order_relaxed);
}

int64_t metric_get(enum metric metric)
{
    BATON_PRE((unsigned)metric < METRIC_COUNT);
    int64_t sum = 0;
    for (int value = 0; value < labels[rows[metric].label].count; value++) {
        sum += number_of(metric, value);
    }
    return sum;
}

/* ---- their text ---- */

void metrics_of(const char *service, const char *key, const char *id)
{
    char *text = atomic_load(&whose_now) == whose_texts[0] ? whose_texts[1] : whose_texts[0];
    const bool both = service[0] != '\0' && id[0] != '\0';
    BATON_PRE(strpbrk(service, "\"\\\n") == NULL && strpbrk(id, "\"\\\n") == NULL);
    const int len =
        snprintf(text, METRIC_OF_MAX, "%s%s%s%s%s%s%s%s", service[0] != '\0' ? "service=\"" : "",
                 service, service[0] != '\0' ? "\"" : "", both ? "," : "", id[0] != '\0' ? key : "",
                 id[0] != '\0' ? "=\"" : "", id, id[0] != '\0' ? "\"" : "");
    BATON_PRE(len >= 0 && len < METRIC_OF_MAX);
    atomic_store(&whose_now, text);
}

/* NAME{whose,key="word"}; key NULL: no label of its own. */
static void series(struct buf *out, const char *name, const char *suffix, const char *key,
                   const char *word)
{
    const char *whose = atomic_load(&whose_now);
    buf_printf(out, "%s%s", name, suffix);
    if (whose[0] == '\0' && key == NULL) {
        return;
    }
    buf_printf(out, "{%s", whose);
    if (key != NULL) {
        buf_printf(out, "%s%s=\"%s\"", whose[0] != '\0' ? "," : "", key, word);
    }
    buf_add_char(out, '}');
}

/* Buckets count up; the total is taken from them and those above, so that a reader of a moving
 * histogram never sees a bucket above +Inf. */
static void histogram_text(struct buf *out, enum metric metric)
{
    const char *name = rows[metric].name;
    int64_t total = number_of(metric, 0);
    int64_t below = 0;
    char bound[32];
    for (size_t i = 0; i < COUNT_OF(bounds_ms); i++) {
        below += atomic_load_explicit(&cells[metric].buckets[i], memory_order_relaxed);
        snprintf(bound, sizeof(bound), "%g", (double)bounds_ms[i] / 1000);
        series(out, name, "_bucket", "le", bound);
        buf_printf(out, " %lld\n", (long long)below);
    }
    total = total > below ? total : below;
    series(out, name, "_bucket", "le", "+Inf");
    buf_printf(out, " %lld\n", (long long)total);
    series(out, name, "_sum", NULL, NULL);
    buf_printf(out, " %.3f\n",
               (double)atomic_load_explicit(&cells[metric].sum_ms, memory_order_relaxed) / 1000);
    series(out, name, "_count", NULL, NULL);
    buf_printf(out, " %lld\n", (long long)total);
}

static void values_text(struct buf *out, enum metric metric)
{
    const enum metric_label label = rows[metric].label;
    for (int value = 0; value < labels[label].count; value++) {
        series(out, rows[metric].name, "", label == METRIC_LABEL_none ? NULL : labels[label].name,
               labels[label].word(value));
        buf_printf(out, " %lld\n", (long long)number_of(metric, value));
    }
}

void metrics_text(struct buf *out)
{
    buf_add_text(out, "# HELP baton_build_info 1; which program this is\n"
                      "# TYPE baton_build_info gauge\n");
    series(out, "baton_build_info", "", "version", BATON_VERSION);
    buf_add_text(out, " 1\n");
    for (unsigned i = 0; i < METRIC_COUNT; i++) {
        buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", rows[i].name, rows[i].help, rows[i].name,
                   rows[i].kind_word);
        if (rows[i].kind == METRIC_KIND_histogram) {
            histogram_text(out, (enum metric)i);
        } else {
            values_text(out, (enum metric)i);
        }
    }
}

void metrics_test_reset(void)
{
    atomic_store(&whose_now, "");
    for (unsigned i = 0; i < METRIC_COUNT; i++) {
        for (int value = 0; value < VALUES_MAX; value++) {
            atomic_store(&cells[i].values[value], 0);
        }
        atomic_store(&cells[i].sum_ms, 0);
        for (size_t b = 0; b < COUNT_OF(bounds_ms); b++) {
            atomic_store(&cells[i].buckets[b], 0);
        }
    }
}
