/*
 * Publishing in bulk: JSON lines become turns, many in flight, in the memory of one batch.
 *
 * In: cmd_publish.c  Out: line_source.c, publish_line.c, publish.c
 *
 * A line that is wrong is told by its number and reason, and the others go on. Publishing the same
 * lines again is harmless: a line without a key has one made from its bytes. Main thread.
 */
#ifndef BATON_PRODUCER_PUBLISH_LINES_H
#define BATON_PRODUCER_PUBLISH_LINES_H

#include "common/base/command.h"
#include "producer/publish.h"

#include <stdbool.h>

struct publish_lines {
    struct command *cmd;
    struct publisher *publisher;
    const struct publish_request *fallback; /* what the options say for every line */
    const char *path;                       /* "-": standard input */
    bool
        all_or_nothing; /* every line is checked first; one that is refused, and none is published */
    bool dry_run;       /* checked only */
};

/* Does all of it, tells each line and the sum, and returns the exit status: 0, 7 where lines were
 * refused, 8 where the log gave up or somebody interrupted. */
int publish_lines_run(const struct publish_lines *asked);

#endif
