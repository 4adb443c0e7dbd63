/*
 * JSON that foreign programs print, read as it is: fractions, exponents, large numbers and repeated
 * members are taken, which the strict reader of records (common/record/json.h) refuses. Nothing is
 * built: a value is the span of its bytes, checked once, and looked into again for each question.
 *
 * Reads by length, never recurses, allocates nothing but what it appends. Values are borrowed from
 * the bytes. Any thread.
 */
#ifndef BATON_WORKER_AGENT_LOOSE_H
#define BATON_WORKER_AGENT_LOOSE_H

#include "common/base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOOSE_DEPTH_MAX 64

enum loose_kind {
    LOOSE_none, /* absent */
    LOOSE_null,
    LOOSE_bool,
    LOOSE_number,
    LOOSE_text,
    LOOSE_array,
    LOOSE_object,
};

struct loose {
    const char *at; /* NULL: absent */
    size_t len;     /* without white space around it */
};
#define LOOSE_NONE ((struct loose){NULL, 0})

/* These bytes are one JSON value, white space around it allowed? False: they are not, or it is deeper
 * than LOOSE_DEPTH_MAX. */
bool loose_parse(const char *bytes, size_t len, struct loose *ret_value);
/* The same for a value that begins at the first of these bytes; what follows it may be anything. */
bool loose_parse_prefix(const char *bytes, size_t len, struct loose *ret_value);

enum loose_kind loose_kind(struct loose value);

/* The first member of that name: any value may be asked, what is no object has none. */
struct loose loose_member(struct loose value, const char *name);
/* The same along names with points between, "error.message". */
struct loose loose_at(struct loose value, const char *path);

/* Walks an array or object: *at 0 at first. False when nothing is left, or it is neither. ret_name (may
 * be NULL) is the member's name as a text value. */
bool loose_next(struct loose container, size_t *at, struct loose *ret_name,
                struct loose *ret_value);

/* Appends a text's characters, at most max bytes, cut between characters: valid UTF-8 without NUL
 * (else U+FFFD stands there). Nothing for another kind. */
void loose_text(struct loose value, size_t max, struct buf *out);
/* A text that is exactly this word (one without escapes)? */
bool loose_is(struct loose value, const char *word);
bool loose_true(struct loose value);
/* A number times scale, rounded towards zero, held within what int64_t has. False: no number. */
bool loose_number(struct loose value, int64_t scale, int64_t *ret_number);

#endif
