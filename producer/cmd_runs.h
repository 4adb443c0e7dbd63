/*
 * The verbs `runs` and `handoff`. Listed by deploy/baton.c; cmd_runs.c shows, cmd_runs_list.c
 * lists, cmd_runs_watch.c follows, cmd_runs_start.c and cmd_runs_ask.c ask.
 */
#ifndef BATON_PRODUCER_CMD_RUNS_H
#define BATON_PRODUCER_CMD_RUNS_H

#include "common/base/command.h"

extern const struct baton_command cmd_runs;
extern const struct baton_command cmd_handoff;

extern const struct baton_command cmd_runs_list;
extern const struct baton_command cmd_runs_start;
extern const struct baton_command cmd_runs_wait;
extern const struct baton_command cmd_runs_watch;
extern const struct baton_command cmd_runs_touch;
extern const struct baton_command cmd_runs_cancel;
extern const struct baton_command cmd_runs_reopen;

/* Is a start refused for who asks, so that a person may do it? */
bool runs_for_person(baton_code code);

struct run;
struct request;
struct session;

#define RUNS_ASK_TIMEOUT "10s"

/* Sends a request and prints what came of it; the exit status. next: the command for a person, said where
 * it is refused for who asks; NULL: none. */
int runs_ask(struct command *cmd, struct session *session, struct request *request,
             const char *next);
/* A run as one JSON object and a newline. */
void run_print_json(const struct run *run, struct buf *out);
/* A run on standard output as the command wants it, JSON or for people, with whether a coordinator is there
 * to move it, if it is open: that is looked for for timeout_ms at most. */
void run_print(struct command *cmd, const struct session *session, const struct run *run,
               int64_t timeout_ms);
/* Follows a run until it does not go on by itself, or the time is over; the exit status. key: of the start
 * that was asked for just now, which nobody may have taken yet; else NULL. */
int runs_wait_for(struct command *cmd, const char *word, const char *key, bool watch,
                  int64_t timeout_ms);

#endif
