/*
 * The verbs `runs` and `handoff`. Listed by deploy/baton.c; what asks is cmd_runs_ask.c, what shows
 * cmd_runs.c.
 */
#ifndef BATON_PRODUCER_CMD_RUNS_H
#define BATON_PRODUCER_CMD_RUNS_H

#include "common/base/command.h"
#include "producer/run/run.h"

extern const struct baton_command cmd_runs;
extern const struct baton_command cmd_handoff;

extern const struct baton_command cmd_runs_start;
extern const struct baton_command cmd_runs_touch;
extern const struct baton_command cmd_runs_cancel;
extern const struct baton_command cmd_runs_reopen;

/* A run as one JSON object and a newline, and for people. */
void runs_print_json(const struct run *run, struct buf *out);
void runs_print_text(const struct run *run, struct buf *out);

#endif
