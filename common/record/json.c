/*
 * Strict JSON: json_check decides, cJSON builds, this file shows it read-only. The only file that
 * touches cJSON. Called by every reader of records and of what executors answer.
 */
#include "common/record/json.h"

#include "common/base/check.h"
#include "common/record/json_check.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

struct json_doc {
    cJSON *root;
    struct json_members members; /* of the root object, in its order */
};

baton_code json_parse(const char *bytes, size_t len, size_t bytes_max, int depth_max,
                      struct json_doc **ret_doc, struct baton_error *err)
{
    struct json_doc *doc = NULL;
    baton_code rc;
    if (len > bytes_max) {
        return baton_fail(err, BATON_E_record_too_large, "JSON of %zu bytes, at most %zu are taken",
                          len, bytes_max);
    }
    if (bytes == NULL || len == 0) {
        return baton_fail(err, BATON_E_invalid_envelope, "JSON: the text is empty");
    }
    doc = calloc(1, sizeof(*doc));
    if (doc == NULL) {
        return baton_fail(err, BATON_E_no_memory, "no memory for a JSON document");
    }
    rc = json_check(bytes, len, depth_max, &doc->members, err);
    if (rc != BATON_OK) {
        goto out;
    }
    /* What the validator has accepted cJSON accepts too (the differential fuzz target shows it), so
     * only memory can be missing here. */
    doc->root = cJSON_ParseWithLengthOpts(bytes, len, NULL, 0);
    if (doc->root == NULL) {
        rc = baton_fail(err, BATON_E_no_memory, "no memory for a JSON document of %zu bytes", len);
        goto out;
    }
    *ret_doc = doc;
    doc = NULL;
out:
    json_free(doc);
    return rc;
}

void json_free(struct json_doc *doc)
{
    if (doc != NULL) {
        cJSON_Delete(doc->root);
        free(doc->members.spans);
        free(doc);
    }
}

/* A json_value is a cJSON under a name that nobody else can look into. */
static const cJSON *item_of(const struct json_value *value)
{
    return (const cJSON *)(const void *)value;
}

static const struct json_value *value_of(const cJSON *item)
{
    return (const struct json_value *)(const void *)item;
}

const struct json_value *json_root(const struct json_doc *doc)
{
    return value_of(doc->root);
}

enum json_kind json_kind(const struct json_value *value)
{
    const cJSON *item = item_of(value);
    if (cJSON_IsString(item)) {
        return JSON_text;
    }
    if (cJSON_IsNumber(item)) {
        return JSON_int;
    }
    if (cJSON_IsObject(item)) {
        return JSON_object;
    }
    if (cJSON_IsArray(item)) {
        return JSON_array;
    }
    return cJSON_IsBool(item) ? JSON_bool : JSON_null;
}

const char *json_text(const struct json_value *value, size_t *ret_len)
{
    BATON_PRE(json_kind(value) == JSON_text);
    const char *text = item_of(value)->valuestring;
    if (ret_len != NULL) {
        *ret_len = strlen(text);
    }
    return text;
}

int64_t json_int(const struct json_value *value)
{
    BATON_PRE(json_kind(value) == JSON_int);
    return (int64_t)item_of(value)->valuedouble; /* exact: the validator allows up to 2^53 */
}

bool json_bool(const struct json_value *value)
{
    BATON_PRE(json_kind(value) == JSON_bool);
    return cJSON_IsTrue(item_of(value)) != 0;
}

const struct json_value *json_member(const struct json_value *object, const char *name)
{
    BATON_PRE(json_kind(object) == JSON_object);
    for (const cJSON *item = item_of(object)->child; item != NULL; item = item->next) {
        if (strcmp(item->string, name) == 0) {
            return value_of(item);
        }
    }
    return NULL;
}

const char *json_member_text(const struct json_value *object, const char *name, size_t *ret_len)
{
    const struct json_value *value = json_member(object, name);
    *ret_len = 0;
    return value != NULL && json_kind(value) == JSON_text ? json_text(value, ret_len) : "";
}

const struct json_value *json_first(const struct json_value *container)
{
    BATON_PRE(json_kind(container) == JSON_object || json_kind(container) == JSON_array);
    return value_of(item_of(container)->child);
}

const struct json_value *json_next(const struct json_value *value)
{
    return value_of(item_of(value)->next);
}

const char *json_name(const struct json_value *value)
{
    BATON_PRE(item_of(value)->string != NULL);
    return item_of(value)->string;
}

size_t json_count(const struct json_value *container)
{
    size_t count = 0;
    for (const struct json_value *v = json_first(container); v != NULL; v = json_next(v)) {
        count++;
    }
    return count;
}

struct json_span json_raw(const struct json_doc *doc, const char *name)
{
    size_t i = 0;
    if (json_kind(value_of(doc->root)) == JSON_object) {
        for (const cJSON *item = doc->root->child; item != NULL; item = item->next, i++) {
            if (strcmp(item->string, name) == 0) {
                BATON_INVARIANT(i < doc->members.count);
                return doc->members.spans[i];
            }
        }
    }
    return (struct json_span){NULL, 0};
}
