/*
 * One line of `baton publish --lines`: a JSON object becomes a request to publish a turn.
 *
 * In: publish_lines.c  Out: publish.c
 *
 * The object is closed; its names are those of the options, with `_` for `-`, and what a line leaves
 * out the options say for all of them. No file that a line names is read: the payload stands in the
 * line, or is a reference. Pure; main thread.
 */
#ifndef BATON_PRODUCER_PUBLISH_LINE_H
#define BATON_PRODUCER_PUBLISH_LINE_H

#include "baton/code.h"
#include "common/record/json.h"
#include "producer/publish.h"

#include <stddef.h>

/* A turn of 256 KiB, and room for its escapes; what is longer is not kept in memory. */
#define PUBLISH_LINE_MAX (1024 * 1024)

struct publish_line {
    struct publish_request
        request; /* borrows from the line's bytes and from what follows: not to be copied */
    struct json_doc *doc;
    char key[KEY_MAX + 1]; /* where the line has none: made from its bytes, so that the same line is
                              the same turn however often it is published */
};

/*
 * Reads a line without its newline. fallback: what the options say. Checks what only the line can
 * get wrong; names, rights and sizes are publisher_prepare's. invalid_request with what is wrong and
 * where; record_too_large; no_memory. ret_line is empty after a failure.
 */
baton_code publish_line_read(const char *bytes, size_t len, const struct publish_request *fallback,
                             struct publish_line *ret_line, struct baton_error *err);
void publish_line_done(struct publish_line *line);

#endif
