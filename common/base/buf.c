/* A growable byte buffer. Called by everything that builds text or bytes. */
#include "common/base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_done(struct buf *buf)
{
    free(buf->data);
    *buf = BUF_INIT;
}

void buf_clear(struct buf *buf)
{
    buf->len = 0;
    buf->broken = false;
    if (buf->data != NULL) {
        buf->data[0] = '\0';
    }
}

bool buf_ok(const struct buf *buf)
{
    return !buf->broken;
}

char *buf_reserve(struct buf *buf, size_t n)
{
    if (buf->broken || n > SIZE_MAX / 4) {
        buf->broken = true;
        return NULL;
    }
    if (buf->cap < buf->len + n + 1) {
        size_t cap = buf->cap == 0 ? 128 : buf->cap;
        while (cap < buf->len + n + 1) {
            cap *= 2;
        }
        char *data = realloc(buf->data, cap);
        if (data == NULL) {
            buf->broken = true;
            return NULL;
        }
        buf->data = data;
        buf->cap = cap;
    }
    return buf->data + buf->len;
}

void buf_add(struct buf *buf, const void *bytes, size_t len)
{
    char *at = buf_reserve(buf, len);
    if (at != NULL) {
        if (len > 0) {
            memcpy(at, bytes, len);
        }
        buf->len += len;
        buf->data[buf->len] = '\0';
    }
}

void buf_add_text(struct buf *buf, const char *text)
{
    buf_add(buf, text, strlen(text));
}

void buf_add_char(struct buf *buf, char c)
{
    buf_add(buf, &c, 1);
}

void buf_add_int(struct buf *buf, int64_t value)
{
    char text[24];
    char *at = text + sizeof(text);
    uint64_t v = value < 0 ? (uint64_t)0 - (uint64_t)value : (uint64_t)value;
    do {
        *--at = (char)('0' + v % 10);
        v /= 10;
    } while (v > 0);
    if (value < 0) {
        *--at = '-';
    }
    buf_add(buf, at, (size_t)(text + sizeof(text) - at));
}

void buf_printf(struct buf *buf, const char *format, ...)
{
    va_list args;
    va_list again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    char *at = n >= 0 ? buf_reserve(buf, (size_t)n) : NULL;
    if (at != NULL) {
        vsnprintf(at, (size_t)n + 1, format, again);
        buf->len += (size_t)n;
    } else {
        buf->broken = true;
    }
    va_end(again);
    va_end(args);
}

char *buf_take(struct buf *buf, size_t *ret_len)
{
    if (buf->data == NULL) {
        buf_reserve(buf, 0);
    }
    if (buf->broken) {
        buf_done(buf);
        return NULL;
    }
    buf->data[buf->len] = '\0';
    char *data = buf->data;
    if (ret_len != NULL) {
        *ret_len = buf->len;
    }
    *buf = BUF_INIT;
    return data;
}
