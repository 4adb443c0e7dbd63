/*
 * Requests: what people and programs ask of runs. Each that is proven is answered on `outcomes`, with a
 * code, in the transaction that holds what came of it; what is not proven goes to the dead letters.
 *
 * In: coordinator.c  Out: advance.c, send.c
 */
#include "producer/coordinator/internal.h"

#include "common/base/metrics.h"
#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/text.h"
#include "producer/workflow/may_start.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- starting ---- */

/* Is it a person's key (S12)? Without proofs nobody knows. */
static bool key_of_person(const struct receipt *receipt)
{
    return receipt->signer == NULL || trust_principal_kind(receipt->signer) == PRINCIPAL_person;
}

/* Does a person ask? What a process says of itself lowers what its key may, and never raises it (L-03). */
static bool by_person(const struct receipt *receipt, const struct request *request)
{
    return key_of_person(receipt) && request->asker == REQUEST_ASKER_owner_of_key;
}

static baton_code begin(struct coordinator *c, const struct receipt *receipt,
                        const struct request *request, int32_t partition, struct baton_error *err)
{
    struct workflow *workflow = NULL;
    const struct wall_ms now = wall_now();
    const struct workflow_starter starter = {
        .name = receipt->signer != NULL ? trust_principal_name(receipt->signer) : NULL,
        .person_key = key_of_person(receipt),
        .agent = request->asker != REQUEST_ASKER_owner_of_key,
        .confirmed = request->asker == REQUEST_ASKER_confirmed};
    baton_code rc = workflow_named(c->config, request->workflow.s, &workflow, err);
    if (rc == BATON_OK) {
        rc = workflow_may_start(workflow, &starter, request->deadline, err);
    }
    struct workflow *shared = NULL;
    if (rc == BATON_OK) { /* as its record will be read */
        rc = workflow_shelf_find(&c->shelf, request->run_id.s, workflow->text, workflow->text_len,
                                 &shared, err);
    }
    workflow_free(workflow);
    if (rc != BATON_OK) {
        return rc;
    }
    struct run *run = calloc(1, sizeof(*run));
    BATON_INVARIANT(run != NULL);
    run->id = request->run_id;
    run->epoch = 1;
    run->task_id = request->task_id;
    run->task_rev = request->task_rev;
    run->task_status = TASK_STATUS_active;
    run->state = RUN_active;
    run->by =
        plain_id_of(receipt->signer != NULL ? trust_principal_name(receipt->signer) : "nobody");
    run->summary = strdup(request->summary);
    run->data = request->data != NULL && request->data_len > 0 ? strdup(request->data) : NULL;
    run->payload = request->payload != NULL ? strdup(request->payload) : NULL;
    run->started_at = now;
    run->updated_at = now;
    run->deadline = request->deadline;
    if (run->deadline.v == 0 && shared->deadline_ms > 0) {
        run->deadline.v = now.v + shared->deadline_ms;
    }
    run->workflow = shared;
    run->shelved = true;
    BATON_INVARIANT(run->summary != NULL);
    metric_add(METRIC_runs_started, 1);
    diag_line(DIAG_info, "run.started", D_TEXT("run", run->id.s), D_TEXT("by", run->by.s),
              D_TEXT("workflow", shared->name.s), D_TEXT("digest", shared->digest),
              D_TEXT("task", run->task_id.s));
    advance_start(c, run);
    change_add(c, run, partition);
    return BATON_OK;
}

/* ---- the others ---- */

/* Why a request of a run is refused, and what helps. */
static void print_refusal(struct jsonw *w, const struct run *run, const struct request *request,
                          baton_code code)
{
    char text[512] = "";
    if (code == BATON_E_run_terminal) {
        snprintf(text, sizeof(text),
                 "run %s is %s; `baton runs reopen %s --reason TEXT` begins it anew", run->id.s,
                 run_state_word(run->state), run->id.s);
    } else if (code == BATON_E_duplicate) {
        snprintf(text, sizeof(text),
                 "request %d of run %s was decided on what was so before; %d were taken by now: "
                 "look at `baton runs show %s`, then ask again",
                 (int)request->request_no, run->id.s, (int)run->request_no, run->id.s);
    } else if (code == BATON_E_invalid_request) {
        snprintf(text, sizeof(text), "run %s is %s: what is open is not reopened", run->id.s,
                 run_state_word(run->state));
    } else if (code == BATON_E_person_required) {
        snprintf(text, sizeof(text), "%s of run %s is asked by people, and this key is a program's",
                 request_word(request->kind), run->id.s);
    }
    jsonw_key_plain(w, "text", text, strlen(text));
}

/* The turn of each target: what was sent now, or is there already. */
static void print_turns(struct jsonw *w, const struct run *run, const struct handoff_result *result)
{
    slot_set left = result->status == HANDOFF_queued ? result->targets : 0;
    jsonw_key(w, "turns");
    jsonw_begin_array(w);
    for (size_t i = run->n_kept; i-- > 0 && left != 0;) {
        const struct run_turn *turn = &run->turns[i];
        const size_t slot = run_slot(run, turn->slot.s);
        if (slot != SIZE_MAX && (left & SLOT_BIT(slot)) != 0 &&
            strcmp(turn->by.s, result->transition->name.s) == 0) {
            jsonw_text(w, turn->id.s);
            left &= ~SLOT_BIT(slot);
        }
    }
    jsonw_end(w);
}

static void print_result(const struct run *run, const struct request *request, baton_code code,
                         const struct handoff_result *result, struct buf *out)
{
    struct jsonw w = jsonw_to(out);
    jsonw_begin_object(&w);
    if (result != NULL) {
        jsonw_key_text(&w, "status", handoff_status_word(result->status));
        jsonw_key_text(&w, "stage", handoff_stage_word(result->stage));
        jsonw_key_plain(&w, "text", result->text, strlen(result->text));
        jsonw_key_bool(&w, "deduped", result->deduped);
        jsonw_key_int(&w, "retry_after_ms", result->retry_after_ms);
        jsonw_key(&w, "targets");
        jsonw_begin_array(&w);
        for (size_t slot = 0; slot < run->workflow->n_slots; slot++) {
            if ((result->targets & SLOT_BIT(slot)) != 0) {
                jsonw_text(&w, workflow_slot_text(run->workflow, slot).s);
            }
        }
        jsonw_end(&w);
        print_turns(&w, run, result);
        jsonw_key(&w, "unreached");
        jsonw_begin_array(&w);
        for (size_t slot = 0; slot < run->workflow->n_slots; slot++) {
            if ((result->unreached & SLOT_BIT(slot)) != 0) {
                jsonw_text(&w, workflow_slot_text(run->workflow, slot).s);
            }
        }
        jsonw_end(&w);
    } else if (code != BATON_OK) {
        print_refusal(&w, run, request, code);
    }
    jsonw_key_text(&w, "state", run_state_word(run->state));
    jsonw_key_int(&w, "epoch", run->epoch);
    jsonw_end(&w);
    BATON_INVARIANT(buf_ok(out));
}

void requests_print_handoff(const struct run *run, const struct handoff_result *result,
                            struct buf *out)
{
    print_result(run, NULL, result->code, result, out);
}

static baton_code touch(struct coordinator *c, struct run *run)
{
    if (!run_state_open(run->state)) {
        return BATON_E_run_terminal;
    }
    run_touch(run);
    run->updated_at = wall_now();
    hooks_forget(c, run);
    advance_again(c, run);
    return BATON_OK;
}

static baton_code cancel(struct coordinator *c, struct run *run, const char *by, const char *reason)
{
    char why[RUN_WHY_MAX + 1];
    if (!run_state_open(run->state)) {
        return BATON_E_run_terminal;
    }
    snprintf(why, sizeof(why), "cancelled by %s: %.900s", by, reason != NULL ? reason : "");
    advance_end(c, run, RUN_cancelled, why);
    return BATON_OK;
}

static baton_code reopen(struct coordinator *c, struct run *run, const char *by, const char *reason)
{
    char why[RUN_WHY_MAX + 1];
    const struct wall_ms now = wall_now();
    if (run_state_open(run->state)) {
        return BATON_E_invalid_request;
    }
    snprintf(why, sizeof(why), "reopened by %s: %.900s", by, reason);
    run_reopen(run, why, now);
    run->deadline.v = run->workflow->deadline_ms > 0 ? now.v + run->workflow->deadline_ms : 0;
    advance_start(c, run);
    return BATON_OK;
}

/* Is it the next one, asked by whom it is to be? */
static baton_code check_asked(const struct run *run, const struct receipt *receipt,
                              const struct request *request)
{
    if (request_wants_person(request->kind) && !by_person(receipt, request)) {
        return BATON_E_person_required;
    }
    return request->request_no == run->request_no + 1
               ? BATON_OK
               : BATON_E_duplicate; /* sent again, or decided on what is no more so */
}

/* *ret_later: it is answered once a hook has looked at it. */
static baton_code act(struct coordinator *c, struct run *run, const struct receipt *receipt,
                      const struct request *request, struct buf *said, bool *ret_later)
{
    const char *by = receipt->signer != NULL ? trust_principal_name(receipt->signer) : "nobody";
    struct handoff_result result = {.code = BATON_OK};
    const struct handoff_result *of_handoff = NULL;
    baton_code rc = check_asked(run, receipt, request);
    if (rc != BATON_OK) {
        print_result(run, request, rc, NULL, said);
        return rc;
    }
    run->request_no++;
    switch (request->kind) {
    case REQUEST_touch:
        rc = touch(c, run);
        break;
    case REQUEST_cancel:
        rc = cancel(c, run, by, request->reason);
        break;
    case REQUEST_reopen:
        rc = reopen(c, run, by, request->reason);
        break;
    case REQUEST_handoff:
        *ret_later = !asked_take(c, run, request, by, by_person(receipt, request), &result);
        rc = result.code;
        of_handoff = &result;
        break;
    case REQUEST_start:
    case REQUEST_answer: /* there is nothing that asks for one yet */
    case REQUEST_COUNT:
        rc = BATON_E_unsupported_field;
        break;
    }
    print_result(run, request, rc, of_handoff, said);
    return rc;
}

/* ---- one request ---- */

static void answer(struct coordinator *c, const struct request *request, const char *text,
                   baton_code code)
{
    struct buf said = BUF_INIT;
    struct jsonw w = jsonw_to(&said);
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "text", text);
    jsonw_end(&w);
    BATON_INVARIANT(buf_ok(&said));
    send_answer(c, request, said.data, code);
    buf_done(&said);
}

void requests_take(struct coordinator *c, const struct engine_event *event)
{
    const struct receipt *receipt = event->receipt;
    const struct request *request = receipt->request;
    struct baton_error err = {BATON_OK, ""};
    struct buf said = BUF_INIT;
    if (receipt->code != BATON_OK) {
        if (send_can_bury(c)) {
            send_dead_letter(c, event->record, receipt->code, receipt->note);
            engine_take(c->engine);
        }
        return;
    }
    if (!send_can_tell(c)) {
        return; /* it could not be answered: again in a moment */
    }
    struct run *run = NULL;
    baton_code rc = change_of(c, request->run_id.s, &run);
    if (rc == BATON_E_service_unavailable) {
        return; /* whether it may, its run knows, which cannot be read: again in a moment */
    }
    if (request->kind == REQUEST_start && rc != BATON_E_store_failed) {
        rc = run != NULL ? BATON_E_duplicate : begin(c, receipt, request, event->partition, &err);
        answer(c, request, rc == BATON_OK ? "" : err.text, rc);
    } else if (run == NULL) {
        answer(c, request, "", rc);
    } else {
        bool later = false;
        rc = act(c, run, receipt, request, &said, &later);
        if (!later) {
            send_answer(c, request, said.data, rc);
        }
    }
    buf_done(&said);
    engine_take(c->engine);
}
