/*
 * Handoffs that people and programs ask for, along one of a run's transitions. Where that has a hook,
 * the run stays as it is while the hook looks, whatever else comes; then it is decided again, all of it,
 * and answered:
 *
 *   request ----> decided: answered
 *      |
 *      +--> its hook looks (run->asked, in the run's record) ----> decided once more: answered
 *                |
 *                +--> the run ends meanwhile: refused
 *
 * In: requests.c, hooks.c, advance.c  Out: advance.c, hooks.c, send.c
 */
#include "producer/coordinator/internal.h"

#include "common/base/check.h"
#include "common/record/json.h"
#include "common/record/turn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Would a turn with this summary and data, after parent, be the one that is open already (H-15)? What a
 * repeat must share is its content (RECORD.md section 2). */
static bool is_same(const struct coordinator *c, const struct run *run, const struct run_turn *open,
                    const char *parent, const char *summary, const char *data)
{
    struct turn *turn = NULL;
    const struct turn_draft draft = {
        .fleet = c->fleet.s,
        .origin = COORDINATOR_PRINCIPAL,
        .service = open->born.s,
        .role = open->role,
        .verdicts = run->workflow->verdicts[open->role],
        .task_id = run->task_id.s,
        .run_id = run->id.s,
        .intent = open->by.s,
        .key = parent,
        .parent = parent,
        .created_at = wall_now(),
        .deadline = run->deadline,
        .summary = summary,
        .data = data,
        .data_len = strlen(data),
        .payload = "",
        .payload_json = run->payload,
        .payload_json_len = run->payload != NULL ? strlen(run->payload) : 0,
    };
    const bool same = turn_encode(&draft, &turn, NULL) == BATON_OK &&
                      memcmp(turn->content.b, open->content.b, DIGEST_LEN) == 0;
    turn_free(turn);
    return same;
}

static void refuse(struct handoff_result *result, enum handoff_stage stage, baton_code code)
{
    result->status = HANDOFF_blocked;
    result->stage = stage;
    result->code = code;
}

/*
 * A sender has one continuation at a time (R-32, I20): while its own turn is open, or what was handed on
 * along this transition, nothing more follows; the same once more is only told so (H-15). False: decided.
 */
static bool may_follow(const struct coordinator *c, const struct run *run,
                       const struct run_asked *asked, const struct run_turn *last,
                       struct handoff_result *result)
{
    const struct run_turn *open = last != NULL && turn_state_open(last->state) ? last : NULL;
    for (size_t i = 0; i < run->n_kept && open == NULL; i++) {
        const struct run_turn *turn = &run->turns[i];
        const bool follows = strcmp(turn->from.s, asked->from) == 0 &&
                             strcmp(turn->by.s, result->transition->name.s) == 0;
        open = follows && turn_state_open(turn->state) ? turn : NULL;
    }
    if (open == NULL) {
        return true;
    }
    if (open != last) {
        struct buf told = BUF_INIT;
        told_data(run, asked->from, NULL, result->transition, asked->data, &told);
        result->deduped =
            is_same(c, run, open, last != NULL ? last->id.s : run->id.s, asked->summary, told.data);
        buf_done(&told);
    }
    if (!result->deduped) {
        refuse(result, HANDOFF_STAGE_resolve_run, BATON_E_turn_open);
        snprintf(result->text, sizeof(result->text),
                 "turn %s of %s is still %s; what follows exists once it has ended", open->id.s,
                 open->slot.s, turn_state_word(open->state));
    }
    return false;
}

/* The sender's turn: an open one, else the newest; NULL: it had none. */
static const struct run_turn *turn_of_sender(const struct run *run, const char *slot)
{
    const struct run_turn *last = NULL;
    for (size_t i = run->n_kept; i-- > 0;) {
        const struct run_turn *one = &run->turns[i];
        if (strcmp(one->slot.s, slot) == 0 &&
            (last == NULL || (!turn_state_open(last->state) && turn_state_open(one->state)))) {
            last = one;
        }
    }
    return last;
}

/* The operation, with what the hook has said (NULL: it has not run); *ret_ask: as it was asked. */
static void decide(struct coordinator *c, struct run *run, const struct run_asked *asked,
                   const struct hook_end *hook, struct handoff_ask *ret_ask,
                   struct handoff_result *ret_result)
{
    void *reach[] = {c, run};
    const char *names[LIMIT_DATA_KEYS];
    struct json_doc *data = NULL;
    *ret_ask = (struct handoff_ask){
        .actor = asked->person ? HANDOFF_ACTOR_person : HANDOFF_ACTOR_agent,
        .from = asked->from,
        .target = asked->target,
        .summary = asked->summary,
        .n_data = told_names(asked->data, names, &data),
        .facts = asked->data,
        .data = names,
        .hook = hook != NULL ? &hook->decision : NULL,
        .reachable = advance_can_reach,
        .reachable_arg = reach,
    };
    handoff_decide(run, ret_ask, ret_result);
    json_free(data);
    ret_ask->n_data = 0;
    ret_ask->data = NULL;
}

static void take(struct coordinator *c, struct run *run, const struct run_asked *asked,
                 const struct handoff_ask *ask, struct handoff_result *result)
{
    const struct run_turn *last = turn_of_sender(run, asked->from);
    char parent[ID_MAX + 1];
    snprintf(parent, sizeof(parent), "%s", last != NULL ? last->id.s : run->id.s);
    if (advance_take(c, run, ask, result, parent, asked->data)) {
        run_pend_answered(run, asked->from); /* this is the answer */
        if (run_pend_next(run)) {
            advance_pending(c, run);
        }
    }
}

/* Its hook is to look at it first. False: that is refused. */
static bool wait_for_hook(struct coordinator *c, struct run *run, const struct run_asked *asked,
                          struct handoff_result *result)
{
    const struct run_turn *last = turn_of_sender(run, asked->from);
    if (run->asked.request.s[0] != '\0') {
        refuse(result, HANDOFF_STAGE_resolve_run, BATON_E_turn_open);
        snprintf(result->text, sizeof(result->text),
                 "a hook still looks at the handoff that %s has asked for", run->asked.by.s);
        return false;
    }
    result->status = HANDOFF_queued; /* but for its hook */
    result->stage = HANDOFF_STAGE_publish;
    result->code = BATON_OK;
    if (!may_follow(c, run, asked, last, result)) {
        return false;
    }
    if (!run_ask(run, asked)) {
        refuse(result, HANDOFF_STAGE_policy, BATON_E_record_too_large);
        snprintf(result->text, sizeof(result->text),
                 "data for a hook has at most %d bytes, and this has %zu", RUN_DATA_MAX,
                 strlen(asked->data));
        return false;
    }
    run->updated_at = wall_now();
    hooks_want(c, run, last, result, asked->summary, asked->data, &run->asked);
    return true;
}

bool asked_take(struct coordinator *c, struct run *run, const struct request *request,
                const char *by, bool person, struct handoff_result *ret_result)
{
    struct handoff_ask ask;
    const struct run_asked asked = {.request = request->id,
                                    .by = plain_id_of(by),
                                    .person = person,
                                    .from = (char *)request->from,
                                    .target = (char *)request->target,
                                    .summary = request->summary,
                                    .data = request->data};
    decide(c, run, &asked, NULL, &ask, ret_result);
    if (ret_result->wants_hook) {
        return !wait_for_hook(c, run, &asked, ret_result);
    }
    if (ret_result->status == HANDOFF_queued &&
        may_follow(c, run, &asked, turn_of_sender(run, asked.from), ret_result)) {
        take(c, run, &asked, &ask, ret_result);
    }
    return true;
}

bool asked_lost(const struct coordinator *c, const struct run *run)
{
    return run->asked.request.s[0] != '\0' && hooks_none_for(c, run, &run->asked);
}

static void answer(struct coordinator *c, struct run *run, const struct handoff_result *result)
{
    const struct request request = {
        .kind = REQUEST_handoff, .id = run->asked.request, .run_id = run->id};
    struct buf said = BUF_INIT;
    requests_print_handoff(run, result, &said);
    send_answer(c, &request, said.data, result->code);
    buf_done(&said);
}

void asked_again(struct coordinator *c, struct run *run)
{
    struct handoff_ask ask;
    struct handoff_result result;
    const struct hook_end *hook = hooks_end_of(c, run, &run->asked);
    struct run_asked asked = run->asked;
    if (hook != NULL &&
        hook->summary != NULL) { /* what it has patched counts from here on (H-34) */
        asked.summary = hook->summary;
    }
    if (hook != NULL && hook->data != NULL) {
        asked.data = hook->data;
    }
    decide(c, run, &asked, hook, &ask, &result);
    if (result.wants_hook) {
        hooks_want(c, run, turn_of_sender(run, asked.from), &result, asked.summary, asked.data,
                   &run->asked);
        return;
    }
    if (result.status == HANDOFF_queued &&
        may_follow(c, run, &asked, turn_of_sender(run, asked.from), &result)) {
        take(c, run, &asked, &ask, &result);
    }
    diag_line(DIAG_info, "handoff.decided", D_TEXT("run", run->id.s), D_TEXT("from", asked.from),
              D_TEXT("target", asked.target), D_TEXT("by", asked.by.s),
              D_TEXT("status", handoff_status_word(result.status)),
              D_TEXT("stage", handoff_stage_word(result.stage)), D_CODE("code", result.code));
    if (run->asked.request.s[0] !=
        '\0') { /* what followed may have ended the run, and answered it */
        answer(c, run, &result);
        run_ask_done(run);
    }
}

void asked_over(struct coordinator *c, struct run *run)
{
    struct handoff_result result = {.transition = NULL};
    if (run->asked.request.s[0] == '\0') {
        return;
    }
    refuse(&result, HANDOFF_STAGE_recheck, BATON_E_run_terminal);
    snprintf(result.text, sizeof(result.text), "the run has ended while its hook looked at it");
    answer(c, run, &result);
    run_ask_done(run);
}
