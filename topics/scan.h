/*
 * Reading what a topic's partition holds now, from its first record to the end that it had when the
 * reading began. Memory does not grow with what is read. Called by the readers of this folder,
 * and by producer/ (run_log, operate, replay_letter).
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
/* Every committed record from `from` to before `end`; both lie in what is there. */
baton_code scan_range(struct log *log, const char *topic, int32_t partition, int64_t from,
                      int64_t end, scan_fn *fn, void *arg, bool *ret_stopped,
                      struct baton_error *err);
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

/* The same for the topic of a service that may never have been provisioned: with none_is_fine, one
 * that is missing has 0 partitions. */
baton_code scan_partitions_or_none(struct log *log, const char *topic, bool none_is_fine,
                                   int32_t *ret_partitions, struct baton_error *err);
/*
 * Where several topics are looked at, those that this principal may not read are passed over: what
 * it may see is shown. A list fails only if it may see none of them. What is looked for by its id
 * and not found in the rest may be in one of those, so the first of them is the answer: "not there"
 * would be a guess. Topics that are missing are passed over, too, as of a service that was never
 * provisioned; if every one is, that is the answer (another prefix, other brokers) and not
 * "nothing".
 */
struct scan_hidden {
    size_t seen;                /* topics that were read */
    struct baton_error first;   /* code BATON_OK: none was hidden */
    struct baton_error missing; /* the first that is not there */
};
/* not_permitted and topic_missing become BATON_OK and are remembered; any other code is returned
 * with its text. */
baton_code scan_pass_hidden(struct scan_hidden *hidden, baton_code rc,
                            const struct baton_error *why, struct baton_error *err);
/* The end of such a search: BATON_OK if it was enough, or nothing was hidden. */
baton_code scan_hidden_end(const struct scan_hidden *hidden, bool enough, struct baton_error *err);

#endif
