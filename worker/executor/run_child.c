/*
 * Kind child: long-lived processes that are given turns, one JSON object a line
 * (worker/EXECUTOR.md).
 *
 * A group is a credential profile: its children share an environment, no two profiles share a
 * child. Attempts wait in their group until a child has room; children are started as they are
 * needed and start again, with a growing pause, when they die.
 *
 * In: attempt.c, by kind_child. Out: child_wire.c (lines), launch.c, output.c, result.c.
 */
#include "worker/executor/run_child.h"

#include "common/base/backoff.h"
#include "common/base/diag.h"
#include "common/base/limits.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIVED_MS 10000 /* a child that dies younger, without a result, makes the next one wait */
#define DEAF_MS                                                                                    \
    1000             /* between the end of its output and its own: it is about to exit, or broken  \
                      */
#define EXIT_MS 5000 /* from the end of its standard input to TERM, and from TERM to KILL */

/* ---- groups and children ---- */

static struct child_group *group_of(struct executor_pool *pool, const struct plain_id *profile)
{
    struct child_state *state = pool->state;
    for (struct child_group *at = state->groups; at != NULL; at = at->next) {
        if (strcmp(at->profile.s, profile->s) == 0) {
            return at;
        }
    }
    struct child_group *group = calloc(1, sizeof(*group));
    if (group != NULL) {
        group->profile = *profile;
        attempt_queue_init(&group->queue);
        group->next = state->groups;
        state->groups = group;
    }
    return group;
}

static void log_line(void *arg, const char *line, size_t len)
{
    const struct child_run *run = arg;
    diag_line(DIAG_debug, "executor.stderr", D_TEXT("profile", run->group->profile.s),
              D_INT("turns", run->n_slots), D_BYTES("line", line, len));
}

static void unlink_slot(struct child_run *run, struct child_slot *slot)
{
    for (struct child_slot **at = &run->slots; *at != NULL; at = &(*at)->next) {
        if (*at == slot) {
            *at = slot->next;
            run->n_slots--;
            break;
        }
    }
    slot->attempt->work = NULL;
    free(slot);
}

/* What a child printed on standard error helps to understand why its turns ended. */
static void end_slot(struct executor_pool *pool, struct child_run *run, struct child_slot *slot,
                     const struct executor_outcome *outcome, const char *object)
{
    struct attempt *attempt = slot->attempt;
    struct buf text = BUF_INIT;
    bool truncated = false;
    if (!outcome->ok) {
        output_text(NULL, &run->error_text, &text, &truncated);
    }
    if (run->in_sent <= slot->sent_from) {
        attempt->phase = ATTEMPT_PHASE_waiting; /* no byte of its line has left */
    }
    unlink_slot(run, slot);
    attempt_settle(pool, attempt, outcome, object, &text, truncated);
    buf_done(&text);
}

static void fail_slots(struct executor_pool *pool, struct child_run *run, enum failure failure,
                       const char *message)
{
    struct executor_outcome outcome = {.failure = failure};
    snprintf(outcome.message, sizeof(outcome.message), "%s", message);
    while (run->slots != NULL) {
        end_slot(pool, run, run->slots, &outcome, NULL);
    }
}

static void fail_waiting(struct executor_pool *pool, struct child_group *group,
                         enum failure failure, const char *message)
{
    for (struct attempt *attempt; (attempt = attempt_queue_take(&group->queue)) != NULL;) {
        attempt_fail(pool, attempt, failure, "%s", message);
    }
}

static void dispatch(struct executor_pool *pool, struct child_group *group);

static void group_due(struct executor_pool *pool, void *owner)
{
    dispatch(pool, owner);
}

/* ---- the end of a child ---- */

static void child_due(struct executor_pool *pool, void *owner)
{
    struct child_run *run = owner;
    int64_t now_ms = mono_now().v;
    switch (run->phase) {
    case CHILD_PHASE_hello:
        child_run_end(pool, run, FAILURE_unavailable, "the child did not say hello in time");
        break;
    case CHILD_PHASE_ready:
        break;
    case CHILD_PHASE_deaf:
        child_run_end(pool, run, FAILURE_crash, "the child closed its standard output");
        break;
    case CHILD_PHASE_leaving:
        run->phase = CHILD_PHASE_asked;
        timer_set(pool, &run->timer, now_ms + EXIT_MS, child_due, run);
        child_term(&run->child);
        break;
    case CHILD_PHASE_asked:
        run->phase = CHILD_PHASE_killed;
        timer_set(pool, &run->timer, now_ms + POOL_KILL_WAIT_MS, child_due, run);
        child_kill(&run->child);
        break;
    case CHILD_PHASE_killed:
        diag_line(DIAG_warn, "executor.left", D_TEXT("service", pool->set.service.s),
                  D_TEXT("profile", run->group->profile.s));
        run->given_up = true; /* the pool may close without it; it is reaped if it ever ends */
        break;
    }
}

void child_run_end(struct executor_pool *pool, struct child_run *run, enum failure failure,
                   const char *message)
{
    if (run->phase == CHILD_PHASE_killed) {
        return;
    }
    run->phase = CHILD_PHASE_killed;
    timer_set(pool, &run->timer, mono_now().v + POOL_KILL_WAIT_MS, child_due, run);
    child_kill(&run->child);
    source_close(pool, &run->in);
    source_close(pool, &run->out);
    fail_slots(pool, run, failure, message);
    if (!run->greeted) { /* whoever waits for it would wait for the next one that cannot speak */
        fail_waiting(pool, run->group, failure, message);
    }
}

/* Lets an idle child go: the end of its standard input, then TERM, then KILL. */
static void retire(struct executor_pool *pool, struct child_run *run)
{
    if (run->phase == CHILD_PHASE_hello || run->phase == CHILD_PHASE_ready) {
        run->phase = CHILD_PHASE_leaving;
        source_close(pool, &run->in);
        timer_set(pool, &run->timer, mono_now().v + EXIT_MS, child_due, run);
    }
}

static void free_run(struct executor_pool *pool, struct child_run *run)
{
    for (struct child_run **at = &run->group->children; *at != NULL; at = &(*at)->next) {
        if (*at == run) {
            *at = run->next;
            break;
        }
    }
    timer_clear(&run->timer);
    source_close(pool, &run->pid);
    source_close(pool, &run->in);
    source_close(pool, &run->out);
    source_close(pool, &run->error);
    run->child.pidfd = -1; /* was the source's */
    child_done(&run->child);
    output_done(&run->error_text);
    line_reader_done(&run->frames);
    buf_done(&run->in_waiting);
    executor_env_free(run->env);
    pool_remove(pool, run->scratch);
    pool_bury(pool, run);
}

static void note_death(struct executor_pool *pool, struct child_run *run)
{
    static const struct backoff pause = {
        .first_ms = 100, .factor = 2, .max_ms = 30000, .jitter = 0.2};
    struct child_group *group = run->group;
    bool young = mono_now().v - run->born_ms < LIVED_MS && run->n_results == 0;
    if (run->phase == CHILD_PHASE_leaving || run->phase == CHILD_PHASE_asked) {
        return; /* it was told to */
    }
    group->deaths = young ? group->deaths + 1 : 0;
    group->not_before_ms =
        group->deaths > 0 ? mono_now().v + backoff_delay_ms(&pause, group->deaths, 0) : 0;
    diag_line(DIAG_debug, "executor.child_died", D_TEXT("service", pool->set.service.s),
              D_TEXT("profile", group->profile.s), D_INT("deaths", group->deaths));
}

static void describe(const struct executor_pool *pool, const struct child_status *status,
                     char *text, size_t size)
{
    switch (status->end) {
    case CHILD_END_exited:
        snprintf(text, size, "the child ended with exit status %d", status->value);
        break;
    case CHILD_END_signaled:
        snprintf(text, size, "the child was ended by signal %d", status->value);
        break;
    case CHILD_END_exec_failed:
        snprintf(text, size, "cannot execute %s: %s", pool->argv[0], strerror(status->value));
        break;
    case CHILD_END_guard_lost:
        snprintf(text, size, "the child's baton-guard was ended by signal %d", status->value);
        break;
    }
}

static void pid_ready(struct executor_pool *pool, void *owner)
{
    struct child_run *run = owner;
    struct child_group *group = run->group;
    struct child_status status;
    char message[EXECUTOR_MESSAGE_MAX];
    if (!child_reap(&run->child, &status)) {
        return;
    }
    if (status.end == CHILD_END_guard_lost) {
        launch_sweep(run->scratch);
    }
    if (run->out.fd >= 0) {
        child_frames_read(pool, run, true); /* results that it wrote before it ended */
    }
    child_error_read(run);
    output_end(&run->error_text);
    describe(pool, &status, message, sizeof(message));
    output_add_last_line(&run->error_text, message, sizeof(message));
    bool killed = status.end == CHILD_END_guard_lost ||
                  (status.end == CHILD_END_signaled && status.value == SIGKILL);
    enum failure failure = status.end == CHILD_END_exec_failed ? FAILURE_unavailable
                           : killed                            ? FAILURE_killed
                                                               : FAILURE_crash;
    note_death(pool, run);
    fail_slots(pool, run, failure, message);
    if (!run->greeted) {
        fail_waiting(pool, group, failure, message);
    }
    free_run(pool, run);
    dispatch(pool, group);
}

/* ---- start ---- */

static void error_ready(struct executor_pool *pool, void *owner)
{
    struct child_run *run = owner;
    if (!child_error_read(run)) {
        source_close(pool, &run->error);
    }
}

static void out_ready(struct executor_pool *pool, void *owner)
{
    child_frames_read(pool, owner, false);
}

static void in_ready(struct executor_pool *pool, void *owner)
{
    child_in_flush(pool, owner);
}

static void start_child(struct executor_pool *pool, struct child_group *group,
                        struct executor_env *env)
{
    struct launch launch;
    struct baton_error err;
    struct child_run *run = calloc(1, sizeof(*run));
    baton_code rc = run == NULL ? baton_fail(&err, BATON_E_no_memory, "no memory for a child")
                                : launch_start(pool, NULL, &group->profile, env, &launch, &err);
    if (rc != BATON_OK) {
        free(run);
        fail_waiting(pool, group, FAILURE_unavailable, err.text);
        return;
    }
    *run = (struct child_run){.group = group,
                              .next = group->children,
                              .child = launch.child,
                              .phase = CHILD_PHASE_hello,
                              .parallel = 1,
                              .in_waiting = BUF_INIT,
                              .scratch = launch.scratch,
                              .env = executor_env_share(env),
                              .born_ms = mono_now().v};
    group->children = run;
    line_reader_init(&run->frames, LIMIT_CHILD_FRAME);
    output_init(&run->error_text, executor_env_mask(run->env), OUTPUT_ERROR_HEAD, OUTPUT_ERROR_TAIL,
                diag_wants(DIAG_debug) ? log_line : NULL, run);
    bool ok = source_watch(pool, &run->pid, launch.child.pidfd, pid_ready, run);
    ok = source_watch(pool, &run->out, launch.out, out_ready, run) && ok;
    ok = source_watch(pool, &run->error, launch.error, error_ready, run) && ok;
    ok = source_watch_write(pool, &run->in, launch.in, in_ready, run) && ok;
    if (!ok) {
        free_run(pool, run); /* closing the lifeline kills the tree */
        fail_waiting(pool, group, FAILURE_unavailable, "no memory to watch a child");
        return;
    }
    timer_set(pool, &run->timer, mono_now().v + pool->set.hello_ms, child_due, run);
    child_say_hello(pool, run);
}

/* Children of all groups that are not on their way out; the idle one of another group, if any. */
static int count_children(const struct child_state *state, const struct child_group *group,
                          struct child_run **ret_idle)
{
    int n = 0;
    *ret_idle = NULL;
    for (const struct child_group *g = state->groups; g != NULL; g = g->next) {
        for (struct child_run *run = g->children; run != NULL; run = run->next) {
            bool alive = run->phase == CHILD_PHASE_hello || run->phase == CHILD_PHASE_ready;
            n += alive ? 1 : 0;
            if (alive && g != group && run->n_slots == 0) {
                *ret_idle = run;
            }
        }
    }
    return n;
}

/* A child of the group with room and this environment; lets idle ones with an older one go. */
static struct child_run *child_with_room(struct executor_pool *pool, struct child_group *group,
                                         const struct executor_env *env, int *ret_coming)
{
    struct child_run *best = NULL;
    *ret_coming = 0;
    for (struct child_run *run = group->children; run != NULL; run = run->next) {
        bool alive = run->phase == CHILD_PHASE_hello || run->phase == CHILD_PHASE_ready;
        if (alive && !executor_env_equal(run->env, env)) {
            if (run->n_slots == 0) {
                retire(pool, run);
            }
        } else if (run->phase == CHILD_PHASE_hello) {
            ++*ret_coming;
        } else if (run->phase == CHILD_PHASE_ready && run->n_slots < run->parallel &&
                   (best == NULL || run->n_slots < best->n_slots)) {
            best = run;
        }
    }
    return best;
}

/* Gives waiting attempts to children with room, and starts children for the rest. */
static void dispatch(struct executor_pool *pool, struct child_group *group)
{
    while (group->queue.first != NULL && !pool->closing) {
        struct attempt *attempt = group->queue.first;
        struct child_run *idle;
        int coming;
        struct child_run *run = child_with_room(pool, group, attempt->env, &coming);
        if (run != NULL) {
            attempt_queue_take(&group->queue);
            child_give(pool, run, attempt);
            continue;
        }
        int waiting = 0;
        for (struct attempt *at = attempt; at != NULL; at = at->queue_next) {
            waiting++;
        }
        if (coming > 0 && (group->width == 0 || coming * group->width >= waiting)) {
            return; /* those on their way will do, or their hello says more: it comes back here */
        }
        int children = count_children(pool->state, group, &idle);
        if (children >= pool->set.parallel) {
            if (idle == NULL) {
                return; /* a result or a death comes back here */
            }
            retire(pool, idle);
        }
        if (group->not_before_ms > mono_now().v) {
            timer_set(pool, &group->timer, group->not_before_ms, group_due, group);
            return;
        }
        start_child(pool, group, attempt->env);
    }
}

/* ---- called by child_wire.c ---- */

void child_run_deaf(struct executor_pool *pool, struct child_run *run)
{
    source_close(pool, &run->out);
    if (run->phase == CHILD_PHASE_hello || run->phase == CHILD_PHASE_ready) {
        run->phase = CHILD_PHASE_deaf;
        timer_set(pool, &run->timer, mono_now().v + DEAF_MS, child_due, run);
    }
}

void child_run_ready(struct executor_pool *pool, struct child_run *run, int parallel)
{
    run->phase = CHILD_PHASE_ready;
    run->greeted = true;
    run->parallel = parallel;
    run->group->width = parallel;
    timer_clear(&run->timer);
    dispatch(pool, run->group);
}

void child_run_result(struct executor_pool *pool, struct child_run *run, struct child_slot *slot,
                      const char *object, size_t len)
{
    struct executor_outcome outcome;
    struct executor_exit exit = {.value = 0};
    executor_result_check(slot->attempt->role, slot->attempt->verdicts, object, len,
                          len > LIMIT_RESULT, &exit, &outcome);
    run->n_results++;
    run->group->deaths = 0;
    end_slot(pool, run, slot, &outcome, object);
    dispatch(pool, run->group);
}

/* ---- kind ---- */

static baton_code kind_open(struct executor_pool *pool, struct baton_error *err)
{
    pool->state = calloc(1, sizeof(struct child_state));
    return pool->state != NULL ? BATON_OK
                               : baton_fail(err, BATON_E_no_memory, "no memory for children");
}

static void kind_start(struct executor_pool *pool, struct attempt *attempt)
{
    struct child_group *group = group_of(pool, &attempt->profile);
    if (group == NULL) {
        attempt_fail(pool, attempt, FAILURE_unavailable, "no memory for a child");
        return;
    }
    attempt_queue_add(&group->queue, attempt);
    dispatch(pool, group);
}

static void kind_ask(struct executor_pool *pool, struct attempt *attempt, const char *why)
{
    struct child_slot *slot = attempt->work;
    child_cancel(pool, slot->run, slot, why);
}

/* A turn that does not end can only be ended with its child; the others on it are lost with it. */
static void kind_kill(struct executor_pool *pool, struct attempt *attempt)
{
    struct child_slot *slot = attempt->work;
    child_run_end(pool, slot->run, FAILURE_killed,
                  "its child was killed, because another turn on it did not end");
}

static bool kind_withdraw(struct executor_pool *pool, struct attempt *attempt)
{
    struct child_group *group = group_of(pool, &attempt->profile);
    attempt_queue_remove(&group->queue, attempt);
    return true;
}

static void kind_close(struct executor_pool *pool)
{
    struct child_state *state = pool->state;
    for (struct child_group *group = state->groups; group != NULL; group = group->next) {
        timer_clear(&group->timer);
        for (struct child_run *run = group->children; run != NULL; run = run->next) {
            child_run_end(pool, run, FAILURE_killed, "the pool closes");
        }
    }
}

static bool kind_empty(struct executor_pool *pool)
{
    struct child_state *state = pool->state;
    for (struct child_group *group = state->groups; group != NULL; group = group->next) {
        for (struct child_run *run = group->children; run != NULL; run = run->next) {
            if (!run->given_up) {
                return false;
            }
        }
    }
    return true;
}

static void kind_free(struct executor_pool *pool)
{
    struct child_state *state = pool->state;
    while (state != NULL && state->groups != NULL) {
        struct child_group *group = state->groups;
        state->groups = group->next;
        while (group->children != NULL) {
            free_run(pool, group->children);
        }
        free(group);
    }
    free(state);
}

const struct kind kind_child = {.word = "child",
                                .open = kind_open,
                                .start = kind_start,
                                .ask = kind_ask,
                                .kill = kind_kill,
                                .withdraw = kind_withdraw,
                                .close = kind_close,
                                .empty = kind_empty,
                                .free = kind_free};
