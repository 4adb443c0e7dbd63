/*
 * A worker: executes the turns of one service.
 *
 * In: cmd_worker.c, bench/process.c, worker_api.c (programs that embed Baton)  Out: engine, store,
 * executors
 */
#ifndef BATON_WORKER_WORKER_H
#define BATON_WORKER_WORKER_H

#include "baton/code.h"
#include "baton/executor.h"
#include "common/base/config.h"
#include "common/base/wake.h"

#include <stdbool.h>
#include <stddef.h>

struct worker_options {
    const struct config *config; /* borrowed until worker_run returns */
    const char *const *sets;     /* `KEY=VALUE` with which it was loaded: SIGHUP loads it again */
    size_t n_sets;
    const char *service;
    const char *id; /* NULL: <host>-<first free number> */
    bool drain;     /* end when nothing is left to do */
    int wake_fd;    /* reading end of a pipe, not blocking, into which any thread or signal handler
                           writes WAKE_STOP (the second one kills what still runs) or WAKE_RELOAD; -1: none */
    int verify_threads; /* beside the engine */

    baton_executor_fn callback; /* instead of the configured executor; NULL: as configured */
    void *callback_arg;
    int callback_threads;

    /* Called once when the worker is ready to take turns (it has joined its group); may be NULL. */
    void (*ready)(void *arg, const char *worker_id);
    void *ready_arg;
};

/*
 * Runs a worker until it is told to stop, drained, or cannot go on. Blocks. Codes: unknown_service,
 * topic_missing, key_unsafe, unauthenticated (proof required and no key of the service), store_busy
 * and twin (another process has this worker id), bad_config, store_failed, service_unavailable (log
 * not there at the start).
 */
baton_code worker_run(const struct worker_options *options, struct baton_error *err);

#endif
