/*
 * A run moves on: its first turns, what follows a turn's end, its end.
 *
 * Every handoff goes through the one operation (producer/handoff/handoff.c); what it lets pass is
 * counted and sent here, in the batch that holds the run's record. So the count is the number of
 * handoffs that were taken, and nothing is ever refunded (I9).
 *
 * In: requests.c, outcomes.c, asked.c, coordinator.c  Out: producer/handoff/handoff.c, send.c, hooks.c
 */
#include "producer/coordinator/internal.h"

#include "common/base/check.h"
#include "common/base/limits.h"
#include "common/record/json.h"
#include "common/record/turn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- ends and waits ---- */

void advance_wait(struct run *run, baton_code code, const char *stage, const char *why)
{
    const struct wall_ms now = wall_now();
    if (run->state == RUN_waiting) {
        snprintf(run->why, sizeof(run->why), "%s", why);
        run->updated_at = now;
    } else {
        BATON_INVARIANT(run_move(run, RUN_waiting, why, now));
    }
    run->code = code;
    snprintf(run->stage.s, sizeof(run->stage.s), "%s", stage);
}

void advance_end(struct coordinator *c, struct run *run, enum run_state state, const char *why)
{
    const struct wall_ms now = wall_now();
    asked_over(c, run);
    BATON_INVARIANT(run_move(run, state, why, now));
    for (size_t i = 0; i < run->n_kept; i++) {
        struct run_turn *turn = &run->turns[i];
        if (turn_state_open(turn->state)) {
            send_cancel(c, turn, why);
            run_turn_end(run, turn, TURN_cancelled, now);
        }
    }
    send_run_ended(c, run);
}

void advance_stale(struct coordinator *c, struct run *run)
{
    char why[128];
    const struct wall_ms now = wall_now();
    snprintf(why, sizeof(why), "the task is at revision %d, and this is about an older one",
             (int)run->task_rev);
    for (size_t i = 0; i < run->n_kept; i++) {
        struct run_turn *turn = &run->turns[i];
        if (turn_state_open(turn->state) && turn->task_rev < run->task_rev) {
            diag_line(DIAG_info, "run.stale", D_TEXT("run", run->id.s), D_TEXT("turn", turn->id.s),
                      D_INT("revision", turn->task_rev), D_INT("now", run->task_rev));
            send_cancel(c, turn, why);
            turn->code = BATON_E_stale_revision;
            run_turn_end(run, turn, TURN_cancelled, now);
        }
    }
    run_hold(run, "", NULL); /* an end that was reached was about it, too */
}

/* ---- taken handoffs ---- */

bool advance_can_reach(void *arg, size_t slot, baton_code *ret_code)
{
    struct coordinator *c = ((void **)arg)[0];
    const struct run *run = ((void **)arg)[1];
    return send_reachable(c, run, slot, ret_code);
}

/* Says of a run that goes on whom its transition has not reached (H-23). */
static void tell_unreached(struct run *run, const char *by, slot_set unreached)
{
    struct buf why = BUF_INIT;
    buf_printf(&why, "%s has not reached", by);
    for (size_t slot = 0; slot < run->workflow->n_slots; slot++) {
        if ((unreached & SLOT_BIT(slot)) != 0) {
            buf_printf(&why, " %s", workflow_slot_text(run->workflow, slot).s);
        }
    }
    buf_add_text(&why, ": it could not be written to");
    BATON_INVARIANT(buf_ok(&why));
    snprintf(run->why, sizeof(run->why), "%s", why.data);
    diag_line(DIAG_warn, "handoff.unreached", D_TEXT("run", run->id.s), D_TEXT("why", run->why));
    buf_done(&why);
}

bool advance_take(struct coordinator *c, struct run *run, const struct handoff_ask *ask,
                  struct handoff_result *result, const char *parent, const char *data)
{
    struct buf told = BUF_INIT;
    struct baton_error err = {BATON_OK, ""};
    const char *by = result->transition->name.s;
    const int n = run_total(run, by) + 1;
    char subject[RUN_SUBJECT_MAX + 2];
    const struct spans_cause cause = spans_cause_of(ask->turn);
    told_data(run, ask->from, ask->turn, result->transition, data, &told);
    char from[ID_MAX + 1];
    snprintf(from, sizeof(from), "%s", ask->from);
    for (size_t slot = 0; slot < run->workflow->n_slots; slot++) {
        if ((result->targets & SLOT_BIT(slot)) != 0 &&
            !send_turn(c, run, by, from, parent, slot, ask->summary, told.data, n, &err)) {
            result->targets &= ~SLOT_BIT(slot);
            result->unreached |= SLOT_BIT(slot);
        }
    }
    buf_done(&told);
    if (result->targets == 0) {
        result->status = HANDOFF_failed;
        result->stage = HANDOFF_STAGE_publish;
        result->code = err.code;
        snprintf(result->text, sizeof(result->text), "%.500s", err.text);
        advance_wait(run, err.code, handoff_stage_word(HANDOFF_STAGE_publish), err.text);
        return false;
    }
    BATON_INVARIANT(run_count(run, by));
    spans_decided(c, run, by, n, &cause);
    if (handoff_subject(result->transition, data, subject)) {
        run_freeze_subject(run, subject); /* said by what was taken, and by nothing else */
    }
    if (run->state == RUN_waiting) {
        BATON_INVARIANT(run_move(run, RUN_active, "it goes on", wall_now()));
    }
    run->updated_at = wall_now();
    if (result->unreached != 0) {
        tell_unreached(run, by, result->unreached);
    }
    return true;
}

void advance_start(struct coordinator *c, struct run *run)
{
    struct baton_error err = {BATON_OK, ""};
    baton_code code = BATON_OK;
    const int n = run_total(run, RUN_START) + 1;
    const size_t slot = run->workflow->start;
    if (!send_reachable(c, run, slot, &code)) {
        advance_wait(run, code, handoff_stage_word(HANDOFF_STAGE_publish), baton_code_text(code));
    } else if (!send_turn(c, run, RUN_START, "", run->id.s, slot, run->summary, run->data, n,
                          &err)) {
        advance_wait(run, err.code, handoff_stage_word(HANDOFF_STAGE_publish), err.text);
    } else {
        BATON_INVARIANT(run_count(run, RUN_START));
        if (run->state == RUN_waiting) {
            BATON_INVARIANT(run_move(run, RUN_active, "it begins", wall_now()));
        }
    }
}

/* ---- what follows the end of a turn ---- */

/* No end may leave others at work behind: the run ends when the last of its turns has. */
static void end_by(struct coordinator *c, struct run *run, const struct run_turn *turn,
                   const struct workflow_end *end, const char *summary)
{
    char why[RUN_WHY_MAX + 1];
    if (run_turns_open(run) > 0) {
        run_hold(run, turn->id.s, summary != NULL ? strdup(summary) : NULL);
        if (run->state == RUN_active) { /* else it says what is waited for */
            snprintf(run->why, sizeof(run->why), "%s is reached, and other turns are still open",
                     end->name.s);
        }
        run->updated_at = wall_now();
        return;
    }
    snprintf(why, sizeof(why), "%s: %.900s", end->name.s, summary != NULL ? summary : "");
    advance_end(c, run, end->as == WORKFLOW_END_completed ? RUN_completed : RUN_failed, why);
}

bool advance_held(struct coordinator *c, struct run *run)
{
    const struct run_turn *turn = run_turn_find(run, run->held.turn.s);
    if (turn == NULL || run_turns_open(run) > 0 || run->pending.turn.s[0] != '\0' ||
        run->n_later > 0) {
        return false;
    }
    const struct workflow_end *end =
        workflow_end_on(run->workflow, run_slot(run, turn->slot.s), turn->verdict);
    char *summary = run->held.summary;
    run->held.summary = NULL;
    run_hold(run, "", NULL);
    if (end != NULL) {
        end_by(c, run, turn, end, summary);
    }
    free(summary);
    return end != NULL;
}

static void wait_for_answer(struct run *run, const struct run_turn *turn, const char *summary)
{
    char why[RUN_WHY_MAX + 1];
    snprintf(why, sizeof(why), "%s says %s%s%.800s", turn->slot.s, verdict_word(turn->verdict),
             summary != NULL ? ": " : "", summary != NULL ? summary : "");
    advance_wait(run, BATON_OK, "", why);
    run_pend(run, "", NULL, NULL, NULL);
}

/* The data of the pending end: what a hook has patched counts from there on, as its summary (H-34). */
static const char *facts_of(const struct coordinator *c, const struct run *run)
{
    const struct hook_end *hook = hooks_end_of(c, run, NULL);
    return hook != NULL && hook->data != NULL ? hook->data : run->pending.data;
}

/* Is the pending end to be answered by this handoff? *ret_result: would it pass just now. */
static struct handoff_ask decide_pending(struct coordinator *c, struct run *run,
                                         const struct run_turn *turn, void **reach,
                                         struct handoff_result *ret_result)
{
    const char *target = run->pending.target;
    const struct hook_end *hook = hooks_end_of(c, run, NULL);
    const char *said = run->pending.summary != NULL ? run->pending.summary : run->summary;
    const char *names[LIMIT_DATA_KEYS];
    struct json_doc *data = NULL;
    struct handoff_ask ask = {
        .actor = target == NULL ? HANDOFF_ACTOR_workflow : HANDOFF_ACTOR_agent,
        .from = turn->slot.s,
        .has_verdict = true,
        .verdict = turn->verdict,
        .target = target,
        .summary = hook != NULL && hook->summary != NULL ? hook->summary : said,
        /* What a verdict brings along are facts of the result; what is asked for is declared (H-37). */
        .n_data = target != NULL ? told_names(facts_of(c, run), names, &data) : 0,
        .facts = facts_of(c, run),
        .data = names,
        .turn = turn,
        .hook = hook != NULL ? &hook->decision : NULL,
        .reachable = advance_can_reach,
        .reachable_arg = reach,
    };
    handoff_decide(run, &ask, ret_result);
    json_free(data);
    ask.n_data = 0;
    ask.data = NULL;
    return ask;
}

/* Its hook is to look at it: the run goes on meanwhile, and what is pending stays so. */
static void wait_for_hook(struct coordinator *c, struct run *run, const struct run_turn *turn,
                          const struct handoff_result *result, const char *summary,
                          const char *data)
{
    if (run->state == RUN_waiting) {
        char why[64];
        snprintf(why, sizeof(why), "hook %s looks at it", result->transition->hook->name.s);
        BATON_INVARIANT(run_move(run, RUN_active, why, wall_now()));
    }
    hooks_want(c, run, turn, result, summary, data, NULL);
}

static void answer_pending(struct coordinator *c, struct run *run)
{
    struct run_turn *turn = run_turn_find(run, run->pending.turn.s);
    struct handoff_result result;
    if (turn == NULL) {
        run_pend(run, "", NULL, NULL, NULL);
        return;
    }
    const size_t slot = run_slot(run, turn->slot.s);
    const char *target = run->pending.target;
    const struct workflow_end *end =
        target == NULL ? workflow_end_on(run->workflow, slot, turn->verdict) : NULL;
    if (end != NULL) {
        char *summary = run->pending.summary;
        run->pending.summary = NULL;
        run_pend(run, "", NULL, NULL, NULL);
        end_by(c, run, turn, end, summary);
        free(summary);
        return;
    }
    if (target == NULL && workflow_transition_on(run->workflow, slot, turn->verdict) == NULL) {
        wait_for_answer(run, turn, run->pending.summary);
        return;
    }
    void *reach[] = {c, run};
    const struct handoff_ask ask = decide_pending(c, run, turn, reach, &result);
    diag_line(DIAG_info, "handoff.decided", D_TEXT("run", run->id.s), D_TEXT("from", ask.from),
              D_TEXT("target", target), D_TEXT("status", handoff_status_word(result.status)),
              D_TEXT("stage", handoff_stage_word(result.stage)), D_CODE("code", result.code));
    const char *facts = facts_of(c, run);
    if (result.wants_hook) {
        wait_for_hook(c, run, turn, &result, ask.summary, facts);
        return;
    }
    if (result.status != HANDOFF_queued) {
        /* What cannot be written to just now is tried again by itself (advance_look). */
        advance_wait(run, result.code, handoff_stage_word(result.stage), result.text);
        return;
    }
    const struct turn_id parent = turn->id;
    struct run_pending pending = run->pending; /* its texts are used until the turns are sent */
    run->pending = (struct run_pending){.turn = {""}};
    if (!advance_take(c, run, &ask, &result, parent.s, facts)) {
        run->pending = pending; /* not answered yet */
        return;
    }
    free(pending.target);
    free(pending.summary);
    free(pending.data);
}

void advance_pending(struct coordinator *c, struct run *run)
{
    do {
        answer_pending(c, run);
    } while (run->pending.turn.s[0] == '\0' && run_pend_next(run));
}

void advance_again(struct coordinator *c, struct run *run)
{
    if (run->pending.turn.s[0] != '\0') {
        advance_pending(c, run);
    } else if (run->state == RUN_waiting && !run_begun(run)) {
        advance_start(c, run);
    }
}

/* ---- looking through what is open ---- */

#define LOOKS_MAX 256 /* runs changed in one round; the others come with the next */

struct looking {
    struct coordinator *c;
    struct wall_ms now;
    struct plain_id due[LOOKS_MAX];
    size_t n;
};

/* Can what waits to be sent be sent now? Only then is anything decided: a run that waits for a topic or a
 * right for a week is not written a hundred thousand times. */
static bool may_go_on(struct coordinator *c, struct run *run)
{
    struct handoff_result result;
    baton_code code = BATON_OK;
    void *reach[] = {c, run};
    if (run->state != RUN_waiting ||
        strcmp(run->stage.s, handoff_stage_word(HANDOFF_STAGE_publish)) != 0 ||
        run->code == BATON_E_record_too_large || run->code == BATON_E_invalid_envelope) {
        return false; /* what cannot be written anywhere waits for a person */
    }
    const struct run_turn *turn = run_turn_find(run, run->pending.turn.s);
    if (turn == NULL) {
        return !run_begun(run) && send_reachable(c, run, run->workflow->start, &code);
    }
    decide_pending(c, run, turn, reach, &result);
    return result.status == HANDOFF_queued || result.wants_hook;
}

static void look_one(void *arg, const struct image_row *row)
{
    struct looking *looking = arg;
    struct run *run = row->run;
    const bool over = run->deadline.v > 0 && run->deadline.v <= looking->now.v;
    if (looking->n < LOOKS_MAX && (over || may_go_on(looking->c, run) ||
                                   hooks_lost(looking->c, run) || asked_lost(looking->c, run))) {
        looking->due[looking->n++] = row->id;
    }
}

void advance_look(struct coordinator *c)
{
    struct looking *looking = calloc(1, sizeof(*looking));
    BATON_INVARIANT(looking != NULL);
    looking->c = c;
    looking->now = wall_now();
    image_each(&c->image, look_one, looking);
    for (size_t i = 0; i < looking->n; i++) {
        struct run *run = NULL;
        if (change_of(c, looking->due[i].s, &run) != BATON_OK || !run_state_open(run->state)) {
            continue;
        }
        if (run->deadline.v > 0 && run->deadline.v <= looking->now.v) {
            advance_end(c, run, RUN_expired, "its deadline has passed");
        } else if (asked_lost(c, run)) {
            asked_again(c, run);
        } else {
            advance_again(c, run);
        }
    }
    free(looking);
}
