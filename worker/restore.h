/*
 * What the log says about a partition that comes (restore.c).
 *
 * Included by worker.c, round.c, and by what dates or places a record. Engine's thread.
 */
#ifndef BATON_WORKER_RESTORE_H
#define BATON_WORKER_RESTORE_H

#include "baton/code.h"
#include "common/base/clock.h"
#include "common/store/store.h"

#include <stdbool.h>
#include <stdint.h>

struct engine_event;
struct log;
struct turn_record;
struct worker;

baton_code restore_begin(struct worker *w, const struct engine_event *event,
                         struct baton_error *err);
baton_code restore_fold(struct worker *w, const struct engine_event *event,
                        struct baton_error *err);
baton_code restore_end(struct worker *w, int32_t partition, struct baton_error *err);
/* Every turn that runs gets its continuation again: w->reopen. */
baton_code restore_again(struct worker *w, struct baton_error *err);
/* Facts of attempts that the log does not show claimed are forgotten, those of others' partitions
 * reported. */
baton_code restore_facts(struct worker *w, struct baton_error *err);
/* Sets when each queued turn of a partition may start: as its record says, or never while the
 * service is paused. */
baton_code restore_dues(struct worker *w, int32_t partition, bool paused, struct baton_error *err);
/* When a queued turn may start, on the monotonic clock: not_before - now, within 0..delay_ms. */
struct mono_ms due_of(struct log *log, const struct turn_record *record);
/* Where the log has a turn's record. at: what it was dated with; 0 (no log that is as it should be
 * leaves it out): the record's own time. */
struct log_place place_of(const struct turn_record *record, int32_t partition, int64_t offset,
                          struct wall_ms at);

#endif
