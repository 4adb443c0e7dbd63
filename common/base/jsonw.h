/*
 * Writes JSON: commas and nesting are handled, memory is the buffer's. Used for everything that
 * programs read, records on the hot path included. Not shared between threads.
 *
 *   struct jsonw w = jsonw_to(&buf);
 *   jsonw_begin_object(&w);
 *   jsonw_key_plain(&w, "turn_id", id.s, 32);
 *   jsonw_end(&w);
 *
 * Two text forms: `text` escapes what is dangerous on a terminal, too (command output); `plain`
 * escapes only what JSON demands (records). Both give valid JSON whatever the bytes are. Running
 * out of memory shows in buf_ok at the end. Breaking the nesting is a broken contract.
 */
#ifndef BATON_BASE_JSONW_H
#define BATON_BASE_JSONW_H

#include "common/base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSONW_DEPTH 63

struct jsonw {
    struct buf *buf;
    uint64_t arrays; /* bit d: level d is an array */
    uint64_t filled; /* bit d: level d has a member already */
    unsigned depth;
    bool keyed; /* a key was written, its value is due */
};

struct jsonw jsonw_to(struct buf *buf);
/* Nothing is open and a value was written? */
bool jsonw_whole(const struct jsonw *w);

void jsonw_begin_object(struct jsonw *w);
void jsonw_begin_array(struct jsonw *w);
/* Ends the innermost object or array. */
void jsonw_end(struct jsonw *w);

/* key: a literal of ours that needs no escaping. */
void jsonw_key(struct jsonw *w, const char *key);
/* key: any text. */
void jsonw_key_any(struct jsonw *w, const char *key, size_t key_len);

/* text ends with NUL; NULL writes null. */
void jsonw_text(struct jsonw *w, const char *text);
void jsonw_bytes(struct jsonw *w, const void *bytes, size_t len);
void jsonw_plain(struct jsonw *w, const void *bytes, size_t len);
void jsonw_int(struct jsonw *w, int64_t value);
/* Up to six digits after the point; not a number and infinity become null. */
void jsonw_real(struct jsonw *w, double value);
void jsonw_bool(struct jsonw *w, bool value);
void jsonw_null(struct jsonw *w);
/* One JSON value that was written or checked elsewhere, as it is. */
void jsonw_raw(struct jsonw *w, const void *json, size_t len);

/* A key and its value in one call. */
void jsonw_key_text(struct jsonw *w, const char *key, const char *text);
void jsonw_key_plain(struct jsonw *w, const char *key, const void *bytes, size_t len);
void jsonw_key_int(struct jsonw *w, const char *key, int64_t value);
void jsonw_key_bool(struct jsonw *w, const char *key, bool value);
void jsonw_key_raw(struct jsonw *w, const char *key, const void *json, size_t len);
/* Each line of a text as a member of an array; the last need not end with a newline. */
void jsonw_key_lines(struct jsonw *w, const char *key, const char *text, size_t len);

#endif
