/*
 * The owner's side of a lease: the holder reports how its attempt has ended. Only under the token that
 * the log has (protocol rules 21, 24); what comes later is kept and shown.
 *
 * In: worker/operate.c  Out: worker/settle.c
 */
#include "worker/lease/owner.h"

#include "common/base/diag.h"
#include "common/base/limits.h"
#include "common/engine/engine.h"
#include "common/record/control.h"
#include "common/record/json.h"
#include "common/record/receipt.h"
#include "common/record/turn_record.h"
#include "common/store/store.h"
#include "worker/decision.h"
#include "worker/internal.h"
#include "worker/settle.h"

#include <stdio.h>
#include <string.h>

#define REPORT_BYTES_MAX (512 * 1024)

/* A result that comes after its attempt had ended is kept, shown, and never applied. */
static void keep_late(struct worker *w, const struct engine_event *event,
                      struct turn_record *take_record)
{
    struct attempt *attempt = turn_record_attempt(take_record, event->receipt->control->attempt);
    if (attempt == NULL || attempt->late ||
        (attempt->state != ATTEMPT_failed && attempt->state != ATTEMPT_cancelled)) {
        turn_record_done(
            take_record); /* the same report again, or of an attempt that runs elsewhere */
        return;
    }
    attempt->late = true;
    (void)decide(w, event->partition, take_record, NULL);
}

/* Does the result end a turn of this role? */
static bool ends_turn(enum role role, const char *result, size_t len)
{
    struct json_doc *doc = NULL;
    enum verdict verdict;
    size_t word_len = 0;
    bool legal = false;

    if (result != NULL &&
        json_parse(result, len, REPORT_BYTES_MAX, LIMIT_JSON_DEPTH, &doc, NULL) == BATON_OK) {
        const struct json_value *word = json_member(json_root(doc), "verdict");
        if (word != NULL && json_kind(word) == JSON_text) {
            const char *text = json_text(word, &word_len);
            legal = verdict_parse(text, word_len, &verdict) && verdict_legal(role, verdict);
        }
        json_free(doc);
    }
    return legal;
}

static struct recorded_end end_of_report(const struct control *control,
                                         const struct turn_record *record, int32_t partition)
{
    struct recorded_end end = {
        .turn = control->turn_id,
        .attempt = control->attempt,
        .boot = control->boot,
        .partition = partition,
        .failed = control->failed,
        .class = control->class,
        .ended_at = control->at,
    };
    snprintf(end.usage, sizeof(end.usage), "%s", control->usage != NULL ? control->usage : "");
    if (!control->failed && ends_turn(record->role, control->result, control->result_len)) {
        end.result = control->result;
    } else if (!control->failed) {
        end.failed = true;
        end.class = FAILURE_no_verdict;
        snprintf(end.note, sizeof(end.note),
                 "the report of its worker has no verdict that the role may give");
    } else {
        snprintf(end.note, sizeof(end.note), "reported by the worker that held it");
    }
    return end;
}

bool foreign_reported(struct worker *w, const struct engine_event *event,
                      struct turn_record *take_record)
{
    const struct control *control = event->receipt->control;
    if (take_record->state != TURN_running || take_record->attempt != control->attempt ||
        strcmp(take_record->lease_boot.s, control->boot.s) != 0) {
        diag_line(DIAG_debug, "report.stale", D_TURN(take_record),
                  D_INT("reported", control->attempt));
        keep_late(w, event, take_record);
        return true;
    }
    const struct recorded_end end = end_of_report(control, take_record, event->partition);
    return settle_end(w, event->partition, take_record, &end);
}
