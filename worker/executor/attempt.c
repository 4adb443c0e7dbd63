/*
 * The life of an attempt in the pool: queue, deadline, stop, and its one end.
 *
 *   waiting --start--> running --deadline, silence, stop--> asked --grace--> killed --10 s--> (given up)
 *      |                  |                          |                |
 *      +------------------+--------- settle ---------+----------------+--> end event
 *
 * In: pool.c (requests, timers), the kinds (ends). Out: the worker's mailbox.
 */
#include "common/base/fault.h"
#include "common/base/diag.h"
#include "common/base/mailbox.h"
#include "common/base/text.h"
#include "worker/executor/pool.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- queues ---- */

void attempt_queue_init(struct attempt_queue *queue)
{
    queue->first = NULL;
    queue->last = &queue->first;
}

void attempt_queue_add(struct attempt_queue *queue, struct attempt *attempt)
{
    attempt->queue_next = NULL;
    *queue->last = attempt;
    queue->last = &attempt->queue_next;
}

struct attempt *attempt_queue_take(struct attempt_queue *queue)
{
    struct attempt *attempt = queue->first;
    if (attempt != NULL) {
        attempt_queue_remove(queue, attempt);
    }
    return attempt;
}

void attempt_queue_remove(struct attempt_queue *queue, struct attempt *attempt)
{
    for (struct attempt **at = &queue->first; *at != NULL; at = &(*at)->queue_next) {
        if (*at == attempt) {
            *at = attempt->queue_next;
            if (queue->last == &attempt->queue_next) {
                queue->last = at;
            }
            return;
        }
    }
}

/* ---- attempts ---- */

struct attempt *attempt_new(const struct executor_job *job)
{
    struct attempt *attempt = calloc(1, sizeof(*attempt));
    if (attempt == NULL) {
        return NULL;
    }
    attempt->turn = job->turn;
    attempt->no = job->attempt;
    attempt->boot = job->boot;
    attempt->role = job->role;
    attempt->verdicts = job->verdicts != 0 ? job->verdicts : verdicts_of(job->role);
    attempt->task = job->task;
    attempt->task_rev = job->task_rev;
    attempt->run = job->run;
    attempt->intent = job->intent;
    attempt->profile = job->profile;
    attempt->json = malloc(job->json_len + 1);
    attempt->json_len = job->json_len;
    attempt->place = job->place != NULL ? strdup(job->place) : NULL;
    attempt->env = executor_env_share((struct executor_env *)job->env); /* counted, not changed */
    attempt->read_only = job->read_only;
    attempt->max_cost_micros = job->max_cost_micros;
    snprintf(attempt->traceparent, sizeof(attempt->traceparent), "%s",
             job->traceparent != NULL ? job->traceparent : "");
    attempt->session = job->session != NULL ? strdup(job->session) : NULL;
    attempt->session_usage = job->session_usage != NULL ? *job->session_usage : usage_none();
    attempt->deadline_ms = job->deadline_ms;
    attempt->deadline_at_ms = mono_now().v + job->deadline_ms;
    attempt->heartbeat_ms = job->heartbeat_ms;
    if (attempt->json == NULL || (job->session != NULL && attempt->session == NULL) ||
        (job->place != NULL && attempt->place == NULL)) {
        attempt_free(attempt);
        return NULL;
    }
    memcpy(attempt->json, job->json, job->json_len);
    attempt->json[job->json_len] = '\0';
    return attempt;
}

void attempt_free(struct attempt *attempt)
{
    if (attempt != NULL) {
        free(attempt->json);
        free(attempt->place);
        free(attempt->session);
        executor_env_free(attempt->env);
        free(attempt);
    }
}

struct attempt *attempt_find(struct executor_pool *pool, const struct turn_id *turn, int32_t no)
{
    for (struct attempt *at = pool->attempts; at != NULL; at = at->next) {
        if (at->no == no && strcmp(at->turn.s, turn->s) == 0) {
            return at;
        }
    }
    return NULL;
}

/* ---- deadline and stop ---- */

/* Ends an attempt that nothing was started for; false, and it is running, if something was. */
static bool end_waiting(struct executor_pool *pool, struct attempt *attempt)
{
    if (!attempt->admitted) {
        attempt_queue_remove(&pool->queue, attempt);
    } else if (pool->kind->withdraw != NULL && !pool->kind->withdraw(pool, attempt)) {
        attempt_running(pool, attempt);
        return false;
    }
    attempt_fail(pool, attempt, FAILURE_killed, "it had not started");
    return true;
}

static void timer_due(struct executor_pool *pool, void *owner);

static void force(struct executor_pool *pool, struct attempt *attempt)
{
    attempt->phase = ATTEMPT_PHASE_killed;
    timer_set(pool, &attempt->timer, mono_now().v + POOL_KILL_WAIT_MS, timer_due, attempt);
    pool->kind->kill(pool, attempt); /* may end it */
}

static void ask(struct executor_pool *pool, struct attempt *attempt, const char *why)
{
    attempt->phase = ATTEMPT_PHASE_asked;
    timer_set(pool, &attempt->timer, mono_now().v + pool->set.grace_ms, timer_due, attempt);
    pool->kind->ask(pool, attempt, why);
}

/* When a running attempt has to end. What it shows meanwhile moves this on; the timer is not set anew for
 * each sign of it, but looks again when it is due. */
static int64_t ends_at_ms(const struct attempt *attempt)
{
    const int64_t silent_at_ms = attempt->heard_at_ms + attempt->heartbeat_ms;
    return attempt->heartbeat_ms > 0 && silent_at_ms < attempt->deadline_at_ms
               ? silent_at_ms
               : attempt->deadline_at_ms;
}

static void timer_due(struct executor_pool *pool, void *owner)
{
    struct attempt *attempt = owner;
    const int64_t now_ms = mono_now().v;
    switch (attempt->phase) {
    case ATTEMPT_PHASE_waiting:
        attempt->timed_out = true;
        if (!end_waiting(pool, attempt)) {
            ask(pool, attempt, "deadline");
        }
        break;
    case ATTEMPT_PHASE_running:
        if (now_ms < ends_at_ms(attempt)) {
            timer_set(pool, &attempt->timer, ends_at_ms(attempt), timer_due, attempt);
            break;
        }
        attempt->timed_out = true;
        attempt->silent = now_ms < attempt->deadline_at_ms;
        ask(pool, attempt, "deadline");
        break;
    case ATTEMPT_PHASE_asked:
        force(pool, attempt);
        break;
    case ATTEMPT_PHASE_killed:
        if (pool->kind->forget != NULL) {
            pool->kind->forget(pool, attempt);
        }
        diag_line(DIAG_warn, "executor.left", D_TEXT("turn", attempt->turn.s),
                  D_INT("attempt", attempt->no), D_TEXT("service", pool->set.service.s));
        attempt_fail(pool, attempt, FAILURE_killed,
                     "its processes could not be killed within %d s; they are left behind",
                     POOL_KILL_WAIT_MS / 1000);
        break;
    }
}

void attempt_admit(struct executor_pool *pool, struct attempt *take_attempt)
{
    struct attempt *attempt = take_attempt;
    attempt->next = pool->attempts;
    if (attempt->next != NULL) {
        attempt->next->back = &attempt->next;
    }
    attempt->back = &pool->attempts;
    pool->attempts = attempt;
    attempt_queue_add(&pool->queue, attempt);
    timer_set(pool, &attempt->timer, attempt->deadline_at_ms, timer_due, attempt);
}

void attempt_running(struct executor_pool *pool, struct attempt *attempt)
{
    if (attempt->phase == ATTEMPT_PHASE_waiting) {
        attempt->phase = ATTEMPT_PHASE_running;
        attempt->started_at = wall_now();
        attempt_heard(attempt);
        timer_set(pool, &attempt->timer, ends_at_ms(attempt), timer_due, attempt);
    }
}

void attempt_heard(struct attempt *attempt)
{
    attempt->heard_at_ms = mono_now().v;
}

void attempt_stop(struct executor_pool *pool, struct attempt *attempt,
                  enum executor_stop_reason reason, bool now)
{
    if (!attempt->timed_out && !attempt->stopped) {
        attempt->stopped = true;
        attempt->reason = reason;
    }
    if (attempt->phase == ATTEMPT_PHASE_waiting && end_waiting(pool, attempt)) {
        return;
    }
    if (now && attempt->phase != ATTEMPT_PHASE_killed) {
        force(pool, attempt);
    } else if (attempt->phase == ATTEMPT_PHASE_running) {
        ask(pool, attempt, reason == EXECUTOR_STOP_cancel ? "cancel" : "stop");
    }
}

/* ---- ends ---- */

struct executor_event *event_new(enum executor_event_kind kind, const struct turn_id *turn,
                                 int32_t no, const struct boot_id *boot)
{
    struct executor_event *event = calloc(1, sizeof(*event));
    if (event != NULL) {
        event->kind = kind;
        event->turn = *turn;
        event->attempt = no;
        event->boot = *boot;
    }
    return event;
}

void executor_event_free(struct executor_event *event)
{
    if (event != NULL) {
        free(event->text);
        free(event->end.result);
        free(event->end.message);
        free(event->end.output);
        free(event->end.usage);
        free(event);
    }
}

/* What is reported: deadline and stop of ours go before what the executor said. */
static void judge(const struct attempt *attempt, const struct executor_outcome *outcome,
                  struct executor_end *end, struct buf *message)
{
    end->ok = outcome->ok && !attempt->timed_out;
    end->never_started = attempt->phase == ATTEMPT_PHASE_waiting;
    if (end->ok) {
        end->verdict = outcome->verdict;
        return;
    }
    end->failure = outcome->failure;
    if (attempt->timed_out) {
        const int64_t ms = attempt->silent ? attempt->heartbeat_ms : attempt->deadline_ms;
        end->failure = FAILURE_timeout;
        buf_printf(message,
                   attempt->silent ? "its executor showed no progress for %lld.%03lld s"
                                   : "the deadline of %lld.%03lld s passed",
                   (long long)(ms / 1000), (long long)(ms % 1000));
        buf_add_text(message, end->never_started ? " before it could start" : "");
        if (outcome->hint[0] != '\0') {
            buf_add_text(message, "; before that: ");
            text_add(message, outcome->hint, strlen(outcome->hint), sizeof(outcome->hint));
        }
    } else if (attempt->stopped && !outcome->void_verdict) {
        end->failure = FAILURE_killed;
        end->killed_by_stop = true;
        buf_add_text(message, attempt->reason == EXECUTOR_STOP_cancel ? "ended by a cancel"
                                                                      : "ended by a clean stop");
    } else {
        end->retry_after_ms = outcome->retry_after_ms;
        text_add(message, outcome->message, strlen(outcome->message), EXECUTOR_MESSAGE_MAX);
    }
}

static void unlink_attempt(struct executor_pool *pool, struct attempt *attempt)
{
    timer_clear(&attempt->timer);
    *attempt->back = attempt->next;
    if (attempt->next != NULL) {
        attempt->next->back = attempt->back;
    }
    pool->admitted -= attempt->admitted ? 1 : 0;
}

void attempt_settle(struct executor_pool *pool, struct attempt *attempt,
                    const struct executor_outcome *outcome, const char *object,
                    struct buf *take_output, bool output_truncated)
{
    struct buf message = BUF_INIT;
    struct buf result = BUF_INIT;
    struct buf none = BUF_INIT;
    struct executor_event *event =
        event_new(EXECUTOR_EVENT_end, &attempt->turn, attempt->no, &attempt->boot);
    FAULT_POINT(executor_ended);
    if (event == NULL) {
        abort(); /* an end that is lost would hold its turn for ever: better the worker restarts */
    }
    struct executor_end *end = &event->end;
    judge(attempt, outcome, end, &message);
    if (end->ok) {
        buf_add(&result, object + outcome->object_at, outcome->object_len);
        end->result = buf_take(&result, &end->result_len);
    } else {
        end->message = buf_take(&message, NULL);
    }
    end->output = buf_take(take_output != NULL ? take_output : &none, &end->output_len);
    end->output_truncated = output_truncated;
    end->usage = outcome->usage[0] != '\0' ? strdup(outcome->usage) : NULL;
    end->started_at = attempt->started_at;
    end->ended_at = wall_now();
    if ((end->ok ? end->result : end->message) == NULL || end->output == NULL) {
        abort();
    }
    buf_done(&message);
    buf_done(&result);
    unlink_attempt(pool, attempt);
    attempt_free(attempt);
    event_post(pool, event);
}

void attempt_fail(struct executor_pool *pool, struct attempt *attempt, enum failure failure,
                  const char *format, ...)
{
    struct executor_outcome outcome = {.failure = failure};
    va_list args;
    va_start(args, format);
    vsnprintf(outcome.message, sizeof(outcome.message), format, args);
    va_end(args);
    attempt_settle(pool, attempt, &outcome, NULL, NULL, false);
}

void attempt_progress(struct executor_pool *pool, const struct attempt *attempt, const char *text,
                      size_t len)
{
    if (pool->n_unposted > 0 || mailbox_count(pool->events) > 2 * (size_t)pool->set.parallel) {
        return; /* ends go first; a later progress says more than this one */
    }
    struct executor_event *event =
        event_new(EXECUTOR_EVENT_progress, &attempt->turn, attempt->no, &attempt->boot);
    char *copy = strndup(text, len);
    if (event == NULL || copy == NULL) {
        free(event);
        free(copy);
        return;
    }
    event->text = copy;
    if (!mailbox_post(pool->events, event)) {
        executor_event_free(event);
    }
}
