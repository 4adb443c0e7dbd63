/* Bounded lines out of a stream. Called by worker/executor. */
#include "common/process/line_io.h"

#include <string.h>

void line_reader_init(struct line_reader *reader, size_t max)
{
    *reader = (struct line_reader){BUF_INIT, 0, 0, max, false};
}

void line_reader_done(struct line_reader *reader)
{
    buf_done(&reader->kept);
}

/* Drops what was consumed, so that the buffer holds one line and one piece at most. */
static void compact(struct line_reader *reader)
{
    if (reader->at > 0) {
        memmove(reader->kept.data, reader->kept.data + reader->at, reader->kept.len - reader->at);
        reader->kept.len -= reader->at;
        reader->scanned -= reader->at;
        reader->at = 0;
    }
}

bool line_reader_feed(struct line_reader *reader, const void *bytes, size_t len)
{
    compact(reader);
    if (reader->skipping) {
        const char *end = len > 0 ? memchr(bytes, '\n', len) : NULL;
        if (end == NULL) {
            return true;
        }
        size_t skipped = (size_t)(end + 1 - (const char *)bytes);
        bytes = end + 1;
        len -= skipped;
        reader->skipping = false;
    }
    buf_add(&reader->kept, bytes, len);
    return buf_ok(&reader->kept);
}

enum line_state line_reader_next(struct line_reader *reader, const char **ret_line, size_t *ret_len)
{
    if (reader->at == reader->kept.len) {
        return LINE_none;
    }
    size_t have = reader->kept.len - reader->scanned;
    const char *start = reader->kept.data + reader->at;
    const char *end = have > 0 ? memchr(reader->kept.data + reader->scanned, '\n', have) : NULL;
    size_t len = end != NULL ? (size_t)(end - start) : reader->kept.len - reader->at;
    reader->scanned = reader->kept.len;
    if (len > reader->max) {
        *ret_line = start;
        *ret_len = reader->max;
        reader->skipping = end == NULL;
        reader->at = end != NULL ? reader->at + len + 1 : reader->kept.len;
        reader->scanned = reader->at;
        return LINE_too_long;
    }
    if (end == NULL) {
        return LINE_none;
    }
    reader->at += len + 1;
    reader->scanned = reader->at;
    *ret_line = start;
    *ret_len = len > 0 && start[len - 1] == '\r' ? len - 1 : len;
    return LINE_whole;
}

bool line_reader_rest(struct line_reader *reader, const char **ret_line, size_t *ret_len)
{
    size_t len = reader->kept.len - reader->at;
    if (len == 0) {
        return false;
    }
    *ret_line = reader->kept.data + reader->at;
    *ret_len = (*ret_line)[len - 1] == '\r' ? len - 1 : len;
    reader->at = reader->scanned = reader->kept.len;
    return true;
}
