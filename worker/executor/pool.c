/*
 * The executor pool: its thread, its one epoll loop, and the functions of the interface.
 * In: worker (claim). Out: attempt.c, run_exec.c, run_agent.c, run_child.c, run_callback.c.
 */
#include "worker/executor/pool.h"

#include "common/base/check.h"
#include "common/base/diag.h"
#include "common/base/mailbox.h"
#include "common/process/sweep.h"
#include "worker/executor/run_agent.h"
#include "common/process/scratch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define EVENTS_AT_ONCE 64
#define POST_AGAIN_MS 10   /* the worker's mailbox was full */
#define REMOVE_AT_ONCE 200 /* entries of scratch directories in one round */

enum request_kind { REQUEST_start, REQUEST_stop, REQUEST_kill };

struct request {
    enum request_kind kind;
    struct attempt *attempt; /* start */
    struct turn_id turn;
    int32_t no;
    enum executor_stop_reason reason;
};

/* ---- sources, timers, leftovers ---- */

static bool watch(struct executor_pool *pool, struct source *source, int fd, uint32_t events,
                  void (*ready)(struct executor_pool *, void *), void *owner)
{
    struct epoll_event event = {.events = events, .data.ptr = source};
    *source = (struct source){fd, ready, owner};
    return epoll_ctl(pool->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

bool source_watch(struct executor_pool *pool, struct source *source, int fd,
                  void (*ready)(struct executor_pool *, void *), void *owner)
{
    return watch(pool, source, fd, EPOLLIN, ready, owner);
}

bool source_watch_write(struct executor_pool *pool, struct source *source, int fd,
                        void (*ready)(struct executor_pool *, void *), void *owner)
{
    return watch(pool, source, fd, EPOLLOUT | EPOLLET, ready, owner);
}

void source_close(struct executor_pool *pool, struct source *source)
{
    if (source->fd >= 0) {
        epoll_ctl(pool->epoll, EPOLL_CTL_DEL, source->fd, NULL);
        close(source->fd);
        source->fd = -1;
    }
}

void timer_set(struct executor_pool *pool, struct timer *timer, int64_t at_ms,
               void (*due)(struct executor_pool *, void *), void *owner)
{
    if (timer->at_ms == 0) {
        timer->next = pool->timers;
        timer->back = &pool->timers;
        if (timer->next != NULL) {
            timer->next->back = &timer->next;
        }
        pool->timers = timer;
    }
    timer->at_ms = at_ms > 0 ? at_ms : 1;
    timer->due = due;
    timer->owner = owner;
}

void timer_clear(struct timer *timer)
{
    if (timer->at_ms != 0) {
        *timer->back = timer->next;
        if (timer->next != NULL) {
            timer->next->back = timer->back;
        }
        timer->at_ms = 0;
    }
}

/* Grows a list of pointers for one more; the pool cannot do its work without. */
static void *grow(void *list, size_t count, size_t *cap)
{
    if (count < *cap) {
        return list;
    }
    *cap = *cap == 0 ? 16 : *cap * 2;
    void *grown = realloc(list, *cap * sizeof(void *));
    if (grown == NULL) {
        abort(); /* out of memory for a few pointers: the worker restarts, nothing is lost */
    }
    return grown;
}

void pool_bury(struct executor_pool *pool, void *memory)
{
    pool->buried = grow(pool->buried, pool->n_buried, &pool->cap_buried);
    pool->buried[pool->n_buried++] = memory;
}

void pool_remove(struct executor_pool *pool, char *take_path)
{
    if (take_path != NULL) {
        pool->removals = grow(pool->removals, pool->n_removals, &pool->cap_removals);
        pool->removals[pool->n_removals++] = take_path;
    }
}

void event_post(struct executor_pool *pool, struct executor_event *take_event)
{
    if (pool->n_unposted == 0 && mailbox_post(pool->events, take_event)) {
        return;
    }
    pool->unposted = grow(pool->unposted, pool->n_unposted, &pool->cap_unposted);
    pool->unposted[pool->n_unposted++] = take_event;
}

static void post_again(struct executor_pool *pool)
{
    if (pool->n_unposted == 0) {
        return;
    }
    size_t n = 0;
    while (n < pool->n_unposted && mailbox_post(pool->events, pool->unposted[n])) {
        n++;
    }
    pool->n_unposted -= n;
    memmove(pool->unposted, pool->unposted + n, pool->n_unposted * sizeof(*pool->unposted));
}

static void remove_some(struct executor_pool *pool)
{
    if (pool->n_removals > 0 &&
        scratch_remove_step(pool->removals[pool->n_removals - 1], REMOVE_AT_ONCE)) {
        free(pool->removals[--pool->n_removals]);
    }
}

/* ---- the loop ---- */

static void take_requests(struct executor_pool *pool)
{
    for (struct request *request; (request = mailbox_take(pool->inbox)) != NULL;) {
        struct attempt *attempt = request->kind == REQUEST_start
                                      ? request->attempt
                                      : attempt_find(pool, &request->turn, request->no);
        if (request->kind == REQUEST_start) {
            attempt_admit(pool, attempt);
        } else if (attempt != NULL) {
            attempt_stop(pool, attempt, request->reason, request->kind == REQUEST_kill);
        }
        free(request);
    }
    if (mailbox_closed(pool->inbox) && !pool->closing) {
        pool->closing = true;
        epoll_ctl(pool->epoll, EPOLL_CTL_DEL, mailbox_fd(pool->inbox),
                  NULL); /* it stays readable */
        struct attempt *next;
        for (struct attempt *at = pool->attempts; at != NULL; at = next) {
            next = at->next;
            attempt_stop(pool, at, EXECUTOR_STOP_stop, true);
        }
        if (pool->kind->close != NULL) {
            pool->kind->close(pool);
        }
    }
}

/* Starts what waits while there is room. A start that fails ends at once and makes room again. */
static void fill(struct executor_pool *pool)
{
    while (pool->admitted < pool->set.parallel && pool->queue.first != NULL) {
        struct attempt *attempt = attempt_queue_take(&pool->queue);
        attempt->admitted = true;
        pool->admitted++;
        pool->kind->start(pool, attempt);
    }
}

static void run_timers(struct executor_pool *pool)
{
    int64_t now_ms = mono_now().v;
    for (bool any = true; any;) { /* a due timer may set or clear any other: begin again */
        any = false;
        for (struct timer *at = pool->timers; at != NULL; at = at->next) {
            if (at->at_ms <= now_ms) {
                timer_clear(at);
                at->due(pool, at->owner);
                any = true;
                break;
            }
        }
    }
}

/* How long to sleep: until the next timer, for ever without one. */
static int sleep_ms(const struct executor_pool *pool)
{
    if (pool->n_removals > 0) {
        return 0;
    }
    int64_t next_ms = INT64_MAX;
    for (const struct timer *at = pool->timers; at != NULL; at = at->next) {
        next_ms = at->at_ms < next_ms ? at->at_ms : next_ms;
    }
    int64_t left = next_ms == INT64_MAX ? -1 : next_ms - mono_now().v;
    if (next_ms != INT64_MAX) {
        left = left < 0 ? 0 : left > 3600000 ? 3600000 : left;
    }
    if (pool->n_unposted > 0 && (left < 0 || left > POST_AGAIN_MS)) {
        left = POST_AGAIN_MS;
    }
    return (int)left;
}

static bool finished(struct executor_pool *pool)
{
    return pool->closing && pool->attempts == NULL && pool->n_removals == 0 &&
           (pool->kind->empty == NULL || pool->kind->empty(pool));
}

static void *run_pool(void *arg)
{
    struct executor_pool *pool = arg;
    struct epoll_event events[EVENTS_AT_ONCE];
    while (!finished(pool)) {
        int n = epoll_wait(pool->epoll, events, EVENTS_AT_ONCE, sleep_ms(pool));
        for (int i = 0; i < n; i++) {
            struct source *source = events[i].data.ptr;
            if (source != NULL && source->fd >= 0) { /* not closed in this round */
                source->ready(pool, source->owner);
            }
        }
        take_requests(pool);
        run_timers(pool);
        fill(pool);
        post_again(pool);
        remove_some(pool);
        while (pool->n_buried > 0) {
            free(pool->buried[--pool->n_buried]);
        }
    }
    return NULL;
}

/* ---- interface ---- */

static baton_code check_settings(const struct executor_settings *set, struct baton_error *err)
{
    if (set->kind == EXECUTOR_KIND_agent &&
        (set->agent == NULL || agent_find(set->agent) == NULL)) {
        return baton_fail(err, BATON_E_usage, "an executor of kind agent needs a known agent");
    }
    if (set->parallel < 1 || set->state_dir == NULL || set->state_dir[0] != '/' ||
        (set->kind == EXECUTOR_KIND_callback && set->callback == NULL)) {
        return baton_fail(err, BATON_E_usage,
                          "an executor pool needs parallel, an absolute state_dir and, for kind "
                          "callback, a function");
    }
    return BATON_OK;
}

static baton_code open_scratch(struct executor_pool *pool, struct baton_error *err)
{
    const struct executor_settings *set = &pool->set;
    char *usual = NULL;
    if (asprintf(&usual, "%s/scratch", set->state_dir) < 0) {
        return baton_fail(err, BATON_E_no_memory, "no memory for a path");
    }
    baton_code rc =
        scratch_open(set->scratch_dir != NULL ? set->scratch_dir : usual, set->service.s,
                     set->worker.s, set->n_prefix > 0, &pool->scratch, err);
    free(usual);
    return rc;
}

/* What an earlier boot left: its processes, then its scratch directories. */
static baton_code clean_up(struct executor_pool *pool, struct baton_error *err)
{
    char *mark = NULL;
    char *begins = NULL;
    char *lacks = NULL;
    baton_code rc = open_scratch(pool, err);
    if (rc != BATON_OK) {
        return rc;
    }
    /* Another fleet on this host may have the same service and worker: its folder is another. */
    if (asprintf(&mark, "BATON_WORKER=%s", pool->worker_mark) >= 0 &&
        asprintf(&begins, "BATON_SCRATCH=%s/", pool->scratch) >= 0 &&
        asprintf(&lacks, "BATON_BOOT=%s", pool->set.boot.s) >= 0) {
        int killed =
            sweep_kill(&(struct sweep_mark){.equals = mark, .begins = begins, .lacks = lacks});
        if (killed > 0) {
            diag_line(DIAG_info, "executor.swept", D_TEXT("service", pool->set.service.s),
                      D_TEXT("worker", pool->set.worker.s), D_INT("processes", killed));
        }
    }
    free(mark);
    free(begins);
    free(lacks);
    char **left = scratch_left(pool->scratch);
    for (size_t i = 0; left != NULL && left[i] != NULL; i++) {
        pool_remove(pool, left[i]);
    }
    free(left);
    return BATON_OK;
}

static baton_code open_pool(struct executor_pool *pool, struct baton_error *err)
{
    static const struct kind *const kinds[] = {[EXECUTOR_KIND_exec] = &kind_exec,
                                               [EXECUTOR_KIND_child] = &kind_child,
                                               [EXECUTOR_KIND_agent] = &kind_agent,
                                               [EXECUTOR_KIND_callback] = &kind_callback};
    pool->kind = kinds[pool->set.kind];
    if (asprintf(&pool->worker_mark, "%s/%s", pool->set.service.s, pool->set.worker.s) < 0) {
        pool->worker_mark = NULL;
        return baton_fail(err, BATON_E_no_memory, "no memory for an executor pool");
    }
    baton_code rc = BATON_OK;
    if (pool->set.kind != EXECUTOR_KIND_callback) {
        rc = pool->set.kind == EXECUTOR_KIND_agent ? agent_open(pool, err) : BATON_OK;
        rc = rc != BATON_OK ? rc : launch_resolve(pool, err);
        rc = rc != BATON_OK ? rc : child_guard_find(pool->set.guard_path, &pool->guard, err);
        rc = rc != BATON_OK ? rc : clean_up(pool, err);
    }
    if (rc != BATON_OK) {
        return rc;
    }
    pool->epoll = epoll_create1(EPOLL_CLOEXEC);
    pool->inbox = mailbox_new(4 * (size_t)pool->set.parallel + 64);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (pool->epoll < 0 || pool->inbox == NULL ||
        epoll_ctl(pool->epoll, EPOLL_CTL_ADD, mailbox_fd(pool->inbox), &event) != 0) {
        return baton_fail(err, BATON_E_unexpected, "no descriptors for an executor pool: %s",
                          strerror(errno));
    }
    return pool->kind->open != NULL ? pool->kind->open(pool, err) : BATON_OK;
}

static void free_pool(struct executor_pool *pool)
{
    if (pool->kind != NULL && pool->kind->free != NULL) {
        pool->kind->free(pool);
    }
    for (struct request *request;
         pool->inbox != NULL && (request = mailbox_take(pool->inbox)) != NULL;) {
        attempt_free(request->attempt);
        free(request);
    }
    if (pool->inbox != NULL) {
        mailbox_free(pool->inbox);
    }
    if (pool->epoll >= 0) {
        close(pool->epoll);
    }
    for (size_t i = 0; i < pool->n_unposted; i++) {
        executor_event_free(pool->unposted[i]);
    }
    for (size_t i = 0; i < pool->n_removals; i++) {
        free(pool->removals[i]);
    }
    for (size_t i = 0; pool->argv != NULL && pool->argv[i] != NULL; i++) {
        free(pool->argv[i]);
    }
    while (pool->n_buried > 0) {
        free(pool->buried[--pool->n_buried]);
    }
    free(pool->argv);
    free(pool->unposted);
    free(pool->removals);
    free(pool->buried);
    free(pool->guard);
    free(pool->scratch);
    free(pool->worker_mark);
    free(pool);
}

/* Threads of the pool take no signals: those are the program's own threads' business. */
static int start_thread(struct executor_pool *pool)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&pool->thread, NULL, run_pool, pool);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0) {
        pthread_setname_np(pool->thread, "executors");
    }
    return rc;
}

baton_code executor_pool_new(const struct executor_settings *settings, struct mailbox *events,
                             struct executor_pool **ret_pool, struct baton_error *err)
{
    baton_code rc = check_settings(settings, err);
    if (rc != BATON_OK) {
        return rc;
    }
    struct executor_pool *pool = calloc(1, sizeof(*pool));
    if (pool == NULL) {
        return baton_fail(err, BATON_E_no_memory, "no memory for an executor pool");
    }
    pool->set = *settings;
    pool->set.grace_ms = settings->grace_ms > 0 ? settings->grace_ms : EXECUTOR_GRACE_MS;
    pool->set.hello_ms = settings->hello_ms > 0 ? settings->hello_ms : EXECUTOR_HELLO_MS;
    pool->events = events;
    pool->epoll = -1;
    attempt_queue_init(&pool->queue);
    rc = open_pool(pool, err);
    if (rc == BATON_OK && start_thread(pool) != 0) {
        rc = baton_fail(err, BATON_E_unexpected, "no thread for an executor pool");
    }
    if (rc != BATON_OK) {
        free_pool(pool);
        return rc;
    }
    /* Borrowed during this call only. */
    pool->set.command = pool->set.prefix = NULL;
    pool->set.agent = pool->set.model = pool->set.prompts = pool->set.home = NULL;
    pool->set.state_dir = pool->set.scratch_dir = pool->set.guard_path = NULL;
    *ret_pool = pool;
    return BATON_OK;
}

void executor_pool_free(struct executor_pool *pool)
{
    if (pool != NULL) {
        mailbox_close(pool->inbox);
        pthread_join(pool->thread, NULL);
        free_pool(pool);
    }
}

baton_code executor_start(struct executor_pool *pool, const struct executor_job *job,
                          struct baton_error *err)
{
    BATON_PRE(job->attempt >= 1 && job->deadline_ms >= 1);
    struct request *request = calloc(1, sizeof(*request));
    struct attempt *attempt = attempt_new(job);
    if (request == NULL || attempt == NULL) {
        free(request);
        attempt_free(attempt);
        return baton_fail(err, BATON_E_service_unavailable, "no memory to start attempt %s.%d",
                          job->turn.s, (int)job->attempt);
    }
    request->kind = REQUEST_start;
    request->attempt = attempt;
    if (!mailbox_post(pool->inbox, request)) {
        free(request);
        attempt_free(attempt);
        return baton_fail(err, BATON_E_service_unavailable,
                          "the executor pool has too many requests to take attempt %s.%d now",
                          job->turn.s, (int)job->attempt);
    }
    return BATON_OK;
}

static void post_request(struct executor_pool *pool, enum request_kind kind,
                         const struct turn_id *turn, int32_t no, enum executor_stop_reason reason)
{
    struct request *request = calloc(1, sizeof(*request));
    if (request == NULL) {
        abort(); /* a lease that runs out must be kept: the worker's death kills the tree, too */
    }
    *request = (struct request){kind, NULL, *turn, no, reason};
    while (!mailbox_post(pool->inbox, request)) {
        usleep(200); /* full: its thread never waits for anything, it is emptying it now */
    }
}

void executor_stop(struct executor_pool *pool, const struct turn_id *turn, int32_t attempt,
                   enum executor_stop_reason reason)
{
    post_request(pool, REQUEST_stop, turn, attempt, reason);
}

void executor_kill(struct executor_pool *pool, const struct turn_id *turn, int32_t attempt)
{
    post_request(pool, REQUEST_kill, turn, attempt, EXECUTOR_STOP_stop);
}
