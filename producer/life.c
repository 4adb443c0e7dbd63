/* Prints a turn's life. Called by cmd_turns.c, cmd_turns_watch.c, cmd_dlq_show.c and why.c. */
#include "producer/life.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "common/base/table.h"
#include "common/base/text.h"
#include "common/record/json.h"
#include "common/record/usage.h"
#include "topics/outcomes.h"

#include <stdio.h>
#include <string.h>

bool life_ended(const struct turn_record *record)
{
    return record->state == TURN_parked ||
           (!turn_state_open(record->state) && record->state != TURN_delegated);
}

baton_code life_code(const struct turn_record *record)
{
    switch (record->state) {
    case TURN_completed:
        return BATON_OK;
    case TURN_parked:
        return record->code != BATON_OK ? record->code : BATON_E_executor_failed;
    case TURN_cancelled:
        return BATON_E_turn_closed;
    case TURN_queued:
    case TURN_running:
    case TURN_delegated:
    case TURN_STATE_COUNT:
        break;
    }
    return BATON_E_timed_out;
}

struct wall_ms life_deadline(const struct turn_record *record)
{
    struct wall_ms at = {0};
    struct json_doc *doc = NULL;
    size_t len = 0;
    if (record->handoff != NULL &&
        json_parse(record->handoff, record->handoff_len, LIMIT_VALUE, LIMIT_JSON_DEPTH, &doc,
                   NULL) == BATON_OK &&
        json_kind(json_root(doc)) == JSON_object) {
        const char *text = json_member_text(json_root(doc), "deadline", &len);
        at = len > 0 && wall_parse(text, len, &at) ? at : (struct wall_ms){0};
    }
    json_free(doc);
    return at;
}

/* ---- JSON ---- */

static void some(struct jsonw *w, const char *key, const char *text)
{
    jsonw_key_text(w, key, text != NULL && text[0] != '\0' ? text : NULL);
}

static void time_or_null(struct jsonw *w, const char *key, struct wall_ms at)
{
    some(w, key, at.v != 0 ? wall_text(at).s : NULL);
}

static void attempt_json(struct jsonw *w, const struct attempt *attempt)
{
    jsonw_begin_object(w);
    jsonw_key_int(w, "no", attempt->no);
    jsonw_key_text(w, "service", attempt->service.s);
    some(w, "worker", attempt->worker.s);
    some(w, "profile", attempt->profile.s);
    jsonw_key_text(w, "state", attempt_state_word(attempt->state));
    some(w, "class", attempt->has_class ? failure_word(attempt->class) : NULL);
    time_or_null(w, "started_at", attempt->started_at);
    time_or_null(w, "ended_at", attempt->ended_at);
    some(w, "note", attempt->note);
    if (attempt->late) {
        jsonw_key_bool(w, "late", true);
    }
    if (attempt->probe) {
        jsonw_key_bool(w, "probe", true);
    }
    jsonw_key(w, "usage");
    if (attempt->usage != NULL) {
        jsonw_raw(w, attempt->usage, strlen(attempt->usage));
    } else {
        jsonw_null(w);
    }
    jsonw_end(w);
}

/* What all attempts took together; false: none has told anything. */
static bool usage_sum(const struct turn_life *life, struct usage *ret_sum)
{
    bool any = false;
    *ret_sum = usage_none();
    for (size_t i = 0; i < life->n_attempts; i++) {
        struct usage one;
        if (usage_parse(life->attempts[i].usage, &one)) {
            usage_add(ret_sum, &one);
            any = true;
        }
    }
    return any;
}

void life_print_json(const struct turn_life *life, struct buf *out)
{
    const struct turn_record *now = &life->now;
    struct verdict_text verdict = result_verdict(now->result, now->result_len);
    struct jsonw w = jsonw_to(out);
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "turn_id", now->id.s);
    jsonw_key_text(&w, "task_id", now->task_id.s);
    jsonw_key_int(&w, "task_rev", now->task_rev);
    jsonw_key_text(&w, "role", role_word(now->role));
    jsonw_key_text(&w, "service", life->service);
    jsonw_key_text(&w, "born", now->service.s);
    jsonw_key_text(&w, "origin", now->origin.s);
    jsonw_key_text(&w, "intent", now->intent.s);
    some(&w, "run_id", now->run_id.s);
    jsonw_key_int(&w, "epoch", now->epoch);
    jsonw_key_text(&w, "state", turn_state_word(now->state));
    some(&w, "verdict", verdict.s);
    some(&w, "code", now->code != BATON_OK ? baton_code_word(now->code) : NULL);
    jsonw_key_int(&w, "attempt", now->attempt);
    jsonw_key_int(&w, "failures", now->failures);
    jsonw_key_int(&w, "losses", now->losses);
    jsonw_key_int(&w, "replays", now->replays);
    some(&w, "to", now->to_service.s);
    some(&w, "cancelled_by", now->cancel_by.s);
    some(&w, "cancel_reason", now->cancel_reason);
    time_or_null(&w, "created_at", now->created_at);
    time_or_null(&w, "updated_at", now->updated_at);
    time_or_null(&w, "ended_at", now->ended_at);
    time_or_null(&w, "not_before", now->not_before);
    time_or_null(&w, "deadline", life_deadline(now));
    some(&w, "worker", now->lease_worker.s);
    some(&w, "waits_for",
         now->state == TURN_queued && life->circuit.state != CIRCUIT_closed ? "circuit" : NULL);
    jsonw_key(&w, "attempts");
    jsonw_begin_array(&w);
    for (size_t i = 0; i < life->n_attempts; i++) {
        attempt_json(&w, &life->attempts[i]);
    }
    jsonw_end(&w);
    struct usage sum;
    jsonw_key(&w, "usage");
    if (usage_sum(life, &sum)) {
        jsonw_begin_object(&w);
        usage_numbers(&sum, &w);
        jsonw_end(&w);
    } else {
        jsonw_null(&w);
    }
    jsonw_key(&w, "result");
    jsonw_raw(&w, "", 0);
    if (now->result != NULL) {
        result_print(now->result, now->result_len, out);
    } else {
        buf_add_text(out, "null");
    }
    jsonw_end(&w);
    buf_add_char(out, '\n');
}

/* ---- text ---- */

static void line(struct buf *out, const char *name, const char *text)
{
    if (text != NULL && text[0] != '\0') {
        buf_printf(out, "%-10s ", name);
        text_add(out, text, strlen(text), 0);
        buf_add_char(out, '\n');
    }
}

/* Month to second, UTC: the year stands above the table; on a terminal without what is the day
 * of the turn's birth, that stands there, too. */
static void short_time(struct table *table, struct wall_ms at, struct wall_ms born, bool terminal)
{
    struct time_text text = wall_text(at);
    bool same_day = terminal && strncmp(text.s, wall_text(born).s, 10) == 0;
    text.s[10] = ' ';
    text.s[19] = '\0';
    table_whole(table, at.v == 0 ? NULL : text.s + (same_day ? 11 : 5));
}

static void attempts_text(const struct turn_life *life, size_t width, struct buf *out)
{
    static const char *const titles[] = {"NO",    "SERVICE", "WORKER", "PROFILE", "STATE",
                                         "CLASS", "STARTED", "ENDED",  "NOTE"};
    struct table *table = table_new(titles, 9);
    if (table == NULL) {
        out->broken = true;
        return;
    }
    for (size_t i = 0; i < life->n_attempts; i++) {
        const struct attempt *a = &life->attempts[i];
        table_int(table, a->no);
        table_text(table, a->service.s);
        table_text(table, a->worker.s[0] != '\0' ? a->worker.s : NULL);
        table_text(table, a->profile.s[0] != '\0' ? a->profile.s : NULL);
        table_whole(table, attempt_state_word(a->state));
        table_whole(table, a->has_class ? failure_word(a->class) : NULL);
        short_time(table, a->started_at, life->now.created_at, width > 0);
        short_time(table, a->ended_at, life->now.created_at, width > 0);
        table_whole(table, a->note != NULL && a->note[0] != '\0' ? a->note : NULL);
    }
    buf_add_char(out, '\n');
    if (!table_print(table, width, out)) {
        out->broken = true;
    }
    table_free(table);
}

static void number(struct table *table, int64_t value)
{
    if (value >= 0) {
        table_int(table, value);
    } else {
        table_text(table, NULL);
    }
}

/* Millionths of a dollar as dollars. */
static void money(struct table *table, int64_t micros)
{
    char text[32];
    snprintf(text, sizeof(text), "$%lld.%06lld", (long long)(micros / 1000000),
             (long long)(micros % 1000000));
    table_whole(table, micros >= 0 ? text : NULL);
}

static void usage_row(struct table *table, const char *no, const struct usage *usage)
{
    table_whole(table, no);
    table_text(table, usage->agent[0] != '\0' ? usage->agent : NULL);
    table_text(table, usage->model[0] != '\0' ? usage->model : NULL);
    table_text(table, usage->verdict_from[0] != '\0' ? usage->verdict_from : NULL);
    number(table, usage->input_tokens);
    number(table, usage->cached_tokens);
    number(table, usage->output_tokens);
    money(table, usage->cost_micros);
    table_text(table, usage->cost_from[0] != '\0' ? usage->cost_from : NULL);
    number(table, usage->duration_ms);
    table_text(table, usage->session[0] != '\0' ? usage->session : NULL);
}

/* What each attempt took, and all of them: only where an executor tells it. */
static void usage_text_of(const struct turn_life *life, size_t width, struct buf *out)
{
    static const char *const titles[] = {"NO",      "AGENT",  "MODEL",  "VERDICT BY",
                                         "IN",      "CACHED", "OUT",    "COST",
                                         "COST BY", "MS",     "SESSION"};
    struct usage sum;
    struct usage one;
    if (!usage_sum(life, &sum)) {
        return;
    }
    struct table *table = table_new(titles, COUNT_OF(titles));
    size_t rows = 0;
    if (table == NULL) {
        out->broken = true;
        return;
    }
    for (size_t i = 0; i < life->n_attempts; i++) {
        char no[16];
        if (usage_parse(life->attempts[i].usage, &one)) {
            snprintf(no, sizeof(no), "%d", life->attempts[i].no);
            usage_row(table, no, &one);
            rows++;
        }
    }
    if (rows > 1) {
        usage_row(table, "all", &sum);
    }
    buf_add_char(out, '\n');
    if (!table_print(table, width, out)) {
        out->broken = true;
    }
    table_free(table);
}

static void scalar(const struct json_value *value, struct buf *out)
{
    size_t len;
    switch (json_kind(value)) {
    case JSON_text: {
        const char *text = json_text(value, &len);
        text_add(out, text, len, 400);
        break;
    }
    case JSON_int:
        buf_add_int(out, json_int(value));
        break;
    case JSON_bool:
        buf_add_text(out, json_bool(value) ? "yes" : "no");
        break;
    case JSON_null:
        buf_add_text(out, "-");
        break;
    case JSON_array:
    case JSON_object:
        buf_add_text(out, "...");
        break;
    }
}

static void item_text(const struct json_value *item, struct buf *out)
{
    bool first = true;
    buf_add_text(out, "  - ");
    if (json_kind(item) != JSON_object) {
        scalar(item, out);
    } else {
        for (const struct json_value *v = json_first(item); v != NULL; v = json_next(v)) {
            buf_add_text(out, first ? "" : ", ");
            text_add(out, json_name(v), strlen(json_name(v)), 64);
            buf_add_text(out, ": ");
            scalar(v, out);
            first = false;
        }
    }
    buf_add_char(out, '\n');
}

static void result_text(const struct turn_record *now, struct buf *out)
{
    struct json_doc *doc = NULL;
    struct buf summary = BUF_INIT;
    if (now->result == NULL) {
        return;
    }
    result_summary(now->result, now->result_len, &summary);
    if (buf_ok(&summary) && summary.len > 0) {
        buf_add_text(out, "\nsummary\n");
        text_add_lines(out, summary.data, summary.len, LIMIT_SUMMARY, "  ");
        if (out->len > 0 && out->data[out->len - 1] != '\n') {
            buf_add_char(out, '\n');
        }
    }
    buf_done(&summary);
    if (json_parse(now->result, now->result_len, LIMIT_RECORD, LIMIT_JSON_DEPTH + 4, &doc, NULL) !=
        BATON_OK) {
        return;
    }
    const struct json_value *root = json_root(doc);
    const struct json_value *items =
        json_kind(root) == JSON_object ? json_member(root, "items") : NULL;
    if (items != NULL && json_kind(items) == JSON_array && json_count(items) > 0) {
        buf_add_text(out, "\nitems\n");
        for (const struct json_value *v = json_first(items); v != NULL; v = json_next(v)) {
            item_text(v, out);
        }
    }
    json_free(doc);
}

static void state_text(const struct turn_life *life, struct buf *out)
{
    const struct turn_record *now = &life->now;
    struct verdict_text verdict = result_verdict(now->result, now->result_len);
    buf_printf(out, "%-10s %s", "state", turn_state_word(now->state));
    switch (now->state) {
    case TURN_parked:
        buf_printf(out, " (%s: %s)", baton_code_word(now->code), baton_code_text(now->code));
        break;
    case TURN_delegated:
        buf_printf(out, " to %s, which has not taken it in yet", now->to_service.s);
        break;
    case TURN_running:
        buf_printf(out, " at worker %s", now->lease_worker.s);
        break;
    case TURN_cancelled:
        buf_printf(out, " by %s", now->cancel_by.s);
        break;
    case TURN_queued:
        if (now->not_before.v != 0) {
            buf_printf(out, ", not before %s", wall_text(now->not_before).s);
        }
        if (life->circuit.state != CIRCUIT_closed) {
            buf_printf(out, ", waits until the provider is back (circuit of %s: %s)",
                       life->circuit.worker.s, failure_word(life->circuit.class));
        }
        break;
    case TURN_completed:
    case TURN_STATE_COUNT:
        break;
    }
    buf_add_char(out, '\n');
    line(out, "verdict", verdict.s);
    line(out, "reason", now->cancel_reason);
}

void life_print_text(const struct turn_life *life, size_t width, struct buf *out)
{
    const struct turn_record *now = &life->now;
    line(out, "turn", now->id.s);
    buf_printf(out, "%-10s ", "task");
    text_add(out, now->task_id.s, strlen(now->task_id.s), 0);
    buf_printf(out, " (revision %d)\n", (int)now->task_rev);
    line(out, "role", role_word(now->role));
    line(out, "service", life->service);
    if (strcmp(life->service, now->service.s) != 0) {
        line(out, "born at", now->service.s);
    }
    state_text(life, out);
    line(out, "intent", now->intent.s);
    line(out, "run", now->run_id.s);
    buf_printf(out, "%-10s by %s at %s\n", "created", now->origin.s, wall_text(now->created_at).s);
    const struct wall_ms deadline = life_deadline(now);
    if (deadline.v != 0) {
        line(out, "deadline", wall_text(deadline).s);
    }
    if (now->ended_at.v != 0) {
        line(out, "ended", wall_text(now->ended_at).s);
    }
    buf_printf(out, "%-10s failures %d, losses %d, replays %d\n", "counted", now->failures,
               now->losses, now->replays);
    attempts_text(life, width, out);
    usage_text_of(life, width, out);
    result_text(now, out);
}
