/*
 * Lines of a file or of standard input for a command: each bounded, and no wait that Ctrl-C does not
 * end. What cannot be read twice is kept beside, in a file without a name, where that is asked for.
 *
 * In: publish_lines.c. Main thread; one at a time, since it takes the signals over.
 */
#ifndef BATON_PRODUCER_LINE_SOURCE_H
#define BATON_PRODUCER_LINE_SOURCE_H

#include "baton/code.h"
#include "common/process/line_io.h"

#include <stdbool.h>
#include <stdint.h>

struct line_source {
    int fd;
    int wake_fd;    /* SIGINT, SIGTERM */
    int spool;      /* what was read of a pipe, for the second reading; -1: none */
    int64_t start;  /* where a file that can be read again begins; -1: it cannot */
    int64_t size;   /* of a file, from there; 0: not known */
    int64_t taken;  /* bytes so far */
    int64_t number; /* of the newest line, from 1 */
    struct line_reader reader;
    bool ended; /* nothing more comes */
};

enum line_event {
    LINE_EVENT_line,  /* borrowed until the next call */
    LINE_EVENT_long,  /* longer than the bound: it was skipped */
    LINE_EVENT_pause, /* nothing within the time that was given */
    LINE_EVENT_end,
    LINE_EVENT_stop, /* somebody interrupted */
};

/* "-": standard input. twice: line_source_again will be called. invalid_request (cannot be opened),
 * unexpected. */
baton_code line_source_open(const char *path, bool twice, size_t line_max,
                            struct line_source *ret_source, struct baton_error *err);
/* Waits at most wait_ms (-1: for as long as it takes). invalid_request: it cannot be read. */
baton_code line_source_next(struct line_source *source, int wait_ms, enum line_event *ret_event,
                            const char **ret_line, size_t *ret_len, struct baton_error *err);
/* From the first line again. */
baton_code line_source_again(struct line_source *source, struct baton_error *err);
void line_source_close(struct line_source *source);

#endif
