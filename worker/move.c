/*
 * The movers: a turn's state and an attempt's state change here and nowhere else.
 *
 * Each checks the table of common/base/state.h, writes one log line and counts; a turn's move is a span, too. A decision lives in
 * memory until the log has it; folding takes the log's word and does not come through here.
 *
 * In: worker/claim.c, worker/settle.c, worker/operate.c  Out: common/base/state.h
 */
#include "worker/move.h"

#include "common/base/check.h"
#include "common/base/diag.h"
#include "common/base/metrics.h"
#include "common/record/turn_record.h"
#include "worker/internal.h"
#include "worker/spans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void count(enum turn_state to)
{
    switch (to) {
    case TURN_completed:
        metric_add(METRIC_turns_completed, 1);
        break;
    case TURN_parked:
        metric_add(METRIC_turns_parked, 1);
        break;
    case TURN_cancelled:
        metric_add(METRIC_turns_cancelled, 1);
        break;
    case TURN_delegated:
        metric_add(METRIC_turns_delegated, 1);
        break;
    case TURN_queued:
    case TURN_running:
    case TURN_STATE_COUNT:
        break;
    }
}

void turn_move(struct worker *w, struct turn_record *record, bool birth, enum turn_state to)
{
    BATON_PRE(birth ? turn_state_may_begin(to) : turn_state_may_move(record->state, to));
    diag_line(DIAG_info, "turn.moved", D_TURN(record), D_TEXT("task", record->task_id.s),
              D_TEXT("from", birth ? "none" : turn_state_word(record->state)),
              D_TEXT("to", turn_state_word(to)),
              D_TEXT("code", record->code != BATON_OK ? baton_code_word(record->code) : NULL),
              D_TEXT("worker", w->id.s));
    const enum turn_state from = record->state;
    record->state = to;
    record->updated_at = wall_now();
    if (to != TURN_running) {
        record->lease_worker.s[0] = '\0';
        record->lease_boot.s[0] = '\0';
    }
    if (to != TURN_queued) {
        record->not_before.v = 0;
        record->delay_ms = 0;
    }
    if (to != TURN_parked) {
        record->code = BATON_OK;
    }
    if (!turn_state_open(to)) {
        record->ended_at = record->updated_at;
    }
    count(to);
    spans_moved(w, record, birth, from);
}

struct attempt *attempt_begin(struct worker *w, struct turn_record *record,
                              enum attempt_state state, const char *profile)
{
    BATON_PRE(attempt_state_may_begin(state));
    struct attempt *attempt = turn_record_add_attempt(record);
    if (attempt == NULL) {
        check_failed("allocation", "an attempt", __FILE__, __LINE__);
    }
    attempt->no = record->attempt;
    attempt->service = w->service->name;
    snprintf(attempt->profile.s, sizeof(attempt->profile.s), "%s", profile);
    attempt->state = state;
    if (state == ATTEMPT_running) {
        attempt->worker = w->id;
        attempt->started_at = wall_now();
    } else if (!attempt_state_live(state)) {
        attempt->ended_at = wall_now();
    }
    return attempt;
}

void attempt_move(struct turn_record *record, struct attempt *attempt, enum attempt_state to,
                  struct wall_ms at)
{
    BATON_PRE(attempt_state_may_move(attempt->state, to));
    diag_line(DIAG_info, "attempt.moved", D_TURN(record),
              D_TEXT("from", attempt_state_word(attempt->state)),
              D_TEXT("to", attempt_state_word(to)),
              D_TEXT("class", attempt->has_class ? failure_word(attempt->class) : NULL),
              D_TEXT("profile", attempt->profile.s), D_TEXT("worker", attempt->worker.s));
    attempt->state = to;
    if (!attempt_state_live(to)) {
        attempt->ended_at = at;
    }
    if (to == ATTEMPT_failed && attempt->has_class) {
        metric_add_of(METRIC_attempts_failed, (int)attempt->class, 1);
    }
}

void attempt_note(struct attempt *attempt, const char *note)
{
    free(attempt->note);
    attempt->note = note != NULL && note[0] != '\0' ? strdup(note) : NULL;
}

void attempt_usage(struct attempt *attempt, const char *usage)
{
    free(attempt->usage);
    attempt->usage = usage[0] != '\0' ? strdup(usage) : NULL;
}
