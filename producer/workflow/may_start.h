/*
 * Which workflow a start means, and who may start it. One judgement for the coordinator, which decides,
 * and for `runs start --dry-run`, which says what it would decide (L-15).
 *
 * In: producer/coordinator/requests.c, producer/cmd_runs_start.c  Out: producer/workflow/workflow.h
 *
 * Any thread.
 */
#ifndef BATON_PRODUCER_WORKFLOW_MAY_START_H
#define BATON_PRODUCER_WORKFLOW_MAY_START_H

#include "common/base/clock.h"
#include "producer/workflow/workflow.h"

/* Who asks. */
struct workflow_starter {
    const char *name; /* of the principal; NULL: nobody knows */
    bool person_key;  /* a person's, or nobody knows */
    bool agent;       /* the asking process says that an agent asks */
    bool confirmed;   /* it says that a person has said yes to that agent */
};

/* The configuration's workflow of that name, else the one that is built in: what is here on disk, never
 * what a record carries (RECORD.md section 5). invalid_request: there is none; bad_config, no_memory. */
baton_code workflow_named(const struct config *config, const char *name,
                          struct workflow **ret_workflow, struct baton_error *err);

/* May who asks start it (L-01, L-04), to be over at deadline (0: none)? A program's key carries no
 * person's yes (L-06). confirm_needed, invoke_denied, deadline_exceeded. */
baton_code workflow_may_start(const struct workflow *workflow,
                              const struct workflow_starter *starter, struct wall_ms deadline,
                              struct baton_error *err);

#endif
