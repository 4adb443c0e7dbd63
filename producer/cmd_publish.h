/* The verb `publish`, for the program's table. */
#ifndef BATON_PRODUCER_CMD_PUBLISH_H
#define BATON_PRODUCER_CMD_PUBLISH_H

#include "common/base/command.h"

extern const struct baton_command cmd_publish;

#endif
