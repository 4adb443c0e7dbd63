/*
 * What may be forgotten, and how long it is kept until then (retention.c).
 *
 * Included by worker.c, and by restore.c, which trusts no checkpoint that is older. Engine's thread.
 */
#ifndef BATON_WORKER_RETENTION_H
#define BATON_WORKER_RETENTION_H

#include "baton/code.h"

struct worker;

#define TOMBSTONE_AFTER_MS (14LL * 24 * 3600 * 1000)
#define CHECKPOINT_MAX_AGE_MS (7LL * 24 * 3600 * 1000) /* half a tombstone's life (rule 16) */

/* Forgets what may be forgotten, when it is time. */
baton_code retention_tick(struct worker *w, struct baton_error *err);

#endif
