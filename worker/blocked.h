/*
 * Topics that this worker cannot write to, shown by a note (blocked.c).
 *
 * Included by worker.c, round.c and operate.c. Engine's thread.
 */
#ifndef BATON_WORKER_BLOCKED_H
#define BATON_WORKER_BLOCKED_H

#include "baton/code.h"

#include <stdbool.h>
#include <stdint.h>

struct worker;

/* Reads a partition's note after a restore, and after a fold. */
baton_code blocked_restore(struct worker *w, int32_t partition, struct baton_error *err);
/* Writes the notes of those partitions that tell something else; without `decides` (no round is being
 * decided) only the file that stands for them while the turn log cannot be written. */
void blocked_tell(struct worker *w, bool decides);

#endif
