/*
 * Control records: what operators, origins and lease holders say to the owner of a turn. Written by
 * commands and workers, read by common/record/receipt.
 */
#include "common/record/control.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/base/word.h"
#include "common/record/fields.h"
#include "common/record/usage.h"
#include "common/record/json.h"
#include "common/record/tbl/control_fields.h"

#include <stdlib.h>
#include <string.h>

static const struct field control_table[] = {CONTROL_FIELDS(FIELD_ROW)};
#define C_INDEX(name, kind, need, max) C_##name,
enum { CONTROL_FIELDS(C_INDEX) C_COUNT };
#undef C_INDEX

#define CONTROL_WORD(word) #word,
static const char *const control_words[] = {CONTROLS(CONTROL_WORD)};
#undef CONTROL_WORD

struct holds {
    const char *must;
    const char *may;
};
#define HOLDS_ROW(kind, must, may) [CONTROL_##kind] = {must, may},
static const struct holds holds[CONTROL_COUNT] = {CONTROL_HOLDS(HOLDS_ROW)};
#undef HOLDS_ROW

#define WHAT "control record"
#define CONTROL_DEPTH (LIMIT_JSON_DEPTH + 4) /* a result of full depth stands one level down */

const char *control_word(enum control_kind kind)
{
    BATON_PRE((unsigned)kind < CONTROL_COUNT);
    return control_words[kind];
}

const char *control_service_key(enum control_kind kind)
{
    return kind == CONTROL_pause || kind == CONTROL_resume ? "~pause"
           : kind == CONTROL_clear                         ? "~rest"
                                                           : NULL;
}

static bool has(enum control_kind kind, const char *name)
{
    return word_in_list(holds[kind].must, name) || word_in_list(holds[kind].may, name);
}

void control_encode(const struct control *c, struct buf *value)
{
    struct jsonw w = jsonw_to(value);
    jsonw_begin_object(&w);
    jsonw_key_int(&w, "version", 1);
    field_write(&w, "kind", control_word(c->kind));
    field_write(&w, "id", c->id.s);
    if (has(c->kind, "turn_id")) {
        field_write(&w, "turn_id", c->turn_id.s);
    }
    field_write_time(&w, "at", c->at);
    if (has(c->kind, "reason") && c->reason != NULL) {
        field_write(&w, "reason", c->reason);
    }
    if (has(c->kind, "attempt")) {
        jsonw_key_int(&w, "attempt", c->attempt);
    }
    if (has(c->kind, "to")) {
        field_write_some(&w, "to", c->to.s);
    }
    if (has(c->kind, "again") && c->again) {
        jsonw_key_bool(&w, "again", true);
    }
    if (has(c->kind, "boot")) {
        field_write(&w, "boot", c->boot.s);
    }
    if (has(c->kind, "seq")) {
        jsonw_key_int(&w, "seq", c->seq);
    }
    if (has(c->kind, "class") && c->failed) {
        field_write(&w, "class", failure_word(c->class));
    }
    if (has(c->kind, "result") && c->result != NULL) {
        jsonw_key_raw(&w, "result", c->result, c->result_len);
    }
    if (has(c->kind, "usage") && c->usage != NULL) {
        jsonw_key_raw(&w, "usage", c->usage, strlen(c->usage));
    }
    if (has(c->kind, "profile")) {
        field_write_some(&w, "profile", c->profile.s);
    }
    jsonw_end(&w);
}

/* Exactly what the kind holds. */
static baton_code check_holds(enum control_kind kind, const struct json_value *const *v,
                              struct baton_error *err)
{
    for (size_t i = 0; i < C_COUNT; i++) {
        const char *name = control_table[i].name;
        if (control_table[i].need == FIELD_required) {
            continue;
        }
        if (v[i] == NULL && word_in_list(holds[kind].must, name)) {
            return field_missing(WHAT, name, err);
        }
        if (v[i] != NULL && !has(kind, name)) {
            return baton_fail(err, BATON_E_invalid_envelope,
                              "control record: %s has no place in a %s", name, control_word(kind));
        }
    }
    return BATON_OK;
}

static baton_code read_report(const struct json_doc *doc, const struct json_value *const *v,
                              struct control *c, struct baton_error *err)
{
    size_t len;
    if (v[C_class] == NULL && v[C_result] == NULL) {
        return baton_fail(err, BATON_E_invalid_envelope,
                          "control record: a report has neither class nor result");
    }
    c->failed = v[C_class] != NULL;
    if (c->failed) {
        const char *class = json_text(v[C_class], &len);
        if (!failure_parse(class, len, &c->class)) {
            return baton_fail(err, BATON_E_invalid_envelope,
                              "control record: '%s' is no failure class", text_quote_of(class).s);
        }
    }
    if (v[C_result] != NULL) {
        struct json_span raw = json_raw(doc, "result");
        c->result = malloc(raw.len + 1);
        if (c->result == NULL) {
            return baton_fail(err, BATON_E_no_memory, "no memory for a control record");
        }
        memcpy(c->result, raw.at, raw.len);
        c->result[raw.len] = '\0';
        c->result_len = raw.len;
    }
    if (v[C_usage] != NULL) {
        struct usage usage;
        baton_code rc = usage_read(v[C_usage], &usage, err);
        if (rc != BATON_OK) {
            return rc;
        }
        if ((c->usage = usage_text(&usage)) == NULL) {
            return baton_fail(err, BATON_E_no_memory, "no memory for a control record");
        }
    }
    return BATON_OK;
}

static baton_code control_from(const struct json_doc *doc, struct control *c,
                               struct baton_error *err)
{
    const struct json_value *v[C_COUNT];
    const struct json_value *root = json_root(doc);
    size_t len;
    baton_code rc;
    if ((rc = fields_version(root, WHAT, err)) != BATON_OK ||
        (rc = fields_read(root, WHAT, control_table, C_COUNT, v, err)) != BATON_OK) {
        return rc;
    }
    const char *kind = json_text(v[C_kind], &len);
    int i = word_find(control_words, COUNT_OF(control_words), kind, len);
    if (i < 0) {
        return baton_fail(err, BATON_E_invalid_envelope, "control record: '%s' is no kind",
                          text_quote_of(kind).s);
    }
    c->kind = (enum control_kind)i;
    if ((rc = check_holds(c->kind, v, err)) != BATON_OK) {
        return rc;
    }
    if (v[C_turn_id] != NULL) {
        c->turn_id = turn_id_of(field_text(v[C_turn_id]));
    }
    if (v[C_boot] != NULL) {
        memcpy(c->boot.s, field_text(v[C_boot]), sizeof(c->boot.s));
    }
    c->id = plain_id_of(field_text(v[C_id]));
    c->at = field_time(v[C_at]);
    c->attempt = (int)field_int(v[C_attempt]);
    c->to = service_id_of(field_text(v[C_to]));
    c->profile = plain_id_of(field_text(v[C_profile]));
    c->again = field_flag(v[C_again]);
    c->seq = field_int(v[C_seq]);
    if (v[C_attempt] != NULL && c->attempt < 1) {
        return baton_fail(err, BATON_E_invalid_envelope, "control record: attempts count from 1");
    }
    if (!field_copy(v[C_reason], &c->reason)) {
        return baton_fail(err, BATON_E_no_memory, "no memory for a control record");
    }
    return c->kind == CONTROL_report ? read_report(doc, v, c, err) : BATON_OK;
}

baton_code control_parse(const void *bytes, size_t len, struct control **ret_control,
                         struct baton_error *err)
{
    struct json_doc *doc = NULL;
    struct control *control = calloc(1, sizeof(*control));
    baton_code rc;
    if (control == NULL) {
        return baton_fail(err, BATON_E_no_memory, "no memory for a control record");
    }
    if ((rc = json_parse(bytes, len, LIMIT_HANDOFF_RECORD, CONTROL_DEPTH, &doc, err)) != BATON_OK ||
        (rc = control_from(doc, control, err)) != BATON_OK) {
        goto out;
    }
    *ret_control = control;
    control = NULL;
out:
    control_free(control);
    json_free(doc);
    return rc;
}

void control_free(struct control *control)
{
    if (control != NULL) {
        free(control->reason);
        free(control->result);
        free(control->usage);
        free(control);
    }
}
