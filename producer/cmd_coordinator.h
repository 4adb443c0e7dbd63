/* The verb `coordinator`. Listed by deploy/baton.c. */
#ifndef BATON_PRODUCER_CMD_COORDINATOR_H
#define BATON_PRODUCER_CMD_COORDINATOR_H

#include "common/base/command.h"

extern const struct baton_command cmd_coordinator;

#endif
