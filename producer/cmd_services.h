/* The verb `services`, for the program's table. */
#ifndef BATON_PRODUCER_CMD_SERVICES_H
#define BATON_PRODUCER_CMD_SERVICES_H

#include "common/base/command.h"

extern const struct baton_command cmd_services;

/* `baton services list` (cmd_services_list.c). */
int services_list(struct command *cmd);

/* What lets a profile of a service be tried again: both names follow. */
#define SERVICES_CLEAR_COMMAND "baton services clear %s --profile %s"

#endif
