/*
 * Requests: what people and programs ask of a run. Written by commands, read by common/record/receipt
 * for a coordinator.
 */
#include "common/record/request.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/text.h"
#include "common/base/word.h"
#include "common/record/data.h"
#include "common/record/fields.h"
#include "common/record/json.h"
#include "common/record/payload.h"
#include "common/record/proof.h"
#include "common/record/tbl/request_fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct field request_table[] = {REQUEST_FIELDS(FIELD_ROW)};
static const struct field body_table[] = {REQUEST_BODY_FIELDS(FIELD_ROW)};
#define R_INDEX(name, kind, need, max) R_##name,
#define B_INDEX(name, kind, need, max) B_##name,
enum { REQUEST_FIELDS(R_INDEX) R_COUNT };
enum { REQUEST_BODY_FIELDS(B_INDEX) B_COUNT };
#undef R_INDEX
#undef B_INDEX

#define REQUEST_WORD(word) #word,
static const char *const request_words[] = {REQUEST_KINDS(REQUEST_WORD)};
#undef REQUEST_WORD

#define ASKER_WORD(word) #word,
static const char *const asker_words[] = {REQUEST_ASKERS(ASKER_WORD)};
#undef ASKER_WORD

struct holds {
    const char *must;
    const char *may;
};
#define HOLDS_ROW(kind, must, may) [REQUEST_##kind] = {must, may},
static const struct holds holds[REQUEST_COUNT] = {REQUEST_HOLDS(HOLDS_ROW)};
#undef HOLDS_ROW

#define WHAT "request"
#define RUN_ID_HEX 30 /* of the digest: 120 bits, behind "r-" */

const char *request_word(enum request_kind kind)
{
    BATON_PRE((unsigned)kind < REQUEST_COUNT);
    return request_words[kind];
}

bool request_wants_person(enum request_kind kind)
{
    return kind == REQUEST_touch || kind == REQUEST_reopen || kind == REQUEST_answer;
}

struct plain_id request_run_id(const char *fleet, const char *requester, const char *key)
{
    static const char label[] = "BATON-RUN-1"; /* its NUL is hashed too */
    const struct json_span parts[] = {
        {fleet, strlen(fleet)}, {requester, strlen(requester)}, {key, strlen(key)}};
    struct digest digest = digest_of_parts(label, sizeof(label), parts, COUNT_OF(parts));
    struct plain_id id = {"r-"};
    hex_encode(digest.b, RUN_ID_HEX / 2, id.s + 2);
    return id;
}

/* ---- writing ---- */

static bool has(enum request_kind kind, const char *name)
{
    return word_in_list(holds[kind].must, name) || word_in_list(holds[kind].may, name);
}

static void write_body(struct jsonw *w, const struct request *r)
{
    jsonw_begin_object(w);
    if (r->kind == REQUEST_start) {
        field_write(w, "workflow", r->workflow.s);
        field_write(w, "task_id", r->task_id.s);
        jsonw_key_int(w, "task_rev", r->task_rev);
        field_write(w, "key", r->key);
    }
    if (r->kind == REQUEST_handoff) {
        field_write(w, "from", r->from);
        field_write(w, "target", r->target);
    }
    if (has(r->kind, "summary")) {
        field_write(w, "summary", r->summary != NULL ? r->summary : "");
        jsonw_key_raw(w, "data", r->data != NULL ? r->data : "{}",
                      r->data != NULL ? r->data_len : 2);
    }
    if (has(r->kind, "payload") && r->payload != NULL) {
        jsonw_key_raw(w, "payload", r->payload, r->payload_len);
    }
    if (has(r->kind, "deadline")) {
        field_write_time(w, "deadline", r->deadline);
    }
    if (has(r->kind, "reason") && r->reason != NULL) {
        field_write(w, "reason", r->reason);
    }
    if (has(r->kind, "asker") && r->asker != REQUEST_ASKER_owner_of_key) {
        field_write(w, "asker", asker_words[r->asker]);
    }
    jsonw_end(w);
}

void request_encode(const struct request *r, struct buf *value)
{
    struct jsonw w = jsonw_to(value);
    jsonw_begin_object(&w);
    jsonw_key_int(&w, "version", 1);
    field_write(&w, "kind", request_word(r->kind));
    field_write(&w, "id", r->id.s);
    field_write(&w, "run_id", r->run_id.s);
    jsonw_key_int(&w, "request_no", r->request_no);
    field_write_time(&w, "at", r->at);
    jsonw_key(&w, "body");
    write_body(&w, r);
    jsonw_end(&w);
}

/* ---- reading ---- */

static baton_code no_memory(struct baton_error *err)
{
    return baton_fail(err, BATON_E_no_memory, "no memory for a request");
}

/* Exactly what the kind holds. */
static baton_code check_holds(enum request_kind kind, const struct json_value *const *v,
                              struct baton_error *err)
{
    for (size_t i = 0; i < B_COUNT; i++) {
        const char *name = body_table[i].name;
        if (v[i] == NULL && word_in_list(holds[kind].must, name)) {
            return field_missing(WHAT, name, err);
        }
        if (v[i] != NULL && !has(kind, name)) {
            return baton_fail(err, BATON_E_invalid_envelope, "request: %s has no place in a %s",
                              name, request_word(kind));
        }
    }
    return BATON_OK;
}

static size_t name_len(const char *text)
{
    return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_-");
}

/* NODE or NODE.SLOT, as a workflow names them. */
static bool slot_valid(const char *text)
{
    size_t n = name_len(text);
    if (n == 0 || n > REQUEST_NAME_MAX) {
        return false;
    }
    if (text[n] == '.') {
        text += n + 1;
        n = name_len(text);
    }
    return n > 0 && n <= REQUEST_NAME_MAX && text[n] == '\0';
}

static baton_code read_slot(const char *name, const struct json_value *value, bool any,
                            char *ret_slot, struct baton_error *err)
{
    const char *text = field_text(value);
    if (value != NULL && !slot_valid(text) && !(any && strcmp(text, "*") == 0)) {
        return baton_fail(err, BATON_E_invalid_envelope,
                          "request: %s must be NODE or NODE.SLOT%s, not "
                          "'%s'",
                          name, any ? " or *" : "", text_quote_of(text).s);
    }
    snprintf(ret_slot, REQUEST_SLOT_MAX + 1, "%s", text);
    return BATON_OK;
}

static bool keep_raw(struct json_span raw, char **ret_text, size_t *ret_len)
{
    if (raw.at == NULL) {
        return true;
    }
    char *copy = malloc(raw.len + 1);
    if (copy == NULL) {
        return false;
    }
    memcpy(copy, raw.at, raw.len);
    copy[raw.len] = '\0';
    *ret_text = copy;
    *ret_len = raw.len;
    return true;
}

/* What must hold of values that have the form of their rows. */
static baton_code check_meaning(const struct json_doc *body, const struct json_value *const *v,
                                struct baton_error *err)
{
    baton_code rc = BATON_OK;
    if (v[B_summary] != NULL) {
        rc = summary_check(WHAT, "summary", field_text(v[B_summary]), err);
    }
    if (rc == BATON_OK && v[B_reason] != NULL) {
        rc = summary_check(WHAT, "reason", field_text(v[B_reason]), err);
    }
    if (rc == BATON_OK && v[B_data] != NULL) {
        rc = data_check(WHAT, v[B_data], json_raw(body, "data"), true, err);
    }
    if (rc == BATON_OK && v[B_payload] != NULL) {
        rc = payload_check(v[B_payload], err);
    }
    return rc;
}

static baton_code read_asker(const struct json_value *value, enum request_asker *ret_asker,
                             struct baton_error *err)
{
    const char *text = field_text(value);
    const int i = value != NULL ? word_find(asker_words, COUNT_OF(asker_words), text, strlen(text))
                                : REQUEST_ASKER_owner_of_key;
    if (i < 0 || (value != NULL && i == REQUEST_ASKER_owner_of_key)) {
        return baton_fail(err, BATON_E_invalid_envelope,
                          "request: asker is agent or confirmed, not '%s'", text_quote_of(text).s);
    }
    *ret_asker = (enum request_asker)i;
    return BATON_OK;
}

static baton_code read_body(const struct json_doc *body, struct request *r, struct baton_error *err)
{
    const struct json_value *v[B_COUNT];
    baton_code rc;
    if ((rc = fields_read(json_root(body), "body of a request", body_table, B_COUNT, v, err)) !=
            BATON_OK ||
        (rc = check_holds(r->kind, v, err)) != BATON_OK ||
        (rc = check_meaning(body, v, err)) != BATON_OK ||
        (rc = read_slot("from", v[B_from], false, r->from, err)) != BATON_OK ||
        (rc = read_slot("target", v[B_target], true, r->target, err)) != BATON_OK ||
        (rc = read_asker(v[B_asker], &r->asker, err)) != BATON_OK) {
        return rc;
    }
    r->workflow = plain_id_of(field_text(v[B_workflow]));
    r->task_id = task_id_of(field_text(v[B_task_id]));
    r->task_rev = (int32_t)field_int(v[B_task_rev]);
    snprintf(r->key, sizeof(r->key), "%s", field_text(v[B_key]));
    r->deadline = field_time(v[B_deadline]);
    if (!field_copy(v[B_summary], &r->summary) || !field_copy(v[B_reason], &r->reason) ||
        !keep_raw(json_raw(body, "data"), &r->data, &r->data_len) ||
        !keep_raw(json_raw(body, "payload"), &r->payload, &r->payload_len)) {
        return no_memory(err);
    }
    return BATON_OK;
}

static baton_code request_from(const struct json_doc *doc, struct request *r,
                               struct baton_error *err)
{
    const struct json_value *v[R_COUNT];
    const struct json_value *root = json_root(doc);
    struct json_doc *body = NULL;
    size_t len;
    baton_code rc;
    if ((rc = fields_version(root, WHAT, err)) != BATON_OK ||
        (rc = fields_read(root, WHAT, request_table, R_COUNT, v, err)) != BATON_OK) {
        return rc;
    }
    const char *kind = json_text(v[R_kind], &len);
    int i = word_find(request_words, COUNT_OF(request_words), kind, len);
    if (i < 0) {
        return baton_fail(err, BATON_E_invalid_envelope, "request: '%s' is no kind",
                          text_quote_of(kind).s);
    }
    r->kind = (enum request_kind)i;
    r->id = plain_id_of(field_text(v[R_id]));
    r->run_id = plain_id_of(field_text(v[R_run_id]));
    r->request_no = (int32_t)field_int(v[R_request_no]);
    r->at = field_time(v[R_at]);
    if ((r->kind == REQUEST_start) != (r->request_no == 0)) {
        return baton_fail(err, BATON_E_invalid_envelope,
                          "request: request_no is 0 in a start, and counts from 1 in others");
    }
    /* Raw bytes are kept of the members of a document's root only: the body is one of its own. */
    struct json_span raw = json_raw(doc, "body");
    rc = json_parse(raw.at, raw.len, REQUEST_BYTES_MAX, LIMIT_JSON_DEPTH, &body, err);
    if (rc == BATON_OK) {
        rc = read_body(body, r, err);
    }
    json_free(body);
    return rc;
}

baton_code request_parse(const void *bytes, size_t len, struct request **ret_request,
                         struct baton_error *err)
{
    struct json_doc *doc = NULL;
    struct request *request = calloc(1, sizeof(*request));
    baton_code rc;
    if (request == NULL) {
        return no_memory(err);
    }
    if ((rc = json_parse(bytes, len, REQUEST_BYTES_MAX, LIMIT_JSON_DEPTH, &doc, err)) != BATON_OK ||
        (rc = request_from(doc, request, err)) != BATON_OK) {
        goto out;
    }
    *ret_request = request;
    request = NULL;
out:
    request_free(request);
    json_free(doc);
    return rc;
}

void request_free(struct request *request)
{
    if (request != NULL) {
        free(request->summary);
        free(request->data);
        free(request->payload);
        free(request->reason);
        free(request);
    }
}
