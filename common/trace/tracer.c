/*
 * The exporter's thread: waits for spans, sends them in batches, and backs off while the collector is away.
 * In: producer/publish_trace.c, producer/coordinator/changes.c, worker/round.c  Out: common/trace/collector.c
 */
#include "common/trace/tracer.h"

#include "common/base/backoff.h"
#include "common/base/check.h"
#include "common/base/diag.h"
#include "common/base/metrics.h"
#include "common/trace/collector.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCH_MAX 512 /* spans; some hundred KiB */
#define GATHER_MS 500 /* so long a batch is gathered */
#define TELL_MS 60000

static const struct backoff pauses = {.first_ms = 500, .factor = 2, .max_ms = 30000, .jitter = 0.2};

struct tracer {
    const struct config *config;
    char service[ID_MAX + 1];
    char instance[ID_MAX + 1];
    pthread_t thread;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    struct span_list queue;
    bool stopping;
    struct mono_ms stop_by;
    struct collector *collector; /* the thread's, which closes it at its end */

    /* the thread's own */
    struct span_list batch; /* on its way */
    int failures;           /* in a row */
    struct mono_ms pause_until;
    struct mono_ms gather_until;
    struct diag_limit limit;
};

static struct span_bytes *take_first(struct span_list *list)
{
    struct span_bytes *first = list->first;
    list->first = first->next;
    list->last = list->first == NULL ? NULL : list->last;
    list->count--;
    return first;
}

static void put_last(struct span_list *list, struct span_bytes *bytes)
{
    bytes->next = NULL;
    *(list->last != NULL ? &list->last->next : &list->first) = bytes;
    list->last = bytes;
    list->count++;
}

static void drop(struct span_list *list)
{
    metric_add(METRIC_spans_dropped, (int64_t)list->count);
    span_list_clear(list);
}

/* The oldest go. */
static void bound_locked(struct tracer *tracer)
{
    while (tracer->queue.count > (size_t)tracer->config->traces.queue) {
        free(take_first(&tracer->queue));
        metric_add(METRIC_spans_dropped, 1);
    }
}

/* ---- the thread ---- */

/* Stopping, and out of time? */
static bool given_up(void *arg)
{
    struct tracer *tracer = arg;
    pthread_mutex_lock(&tracer->lock);
    const bool over = tracer->stopping && mono_now().v >= tracer->stop_by.v;
    pthread_mutex_unlock(&tracer->lock);
    return over;
}

static void wait_locked(struct tracer *tracer, int64_t ms)
{
    struct timespec at;
    if (ms < 0) {
        pthread_cond_wait(&tracer->changed, &tracer->lock);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += ms / 1000;
    at.tv_nsec += ms % 1000 * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    pthread_cond_timedwait(&tracer->changed, &tracer->lock, &at);
}

/* Milliseconds until a batch is to be sent; -1: nothing is there. */
static int64_t due_in_locked(struct tracer *tracer)
{
    const int64_t now = mono_now().v;
    if (tracer->stopping) {
        return 0;
    }
    if (tracer->queue.count == 0) {
        tracer->gather_until.v = 0;
        return -1;
    }
    if (tracer->gather_until.v == 0) {
        tracer->gather_until.v = now + GATHER_MS;
    }
    int64_t at =
        tracer->queue.count >= BATCH_MAX || tracer->batch.count > 0 ? now : tracer->gather_until.v;
    if (at < tracer->pause_until.v) {
        at = tracer->pause_until.v;
    }
    return at > now ? at - now : 0;
}

/* Waits for a batch; false: it is over. */
static bool gather(struct tracer *tracer)
{
    pthread_mutex_lock(&tracer->lock);
    for (int64_t ms; (ms = due_in_locked(tracer)) != 0;) {
        wait_locked(tracer, ms);
    }
    tracer->gather_until.v = 0;
    while (tracer->batch.count < BATCH_MAX && tracer->queue.count > 0) {
        put_last(&tracer->batch, take_first(&tracer->queue));
    }
    pthread_mutex_unlock(&tracer->lock);
    return tracer->batch.count > 0;
}

/* What could not be sent waits in front of what came meanwhile. */
static void put_back(struct tracer *tracer)
{
    pthread_mutex_lock(&tracer->lock);
    if (tracer->batch.last != NULL) {
        tracer->batch.last->next = tracer->queue.first;
        tracer->queue.first = tracer->batch.first;
        tracer->queue.last = tracer->queue.last != NULL ? tracer->queue.last : tracer->batch.last;
        tracer->queue.count += tracer->batch.count;
        tracer->batch = (struct span_list){NULL, NULL, 0};
    }
    bound_locked(tracer);
    pthread_mutex_unlock(&tracer->lock);
}

static void tell_away(struct tracer *tracer, const struct collector_answer *answer, bool kept)
{
    diag_limited(
        &tracer->limit, DIAG_warn, "traces.not_sent",
        D_TEXT("endpoint", tracer->config->traces.endpoint), D_TEXT("why", answer->why),
        D_TEXT("meaning", kept ? "turns go on; spans wait for it, the oldest are dropped when "
                                 "traces.queue is full"
                               : "turns go on; the collector refuses these spans, and they are "
                                 "dropped: look at traces.endpoint and traces.headers.file"));
}

static void heard(struct tracer *tracer, const struct collector_answer *answer)
{
    switch (answer->said) {
    case COLLECTOR_took:
        metric_add(METRIC_spans_exported, (int64_t)tracer->batch.count);
        span_list_clear(&tracer->batch);
        if (tracer->failures > 0) {
            diag_line(DIAG_info, "traces.sent_again",
                      D_TEXT("endpoint", tracer->config->traces.endpoint));
        }
        tracer->failures = 0;
        break;
    case COLLECTOR_refused:
        tell_away(tracer, answer, false);
        drop(&tracer->batch);
        break;
    case COLLECTOR_later:
        tell_away(tracer, answer, true);
        tracer->failures++;
        tracer->pause_until.v =
            mono_now().v + backoff_delay_ms(&pauses, tracer->failures, answer->wait_ms);
        put_back(tracer);
        break;
    case COLLECTOR_stopped:
        break;
    }
}

/* Another try at the end would only take time from whoever waits for it. */
static bool over(struct tracer *tracer, const struct collector_answer *answer)
{
    pthread_mutex_lock(&tracer->lock);
    const bool stopping = tracer->stopping;
    pthread_mutex_unlock(&tracer->lock);
    return stopping && answer->said != COLLECTOR_took;
}

static void *run(void *arg)
{
    struct tracer *tracer = arg;
    struct buf request = BUF_INIT;
    const char *const resource[] = {
        "service.name",
        tracer->service,
        "service.namespace",
        tracer->config->prefix.s,
        "service.version",
        BATON_VERSION,
        tracer->instance[0] != '\0' ? "service.instance.id" : NULL,
        tracer->instance,
        NULL,
    };
    while (gather(tracer)) {
        buf_clear(&request);
        span_request(&tracer->batch, resource, &request);
        if (!buf_ok(&request)) {
            drop(&tracer->batch); /* no memory for it */
            continue;
        }
        const struct collector_answer answer =
            collector_send(tracer->collector, request.data, request.len, given_up, tracer);
        heard(tracer, &answer);
        if (over(tracer, &answer)) {
            break;
        }
    }
    buf_done(&request);
    /* Here, where no signal is taken: the end of a TLS connection may meet a closed one (SIGPIPE). */
    pthread_mutex_lock(&tracer->lock);
    struct collector *collector = tracer->collector;
    tracer->collector = NULL;
    pthread_mutex_unlock(&tracer->lock);
    collector_close(collector);
    return NULL;
}

/* ---- open, send, close ---- */

/* Its thread takes no signal: those are the main thread's. */
static int start(struct tracer *tracer)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&tracer->thread, NULL, run, tracer);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

static void destroy(struct tracer *tracer)
{
    drop(&tracer->batch);
    drop(&tracer->queue);
    collector_close(tracer->collector);
    pthread_cond_destroy(&tracer->changed);
    pthread_mutex_destroy(&tracer->lock);
    free(tracer);
}

baton_code tracer_open(const struct config *config, const char *service, const char *instance,
                       struct tracer **ret_tracer, struct baton_error *err)
{
    pthread_condattr_t attributes;
    *ret_tracer = NULL;
    if (config->traces.endpoint == NULL) {
        return BATON_OK;
    }
    struct tracer *tracer = calloc(1, sizeof(*tracer));
    if (tracer == NULL) {
        return baton_fail(err, BATON_E_no_memory, "out of memory");
    }
    tracer->config = config;
    tracer->limit = (struct diag_limit)DIAG_LIMIT(TELL_MS);
    snprintf(tracer->service, sizeof(tracer->service), "%s", service);
    snprintf(tracer->instance, sizeof(tracer->instance), "%s", instance);
    pthread_mutex_init(&tracer->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&tracer->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    baton_code rc = collector_open(config, &tracer->collector, err);
    if (rc == BATON_OK && start(tracer) != 0) {
        rc = baton_fail(err, BATON_E_unexpected, "a thread for traces cannot be started");
    }
    if (rc != BATON_OK) {
        destroy(tracer);
        return rc;
    }
    *ret_tracer = tracer;
    return BATON_OK;
}

void tracer_send(struct tracer *tracer, struct span_list *take_list)
{
    if (tracer == NULL || take_list->count == 0) {
        span_list_clear(take_list);
        return;
    }
    span_list_end(take_list, wall_now());
    pthread_mutex_lock(&tracer->lock);
    while (take_list->count > 0) {
        put_last(&tracer->queue, take_first(take_list));
    }
    bound_locked(tracer);
    pthread_cond_signal(&tracer->changed);
    pthread_mutex_unlock(&tracer->lock);
}

void tracer_close(struct tracer *tracer, int64_t within_ms)
{
    if (tracer == NULL) {
        return;
    }
    pthread_mutex_lock(&tracer->lock);
    tracer->stopping = true;
    tracer->stop_by.v = mono_now().v + within_ms;
    pthread_cond_signal(&tracer->changed);
    if (tracer->collector != NULL) {
        collector_wake(tracer->collector);
    }
    pthread_mutex_unlock(&tracer->lock);
    pthread_join(tracer->thread, NULL);
    destroy(tracer);
}
