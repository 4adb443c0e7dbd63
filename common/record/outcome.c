/*
 * Outcomes: what happened to a turn, told to everyone. Written by the owner of a turn, read by who
 * waits for it and by the coordinator.
 */
#include "common/record/outcome.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/base/word.h"
#include "common/record/fields.h"
#include "common/record/json.h"
#include "common/record/tbl/outcome_fields.h"
#include "common/record/turn_record.h"

#include <stdlib.h>
#include <string.h>

static const struct field outcome_table[] = {OUTCOME_FIELDS(FIELD_ROW)};
static const struct field answers_table[] = {ANSWERS_FIELDS(FIELD_ROW)};
#define O_INDEX(name, kind, need, max) O_##name,
#define ANSWERS_INDEX(name, kind, need, max) ANSWERS_##name,
enum { OUTCOME_FIELDS(O_INDEX) O_COUNT };
enum { ANSWERS_FIELDS(ANSWERS_INDEX) ANSWERS_COUNT };
#undef O_INDEX
#undef ANSWERS_INDEX

#define EVENT_WORD(word) #word,
static const char *const event_words[] = {OUTCOME_EVENTS(EVENT_WORD)};
#undef EVENT_WORD

#define WHAT "outcome"
#define OUTCOME_DEPTH (LIMIT_JSON_DEPTH + 4) /* a result of full depth stands one level down */

const char *outcome_word(enum outcome_event event)
{
    BATON_PRE((unsigned)event < OUTCOME_EVENT_COUNT);
    return event_words[event];
}

void outcome_of(const struct turn_record *record, enum outcome_event event, const char *service,
                struct wall_ms at, struct outcome *ret_outcome)
{
    struct outcome o;
    memset(&o, 0, sizeof(o));
    o.event = event;
    o.turn_id = record->id;
    o.origin = record->origin;
    o.born = record->service;
    o.has_role = true;
    o.role = record->role;
    o.task_id = record->task_id;
    o.task_rev = record->task_rev;
    o.run_id = record->run_id;
    o.epoch = record->epoch;
    o.intent = record->intent;
    o.content = record->content;
    o.attempt = record->attempt;
    o.service = service_id_of(service);
    o.has_state = true;
    o.state = record->state;
    if (record->n_attempts > 0 && record->attempts[record->n_attempts - 1].has_class) {
        o.has_class = true;
        o.class = record->attempts[record->n_attempts - 1].class;
    }
    o.code = record->code;
    o.at = at;
    o.to = record->to_service;
    o.cost_micros = turn_record_cost(record);
    o.result = record->result;
    o.result_len = record->result_len;
    *ret_outcome = o;
}

static void write_identity(struct jsonw *w, const struct outcome *o)
{
    field_write_some(w, "turn_id", o->turn_id.s);
    if (o->has_role) {
        field_write(w, "origin", o->origin.s);
        field_write(w, "born", o->born.s);
        field_write(w, "role", role_word(o->role));
        field_write(w, "task_id", o->task_id.s);
        jsonw_key_int(w, "task_rev", o->task_rev);
        field_write(w, "run_id", o->run_id.s);
        jsonw_key_int(w, "epoch", o->epoch);
        field_write(w, "intent", o->intent.s);
        field_write_digest(w, "content", &o->content);
    } else {
        field_write_some(w, "run_id", o->run_id.s);
    }
}

void outcome_encode(const struct outcome *o, struct buf *value)
{
    struct jsonw w = jsonw_to(value);
    bool answer = o->event == OUTCOME_answer;
    jsonw_begin_object(&w);
    jsonw_key_int(&w, "version", 1);
    field_write(&w, "event", outcome_word(o->event));
    write_identity(&w, o);
    if (o->attempt != 0) {
        jsonw_key_int(&w, "attempt", o->attempt);
    }
    field_write(&w, "service", o->service.s);
    if (o->has_state) {
        field_write(&w, "state", turn_state_word(o->state));
    }
    if (o->has_class) {
        field_write(&w, "class", failure_word(o->class));
    }
    if (!answer && o->code != BATON_OK) {
        field_write(&w, "code", baton_code_word(o->code));
    }
    field_write_time(&w, "at", o->at);
    field_write_some(&w, "to", o->to.s);
    if (o->cost_micros > 0) {
        jsonw_key_int(&w, "cost_micros", o->cost_micros);
    }
    if (o->result != NULL) {
        jsonw_key_raw(&w, "result", o->result, o->result_len);
    }
    if (answer) {
        jsonw_key(&w, "answers");
        jsonw_begin_object(&w);
        field_write(&w, "id", o->answers_id.s);
        field_write(&w, "kind", o->answers_kind);
        field_write(&w, "code", baton_code_word(o->code));
        jsonw_end(&w);
    }
    jsonw_end(&w);
}

static baton_code bad_word(const char *name, const struct json_value *value,
                           struct baton_error *err)
{
    return baton_fail(err, BATON_E_invalid_envelope, "outcome: '%s' is no %s",
                      text_quote_of(field_text(value)).s, name);
}

/* The identity is there as a whole or not at all; only an answer and a run's end may lack it. */
static baton_code read_identity(const struct json_value *const *v, struct outcome *o,
                                struct baton_error *err)
{
    static const int whole[] = {O_turn_id,  O_origin, O_born,  O_role,   O_task_id,
                                O_task_rev, O_run_id, O_epoch, O_intent, O_content};
    bool may_lack = o->event == OUTCOME_answer || o->event == OUTCOME_run_ended;
    size_t len;
    o->has_role = v[O_role] != NULL;
    for (size_t i = 0; i < COUNT_OF(whole); i++) {
        int field = whole[i];
        bool there = v[field] != NULL;
        bool alone = field == O_turn_id || field == O_run_id;
        if (!there && (o->has_role || !may_lack)) {
            return field_missing(WHAT, outcome_table[field].name, err);
        }
        if (there && !o->has_role && !alone) {
            return baton_fail(err, BATON_E_invalid_envelope, "outcome: %s without a role",
                              outcome_table[field].name);
        }
    }
    if (v[O_turn_id] != NULL) {
        o->turn_id = turn_id_of(field_text(v[O_turn_id]));
    }
    o->run_id = plain_id_of(field_text(v[O_run_id]));
    if (!o->has_role) {
        return BATON_OK;
    }
    const char *role = json_text(v[O_role], &len);
    BATON_INVARIANT(role_parse(role, len, &o->role));
    o->origin = plain_id_of(field_text(v[O_origin]));
    o->born = service_id_of(field_text(v[O_born]));
    o->task_id = task_id_of(field_text(v[O_task_id]));
    o->task_rev = (int32_t)json_int(v[O_task_rev]);
    o->epoch = (int32_t)json_int(v[O_epoch]);
    o->intent = plain_id_of(field_text(v[O_intent]));
    const char *content = json_text(v[O_content], &len);
    BATON_INVARIANT(hex_decode(content, len, o->content.b, DIGEST_LEN));
    return BATON_OK;
}

static baton_code read_words(const struct json_value *const *v, struct outcome *o,
                             struct baton_error *err)
{
    size_t len;
    o->has_state = v[O_state] != NULL;
    if (o->has_state) {
        const char *state = json_text(v[O_state], &len);
        if (!turn_state_parse(state, len, &o->state)) {
            return bad_word("state of a turn", v[O_state], err);
        }
    }
    o->has_class = v[O_class] != NULL;
    if (o->has_class) {
        const char *class = json_text(v[O_class], &len);
        if (!failure_parse(class, len, &o->class)) {
            return bad_word("failure class", v[O_class], err);
        }
    }
    if (v[O_code] != NULL && !baton_code_parse(field_text(v[O_code]), &o->code)) {
        return bad_word("code", v[O_code], err);
    }
    return BATON_OK;
}

static baton_code read_answers(const struct json_value *const *v, struct outcome *o,
                               struct baton_error *err)
{
    const struct json_value *a[ANSWERS_COUNT];
    baton_code rc;
    if ((o->event == OUTCOME_answer) != (v[O_answers] != NULL) ||
        (v[O_answers] != NULL && v[O_code] != NULL)) {
        return baton_fail(err, BATON_E_invalid_envelope,
                          "outcome: answers stands in an answer, and there instead of code");
    }
    if (v[O_answers] == NULL) {
        return BATON_OK;
    }
    if ((rc = fields_read(v[O_answers], "answers", answers_table, ANSWERS_COUNT, a, err)) !=
        BATON_OK) {
        return rc;
    }
    o->answers_id = plain_id_of(field_text(a[ANSWERS_id]));
    memcpy(o->answers_kind, field_text(a[ANSWERS_kind]), strlen(field_text(a[ANSWERS_kind])) + 1);
    if (!baton_code_parse(field_text(a[ANSWERS_code]), &o->code)) {
        return bad_word("code", a[ANSWERS_code], err);
    }
    return BATON_OK;
}

/* "coordinator" speaks of runs; of turns only a service does. */
static baton_code read_speaker(const struct json_value *const *v, struct outcome *o,
                               struct baton_error *err)
{
    size_t len;
    const char *service = json_text(v[O_service], &len);
    bool of_turn = o->event != OUTCOME_run_ended && o->event != OUTCOME_answer;
    if (len > SERVICE_MAX || (of_turn && !service_id_valid(service, len))) {
        return bad_word("service", v[O_service], err);
    }
    o->service = service_id_of(service);
    o->attempt = (int)field_int(v[O_attempt]);
    o->at = field_time(v[O_at]);
    o->to = service_id_of(field_text(v[O_to]));
    o->cost_micros = field_int(v[O_cost_micros]);
    return BATON_OK;
}

static baton_code outcome_from(const struct json_doc *doc, struct outcome *o,
                               struct baton_error *err)
{
    const struct json_value *v[O_COUNT];
    const struct json_value *root = json_root(doc);
    size_t len;
    baton_code rc;
    if ((rc = fields_version(root, WHAT, err)) != BATON_OK ||
        (rc = fields_read(root, WHAT, outcome_table, O_COUNT, v, err)) != BATON_OK) {
        return rc;
    }
    const char *event = json_text(v[O_event], &len);
    int i = word_find(event_words, COUNT_OF(event_words), event, len);
    if (i < 0) {
        return bad_word("event", v[O_event], err);
    }
    o->event = (enum outcome_event)i;
    if ((rc = read_identity(v, o, err)) != BATON_OK || (rc = read_words(v, o, err)) != BATON_OK ||
        (rc = read_answers(v, o, err)) != BATON_OK || (rc = read_speaker(v, o, err)) != BATON_OK) {
        return rc;
    }
    if (v[O_result] != NULL) {
        struct json_span raw = json_raw(doc, "result");
        o->result = malloc(raw.len + 1);
        if (o->result == NULL) {
            return baton_fail(err, BATON_E_no_memory, "no memory for an outcome");
        }
        memcpy(o->result, raw.at, raw.len);
        o->result[raw.len] = '\0';
        o->result_len = raw.len;
    }
    return BATON_OK;
}

baton_code outcome_parse(const void *bytes, size_t len, struct outcome **ret_outcome,
                         struct baton_error *err)
{
    struct json_doc *doc = NULL;
    struct outcome *outcome = calloc(1, sizeof(*outcome));
    baton_code rc;
    if (outcome == NULL) {
        return baton_fail(err, BATON_E_no_memory, "no memory for an outcome");
    }
    if ((rc = json_parse(bytes, len, LIMIT_RECORD, OUTCOME_DEPTH, &doc, err)) != BATON_OK ||
        (rc = outcome_from(doc, outcome, err)) != BATON_OK) {
        goto out;
    }
    *ret_outcome = outcome;
    outcome = NULL;
out:
    outcome_free(outcome);
    json_free(doc);
    return rc;
}

void outcome_free(struct outcome *outcome)
{
    if (outcome != NULL) {
        free(outcome->result);
        free(outcome);
    }
}
