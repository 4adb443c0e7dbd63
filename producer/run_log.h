/*
 * What the run log says: the newest state of each run, as the coordinators wrote it. Read without a
 * group; nothing here is verified, since nothing here executes. Called by `runs` and `handoff`.
 */
#ifndef BATON_PRODUCER_RUN_LOG_H
#define BATON_PRODUCER_RUN_LOG_H

#include "baton/code.h"
#include "common/base/config.h"
#include "common/log/log.h"
#include "producer/run/run.h"

/* Gets each run, valid during the call; false stops. */
typedef bool run_fn(void *arg, const struct run *run);
/* Every run, partition by partition. */
baton_code run_log_each(struct log *log, const struct config *config, run_fn *fn, void *arg,
                        struct baton_error *err);
/* One run by its id, or by its first characters (4 at least) if no other begins so. run_not_found,
 * run_ambiguous. The caller frees it. */
baton_code run_log_find(struct log *log, const struct config *config, const char *word,
                        struct run **ret_run, struct baton_error *err);

/* Do all runs stand still, since no coordinator is in its group? Not to be seen: this principal may not look at
 * the group, or nobody answered in time; then people are told nothing of it, and JSON has null. */
enum run_still { RUN_STILL_unseen, RUN_STILL_no, RUN_STILL_yes };
/* Waits for timeout_ms at most: LOG_GROUP_MS, or less. */
enum run_still run_log_still(struct log *log, const struct config *config, int64_t timeout_ms);
#define RUN_LOG_STILL                                                                              \
    "no coordinator runs, so no run moves and no request is answered; start one: `baton "          \
    "coordinator`"

#endif
