/*
 * A worker's start, and trust and secrets, which are read again while it runs (start.c).
 *
 * Included by worker.c and stop.c, and by what needs the trust that is in force. Engine's thread.
 */
#ifndef BATON_WORKER_START_H
#define BATON_WORKER_START_H

#include "baton/code.h"
#include "common/base/clock.h"
#include "common/record/receipt.h"

#include <stdbool.h>

struct worker;

#define TRUST_RELOAD_MS 1000

/* This worker as who receives: with the trust that is in force now. */
struct receiver worker_receiver(const struct worker *w);
baton_code worker_start(struct worker *w, struct baton_error *err);
/* Reads the trust folder again; true if it was read. unknown: a key was not known, so only if it
 * has changed. */
bool worker_reload_trust(struct worker *w, bool unknown);
void worker_reread_envs(struct worker *w);
/* The next worker_reread_envs reads them, whenever they were read last. */
void worker_envs_stale(struct worker *w);
/* When that is to be looked at again. */
struct mono_ms worker_envs_due(const struct worker *w);

#endif
