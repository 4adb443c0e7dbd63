/*
 * Outcomes of turns: what became of the turns that runs wait for. They count only with their proof
 * (receipt_outcome), and only from the service where the turn is now, about the turn that was sent.
 *
 * In: coordinator.c  Out: advance.c
 */
#include "producer/coordinator/internal.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "common/record/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what a result says ---- */

struct said {
    bool has_verdict;
    enum verdict verdict;
    char *target; /* of the handoff that it asks for */
    char *summary;
    char *data; /* raw JSON object */
    int64_t cost;
};

/* A text, cut between two characters where it is longer than the run's record takes. */
static char *copy_text(const struct json_value *value, size_t max)
{
    size_t len = 0;
    if (value == NULL || json_kind(value) != JSON_text) {
        return NULL;
    }
    const char *text = json_text(value, &len);
    if (len > max) {
        len = max;
        while (len > 0 && ((unsigned char)text[len] & 0xC0) == 0x80) {
            len--;
        }
    }
    return strndup(text, len);
}

static bool blank(const char *text)
{
    return text[strspn(text, " \t\r\n\v\f")] == '\0';
}

/* A JSON object of texts, printed anew from what was read. */
static char *copy_texts(const struct json_value *object)
{
    struct buf out = BUF_INIT;
    struct jsonw w = jsonw_to(&out);
    if (object == NULL || json_kind(object) != JSON_object) {
        return NULL;
    }
    jsonw_begin_object(&w);
    for (const struct json_value *one = json_first(object); one != NULL; one = json_next(one)) {
        if (json_kind(one) == JSON_text) {
            size_t len;
            const char *text = json_text(one, &len);
            jsonw_key_any(&w, json_name(one), strlen(json_name(one)));
            jsonw_plain(&w, text, len);
        }
    }
    jsonw_end(&w);
    if (out.len > RUN_DATA_MAX) { /* no executor's result holds as much */
        diag_line(DIAG_warn, "outcome.data_left_out", D_INT("bytes", (int64_t)out.len),
                  D_INT("max", RUN_DATA_MAX));
        buf_done(&out);
        return NULL;
    }
    return buf_take(&out, NULL);
}

static void read_result(const struct outcome *outcome, struct said *said)
{
    struct json_doc *doc = NULL;
    size_t len;
    if (outcome->result == NULL || json_parse(outcome->result, outcome->result_len, LIMIT_RECORD,
                                              LIMIT_JSON_DEPTH + 4, &doc, NULL) != BATON_OK) {
        return;
    }
    const struct json_value *root = json_root(doc);
    const char *verdict = json_member_text(root, "verdict", &len);
    const struct json_value *handoff = json_member(root, "handoff");
    const struct json_value *cost = json_member(root, "cost");
    said->has_verdict = verdict_parse(verdict, len, &said->verdict);
    said->summary = copy_text(json_member(root, "summary"), LIMIT_SUMMARY);
    said->data = copy_texts(json_member(root, "data"));
    if (handoff != NULL && json_kind(handoff) == JSON_object) {
        /* One target by its name; what names none, or several, is no target that there is (I01). */
        said->target = copy_text(json_member(handoff, "target"), RUN_TARGET_MAX);
        said->target = said->target != NULL ? said->target : strdup("");
        char *summary = copy_text(json_member(handoff, "summary"), RUN_SUMMARY_MAX);
        if (summary != NULL) {
            free(said->summary);
            said->summary = summary;
        }
        free(said->data);
        said->data = copy_texts(json_member(handoff, "data"));
    }
    if (said->target == NULL && said->summary != NULL && blank(said->summary)) {
        free(said->summary); /* nothing was said: the next turn is about the run's task */
        said->summary = NULL;
    }
    const struct json_value *micros =
        cost != NULL && json_kind(cost) == JSON_object ? json_member(cost, "micros") : NULL;
    said->cost = micros != NULL && json_kind(micros) == JSON_int && json_int(micros) > 0
                     ? json_int(micros)
                     : 0;
    json_free(doc);
}

/* ---- whose ---- */

static void ignored(const struct outcome *outcome, const char *why)
{
    diag_line(DIAG_info, "outcome.ignored", D_TEXT("run", outcome->run_id.s),
              D_TEXT("turn", outcome->turn_id.s), D_TEXT("told", outcome_word(outcome->event)),
              D_TEXT("service", outcome->service.s), D_TEXT("why", why));
}

/* The turn of the run that it is about, where it may change it (X24 to X26); else NULL. */
static struct run_turn *turn_of(const struct coordinator *c, struct run *run,
                                const struct receipt *receipt, struct pass *ret_last)
{
    const struct outcome *outcome = receipt->outcome;
    const struct receiver receiver = coordinator_receiver(c);
    struct run_turn *turn = run_turn_find(run, outcome->turn_id.s);
    struct baton_error err = {BATON_OK, ""};
    const struct receipt_turn sent = {outcome->turn_id.s, turn != NULL ? turn->born.s : "",
                                      turn != NULL ? turn->role : ROLE_owner,
                                      turn != NULL ? &turn->digest : NULL};
    if (turn == NULL) {
        ignored(outcome, "the run has no such turn");
    } else if (!turn_state_open(turn->state) || !run_state_open(run->state)) {
        ignored(outcome, "it is settled already");
        turn = NULL;
    } else if (turn->epoch != run->epoch || outcome->epoch != run->epoch) {
        ignored(outcome, "it is of an older epoch");
        turn = NULL;
    } else if (outcome->has_role &&
               (outcome->role != turn->role || strcmp(outcome->born.s, turn->born.s) != 0 ||
                memcmp(outcome->content.b, turn->content.b, DIGEST_LEN) != 0)) {
        ignored(outcome, "it is about another turn than the one that was sent");
        turn = NULL;
    } else if (receipt_outcome_chain(&receiver, receipt, &sent, ret_last, &err) != BATON_OK) {
        ignored(outcome, err.text); /* X25: who speaks must be at the end of the chain */
        turn = NULL;
    } else if (outcome->attempt < turn->attempt && (outcome->attempt != 0 || turn->attempt > 1)) {
        ignored(outcome, "a later attempt is known");
        turn = NULL;
    } else if ((outcome->event == OUTCOME_delegated) != (outcome->to.s[0] != '\0') &&
               outcome->event != OUTCOME_answer && outcome->event != OUTCOME_duplicate) {
        ignored(outcome, "it does not say where the turn goes on, or where none does");
        turn = NULL;
    }
    return turn;
}

/* ---- events ---- */

static void wake(struct run *run, const char *why)
{
    if (run->state == RUN_waiting && run->pending.turn.s[0] == '\0') {
        BATON_INVARIANT(run_move(run, RUN_active, why, wall_now()));
    }
}

/* Does the run wait for this turn, which is parked? */
static bool waits_for(const struct run *run, const struct run_turn *turn)
{
    return run->state == RUN_waiting && turn->state == TURN_parked &&
           strstr(run->why, turn->id.s) != NULL;
}

static void wait_for_parked(struct run *run, const struct run_turn *turn)
{
    char why[RUN_WHY_MAX + 1];
    snprintf(why, sizeof(why),
             "turn %s of %s is parked at %s (%s); `baton turns show %s` says why, and a replay "
             "lets it go on",
             turn->id.s, turn->slot.s, turn->service.s, baton_code_word(turn->code), turn->id.s);
    advance_wait(run, BATON_OK, "", why);
}

/* Active means that a turn is queued or runs (S4). Where the others that are open are parked, the run
 * waits again, for them. */
static void settle(struct run *run)
{
    const struct run_turn *parked = NULL;
    bool works = false;
    for (size_t i = run->n_kept; i-- > 0;) {
        const enum turn_state state = run->turns[i].state;
        works = works || state == TURN_queued || state == TURN_running;
        parked = state == TURN_parked ? &run->turns[i] : parked;
    }
    if (run->state == RUN_active && !works && parked != NULL) {
        wait_for_parked(run, parked);
    }
}

/* Another turn's end waits already: the run goes on by that one, this one is answered after it, and
 * `why` tells of both. */
static void tell_of_second(struct run *run, const struct run_turn *turn)
{
    char why[RUN_WHY_MAX + 1];
    snprintf(why, sizeof(why), "%.700s; %s says %s meanwhile, which is answered after it", run->why,
             turn->slot.s, verdict_word(turn->verdict));
    snprintf(run->why, sizeof(run->why), "%s", why);
    run->updated_at = wall_now();
}

static void take_completed(struct coordinator *c, struct run *run, struct run_turn *turn,
                           const struct outcome *outcome)
{
    struct said said = {.has_verdict = false};
    read_result(outcome, &said);
    turn->attempt = outcome->attempt;
    turn->has_verdict =
        said.has_verdict && (run->workflow->verdicts[turn->role] & VERDICT_BIT(said.verdict)) != 0;
    turn->verdict = turn->has_verdict ? said.verdict : turn->verdict;
    turn->cost = run_sum(turn->cost, said.cost);
    turn->code = BATON_OK;
    const int32_t revision = run->task_rev;
    run_turn_end(run, turn, TURN_completed, outcome->at);
    if (run->task_rev != revision) {
        advance_stale(c, run);
    }
    wake(run, "a turn has ended");
    const bool waits = run->state == RUN_waiting && run->pending.turn.s[0] != '\0';
    if (turn->has_verdict && (waits || hooks_may_look(run))) {
        /* Another turn's end waits for a person, or a hook looks at it: this one is answered after that. */
        BATON_INVARIANT(run_pend_later(run, turn->id.s, said.target, said.summary, said.data));
        if (waits && !hooks_may_look(run)) {
            tell_of_second(run, turn);
        }
        return;
    }
    if (!turn->has_verdict) { /* no worker of ours tells so; nothing is made of it (S10) */
        char why[RUN_WHY_MAX + 1];
        snprintf(why, sizeof(why),
                 "turn %s of %s ended without a verdict that the workflow leaves to its role",
                 turn->id.s, turn->slot.s);
        advance_wait(run, BATON_E_no_verdict, "", why);
        free(said.target);
        free(said.summary);
        free(said.data);
        return;
    }
    run_pend(run, turn->id.s, said.target, said.summary, said.data);
    advance_pending(c, run);
}

static void take_parked(struct run *run, struct run_turn *turn, const struct outcome *outcome)
{
    turn->attempt = outcome->attempt;
    turn->code = outcome->code;
    run_turn_end(run, turn, TURN_parked, wall_now());
    if (run->state == RUN_active) {
        wait_for_parked(run, turn);
    }
}

static void take_cancelled(struct coordinator *c, struct run *run, struct run_turn *turn,
                           const struct outcome *outcome)
{
    char why[RUN_WHY_MAX + 1];
    const bool waited = waits_for(run, turn);
    run_turn_end(run, turn, TURN_cancelled, outcome->at);
    snprintf(why, sizeof(why), "turn %s of %s was cancelled", turn->id.s, turn->slot.s);
    if (waited && run_turns_open(run) > 0) {
        wake(run, why); /* for the others: they work, or are waited for in their turn */
    } else if ((waited || run->state == RUN_active) && advance_held(c, run)) {
        return; /* an end was reached before, and this was all that it waited for */
    } else if (waited || (run->state == RUN_active && run_turns_open(run) == 0)) {
        advance_wait(run, BATON_OK, "", why);
    }
}

/* It runs, or waits for its next attempt, after having been parked: its run is active again. */
static void take_going_on(struct run *run, struct run_turn *turn, const struct outcome *outcome,
                          enum turn_state state)
{
    /* What went on elsewhere goes on with the next attempt: who had it before does not speak for it any more. */
    const bool elsewhere = outcome->to.s[0] != '\0' && outcome->attempt < INT32_MAX;
    const int attempt = elsewhere ? outcome->attempt + 1 : outcome->attempt;
    const bool waited = waits_for(run, turn);
    turn->attempt = attempt > turn->attempt ? attempt : turn->attempt;
    turn->state = state;
    turn->code = BATON_OK;
    if (elsewhere) {
        turn->service = outcome->to;
    }
    if (state == TURN_running) {
        turn->claimed_at = outcome->at;
    }
    if (waited) {
        wake(run, "its turn goes on");
    }
    run->updated_at = wall_now();
}

static void take_event(struct coordinator *c, struct run *run, struct run_turn *turn,
                       const struct outcome *outcome)
{
    switch (outcome->event) {
    case OUTCOME_completed:
        take_completed(c, run, turn, outcome);
        break;
    case OUTCOME_parked:
        take_parked(run, turn, outcome);
        break;
    case OUTCOME_cancelled:
        take_cancelled(c, run, turn, outcome);
        break;
    case OUTCOME_claimed:
        take_going_on(run, turn, outcome, TURN_running);
        break;
    case OUTCOME_delegated:
        take_going_on(run, turn, outcome, TURN_queued);
        break;
    case OUTCOME_answer: /* a replay was taken in */
        if (strcmp(outcome->answers_kind, "replay") == 0 && outcome->code == BATON_OK &&
            turn->state == TURN_parked && outcome->has_state && outcome->state != TURN_parked) {
            take_going_on(run, turn, outcome, TURN_queued);
        }
        break;
    case OUTCOME_duplicate:
    case OUTCOME_run_ended:
    case OUTCOME_EVENT_COUNT:
        break;
    }
}

void outcomes_take(struct coordinator *c, const struct engine_event *event)
{
    const struct receipt *receipt = event->receipt;
    const struct outcome *outcome = receipt->outcome;
    const struct image_row *row = receipt->code == BATON_OK && outcome != NULL &&
                                          outcome->run_id.s[0] != '\0' &&
                                          outcome->turn_id.s[0] != '\0'
                                      ? image_find(&c->image, outcome->run_id.s)
                                      : NULL;
    if (row == NULL || row->run == NULL) {
        /* Not proven, of no run of ours, or of one that has ended (none is reopened before the outcomes of
         * its round are taken). */
        engine_take(c->engine);
        return;
    }
    if (!send_can_tell(c)) {
        return; /* what follows could not be told: again in a moment */
    }
    struct run *run = NULL;
    struct pass last = {.attempt = 0};
    struct run_turn *turn =
        change_of(c, outcome->run_id.s, &run) == BATON_OK ? turn_of(c, run, receipt, &last) : NULL;
    if (turn != NULL) {
        turn->service = outcome->service;
        turn->cost =
            outcome->cost_micros > last.cost_micros ? outcome->cost_micros : last.cost_micros;
        take_event(c, run, turn, outcome);
        settle(run);
    }
    engine_take(c->engine);
}
