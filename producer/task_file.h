/*
 * A task as people write it in a file: what a run is to be about. Main thread.
 *
 *   task.yaml, task.yml, task.json   keys id, rev, summary, data, text or payload
 *   task.md, task.txt                the file is the payload, its first line the summary
 *
 * Which of them it is says its name, and so does whether a word names a file at all: what is on the
 * disk just now plays no part in it.
 */
#ifndef BATON_PRODUCER_TASK_FILE_H
#define BATON_PRODUCER_TASK_FILE_H

#include "baton/code.h"
#include "common/base/buf.h"
#include "common/base/id.h"

#include <stdbool.h>

struct task_file {
    struct task_id id; /* the file's, else its name's */
    int32_t rev;
    char *summary;      /* NULL: it says none */
    struct buf data;    /* a JSON object of texts; empty: it says none */
    struct buf payload; /* of a turn, as JSON; empty: none */
};

/* Is this word of the command line a file's name, rather than a task's id? */
bool task_file_named(const char *word);
/* invalid_request: what is wrong with it, the first; all of it in findings (may be NULL), with line and
 * column. record_too_large. */
baton_code task_file_read(const char *path, struct task_file *ret_task, struct buf *findings,
                          struct baton_error *err);
void task_file_done(struct task_file *task);

#endif
