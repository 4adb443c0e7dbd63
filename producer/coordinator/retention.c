/*
 * What coordinators forget: requests that were taken are trimmed once a minute; an ended run leaves the
 * run log 90 days after its newest record, and only while the requests are read to their end and trimmed
 * up to there, so that no start that still lies there begins it anew. Days are those of the log, as for
 * turns (worker/retention.c).
 *
 * In: coordinator.c  Out: image.c, changes.c, common/engine/engine.h
 */
#include "producer/coordinator/internal.h"

#define FORGET_AFTER_MS (90LL * 24 * 3600 * 1000)
#define FORGOTTEN_MAX 200 /* in one round */

static bool read_and_trimmed(struct coordinator *c, int32_t partition)
{
    int64_t low = 0;
    int64_t high = 0;
    const int64_t position = engine_position(c->engine, ENGINE_INPUT, partition);
    return log_watermarks(c->log, c->requests.s, partition, &low, &high, NULL) == BATON_OK &&
           position >= high && low >= high;
}

bool runs_forget(struct coordinator *c)
{
    const struct image_row *rows[FORGOTTEN_MAX];
    int32_t partitions[LOG_PARTITIONS_MAX];
    struct wall_ms now_there;
    bool all = true;
    engine_trim(c->engine);
    if (!log_time(c->log, &now_there)) {
        return true;
    }
    const struct wall_ms before = {now_there.v - FORGET_AFTER_MS};
    const size_t n_partitions = engine_partitions(c->engine, partitions);
    for (size_t i = 0; i < n_partitions; i++) {
        const size_t n = image_ended(&c->image, partitions[i], before, rows, FORGOTTEN_MAX);
        if (n == 0 || !read_and_trimmed(c, partitions[i])) {
            continue;
        }
        for (size_t k = 0; k < n; k++) {
            change_forget(c, rows[k]);
        }
        all = all && n < FORGOTTEN_MAX;
        diag_line(DIAG_info, "runs.forgotten", D_INT("partition", partitions[i]),
                  D_INT("runs", (int64_t)n));
    }
    return all;
}
