/*
 * Lines out of a stream that comes in pieces, each bounded. Owner: whoever holds the struct; one
 * thread. Called by the child protocol (frames) and for standard error (log lines).
 */
#ifndef BATON_PROCESS_LINE_IO_H
#define BATON_PROCESS_LINE_IO_H

#include "common/base/buf.h"

#include <stdbool.h>
#include <stddef.h>

struct line_reader {
    struct buf kept; /* what is not yet a whole line, then what was fed */
    size_t at;       /* consumed of it */
    size_t scanned;  /* without a newline, up to here */
    size_t max;      /* bytes of a line, without its newline */
    bool skipping;   /* the rest of a line that was too long */
};

enum line_state {
    LINE_none,     /* feed more */
    LINE_whole,    /* a line, without its newline (and a '\r' before it) */
    LINE_too_long, /* its first max bytes; the rest is skipped */
};

void line_reader_init(struct line_reader *reader, size_t max);
void line_reader_done(struct line_reader *reader);
/* Takes bytes in. False when memory is out: the stream cannot be read on. Take all lines before
 * feeding again, so that memory stays below max and one piece. */
bool line_reader_feed(struct line_reader *reader, const void *bytes, size_t len);
/* The next line; borrowed until the next feed. */
enum line_state line_reader_next(struct line_reader *reader, const char **ret_line,
                                 size_t *ret_len);
/* At the end of the stream: what stands there without a newline, and without a \r. False if nothing does. */
bool line_reader_rest(struct line_reader *reader, const char **ret_line, size_t *ret_len);

#endif
