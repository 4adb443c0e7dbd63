/* The verb `keys`, for the program's table. */
#ifndef BATON_TOPICS_CMD_KEYS_H
#define BATON_TOPICS_CMD_KEYS_H

#include "common/base/command.h"

extern const struct baton_command cmd_keys;
/* Its subcommand that has a file of its own; cmd_keys lists it. */
extern const struct baton_command cmd_keys_list;

#endif
