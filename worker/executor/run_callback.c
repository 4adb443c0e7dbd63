/*
 * Kind callback: a C function of the program that embeds the worker, on threads of a pool.
 *
 * The executors thread gives a call to an idle callback thread through that thread's mailbox and gets
 * it back through one mailbox for all. A call that does not return in time is abandoned: its attempt
 * ends, and another thread takes the place of its thread until it returns after all. With
 * ABANDONED_MAX calls hanging, attempts wait for threads, and time out.
 * In: attempt.c, by kind_callback. Out: baton/executor.h, result.c.
 */
#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "common/base/mailbox.h"
#include "worker/executor/pool.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ABANDONED_MAX 8
#define THREADS_MAX 64

/* What callback threads share with the pool; the last of them frees it. */
struct shared {
    atomic_int holders;
    struct mailbox *returned; /* struct call */
    baton_executor_fn fn;
    void *arg;
};

struct baton_attempt {
    struct attempt *facts; /* the call's own copy: no list, no timer */
    struct plain_id service;
    const struct mask *mask;
    atomic_bool stopped;
    pthread_mutex_t lock;   /* of events: a progress and the end of interest may meet */
    struct mailbox *events; /* NULL once nobody listens */
    size_t progress_max;    /* more than this many events waiting: progress is dropped */
};

struct baton_result {
    struct buf object; /* as baton_result_json gave it, or as the other calls made it */
    struct output output;
    bool broken;
};

struct call {
    struct baton_attempt given;
    struct baton_result result;
    int status;
    struct attempt *attempt; /* NULL: abandoned. Thread: executors */
    struct callback_thread *by;
};

struct callback_thread {
    pthread_t thread;
    struct mailbox *work; /* struct call; closed: end */
    struct shared *shared;
    bool busy; /* has a call. Thread: executors */
};

struct callback_state {
    struct shared *shared;
    struct callback_thread *threads[THREADS_MAX + ABANDONED_MAX];
    int n_threads;
    int limit;  /* calls at a time whose attempts live */
    int active; /* so many are out */
    struct source returned;
    struct attempt_queue queue; /* admitted, no thread idle */
};

/* ---- public functions of the two objects; thread: the callback's ---- */

const char *baton_attempt_turn_id(const struct baton_attempt *attempt)
{
    return attempt->facts->turn.s;
}

int baton_attempt_number(const struct baton_attempt *attempt)
{
    return attempt->facts->no;
}

const char *baton_attempt_role(const struct baton_attempt *attempt)
{
    return role_word(attempt->facts->role);
}

const char *baton_attempt_service(const struct baton_attempt *attempt)
{
    return attempt->service.s;
}

const char *baton_attempt_task_id(const struct baton_attempt *attempt)
{
    return attempt->facts->task.s;
}

int baton_attempt_task_rev(const struct baton_attempt *attempt)
{
    return attempt->facts->task_rev;
}

const char *baton_attempt_run_id(const struct baton_attempt *attempt)
{
    return attempt->facts->run.s;
}

const char *baton_attempt_intent(const struct baton_attempt *attempt)
{
    return attempt->facts->intent.s;
}

const char *baton_attempt_turn(const struct baton_attempt *attempt, size_t *ret_len)
{
    if (ret_len != NULL) {
        *ret_len = attempt->facts->json_len;
    }
    return attempt->facts->json;
}

const char *baton_attempt_place(const struct baton_attempt *attempt)
{
    return attempt->facts->place;
}

const char *baton_attempt_env(const struct baton_attempt *attempt, const char *name)
{
    return executor_env_find(attempt->facts->env, name);
}

bool baton_attempt_read_only(const struct baton_attempt *attempt)
{
    return attempt->facts->read_only;
}

int64_t baton_attempt_time_left_ms(const struct baton_attempt *attempt)
{
    int64_t left = attempt->facts->deadline_at_ms - mono_now().v;
    return left > 0 ? left : 0;
}

bool baton_attempt_stopped(const struct baton_attempt *attempt)
{
    return atomic_load(&((struct baton_attempt *)attempt)->stopped);
}

void baton_attempt_progress(const struct baton_attempt *attempt, const char *text)
{
    struct baton_attempt *own = (struct baton_attempt *)attempt; /* the lock is ours, not the fact */
    struct executor_event *event = event_new(EXECUTOR_EVENT_progress, &own->facts->turn,
                                             own->facts->no, &own->facts->boot);
    struct buf masked = BUF_INIT;
    mask_add(own->mask, text, strnlen(text, EXECUTOR_PROGRESS_MAX), &masked);
    if (event != NULL) {
        event->text = buf_take(&masked, NULL);
        pthread_mutex_lock(&own->lock);
        bool posted = event->text != NULL && own->events != NULL &&
                      mailbox_count(own->events) <= own->progress_max &&
                      mailbox_post(own->events, event);
        pthread_mutex_unlock(&own->lock);
        if (!posted) {
            executor_event_free(event);
        }
    }
    buf_done(&masked);
}

void baton_result_verdict(struct baton_result *result, const char *verdict, const char *summary)
{
    buf_clear(&result->object);
    struct jsonw w = jsonw_to(&result->object);
    jsonw_begin_object(&w);
    jsonw_key_plain(&w, "verdict", verdict, strlen(verdict));
    if (summary != NULL) {
        jsonw_key_plain(&w, "summary", summary, strlen(summary));
    }
    jsonw_end(&w);
}

void baton_result_json(struct baton_result *result, const char *json, size_t json_len)
{
    buf_clear(&result->object);
    /* One byte more than allowed is enough to be refused as too large. */
    buf_add(&result->object, json, json_len <= LIMIT_RESULT ? json_len : LIMIT_RESULT + 1);
}

void baton_result_fail(struct baton_result *result, const char *failure_class, const char *message,
                       int64_t retry_after_ms)
{
    buf_clear(&result->object);
    struct jsonw w = jsonw_to(&result->object);
    jsonw_begin_object(&w);
    jsonw_key_plain(&w, "class", failure_class, strlen(failure_class));
    if (message != NULL) {
        jsonw_key_plain(&w, "message", message, strnlen(message, EXECUTOR_MESSAGE_MAX));
    }
    if (retry_after_ms > 0) {
        jsonw_key_int(&w, "retry_after_ms", retry_after_ms);
    }
    jsonw_end(&w);
}

void baton_result_output(struct baton_result *result, const void *bytes, size_t len)
{
    output_feed(&result->output, bytes, len);
}

/* ---- calls ---- */

static void call_free(struct call *call)
{
    attempt_free(call->given.facts);
    pthread_mutex_destroy(&call->given.lock);
    buf_done(&call->result.object);
    output_done(&call->result.output);
    free(call);
}

static struct call *call_new(struct executor_pool *pool, struct attempt *attempt)
{
    struct call *call = calloc(1, sizeof(*call));
    struct executor_job job = {.turn = attempt->turn,
                               .attempt = attempt->no,
                               .boot = attempt->boot,
                               .role = attempt->role,
                               .task = attempt->task,
                               .task_rev = attempt->task_rev,
                               .run = attempt->run,
                               .intent = attempt->intent,
                               .profile = attempt->profile,
                               .json = attempt->json,
                               .json_len = attempt->json_len,
                               .env = attempt->env,
                               .place = attempt->place,
                               .deadline_ms = attempt->deadline_ms,
                               .read_only = attempt->read_only};
    if (call == NULL || (call->given.facts = attempt_new(&job)) == NULL) {
        free(call);
        return NULL;
    }
    call->given.facts->deadline_at_ms = attempt->deadline_at_ms;
    call->given.service = plain_id_of(pool->set.service.s);
    call->given.mask = executor_env_mask(call->given.facts->env);
    atomic_init(&call->given.stopped, false);
    pthread_mutex_init(&call->given.lock, NULL);
    call->given.events = pool->events;
    call->given.progress_max = 2 * (size_t)pool->set.parallel;
    output_init(&call->result.output, call->given.mask, OUTPUT_HEAD, OUTPUT_TAIL, NULL, NULL);
    call->attempt = attempt;
    return call;
}

/* ---- threads ---- */

static void shared_release(struct shared *shared)
{
    if (atomic_fetch_sub(&shared->holders, 1) == 1) {
        for (struct call *call; (call = mailbox_take(shared->returned)) != NULL;) {
            call_free(call);
        }
        mailbox_free(shared->returned);
        free(shared);
    }
}

static void *run_calls(void *arg)
{
    struct callback_thread *self = arg;
    struct mailbox *work = self->work;
    struct shared *shared = self->shared;
    while (mailbox_wait(work, -1)) {
        struct call *call = mailbox_take(work);
        call->status = shared->fn(&call->given, &call->result, shared->arg);
        /* There is room: no more calls are out than threads, and none before its return. */
        if (!mailbox_post(shared->returned, call)) {
            call_free(call); /* closed: the pool has gone */
        }
    }
    mailbox_free(work);
    shared_release(shared);
    free(self);
    return NULL;
}

/* NULL without memory, or when there are as many as there may be. */
static struct callback_thread *thread_new(struct callback_state *state)
{
    sigset_t all;
    sigset_t before;
    if (state->n_threads == state->limit + ABANDONED_MAX) {
        return NULL;
    }
    struct callback_thread *thread = calloc(1, sizeof(*thread));
    if (thread == NULL || (thread->work = mailbox_new(1)) == NULL) {
        free(thread);
        return NULL;
    }
    thread->shared = state->shared;
    atomic_fetch_add(&state->shared->holders, 1);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&thread->thread, NULL, run_calls, thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        shared_release(state->shared);
        mailbox_free(thread->work);
        free(thread);
        return NULL;
    }
    pthread_setname_np(thread->thread, "callback");
    state->threads[state->n_threads++] = thread;
    return thread;
}

static struct callback_thread *idle_thread(struct callback_state *state)
{
    for (int i = 0; i < state->n_threads; i++) {
        if (!state->threads[i]->busy) {
            return state->threads[i];
        }
    }
    return thread_new(state);
}

static void dispatch(struct executor_pool *pool, struct callback_state *state)
{
    while (state->queue.first != NULL && state->active < state->limit) {
        struct callback_thread *thread = idle_thread(state);
        if (thread == NULL) {
            return; /* all hang: who waits times out */
        }
        struct attempt *attempt = attempt_queue_take(&state->queue);
        struct call *call = call_new(pool, attempt);
        if (call == NULL) {
            attempt_fail(pool, attempt, FAILURE_unavailable, "no memory for a callback");
            continue;
        }
        call->by = thread;
        thread->busy = true;
        state->active++;
        attempt->work = call;
        attempt_running(attempt);
        if (!mailbox_post(thread->work, call)) {
            abort(); /* an idle thread's mailbox is empty and open */
        }
    }
}

/* Nobody listens to this call any more. */
static void deafen(struct call *call)
{
    pthread_mutex_lock(&call->given.lock);
    call->given.events = NULL;
    pthread_mutex_unlock(&call->given.lock);
    call->attempt->work = NULL;
    call->attempt = NULL;
}

static void settle(struct executor_pool *pool, struct call *call)
{
    struct executor_outcome outcome;
    struct buf object = BUF_INIT;
    struct buf text = BUF_INIT;
    struct executor_exit exit = {false, call->status};
    struct buf *given = &call->result.object;
    struct attempt *attempt = call->attempt;
    bool truncated;
    output_end(&call->result.output);
    output_text(&call->result.output, NULL, &text, &truncated);
    mask_add(call->given.mask, given->data, given->len, &object);
    bool whole = buf_ok(given) && buf_ok(&object);
    executor_result_check(attempt->role, object.data, whole ? object.len : 0, !whole, &exit,
                          &outcome);
    deafen(call);
    attempt_settle(pool, attempt, &outcome, object.data, &text, truncated);
    buf_done(&object);
    buf_done(&text);
}

static void returned_ready(struct executor_pool *pool, void *owner)
{
    struct callback_state *state = owner;
    for (struct call *call; (call = mailbox_take(state->shared->returned)) != NULL;) {
        call->by->busy = false;
        if (call->attempt != NULL) {
            state->active--;
            settle(pool, call);
        }
        call_free(call);
    }
    dispatch(pool, state);
}

/* ---- kind ---- */

static baton_code callback_open(struct executor_pool *pool, struct baton_error *err)
{
    int n = pool->set.callback_threads > 0 ? pool->set.callback_threads : 1;
    struct callback_state *state = calloc(1, sizeof(*state));
    struct shared *shared = calloc(1, sizeof(*shared));
    n = n < THREADS_MAX ? n : THREADS_MAX;
    if (state == NULL || shared == NULL ||
        (shared->returned = mailbox_new(THREADS_MAX + ABANDONED_MAX)) == NULL) {
        free(state);
        free(shared);
        return baton_fail(err, BATON_E_no_memory, "no memory for the callback threads");
    }
    atomic_init(&shared->holders, 1);
    shared->fn = pool->set.callback;
    shared->arg = pool->set.callback_arg;
    state->shared = shared;
    state->returned = SOURCE_NONE;
    attempt_queue_init(&state->queue);
    pool->state = state;
    state->limit = n;
    if (thread_new(state) == NULL) { /* the others when they are needed */
        return baton_fail(err, BATON_E_unexpected, "no thread for callbacks");
    }
    if (!source_watch(pool, &state->returned, mailbox_fd(shared->returned), returned_ready, state)) {
        return baton_fail(err, BATON_E_unexpected, "cannot watch the callback threads");
    }
    return BATON_OK;
}

static void callback_start(struct executor_pool *pool, struct attempt *attempt)
{
    struct callback_state *state = pool->state;
    attempt_queue_add(&state->queue, attempt);
    dispatch(pool, state);
}

static void callback_ask(struct executor_pool *pool, struct attempt *attempt, const char *why)
{
    (void)pool;
    (void)why;
    struct call *call = attempt->work;
    atomic_store(&call->given.stopped, true);
}

static void callback_kill(struct executor_pool *pool, struct attempt *attempt)
{
    struct callback_state *state = pool->state;
    struct call *call = attempt->work;
    atomic_store(&call->given.stopped, true);
    state->active--;
    deafen(call);
    attempt_fail(pool, attempt, FAILURE_killed, "its callback did not return");
    dispatch(pool, state);
}

static void callback_withdraw(struct executor_pool *pool, struct attempt *attempt)
{
    struct callback_state *state = pool->state;
    attempt_queue_remove(&state->queue, attempt);
}

static void callback_free(struct executor_pool *pool)
{
    struct callback_state *state = pool->state;
    if (state == NULL) {
        return;
    }
    for (int i = 0; i < state->n_threads; i++) {
        pthread_t thread = state->threads[i]->thread;
        bool busy = state->threads[i]->busy;
        mailbox_close(state->threads[i]->work); /* the thread ends, and frees what is its own */
        if (busy) {
            pthread_detach(thread);
        } else {
            pthread_join(thread, NULL);
        }
    }
    mailbox_close(state->shared->returned);
    shared_release(state->shared);
    free(state);
}

const struct kind kind_callback = {.word = "callback",
                                   .open = callback_open,
                                   .start = callback_start,
                                   .ask = callback_ask,
                                   .kill = callback_kill,
                                   .withdraw = callback_withdraw,
                                   .free = callback_free};
