/*
 * Workflows that were read once, found again by their bytes: thousands of runs along the same one need
 * it once, and are read and copied without reading it again. It keeps what it has until its end; of a
 * workflow there are as many as there were versions of its file. One thread.
 */
#ifndef BATON_PRODUCER_WORKFLOW_SHELF_H
#define BATON_PRODUCER_WORKFLOW_SHELF_H

#include "producer/workflow/workflow.h"

struct workflow_shelf { /* begins zeroed */
    struct workflow **list;
    size_t count;
    size_t cap;
};

/* The workflow of these bytes, borrowed until workflow_shelf_done. Errors: those of workflow_parse, as
 * it is called without a configuration; name: for messages. */
baton_code workflow_shelf_find(struct workflow_shelf *shelf, const char *name, const char *text,
                               size_t text_len, struct workflow **ret_workflow,
                               struct baton_error *err);
/* Whoever borrowed of it has ended before. */
void workflow_shelf_done(struct workflow_shelf *shelf);

#endif
