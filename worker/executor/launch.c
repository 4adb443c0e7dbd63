/*
 * Starts the configured command under its guard: argv, environment, scratch directory, pipes.
 * In: run_exec, run_child. Out: common/process/child.c, environment, scratch, run_agent (plans).
 */
#include "common/base/fault.h"
#include "common/base/text.h"
#include "common/process/program.h"
#include "common/process/scratch.h"
#include "common/process/sweep.h"
#include "worker/executor/pool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- programs ---- */

static baton_code resolve_one(char **word, bool required, struct baton_error *err)
{
    char *path = program_find(*word);
    if (path != NULL) {
        free(*word);
        *word = path;
        return BATON_OK;
    }
    return !required
               ? BATON_OK
               : baton_fail(err, BATON_E_bad_config,
                            "the executor's program %s is not an executable file%s%s",
                            text_quote_of(*word).s,
                            strchr(*word, '/') == NULL ? " in " EXECUTOR_PATH
                                                         "; one beside the configuration is ./NAME"
                                                       : "",
                            strchr(*word, '/') == NULL || (*word)[0] == '/'
                                ? ""
                                : ": give an absolute path");
}

baton_code launch_resolve(struct executor_pool *pool, struct baton_error *err)
{
    const struct executor_settings *set = &pool->set;
    if (set->n_command == 0) {
        return baton_fail(err, BATON_E_bad_config, "the executor of service %s has no command",
                          set->service.s);
    }
    pool->argv = calloc(set->n_prefix + set->n_command + 1, sizeof(*pool->argv));
    for (size_t i = 0; pool->argv != NULL && i < set->n_prefix + set->n_command; i++) {
        const char *word = i < set->n_prefix ? set->prefix[i] : set->command[i - set->n_prefix];
        pool->argv[i] = strdup(word);
        if (pool->argv[i] == NULL) {
            return baton_fail(err, BATON_E_no_memory, "no memory for the executor's command");
        }
    }
    if (pool->argv == NULL) {
        return baton_fail(err, BATON_E_no_memory, "no memory for the executor's command");
    }
    baton_code rc = resolve_one(&pool->argv[0], true, err);
    if (rc == BATON_OK && set->n_prefix > 0) {
        /* A prefix may show the command another root: there it need not be found from here. */
        rc = resolve_one(&pool->argv[set->n_prefix], false, err);
    }
    return rc;
}

/* ---- environment ---- */

static void set_attempt(const struct attempt *attempt, const char *cwd, struct env_block *block)
{
    char handoff[sizeof(attempt->turn.s) + 16];
    snprintf(handoff, sizeof(handoff), "%s.%d", attempt->turn.s, (int)attempt->no);
    env_block_set(block, "BATON_ROLE", role_word(attempt->role));
    env_block_set(block, "BATON_TURN_ID", attempt->turn.s);
    env_block_set_int(block, "BATON_ATTEMPT", attempt->no);
    env_block_set(block, "BATON_HANDOFF", handoff);
    env_block_set(block, "BATON_TASK_ID", attempt->task.s);
    env_block_set_int(block, "BATON_TASK_REV", attempt->task_rev);
    env_block_set(block, "BATON_RUN_ID", attempt->run.s);
    env_block_set(block, "BATON_INTENT", attempt->intent.s);
    env_block_set(block, "BATON_PLACE", cwd);
    env_block_set(block, "BATON_READ_ONLY", attempt->read_only ? "1" : "0");
    if (attempt->traceparent[0] != '\0') {
        env_block_set(block, "TRACEPARENT", attempt->traceparent);
    }
}

/* ---- start ---- */

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

void launch_plan_done(struct launch_plan *plan)
{
    agent_setup_done(&plan->setup);
    buf_done(&plan->in);
}

/* The pool's command, and what the plan puts behind it; the words stay theirs. NULL: no memory. */
static const char **argv_of(const struct executor_pool *pool, const struct launch_plan *plan)
{
    size_t n = 0;
    size_t more = plan != NULL ? plan->setup.argv.count : 0;
    while (pool->argv[n] != NULL) {
        n++;
    }
    const char **argv = calloc(n + more + 1, sizeof(*argv));
    for (size_t i = 0; argv != NULL && i < n + more; i++) {
        argv[i] = i < n ? pool->argv[i] : plan->setup.argv.list[i - n];
    }
    return argv;
}

static void set_planned(const struct launch_plan *plan, struct env_block *block)
{
    for (size_t i = 0; i < plan->setup.env.count; i++) {
        char *name = strdup(plan->setup.env.list[i]);
        char *equals = name != NULL ? strchr(name, '=') : NULL;
        if (equals == NULL) {
            block->broken = true;
        } else {
            *equals = '\0';
            env_block_set(block, name, equals + 1);
        }
        free(name);
    }
    if (plan->home != NULL) {
        env_block_set(block, "HOME", plan->home);
    }
}

/* Our ends into launch, the child's into fds. */
static bool make_pipes(const struct attempt *attempt, const struct launch_plan *plan,
                       struct launch *launch, int fds[4])
{
    if (plan != NULL) {
        fds[0] = child_bytes(plan->in.data, plan->in.len);
    } else if (attempt != NULL) {
        fds[0] = child_bytes(attempt->json, attempt->json_len);
    } else if (!child_pipe(true, &launch->in, &fds[0])) {
        return false;
    }
    return fds[0] >= 0 && child_pipe(false, &launch->out, &fds[1]) &&
           child_pipe(false, &launch->error, &fds[2]) &&
           (attempt == NULL || plan != NULL || child_pipe(false, &launch->result, &fds[3]));
}

static baton_code spawn(struct executor_pool *pool, const struct attempt *attempt,
                        const struct launch_plan *plan, const struct executor_env *env,
                        const int fds[4], struct launch *launch, struct baton_error *err)
{
    struct env_block block = {NULL, 0, 0, false};
    const char **argv = argv_of(pool, plan);
    const char *cwd = attempt != NULL && attempt->place != NULL ? attempt->place : launch->scratch;
    baton_code rc;
    env_block_set_base(&block, pool->set.service.s, pool->worker_mark, pool->set.boot.s,
                       launch->scratch);
    if (attempt != NULL) {
        set_attempt(attempt, cwd, &block);
    } else {
        env_block_set(&block, "BATON_ATTEMPT",
                      "0"); /* the marker; the number comes with each turn */
    }
    if (plan != NULL) {
        set_planned(plan, &block);
    }
    env_block_set_declared(&block, env);
    if (block.broken || argv == NULL) {
        rc = baton_fail(err, BATON_E_service_unavailable, "no memory for an environment");
    } else {
        struct child_spec spec = {.guard = pool->guard,
                                  .argv = argv,
                                  .env = (const char *const *)block.entries,
                                  .cwd = cwd,
                                  .fds = {fds[0], fds[1], fds[2], fds[3]},
                                  .keep_capabilities = pool->set.n_prefix > 0,
                                  .look = attempt != NULL && attempt->read_only &&
                                          attempt->place != NULL &&
                                          (plan == NULL || !plan->may_write)};
        FAULT_POINT(executor_before_start);
        rc = child_spawn(&spec, &launch->child, err);
        FAULT_POINT(executor_after_start);
    }
    env_block_done(&block);
    free(argv);
    return rc;
}

baton_code launch_start(struct executor_pool *pool, const struct attempt *attempt,
                        const struct plain_id *profile, const struct executor_env *env,
                        struct launch *ret_launch, struct baton_error *err)
{
    struct launch launch = {CHILD_NONE, NULL, -1, -1, -1, -1};
    struct launch_plan made = {.home = NULL};
    struct launch_plan *plan = attempt != NULL && pool->kind->prepare != NULL ? &made : NULL;
    int fds[4] = {-1, -1, -1, -1};
    char name[128];
    if (attempt != NULL) {
        snprintf(name, sizeof(name), "%s.%d", attempt->turn.s, (int)attempt->no);
    } else {
        snprintf(name, sizeof(name), "child.%s", profile->s);
    }
    baton_code rc = scratch_new(pool->scratch, name, pool->set.n_prefix > 0, &launch.scratch, err);
    if (rc == BATON_OK && plan != NULL) {
        rc = pool->kind->prepare(pool, attempt, env, launch.scratch, plan, err);
    }
    if (rc == BATON_OK && !make_pipes(attempt, plan, &launch, fds)) {
        rc = baton_fail(err, BATON_E_service_unavailable,
                        "no pipes for an executor: %s (raise the limit of open files)",
                        strerror(errno));
    }
    if (rc == BATON_OK) {
        rc = spawn(pool, attempt, plan, env, fds, &launch, err);
    }
    launch_plan_done(&made);
    for (int i = 0; i < 4; i++) {
        close_fd(&fds[i]);
    }
    if (rc != BATON_OK) {
        close_fd(&launch.in);
        close_fd(&launch.out);
        close_fd(&launch.error);
        close_fd(&launch.result);
        pool_remove(pool, launch.scratch);
        return rc;
    }
    *ret_launch = launch;
    return BATON_OK;
}

void launch_sweep(const char *scratch)
{
    char *mark;
    if (asprintf(&mark, "BATON_SCRATCH=%s", scratch) >= 0) {
        sweep_kill(&(struct sweep_mark){.equals = mark});
        free(mark);
    }
}
