/* Closed JSON objects from tables. Called by turn.c, turn_record.c, control.c and outcome.c. */
#include "common/record/fields.h"

#include "common/base/check.h"
#include "common/base/role.h"
#include "common/base/text.h"

#include <stdlib.h>
#include <string.h>

#define KIND_WORD(word, text) #word,
#define KIND_TEXT(word, text) text,
static const char *const kind_words[] = {FIELD_KINDS(KIND_WORD)};
static const char *const kind_texts[] = {FIELD_KINDS(KIND_TEXT)};
#undef KIND_WORD
#undef KIND_TEXT

const char *field_kind_word(enum field_kind kind)
{
    BATON_PRE((unsigned)kind < FIELD_KIND_COUNT);
    return kind_words[kind];
}

baton_code fields_version(const struct json_value *root, const char *what, struct baton_error *err)
{
    if (json_kind(root) != JSON_object) {
        return baton_fail(err, BATON_E_invalid_envelope, "%s: not a JSON object", what);
    }
    const struct json_value *version = json_member(root, "version");
    if (version == NULL || json_kind(version) != JSON_int) {
        return baton_fail(err, BATON_E_invalid_envelope, "%s: version is missing or no integer",
                          what);
    }
    if (json_int(version) != 1) {
        return baton_fail(err, BATON_E_schema_unsupported,
                          "%s: version %lld is not known to this program, which reads version 1",
                          what, (long long)json_int(version));
    }
    return BATON_OK;
}

void fields_sort(const struct json_value *object, const struct field *table, size_t n_table,
                 const struct json_value **ret_values, const struct json_value **ret_unknown)
{
    size_t expected = 0; /* members mostly come in the order of the table */
    memset(ret_values, 0, n_table * sizeof(ret_values[0]));
    *ret_unknown = NULL;
    for (const struct json_value *v = json_first(object); v != NULL; v = json_next(v)) {
        size_t tried = 0;
        for (; tried < n_table; tried++) {
            size_t i = expected + tried;
            i = i >= n_table ? i - n_table : i;
            if (strcmp(json_name(v), table[i].name) == 0) {
                ret_values[i] = v;
                expected = i + 1;
                break;
            }
        }
        if (tried == n_table && *ret_unknown == NULL) {
            *ret_unknown = v;
        }
    }
}

static bool one_line(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7F) {
            return false;
        }
    }
    return len > 0;
}

static bool text_fits(const struct field *field, const char *text, size_t len)
{
    struct wall_ms at;
    enum role role;
    switch (field->kind) {
    case FIELD_text:
    case FIELD_word:
        return len <= (size_t)field->max;
    case FIELD_line:
        return len <= (size_t)field->max && one_line(text, len);
    case FIELD_id:
        return plain_id_valid(text, len);
    case FIELD_id_or_empty:
        return len == 0 || plain_id_valid(text, len);
    case FIELD_service:
        return service_id_valid(text, len);
    case FIELD_task:
        return task_id_valid(text, len);
    case FIELD_key:
        return idempotency_key_valid(text, len);
    case FIELD_role:
        return role_parse(text, len, &role);
    case FIELD_hex:
        return hex_valid(text, len, (size_t)field->max);
    case FIELD_time:
        return wall_parse(text, len, &at);
    case FIELD_version:
    case FIELD_count:
    case FIELD_flag:
    case FIELD_object:
    case FIELD_array:
    case FIELD_KIND_COUNT:
        break;
    }
    return false;
}

static bool value_fits(const struct field *field, const struct json_value *value)
{
    enum json_kind kind = json_kind(value);
    switch (field->kind) {
    case FIELD_version:
        return kind == JSON_int;
    case FIELD_count:
        return kind == JSON_int && json_int(value) >= 0 && json_int(value) <= field->max;
    case FIELD_flag:
        return kind == JSON_bool;
    case FIELD_object:
        return kind == JSON_object && (field->max == 0 || json_count(value) <= (size_t)field->max);
    case FIELD_array:
        return kind == JSON_array && (field->max == 0 || json_count(value) <= (size_t)field->max);
    case FIELD_text:
    case FIELD_line:
    case FIELD_id:
    case FIELD_id_or_empty:
    case FIELD_service:
    case FIELD_task:
    case FIELD_key:
    case FIELD_role:
    case FIELD_word:
    case FIELD_hex:
    case FIELD_time:
    case FIELD_KIND_COUNT:
        break;
    }
    if (kind != JSON_text) {
        return false;
    }
    size_t len;
    const char *text = json_text(value, &len);
    return text_fits(field, text, len);
}

baton_code field_check(const struct field *field, const char *what, const struct json_value *value,
                       struct baton_error *err)
{
    if (value_fits(field, value)) {
        return BATON_OK;
    }
    baton_code code =
        field->kind == FIELD_role ? BATON_E_role_unresolved : BATON_E_invalid_envelope;
    struct text_quote quote = {""};
    if (json_kind(value) == JSON_text) {
        quote = text_quote_of(json_text(value, NULL));
    }
    if (field->max > 0) {
        return baton_fail(err, code, "%s: %s must be %s (at most %lld), not '%s'", what,
                          field->name, kind_texts[field->kind], (long long)field->max, quote.s);
    }
    return baton_fail(err, code, "%s: %s must be %s, not '%s'", what, field->name,
                      kind_texts[field->kind], quote.s);
}

baton_code field_unknown(const char *what, const struct json_value *member, struct baton_error *err)
{
    return baton_fail(err, BATON_E_invalid_envelope, "%s: the field '%s' is not known", what,
                      text_quote_of(json_name(member)).s);
}

baton_code field_missing(const char *what, const char *name, struct baton_error *err)
{
    return baton_fail(err, BATON_E_invalid_envelope, "%s: the field %s is missing", what, name);
}

baton_code fields_read(const struct json_value *object, const char *what, const struct field *table,
                       size_t n_table, const struct json_value **ret_values,
                       struct baton_error *err)
{
    const struct json_value *unknown;
    baton_code rc;
    if (json_kind(object) != JSON_object) {
        return baton_fail(err, BATON_E_invalid_envelope, "%s: not a JSON object", what);
    }
    fields_sort(object, table, n_table, ret_values, &unknown);
    if (unknown != NULL) {
        return field_unknown(what, unknown, err);
    }
    for (size_t i = 0; i < n_table; i++) {
        if (ret_values[i] == NULL) {
            if (table[i].need == FIELD_required) {
                return field_missing(what, table[i].name, err);
            }
        } else if ((rc = field_check(&table[i], what, ret_values[i], err)) != BATON_OK) {
            return rc;
        }
    }
    return BATON_OK;
}

const char *field_text(const struct json_value *value)
{
    return value == NULL ? "" : json_text(value, NULL);
}

int64_t field_int(const struct json_value *value)
{
    return value == NULL ? 0 : json_int(value);
}

bool field_flag(const struct json_value *value)
{
    return value != NULL && json_bool(value);
}

struct wall_ms field_time(const struct json_value *value)
{
    struct wall_ms at = {0};
    size_t len;
    if (value != NULL) {
        const char *text = json_text(value, &len);
        BATON_INVARIANT(wall_parse(text, len, &at));
    }
    return at;
}

bool field_copy(const struct json_value *value, char **ret_text)
{
    char *copy = NULL;
    if (value != NULL) {
        size_t len;
        const char *text = json_text(value, &len);
        copy = malloc(len + 1);
        if (copy == NULL) {
            return false;
        }
        memcpy(copy, text, len + 1);
    }
    *ret_text = copy;
    return true;
}

void field_write(struct jsonw *w, const char *name, const char *text)
{
    jsonw_key_plain(w, name, text, strlen(text));
}

void field_write_some(struct jsonw *w, const char *name, const char *text)
{
    if (text != NULL && text[0] != '\0') {
        field_write(w, name, text);
    }
}

void field_write_time(struct jsonw *w, const char *name, struct wall_ms at)
{
    if (at.v != 0) {
        jsonw_key_plain(w, name, wall_text(at).s, TIME_TEXT_LEN);
    }
}

void field_write_digest(struct jsonw *w, const char *name, const struct digest *digest)
{
    char hex[2 * DIGEST_LEN + 1];
    hex_encode(digest->b, DIGEST_LEN, hex);
    jsonw_key_plain(w, name, hex, 2 * DIGEST_LEN);
}
