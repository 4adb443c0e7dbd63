/* The verb `turns`, for the program's table, and its parts for each other. */
#ifndef BATON_PRODUCER_CMD_TURNS_H
#define BATON_PRODUCER_CMD_TURNS_H

#include "common/base/command.h"
#include "producer/session.h"
#include "topics/turn_log.h"

extern const struct baton_command cmd_turns;

extern const struct baton_command cmd_turns_watch;
extern const struct baton_command cmd_turns_wait;
extern const struct baton_command cmd_turns_cancel;
extern const struct baton_command cmd_turns_why;

/*
 * The turn that a word of the command line means (full id or first digits). turn_not_found says so
 * if the turn waits in a topic and was not taken in yet; *ret_waits_at names that service (NULL:
 * none), may be NULL.
 */
baton_code turns_find(struct session *session, const char *word, struct turn_id *ret_id,
                      struct turn_life *ret_life, const char **ret_waits_at,
                      struct baton_error *err);
/* Prints a turn's life to standard output: JSON with --json, else for the terminal. */
void turns_print(struct command *cmd, const struct turn_life *life);

#endif
