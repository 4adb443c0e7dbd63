/*
 * JSON that foreign programs print, read as it is: fractions, exponents, large numbers and repeated
 * members are taken, which the strict reader of records (common/record/json.h) refuses. Nothing is
 * built: a value is the span of its bytes, checked once, and looked into again for each question.
 *
 * Reads by length, never recurses, allocates nothing but what it appends. Values are borrowed from
 * the bytes. Any thread.
 */
#ifndef BATON_WORKER_AGENT_FOREIGN_H
#define BATON_WORKER_AGENT_FOREIGN_H

#include "common/base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FOREIGN_DEPTH_MAX 64

enum foreign_kind {
    FOREIGN_none, /* absent */
    FOREIGN_null,
    FOREIGN_bool,
    FOREIGN_number,
    FOREIGN_text,
    FOREIGN_array,
    FOREIGN_object,
};

struct foreign {
    const char *at; /* NULL: absent */
    size_t len;     /* without white space around it */
};
#define FOREIGN_NONE ((struct foreign){NULL, 0})

/* These bytes are one JSON value, white space around it allowed? False: they are not, or it is deeper
 * than FOREIGN_DEPTH_MAX. */
bool foreign_parse(const char *bytes, size_t len, struct foreign *ret_value);
/* The same for a value that begins at the first of these bytes; what follows it may be anything. */
bool foreign_parse_prefix(const char *bytes, size_t len, struct foreign *ret_value);

enum foreign_kind foreign_kind(struct foreign value);

/* The first member of that name: any value may be asked, what is no object has none. */
struct foreign foreign_member(struct foreign value, const char *name);
/* The same along names with points between, "error.message". */
struct foreign foreign_at(struct foreign value, const char *path);

/* Walks an array or object: *at 0 at first. False when nothing is left, or it is neither. ret_name (may
 * be NULL) is the member's name as a text value. */
bool foreign_next(struct foreign container, size_t *at, struct foreign *ret_name,
                  struct foreign *ret_value);

/* Appends a text's characters, at most max bytes, cut between characters: valid UTF-8 without NUL
 * (else U+FFFD stands there). Nothing for another kind. */
void foreign_text(struct foreign value, size_t max, struct buf *out);
/* A text that is exactly this word (one without escapes)? */
bool foreign_is(struct foreign value, const char *word);
bool foreign_true(struct foreign value);
/* A number times scale, rounded towards zero, held within what int64_t has. False: no number. */
bool foreign_number(struct foreign value, int64_t scale, int64_t *ret_number);

#endif
