/*
 * What operators, origins and lease holders ask of the owner of a turn: cancel, pause, resume, clear;
 * replay, renew and report have files of their own. Everything acts only through the owner's decision,
 * on the state that the log has (protocol rules 24, 28, 29).
 *
 * In: common/engine/engine.h (ENGINE_control)  Out: worker/move.c, worker/decision.c,
 * worker/replay.c, worker/lease/owner.c, worker/lease/report.c
 */
#include "worker/operate.h"

#include "common/base/check.h"
#include "common/base/diag.h"
#include "common/base/jsonw.h"
#include "common/base/metrics.h"
#include "common/engine/engine.h"
#include "common/log/log.h"
#include "common/record/control.h"
#include "common/record/json.h"
#include "common/record/outcome.h"
#include "common/record/receipt.h"
#include "common/record/trust.h"
#include "common/record/turn_record.h"
#include "common/store/store.h"
#include "topics/catalogue.h"
#include "worker/blocked.h"
#include "worker/circuit.h"
#include "worker/dead_letter.h"
#include "worker/decision.h"
#include "worker/executor/executor.h"
#include "worker/internal.h"
#include "worker/lease/owner.h"
#include "worker/live.h"
#include "worker/move.h"
#include "worker/profiles.h"
#include "worker/rest.h"
#include "worker/restore.h"
#include "worker/tell.h"
#include "worker/trust.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAUSE_KEY "~pause"
#define CANCEL_PREFIX "~cancel."
#define NOTE_BYTES_MAX (64 * 1024)

void operate_answer(struct worker *w, const struct control *control,
                    const struct turn_record *record, baton_code code)
{
    diag_line(DIAG_info, "control.answered", D_TEXT("kind", control_word(control->kind)),
              D_TEXT("id", control->id.s), D_TEXT("turn", control->turn_id.s),
              D_CODE("code", code));
    tell_answer(w, record, control->turn_id.s, control->id.s, control_word(control->kind), code);
}

/* False, and nothing is decided: its dead letter or its answer cannot be written now. */
static bool reject(struct worker *w, const struct engine_event *event, baton_code code,
                   const char *note)
{
    const struct control *control = event->receipt->control;
    if (!can_bury(w) || (control != NULL && !can_tell(w))) {
        return false;
    }
    dead_letter_rejected(w, event->record, code, note);
    if (control != NULL) {
        operate_answer(w, control, NULL, code);
    }
    return true;
}

/* ---- cancel ---- */

/* May this principal cancel that turn here? (its origin, or who operates the service of its birth
 * or this one) */
static bool may_cancel(const struct worker *w, const struct trust_principal *who,
                       const struct turn_record *record)
{
    const struct receiver receiver = worker_receiver(w);
    const struct receipt receipt = {.signer = who};
    return receipt_may_cancel(&receiver, &receipt, record->origin.s, record->service.s);
}

const char *operate_actor(const struct engine_event *event)
{
    const struct trust_principal *who = event->receipt->signer;
    return who != NULL ? trust_principal_name(who) : "unproven";
}

static void early_cancel_key(const char *turn_id, const char *signer, char *ret_key, size_t size)
{
    snprintf(ret_key, size, CANCEL_PREFIX "%s.%s", turn_id, signer);
}

/* A cancel of a turn that the log does not know is kept, one for each signer, and judged when the
 * handoff comes. */
static void keep_early_cancel(struct worker *w, const struct engine_event *event)
{
    const struct control *control = event->receipt->control;
    struct buf value = BUF_INIT;
    struct jsonw json = jsonw_to(&value);
    char key[160];

    jsonw_begin_object(&json);
    jsonw_key_int(&json, "version", 1);
    jsonw_key_text(&json, "by", operate_actor(event));
    jsonw_key_text(&json, "reason", control->reason != NULL ? control->reason : "");
    jsonw_key_text(&json, "id", control->id.s);
    jsonw_key_text(&json, "at", wall_text(control->at).s);
    jsonw_end(&json);
    early_cancel_key(control->turn_id.s,
                     event->receipt->key_id.s[0] != '\0' ? event->receipt->key_id.s : "-", key,
                     sizeof(key));
    decide_note(w, event->partition, key, &value);
    buf_done(&value);
    operate_answer(w, control, NULL, BATON_E_turn_not_found);
}

bool operate_cancel_noted(const struct worker *w, const char *turn_id)
{
    char prefix[160];
    early_cancel_key(turn_id, "", prefix, sizeof(prefix));
    for (size_t i = 0; i < w->batch.n_notes; i++) {
        if (strncmp(w->batch.notes[i].key, prefix, strlen(prefix)) == 0) {
            return true;
        }
    }
    return false;
}

/* Text of a member of a note, or "". */
static void note_text(const struct json_doc *doc, const char *name, char *ret_text, size_t size)
{
    const struct json_value *value = json_member(json_root(doc), name);
    snprintf(ret_text, size, "%s",
             value != NULL && json_kind(value) == JSON_text ? json_text(value, NULL) : "");
}

baton_code operate_early_cancel(struct worker *w, int32_t partition,
                                const struct turn_record *record, bool *ret_cancelled,
                                struct plain_id *ret_by, char **ret_reason, struct baton_error *err)
{
    char prefix[160];
    struct store_note *notes = NULL;
    size_t count = 0;

    early_cancel_key(record->id.s, "", prefix, sizeof(prefix));
    baton_code rc = store_notes(w->store, partition, prefix, &notes, &count, err);
    /* Outcomes cannot be written: the handoff waits, and its notes are judged when it is taken, not
     * before. */
    const bool wait = rc == BATON_OK && count > 0 && !can_tell(w);
    *ret_cancelled = *ret_cancelled || wait;
    for (size_t i = 0; rc == BATON_OK && !wait && i < count; i++) {
        struct json_doc *doc = NULL;
        char by[ID_MAX + 1] = "";
        char reason[1100] = "";
        if (json_parse(notes[i].value.data, notes[i].value.len, NOTE_BYTES_MAX, 4, &doc, NULL) ==
            BATON_OK) {
            note_text(doc, "by", by, sizeof(by));
            note_text(doc, "reason", reason, sizeof(reason));
            json_free(doc);
        }
        const struct trust_principal *who =
            w->trust != NULL ? trust_principal_find(w->trust, by) : NULL;
        if (!*ret_cancelled && may_cancel(w, who, record)) {
            *ret_cancelled = true;
            *ret_by = plain_id_of(by);
            *ret_reason = decision_text(reason);
        }
        /* Judged: of who may it settles the turn, of who may not it is dropped. */
        decide_note_gone(w, partition, notes[i].key);
    }
    for (size_t i = 0; i < count; i++) {
        buf_done(&notes[i].value);
    }
    free(notes);
    return rc;
}

/* The operator's own record, unchanged, to the service where the turn is now; in the same
 * transaction. A code: its topic is known not to take it now. */
static baton_code forward(struct worker *w, const struct engine_event *event,
                          const struct turn_record *record)
{
    baton_code code = BATON_OK;
    struct topic_name topic = topic_name(TOPIC_control, w->config->prefix.s, record->to_service.s);
    if (!engine_unavailable(w->engine, topic.s, &code)) {
        struct log_record out = *event->record;
        out.topic = topic.s;
        out.partition = LOG_PARTITION_BY_KEY;
        (void)engine_put(w->engine, &out);
    }
    return code;
}

static void cancel(struct worker *w, const struct engine_event *event,
                   struct turn_record *take_record)
{
    const struct control *control = event->receipt->control;
    struct attempt *attempt = turn_record_attempt(take_record, take_record->attempt);
    struct live *live = lives_find(&w->lives, take_record->id.s);

    if (live != NULL && live->phase == LIVE_running) {
        executor_kill(w->pool, &take_record->id, take_record->attempt);
    }
    if (attempt != NULL && attempt_state_live(attempt->state)) {
        attempt_note(attempt, "cancelled");
        attempt_move(take_record, attempt, ATTEMPT_cancelled, wall_now());
    }
    struct boot_id boot = take_record->lease_boot;
    take_record->cancel_by = plain_id_of(operate_actor(event));
    take_record->cancel_reason = decision_text(control->reason);
    turn_move(w, take_record, false, TURN_cancelled);
    tell_turn(w, take_record, OUTCOME_cancelled);
    operate_answer(w, control, take_record, BATON_OK);
    struct decision *decision = decide(w, event->partition, take_record, NULL);
    decision->settled_attempt = decision->record.attempt;
    decision->settled_boot = boot;
}

/* False: as of reject. */
static bool on_cancel(struct worker *w, const struct engine_event *event,
                      struct turn_record *take_record)
{
    const struct control *control = event->receipt->control;
    bool taken = true;
    if (!may_cancel(w, event->receipt->signer, take_record)) {
        taken = reject(w, event, BATON_E_not_permitted, "its signer may not cancel this turn");
    } else if (turn_state_open(take_record->state)) {
        cancel(w, event, take_record);
        return true;
    } else if (take_record->state == TURN_delegated) {
        operate_answer(w, control, take_record, forward(w, event, take_record));
    } else {
        operate_answer(w, control, take_record, BATON_E_turn_closed);
    }
    turn_record_done(take_record);
    return taken;
}

/* ---- pause, resume ---- */

/* What the owner's note says: paused or not, and as of when (0: there is no note). */
static baton_code read_pause(struct worker *w, int32_t partition, bool *ret_paused,
                             struct wall_ms *ret_at, struct baton_error *err)
{
    struct buf value = BUF_INIT;
    struct json_doc *doc = NULL;
    bool found = false;

    *ret_paused = false;
    ret_at->v = 0;
    baton_code rc = store_note_get(w->store, partition, PAUSE_KEY, &found, &value, err);
    if (rc == BATON_OK && found &&
        json_parse(value.data, value.len, NOTE_BYTES_MAX, 4, &doc, NULL) == BATON_OK) {
        const struct json_value *flag = json_member(json_root(doc), "paused");
        char at[40];
        *ret_paused = flag != NULL && json_kind(flag) == JSON_bool && json_bool(flag);
        note_text(doc, "at", at, sizeof(at));
        (void)wall_parse(at, strlen(at), ret_at);
        json_free(doc);
    }
    buf_done(&value);
    return rc;
}

static baton_code on_pause(struct worker *w, const struct engine_event *event,
                           struct baton_error *err)
{
    const struct control *control = event->receipt->control;
    struct buf value = BUF_INIT;
    bool paused = false;
    struct wall_ms at = {0};

    baton_code rc = read_pause(w, event->partition, &paused, &at, err);
    if (rc == BATON_OK && control->at.v <= at.v) {
        operate_answer(w, control, NULL, BATON_E_report_stale);
    } else if (rc == BATON_OK) {
        struct jsonw json = jsonw_to(&value);
        jsonw_begin_object(&json);
        jsonw_key_int(&json, "version", 1);
        jsonw_key_bool(&json, "paused", control->kind == CONTROL_pause);
        jsonw_key_text(&json, "by", operate_actor(event));
        jsonw_key_text(&json, "reason", control->reason != NULL ? control->reason : "");
        jsonw_key_text(&json, "at", wall_text(control->at).s);
        jsonw_end(&json);
        decide_note(w, event->partition, PAUSE_KEY, &value);
        operate_answer(w, control, NULL, BATON_OK);
        if (control->kind == CONTROL_pause) {
            /* Handoffs of this very round wait, too. */
            engine_hold(w->engine, event->partition, true);
        }
    }
    buf_done(&value);
    return rc;
}

/* ---- clear: a credential profile that was refused is to be tried again ---- */

/* Was that record obeyed already? Each partition brings its own copy of one, and whoever can write to the
 * topic could send it again after each refusal. */
static bool obeyed(struct worker *w, const struct plain_id *id)
{
    for (size_t i = 0; i < CLEARS_KEPT && i < w->n_clears; i++) {
        if (strcmp(w->clears[i].s, id->s) == 0) {
            return true;
        }
    }
    w->clears[w->n_clears++ % CLEARS_KEPT] = *id;
    return false;
}

static void on_clear(struct worker *w, const struct engine_event *event)
{
    const struct control *control = event->receipt->control;
    bool known = control->profile.s[0] == '\0';
    for (size_t i = 0; i < w->service->n_profiles; i++) {
        known = known || strcmp(w->service->profiles[i].name.s, control->profile.s) == 0;
    }
    if (known && !obeyed(w, &control->id)) {
        rest_clear(w, control->profile.s, control->at);
        profiles_stale(w);       /* who says that it is mended has put another credential there */
        engine_again(w->engine); /* the notes tell it at once */
    }
    operate_answer(w, control, NULL, known ? BATON_OK : BATON_E_invalid_request);
}

baton_code operate_restore(struct worker *w, int32_t partition, struct baton_error *err)
{
    bool paused = false;
    struct wall_ms at;
    baton_code rc = read_pause(w, partition, &paused, &at, err);
    if (rc != BATON_OK || !engine_owns(w->engine, partition)) {
        return rc;
    }
    engine_hold(w->engine, partition, paused);
    if (paused != w->paused[partition]) {
        w->paused[partition] = paused;
        diag_line(DIAG_info, paused ? "service.paused" : "service.resumed",
                  D_INT("partition", partition));
        rc = restore_dues(w, partition, paused, err);
    }
    rc = rc == BATON_OK ? circuit_restore(w, partition, err) : rc;
    rc = rc == BATON_OK ? blocked_restore(w, partition, err) : rc;
    return rc == BATON_OK ? rest_restore(w, partition, err) : rc;
}

/* ---- the one entry ---- */

static baton_code on_turn(struct worker *w, const struct engine_event *event, bool *ret_taken,
                          struct baton_error *err)
{
    const struct control *control = event->receipt->control;
    struct turn_record record;
    bool found = false;

    baton_code rc = store_turn_get(w->store, control->turn_id.s, &found, &record, NULL, NULL, err);
    if (rc != BATON_OK) {
        return rc;
    }
    if (!found) {
        switch (control->kind) {
        case CONTROL_cancel:
            keep_early_cancel(w, event);
            break;
        case CONTROL_replay:
            operate_answer(w, control, NULL, BATON_E_turn_not_found);
            break;
        case CONTROL_renew:
        case CONTROL_report:
        case CONTROL_pause:
        case CONTROL_resume:
        case CONTROL_clear:
        case CONTROL_COUNT:
            break;
        }
        return BATON_OK;
    }
    switch (control->kind) {
    case CONTROL_cancel:
        *ret_taken = on_cancel(w, event, &record);
        break;
    case CONTROL_replay:
        replay_decide(w, event, &record);
        break;
    case CONTROL_report:
        *ret_taken = foreign_reported(w, event, &record);
        break;
    case CONTROL_renew:
        foreign_renewed(w, control);
        turn_record_done(&record);
        break;
    case CONTROL_pause:
    case CONTROL_resume:
    case CONTROL_clear:
    case CONTROL_COUNT:
        turn_record_done(&record);
        break;
    }
    return BATON_OK;
}

/* Is whoever sent it answered, whatever comes of it? */
static bool is_answered(enum control_kind kind)
{
    return kind != CONTROL_renew && kind != CONTROL_report;
}

/*
 * Not taken: it is given again. What needs only the turn log waits for no other topic; what is
 * rejected waits for the dead-letter topic; what an operator asks waits for the outcomes, since a
 * decision and its answer are one transaction (rule 11). What lies behind it waits, too: an offset
 * cannot pass over it. The handoffs of the partition do not wait with it, though after a restore what
 * was said comes first: a cancel ends what has begun meanwhile (rule 28), a replay and a report are of
 * turns that were taken in before. A pause asks for nothing else than that they wait.
 */
static void leave(struct worker *w, const struct engine_event *event)
{
    const struct receipt *receipt = event->receipt;
    if (receipt->code != BATON_OK || receipt->control->kind != CONTROL_pause) {
        engine_heard(w->engine, event->partition);
    }
}

baton_code operate_record(struct worker *w, const struct engine_event *event,
                          struct baton_error *err)
{
    baton_code rc = BATON_OK;
    bool taken = true;

    if (event->receipt->code == BATON_E_unknown_key) {
        (void)worker_reload_trust(w, true);
    }
    if (baton_code_class(event->receipt->code) == BATON_CLASS_internal) {
        return baton_fail(err, event->receipt->code, "a control record could not be judged: %s",
                          event->receipt->note);
    }
    if (event->receipt->code != BATON_OK) {
        if (reject(w, event, event->receipt->code, event->receipt->note)) {
            engine_take(w->engine);
        } else {
            leave(w, event);
        }
        return BATON_OK;
    }
    const struct control *control = event->receipt->control;
    if (is_answered(control->kind) && !can_tell(w)) {
        leave(w, event);
        return BATON_OK;
    }
    if (control->kind == CONTROL_pause || control->kind == CONTROL_resume) {
        for (size_t i = 0; i < w->batch.n_notes; i++) {
            if (w->batch.notes[i].partition == event->partition &&
                strcmp(w->batch.notes[i].key, PAUSE_KEY) == 0) {
                return BATON_OK; /* one in each round: the second one sees the first */
            }
        }
        rc = on_pause(w, event, err);
    } else if (control->kind == CONTROL_clear) {
        on_clear(w, event);
    } else if (decided(w, control->turn_id.s)) {
        return BATON_OK;
    } else {
        rc = on_turn(w, event, &taken, err);
    }
    if (rc == BATON_OK && taken) {
        metric_add(METRIC_control_taken, 1);
        engine_take(w->engine);
    } else if (rc == BATON_OK) {
        leave(w, event);
    }
    return rc;
}
