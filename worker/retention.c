/*
 * What may be forgotten (protocol rule 30): taken records of both inputs are trimmed once a minute;
 * a closed turn leaves the turn log 14 days after its end, and only while the handoff topic is read
 * to its end and trimmed up to there. Days are those of the log: what it dated the end with against
 * the time that it has now. No wall clock of a worker, jumping or wrong, makes a turn forgotten early.
 *
 * In: worker/worker.c  Out: common/engine/engine.h, worker/decision.c
 */
#include "worker/retention.h"

#include "common/engine/engine.h"
#include "common/log/log.h"
#include "common/store/store.h"
#include "topics/catalogue.h"
#include "worker/decision.h"
#include "worker/internal.h"

#include <malloc.h>

#define HOUSEKEEPING_MS 60000

#define TOMBSTONES_MAX 200 /* in one round */

/* A worker without work is small, whatever it has done before. */
static void rest(struct worker *w)
{
    if (w->lives.count == 0 && w->batch.count == 0 && w->batch.n_notes == 0 &&
        w->committed.count == 0 && w->committed.n_notes == 0) {
        decisions_done(&w->batch);
        decisions_done(&w->committed);
        store_rest(w->store);
        (void)malloc_trim(0); /* the allocator keeps it otherwise */
    }
}

static bool read_and_trimmed(struct worker *w, int32_t partition)
{
    int64_t low = 0;
    int64_t high = 0;
    int64_t position = engine_position(w->engine, ENGINE_INPUT, partition);
    return log_watermarks(w->log, w->names[TOPIC_handoff].s, partition, &low, &high, NULL) ==
               BATON_OK &&
           position >= high && low >= high;
}

baton_code retention_tick(struct worker *w, struct baton_error *err)
{
    int32_t partitions[LOG_PARTITIONS_MAX];
    struct turn_id ids[TOMBSTONES_MAX];
    struct mono_ms now = mono_now();
    baton_code rc = BATON_OK;

    if (now.v < w->housekeeping.v) {
        return BATON_OK;
    }
    w->housekeeping.v = now.v + HOUSEKEEPING_MS;
    engine_trim(w->engine);
    rest(w);
    size_t n = engine_partitions(w->engine, partitions);
    struct wall_ms now_there;
    if (!log_time(w->log, &now_there)) {
        return BATON_OK;
    }
    const struct wall_ms before = {now_there.v - TOMBSTONE_AFTER_MS};
    for (size_t i = 0; rc == BATON_OK && i < n; i++) {
        size_t count = 0;
        rc = store_turns_ended(w->store, partitions[i], before, ids, TOMBSTONES_MAX, &count, err);
        if (rc != BATON_OK || count == 0 || !read_and_trimmed(w, partitions[i])) {
            continue;
        }
        for (size_t k = 0; k < count; k++) {
            if (!decided(w, ids[k].s)) {
                decide_tombstone(w, partitions[i], ids[k].s);
            }
        }
        if (count == TOMBSTONES_MAX) {
            w->housekeeping.v = now.v + 1000; /* more of them */
        }
    }
    return rc;
}
