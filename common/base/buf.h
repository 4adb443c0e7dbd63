/*
 * A growable byte buffer. Owner: whoever holds the struct. Not shared between threads.
 *
 * Appending never fails half-way: out of memory marks the buffer as broken, further appends do
 * nothing, and buf_ok says so once at the end.
 */
#ifndef BATON_BASE_BUF_H
#define BATON_BASE_BUF_H

#include "baton/export.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
    char *data; /* len bytes; a NUL follows when anything was appended */
    size_t len;
    size_t cap;
    bool broken;
};

#define BUF_INIT ((struct buf){NULL, 0, 0, false})

void buf_done(struct buf *buf);
/* Empties it, keeps the memory. */
void buf_clear(struct buf *buf);
bool buf_ok(const struct buf *buf);
/* Room for n more bytes at data + len, or NULL; the caller then adds to len. */
char *buf_reserve(struct buf *buf, size_t n);
void buf_add(struct buf *buf, const void *bytes, size_t len);
void buf_add_text(struct buf *buf, const char *text);
void buf_add_char(struct buf *buf, char c);
void buf_add_int(struct buf *buf, int64_t value);
void buf_printf(struct buf *buf, const char *format, ...) BATON_PRINTF(2, 3);
/* Gives the bytes away (caller frees); NULL if broken. The buffer is empty afterwards. */
char *buf_take(struct buf *buf, size_t *ret_len);

#endif
