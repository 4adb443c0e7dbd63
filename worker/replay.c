/*
 * Replay: an operator gives a parked turn its next attempt, here or at another service. The record
 * names the attempt that was parked and is taken only over exactly that state (protocol rule 29).
 *
 * In: worker/operate.c  Out: worker/move.c, worker/decision.c, worker/delegate.c
 */
#include "common/base/diag.h"
#include "common/base/metrics.h"
#include "common/engine/engine.h"
#include "common/record/control.h"
#include "common/record/turn_record.h"
#include "worker/decision.h"
#include "worker/delegate.h"
#include "worker/internal.h"
#include "worker/move.h"
#include "worker/operate.h"

#include <stdio.h>
#include <stdlib.h>

/* May it be taken at all? */
static baton_code judge(const struct worker *w, const struct control *control,
                        const struct turn_record *record)
{
    if (record->state != TURN_parked || record->attempt != control->attempt) {
        return turn_state_open(record->state) ? BATON_E_not_parked : BATON_E_turn_closed;
    }
    if (record->replays >= w->config->budget.replays && !control->again) {
        return BATON_E_replays_exhausted;
    }
    if (record->attempt >= w->config->budget.attempts && !control->again) {
        return BATON_E_attempts_exhausted;
    }
    return BATON_OK;
}

/* The next attempt, at this service: a new series, with every profile again. */
static void replay_here(struct worker *w, const struct engine_event *event,
                        struct turn_record *record)
{
    char note[ID_MAX + 32];
    record->replays++;
    record->attempt++;
    record->since = record->attempt;
    record->n_tried = 0;
    turn_move(w, record, false, TURN_queued);
    struct attempt *attempt =
        attempt_begin(w, record, ATTEMPT_queued, w->service->profiles[0].name.s);
    snprintf(note, sizeof(note), "replayed by %s", operate_actor(event));
    attempt_note(attempt, note);
}

/* Of the attempt that was parked; one that never got as far as a class could not be done here. */
static enum failure class_of(const struct turn_record *record)
{
    const struct attempt *newest =
        record->n_attempts > 0 ? &record->attempts[record->n_attempts - 1] : NULL;
    return newest != NULL && newest->has_class ? newest->class : FAILURE_unavailable;
}

/* The pass to the service that the operator names. The record counts the replay already. */
static baton_code prepare_pass(struct worker *w, const struct control *control,
                               struct turn_record *record, char **ret_pass)
{
    const char *note = "";
    baton_code code = delegate_may(w, record, control->to.s, &note);
    if (code != BATON_OK) {
        diag_line(DIAG_info, "replay.refused", D_TURN(record), D_TEXT("to", control->to.s),
                  D_CODE("code", code), D_TEXT("why", note));
        return code;
    }
    record->replays++;
    *ret_pass = delegate_sign(w, record, control->to.s, class_of(record));
    return *ret_pass != NULL ? BATON_OK : BATON_E_unexpected;
}

void replay_decide(struct worker *w, const struct engine_event *event,
                   struct turn_record *take_record)
{
    const struct control *control = event->receipt->control;
    const bool elsewhere = control->to.s[0] != '\0';
    char *pass = NULL;

    baton_code code = judge(w, control, take_record);
    if (code == BATON_OK && elsewhere) {
        code = prepare_pass(w, control, take_record, &pass);
    }
    if (code != BATON_OK) {
        operate_answer(w, control, take_record, code);
        turn_record_done(take_record);
        return;
    }
    if (elsewhere) {
        delegate_put(w, take_record, control->to.s, pass);
    } else {
        replay_here(w, event, take_record);
    }
    operate_answer(w, control, take_record, BATON_OK);
    metric_add(METRIC_turns_replayed, 1);
    (void)decide(w, event->partition, take_record, NULL);
}
