/*
 * The environment of executors: declared values with their mask, and the whole block of one
 * process.
 *
 * In: worker/profiles.c (resolve), launch.c (blocks), run_exec.c, run_child.c, run_agent.c and
 * run_callback.c (mask), deploy/doctor_executors.c (a block as theirs).
 */
#ifndef BATON_WORKER_EXECUTOR_ENVIRONMENT_H
#define BATON_WORKER_EXECUTOR_ENVIRONMENT_H

#include "common/process/program.h"
#include "worker/executor/executor.h"

struct mask;

/* The PATH that executors get and in which programs are looked up; a declared PATH wins for them.
 */
#define EXECUTOR_PATH PROGRAM_PATH

/* Shares it with an attempt, whose end may come after its maker has let go; NULL stays NULL. */
struct executor_env *executor_env_share(struct executor_env *env);
/* Same names and values: a child that was started with one can serve the other. */
bool executor_env_equal(const struct executor_env *a, const struct executor_env *b);
/* SHA-256 of its names and values; env may be NULL. */
void executor_env_digest(const struct executor_env *env, struct digest *ret_digest);
/* The declared value, or NULL. env may be NULL. */
const char *executor_env_find(const struct executor_env *env, const char *name);
/* Is it declared, and by a file or variable? */
bool executor_env_is_secret(const struct executor_env *env, const char *name);
/* Masks its secrets (values from files and variables). Never NULL: without env, one that masks
 * nothing. Lives as long as env. */
const struct mask *executor_env_mask(const struct executor_env *env);

/* A block under construction: later entries of a name replace earlier ones. */
struct env_block {
    char **entries; /* ends with NULL */
    size_t count;
    size_t cap;
    bool broken;
};
void env_block_set(struct env_block *block, const char *name, const char *value);
void env_block_set_int(struct env_block *block, const char *name, int64_t value);
/* What every executor gets; worker: <service>/<worker>, by which what it leaves is found. */
void env_block_set_base(struct env_block *block, const char *service, const char *worker,
                        const char *boot, const char *scratch);
/* Adds everything declared; env may be NULL. */
void env_block_set_declared(struct env_block *block, const struct executor_env *env);
/* Clears what may be secret. */
void env_block_done(struct env_block *block);

#endif
