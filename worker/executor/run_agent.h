/*
 * Kind agent: what it does before and behind a program that kind exec runs (run_exec.c): the prompt, argv,
 * environment and files of an attempt; and the reading of what the agent program prints.
 *
 * Thread: executors, but for agent_open and agent_free.
 */
#ifndef BATON_WORKER_EXECUTOR_RUN_AGENT_H
#define BATON_WORKER_EXECUTOR_RUN_AGENT_H

#include "worker/executor/pool.h"

struct agent_run;

/* Before the pool resolves its command: the program, and the prompts. bad_config. */
baton_code agent_open(struct executor_pool *pool, struct baton_error *err);
void agent_free(struct executor_pool *pool);

/* What launch_start starts instead of the pool's bare command; scratch is there already. */
baton_code agent_prepare(struct executor_pool *pool, const struct attempt *attempt,
                         const struct executor_env *env, const char *scratch,
                         struct launch_plan *ret_plan, struct baton_error *err);

/* NULL: no memory. */
struct agent_run *agent_run_new(struct executor_pool *pool, const struct attempt *attempt);
void agent_run_free(struct agent_run *run);
/* A piece of the program's standard output. attempt: who is told of progress; NULL: nobody. */
void agent_run_feed(struct agent_run *run, struct executor_pool *pool,
                    const struct attempt *attempt, const char *bytes, size_t len);
/* A piece of its standard error. */
void agent_run_feed_error(struct agent_run *run, const char *bytes, size_t len);
/* Its standard output is over. Appends the object that kind exec would have on descriptor 3. */
void agent_run_end(struct agent_run *run, const struct executor_exit *exit,
                   const struct output *error, struct buf *object);
/* What the attempt took, as the program told it. After agent_run_end. */
void agent_run_usage(const struct agent_run *run, char usage[USAGE_TEXT_MAX + 1]);
/* The session that it was to go on in is gone: it shall begin anew. After agent_run_end. */
bool agent_run_begin_anew(const struct agent_run *run);
/* What the agent said to people, if it said anything; else NULL. */
const struct output *agent_run_said(const struct agent_run *run);
/* The newest line of standard error that tells of a refusal; "" if there is none. */
const char *agent_run_hint(const struct agent_run *run);

#endif
