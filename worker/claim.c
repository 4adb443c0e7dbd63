/*
 * Claiming: this worker, this attempt, a lease (turn, attempt, boot). First the log has the claim,
 * then the store, then the executor starts (protocol rule 19), with the role of bytes that this
 * process has verified.
 *
 * In: common/engine/engine.h (ENGINE_record), worker/round.c  Out: worker/begin.c,
 * worker/executor/executor.h
 */
#include "worker/claim.h"

#include "common/base/check.h"
#include "common/base/diag.h"
#include "common/base/metrics.h"
#include "common/base/traceparent.h"
#include "common/engine/engine.h"
#include "common/log/log.h"
#include "common/record/outcome.h"
#include "common/record/pass.h"
#include "common/record/receipt.h"
#include "common/record/trust.h"
#include "common/record/turn.h"
#include "common/record/turn_record.h"
#include "common/record/usage.h"
#include "common/store/store.h"
#include "worker/begin.h"
#include "worker/circuit.h"
#include "worker/dead_letter.h"
#include "worker/decision.h"
#include "worker/executor/executor.h"
#include "worker/failure_table.h"
#include "worker/internal.h"
#include "worker/live.h"
#include "worker/move.h"
#include "worker/operate.h"
#include "worker/round.h"
#include "worker/settle.h"
#include "worker/spans.h"
#include "worker/tell.h"
#include "worker/took.h"
#include "worker/trust.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TICK_DUE_MAX 1024 /* queued turns claimed in one round */

/* ---- from a verified turn to its first record ---- */

static void record_of(const struct receipt *receipt, struct turn_record *ret_record)
{
    const struct turn *turn = receipt->turn;
    struct turn_record *record = ret_record;

    turn_record_init(record);
    record->id = turn->id;
    record->origin = turn->origin;
    record->service = turn->service;
    record->role = turn->role;
    record->task_id = turn->task_id;
    record->task_rev = turn->task_rev;
    record->run_id = turn->run_id;
    record->epoch = turn->epoch;
    record->intent = turn->intent;
    record->digest = turn->digest;
    record->content = turn->content;
    record->created_at = turn->created_at;
    record->attempt = receipt->attempt;
    record->since = receipt->attempt;
    record->failures = receipt->failures;
    record->losses = receipt->losses;
    record->replays = receipt->replays;
    record->wait = receipt->wait_claimed;
    record->updated_at = wall_now();
    record->handoff = malloc(turn->len + 1);
    BATON_INVARIANT(record->handoff != NULL);
    memcpy(record->handoff, turn->bytes, turn->len);
    record->handoff[turn->len] = '\0';
    record->handoff_len = turn->len;
    record->signature = decision_text(receipt->signature);
    record->traceparent = spans_context(receipt);
    if (receipt->n_passes > 0) {
        record->passes = calloc(receipt->n_passes, sizeof(*record->passes));
        BATON_INVARIANT(record->passes != NULL);
        for (size_t i = 0; i < receipt->n_passes; i++) {
            record->passes[record->n_passes++] = decision_text(receipt->passes[i].text);
        }
    }
}

/* What the services before this one tried, as an unsigned header tells it: shown, and counted in no budget.
 * What they spent stands in the last pass. */
static void add_history(const struct receipt *receipt, struct turn_record *record)
{
    const char *services[PASSES_MAX];
    if (receipt->history == NULL) {
        return;
    }
    for (size_t i = 0; i < receipt->n_passes; i++) {
        services[i] = receipt->passes[i].from.s;
    }
    turn_record_add_history(record, receipt->history, strlen(receipt->history), services,
                            receipt->n_passes);
}

/* ---- why a proven turn must not run here ---- */

static bool below(const char *path, const char *folder)
{
    size_t len = strlen(folder);
    return strncmp(path, folder, len) == 0 && (path[len] == '\0' || path[len] == '/') &&
           strstr(path, "/../") == NULL &&
           (strlen(path) < 3 || strcmp(path + strlen(path) - 3, "/..") != 0);
}

/* ok, or the code under which the turn is parked, with a note. */
static baton_code may_run(const struct worker *w, const struct turn *turn, const char **ret_note)
{
    const struct trust_principal *self =
        w->trust != NULL ? trust_principal_find(w->trust, w->service->name.s) : NULL;
    if ((w->service->roles & ROLE_BIT(turn->role)) == 0) {
        *ret_note = "the configuration of this service does not list the role";
        return BATON_E_role_not_served;
    }
    if (w->config->proof_required && !trust_may_serve(self, turn->role)) {
        *ret_note =
            "the trust folder does not let this service serve the role; see: baton keys plan";
        return BATON_E_role_not_served;
    }
    if (turn->deadline.v != 0 && turn->deadline.v <= log_date(w->log).v) {
        *ret_note = "its deadline had passed before it could start";
        return BATON_E_deadline_exceeded;
    }
    if (turn->place != NULL &&
        (w->service->place == NULL || !below(turn->place, w->service->place))) {
        *ret_note = "its place is not below the `place` that the configuration allows this service";
        return BATON_E_place_missing;
    }
    if (turn->payload_by_reference) {
        *ret_note = "its payload is a reference, and this service is not configured to fetch any";
        return BATON_E_payload_unavailable;
    }
    return BATON_OK;
}

/* ---- deciding ---- */

static void claim(struct worker *w, int32_t partition, struct turn_record *take_record, bool birth,
                  struct turn *take_turn, struct wall_ms appended, const char *profile)
{
    struct attempt *attempt = turn_record_attempt(take_record, take_record->attempt);

    turn_move(w, take_record, birth, TURN_running);
    take_record->lease_worker = w->id;
    take_record->lease_boot = w->boot;
    if (attempt == NULL) {
        (void)attempt_begin(w, take_record, ATTEMPT_running, profile);
    } else {
        attempt->worker = w->id;
        attempt->profile = plain_id_of(profile);
        attempt->started_at = wall_now();
        attempt_move(take_record, attempt, ATTEMPT_running, attempt->started_at);
    }
    if (w->circuit.state != CIRCUIT_closed) {
        turn_record_attempt(take_record, take_record->attempt)->probe = true;
        circuit_probe(&w->circuit, w->config, take_record->id.s, mono_now());
    }
    if (take_record->wait) {
        tell_turn(w, take_record, OUTCOME_claimed);
    }
    decide(w, partition, take_record, take_turn)->appended = appended;
}

static void reject(struct worker *w, const struct engine_event *event, baton_code code,
                   const char *note)
{
    if (!can_bury(w)) {
        return; /* the offset does not pass it until its dead letter is written */
    }
    dead_letter_rejected(w, event->record, code, note);
    engine_take(w->engine);
}

/* A turn that the log knows is never taken in again. */
static baton_code known(struct worker *w, const struct engine_event *event, struct baton_error *err)
{
    struct turn_record record;
    bool found = false;
    const struct turn *turn = event->receipt->turn;
    baton_code rc = store_turn_get(w->store, turn->id.s, &found, &record, NULL, NULL, err);
    if (rc != BATON_OK || !found) {
        return rc;
    }
    if (memcmp(record.content.b, turn->content.b, DIGEST_LEN) != 0) {
        if (can_tell(w) && can_bury(w)) {
            tell_answer(w, &record, turn->id.s, turn->id.s, "publish", BATON_E_turn_conflict);
            reject(w, event, BATON_E_turn_conflict,
                   "the turn that is known under this id has other content; it goes on as it was");
        }
    } else if (can_tell(w)) {
        tell_turn(w, &record, OUTCOME_duplicate);
        metric_add(METRIC_handoffs_duplicate, 1);
        diag_line(DIAG_info, "handoff.duplicate", D_TURN(&record),
                  D_TEXT("state", turn_state_word(record.state)));
        engine_take(w->engine);
    }
    turn_record_done(&record);
    return BATON_OK;
}

static void cancel_at_birth(struct worker *w, int32_t partition, struct turn_record *take_record,
                            const struct plain_id *by, char *take_reason)
{
    take_record->cancel_by = *by;
    take_record->cancel_reason = take_reason;
    turn_move(w, take_record, true, TURN_cancelled);
    (void)attempt_begin(w, take_record, ATTEMPT_cancelled, w->service->profiles[0].name.s);
    tell_turn(w, take_record, OUTCOME_cancelled);
    (void)decide(w, partition, take_record, NULL);
}

static void wait_for_time(struct worker *w, int32_t partition, struct turn_record *take_record,
                          struct wall_ms not_before)
{
    turn_move(w, take_record, true, TURN_queued);
    take_record->not_before = not_before;
    const int64_t delay = not_before.v - log_date(w->log).v; /* a moment may have passed */
    take_record->delay_ms = delay > 0 ? delay : 0;
    (void)attempt_begin(w, take_record, ATTEMPT_queued, w->service->profiles[0].name.s);
    (void)decide(w, partition, take_record, NULL);
}

static baton_code first_time(struct worker *w, const struct engine_event *event,
                             struct baton_error *err)
{
    struct receipt *receipt = event->receipt;
    struct turn_record record;
    const char *note = "";
    struct plain_id by = {""};
    char *reason = NULL;
    char *pass = NULL;
    bool cancelled = false;
    enum failure class = FAILURE_COUNT;
    struct next_step step = {.kind = NEXT_start};

    record_of(receipt, &record);
    add_history(receipt, &record);
    baton_code rc =
        operate_early_cancel(w, event->partition, &record, &cancelled, &by, &reason, err);
    if (rc != BATON_OK) {
        turn_record_done(&record);
        return rc;
    }
    baton_code code = may_run(w, receipt->turn, &note);
    if (code == BATON_OK && took_all_before(w, receipt)) {
        code = BATON_E_cost_exhausted;
        note = "the services before this one have spent what the turn may cost here";
    }
    const bool later = receipt->turn->not_before.v > log_date(w->log).v;
    if (!cancelled && code == BATON_OK && !later) {
        step = begin_next(w, &record, true, &class, &pass);
    }
    const bool tells = cancelled || code != BATON_OK || record.wait || step.kind == NEXT_delegate;
    if ((tells && !can_tell(w)) || (code != BATON_OK && !cancelled && !can_bury(w))) {
        turn_record_done(&record);
        free(reason);
        free(pass);
        return BATON_OK; /* not taken: again when outcomes and dead letters can be written */
    }
    diag_line(DIAG_info, "handoff.taken", D_TURN(&record), D_TEXT("target", w->service->name.s),
              D_TEXT("intent", record.intent.s), D_TEXT("origin", record.origin.s),
              D_INT("partition", event->partition), D_INT("offset", event->record->offset));
    spans_taken(w, &record, event->record);
    if (cancelled) {
        cancel_at_birth(w, event->partition, &record, &by, reason);
    } else if (code != BATON_OK) {
        settle_park(w, event->partition, &record, true, code, note, event->record);
    } else if (later) {
        wait_for_time(w, event->partition, &record, receipt->turn->not_before);
    } else if (step.kind == NEXT_retry || step.kind == NEXT_hold) {
        wait_for_time(w, event->partition, &record,
                      (struct wall_ms){log_date(w->log).v + step.delay_ms});
    } else if (step.kind == NEXT_delegate) {
        begin_elsewhere(w, event->partition, &record, true, step.to, class, pass);
    } else {
        struct turn *turn = receipt->turn;
        receipt->turn = NULL; /* now the decision's; judged again if the batch is dropped */
        claim(w, event->partition, &record, true, turn, event->record->at, step.profile);
    }
    metric_add(METRIC_handoffs_claimed, 1);
    engine_take(w->engine);
    return BATON_OK;
}

baton_code claim_record(struct worker *w, const struct engine_event *event, struct baton_error *err)
{
    const struct receipt *receipt = event->receipt;
    bool is_known = false;

    if (receipt->code == BATON_E_unknown_key && worker_reload_trust(w, true)) {
        receipt = event->receipt; /* judged again under the new trust */
    }
    if (baton_code_class(receipt->code) == BATON_CLASS_internal) {
        return baton_fail(err, receipt->code, "a handoff could not be judged: %s", receipt->note);
    }
    if (receipt->code != BATON_OK) {
        reject(w, event, receipt->code, receipt->note);
        return BATON_OK;
    }
    if (decided(w, receipt->turn->id.s) || operate_cancel_noted(w, receipt->turn->id.s)) {
        return BATON_OK; /* one decision at a time: given again in the next round */
    }
    baton_code rc = store_turn_known(w->store, receipt->turn->id.s, &is_known, err);
    if (rc != BATON_OK) {
        return rc;
    }
    return is_known ? known(w, event, err) : first_time(w, event, err);
}

/* ---- the next attempt of a turn that is known ---- */

/* Verifies a stored turn's bytes now; its code says why it must not start. */
static baton_code verify_stored(struct worker *w, const struct turn_record *record,
                                enum role column_role, struct receipt *ret_receipt,
                                const char **ret_note)
{
    struct receiver receiver = worker_receiver(w);
    baton_code code =
        receipt_stored(&receiver, record->id.s, record->handoff, record->handoff_len,
                       record->signature, record->passes, record->n_passes, ret_receipt);
    if (code == BATON_E_unknown_key && worker_reload_trust(w, true)) {
        receiver.trust = w->trust;
        receipt_done(ret_receipt);
        code = receipt_stored(&receiver, record->id.s, record->handoff, record->handoff_len,
                              record->signature, record->passes, record->n_passes, ret_receipt);
    }
    if (code != BATON_OK) {
        *ret_note = ret_receipt->note;
        return code;
    }
    const struct turn *turn = ret_receipt->turn;
    if (turn->role != record->role || turn->role != column_role ||
        memcmp(turn->digest.b, record->digest.b, DIGEST_LEN) != 0) {
        *ret_note = "what is stored about the turn differs from its signed bytes";
        return BATON_E_role_mismatch;
    }
    return may_run(w, turn, ret_note);
}

/* *ret_held: the circuit lets it wait. */
static baton_code claim_one(struct worker *w, const struct store_due *due, size_t *ret_claimed,
                            bool *ret_held, struct baton_error *err)
{
    struct turn_record record;
    struct receipt receipt = {.code = BATON_OK};
    enum role column_role = ROLE_COUNT;
    int32_t partition = 0;
    bool found = false;
    const char *note = "";
    char *pass = NULL;
    enum failure class = FAILURE_COUNT;
    struct next_step step = {.kind = NEXT_start};

    baton_code rc =
        store_turn_get(w->store, due->id.s, &found, &record, &partition, &column_role, err);
    if (rc != BATON_OK || !found) {
        return rc;
    }
    if (record.state != TURN_queued) {
        /* Column and record disagree: somebody changed the file. The log has the truth. */
        rc = baton_fail(
            err, BATON_E_store_failed,
            "turn %s: the store says queued, its record says %s; move the store away, its "
            "turns are read from the log again",
            record.id.s, turn_state_word(record.state));
        turn_record_done(&record);
        return rc;
    }
    baton_code code = verify_stored(w, &record, column_role, &receipt, &note);
    if (code == BATON_OK) {
        step = begin_next(w, &record, false, &class, &pass);
    }
    const bool tells = code != BATON_OK || record.wait || step.kind == NEXT_delegate;
    if ((tells && !can_tell(w)) || (code != BATON_OK && !can_bury(w))) {
        turn_record_done(&record);
        free(pass);
    } else if (code != BATON_OK) {
        settle_park(w, partition, &record, false, code, note, NULL);
    } else if (step.kind == NEXT_delegate) {
        begin_elsewhere(w, partition, &record, false, step.to, class, pass);
    } else if (step.kind == NEXT_hold) {
        turn_record_done(&record);
        *ret_held = true;
    } else {
        char profile[ID_MAX + 1]; /* the attempt's own, perhaps */
        struct turn *turn = receipt.turn;
        receipt.turn = NULL;
        snprintf(profile, sizeof(profile), "%s", step.profile);
        record.wait = record.wait && record.attempt == record.since;
        claim(w, partition, &record, false, turn, (struct wall_ms){0}, profile);
        (*ret_claimed)++;
    }
    receipt_done(&receipt);
    return BATON_OK;
}

baton_code claim_due(struct worker *w, size_t max, size_t *ret_claimed, struct baton_error *err)
{
    struct store_due due[TICK_DUE_MAX];
    size_t count = 0;
    size_t n_held = 0;

    *ret_claimed = 0;
    if (max > TICK_DUE_MAX) {
        max = TICK_DUE_MAX;
    }
    baton_code rc = store_turns_due(w->store, mono_now(), due, max, &count, err);
    for (size_t i = 0; rc == BATON_OK && i < count; i++) {
        if (engine_owns(w->engine, due[i].partition) && !decided(w, due[i].id.s)) {
            bool held = false;
            rc = claim_one(w, &due[i], ret_claimed, &held, err);
            if (held) {
                due[n_held++] = due[i];
            }
        }
    }
    return rc == BATON_OK && n_held > 0 ? circuit_hold(w, due, n_held, err) : rc;
}

baton_code claim_resume(struct worker *w, int32_t partition, struct turn_record *take_record,
                        enum role column_role, struct baton_error *err)
{
    struct receipt receipt = {.code = BATON_OK};
    const char *note = "";

    baton_code code = verify_stored(w, take_record, column_role, &receipt, &note);
    if (code != BATON_OK) {
        if (can_tell(w) && can_bury(w)) {
            settle_park(w, partition, take_record, false, code, note, NULL);
        } else {
            turn_record_done(take_record);
            w->reopen = true;
        }
        receipt_done(&receipt);
        return BATON_OK;
    }
    struct decision decision = {
        .partition = partition, .record = *take_record, .turn = receipt.turn};
    turn_record_init(take_record);
    receipt.turn = NULL;
    claim_start(w, &decision);
    turn_record_done(&decision.record);
    turn_free(decision.turn);
    receipt_done(&receipt);
    (void)err;
    return BATON_OK;
}

/* ---- starting ---- */

static const struct executor_env *env_of(const struct worker *w, const char *profile)
{
    for (size_t i = 0; i < w->service->n_profiles; i++) {
        if (strcmp(w->service->profiles[i].name.s, profile) == 0) {
            return w->envs[i];
        }
    }
    return w->envs[0]; /* a profile that the configuration no longer has */
}

static int64_t deadline_of(const struct worker *w, const struct turn *turn)
{
    int64_t ms = w->service->deadline_ms;
    const int64_t now = log_date(w->log).v;
    if (turn->deadline.v != 0 && turn->deadline.v - now < ms) {
        ms = turn->deadline.v - now;
    }
    return ms < 1 ? 1 : ms;
}

void claim_start(struct worker *w, struct decision *decision)
{
    const struct turn *turn = decision->turn;
    struct turn_record *record = &decision->record;
    struct attempt *attempt = turn_record_attempt(record, record->attempt);
    struct baton_error err;

    BATON_PRE(turn != NULL && attempt != NULL && record->state == TURN_running);
    BATON_PRE(turn->role == record->role); /* the role comes from the bytes that were verified */
    struct usage session_usage;
    const char *session = took_session(w, record, &session_usage);
    struct traceparent_text trace;
    struct executor_job job = {
        .turn = turn->id,
        .attempt = record->attempt,
        .boot = w->boot,
        .role = turn->role,
        .verdicts = turn->verdicts,
        .task = turn->task_id,
        .task_rev = turn->task_rev,
        .run = turn->run_id,
        .intent = turn->intent,
        .profile = attempt->profile,
        .json = turn->bytes,
        .json_len = turn->len,
        .env = env_of(w, attempt->profile.s),
        .place = turn->place != NULL ? turn->place : w->service->place,
        .deadline_ms = deadline_of(w, turn),
        .heartbeat_ms = w->service->heartbeat_ms,
        .read_only = w->config->roles[turn->role].read_only,
        .max_cost_micros = took_cost_left(w, record),
        .session = session,
        .session_usage = &session_usage,
        .traceparent = spans_attempt(w, record, &trace) ? trace.s : NULL,
    };
    struct live *live = lives_add(&w->lives, record, decision->partition);
    BATON_INVARIANT(live != NULL);
    diag_line(DIAG_info, "attempt.starting", D_TURN(&live->record),
              D_TEXT("profile", job.profile.s), D_TEXT("target", w->service->name.s),
              D_TEXT("worker", w->id.s));
    /* Brokers have undone a claim that they had acknowledged: the same attempt never runs again. */
    const bool again = !lives_start_once(&w->lives, job.turn.s, job.attempt);
    baton_code rc = again ? BATON_E_worker_killed : executor_start(w->pool, &job, &err);
    if (rc != BATON_OK) {
        struct recorded_end end = {
            .turn = job.turn,
            .attempt = job.attempt,
            .boot = w->boot,
            .partition = decision->partition,
            .failed = true,
            .class = again ? FAILURE_lost : FAILURE_unavailable,
            .uncounted = true,
            .ended_at = wall_now(),
        };
        snprintf(end.note, sizeof(end.note), "%s %.480s",
                 again ? "not started again:" : "not started:",
                 again ? "it ran before, and the log was told otherwise" : err.text);
        round_arrived(w, &end);
        return;
    }
    metric_add(METRIC_attempts_started, 1);
    metric_add(METRIC_attempts_running, 1);
    if (decision->appended.v != 0) {
        int64_t delay = wall_now().v - decision->appended.v;
        metric_observe(METRIC_start_delay, delay > 0 ? delay : 0);
    }
}
