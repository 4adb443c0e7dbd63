/* The verb `dlq`, for the program's table. */
#ifndef BATON_PRODUCER_CMD_DLQ_H
#define BATON_PRODUCER_CMD_DLQ_H

#include "common/base/command.h"

extern const struct baton_command cmd_dlq;

#endif
