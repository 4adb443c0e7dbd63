/*
 * A worker in a program of one's own: its turns are done by a C function (baton/executor.h).
 *
 *   static int review(const struct baton_attempt *attempt, struct baton_result *result, void *arg)
 *   {
 *       baton_result_verdict(result, "approve", NULL);
 *       return 0;
 *   }
 *
 *   struct baton_worker_options options = BATON_WORKER_OPTIONS_INIT;
 *   options.service = "example";
 *   if (baton_worker_open(&options, review, NULL, &worker, &err) == BATON_E_ok) {
 *       rc = baton_worker_run(worker, &err);
 *       baton_worker_free(worker);
 *   }
 *
 * The function stands in for the service's configured executor; everything else (parallel,
 * deadline, on_failure, keys) is as configured. A worker runs once: in the caller's thread
 * (baton_worker_run) or in one of its own (baton_worker_start, baton_worker_wait).
 *
 * Threads: baton_worker_stop may be called by any thread and in a signal handler, the rest by one
 * thread at a time. No signal handler is installed. The process is made not traceable and leaves no
 * core files from the start of a worker on, since it holds a private key.
 */
#ifndef BATON_WORKER_H
#define BATON_WORKER_H

#include "baton/code.h"
#include "baton/executor.h"
#include "baton/export.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct baton_worker;

/* Begin with BATON_WORKER_OPTIONS_INIT; later versions may add members behind. */
struct baton_worker_options {
    size_t size;             /* sizeof(struct baton_worker_options) */
    const char *config_path; /* NULL: $BATON_CONFIG, ./baton.yaml, /etc/baton/baton.yaml */
    const char *service;     /* must be given */
    const char *id;          /* kept over restarts; NULL: <host>-<first free number> */
    int callback_threads;    /* calls at a time; 0: 1 */
    bool drain;              /* ends when nothing is left to do */
};

#define BATON_WORKER_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(struct baton_worker_options), NULL, NULL, NULL, 0, false                            \
    }

/*
 * Reads the configuration; the texts of options are copied. Touches neither log nor keys. Codes:
 * usage, bad_config, bad_service, unknown_service.
 */
BATON_API BATON_MUST_USE baton_code baton_worker_open(const struct baton_worker_options *options,
                                                      baton_executor_fn callback, void *arg,
                                                      struct baton_worker **ret_worker,
                                                      struct baton_error *err);

/*
 * Runs the worker in this thread until it is stopped, drained, or cannot go on. Codes: those of
 * `baton worker` (topic_missing, unauthenticated, key_unsafe, store_busy, twin, store_failed,
 * service_unavailable, ...); usage: it ran already.
 */
BATON_API BATON_MUST_USE baton_code baton_worker_run(struct baton_worker *worker,
                                                     struct baton_error *err);

/* The same in a thread of its own; returns when it takes turns, or with what kept it from that. */
BATON_API BATON_MUST_USE baton_code baton_worker_start(struct baton_worker *worker,
                                                       struct baton_error *err);
/*
 * Waits until a started worker has ended, and returns how. timeout_ms < 0: without limit.
 * timed_out: it runs on; usage: it was not started.
 */
BATON_API BATON_MUST_USE baton_code baton_worker_wait(struct baton_worker *worker,
                                                      int64_t timeout_ms, struct baton_error *err);

/*
 * A clean stop: nothing more is taken, what runs may end within the service's `grace`. A second
 * call ends what still runs; its turns are queued again. Any thread, and signal handlers; before
 * the start, too: it ends at once then.
 */
BATON_API void baton_worker_stop(struct baton_worker *worker);
/* Stops it, waits until it has ended, and frees it. Accepts NULL. */
BATON_API void baton_worker_free(struct baton_worker *worker);

/* Levels of log lines; numbers never change. */
#define BATON_LOG_ERROR 0
#define BATON_LOG_WARN 1
#define BATON_LOG_INFO 2
#define BATON_LOG_DEBUG 3

/* Gets whole lines, JSON with a newline, from any thread. */
typedef void (*baton_log_fn)(void *arg, int level, const char *line, size_t line_len);
/*
 * Where the log lines of this process go, up to a level; NULL: nowhere, as before the first call.
 * Not while a worker runs.
 */
BATON_API void baton_log_to(baton_log_fn log, void *arg, int level);

#ifdef __cplusplus
}
#endif

#endif
