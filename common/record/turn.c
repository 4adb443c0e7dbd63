/*
 * The turn: writing and reading the value of a handoff. Pure; checks no proof.
 *
 * In: producer/publish (turn_encode), common/record/receipt (turn_parse)
 * Out: the value's bytes, or a struct turn over bytes of its own
 */
#include "common/record/turn.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/record/data.h"
#include "common/record/fields.h"
#include "common/record/payload.h"
#include "common/record/proof.h"
#include "common/record/tbl/turn_fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct field turn_table[] = {TURN_FIELDS(FIELD_ROW)};
#define TURN_INDEX(name, kind, need, max) T_##name,
enum { TURN_FIELDS(TURN_INDEX) T_COUNT };
#undef TURN_INDEX

#define WHAT "turn"

/* ---- identity ---- */

struct identity {
    const char *fleet;
    const char *origin;
    const char *service;
    const char *role;
    const char *task_id;
    int32_t task_rev;
    const char *run_id;
    int32_t epoch;
    const char *intent;
    const char *key;
};

/* The id is a hash of the identity, role included: a record that names a turn with another role has
 * another id, and so does not verify even where the turn is unknown. */
static struct turn_id id_of(const struct identity *who)
{
    static const char label[] = "BATON-TURN-1"; /* its NUL is hashed too */
    char task_rev[12];
    char epoch[12];
    struct turn_id id;
    snprintf(task_rev, sizeof(task_rev), "%d", (int)who->task_rev);
    snprintf(epoch, sizeof(epoch), "%d", (int)who->epoch);
    const char *const texts[] = {who->fleet, who->origin, who->service, who->role,   who->task_id,
                                 task_rev,   who->run_id, epoch,        who->intent, who->key};
    struct json_span parts[COUNT_OF(texts)];
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        parts[i] = (struct json_span){texts[i], strlen(texts[i])};
    }
    struct digest digest = digest_of_parts(label, sizeof(label), parts, COUNT_OF(parts));
    hex_encode(digest.b, 16, id.s);
    return id;
}

/* What a repeat must share: the members that a publisher would write again after a doubt, raw. */
static struct digest content_of(const struct json_doc *doc)
{
    static const char *const names[] = {"parent", "summary",    "data",     "payload",
                                        "ext",    "not_before", "deadline", "place"};
    struct json_span parts[COUNT_OF(names)];
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        parts[i] = json_raw(doc, names[i]);
    }
    return digest_of_parts("", 0, parts, COUNT_OF(parts));
}

/* ---- reading ---- */

/*
 * What is missing or strange, in the order in which it is told. The identity comes first: a record
 * that is only some prompt is no turn at all. Then the role, by its own code, so that a turn
 * without one is seen as that even where an older field hints at it. Then all others.
 */
static baton_code check_members(const struct json_value *root, const struct json_value **v,
                                struct baton_error *err)
{
    const struct json_value *unknown;
    baton_code rc;
    fields_sort(root, turn_table, T_COUNT, v, &unknown);
    for (size_t i = 0; i < T_COUNT; i++) {
        if (i != T_role && v[i] == NULL && turn_table[i].need == FIELD_required) {
            return field_missing(WHAT, turn_table[i].name, err);
        }
    }
    if (v[T_role] == NULL) {
        return baton_fail(err, BATON_E_role_unresolved,
                          "turn: names no role, and a role is never guessed");
    }
    if ((rc = field_check(&turn_table[T_role], WHAT, v[T_role], err)) != BATON_OK) {
        return rc;
    }
    if (unknown != NULL) {
        return field_unknown(WHAT, unknown, err);
    }
    for (size_t i = 0; i < T_COUNT; i++) {
        if (v[i] != NULL && (rc = field_check(&turn_table[i], WHAT, v[i], err)) != BATON_OK) {
            return rc;
        }
    }
    return BATON_OK;
}

static void copy_text(char *to, size_t size, const struct json_value *value)
{
    size_t len;
    const char *text = json_text(value, &len);
    BATON_INVARIANT(len < size);
    memcpy(to, text, len + 1);
}

/* `ext.verdicts`: what is left of the role's verdicts. Whatever else stands there is the origin's own. */
static verdict_set read_verdicts(enum role role, const struct json_value *ext)
{
    const verdict_set all = verdicts_of(role);
    const struct json_value *list = ext != NULL ? json_member(ext, "verdicts") : NULL;
    verdict_set set = 0;
    if (list == NULL || json_kind(list) != JSON_array) {
        return all;
    }
    for (const struct json_value *one = json_first(list); one != NULL; one = json_next(one)) {
        enum verdict verdict;
        size_t len = 0;
        const char *word = json_kind(one) == JSON_text ? json_text(one, &len) : "";
        if (!verdict_parse(word, len, &verdict) || !verdict_legal(role, verdict)) {
            return all;
        }
        set |= VERDICT_BIT(verdict);
    }
    return set != 0 ? set : all;
}

/* Every value has the form of its row. */
static void fill(const struct json_value *const *v, struct turn *turn)
{
    size_t len;
    const char *role = json_text(v[T_role], &len);
    BATON_INVARIANT(role_parse(role, len, &turn->role));
    turn->verdicts = read_verdicts(turn->role, v[T_ext]);
    turn->id = turn_id_of(field_text(v[T_turn_id]));
    turn->origin = plain_id_of(field_text(v[T_origin]));
    turn->service = service_id_of(field_text(v[T_service]));
    turn->task_id = task_id_of(field_text(v[T_task_id]));
    turn->task_rev = (int32_t)json_int(v[T_task_rev]);
    turn->run_id = plain_id_of(field_text(v[T_run_id]));
    turn->epoch = (int32_t)json_int(v[T_epoch]);
    turn->intent = plain_id_of(field_text(v[T_intent]));
    copy_text(turn->key, sizeof(turn->key), v[T_key]);
    copy_text(turn->parent, sizeof(turn->parent), v[T_parent]);
    turn->created_at = field_time(v[T_created_at]);
    turn->expires_at = field_time(v[T_expires_at]);
    turn->not_before = field_time(v[T_not_before]);
    turn->deadline = field_time(v[T_deadline]);
}

static baton_code check_meaning(const char *fleet, const struct json_value *const *v,
                                const struct turn *turn, struct baton_error *err)
{
    baton_code rc = summary_check(WHAT, "summary", field_text(v[T_summary]), err);
    if (rc != BATON_OK) {
        return rc;
    }
    if (turn->run_id.s[0] == '\0' && turn->epoch != 0) {
        return baton_fail(err, BATON_E_invalid_envelope, "turn: an epoch of %d without a run",
                          (int)turn->epoch);
    }
    int64_t life_ms = turn->expires_at.v - turn->created_at.v;
    if (life_ms <= 0 || life_ms > TURN_LIFE_MAX_MS) {
        return baton_fail(err, BATON_E_invalid_envelope,
                          "turn: expires_at must lie after created_at, by 7 days at most");
    }
    struct identity who = {fleet,           turn->origin.s, turn->service.s, role_word(turn->role),
                           turn->task_id.s, turn->task_rev, turn->run_id.s,  turn->epoch,
                           turn->intent.s,  turn->key};
    if (strcmp(id_of(&who).s, turn->id.s) != 0) {
        return baton_fail(err, BATON_E_invalid_envelope,
                          "turn: turn_id is not the hash of fleet, origin, service, role, task, "
                          "run, intent and key");
    }
    return BATON_OK;
}

static baton_code turn_from(const char *fleet, const struct json_doc *doc, struct turn *turn,
                            struct baton_error *err)
{
    const struct json_value *v[T_COUNT];
    const struct json_value *root = json_root(doc);
    baton_code rc;
    if ((rc = fields_version(root, WHAT, err)) != BATON_OK ||
        (rc = check_members(root, v, err)) != BATON_OK) {
        return rc;
    }
    turn->data = json_raw(doc, "data");
    turn->payload = json_raw(doc, "payload");
    if ((rc = data_check(WHAT, v[T_data], turn->data, false, err)) != BATON_OK ||
        (rc = payload_check(v[T_payload], err)) != BATON_OK) {
        return rc;
    }
    turn->payload_by_reference = v[T_payload] != NULL && json_member(v[T_payload], "ref") != NULL;
    fill(v, turn);
    if ((rc = check_meaning(fleet, v, turn, err)) != BATON_OK) {
        return rc;
    }
    if (!field_copy(v[T_summary], &turn->summary) || !field_copy(v[T_place], &turn->place)) {
        return baton_fail(err, BATON_E_no_memory, "no memory for a turn");
    }
    turn->digest = digest_of(turn->bytes, turn->len);
    turn->content = content_of(doc);
    return BATON_OK;
}

/* take_bytes: len bytes and a NUL, the turn's in any case. */
static baton_code turn_take(const char *fleet, char *take_bytes, size_t len, struct turn **ret_turn,
                            struct baton_error *err)
{
    struct json_doc *doc = NULL;
    struct turn *turn = calloc(1, sizeof(*turn));
    baton_code rc;
    if (turn == NULL) {
        free(take_bytes);
        return baton_fail(err, BATON_E_no_memory, "no memory for a turn");
    }
    turn->bytes = take_bytes;
    turn->len = len;
    if ((rc = json_parse(turn->bytes, len, TURN_BYTES_MAX, LIMIT_JSON_DEPTH, &doc, err)) !=
            BATON_OK ||
        (rc = turn_from(fleet, doc, turn, err)) != BATON_OK) {
        goto out;
    }
    *ret_turn = turn;
    turn = NULL;
out:
    turn_free(turn);
    json_free(doc);
    return rc;
}

baton_code turn_parse(const char *fleet, const void *bytes, size_t len, struct turn **ret_turn,
                      struct baton_error *err)
{
    BATON_PRE(fleet != NULL);
    if (len > TURN_BYTES_MAX) {
        return baton_fail(err, BATON_E_record_too_large, "turn: %zu bytes, at most %d are taken",
                          len, TURN_BYTES_MAX);
    }
    if (bytes == NULL || len == 0) {
        return baton_fail(err, BATON_E_invalid_envelope, "turn: the value is empty");
    }
    char *copy = malloc(len + 1);
    if (copy == NULL) {
        return baton_fail(err, BATON_E_no_memory, "no memory for a turn");
    }
    memcpy(copy, bytes, len);
    copy[len] = '\0';
    return turn_take(fleet, copy, len, ret_turn, err);
}

void turn_free(struct turn *turn)
{
    if (turn != NULL) {
        free(turn->bytes);
        free(turn->summary);
        free(turn->place);
        free(turn);
    }
}

/* ---- writing ---- */

static void write_verdicts(struct jsonw *w, verdict_set verdicts)
{
    jsonw_key(w, "ext");
    jsonw_begin_object(w);
    jsonw_key(w, "verdicts");
    jsonw_begin_array(w);
    for (unsigned i = 0; i < VERDICT_COUNT; i++) {
        if ((verdicts & VERDICT_BIT(i)) != 0) {
            jsonw_text(w, verdict_word((enum verdict)i));
        }
    }
    jsonw_end(w);
    jsonw_end(w);
}

static void write_draft(const struct turn_draft *draft, struct turn_id id,
                        struct wall_ms expires_at, struct buf *out)
{
    struct jsonw w = jsonw_to(out);
    jsonw_begin_object(&w);
    jsonw_key_int(&w, "version", 1);
    field_write(&w, "turn_id", id.s);
    field_write(&w, "origin", draft->origin);
    field_write(&w, "service", draft->service);
    field_write(&w, "role", role_word(draft->role));
    field_write(&w, "task_id", draft->task_id);
    jsonw_key_int(&w, "task_rev", draft->task_rev);
    field_write(&w, "run_id", draft->run_id);
    jsonw_key_int(&w, "epoch", draft->epoch);
    field_write(&w, "intent", draft->intent);
    field_write(&w, "key", draft->key);
    field_write(&w, "parent", draft->parent);
    field_write_time(&w, "created_at", draft->created_at);
    field_write_time(&w, "expires_at", expires_at);
    field_write(&w, "summary", draft->summary);
    jsonw_key_raw(&w, "data", draft->data == NULL ? "{}" : draft->data,
                  draft->data == NULL ? 2 : draft->data_len);
    if (draft->payload_json != NULL) {
        jsonw_key_raw(&w, "payload", draft->payload_json, draft->payload_json_len);
    } else {
        jsonw_key(&w, "payload");
        payload_write(&w, draft->media_type, draft->payload, draft->payload_len);
    }
    if (draft->verdicts != 0 && draft->verdicts != verdicts_of(draft->role)) {
        write_verdicts(&w, draft->verdicts);
    }
    field_write_time(&w, "not_before", draft->not_before);
    field_write_time(&w, "deadline", draft->deadline);
    if (draft->place != NULL) {
        field_write(&w, "place", draft->place);
    }
    jsonw_end(&w);
}

/* What stands raw in the value must be one object alone, or it could write other fields. */
static baton_code check_raw(const char *name, const char *text, size_t len, struct baton_error *err)
{
    struct json_doc *doc = NULL;
    if (text == NULL) {
        return BATON_OK;
    }
    baton_code rc = json_parse(text, len, TURN_BYTES_MAX, LIMIT_JSON_DEPTH - 1, &doc, err);
    if (rc == BATON_OK && json_kind(json_root(doc)) != JSON_object) {
        rc = baton_fail(err, BATON_E_invalid_request, "%s is not a JSON object", name);
    }
    json_free(doc);
    return rc == BATON_E_invalid_envelope
               ? baton_fail_context(err, BATON_E_invalid_request, "%s: ", name)
               : rc;
}

/* What could not be told from the written value any more. */
static baton_code check_draft(const struct turn_draft *draft, struct baton_error *err)
{
    const char *const texts[] = {draft->fleet,   draft->origin, draft->service,
                                 draft->task_id, draft->run_id, draft->intent,
                                 draft->key,     draft->parent, draft->summary};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        if (texts[i] == NULL) {
            return baton_fail(err, BATON_E_invalid_request, "a turn without all of its names");
        }
    }
    const char *const free_texts[] = {draft->summary, draft->place, draft->media_type};
    for (size_t i = 0; i < COUNT_OF(free_texts); i++) {
        if (free_texts[i] != NULL && !text_utf8_valid(free_texts[i], strlen(free_texts[i]))) {
            return baton_fail(err, BATON_E_invalid_request,
                              "summary, place or media type are not valid UTF-8: '%s'",
                              text_quote_of(free_texts[i]).s);
        }
    }
    if ((unsigned)draft->role >= ROLE_COUNT || draft->created_at.v <= 0 ||
        (draft->payload == NULL && draft->payload_len > 0)) {
        return baton_fail(err, BATON_E_invalid_request, "a turn without role, time or payload");
    }
    /* Early, so that a payload of gigabytes is not escaped before it is refused. */
    if (draft->payload_len > TURN_BYTES_MAX || draft->data_len > TURN_BYTES_MAX ||
        draft->payload_json_len > TURN_BYTES_MAX) {
        return baton_fail(
            err, BATON_E_record_too_large,
            "a payload of %zu bytes, a turn holds at most %d; publish it by reference",
            draft->payload_len + draft->payload_json_len, TURN_BYTES_MAX);
    }
    baton_code rc = check_raw("data", draft->data, draft->data_len, err);
    return rc != BATON_OK ? rc
                          : check_raw("payload", draft->payload_json, draft->payload_json_len, err);
}

baton_code turn_encode(const struct turn_draft *draft, struct turn **ret_turn,
                       struct baton_error *err)
{
    struct buf out = BUF_INIT;
    size_t len;
    baton_code rc = check_draft(draft, err);
    if (rc != BATON_OK) {
        return rc;
    }
    struct identity who = {draft->fleet,   draft->origin,   draft->service, role_word(draft->role),
                           draft->task_id, draft->task_rev, draft->run_id,  draft->epoch,
                           draft->intent,  draft->key};
    struct wall_ms expires_at = draft->expires_at;
    if (expires_at.v == 0) {
        expires_at.v = draft->created_at.v + TURN_LIFE_MAX_MS;
    }
    write_draft(draft, id_of(&who), expires_at, &out);
    char *bytes = buf_take(&out, &len);
    if (bytes == NULL) {
        return baton_fail(err, BATON_E_no_memory, "no memory for a turn");
    }
    if (len > TURN_BYTES_MAX) {
        free(bytes);
        return baton_fail(
            err, BATON_E_record_too_large,
            "the turn has %zu bytes, at most %d are taken; publish its payload by reference", len,
            TURN_BYTES_MAX);
    }
    rc = turn_take(draft->fleet, bytes, len, ret_turn, err);
    /* Here nobody sent a bad record: the request was not well formed. */
    return rc == BATON_E_invalid_envelope
               ? baton_fail_context(err, BATON_E_invalid_request, "%s", "")
               : rc;
}
