/*
 * What a coordinator writes beside the run log: turns, cancels, answers, the end of a run, dead
 * letters of requests. All of it goes into the batch, and so into the transaction that holds the
 * decision.
 *
 * In: advance.c, requests.c, outcomes.c  Out: common/record/turn.c, common/engine/engine.h
 */
#include "producer/coordinator/internal.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/metrics.h"
#include "common/record/control.h"
#include "common/record/dead_letter.h"
#include "common/record/headers.h"
#include "common/record/turn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- proofs ---- */

/* Headers of a record of ours; n more may follow. */
static size_t prove(const struct coordinator *c, enum proof_class class, const char *key,
                    const void *value, size_t len, struct proof_text *proof,
                    struct log_header *headers)
{
    const struct digest digest = digest_of(value, len);
    if (c->signer == NULL || signer_sign(c->signer, c->fleet.s, class, key, strlen(key), NULL,
                                         &digest, proof, NULL) != BATON_OK) {
        return 0;
    }
    headers[0] = (struct log_header){HEADER_SIG, proof->s, strlen(proof->s)};
    return 1;
}

static void put(struct coordinator *c, const char *topic, const char *key, const void *value,
                size_t len, const struct log_header *headers, size_t n_headers)
{
    const struct log_record record = {.topic = topic,
                                      .partition = LOG_PARTITION_BY_KEY,
                                      .key = key,
                                      .key_len = strlen(key),
                                      .value = value,
                                      .value_len = len,
                                      .headers = headers,
                                      .n_headers = n_headers};
    (void)engine_put(c->engine, &record);
}

/* ---- turns ---- */

static void put_turn(struct coordinator *c, const struct turn *turn, const char *service,
                     const char *traceparent)
{
    const struct topic_name topic = topic_name(TOPIC_handoff, c->config->prefix.s, service);
    struct proof_text proof;
    struct log_header headers[3];
    size_t n = prove(c, PROOF_turn, turn->id.s, turn->bytes, turn->len, &proof, headers);
    headers[n++] = (struct log_header){HEADER_TRACEPARENT, traceparent, strlen(traceparent)};
    headers[n++] =
        (struct log_header){HEADER_WAIT, HEADER_WAIT_CLAIMED, strlen(HEADER_WAIT_CLAIMED)};
    put(c, topic.s, turn->id.s, turn->bytes, turn->len, headers, n);
}

bool send_turn(struct coordinator *c, struct run *run, const char *by, const char *from,
               const char *parent, size_t slot, const char *summary, const char *data, int n,
               struct baton_error *err)
{
    const struct workflow_slot_text name = workflow_slot_text(run->workflow, slot);
    const enum role role = run->workflow->slots[slot].role;
    const char *service = workflow_service(run->workflow, slot, c->config);
    const struct wall_ms now = wall_now();
    struct turn *turn = NULL;
    char key[KEY_MAX + 1];

    BATON_PRE(service != NULL);
    snprintf(key, sizeof(key), "%s.%s.%s.%d", parent, by, name.s, n);
    const struct turn_draft draft = {
        .fleet = c->fleet.s,
        .origin = COORDINATOR_PRINCIPAL,
        .service = service,
        .role = role,
        .verdicts = run->workflow->verdicts[role],
        .task_id = run->task_id.s,
        .task_rev = run->task_rev,
        .run_id = run->id.s,
        .epoch = run->epoch,
        .intent = by,
        .key = key,
        .parent = parent,
        .created_at = now,
        .deadline = run->deadline,
        .summary = summary,
        .data = data,
        .data_len = data != NULL ? strlen(data) : 0,
        .payload = "",
        .payload_json = run->payload,
        .payload_json_len = run->payload != NULL ? strlen(run->payload) : 0,
    };
    const bool ok = turn_encode(&draft, &turn, err) == BATON_OK;
    struct run_turn *entry = ok ? run_add_turn(run) : NULL;
    if (ok && entry == NULL) {
        baton_fail(err, BATON_E_budget_exceeded, "run %s has %d open turns already", run->id.s,
                   RUN_TURNS_MAX);
    }
    if (entry != NULL) {
        entry->id = turn->id;
        entry->task_rev = run->task_rev;
        entry->by = plain_id_of(by);
        entry->from = plain_id_of(from);
        entry->slot = plain_id_of(name.s);
        entry->role = role;
        entry->born = service_id_of(service);
        entry->service = entry->born;
        entry->attempt = 1;
        entry->content = turn->content;
        entry->digest = turn->digest;
        entry->begun_at = now;
        put_turn(c, turn, service, spans_send(c, run, turn, by, n, name.s).s);
        metric_add(METRIC_handoffs_sent, 1);
        diag_line(DIAG_info, "run.turn", D_TEXT("run", run->id.s), D_TEXT("turn", turn->id.s),
                  D_TEXT("by", by), D_TEXT("from", from), D_TEXT("to", name.s),
                  D_TEXT("role", role_word(role)), D_TEXT("service", service));
    }
    turn_free(turn);
    return entry != NULL;
}

bool send_reachable(struct coordinator *c, const struct run *run, size_t slot, baton_code *ret_code)
{
    const enum role role = run->workflow->slots[slot].role;
    const char *service = workflow_service(run->workflow, slot, c->config);
    if (service == NULL) {
        *ret_code = BATON_E_unknown_service;
        return false;
    }
    if (c->config->proof_required &&
        !trust_may_create(trust_principal_find(c->trust, COORDINATOR_PRINCIPAL), service, role)) {
        *ret_code = BATON_E_not_permitted;
        return false;
    }
    const struct topic_name topic = topic_name(TOPIC_handoff, c->config->prefix.s, service);
    return !engine_unavailable(c->engine, topic.s, ret_code);
}

/* ---- cancels ---- */

void send_cancel(struct coordinator *c, const struct run_turn *turn, const char *reason)
{
    const struct topic_name topic = topic_name(TOPIC_control, c->config->prefix.s, turn->service.s);
    struct control control = {.kind = CONTROL_cancel, .turn_id = turn->id, .at = wall_now()};
    baton_code why = BATON_OK;
    if (engine_unavailable(c->engine, topic.s, &why)) {
        /* The run ends all the same: what the turn still says is not applied (H-27), and nobody else waits
         * for a topic that cannot be written. */
        diag_line(DIAG_warn, "run.cancel_not_sent", D_TEXT("turn", turn->id.s),
                  D_TEXT("service", turn->service.s), D_TEXT("topic", topic.s), D_CODE("code", why),
                  D_TEXT("meaning", "it goes on there; `baton turns cancel` ends it"));
        return;
    }
    struct buf value = BUF_INIT;
    struct buf text = BUF_INIT;
    struct proof_text proof;
    struct log_header header;
    random_hex(control.id.s, 32);
    buf_add(&text, reason, strnlen(reason, LIMIT_REASON));
    BATON_INVARIANT(buf_ok(&text));
    control.reason = text.data;
    control_encode(&control, &value);
    BATON_INVARIANT(buf_ok(&value));
    const size_t n = prove(c, PROOF_control, turn->id.s, value.data, value.len, &proof, &header);
    put(c, topic.s, turn->id.s, value.data, value.len, &header, n);
    buf_done(&value);
    buf_done(&text);
}

/* ---- outcomes ---- */

static void put_outcome(struct coordinator *c, const struct outcome *outcome)
{
    struct buf value = BUF_INIT;
    struct proof_text proof;
    struct log_header header;
    outcome_encode(outcome, &value);
    BATON_INVARIANT(buf_ok(&value));
    const size_t n =
        prove(c, PROOF_outcome, outcome->run_id.s, value.data, value.len, &proof, &header);
    put(c, c->outcomes.s, outcome->run_id.s, value.data, value.len, &header, n);
    buf_done(&value);
}

static struct outcome outcome_of_run(const char *run_id, enum outcome_event event)
{
    return (struct outcome){.event = event,
                            .run_id = plain_id_of(run_id),
                            .service = service_id_of(COORDINATOR_PRINCIPAL),
                            .at = wall_now()};
}

void send_answer(struct coordinator *c, const struct request *request, const char *result,
                 baton_code code)
{
    struct outcome outcome = outcome_of_run(request->run_id.s, OUTCOME_answer);
    outcome.code = code;
    outcome.answers_id = request->id;
    snprintf(outcome.answers_kind, sizeof(outcome.answers_kind), "%s", request_word(request->kind));
    struct buf text = BUF_INIT;
    if (result != NULL) {
        buf_add_text(&text, result);
        BATON_INVARIANT(buf_ok(&text));
        outcome.result = text.data;
        outcome.result_len = text.len;
    }
    put_outcome(c, &outcome);
    buf_done(&text);
    diag_line(DIAG_info, "request.answered", D_TEXT("run", request->run_id.s),
              D_TEXT("kind", request_word(request->kind)), D_CODE("code", code));
}

void send_run_ended(struct coordinator *c, const struct run *run)
{
    struct outcome outcome = outcome_of_run(run->id.s, OUTCOME_run_ended);
    struct buf text = BUF_INIT;
    struct jsonw w = jsonw_to(&text);
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "state", run_state_word(run->state));
    jsonw_key_int(&w, "epoch", run->epoch);
    jsonw_key_plain(&w, "summary", run->why, strlen(run->why));
    jsonw_key_int(&w, "turns", run->n_turns);
    jsonw_key_int(&w, "cost_micros", run_cost(run));
    jsonw_end(&w);
    BATON_INVARIANT(buf_ok(&text));
    outcome.result = text.data;
    outcome.result_len = text.len;
    put_outcome(c, &outcome);
    buf_done(&text);
    spans_run_ended(c, run);
}

#define REJECTED DIAG_LIMIT_BURST(10000, 10)
static struct diag_limit rejected[4] = {REJECTED, REJECTED, REJECTED, REJECTED}; /* by code */

void send_dead_letter(struct coordinator *c, const struct log_record *record, baton_code code,
                      const char *note)
{
    struct dead_letter letter = {.n_headers = 0};
    struct log_record out = *record;
    dead_letter_original(&letter, record);
    dead_letter_context(&letter, record, record->topic, c->group.s, code, note);
    out.topic = c->dlq.s;
    out.partition = LOG_PARTITION_BY_KEY;
    out.headers = letter.headers;
    out.n_headers = letter.n_headers;
    (void)engine_put(c->engine, &out);
    /* Whoever may write to the topic could fill the log; each record is in the dead letters. */
    diag_limited(&rejected[(unsigned)code % COUNT_OF(rejected)], DIAG_warn, "record.rejected",
                 D_BYTES("key", record->key, record->key_len), D_TEXT("topic", record->topic),
                 D_INT("partition", record->partition), D_INT("offset", record->offset),
                 D_CODE("code", code), D_TEXT("note", note));
}

bool send_can_tell(const struct coordinator *c)
{
    baton_code code;
    return !engine_unavailable(c->engine, c->outcomes.s, &code);
}

bool send_can_bury(const struct coordinator *c)
{
    baton_code code;
    return !engine_unavailable(c->engine, c->dlq.s, &code);
}
