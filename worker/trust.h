/*
 * Whom this worker believes, and the key with which others believe it (trust.c).
 *
 * Included by start.c, worker.c and stop.c, and by what judges records. Engine's thread.
 */
#ifndef BATON_WORKER_TRUST_H
#define BATON_WORKER_TRUST_H

#include "baton/code.h"
#include "common/record/receipt.h"

#include <stdbool.h>

struct worker;

#define TRUST_RELOAD_MS 1000

/* Trust and the private key, at the start. Errors: as trust_load and signer_load; unauthenticated: the
 * key is revoked. */
baton_code worker_load_keys(struct worker *w, struct baton_error *err);
/* Reads the trust folder again; true if it was read. unknown: a key was not known, so only if it
 * has changed. */
bool worker_reload_trust(struct worker *w, bool unknown);
/* This worker as who receives: with the trust that is in force now. */
struct receiver worker_receiver(const struct worker *w);

#endif
