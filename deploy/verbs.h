/* The verbs of the program, each in a file of its own. Included by deploy/baton.c and these files.
 */
#ifndef BATON_DEPLOY_VERBS_H
#define BATON_DEPLOY_VERBS_H

#include "common/base/command.h"

extern const struct baton_command cmd_init;
extern const struct baton_command cmd_config;
extern const struct baton_command cmd_dev;
extern const struct baton_command cmd_doctor;
extern const struct baton_command cmd_topics;
extern const struct baton_command cmd_keys;
extern const struct baton_command cmd_publish;
extern const struct baton_command cmd_worker;
extern const struct baton_command cmd_services;
extern const struct baton_command cmd_turns;
extern const struct baton_command cmd_dlq;
extern const struct baton_command cmd_coordinator;
extern const struct baton_command cmd_runs;
extern const struct baton_command cmd_handoff;
extern const struct baton_command cmd_workflow;
extern const struct baton_command cmd_store;
extern const struct baton_command cmd_bench;
extern const struct baton_command cmd_version;

#endif
