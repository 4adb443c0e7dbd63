/* The verb `topics`, for the program's table. */
#ifndef BATON_TOPICS_CMD_TOPICS_H
#define BATON_TOPICS_CMD_TOPICS_H

#include "common/base/command.h"

extern const struct baton_command cmd_topics;

/* `topics plan --acl` (cmd_topics_acl.c), called by `plan`. */
int topics_acl_run(struct command *cmd);

#endif
