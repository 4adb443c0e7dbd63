/*
 * The verbs `runs` and `handoff`. Listed by deploy/baton.c; what asks is cmd_runs_ask.c, what shows
 * cmd_runs.c.
 */
#ifndef BATON_PRODUCER_CMD_RUNS_H
#define BATON_PRODUCER_CMD_RUNS_H

#include "common/base/command.h"

extern const struct baton_command cmd_runs;
extern const struct baton_command cmd_handoff;

extern const struct baton_command cmd_runs_start;
extern const struct baton_command cmd_runs_touch;
extern const struct baton_command cmd_runs_cancel;
extern const struct baton_command cmd_runs_reopen;

#endif
