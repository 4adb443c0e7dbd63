/* The text of a first configuration. Called by cmd_init.c. */
#ifndef BATON_DEPLOY_INIT_COMPOSE_H
#define BATON_DEPLOY_INIT_COMPOSE_H

#include "baton/code.h"
#include "common/base/buf.h"
#include "worker/agent/agent.h"

#include <stddef.h>

/*
 * Appends the configuration with this host's values, proven before anything is written. brokers NULL: the
 * local log. n_agents 0: the example executor; else a service for each, in the order of every role's chain.
 * Errors: those of config_parse, no_memory.
 */
baton_code init_compose(const char *brokers, const struct agent_program *const *agents,
                        size_t n_agents, struct buf *text, struct baton_error *err);

#endif
