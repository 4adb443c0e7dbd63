/* The JSON writer. Called by every command's --json and by everything that encodes a record. */
#include "common/base/jsonw.h"

#include "common/base/check.h"
#include "common/base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct jsonw jsonw_to(struct buf *buf)
{
    return (struct jsonw){.buf = buf};
}

bool jsonw_whole(const struct jsonw *w)
{
    return w->depth == 0 && !w->keyed && (w->filled & 1) != 0;
}

static uint64_t level(const struct jsonw *w)
{
    return UINT64_C(1) << w->depth;
}

static bool in_object(const struct jsonw *w)
{
    return w->depth > 0 && (w->arrays & level(w)) == 0;
}

/* Before a value: the comma of an array; in an object its key must have come. */
static void before_value(struct jsonw *w)
{
    if (in_object(w)) {
        BATON_PRE(w->keyed);
        w->keyed = false;
        return;
    }
    BATON_PRE(w->depth > 0 || (w->filled & 1) == 0);
    if ((w->filled & level(w)) != 0) {
        buf_add_char(w->buf, ',');
    }
    w->filled |= level(w);
}

static void before_key(struct jsonw *w)
{
    BATON_PRE(in_object(w) && !w->keyed);
    if ((w->filled & level(w)) != 0) {
        buf_add_char(w->buf, ',');
    }
    w->filled |= level(w);
    w->keyed = true;
}

static void begin(struct jsonw *w, bool array)
{
    before_value(w);
    BATON_PRE(w->depth < JSONW_DEPTH);
    w->depth++;
    w->filled &= ~level(w);
    w->arrays = array ? w->arrays | level(w) : w->arrays & ~level(w);
    buf_add_char(w->buf, array ? '[' : '{');
}

void jsonw_begin_object(struct jsonw *w)
{
    begin(w, false);
}

void jsonw_begin_array(struct jsonw *w)
{
    begin(w, true);
}

void jsonw_end(struct jsonw *w)
{
    BATON_PRE(w->depth > 0 && !w->keyed);
    buf_add_char(w->buf, in_object(w) ? '}' : ']');
    w->depth--;
}

void jsonw_key(struct jsonw *w, const char *key)
{
    size_t len = strlen(key);
    before_key(w);
    char *at = buf_reserve(w->buf, len + 3);
    if (at != NULL) {
        at[0] = '"';
        memcpy(at + 1, key, len);
        memcpy(at + 1 + len, "\":", 3);
        w->buf->len += len + 3;
    }
}

void jsonw_key_any(struct jsonw *w, const char *key, size_t key_len)
{
    before_key(w);
    text_json_add(w->buf, key, key_len);
    buf_add_char(w->buf, ':');
}

void jsonw_text(struct jsonw *w, const char *text)
{
    if (text == NULL) {
        jsonw_null(w);
    } else {
        jsonw_bytes(w, text, strlen(text));
    }
}

void jsonw_bytes(struct jsonw *w, const void *bytes, size_t len)
{
    before_value(w);
    text_json_add(w->buf, bytes, len);
}

void jsonw_plain(struct jsonw *w, const void *bytes, size_t len)
{
    before_value(w);
    text_json_add_plain(w->buf, bytes, len);
}

void jsonw_int(struct jsonw *w, int64_t value)
{
    before_value(w);
    buf_add_int(w->buf, value);
}

void jsonw_real(struct jsonw *w, double value)
{
    char text[64];
    if (!isfinite(value) || fabs(value) > 1e15) {
        jsonw_null(w);
        return;
    }
    before_value(w);
    int n = snprintf(text, sizeof(text), "%.6f", value);
    while (n > 0 && text[n - 1] == '0') {
        n--;
    }
    if (n > 0 && text[n - 1] == '.') {
        n--;
    }
    buf_add(w->buf, text, (size_t)n);
}

void jsonw_bool(struct jsonw *w, bool value)
{
    before_value(w);
    buf_add_text(w->buf, value ? "true" : "false");
}

void jsonw_null(struct jsonw *w)
{
    before_value(w);
    buf_add(w->buf, "null", 4);
}

void jsonw_raw(struct jsonw *w, const void *json, size_t len)
{
    before_value(w);
    buf_add(w->buf, json, len);
}

void jsonw_key_text(struct jsonw *w, const char *key, const char *text)
{
    jsonw_key(w, key);
    jsonw_text(w, text);
}

void jsonw_key_plain(struct jsonw *w, const char *key, const void *bytes, size_t len)
{
    jsonw_key(w, key);
    jsonw_plain(w, bytes, len);
}

void jsonw_key_int(struct jsonw *w, const char *key, int64_t value)
{
    jsonw_key(w, key);
    jsonw_int(w, value);
}

void jsonw_key_bool(struct jsonw *w, const char *key, bool value)
{
    jsonw_key(w, key);
    jsonw_bool(w, value);
}

void jsonw_key_raw(struct jsonw *w, const char *key, const void *json, size_t len)
{
    jsonw_key(w, key);
    jsonw_raw(w, json, len);
}

void jsonw_key_lines(struct jsonw *w, const char *key, const char *text, size_t len)
{
    jsonw_key(w, key);
    jsonw_begin_array(w);
    for (size_t at = 0; at < len;) {
        const char *end = memchr(text + at, '\n', len - at);
        const size_t n = end != NULL ? (size_t)(end - text) - at : len - at;
        jsonw_bytes(w, text + at, n);
        at += n + 1;
    }
    jsonw_end(w);
}
