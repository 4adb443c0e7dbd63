/*
 * What the credential profiles of a service hold: one environment for each, in w->envs (profiles.c).
 *
 * Included by start.c, worker.c, reload.c and operate.c. Engine's thread.
 */
#ifndef BATON_WORKER_PROFILES_H
#define BATON_WORKER_PROFILES_H

#include "baton/code.h"
#include "common/base/clock.h"

#include <stddef.h>

struct config_service;
struct executor_env;
struct worker;

/* *ret_envs is the caller's, one for each profile. Errors: as executor_env_resolve, with the profile. */
baton_code profiles_resolve(const struct config_service *service, struct executor_env ***ret_envs,
                            struct baton_error *err);
void profiles_free(struct executor_env **envs, size_t n);

/* Those of this worker, at its start. */
baton_code profiles_load(struct worker *w, struct baton_error *err);
/* Reads them again when it is time. */
void profiles_reread(struct worker *w);
/* The next profiles_reread reads them, whenever they were read last. */
void profiles_stale(struct worker *w);
/* When that is to be looked at again. */
struct mono_ms profiles_due(const struct worker *w);

#endif
