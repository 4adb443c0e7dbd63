/*
 * Kind callback: a C function of the program that embeds the worker, on threads of a pool.
 *
 * The executors thread puts calls into one mailbox, from which whichever callback thread is free
 * takes the next, and gets them back through another. So nothing waits behind a long call, and a
 * burst of short ones costs few wake-ups. Whether a call has begun is decided in one place, the
 * exchange of its phase: the thread begins it, or the pool withdraws it.
 *
 * A call that does not return in time is abandoned: its attempt ends, and a new thread takes the
 * place of its thread, which ends when it returns after all. With ABANDONED_MAX calls hanging,
 * nobody takes a place any more: attempts wait, and time out.
 *
 * In: attempt.c, by kind_callback.  Out: worker/include/baton/executor.h, result.c.
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
#include <unistd.h>

#define ABANDONED_MAX 8
#define THREADS_MAX 64

/* What callback threads share with the pool; the last of them frees it. */
struct shared {
    atomic_int holders;
    pthread_mutex_t take_lock; /* a mailbox has one taker: the thread that holds this */
    struct mailbox *work;      /* struct call; closed: end */
    struct mailbox *returned;  /* struct call */
    baton_executor_fn fn;
    void *arg;
    struct callback_thread *left; /* threads that hung when the pool went: freed with this */
};

struct baton_attempt {
    struct attempt *facts; /* the call's own: no list, no timer */
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
};

/* Its thread: waiting -> running -> done. The pool: waiting -> withdrawn, running -> replaced. Each
 * by one exchange, so that one of the two wins. */
enum call_phase {
    CALL_PHASE_waiting,
    CALL_PHASE_running,
    CALL_PHASE_done,
    CALL_PHASE_replaced,  /* another thread has taken the place of its thread, which will end */
    CALL_PHASE_withdrawn, /* it never begins */
};

struct call {
    struct baton_attempt given;
    struct baton_result result;
    _Atomic enum call_phase phase;
    struct callback_thread *by; /* from running on */
    struct wall_ms started_at;  /* from running on */
    int status;
    struct attempt *attempt; /* NULL: it has ended without the call. Thread: executors */
    bool hanging;            /* counted in n_hanging. Thread: executors */
};

struct callback_thread {
    pthread_t thread;
    struct shared *shared;
    bool hanging;                 /* so does its call. Thread: executors */
    struct callback_thread *next; /* of those left behind */
};

struct callback_state {
    struct shared *shared;
    struct callback_thread *threads[THREADS_MAX + ABANDONED_MAX];
    int n_threads;
    int n_hanging;
    int n_missing;   /* replacements for which there was no memory yet */
    size_t work_max; /* calls in the mailbox of work */
    struct source returned;
    struct attempt_queue queue; /* that mailbox is full */
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

const char *baton_attempt_traceparent(const struct baton_attempt *attempt)
{
    return attempt->facts->traceparent;
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
    struct baton_attempt *own =
        (struct baton_attempt *)attempt; /* the lock is ours, not the fact */
    struct executor_event *event =
        event_new(EXECUTOR_EVENT_progress, &own->facts->turn, own->facts->no, &own->facts->boot);
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

/* The call takes over what the function may read: it may outlive the attempt. */
static struct call *call_new(struct executor_pool *pool, struct attempt *attempt)
{
    struct call *call = calloc(1, sizeof(*call));
    struct attempt *facts = malloc(sizeof(*facts));
    if (call == NULL || facts == NULL) {
        free(call);
        free(facts);
        return NULL;
    }
    *facts = *attempt;
    attempt->json = NULL;
    attempt->place = NULL;
    attempt->env = NULL;
    call->given.facts = facts;
    call->given.service = plain_id_of(pool->set.service.s);
    call->given.mask = executor_env_mask(facts->env);
    atomic_init(&call->given.stopped, false);
    pthread_mutex_init(&call->given.lock, NULL);
    call->given.events = pool->events;
    call->given.progress_max = 2 * (size_t)pool->set.parallel;
    output_init(&call->result.output, call->given.mask, OUTPUT_HEAD, OUTPUT_TAIL, NULL, NULL);
    atomic_init(&call->phase, CALL_PHASE_waiting);
    call->attempt = attempt;
    attempt->work = call;
    return call;
}

/* ---- threads ---- */

static void shared_release(struct shared *shared)
{
    if (atomic_fetch_sub(&shared->holders, 1) != 1) {
        return;
    }
    struct mailbox *const boxes[] = {shared->work, shared->returned};
    for (size_t i = 0; i < 2; i++) {
        for (struct call *call; boxes[i] != NULL && (call = mailbox_take(boxes[i])) != NULL;) {
            call_free(call);
        }
        if (boxes[i] != NULL) {
            mailbox_free(boxes[i]);
        }
    }
    while (shared->left != NULL) {
        struct callback_thread *thread = shared->left;
        shared->left = thread->next;
        free(thread);
    }
    pthread_mutex_destroy(&shared->take_lock);
    free(shared);
}

static struct call *next_call(struct shared *shared)
{
    pthread_mutex_lock(&shared->take_lock);
    struct call *call = mailbox_wait(shared->work, -1) ? mailbox_take(shared->work) : NULL;
    pthread_mutex_unlock(&shared->take_lock);
    return call;
}

/* False: its thread was replaced, and ends. */
static bool run_call(struct callback_thread *self, struct call *call)
{
    enum call_phase waiting = CALL_PHASE_waiting;
    enum call_phase running = CALL_PHASE_running;
    call->by = self;
    call->started_at = wall_now();
    if (!atomic_compare_exchange_strong(&call->phase, &waiting, CALL_PHASE_running)) {
        return true; /* withdrawn */
    }
    call->status = self->shared->fn(&call->given, &call->result, self->shared->arg);
    return atomic_compare_exchange_strong(&call->phase, &running, CALL_PHASE_done);
}

static void give_back(struct shared *shared, struct call *call)
{
    while (!mailbox_post(shared->returned, call)) {
        if (mailbox_closed(shared->returned)) { /* the pool has gone */
            call_free(call);
            return;
        }
        usleep(100); /* full: the executors thread is emptying it */
    }
}

static void *run_calls(void *arg)
{
    struct callback_thread *self = arg;
    struct shared *shared = self->shared;
    bool goes_on = true;
    for (struct call *call; goes_on && (call = next_call(shared)) != NULL;) {
        goes_on = run_call(self, call);
        give_back(shared, call);
    }
    shared_release(shared);
    return NULL;
}

static bool thread_new(struct callback_state *state)
{
    sigset_t all;
    sigset_t before;
    struct callback_thread *thread = calloc(1, sizeof(*thread));
    if (thread == NULL) {
        return false;
    }
    thread->shared = state->shared;
    atomic_fetch_add(&state->shared->holders, 1);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&thread->thread, NULL, run_calls, thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        shared_release(state->shared);
        free(thread);
        return false;
    }
    pthread_setname_np(thread->thread, "callback");
    state->threads[state->n_threads++] = thread;
    return true;
}

/* A replaced thread is about to end, its last call has come back. */
static void thread_join(struct callback_state *state, struct callback_thread *thread)
{
    for (int i = 0; i < state->n_threads; i++) {
        if (state->threads[i] == thread) {
            state->threads[i] = state->threads[--state->n_threads];
            pthread_join(thread->thread, NULL);
            free(thread);
            return;
        }
    }
}

static void give_work(struct executor_pool *pool, struct callback_state *state)
{
    struct mailbox *work = state->shared->work;
    while (state->n_missing > 0 && thread_new(state)) {
        state->n_missing--;
    }
    /* Only this thread puts something in: what there is room for now, there is room for. */
    while (state->queue.first != NULL && mailbox_count(work) < state->work_max) {
        struct attempt *attempt = attempt_queue_take(&state->queue);
        struct call *call = call_new(pool, attempt);
        if (call == NULL || !mailbox_post(work, call)) {
            attempt_fail(pool, attempt, FAILURE_unavailable, "no memory for a callback");
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
    struct executor_exit exit = {.value = call->status};
    struct buf *given = &call->result.object;
    struct attempt *attempt = call->attempt;
    bool truncated;
    output_end(&call->result.output);
    output_text(&call->result.output, NULL, &text, &truncated);
    mask_add(call->given.mask, given->data, given->len, &object);
    bool whole = buf_ok(given) && buf_ok(&object);
    executor_result_check(attempt->role, attempt->verdicts, object.data, whole ? object.len : 0,
                          !whole, &exit, &outcome);
    attempt_running(pool, attempt);
    attempt->started_at = call->started_at;
    deafen(call);
    attempt_settle(pool, attempt, &outcome, object.data, &text, truncated);
    buf_done(&object);
    buf_done(&text);
}

static void returned_ready(struct executor_pool *pool, void *owner)
{
    struct callback_state *state = owner;
    for (struct call *call; (call = mailbox_take(state->shared->returned)) != NULL;) {
        if (call->attempt != NULL) {
            settle(pool, call);
        }
        if (call->hanging) {
            state->n_hanging--;
            call->by->hanging = false;
        }
        if (atomic_load(&call->phase) == CALL_PHASE_replaced) {
            thread_join(state, call->by);
        }
        call_free(call);
    }
    give_work(pool, state);
}

/* ---- kind ---- */

static baton_code callback_open(struct executor_pool *pool, struct baton_error *err)
{
    int n = pool->set.callback_threads > 0 ? pool->set.callback_threads : 1;
    size_t parallel = (size_t)pool->set.parallel;
    struct callback_state *state = calloc(1, sizeof(*state));
    struct shared *shared = calloc(1, sizeof(*shared));
    if (state == NULL || shared == NULL || (shared->work = mailbox_new(2 * parallel)) == NULL ||
        (shared->returned = mailbox_new(4 * parallel + THREADS_MAX)) == NULL) {
        if (shared != NULL && shared->work != NULL) {
            mailbox_free(shared->work);
        }
        free(state);
        free(shared);
        return baton_fail(err, BATON_E_no_memory, "no memory for the callback threads");
    }
    atomic_init(&shared->holders, 1);
    pthread_mutex_init(&shared->take_lock, NULL);
    shared->fn = pool->set.callback;
    shared->arg = pool->set.callback_arg;
    state->shared = shared;
    state->work_max = 2 * parallel;
    state->returned = SOURCE_NONE;
    attempt_queue_init(&state->queue);
    pool->state = state;
    for (int i = 0; i < n && i < THREADS_MAX; i++) {
        if (!thread_new(state)) {
            return baton_fail(err, BATON_E_unexpected, "no thread for callbacks");
        }
    }
    if (!source_watch(pool, &state->returned, mailbox_fd(shared->returned), returned_ready,
                      state)) {
        return baton_fail(err, BATON_E_unexpected, "cannot watch the callback threads");
    }
    return BATON_OK;
}

static void callback_start(struct executor_pool *pool, struct attempt *attempt)
{
    struct callback_state *state = pool->state;
    attempt_queue_add(&state->queue, attempt);
    give_work(pool, state);
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
    enum call_phase running = CALL_PHASE_running;
    atomic_store(&call->given.stopped, true);
    deafen(call);
    attempt_fail(pool, attempt, FAILURE_killed, "its callback did not return");
    if (atomic_load(&call->phase) == CALL_PHASE_done) {
        return; /* on its way back */
    }
    call->hanging = true;
    call->by->hanging = true;
    if (state->n_hanging++ < ABANDONED_MAX && !pool->closing &&
        atomic_compare_exchange_strong(&call->phase, &running, CALL_PHASE_replaced)) {
        state->n_missing++;
    }
    give_work(pool, state);
}

static bool callback_withdraw(struct executor_pool *pool, struct attempt *attempt)
{
    struct callback_state *state = pool->state;
    struct call *call = attempt->work;
    enum call_phase waiting = CALL_PHASE_waiting;
    if (call == NULL) {
        attempt_queue_remove(&state->queue, attempt);
        return true;
    }
    if (!atomic_compare_exchange_strong(&call->phase, &waiting, CALL_PHASE_withdrawn)) {
        return false;
    }
    deafen(call); /* a thread will find it, and give it back */
    return true;
}

static void callback_free(struct executor_pool *pool)
{
    struct callback_state *state = pool->state;
    if (state == NULL) {
        return;
    }
    mailbox_close(state->shared->work);
    for (int i = 0; i < state->n_threads; i++) {
        struct callback_thread *thread = state->threads[i];
        if (thread->hanging) {
            pthread_detach(thread->thread);
            thread->next = state->shared->left;
            state->shared->left = thread;
        } else {
            pthread_join(thread->thread, NULL);
            free(thread);
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
