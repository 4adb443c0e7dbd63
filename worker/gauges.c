/*
 * What a worker shows of itself: gauges of what waits here, and whether it can do its work.
 *
 * Every five seconds while somebody may ask (http.listen), else once a minute, for the one thing that is
 * said without being asked: a handoff that nobody takes, and a turn that has not ended for very long.
 *
 * In: worker/worker.c  Out: common/base/metrics.h, common/http/health.h, common/engine/engine.h
 */
#include "worker/gauges.h"

#include "common/base/diag.h"
#include "common/base/metrics.h"
#include "common/engine/engine.h"
#include "common/http/health.h"
#include "common/log/log.h"
#include "common/store/store.h"
#include "topics/catalogue.h"
#include "worker/failure_table.h"
#include "worker/internal.h"
#include "worker/live.h"
#include "worker/rest.h"

#define LOOK_MS 5000
#define LOOK_UNASKED_MS 60000
/* What is older is told: a handoff that nobody takes in, a turn that does not come to rest. */
#define OLD_HANDOFF_MS 300000
#define OLD_TURN_MS (6 * 3600 * 1000LL)

/* ---- can it do its work ---- */

static const char *trouble(const struct worker *w)
{
    struct engine_target targets[ENGINE_TARGETS_MAX];
    if (w->stopping) {
        return "it stops";
    }
    if (w->blocked) {
        return "its store cannot be written";
    }
    if (!w->ready_told) {
        return "it has not joined its group yet";
    }
    if (engine_blocked(w->engine, targets) > 0) {
        return "a topic cannot be written (baton services names it)";
    }
    return NULL;
}

void gauges_health(const struct worker *w)
{
    health_ready(trouble(w));
}

/* ---- what waits ---- */

/* How long the first record of an input that is not taken in has waited: by its date, and where it was
 * not even fetched, since it is first in line. */
static int64_t waited_ms(struct worker *w, int input, int32_t partition,
                         const struct engine_waiting *waiting)
{
    struct first *first = &w->firsts[input][partition];
    const int64_t position = engine_position(w->engine, input, partition);
    const int64_t now_ms = mono_now().v;
    if (waiting->records == 0 || first->position != position) {
        *first = (struct first){.position = position, .since_ms = now_ms};
    }
    if (waiting->records == 0) {
        return 0;
    }
    const int64_t by_date =
        waiting->since.v != 0 ? log_date(w->log).v - waiting->since.v : INT64_MIN;
    const int64_t in_line = now_ms - first->since_ms;
    return by_date > in_line ? by_date : in_line;
}

static void look_at_input(struct worker *w, int input)
{
    int32_t partitions[LOG_PARTITIONS_MAX];
    const size_t n = engine_partitions(w->engine, partitions);
    int64_t records = 0;
    int64_t oldest_ms = 0;
    int32_t where = 0;
    for (size_t i = 0; i < n; i++) {
        const struct engine_waiting waiting = engine_waiting(w->engine, input, partitions[i]);
        const int64_t ms = waited_ms(w, input, partitions[i], &waiting);
        records += waiting.records;
        if (ms > oldest_ms) {
            oldest_ms = ms;
            where = partitions[i];
        }
    }
    metric_set_of(METRIC_waiting, METRIC_INPUT_worker + input, records);
    metric_set_of(METRIC_oldest_waiting, METRIC_INPUT_worker + input, oldest_ms / 1000);
    /* What came before this process is no sign that it does not keep up. */
    const int64_t in_line_ms = mono_now().v - w->firsts[input][where].since_ms;
    if (oldest_ms >= OLD_HANDOFF_MS && in_line_ms >= OLD_HANDOFF_MS && !w->paused[where]) {
        diag_limited(
            &w->old_handoff, DIAG_warn, "handoff.waits",
            D_TEXT("topic", w->names[input == ENGINE_INPUT ? TOPIC_handoff : TOPIC_control].s),
            D_INT("partition", where), D_INT("offset", engine_position(w->engine, input, where)),
            D_INT("seconds", oldest_ms / 1000), D_INT("waiting", records),
            D_TEXT("meaning", "more arrives than is done, or something holds it up: `baton "
                              "services` and `baton doctor` say what"));
    }
}

static void look_at_turns(struct worker *w)
{
    int32_t partitions[LOG_PARTITIONS_MAX];
    const size_t n = engine_partitions(w->engine, partitions);
    struct store_counts counts = {0};
    for (size_t i = 0; i < n; i++) {
        if (store_count(w->store, partitions[i], &counts, NULL) != BATON_OK) {
            return; /* the store's trouble is told by who needs it */
        }
    }
    const int64_t age_ms =
        counts.oldest.s[0] != '\0' ? log_date(w->log).v - counts.created_at.v : 0;
    metric_set(METRIC_turns_queued, counts.queued);
    metric_set(METRIC_turns_waiting, counts.parked);
    metric_set(METRIC_oldest_turn, age_ms > 0 ? age_ms / 1000 : 0);
    metric_set(METRIC_partitions_owned, (int64_t)n);
    if (age_ms >= OLD_TURN_MS) {
        diag_limited(&w->old_turn, DIAG_warn, "turn.waits", D_TEXT("turn", counts.oldest.s),
                     D_INT("seconds", age_ms / 1000),
                     D_TEXT("meaning", "`baton turns show` says what it waits for"));
    }
}

static void count_held(struct live *live, void *arg)
{
    *(int64_t *)arg += live->held ? 1 : 0;
}

static void look_at_rest(struct worker *w)
{
    struct engine_target targets[ENGINE_TARGETS_MAX];
    struct all_rest rest;
    int64_t held = 0;
    lives_each(&w->lives, count_held, &held);
    metric_set(METRIC_leases_held, held);
    metric_set(METRIC_profiles_resting, __builtin_popcount(rest_look(w, &rest)));
    metric_set(METRIC_topics_blocked, (int64_t)engine_blocked(w->engine, targets));
}

void gauges_tick(struct worker *w)
{
    const struct mono_ms now = mono_now();
    if (now.v < w->gauges_due.v) {
        return;
    }
    w->gauges_due.v = now.v + (w->http != NULL ? LOOK_MS : LOOK_UNASKED_MS);
    look_at_input(w, ENGINE_INPUT);
    look_at_input(w, ENGINE_CONTROL_INPUT);
    look_at_turns(w);
    look_at_rest(w);
}
