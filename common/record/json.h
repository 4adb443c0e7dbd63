/*
 * Strict JSON: a validator in front of cJSON, and a read-only view of what it parsed.
 *
 * cJSON accepts duplicate keys, cuts strings at an escaped NUL, accepts invalid UTF-8 and trailing
 * bytes, loses integers above 2^53 and folds case when it looks keys up (measured, 1.7.15). So the
 * validator sees the same buffer first and refuses all of that; cJSON is touched in json.c only.
 *
 * A document borrows nothing: it may outlive the bytes, except for json_span, which points into
 * them. Values live as long as their document. Any thread, one at a time for each document.
 */
#ifndef BATON_RECORD_JSON_H
#define BATON_RECORD_JSON_H

#include "baton/code.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_INT_MAX 9007199254740992LL /* 2^53 */

struct json_doc;
struct json_value;

enum json_kind { JSON_null, JSON_bool, JSON_int, JSON_text, JSON_array, JSON_object };

struct json_span {
    const char *at; /* NULL: the member is absent */
    size_t len;
};

/*
 * One JSON value over exactly these bytes: UTF-8, no BOM, no escaped NUL, no duplicate key in any
 * object, integers only (-2^53..2^53, no fraction, no exponent, no "-0"), depth at most depth_max,
 * nothing behind it. Errors: invalid_envelope (err says what, with line and column),
 * record_too_large (more than bytes_max), no_memory.
 */
baton_code json_parse(const char *bytes, size_t len, size_t bytes_max, int depth_max,
                      struct json_doc **ret_doc, struct baton_error *err);
void json_free(struct json_doc *doc);
const struct json_value *json_root(const struct json_doc *doc);

enum json_kind json_kind(const struct json_value *value);
/* Text of a JSON_text: ends with NUL, holds no other; *ret_len may be NULL. Contract: the kind. */
const char *json_text(const struct json_value *value, size_t *ret_len);
int64_t json_int(const struct json_value *value);
bool json_bool(const struct json_value *value);
/* Member by its exact name, or NULL; value must be an object. */
const struct json_value *json_member(const struct json_value *object, const char *name);
/* The text of a member, or "" with length 0 where it is missing or none. */
const char *json_member_text(const struct json_value *object, const char *name, size_t *ret_len);
/* Iteration over an array or object: first, next; name of a member of an object. */
const struct json_value *json_first(const struct json_value *container);
const struct json_value *json_next(const struct json_value *value);
const char *json_name(const struct json_value *value);
size_t json_count(const struct json_value *container);

/* The raw bytes of a member of the root object, as they stand in the parsed buffer. */
struct json_span json_raw(const struct json_doc *doc, const char *name);

#endif
