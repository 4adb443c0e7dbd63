/*
 * Kind exec: one program for each attempt, its result on descriptor 3 (worker/EXECUTOR.md). Kind agent
 * is the same around an agent program, whose result is made of what it prints (run_agent.c).
 * In: attempt.c, by kind_exec, kind_agent. Out: launch.c (start), output.c, result.c (what it means).
 */
#include "common/base/diag.h"
#include "common/base/limits.h"
#include "worker/executor/run_agent.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECES_AT_ONCE 4 /* of one pipe in one round: a flood must not starve others */
/* Read after the tree is dead: whoever still writes then is outside of it and was handed the
 * descriptor. */
#define REST_MAX (1024 * 1024)

struct exec_run {
    struct executor_pool *pool;
    struct attempt *attempt; /* NULL: given up, only to be reaped */
    struct child child;
    struct source pid;
    struct source out;
    struct source error;
    struct source result;
    struct output text;
    struct output error_text;
    struct agent_run *agent; /* NULL: kind exec */
    struct buf object;       /* at most LIMIT_RESULT */
    bool overflow;           /* there was more of it */
    char *scratch;
    struct executor_env *env; /* its mask is in use */
    struct turn_id turn;      /* for log lines */
    int32_t no;
};

static void log_line(void *arg, const char *line, size_t len)
{
    const struct exec_run *run = arg;
    diag_line(DIAG_debug, "executor.stderr", D_TEXT("turn", run->turn.s), D_INT("attempt", run->no),
              D_BYTES("line", line, len));
}

/* Reads what is there, at most max bytes. False at the end of the stream. */
static bool read_some(struct exec_run *run, struct source *source, size_t max,
                      void (*take)(struct exec_run *, const char *, size_t))
{
    char *piece = run->pool->piece;
    while (max > 0) {
        ssize_t n = read(source->fd, piece, max < POOL_PIECE ? max : POOL_PIECE);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno == EAGAIN) {
            return true;
        }
        if (n <= 0) {
            return false;
        }
        take(run, piece, (size_t)n);
        max -= (size_t)n;
    }
    return true;
}

static void take_out(struct exec_run *run, const char *bytes, size_t len)
{
    output_feed(&run->text, bytes, len);
    if (run->attempt != NULL) {
        attempt_heard(run->attempt);
    }
    if (run->agent != NULL) {
        agent_run_feed(run->agent, run->pool, run->attempt, bytes, len);
    }
}

static void take_error(struct exec_run *run, const char *bytes, size_t len)
{
    output_feed(&run->error_text, bytes, len);
    if (run->agent != NULL) { /* it may say there that it waits and waits: no progress */
        agent_run_feed_error(run->agent, bytes, len);
    } else if (run->attempt != NULL) {
        attempt_heard(run->attempt);
    }
}

static void take_result(struct exec_run *run, const char *bytes, size_t len)
{
    size_t room = LIMIT_RESULT - run->object.len;
    run->overflow = run->overflow || len > room;
    buf_add(&run->object, bytes, len < room ? len : room);
}

static void out_ready(struct executor_pool *pool, void *owner)
{
    struct exec_run *run = owner;
    if (!read_some(run, &run->out, PIECES_AT_ONCE * POOL_PIECE, take_out)) {
        source_close(pool, &run->out);
    }
}

static void error_ready(struct executor_pool *pool, void *owner)
{
    struct exec_run *run = owner;
    if (!read_some(run, &run->error, PIECES_AT_ONCE * POOL_PIECE, take_error)) {
        source_close(pool, &run->error);
    }
}

static void result_ready(struct executor_pool *pool, void *owner)
{
    struct exec_run *run = owner;
    if (!read_some(run, &run->result, PIECES_AT_ONCE * POOL_PIECE, take_result)) {
        source_close(pool, &run->result);
    }
}

static void read_rest(struct exec_run *run, struct source *source,
                      void (*take)(struct exec_run *, const char *, size_t))
{
    if (source->fd >= 0) {
        read_some(run, source, REST_MAX, take);
    }
    source_close(run->pool, source);
}

/* The outcome of an end, before deadline and stop are considered. */
static void judge(struct exec_run *run, const struct child_status *status, struct buf *object,
                  struct executor_outcome *outcome)
{
    struct executor_exit exit = {.signaled = status->end == CHILD_END_signaled,
                                 .value = status->value,
                                 .agents = run->agent != NULL};
    memset(outcome, 0, sizeof(*outcome));
    switch (status->end) {
    case CHILD_END_exec_failed:
        run->attempt->phase = ATTEMPT_PHASE_waiting; /* the program never ran */
        outcome->failure = FAILURE_unavailable;
        snprintf(outcome->message, sizeof(outcome->message), "cannot execute %s: %s",
                 run->pool->argv[0], strerror(status->value));
        return;
    case CHILD_END_guard_lost:
        outcome->failure = FAILURE_killed;
        snprintf(outcome->message, sizeof(outcome->message),
                 "its baton-guard was ended by signal %d, and its processes with it",
                 status->value);
        return;
    case CHILD_END_exited:
    case CHILD_END_signaled:
        if (run->agent != NULL) {
            agent_run_end(run->agent, &exit, &run->error_text, object);
        } else {
            mask_add(executor_env_mask(run->env), run->object.data, run->object.len, object);
        }
        if (!buf_ok(object) || !buf_ok(&run->object)) {
            buf_clear(object);
            run->overflow = true;
        }
        executor_result_check(run->attempt->role, run->attempt->verdicts, object->data, object->len,
                              run->overflow, &exit, outcome);
        if (run->agent != NULL) {
            agent_run_usage(run->agent, outcome->usage);
            snprintf(outcome->hint, sizeof(outcome->hint), "%s", agent_run_hint(run->agent));
        }
        return;
    }
}

static void free_run(struct executor_pool *pool, struct exec_run *run)
{
    source_close(pool, &run->pid);
    source_close(pool, &run->out);
    source_close(pool, &run->error);
    source_close(pool, &run->result);
    run->child.pidfd = -1; /* was the source's */
    child_done(&run->child);
    output_done(&run->text);
    output_done(&run->error_text);
    if (run->object.data != NULL) {
        explicit_bzero(run->object.data, run->object.cap);
    }
    buf_done(&run->object);
    agent_run_free(run->agent);
    executor_env_free(run->env);
    pool_remove(pool, run->scratch);
    pool_bury(pool, run);
}

/* What was seen of a place that had to stay as it is goes before what the executor says. */
static void judge_place(const struct exec_run *run, enum child_look look,
                        struct executor_outcome *outcome)
{
    const char *place = run->attempt->place;
    if (look == CHILD_LOOK_changed) {
        outcome->void_verdict = outcome->ok;
        outcome->ok = outcome->by_exit = false;
        outcome->failure = FAILURE_readonly_violated;
        outcome->retry_after_ms = 0;
        snprintf(outcome->message, sizeof(outcome->message),
                 "the attempt had to leave %s as it is, and something below it has changed", place);
    } else if (look == CHILD_LOOK_unlooked && outcome->ok) {
        outcome->ok = false; /* mostly by the kill of a stop or deadline, which goes before this */
        outcome->failure = FAILURE_crash;
        snprintf(outcome->message, sizeof(outcome->message),
                 "the attempt had to leave %s as it is, and whether it did could not be seen",
                 place);
    }
}

/* True, and the attempt goes on: its agent's session is gone, and it is to begin without one. */
static bool settle(struct exec_run *run, const struct child_status *status)
{
    struct executor_outcome outcome;
    struct buf object = BUF_INIT;
    struct buf text = BUF_INIT;
    bool truncated;
    output_end(&run->text);
    output_end(&run->error_text);
    judge(run, status, &object, &outcome);
    judge_place(run, status->look, &outcome);
    if (status->look == CHILD_LOOK_same && run->agent != NULL && agent_run_begin_anew(run->agent) &&
        run->attempt->phase == ATTEMPT_PHASE_running) {
        buf_done(&object);
        return true;
    }
    const struct output *said = run->agent != NULL ? agent_run_said(run->agent) : NULL;
    output_text(said != NULL ? said : &run->text, &run->error_text, &text, &truncated);
    if (outcome.by_exit) {
        output_add_last_line(&run->error_text, outcome.message, sizeof(outcome.message));
    }
    if (status->left) {
        diag_line(DIAG_warn, "executor.left", D_TEXT("turn", run->turn.s),
                  D_INT("attempt", run->no), D_TEXT("service", run->pool->set.service.s));
    }
    attempt_settle(run->pool, run->attempt, &outcome, object.data, &text, truncated);
    buf_done(&object);
    buf_done(&text);
    return false;
}

static void begin_anew(struct executor_pool *pool, struct attempt *attempt)
{
    diag_line(DIAG_info, "executor.session_gone", D_TEXT("turn", attempt->turn.s),
              D_INT("attempt", attempt->no), D_TEXT("service", pool->set.service.s));
    free(attempt->session);
    attempt->session = NULL;
    attempt->session_usage = usage_none();
    attempt_heard(attempt);
    pool->kind->start(pool, attempt);
}

/* The guard has ended: nothing of the tree is left, what stands in the pipes is all there is. */
static void pid_ready(struct executor_pool *pool, void *owner)
{
    struct exec_run *run = owner;
    struct child_status status;
    if (!child_reap(&run->child, &status)) {
        return;
    }
    if (status.end == CHILD_END_guard_lost) {
        launch_sweep(run->scratch);
        status.left = false;
    }
    read_rest(run, &run->out, take_out);
    read_rest(run, &run->error, take_error);
    read_rest(run, &run->result, take_result);
    struct attempt *again = NULL;
    if (run->attempt != NULL && settle(run, &status)) {
        again = run->attempt;
    }
    free_run(pool, run);
    if (again != NULL) {
        begin_anew(pool, again);
    }
}

static bool watch_all(struct executor_pool *pool, struct exec_run *run, struct launch *launch)
{
    bool ok = source_watch(pool, &run->pid, launch->child.pidfd, pid_ready, run);
    ok = source_watch(pool, &run->out, launch->out, out_ready, run) && ok;
    ok = source_watch(pool, &run->error, launch->error, error_ready, run) && ok;
    run->result = SOURCE_NONE;
    return (launch->result < 0 ||
            source_watch(pool, &run->result, launch->result, result_ready, run)) &&
           ok;
}

static void exec_start(struct executor_pool *pool, struct attempt *attempt)
{
    struct launch launch;
    struct baton_error err;
    struct exec_run *run = calloc(1, sizeof(*run));
    const bool is_agent = pool->kind == &kind_agent;
    struct agent_run *agent = is_agent && run != NULL ? agent_run_new(pool, attempt) : NULL;
    baton_code rc = run == NULL || (is_agent && agent == NULL)
                        ? baton_fail(&err, BATON_E_no_memory, "no memory for an executor")
                        : launch_start(pool, attempt, NULL, attempt->env, &launch, &err);
    if (rc != BATON_OK) {
        free(run);
        agent_run_free(agent);
        attempt_fail(pool, attempt,
                     rc == BATON_E_place_missing ? FAILURE_bad_request : FAILURE_unavailable, "%s",
                     err.text);
        return;
    }
    *run = (struct exec_run){.pool = pool,
                             .attempt = attempt,
                             .child = launch.child,
                             .agent = agent,
                             .object = BUF_INIT,
                             .scratch = launch.scratch,
                             .env = executor_env_share(attempt->env),
                             .turn = attempt->turn,
                             .no = attempt->no};
    const struct mask *mask = executor_env_mask(run->env);
    output_init(&run->text, mask, OUTPUT_HEAD, OUTPUT_TAIL, NULL, NULL);
    output_init(&run->error_text, mask, OUTPUT_ERROR_HEAD, OUTPUT_ERROR_TAIL,
                diag_wants(DIAG_debug) ? log_line : NULL, run);
    attempt->work = run;
    attempt_running(pool, attempt);
    if (!watch_all(pool, run, &launch)) {
        free_run(pool, run); /* closing the lifeline kills the tree */
        attempt_fail(pool, attempt, FAILURE_unavailable,
                     "no memory to watch an executor; it was ended at once");
    }
}

static void exec_ask(struct executor_pool *pool, struct attempt *attempt, const char *why)
{
    (void)pool;
    (void)why;
    struct exec_run *run = attempt->work;
    child_term(&run->child);
}

static void exec_kill(struct executor_pool *pool, struct attempt *attempt)
{
    (void)pool;
    struct exec_run *run = attempt->work;
    child_kill(&run->child);
}

static void exec_forget(struct executor_pool *pool, struct attempt *attempt)
{
    (void)pool;
    struct exec_run *run = attempt->work;
    run->attempt = NULL;
}

const struct kind kind_exec = {
    .word = "exec", .start = exec_start, .ask = exec_ask, .kill = exec_kill, .forget = exec_forget};

const struct kind kind_agent = {.word = "agent",
                                .start = exec_start,
                                .prepare = agent_prepare,
                                .ask = exec_ask,
                                .kill = exec_kill,
                                .forget = exec_forget,
                                .free = agent_free};
