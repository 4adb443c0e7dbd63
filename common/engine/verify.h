/*
 * Judging records on several cores: proofs are the dearest part of a turn (one Ed25519 verification
 * costs more than all its SQLite work), so a fetched chunk is spread over helper threads while the
 * engine's thread takes its share and waits, or waits for something else meanwhile (verify_begin).
 */
#ifndef BATON_COMMON_ENGINE_VERIFY_H
#define BATON_COMMON_ENGINE_VERIFY_H

#include "common/record/receipt.h"

#include <stdbool.h>
#include <stddef.h>

struct verify;

/* n_threads helpers (0: the caller's thread does all). NULL if a thread cannot be had. */
struct verify *verify_new(int n_threads);
void verify_free(struct verify *verify);

typedef void (*verify_fn)(void *arg, size_t index);
/* Calls fn(arg, 0..count-1), each once, on any thread, and returns when all are done. */
void verify_run(struct verify *verify, size_t count, verify_fn fn, void *arg);
/* The same in two calls: helpers begin; the caller does something else, comes back, takes its share
 * of what is left and waits. arg must live until then. False: there are no helpers, nothing was
 * begun. One loop at a time. */
bool verify_begin(struct verify *verify, size_t count, verify_fn fn, void *arg);
/* Are there helpers? */
bool verify_helped(const struct verify *verify);
void verify_end(struct verify *verify);

#endif
