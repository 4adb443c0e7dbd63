/*
 * Reading a record of the turn log: closed form, and the facts that its owner keeps true.
 * Called where the log is folded (engine's restore) and where turns are shown.
 */
#include "common/record/turn_record.h"

#include "common/base/check.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/record/fields.h"
#include "common/record/usage.h"
#include "common/record/json.h"
#include "common/record/tbl/turn_record_fields.h"

#include <stdlib.h>
#include <string.h>

static const struct field record_table[] = {TURN_RECORD_FIELDS(FIELD_ROW)};
static const struct field attempt_table[] = {ATTEMPT_FIELDS(FIELD_ROW)};
static const struct field lease_table[] = {LEASE_FIELDS(FIELD_ROW)};
static const struct field to_table[] = {TO_FIELDS(FIELD_ROW)};
static const struct field cancel_table[] = {CANCEL_FIELDS(FIELD_ROW)};
#define R_INDEX(name, kind, need, max) R_##name,
#define A_INDEX(name, kind, need, max) A_##name,
#define LEASE_INDEX(name, kind, need, max) LEASE_##name,
#define TO_INDEX(name, kind, need, max) TO_##name,
#define CANCEL_INDEX(name, kind, need, max) CANCEL_##name,
enum { TURN_RECORD_FIELDS(R_INDEX) R_COUNT };
enum { ATTEMPT_FIELDS(A_INDEX) A_COUNT };
enum { LEASE_FIELDS(LEASE_INDEX) LEASE_COUNT };
enum { TO_FIELDS(TO_INDEX) TO_COUNT };
enum { CANCEL_FIELDS(CANCEL_INDEX) CANCEL_COUNT };
#undef R_INDEX
#undef A_INDEX
#undef LEASE_INDEX
#undef TO_INDEX
#undef CANCEL_INDEX

#define WHAT "turn record"
#define RECORD_DEPTH (LIMIT_JSON_DEPTH + 4) /* a result of full depth stands one level down */

static baton_code no_memory(struct baton_error *err)
{
    return baton_fail(err, BATON_E_no_memory, "no memory for a turn record");
}

static baton_code bad_word(const char *name, const struct json_value *value,
                           struct baton_error *err)
{
    return baton_fail(err, BATON_E_invalid_envelope, "turn record: '%s' is no %s",
                      text_quote_of(field_text(value)).s, name);
}

static bool digest_read(const struct json_value *value, struct digest *ret_digest)
{
    size_t len;
    const char *hex = json_text(value, &len);
    return hex_decode(hex, len, ret_digest->b, DIGEST_LEN);
}

static void read_identity(const struct json_value *const *v, struct turn_record *r)
{
    size_t len;
    const char *role = json_text(v[R_role], &len);
    BATON_INVARIANT(role_parse(role, len, &r->role));
    r->id = turn_id_of(field_text(v[R_turn_id]));
    r->origin = plain_id_of(field_text(v[R_origin]));
    r->service = service_id_of(field_text(v[R_service]));
    r->task_id = task_id_of(field_text(v[R_task_id]));
    r->task_rev = (int32_t)json_int(v[R_task_rev]);
    r->run_id = plain_id_of(field_text(v[R_run_id]));
    r->epoch = (int32_t)json_int(v[R_epoch]);
    r->intent = plain_id_of(field_text(v[R_intent]));
    BATON_INVARIANT(digest_read(v[R_digest], &r->digest));
    BATON_INVARIANT(digest_read(v[R_content], &r->content));
    r->created_at = field_time(v[R_created_at]);
}

static baton_code read_tried(const struct json_value *tried, struct turn_record *r,
                             struct baton_error *err)
{
    if (tried == NULL) {
        return BATON_OK;
    }
    for (const struct json_value *v = json_first(tried); v != NULL; v = json_next(v)) {
        size_t len = 0;
        const char *name = json_kind(v) == JSON_text ? json_text(v, &len) : "";
        if (!plain_id_valid(name, len)) {
            return baton_fail(err, BATON_E_invalid_envelope,
                              "turn record: tried holds no profile's name");
        }
        r->tried[r->n_tried++] = plain_id_of(name);
    }
    return BATON_OK;
}

static baton_code read_attempt(const struct json_value *value, struct attempt *ret_attempt,
                               struct baton_error *err)
{
    const struct json_value *v[A_COUNT];
    struct attempt a;
    size_t len;
    baton_code rc = fields_read(value, "attempt", attempt_table, A_COUNT, v, err);
    if (rc != BATON_OK) {
        return rc;
    }
    memset(&a, 0, sizeof(a));
    a.no = (int)json_int(v[A_no]);
    a.service = service_id_of(field_text(v[A_service]));
    a.worker = plain_id_of(field_text(v[A_worker]));
    a.profile = plain_id_of(field_text(v[A_profile]));
    const char *state = json_text(v[A_state], &len);
    if (!attempt_state_parse(state, len, &a.state)) {
        return bad_word("state of an attempt", v[A_state], err);
    }
    a.has_class = v[A_class] != NULL;
    if (a.has_class) {
        const char *class = json_text(v[A_class], &len);
        if (!failure_parse(class, len, &a.class)) {
            return bad_word("failure class", v[A_class], err);
        }
    }
    a.started_at = field_time(v[A_started_at]);
    a.ended_at = field_time(v[A_ended_at]);
    a.late = field_flag(v[A_late]);
    a.probe = field_flag(v[A_probe]);
    if (v[A_usage] != NULL) {
        struct usage usage;
        if ((rc = usage_read(v[A_usage], &usage, err)) != BATON_OK) {
            return rc;
        }
        if ((a.usage = usage_text(&usage)) == NULL) {
            return no_memory(err);
        }
    }
    if (!field_copy(v[A_note], &a.note)) {
        attempt_done(&a);
        return no_memory(err);
    }
    *ret_attempt = a;
    return BATON_OK;
}

/* Numbers rise, none is above the record's, at most the last one is live. */
static baton_code read_attempts(const struct json_value *attempts, struct turn_record *r,
                                struct baton_error *err)
{
    size_t count = attempts == NULL ? 0 : json_count(attempts);
    int last = 0;
    if (count == 0) {
        return BATON_OK;
    }
    r->attempts = calloc(count, sizeof(r->attempts[0]));
    if (r->attempts == NULL) {
        return no_memory(err);
    }
    for (const struct json_value *v = json_first(attempts); v != NULL; v = json_next(v)) {
        struct attempt *a = &r->attempts[r->n_attempts];
        baton_code rc = read_attempt(v, a, err);
        if (rc != BATON_OK) {
            return rc;
        }
        r->n_attempts++;
        if (a->no <= last || a->no > r->attempt) {
            return baton_fail(err, BATON_E_invalid_envelope,
                              "turn record: attempt %d stands behind %d in a turn at attempt %d",
                              a->no, last, r->attempt);
        }
        if (attempt_state_live(a->state) && (json_next(v) != NULL || !turn_state_open(r->state))) {
            return baton_fail(err, BATON_E_invalid_envelope,
                              "turn record: attempt %d is %s, but the turn has gone on without it",
                              a->no, attempt_state_word(a->state));
        }
        last = a->no;
    }
    return BATON_OK;
}

/* Is it a closed attempt that stands before the present series, at a service that a hop names? */
static bool is_past(const struct attempt *a, int last, int before, const char *const *services,
                    size_t n_services)
{
    for (size_t i = 0; i < n_services; i++) {
        if (strcmp(services[i], a->service.s) == 0) {
            return a->no > last && a->no < before && !attempt_state_live(a->state);
        }
    }
    return false;
}

void turn_record_add_history(struct turn_record *record, const char *history, size_t len,
                             const char *const *services, size_t n_services)
{
    struct json_doc *doc = NULL;
    int last = record->n_attempts > 0 ? record->attempts[record->n_attempts - 1].no : 0;
    if (json_parse(history, len, LIMIT_HISTORY, LIMIT_JSON_DEPTH, &doc, NULL) != BATON_OK) {
        return;
    }
    const struct json_value *root = json_root(doc);
    for (const struct json_value *v = json_kind(root) == JSON_array ? json_first(root) : NULL;
         v != NULL; v = json_next(v)) {
        struct attempt a;
        if (json_kind(v) != JSON_object || read_attempt(v, &a, NULL) != BATON_OK) {
            continue;
        }
        struct attempt *added = NULL;
        if (is_past(&a, last, record->attempt, services, n_services)) {
            added = turn_record_add_attempt(record);
        }
        if (added == NULL) {
            attempt_done(&a);
            continue;
        }
        *added = a;
        last = a.no;
    }
    json_free(doc);
}

static baton_code read_lease(const struct json_value *lease, struct turn_record *r,
                             struct baton_error *err)
{
    const struct json_value *v[LEASE_COUNT];
    baton_code rc;
    if (lease == NULL) {
        return BATON_OK;
    }
    if ((rc = fields_read(lease, "lease", lease_table, LEASE_COUNT, v, err)) != BATON_OK) {
        return rc;
    }
    r->lease_worker = plain_id_of(field_text(v[LEASE_worker]));
    memcpy(r->lease_boot.s, field_text(v[LEASE_boot]), sizeof(r->lease_boot.s));
    return BATON_OK;
}

static baton_code read_to(const struct json_value *to, struct turn_record *r,
                          struct baton_error *err)
{
    const struct json_value *v[TO_COUNT];
    baton_code rc;
    if (to == NULL) {
        return BATON_OK;
    }
    if ((rc = fields_read(to, "to", to_table, TO_COUNT, v, err)) != BATON_OK) {
        return rc;
    }
    r->to_service = service_id_of(field_text(v[TO_service]));
    r->to_attempt = (int)json_int(v[TO_attempt]);
    return BATON_OK;
}

static baton_code read_cancel(const struct json_value *cancel, struct turn_record *r,
                              struct baton_error *err)
{
    const struct json_value *v[CANCEL_COUNT];
    baton_code rc;
    if (cancel == NULL) {
        return BATON_OK;
    }
    if ((rc = fields_read(cancel, "cancel", cancel_table, CANCEL_COUNT, v, err)) != BATON_OK) {
        return rc;
    }
    r->cancel_by = plain_id_of(field_text(v[CANCEL_by]));
    return field_copy(v[CANCEL_reason], &r->cancel_reason) ? BATON_OK : no_memory(err);
}

static baton_code read_passes(const struct json_value *passes, struct turn_record *r,
                              struct baton_error *err)
{
    size_t count = passes == NULL ? 0 : json_count(passes);
    if (count == 0) {
        return BATON_OK;
    }
    r->passes = calloc(count, sizeof(r->passes[0]));
    if (r->passes == NULL) {
        return no_memory(err);
    }
    for (const struct json_value *v = json_first(passes); v != NULL; v = json_next(v)) {
        if (json_kind(v) != JSON_text) {
            return baton_fail(err, BATON_E_invalid_envelope, "turn record: a pass is no text");
        }
        if (!field_copy(v, &r->passes[r->n_passes])) {
            return no_memory(err);
        }
        r->n_passes++;
    }
    return BATON_OK;
}

static baton_code read_state(const struct json_value *const *v, struct turn_record *r,
                             struct baton_error *err)
{
    size_t len;
    baton_code rc;
    const char *state = json_text(v[R_state], &len);
    if (!turn_state_parse(state, len, &r->state)) {
        return bad_word("state of a turn", v[R_state], err);
    }
    r->attempt = (int)json_int(v[R_attempt]);
    r->failures = (int)json_int(v[R_failures]);
    r->losses = (int)json_int(v[R_losses]);
    r->replays = (int)json_int(v[R_replays]);
    r->since = (int)json_int(v[R_since]);
    r->probes = (int)field_int(v[R_probes]);
    r->not_before = field_time(v[R_not_before]);
    r->delay_ms = field_int(v[R_delay_ms]);
    r->cost_before = field_int(v[R_cost_before]);
    r->wait = field_flag(v[R_wait]);
    r->updated_at = field_time(v[R_updated_at]);
    r->ended_at = field_time(v[R_ended_at]);
    if (v[R_code] != NULL && !baton_code_parse(field_text(v[R_code]), &r->code)) {
        return bad_word("code", v[R_code], err);
    }
    if ((rc = read_tried(v[R_tried], r, err)) != BATON_OK ||
        (rc = read_lease(v[R_lease], r, err)) != BATON_OK ||
        (rc = read_attempts(v[R_attempts], r, err)) != BATON_OK ||
        (rc = read_to(v[R_to], r, err)) != BATON_OK) {
        return rc;
    }
    return read_cancel(v[R_cancel], r, err);
}

/* The result stays raw: it is shown and passed on as it was recorded. */
static baton_code read_bytes(const struct json_doc *doc, const struct json_value *const *v,
                             struct turn_record *r, struct baton_error *err)
{
    if (v[R_result] != NULL) {
        struct json_span raw = json_raw(doc, "result");
        r->result = malloc(raw.len + 1);
        if (r->result == NULL) {
            return no_memory(err);
        }
        memcpy(r->result, raw.at, raw.len);
        r->result[raw.len] = '\0';
        r->result_len = raw.len;
    }
    if (!field_copy(v[R_handoff], &r->handoff) || !field_copy(v[R_signature], &r->signature) ||
        !field_copy(v[R_traceparent], &r->traceparent)) {
        return no_memory(err);
    }
    r->handoff_len = r->handoff == NULL ? 0 : strlen(r->handoff);
    return read_passes(v[R_passes], r, err);
}

/* What must be there in which state: `there` if and only if `due`. */
static baton_code check_presence(const struct turn_record *r, struct baton_error *err)
{
    bool open = turn_state_open(r->state);
    const struct {
        const char *name;
        bool there;
        bool due;
    } rows[] = {
        {"handoff", r->handoff_len > 0, open},
        {"ended_at", r->ended_at.v != 0, !open},
        {"lease", r->lease_worker.s[0] != '\0', r->state == TURN_running},
        {"code", r->code != BATON_OK, r->state == TURN_parked},
        {"to", r->to_service.s[0] != '\0', r->state == TURN_delegated},
        {"signature", r->signature != NULL, open && r->signature != NULL},
        {"passes", r->n_passes > 0, open && r->n_passes > 0},
        {"traceparent", r->traceparent != NULL, open && r->traceparent != NULL},
        {"result", r->result != NULL, r->state == TURN_completed && r->result != NULL},
        {"cancel", r->cancel_by.s[0] != '\0' || r->cancel_reason != NULL,
         r->state == TURN_cancelled && (r->cancel_by.s[0] != '\0' || r->cancel_reason != NULL)},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (rows[i].there != rows[i].due) {
            return baton_fail(err, BATON_E_invalid_envelope,
                              "turn record: %s %s in a turn that is %s", rows[i].name,
                              rows[i].due ? "is missing" : "has no place",
                              turn_state_word(r->state));
        }
    }
    return BATON_OK;
}

static baton_code record_from(const struct json_doc *doc, struct turn_record *r,
                              struct baton_error *err)
{
    const struct json_value *v[R_COUNT];
    const struct json_value *root = json_root(doc);
    baton_code rc;
    if ((rc = fields_version(root, WHAT, err)) != BATON_OK ||
        (rc = fields_read(root, WHAT, record_table, R_COUNT, v, err)) != BATON_OK) {
        return rc;
    }
    read_identity(v, r);
    if ((rc = read_state(v, r, err)) != BATON_OK || (rc = read_bytes(doc, v, r, err)) != BATON_OK) {
        return rc;
    }
    return check_presence(r, err);
}

baton_code turn_record_parse(const void *bytes, size_t len, struct turn_record *ret_record,
                             struct baton_error *err)
{
    struct json_doc *doc = NULL;
    struct turn_record record;
    baton_code rc;
    turn_record_init(&record);
    if ((rc = json_parse(bytes, len, LIMIT_RECORD, RECORD_DEPTH, &doc, err)) != BATON_OK ||
        (rc = record_from(doc, &record, err)) != BATON_OK) {
        goto out;
    }
    *ret_record = record;
    turn_record_init(&record);
out:
    turn_record_done(&record);
    json_free(doc);
    return rc;
}
