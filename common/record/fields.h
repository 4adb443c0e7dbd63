/*
 * Closed JSON objects from tables: which members there may be, which must be, and what each may
 * hold.
 *
 * A table is a list FIELD(name, kind, required, max) in tbl/; the unknown-field check, the checks
 * of every value and the documentation come from it. Values are borrowed from their document.
 */
#ifndef BATON_RECORD_FIELDS_H
#define BATON_RECORD_FIELDS_H

#include "baton/code.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/base/jsonw.h"
#include "common/record/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * FIELD_KIND(word, text): what a value of the kind is. `_or_empty` also takes "".
 * max: bytes of a text, digits of a hex, greatest count, members of an object or array; else 0.
 */
#define FIELD_KINDS(FIELD_KIND)                                                                    \
    FIELD_KIND(version, "the integer 1")                                                           \
    FIELD_KIND(text, "a text")                                                                     \
    FIELD_KIND(line, "a text of one line, not empty")                                              \
    FIELD_KIND(id, "an id, [a-z0-9._-]{1,64}")                                                     \
    FIELD_KIND(id_or_empty, "an id or \"\"")                                                       \
    FIELD_KIND(service, "a service, [a-z0-9-]{1,48}")                                              \
    FIELD_KIND(task, "a task id, [A-Za-z0-9._/#:-]{1,64}")                                         \
    FIELD_KIND(key, "an idempotency key, [A-Za-z0-9._/#:-]{1,200}")                                \
    FIELD_KIND(role, "a role: owner, reviewer or arbiter")                                         \
    FIELD_KIND(word, "a word of a closed list")                                                    \
    FIELD_KIND(hex, "lower-case hexadecimal digits")                                               \
    FIELD_KIND(count, "an integer from 0")                                                         \
    FIELD_KIND(time, "a time, RFC 3339 UTC with milliseconds")                                     \
    FIELD_KIND(flag, "true or false")                                                              \
    FIELD_KIND(object, "an object")                                                                \
    FIELD_KIND(array, "an array")

#define FIELD_KIND_ENUM(word, text) FIELD_##word,
enum field_kind { FIELD_KINDS(FIELD_KIND_ENUM) FIELD_KIND_COUNT };
#undef FIELD_KIND_ENUM

enum field_need { FIELD_optional, FIELD_required };

struct field {
    const char *name;
    enum field_kind kind;
    enum field_need need;
    int64_t max;
};

/* For building a table and its indexes from a list. */
#define FIELD_ROW(name, kind, need, max) {#name, FIELD_##kind, FIELD_##need, (max)},

const char *field_kind_word(enum field_kind kind);

/*
 * The root of a record: an object with a version that this program knows. Everything else is judged
 * after it, since a later version may have other fields. invalid_envelope, schema_unsupported.
 */
baton_code fields_version(const struct json_value *root, const char *what, struct baton_error *err);

/* Sorts the members of object into values (one for each row, NULL: absent). *ret_unknown: the first
 * member that the table does not have, or NULL. */
void fields_sort(const struct json_value *object, const struct field *table, size_t n_table,
                 const struct json_value **ret_values, const struct json_value **ret_unknown);
/* Does a value fit its row? invalid_envelope; role_unresolved for a role that is none. */
baton_code field_check(const struct field *field, const char *what, const struct json_value *value,
                       struct baton_error *err);
/* A member that no table has. */
baton_code field_unknown(const char *what, const struct json_value *member,
                         struct baton_error *err);
baton_code field_missing(const char *what, const char *name, struct baton_error *err);
/* All of it: object, unknown members, missing members, every value. what names the object in
 * errors. */
baton_code fields_read(const struct json_value *object, const char *what, const struct field *table,
                       size_t n_table, const struct json_value **ret_values,
                       struct baton_error *err);

/* Values that were checked; an absent one (NULL) is "", 0, false or the time 0. */
const char *field_text(const struct json_value *value);
int64_t field_int(const struct json_value *value);
bool field_flag(const struct json_value *value);
struct wall_ms field_time(const struct json_value *value);
/* A copy of a text for the caller; NULL for an absent one. False: no memory. */
bool field_copy(const struct json_value *value, char **ret_text);

/* Writing: a member that is always there, and one that is left out when it is "" or the time 0. */
void field_write(struct jsonw *w, const char *name, const char *text);
void field_write_some(struct jsonw *w, const char *name, const char *text);
void field_write_time(struct jsonw *w, const char *name, struct wall_ms at);
void field_write_digest(struct jsonw *w, const char *name, const struct digest *digest);

#endif
