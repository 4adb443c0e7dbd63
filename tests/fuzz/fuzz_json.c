/*
 * Strict JSON against cJSON: what the validator accepts, cJSON accepts and reads the same; and what
 * is written from it is accepted again and is the same tree.
 * Parts: record
 */
#include "common/base/jsonw.h"
#include "common/record/json.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(x)                                                                                   \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#define DEPTH 16 /* so these walks may recurse */

static void agree(const struct json_value *a, const cJSON *b)
{
    switch (json_kind(a)) {
    case JSON_null:
        CHECK(cJSON_IsNull(b));
        return;
    case JSON_bool:
        CHECK(cJSON_IsBool(b) && json_bool(a) == (cJSON_IsTrue(b) != 0));
        return;
    case JSON_int:
        CHECK(cJSON_IsNumber(b) && (double)json_int(a) == b->valuedouble);
        CHECK(json_int(a) >= -JSON_INT_MAX && json_int(a) <= JSON_INT_MAX);
        return;
    case JSON_text:
        CHECK(cJSON_IsString(b) && strcmp(json_text(a, NULL), b->valuestring) == 0);
        return;
    case JSON_array:
    case JSON_object:
        break;
    }
    CHECK(json_kind(a) == JSON_object ? cJSON_IsObject(b) : cJSON_IsArray(b));
    const cJSON *y = b->child;
    for (const struct json_value *x = json_first(a); x != NULL; x = json_next(x), y = y->next) {
        CHECK(y != NULL);
        if (json_kind(a) == JSON_object) {
            CHECK(strcmp(json_name(x), y->string) == 0);
            /* no key stands twice, so the first one found is this one */
            CHECK(json_member(a, json_name(x)) == x);
        }
        agree(x, y);
    }
    CHECK(y == NULL);
}

static void same(const struct json_value *a, const struct json_value *b)
{
    CHECK(json_kind(a) == json_kind(b));
    if (json_kind(a) == JSON_text) {
        CHECK(strcmp(json_text(a, NULL), json_text(b, NULL)) == 0);
    } else if (json_kind(a) == JSON_int) {
        CHECK(json_int(a) == json_int(b));
    } else if (json_kind(a) == JSON_bool) {
        CHECK(json_bool(a) == json_bool(b));
    } else if (json_kind(a) != JSON_null) {
        const struct json_value *y = json_first(b);
        for (const struct json_value *x = json_first(a); x != NULL; x = json_next(x)) {
            CHECK(y != NULL);
            CHECK(json_kind(a) == JSON_array || strcmp(json_name(x), json_name(y)) == 0);
            same(x, y);
            y = json_next(y);
        }
        CHECK(y == NULL);
    }
}

static void write_value(struct jsonw *w, const struct json_value *v)
{
    size_t len;
    const char *text;
    switch (json_kind(v)) {
    case JSON_null:
        jsonw_null(w);
        return;
    case JSON_bool:
        jsonw_bool(w, json_bool(v));
        return;
    case JSON_int:
        jsonw_int(w, json_int(v));
        return;
    case JSON_text:
        text = json_text(v, &len);
        jsonw_plain(w, text, len);
        return;
    case JSON_array:
        jsonw_begin_array(w);
        break;
    case JSON_object:
        jsonw_begin_object(w);
        break;
    }
    for (const struct json_value *m = json_first(v); m != NULL; m = json_next(m)) {
        if (json_kind(v) == JSON_object) {
            jsonw_key_any(w, json_name(m), strlen(json_name(m)));
        }
        write_value(w, m);
    }
    jsonw_end(w);
}

/* The raw bytes of each member of the root are that member, and nothing else. */
static void check_raw(const struct json_doc *doc)
{
    const struct json_value *root = json_root(doc);
    if (json_kind(root) != JSON_object) {
        return;
    }
    for (const struct json_value *m = json_first(root); m != NULL; m = json_next(m)) {
        struct json_span raw = json_raw(doc, json_name(m));
        struct json_doc *alone = NULL;
        CHECK(raw.at != NULL);
        CHECK(json_parse(raw.at, raw.len, raw.len, DEPTH, &alone, NULL) == BATON_OK);
        same(m, json_root(alone));
        json_free(alone);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json_doc *doc = NULL;
    struct baton_error err = {BATON_OK, ""};
    const char *text = (const char *)data;
    baton_code rc = json_parse(text, size, 1 << 20, DEPTH, &doc, &err);
    if (rc != BATON_OK) {
        CHECK(doc == NULL && err.code == rc && err.text[0] != '\0');
        return 0;
    }
    cJSON *tree = cJSON_ParseWithLengthOpts(text, size, NULL, 0);
    CHECK(tree != NULL);
    agree(json_root(doc), tree);
    cJSON_Delete(tree);

    struct buf out = BUF_INIT;
    struct jsonw w = jsonw_to(&out);
    struct json_doc *again = NULL;
    write_value(&w, json_root(doc));
    CHECK(jsonw_whole(&w) && buf_ok(&out));
    CHECK(json_parse(out.data, out.len, out.len, DEPTH, &again, NULL) == BATON_OK);
    same(json_root(doc), json_root(again));
    json_free(again);
    buf_done(&out);
    check_raw(doc);
    json_free(doc);
    return 0;
}
