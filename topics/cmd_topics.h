/* The verb `topics`, for the program's table. */
#ifndef BATON_TOPICS_CMD_TOPICS_H
#define BATON_TOPICS_CMD_TOPICS_H

#include "common/base/command.h"

extern const struct baton_command cmd_topics;

#endif
