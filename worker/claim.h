/*
 * Claims: from a handoff, or a turn whose time has come, to an attempt that runs (claim.c).
 *
 * Included by worker.c, round.c and restore.c. Engine's thread.
 */
#ifndef BATON_WORKER_CLAIM_H
#define BATON_WORKER_CLAIM_H

#include "baton/code.h"
#include "common/base/role.h"
#include "common/record/turn_record.h"

#include <stddef.h>
#include <stdint.h>

struct decision;
struct engine_event;
struct worker;

/* Decides about a record of the handoff topic. */
baton_code claim_record(struct worker *w, const struct engine_event *event,
                        struct baton_error *err);
/* Claims queued turns whose time has come, at most max; parks those that must not start. */
baton_code claim_due(struct worker *w, size_t max, size_t *ret_claimed, struct baton_error *err);
/* A record that the log shows claimed by this boot, and nothing runs: it is started. */
baton_code claim_resume(struct worker *w, int32_t partition, struct turn_record *take_record,
                        enum role column_role, struct baton_error *err);
/* Starts the executor of a claim that is in log and store. */
void claim_start(struct worker *w, struct decision *decision);

#endif
