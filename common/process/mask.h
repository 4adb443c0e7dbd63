/*
 * Masks known secret values in what executors print: each becomes `***`.
 *
 * A secret is found as it is, as base64 and base64url in all three alignments, as hex in both
 * cases, URL-encoded and JSON-escaped, also when it arrives in pieces. Of a secret of several lines
 * (a PEM key) each line of 16 bytes or more is one, too. Secrets shorter than 6 bytes are NOT
 * masked: they would hit ordinary text, and hide little. Masking is best effort, not a wall: what
 * was encrypted, reversed or wrapped by a newline is not found.
 *
 * A mask is immutable after mask_new: any thread may use it. A stream belongs to one thread.
 */
#ifndef BATON_PROCESS_MASK_H
#define BATON_PROCESS_MASK_H

#include "common/base/buf.h"

#include <stdbool.h>
#include <stddef.h>

#define MASK_SECRET_MIN 6
#define MASK_TEXT "***"

struct mask;

/* Copies the secrets (bytes that end with NUL). NULL when memory is out. n may be 0. */
struct mask *mask_new(const char *const *secrets, size_t n);
/* Clears the copies. Accepts NULL. */
void mask_free(struct mask *mask);
/* One that masks nothing: where there are no secrets. Never freed. */
const struct mask *mask_nothing(void);

/* Appends bytes to out, masked, as one whole text. */
void mask_add(const struct mask *mask, const void *bytes, size_t len, struct buf *out);

/* The same for a stream: what may be the beginning of a secret is held back until it is decided. */
struct mask_stream {
    const struct mask *mask;
    struct buf held;
    size_t covered; /* leading bytes of held that belong to a secret already replaced */
};
void mask_stream_init(struct mask_stream *stream, const struct mask *mask);
void mask_stream_done(struct mask_stream *stream);
void mask_stream_feed(struct mask_stream *stream, const void *bytes, size_t len, struct buf *out);
/* The end of the stream: what is held back comes out. */
void mask_stream_end(struct mask_stream *stream, struct buf *out);

#endif
