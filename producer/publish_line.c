/*
 * One line of `baton publish --lines`: a JSON object becomes a request.
 * In: producer/publish_lines.c
 * Out: common/record/json.h, common/record/fields.h
 */
#include "producer/publish_line.h"

#include "common/base/check.h"
#include "common/base/quantity.h"
#include "common/base/text.h"
#include "common/record/fields.h"
#include "common/record/signer.h"
#include "producer/input.h"

#include <stdio.h>
#include <string.h>

#define WHAT "line"
#define WORD_MAX 256 /* of a name: what its grammar says of it, publisher_prepare does */
#define TIME_MAX 64

/* Grammars of names are left to who publishes, so that a line hears what an option would. */
#define LINE_FIELDS(FIELD)                                                                         \
    FIELD(service, text, optional, WORD_MAX)                                                       \
    FIELD(role, text, optional, WORD_MAX)                                                          \
    FIELD(task, text, optional, WORD_MAX)                                                          \
    FIELD(rev, count, optional, INT32_MAX)                                                         \
    FIELD(intent, text, optional, WORD_MAX)                                                        \
    FIELD(summary, text, optional, PUBLISH_LINE_MAX)                                               \
    FIELD(payload, text, optional, PUBLISH_LINE_MAX)                                               \
    FIELD(media_type, text, optional, WORD_MAX)                                                    \
    FIELD(data, object, optional, 0)                                                               \
    FIELD(key, text, optional, WORD_MAX)                                                           \
    FIELD(place, text, optional, PUBLISH_LINE_MAX)                                                 \
    FIELD(not_before, text, optional, TIME_MAX)                                                    \
    FIELD(deadline, text, optional, TIME_MAX)                                                      \
    FIELD(expires, text, optional, TIME_MAX)

#define LINE_INDEX(name, kind, need, max) LINE_##name,
enum { LINE_FIELDS(LINE_INDEX) LINE_COUNT };
#undef LINE_INDEX

static const struct field fields[] = {LINE_FIELDS(FIELD_ROW)};

static const char *or_else(const struct json_value *value, const char *fallback)
{
    return value != NULL ? json_text(value, NULL) : fallback;
}

/* A line is no record yet: what is wrong with it is wrong with the request. */
static baton_code as_request(baton_code rc, struct baton_error *err)
{
    if (rc != BATON_E_invalid_envelope && rc != BATON_E_role_unresolved) {
        return rc;
    }
    if (err != NULL) {
        static const char first[] =
            "JSON, line 1 "; /* of the one that it is: no number of a line */
        err->code = BATON_E_invalid_request;
        if (strncmp(err->text, first, strlen(first)) == 0) {
            memmove(err->text + strlen("JSON, "), err->text + strlen(first),
                    strlen(err->text + strlen(first)) + 1);
        }
    }
    return BATON_E_invalid_request;
}

static baton_code check(const struct json_value *root, const struct json_value **ret_values,
                        struct baton_error *err)
{
    const struct json_value *unknown;
    if (json_kind(root) != JSON_object) {
        return baton_fail(err, BATON_E_invalid_request, "not a JSON object");
    }
    fields_sort(root, fields, COUNT_OF(fields), ret_values, &unknown);
    if (unknown != NULL) {
        return field_unknown(WHAT, unknown, err);
    }
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        /* A payload may stand there as a record has it, too. */
        const bool whole =
            i == LINE_payload && ret_values[i] != NULL && json_kind(ret_values[i]) == JSON_object;
        baton_code rc = ret_values[i] != NULL && !whole
                            ? field_check(&fields[i], WHAT, ret_values[i], err)
                            : BATON_OK;
        if (rc != BATON_OK) {
            return rc;
        }
    }
    return BATON_OK;
}

static baton_code read_time(const struct json_value *value, const char *name,
                            struct wall_ms *ret_at, struct baton_error *err)
{
    if (value == NULL || input_time_parse(json_text(value, NULL), ret_at)) {
        return BATON_OK;
    }
    return baton_fail(err, BATON_E_invalid_request,
                      WHAT ": %s '%s' is no time in UTC, 2026-11-29T14:20:43Z", name,
                      text_quote_of(json_text(value, NULL)).s);
}

static baton_code read_life(const struct json_value *value, int64_t *ret_ms,
                            struct baton_error *err)
{
    size_t len;
    int64_t ms;
    if (value == NULL) {
        return BATON_OK;
    }
    const char *text = json_text(value, &len);
    if (!quantity_duration_parse(text, len, &ms) || ms < 1000 || ms > TURN_LIFE_MAX_MS) {
        return baton_fail(err, BATON_E_invalid_request,
                          WHAT ": expires '%s' is no duration from 1s to 7d",
                          text_quote_of(text).s);
    }
    *ret_ms = ms;
    return BATON_OK;
}

static baton_code read_payload(const struct json_doc *doc, const struct json_value *const *values,
                               struct publish_request *request, struct baton_error *err)
{
    const struct json_value *payload = values[LINE_payload];
    if (payload != NULL && json_kind(payload) == JSON_object) {
        const struct json_span raw = json_raw(doc, "payload");
        request->payload_json = raw.at;
        request->payload_json_len = raw.len;
        return values[LINE_media_type] == NULL
                   ? BATON_OK
                   : baton_fail(err, BATON_E_invalid_request,
                                WHAT ": a payload that is an object has its media_type in it");
    }
    request->media_type = or_else(values[LINE_media_type], request->media_type);
    if (payload != NULL) {
        request->payload = json_text(payload, &request->payload_len);
    }
    return BATON_OK;
}

/* The same line is the same turn. A name that people see: what it is made from is said. */
static void key_of(const char *bytes, size_t len, char ret_key[KEY_MAX + 1])
{
    const struct digest digest = digest_of(bytes, len);
    char hex[2 * DIGEST_LEN + 1];
    hex_encode(digest.b, sizeof(digest.b), hex);
    snprintf(ret_key, KEY_MAX + 1, "line-%.32s", hex);
}

static baton_code fill(const char *bytes, size_t len, struct publish_line *line,
                       struct baton_error *err)
{
    const struct json_value *values[LINE_COUNT];
    struct publish_request *request = &line->request;
    baton_code rc = check(json_root(line->doc), values, err);
    if (rc != BATON_OK) {
        return rc;
    }
    request->service = or_else(values[LINE_service], request->service);
    request->role = or_else(values[LINE_role], request->role);
    request->task_id = or_else(values[LINE_task], NULL);
    request->intent = or_else(values[LINE_intent], request->intent);
    request->summary = or_else(values[LINE_summary], request->summary);
    request->key = or_else(values[LINE_key], line->key);
    request->place = or_else(values[LINE_place], request->place);
    if (values[LINE_rev] != NULL) {
        request->task_rev = (int32_t)json_int(values[LINE_rev]);
    }
    if (values[LINE_data] != NULL) {
        const struct json_span raw = json_raw(line->doc, "data");
        request->data = raw.at;
        request->data_len = raw.len;
    }
    if (request->key[0] == '\0' && values[LINE_key] != NULL) {
        return baton_fail(err, BATON_E_invalid_request,
                          WHAT ": key is empty; without it the line's own bytes are the key");
    }
    if (request->service == NULL || request->role == NULL || request->task_id == NULL) {
        const char *missing = request->service == NULL ? "service"
                              : request->role == NULL  ? "role"
                                                       : "task";
        return baton_fail(err, BATON_E_invalid_request, WHAT ": %s is missing", missing);
    }
    if ((rc = read_time(values[LINE_not_before], "not_before", &request->not_before, err)) !=
            BATON_OK ||
        (rc = read_time(values[LINE_deadline], "deadline", &request->deadline, err)) != BATON_OK ||
        (rc = read_life(values[LINE_expires], &request->life_ms, err)) != BATON_OK ||
        (rc = read_payload(line->doc, values, request, err)) != BATON_OK) {
        return rc;
    }
    if (values[LINE_key] == NULL) {
        key_of(bytes, len, line->key);
    }
    return BATON_OK;
}

baton_code publish_line_read(const char *bytes, size_t len, const struct publish_request *fallback,
                             struct publish_line *ret_line, struct baton_error *err)
{
    *ret_line = (struct publish_line){.request = *fallback};
    baton_code rc = json_parse(bytes, len, PUBLISH_LINE_MAX, LIMIT_JSON_DEPTH, &ret_line->doc, err);
    if (rc == BATON_OK) {
        rc = fill(bytes, len, ret_line, err);
    }
    if (rc != BATON_OK) {
        publish_line_done(ret_line);
    }
    return as_request(rc, err);
}

void publish_line_done(struct publish_line *line)
{
    json_free(line->doc);
    line->doc = NULL;
}
