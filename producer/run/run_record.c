/*
 * The record of a run, written and read. Called by the coordinator, and by whoever shows runs.
 *
 * Its reader is strict: it is written by coordinators only, and what they would not have written is
 * none. The workflow stands in it as the bytes of its file, so that a run goes on by what it began
 * with, whatever becomes of the file.
 */
#include "producer/run/run.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/record/fields.h"
#include "producer/run/tbl/run_fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHAT "run"

static const struct field run_table[] = {RUN_FIELDS(FIELD_ROW)};
static const struct field pending_table[] = {RUN_PENDING_FIELDS(FIELD_ROW)};
static const struct field asked_table[] = {RUN_ASKED_FIELDS(FIELD_ROW)};
static const struct field edge_table[] = {RUN_EDGE_FIELDS(FIELD_ROW)};
static const struct field turn_table[] = {RUN_TURN_FIELDS(FIELD_ROW)};
#define R_INDEX(name, kind, need, max) R_##name,
#define P_INDEX(name, kind, need, max) P_##name,
#define A_INDEX(name, kind, need, max) A_##name,
#define E_INDEX(name, kind, need, max) E_##name,
#define T_INDEX(name, kind, need, max) T_##name,
enum { RUN_FIELDS(R_INDEX) R_COUNT };
enum { RUN_PENDING_FIELDS(P_INDEX) P_COUNT };
enum { RUN_ASKED_FIELDS(A_INDEX) A_COUNT };
enum { RUN_EDGE_FIELDS(E_INDEX) E_COUNT };
enum { RUN_TURN_FIELDS(T_INDEX) T_COUNT };
#undef R_INDEX
#undef P_INDEX
#undef A_INDEX
#undef E_INDEX
#undef T_INDEX

/* ---- writing ---- */

static void write_edges(struct jsonw *w, const struct run *run)
{
    jsonw_key(w, "edges");
    jsonw_begin_array(w);
    for (size_t i = 0; i < run->n_edges; i++) {
        const struct run_edge *edge = &run->edges[i];
        jsonw_begin_object(w);
        field_write(w, "name", edge->name.s);
        jsonw_key_int(w, "taken", edge->taken);
        jsonw_key_int(w, "total", edge->total);
        jsonw_key_int(w, "cost", edge->cost);
        jsonw_key_int(w, "time_ms", edge->time_ms);
        jsonw_end(w);
    }
    jsonw_end(w);
}

static void write_pending(struct jsonw *w, const struct run_pending *pending)
{
    jsonw_begin_object(w);
    field_write(w, "turn_id", pending->turn.s);
    if (pending->target != NULL) {
        field_write(w, "target", pending->target);
    }
    if (pending->summary != NULL) {
        field_write(w, "summary", pending->summary);
    }
    if (pending->data != NULL) { /* as a text: members of the root only are kept as they stand */
        field_write(w, "data", pending->data);
    }
    jsonw_end(w);
}

static void write_asked(struct jsonw *w, const struct run_asked *asked)
{
    jsonw_begin_object(w);
    field_write(w, "request", asked->request.s);
    field_write(w, "by", asked->by.s);
    jsonw_key_bool(w, "person", asked->person);
    field_write(w, "from", asked->from);
    field_write(w, "target", asked->target);
    field_write(w, "summary", asked->summary);
    field_write(w, "data", asked->data);
    jsonw_end(w);
}

static void write_turn(struct jsonw *w, const struct run_turn *turn)
{
    jsonw_begin_object(w);
    jsonw_key_int(w, "no", turn->no);
    field_write(w, "turn_id", turn->id.s);
    jsonw_key_int(w, "epoch", turn->epoch);
    jsonw_key_int(w, "task_rev", turn->task_rev);
    field_write(w, "by", turn->by.s);
    field_write(w, "from", turn->from.s);
    field_write(w, "slot", turn->slot.s);
    field_write(w, "role", role_word(turn->role));
    field_write(w, "born", turn->born.s);
    field_write(w, "service", turn->service.s);
    jsonw_key_int(w, "attempt", turn->attempt);
    field_write(w, "state", turn_state_word(turn->state));
    if (turn->has_verdict) {
        field_write(w, "verdict", verdict_word(turn->verdict));
    }
    if (turn->code != BATON_OK) {
        field_write(w, "code", baton_code_word(turn->code));
    }
    field_write_digest(w, "content", &turn->content);
    field_write_digest(w, "digest", &turn->digest);
    if (turn->cost > 0) {
        jsonw_key_int(w, "cost", turn->cost);
    }
    field_write_time(w, "begun_at", turn->begun_at);
    field_write_time(w, "claimed_at", turn->claimed_at);
    field_write_time(w, "ended_at", turn->ended_at);
    jsonw_end(w);
}

void run_encode(const struct run *run, struct buf *value)
{
    struct jsonw w = jsonw_to(value);
    jsonw_begin_object(&w);
    jsonw_key_int(&w, "version", 1);
    field_write(&w, "run_id", run->id.s);
    jsonw_key_int(&w, "epoch", run->epoch);
    field_write(&w, "task_id", run->task_id.s);
    jsonw_key_int(&w, "task_rev", run->task_rev);
    field_write(&w, "task_status", task_status_word(run->task_status));
    field_write(&w, "state", run_state_word(run->state));
    field_write_some(&w, "why", run->why);
    if (run->code != BATON_OK) {
        field_write(&w, "code", baton_code_word(run->code));
        field_write_some(&w, "stage", run->stage.s);
    }
    if (run->pending.turn.s[0] != '\0') {
        jsonw_key(&w, "pending");
        write_pending(&w, &run->pending);
    }
    if (run->n_later > 0) {
        jsonw_key(&w, "later");
        jsonw_begin_array(&w);
        for (size_t i = 0; i < run->n_later; i++) {
            write_pending(&w, &run->later[i]);
        }
        jsonw_end(&w);
    }
    if (run->held.turn.s[0] != '\0') {
        jsonw_key(&w, "held");
        write_pending(&w, &run->held);
    }
    if (run->asked.request.s[0] != '\0') {
        jsonw_key(&w, "asked");
        write_asked(&w, &run->asked);
    }
    jsonw_key_int(&w, "request_no", run->request_no);
    field_write(&w, "by", run->by.s);
    field_write(&w, "summary", run->summary);
    if (run->data != NULL) {
        jsonw_key_raw(&w, "data", run->data, strlen(run->data));
    }
    if (run->payload != NULL) {
        jsonw_key_raw(&w, "payload", run->payload, strlen(run->payload));
    }
    field_write_some(&w, "subject", run->subject != NULL ? run->subject : "");
    field_write_time(&w, "started_at", run->started_at);
    field_write_time(&w, "deadline", run->deadline);
    field_write_time(&w, "updated_at", run->updated_at);
    field_write_time(&w, "ended_at", run->ended_at);
    jsonw_key_int(&w, "n_turns", run->n_turns);
    write_edges(&w, run);
    jsonw_key(&w, "turns");
    jsonw_begin_array(&w);
    for (size_t i = 0; i < run->n_kept; i++) {
        write_turn(&w, &run->turns[i]);
    }
    jsonw_end(&w);
    jsonw_key_plain(&w, "workflow", run->workflow->text, run->workflow->text_len);
    jsonw_end(&w);
}

/* ---- reading ---- */

static baton_code bad(const char *name, const struct json_value *value, struct baton_error *err)
{
    return baton_fail(err, BATON_E_invalid_envelope, WHAT ": '%s' is no %s",
                      text_quote_of(field_text(value)).s, name);
}

static bool status_parse(const char *text, enum task_status *ret_status)
{
    for (int i = 0; i < TASK_STATUS_COUNT; i++) {
        if (strcmp(text, task_status_word((enum task_status)i)) == 0) {
            *ret_status = (enum task_status)i;
            return true;
        }
    }
    return false;
}

static baton_code read_edges(const struct json_value *list, struct run *run,
                             struct baton_error *err)
{
    const size_t n = list != NULL ? json_count(list) : 0;
    run->edges = n > 0 ? calloc(n, sizeof(run->edges[0])) : NULL;
    if (n > 0 && run->edges == NULL) {
        return baton_fail(err, BATON_E_no_memory, "no memory for a run");
    }
    for (const struct json_value *one = list != NULL ? json_first(list) : NULL; one != NULL;
         one = json_next(one)) {
        const struct json_value *v[E_COUNT];
        baton_code rc = fields_read(one, "edge", edge_table, E_COUNT, v, err);
        if (rc != BATON_OK) {
            return rc;
        }
        run->edges[run->n_edges++] = (struct run_edge){
            .name = plain_id_of(field_text(v[E_name])),
            .taken = (int)field_int(v[E_taken]),
            .total = (int)field_int(v[E_total]),
            .cost = field_int(v[E_cost]),
            .time_ms = field_int(v[E_time_ms]),
        };
    }
    return BATON_OK;
}

static baton_code read_turn(const struct json_value *value, struct run_turn *turn,
                            struct baton_error *err)
{
    const struct json_value *v[T_COUNT];
    size_t len;
    baton_code rc = fields_read(value, "turn", turn_table, T_COUNT, v, err);
    if (rc != BATON_OK) {
        return rc;
    }
    turn->no = (int)field_int(v[T_no]);
    turn->id = turn_id_of(field_text(v[T_turn_id]));
    turn->epoch = (int32_t)field_int(v[T_epoch]);
    turn->task_rev = (int32_t)field_int(v[T_task_rev]);
    turn->by = plain_id_of(field_text(v[T_by]));
    turn->from = plain_id_of(field_text(v[T_from]));
    turn->slot = plain_id_of(field_text(v[T_slot]));
    turn->born = service_id_of(field_text(v[T_born]));
    turn->service = service_id_of(field_text(v[T_service]));
    turn->attempt = (int)field_int(v[T_attempt]);
    turn->cost = field_int(v[T_cost]);
    turn->begun_at = field_time(v[T_begun_at]);
    turn->claimed_at = field_time(v[T_claimed_at]);
    turn->ended_at = field_time(v[T_ended_at]);
    turn->has_verdict = v[T_verdict] != NULL;
    const char *role = json_text(v[T_role], &len);
    BATON_INVARIANT(role_parse(role, len, &turn->role));
    const char *content = json_text(v[T_content], &len);
    const char *digest = json_text(v[T_digest], NULL);
    if (!hex_decode(content, len, turn->content.b, DIGEST_LEN) ||
        !hex_decode(digest, strlen(digest), turn->digest.b, DIGEST_LEN)) {
        return bad("digest", v[T_content], err);
    }
    const char *state = json_text(v[T_state], &len);
    if (!turn_state_parse(state, len, &turn->state)) {
        return bad("state of a turn", v[T_state], err);
    }
    if (turn->has_verdict) {
        const char *verdict = json_text(v[T_verdict], &len);
        if (!verdict_parse(verdict, len, &turn->verdict)) {
            return bad("verdict", v[T_verdict], err);
        }
    }
    if (v[T_code] != NULL && !baton_code_parse(field_text(v[T_code]), &turn->code)) {
        return bad("code", v[T_code], err);
    }
    return BATON_OK;
}

static baton_code read_turns(const struct json_value *list, struct run *run,
                             struct baton_error *err)
{
    baton_code rc = BATON_OK;
    const int n_turns = run->n_turns;
    for (const struct json_value *one = list != NULL ? json_first(list) : NULL;
         one != NULL && rc == BATON_OK; one = json_next(one)) {
        struct run_turn *turn = run_add_turn(run);
        rc = turn != NULL ? read_turn(one, turn, err)
                          : baton_fail(err, BATON_E_no_memory, "no memory for a run");
    }
    run->n_turns = n_turns;
    return rc;
}

/* A member of the root as it stands, copied; NULL: absent. */
static bool copy_raw(const struct json_doc *doc, const char *name, char **ret_text)
{
    const struct json_span raw = json_raw(doc, name);
    if (raw.at != NULL && (*ret_text = malloc(raw.len + 1)) != NULL) {
        memcpy(*ret_text, raw.at, raw.len);
        (*ret_text)[raw.len] = '\0';
    }
    return raw.at == NULL || *ret_text != NULL;
}

static baton_code read_pending(const struct json_value *value, struct run_pending *pending,
                               struct baton_error *err)
{
    const struct json_value *v[P_COUNT];
    baton_code rc =
        value != NULL ? fields_read(value, "pending", pending_table, P_COUNT, v, err) : BATON_OK;
    if (value == NULL || rc != BATON_OK) {
        return rc;
    }
    pending->turn = turn_id_of(field_text(v[P_turn_id]));
    return field_copy(v[P_target], &pending->target) &&
                   field_copy(v[P_summary], &pending->summary) &&
                   field_copy(v[P_data], &pending->data)
               ? BATON_OK
               : baton_fail(err, BATON_E_no_memory, "no memory for a run");
}

static baton_code read_asked(const struct json_value *value, struct run_asked *asked,
                             struct baton_error *err)
{
    const struct json_value *v[A_COUNT];
    baton_code rc =
        value != NULL ? fields_read(value, "asked", asked_table, A_COUNT, v, err) : BATON_OK;
    if (value == NULL || rc != BATON_OK) {
        return rc;
    }
    asked->request = plain_id_of(field_text(v[A_request]));
    asked->by = plain_id_of(field_text(v[A_by]));
    asked->person = json_bool(v[A_person]);
    return field_copy(v[A_from], &asked->from) && field_copy(v[A_target], &asked->target) &&
                   field_copy(v[A_summary], &asked->summary) && field_copy(v[A_data], &asked->data)
               ? BATON_OK
               : baton_fail(err, BATON_E_no_memory, "no memory for a run");
}

static baton_code read_later(const struct json_value *array, struct run *run,
                             struct baton_error *err)
{
    baton_code rc = BATON_OK;
    const size_t n = array != NULL ? json_count(array) : 0;
    run->later = n > 0 ? calloc(n, sizeof(*run->later)) : NULL;
    if (n > 0 && run->later == NULL) {
        return baton_fail(err, BATON_E_no_memory, "no memory for a run");
    }
    for (const struct json_value *one = n > 0 ? json_first(array) : NULL;
         one != NULL && rc == BATON_OK; one = json_next(one)) {
        rc = read_pending(one, &run->later[run->n_later++], err);
    }
    return rc;
}

static baton_code read_words(const struct json_value *const *v, struct run *run,
                             struct baton_error *err)
{
    size_t len;
    const char *state = json_text(v[R_state], &len);
    if (!run_state_parse(state, len, &run->state)) {
        return bad("state of a run", v[R_state], err);
    }
    if (!status_parse(field_text(v[R_task_status]), &run->task_status)) {
        return bad("status of a task", v[R_task_status], err);
    }
    if (v[R_code] != NULL && !baton_code_parse(field_text(v[R_code]), &run->code)) {
        return bad("code", v[R_code], err);
    }
    return BATON_OK;
}

static baton_code read_workflow(const struct json_value *value, struct workflow_shelf *shelf,
                                struct run *run, struct baton_error *err)
{
    size_t len;
    const char *text = json_text(value, &len);
    run->shelved = shelf != NULL;
    baton_code rc =
        run->shelved ? workflow_shelf_find(shelf, run->id.s, text, len, &run->workflow, err)
                     : workflow_parse(run->id.s, text, len, NULL, &run->workflow, NULL, NULL, err);
    return rc == BATON_E_bad_config ? baton_fail(err, BATON_E_invalid_envelope,
                                                 WHAT ": its workflow is none that can be read")
                                    : rc;
}

static baton_code read_run(const struct json_doc *doc, struct workflow_shelf *shelf,
                           struct run *run, struct baton_error *err)
{
    const struct json_value *v[R_COUNT];
    const struct json_value *root = json_root(doc);
    baton_code rc;
    if ((rc = fields_version(root, WHAT, err)) != BATON_OK ||
        (rc = fields_read(root, WHAT, run_table, R_COUNT, v, err)) != BATON_OK ||
        (rc = read_words(v, run, err)) != BATON_OK) {
        return rc;
    }
    run->id = plain_id_of(field_text(v[R_run_id]));
    run->epoch = (int32_t)field_int(v[R_epoch]);
    run->task_id = task_id_of(field_text(v[R_task_id]));
    run->task_rev = (int32_t)field_int(v[R_task_rev]);
    snprintf(run->why, sizeof(run->why), "%s", field_text(v[R_why]));
    run->stage = plain_id_of(field_text(v[R_stage]));
    run->request_no = (int32_t)field_int(v[R_request_no]);
    run->by = plain_id_of(field_text(v[R_by]));
    run->started_at = field_time(v[R_started_at]);
    run->deadline = field_time(v[R_deadline]);
    run->updated_at = field_time(v[R_updated_at]);
    run->ended_at = field_time(v[R_ended_at]);
    run->n_turns = (int)field_int(v[R_n_turns]);
    if (!field_copy(v[R_summary], &run->summary) || !copy_raw(doc, "data", &run->data) ||
        !copy_raw(doc, "payload", &run->payload) || !field_copy(v[R_subject], &run->subject)) {
        return baton_fail(err, BATON_E_no_memory, "no memory for a run");
    }
    if ((rc = read_pending(v[R_pending], &run->pending, err)) != BATON_OK ||
        (rc = read_later(v[R_later], run, err)) != BATON_OK ||
        (rc = read_pending(v[R_held], &run->held, err)) != BATON_OK ||
        (rc = read_asked(v[R_asked], &run->asked, err)) != BATON_OK ||
        (rc = read_edges(v[R_edges], run, err)) != BATON_OK ||
        (rc = read_turns(v[R_turns], run, err)) != BATON_OK) {
        return rc;
    }
    return read_workflow(v[R_workflow], shelf, run, err);
}

baton_code run_parse_shelved(const void *bytes, size_t len, struct workflow_shelf *shelf,
                             struct run **ret_run, struct baton_error *err)
{
    struct json_doc *doc = NULL;
    struct run *run = calloc(1, sizeof(*run));
    baton_code rc;
    if (run == NULL) {
        return baton_fail(err, BATON_E_no_memory, "no memory for a run");
    }
    if ((rc = json_parse(bytes, len, LIMIT_RECORD, LIMIT_JSON_DEPTH + 2, &doc, err)) == BATON_OK &&
        (rc = read_run(doc, shelf, run, err)) == BATON_OK) {
        *ret_run = run;
        run = NULL;
    }
    run_free(run);
    json_free(doc);
    return rc;
}

baton_code run_parse(const void *bytes, size_t len, struct run **ret_run, struct baton_error *err)
{
    return run_parse_shelved(bytes, len, NULL, ret_run, err);
}

/* Nothing but plain words and numbers stands before it, as run_encode writes: no text can look so. */
#define STATE_WITHIN 512

bool run_record_ended(const void *bytes, size_t len)
{
    static const char begin[] = "{\"version\":1,";
    static const char key[] = ",\"state\":\"";
    const char *text = bytes;
    enum run_state state;
    if (len < sizeof(begin) || memcmp(text, begin, sizeof(begin) - 1) != 0 ||
        text[len - 1] != '}') {
        return false;
    }
    const char *at = memmem(text, len < STATE_WITHIN ? len : STATE_WITHIN, key, sizeof(key) - 1);
    const char *word = at != NULL ? at + sizeof(key) - 1 : NULL;
    const char *end = at != NULL ? memchr(word, '"', (size_t)(text + len - word)) : NULL;
    return end != NULL && run_state_parse(word, (size_t)(end - word), &state) &&
           !run_state_open(state);
}
