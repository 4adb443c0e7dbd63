/*
 * Waiting for what is told about a turn on `outcomes`, without a group.
 *
 * Opened before the publish, at the end of the turn's partition, so that no answer is missed. An
 * outcome counts as receipt_outcome judges it: with proofs required, only if who it names has signed it.
 */
#ifndef BATON_TOPICS_OUTCOMES_H
#define BATON_TOPICS_OUTCOMES_H

#include "baton/code.h"
#include "common/base/clock.h"
#include "common/log/log.h"
#include "common/record/outcome.h"
#include "common/record/trust.h"

#include <stdbool.h>

/* Whom to believe; borrowed for the life of the watch. */
struct outcome_trust {
    const struct trust *trust; /* NULL only without proofs */
    const char *fleet;
    bool required;
};

struct outcome_watch;

/* From the present end of the partition of key (a run id, or a turn id outside a run). */
baton_code outcome_watch_open(struct log *log, const char *prefix, const char *key,
                              const struct outcome_trust *trust, struct outcome_watch **ret_watch,
                              struct baton_error *err);
/* The same of every key of a partition of `outcomes`: for who waits for many answers. */
baton_code outcome_watch_open_all(struct log *log, const char *prefix, int32_t partition,
                                  const struct outcome_trust *trust,
                                  struct outcome_watch **ret_watch, struct baton_error *err);
void outcome_watch_close(struct outcome_watch *watch);
/* Reads on from the partition's first record: for an end that lies in the past. */
baton_code outcome_watch_rewind(struct outcome_watch *watch, struct baton_error *err);
/*
 * The next outcome under the key that is proven; waits until `until`. *ret_outcome NULL: the time
 * is over. The caller frees it with outcome_free.
 */
baton_code outcome_watch_next(struct outcome_watch *watch, struct mono_ms until,
                              struct outcome **ret_outcome, struct baton_error *err);

/* Appends an outcome as a JSON object for people and scripts: the shape that commands print. */
void outcome_print(const struct outcome *outcome, struct buf *out);
/* The verdict in a result (raw JSON object), or "" if it has none. */
struct verdict_text {
    char s[32];
};
struct verdict_text result_verdict(const char *result, size_t result_len);
/* Appends a result for output that people may see: on one line, what is dangerous there escaped. */
void result_print(const char *result, size_t result_len, struct buf *out);
/* The summary in a result, appended as it stands there; nothing if it has none. */
void result_summary(const char *result, size_t result_len, struct buf *out);

#endif
