/*
 * Reading what a topic's partition holds now, from its first record to the end that it had when the
 * reading began. Memory does not grow with what is read. Called by the readers of this folder.
 */
#ifndef BATON_TOPICS_SCAN_H
#define BATON_TOPICS_SCAN_H

#include "baton/code.h"
#include "common/log/log.h"

#include <stdbool.h>

/* Gets each record, valid during the call; false stops the reading (no error). */
typedef bool scan_fn(void *arg, const struct log_record *record);

/* Every committed record from `from` on. *ret_stopped (may be NULL): fn stopped it. */
baton_code scan_partition(struct log *log, const char *topic, int32_t partition, int64_t from,
                          scan_fn *fn, void *arg, bool *ret_stopped, struct baton_error *err);
/*
 * Of a compacted topic: the newest record of each key, no tombstones. A log that keeps older
 * records of a key for a while is read twice; 24 bytes for each key of the partition are held
 * meanwhile.
 */
baton_code scan_newest(struct log *log, const char *topic, int32_t partition, scan_fn *fn,
                       void *arg, bool *ret_stopped, struct baton_error *err);
/* Partitions of a topic; topic_missing if it is not there. */
baton_code scan_partitions(struct log *log, const char *topic, int32_t *ret_partitions,
                           struct baton_error *err);

#endif
