/*
 * The turn-log record in memory: its life, its copies, its attempts, and how it is written.
 * Called by the engine's callers and the store; turn_record_parse.c reads it.
 */
#include "common/record/turn_record.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/record/fields.h"
#include "common/record/pass.h"
#include "common/record/usage.h"

#include <stdlib.h>
#include <string.h>

void turn_record_init(struct turn_record *record)
{
    memset(record, 0, sizeof(*record));
}

void turn_record_done(struct turn_record *record)
{
    for (size_t i = 0; i < record->n_attempts; i++) {
        attempt_done(&record->attempts[i]);
    }
    for (size_t i = 0; i < record->n_passes; i++) {
        free(record->passes[i]);
    }
    free(record->attempts);
    free(record->passes);
    free(record->result);
    free(record->cancel_reason);
    free(record->handoff);
    free(record->signature);
    free(record->traceparent);
    turn_record_init(record);
}

/* Copies len bytes and a NUL; NULL stays NULL. */
static bool copy_bytes(const char *from, size_t len, char **ret_to)
{
    char *to = NULL;
    if (from != NULL) {
        to = malloc(len + 1);
        if (to == NULL) {
            return false;
        }
        memcpy(to, from, len);
        to[len] = '\0';
    }
    *ret_to = to;
    return true;
}

static bool copy_text(const char *from, char **ret_to)
{
    return copy_bytes(from, from == NULL ? 0 : strlen(from), ret_to);
}

void attempt_done(struct attempt *attempt)
{
    free(attempt->note);
    free(attempt->usage);
    attempt->note = NULL;
    attempt->usage = NULL;
}

bool attempt_copy(const struct attempt *from, struct attempt *ret_to)
{
    struct attempt to = *from;
    to.note = NULL;
    to.usage = NULL;
    if (!copy_text(from->note, &to.note) || !copy_text(from->usage, &to.usage)) {
        attempt_done(&to);
        return false;
    }
    *ret_to = to;
    return true;
}

static bool copy_lists(const struct turn_record *from, struct turn_record *to)
{
    if (from->n_attempts > 0) {
        to->attempts = malloc(from->n_attempts * sizeof(to->attempts[0]));
        if (to->attempts == NULL) {
            return false;
        }
    }
    for (; to->n_attempts < from->n_attempts; to->n_attempts++) {
        if (!attempt_copy(&from->attempts[to->n_attempts], &to->attempts[to->n_attempts])) {
            return false;
        }
    }
    if (from->n_passes > 0) {
        to->passes = calloc(from->n_passes, sizeof(to->passes[0]));
        if (to->passes == NULL) {
            return false;
        }
    }
    for (; to->n_passes < from->n_passes; to->n_passes++) {
        if (!copy_text(from->passes[to->n_passes], &to->passes[to->n_passes])) {
            return false;
        }
    }
    return true;
}

baton_code turn_record_copy(const struct turn_record *from, struct turn_record *ret_to)
{
    struct turn_record to = *from;
    to.attempts = NULL;
    to.n_attempts = 0;
    to.passes = NULL;
    to.n_passes = 0;
    to.result = NULL;
    to.cancel_reason = NULL;
    to.handoff = NULL;
    to.signature = NULL;
    to.traceparent = NULL;
    if (!copy_bytes(from->result, from->result_len, &to.result) ||
        !copy_text(from->cancel_reason, &to.cancel_reason) ||
        !copy_bytes(from->handoff, from->handoff_len, &to.handoff) ||
        !copy_text(from->signature, &to.signature) ||
        !copy_text(from->traceparent, &to.traceparent) || !copy_lists(from, &to)) {
        turn_record_done(&to);
        return BATON_E_no_memory;
    }
    *ret_to = to;
    return BATON_OK;
}

/* The first attempt that is this service's own, and what the turn had cost before it: that is signed, what
 * is told of the attempts before it is not. */
static int first_here(const struct turn_record *record, int64_t *ret_cost)
{
    struct pass pass;
    *ret_cost = 0;
    if (record->n_passes == 0 || !pass_read(record->passes[record->n_passes - 1], &pass)) {
        return 1;
    }
    *ret_cost = pass.cost_micros;
    return pass.attempt;
}

/* Adds what the attempt cost, if it is this service's own. */
static void add_cost(const struct attempt *attempt, int first, struct usage *sum)
{
    struct usage one;
    if (attempt->no >= first && usage_parse(attempt->usage, &one)) {
        usage_add(sum, &one);
    }
}

int64_t turn_record_cost(const struct turn_record *record)
{
    struct usage sum = usage_none();
    struct usage before = usage_none();
    int first = first_here(record, &sum.cost_micros);
    before.cost_micros = record->cost_before;
    usage_add(&sum, &before);
    for (size_t i = 0; i < record->n_attempts; i++) {
        add_cost(&record->attempts[i], first, &sum);
    }
    return sum.cost_micros;
}

struct attempt *turn_record_attempt(struct turn_record *record, int no)
{
    for (size_t i = record->n_attempts; i > 0; i--) {
        if (record->attempts[i - 1].no == no) {
            return &record->attempts[i - 1];
        }
    }
    return NULL;
}

struct attempt *turn_record_add_attempt(struct turn_record *record)
{
    if (record->n_attempts == TURN_ATTEMPTS_MAX) {
        struct usage sum = usage_none();
        int64_t elsewhere;
        sum.cost_micros = record->cost_before;
        add_cost(&record->attempts[0], first_here(record, &elsewhere), &sum);
        record->cost_before = sum.cost_micros;
        attempt_done(&record->attempts[0]);
        record->n_attempts--;
        memmove(record->attempts, record->attempts + 1,
                record->n_attempts * sizeof(record->attempts[0]));
    } else {
        struct attempt *attempts =
            realloc(record->attempts, (record->n_attempts + 1) * sizeof(attempts[0]));
        if (attempts == NULL) {
            return NULL;
        }
        record->attempts = attempts;
    }
    struct attempt *attempt = &record->attempts[record->n_attempts++];
    memset(attempt, 0, sizeof(*attempt));
    return attempt;
}

/* Foreign text of at most max bytes, cut between characters: the reader has bounds too. */
static void write_bounded(struct jsonw *w, const char *name, const char *text, size_t max)
{
    size_t len = text == NULL ? 0 : strlen(text);
    if (len > max) {
        uint32_t point;
        size_t at = 0;
        for (;;) {
            size_t n = text_utf8_next(text + at, len - at, &point);
            n = n == 0 ? 1 : n;
            if (at + n > max) {
                break;
            }
            at += n;
        }
        len = at;
    }
    if (len > 0) {
        jsonw_key_plain(w, name, text, len);
    }
}

static void write_attempt(struct jsonw *w, const struct attempt *attempt)
{
    jsonw_begin_object(w);
    jsonw_key_int(w, "no", attempt->no);
    field_write(w, "service", attempt->service.s);
    field_write_some(w, "worker", attempt->worker.s);
    field_write_some(w, "profile", attempt->profile.s);
    field_write(w, "state", attempt_state_word(attempt->state));
    if (attempt->has_class) {
        field_write(w, "class", failure_word(attempt->class));
    }
    field_write_time(w, "started_at", attempt->started_at);
    field_write_time(w, "ended_at", attempt->ended_at);
    write_bounded(w, "note", attempt->note, LIMIT_NOTE);
    if (attempt->late) {
        jsonw_key_bool(w, "late", true);
    }
    if (attempt->probe) {
        jsonw_key_bool(w, "probe", true);
    }
    if (attempt->usage != NULL) {
        jsonw_key_raw(w, "usage", attempt->usage, strlen(attempt->usage));
    }
    jsonw_end(w);
}

static void write_identity(struct jsonw *w, const struct turn_record *record)
{
    field_write(w, "turn_id", record->id.s);
    field_write(w, "origin", record->origin.s);
    field_write(w, "service", record->service.s);
    field_write(w, "role", role_word(record->role));
    field_write(w, "task_id", record->task_id.s);
    jsonw_key_int(w, "task_rev", record->task_rev);
    field_write(w, "run_id", record->run_id.s);
    jsonw_key_int(w, "epoch", record->epoch);
    field_write(w, "intent", record->intent.s);
    field_write_digest(w, "digest", &record->digest);
    field_write_digest(w, "content", &record->content);
    field_write_time(w, "created_at", record->created_at);
}

static void write_state(struct jsonw *w, const struct turn_record *record)
{
    field_write(w, "state", turn_state_word(record->state));
    jsonw_key_int(w, "attempt", record->attempt);
    jsonw_key_int(w, "failures", record->failures);
    jsonw_key_int(w, "losses", record->losses);
    jsonw_key_int(w, "replays", record->replays);
    jsonw_key_int(w, "since", record->since);
    if (record->probes != 0) {
        jsonw_key_int(w, "probes", record->probes);
    }
    if (record->n_tried > 0) {
        jsonw_key(w, "tried");
        jsonw_begin_array(w);
        for (size_t i = 0; i < record->n_tried; i++) {
            jsonw_plain(w, record->tried[i].s, strlen(record->tried[i].s));
        }
        jsonw_end(w);
    }
    field_write_time(w, "not_before", record->not_before);
    if (record->delay_ms != 0) {
        jsonw_key_int(w, "delay_ms", record->delay_ms);
    }
    if (record->lease_worker.s[0] != '\0') {
        jsonw_key(w, "lease");
        jsonw_begin_object(w);
        field_write(w, "worker", record->lease_worker.s);
        field_write(w, "boot", record->lease_boot.s);
        jsonw_end(w);
    }
    if (record->cost_before != 0) {
        jsonw_key_int(w, "cost_before", record->cost_before);
    }
    if (record->n_attempts > 0) {
        jsonw_key(w, "attempts");
        jsonw_begin_array(w);
        for (size_t i = 0; i < record->n_attempts; i++) {
            write_attempt(w, &record->attempts[i]);
        }
        jsonw_end(w);
    }
}

static void write_end(struct jsonw *w, const struct turn_record *record)
{
    if (record->result != NULL) {
        jsonw_key_raw(w, "result", record->result, record->result_len);
    }
    if (record->code != BATON_OK) {
        field_write(w, "code", baton_code_word(record->code));
    }
    if (record->to_service.s[0] != '\0') {
        jsonw_key(w, "to");
        jsonw_begin_object(w);
        field_write(w, "service", record->to_service.s);
        jsonw_key_int(w, "attempt", record->to_attempt);
        jsonw_end(w);
    }
    if (record->cancel_by.s[0] != '\0' || record->cancel_reason != NULL) {
        jsonw_key(w, "cancel");
        jsonw_begin_object(w);
        field_write_some(w, "by", record->cancel_by.s);
        write_bounded(w, "reason", record->cancel_reason, LIMIT_REASON);
        jsonw_end(w);
    }
    if (record->wait) {
        jsonw_key_bool(w, "wait", true);
    }
    field_write_time(w, "updated_at", record->updated_at);
    field_write_time(w, "ended_at", record->ended_at);
}

/* What the next attempt needs: the turn's bytes and their proof. A closed turn has none. */
static void write_open(struct jsonw *w, const struct turn_record *record)
{
    jsonw_key_plain(w, "handoff", record->handoff, record->handoff_len);
    field_write_some(w, "signature", record->signature);
    if (record->n_passes > 0) {
        jsonw_key(w, "passes");
        jsonw_begin_array(w);
        for (size_t i = 0; i < record->n_passes; i++) {
            jsonw_plain(w, record->passes[i], strlen(record->passes[i]));
        }
        jsonw_end(w);
    }
    field_write_some(w, "traceparent", record->traceparent);
}

void turn_record_encode(const struct turn_record *record, struct buf *value)
{
    struct jsonw w = jsonw_to(value);
    jsonw_begin_object(&w);
    jsonw_key_int(&w, "version", 1);
    write_identity(&w, record);
    write_state(&w, record);
    write_end(&w, record);
    if (turn_state_open(record->state)) {
        BATON_PRE(record->handoff != NULL);
        write_open(&w, record);
    }
    jsonw_end(&w);
}
