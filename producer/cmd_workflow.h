/* The verb `workflow`. Listed by deploy/baton.c. */
#ifndef BATON_PRODUCER_CMD_WORKFLOW_H
#define BATON_PRODUCER_CMD_WORKFLOW_H

#include "common/base/command.h"

extern const struct baton_command cmd_workflow;

#endif
