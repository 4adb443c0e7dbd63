/*
 * The public functions of baton/worker.h over worker/worker.c, for programs that embed a worker.
 * In: programs that embed Baton  Out: worker/worker.c
 */
#include "baton/worker.h"

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/diag.h"
#include "common/base/id.h"
#include "worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum phase { PHASE_opened, PHASE_running, PHASE_ready, PHASE_ended };

struct baton_worker {
    struct config *config;
    char *service;
    char *id;
    struct worker_options options;
    int wake[2]; /* pipe: the writing end is the stop's */
    atomic_bool stop_asked;

    pthread_t thread;
    bool threaded;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    enum phase phase;
    baton_code code; /* ended */
    struct baton_error err;
};

/* ---- opening ---- */

static baton_code load(const struct baton_worker_options *options, struct config **ret_config,
                       struct baton_error *err)
{
    char *path = NULL;
    baton_code rc = config_find(options->config_path, &path, err);
    if (rc == BATON_OK) {
        rc = config_load(path, NULL, 0, ret_config, NULL, err);
    }
    free(path);
    return rc;
}

static void release(struct baton_worker *worker)
{
    config_free(worker->config);
    free(worker->service);
    free(worker->id);
    for (size_t i = 0; i < COUNT_OF(worker->wake); i++) {
        if (worker->wake[i] >= 0) {
            close(worker->wake[i]);
        }
    }
    pthread_cond_destroy(&worker->changed);
    pthread_mutex_destroy(&worker->lock);
    free(worker);
}

static struct baton_worker *allocate(void)
{
    struct baton_worker *worker = calloc(1, sizeof(*worker));
    pthread_condattr_t attr;
    if (worker == NULL) {
        return NULL;
    }
    worker->wake[0] = worker->wake[1] = -1;
    pthread_mutex_init(&worker->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&worker->changed, &attr);
    pthread_condattr_destroy(&attr);
    return worker;
}

static void note_ready(void *arg, const char *worker_id)
{
    struct baton_worker *worker = arg;
    (void)worker_id;
    pthread_mutex_lock(&worker->lock);
    worker->phase = PHASE_ready;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
}

static baton_code fill(struct baton_worker *worker, const struct baton_worker_options *options,
                       struct baton_error *err)
{
    baton_code rc = load(options, &worker->config, err);
    if (rc != BATON_OK) {
        return rc;
    }
    if ((rc = config_service_get(worker->config, options->service, NULL, err)) != BATON_OK) {
        return rc;
    }
    worker->service = strdup(options->service);
    worker->id = options->id != NULL ? strdup(options->id) : NULL;
    if (worker->service == NULL || (options->id != NULL && worker->id == NULL)) {
        return baton_fail(err, BATON_E_no_memory, "no memory for a worker");
    }
    if (pipe2(worker->wake, O_CLOEXEC | O_NONBLOCK) != 0) {
        return baton_fail(err, BATON_E_unexpected, "no pipe for a worker: %s", strerror(errno));
    }
    return BATON_OK;
}

baton_code baton_worker_open(const struct baton_worker_options *options, baton_executor_fn callback,
                             void *arg, struct baton_worker **ret_worker, struct baton_error *err)
{
    if (options == NULL || options->size != sizeof(*options) || options->service == NULL ||
        options->callback_threads < 0 || callback == NULL || ret_worker == NULL) {
        return baton_fail(
            err, BATON_E_usage,
            "baton_worker_open: begin options with BATON_WORKER_OPTIONS_INIT, and give "
            "a service and a function");
    }
    if (!service_id_valid(options->service, strlen(options->service))) {
        return baton_fail(err, BATON_E_bad_service, "a service is named [a-z0-9-]{1,%d}",
                          SERVICE_MAX);
    }
    struct baton_worker *worker = allocate();
    if (worker == NULL) {
        return baton_fail(err, BATON_E_no_memory, "no memory for a worker");
    }
    baton_code rc = fill(worker, options, err);
    if (rc != BATON_OK) {
        release(worker);
        return rc;
    }
    worker->options = (struct worker_options){
        .config = worker->config,
        .service = worker->service,
        .id = worker->id,
        .drain = options->drain,
        .wake_fd = worker->wake[0],
        .verify_threads = 1,
        .callback = callback,
        .callback_arg = arg,
        .callback_threads = options->callback_threads,
        .ready = note_ready,
        .ready_arg = worker,
    };
    *ret_worker = worker;
    return BATON_OK;
}

/* ---- running ---- */

static baton_code begin(struct baton_worker *worker, struct baton_error *err)
{
    pthread_mutex_lock(&worker->lock);
    bool first = worker->phase == PHASE_opened;
    if (first) {
        worker->phase = PHASE_running;
    }
    pthread_mutex_unlock(&worker->lock);
    return first ? BATON_OK
                 : baton_fail(err, BATON_E_usage, "a worker runs once; open another one");
}

static void end(struct baton_worker *worker, baton_code code, const struct baton_error *err)
{
    pthread_mutex_lock(&worker->lock);
    worker->phase = PHASE_ended;
    worker->code = code;
    worker->err = *err;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
}

baton_code baton_worker_run(struct baton_worker *worker, struct baton_error *err)
{
    struct baton_error why = {BATON_OK, ""};
    if (worker == NULL) {
        return baton_fail(err, BATON_E_usage, "baton_worker_run: worker is NULL");
    }
    baton_code rc = begin(worker, err);
    if (rc != BATON_OK) {
        return rc;
    }
    rc = worker_run(&worker->options, &why);
    end(worker, rc, &why);
    return rc == BATON_OK ? BATON_OK : baton_fail(err, rc, "%s", why.text);
}

static void *run_thread(void *arg)
{
    struct baton_worker *worker = arg;
    struct baton_error why = {BATON_OK, ""};
    baton_code rc = worker_run(&worker->options, &why);
    end(worker, rc, &why);
    return NULL;
}

/* With the lock: how it ended. */
static baton_code ended(const struct baton_worker *worker, struct baton_error *err)
{
    return worker->code == BATON_OK ? BATON_OK
                                    : baton_fail(err, worker->code, "%s", worker->err.text);
}

baton_code baton_worker_start(struct baton_worker *worker, struct baton_error *err)
{
    sigset_t all;
    sigset_t before;
    if (worker == NULL) {
        return baton_fail(err, BATON_E_usage, "baton_worker_start: worker is NULL");
    }
    baton_code rc = begin(worker, err);
    if (rc != BATON_OK) {
        return rc;
    }
    sigfillset(&all); /* signals are the program's own threads' business */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&worker->thread, NULL, run_thread, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed != 0) {
        rc = baton_fail(&worker->err, BATON_E_unexpected, "no thread for a worker: %s",
                        strerror(failed));
        worker->phase = PHASE_ended;
        worker->code = rc;
        return baton_fail(err, rc, "%s", worker->err.text);
    }
    worker->threaded = true;
    pthread_setname_np(worker->thread, "worker");
    pthread_mutex_lock(&worker->lock);
    while (worker->phase == PHASE_running) {
        pthread_cond_wait(&worker->changed, &worker->lock);
    }
    rc = worker->phase == PHASE_ended ? ended(worker, err) : BATON_OK;
    pthread_mutex_unlock(&worker->lock);
    return rc;
}

baton_code baton_worker_wait(struct baton_worker *worker, int64_t timeout_ms,
                             struct baton_error *err)
{
    if (worker == NULL || !worker->threaded) {
        return baton_fail(err, BATON_E_usage,
                          "baton_worker_wait: only a started worker can be waited for");
    }
    struct timespec until = {0};
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += timeout_ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    int waited = 0;
    pthread_mutex_lock(&worker->lock);
    while (worker->phase != PHASE_ended && waited != ETIMEDOUT) {
        waited = timeout_ms < 0 ? pthread_cond_wait(&worker->changed, &worker->lock)
                                : pthread_cond_timedwait(&worker->changed, &worker->lock, &until);
    }
    baton_code rc = worker->phase == PHASE_ended
                        ? ended(worker, err)
                        : baton_fail(err, BATON_E_timed_out, "the worker of service %s still runs",
                                     worker->service);
    pthread_mutex_unlock(&worker->lock);
    return rc;
}

void baton_worker_stop(struct baton_worker *worker)
{
    if (worker != NULL) {
        int saved = errno;
        const char byte = WAKE_STOP;
        atomic_store(&worker->stop_asked, true);
        ssize_t n =
            write(worker->wake[1], &byte, 1); /* ignored: a full pipe has woken it already */
        (void)n;
        errno = saved;
    }
}

void baton_worker_free(struct baton_worker *worker)
{
    if (worker == NULL) {
        return;
    }
    if (worker->threaded) {
        if (!atomic_load(&worker->stop_asked)) { /* a second one would kill what runs */
            baton_worker_stop(worker);
        }
        pthread_join(worker->thread, NULL);
    }
    release(worker);
}

/* ---- log lines ---- */

static baton_log_fn log_fn;
static void *log_arg;

static void log_sink(void *arg, enum diag_level level, const char *line, size_t line_len)
{
    static const int levels[] = {[DIAG_error] = BATON_LOG_ERROR,
                                 [DIAG_warn] = BATON_LOG_WARN,
                                 [DIAG_info] = BATON_LOG_INFO,
                                 [DIAG_debug] = BATON_LOG_DEBUG};
    (void)arg;
    log_fn(log_arg, levels[level], line, line_len);
}

void baton_log_to(baton_log_fn log, void *arg, int level)
{
    const enum diag_level max = level >= BATON_LOG_DEBUG  ? DIAG_debug
                                : level == BATON_LOG_INFO ? DIAG_info
                                : level == BATON_LOG_WARN ? DIAG_warn
                                                          : DIAG_error;
    if (log == NULL) {
        diag_set(NULL, NULL, DIAG_error, DIAG_FORM_json);
        return;
    }
    log_fn = log;
    log_arg = arg;
    diag_set(log_sink, NULL, max, DIAG_FORM_json);
}
