/*
 * A round. The log decides, the store remembers:
 *   1. one store transaction: what the last log transaction committed, and the ends that
 *      have arrived
 *   2. the executors of claims that are now in log and store are started
 *   3. everything that is ready is decided, in memory
 *   4. one log transaction
 *
 * In: worker/worker.c  Out: worker/claim.c, worker/settle.c, worker/operate.c,
 * common/engine/engine.h
 */
#include "worker/round.h"

#include "common/base/array.h"
#include "common/base/check.h"
#include "common/base/diag.h"
#include "common/base/metrics.h"
#include "common/base/text.h"
#include "common/engine/engine.h"
#include "common/log/log.h"
#include "common/store/store.h"
#include "common/trace/span.h"
#include "common/trace/tracer.h"
#include "topics/progress.h"
#include "worker/blocked.h"
#include "worker/circuit.h"
#include "worker/claim.h"
#include "worker/decision.h"
#include "worker/executor/executor.h"
#include "worker/internal.h"
#include "worker/lease/lease.h"
#include "worker/lease/owner.h"
#include "worker/live.h"
#include "worker/operate.h"
#include "worker/reload.h"
#include "worker/rest.h"
#include "worker/restore.h"
#include "worker/settle.h"
#include "worker/tell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUTPUT_KEPT_MAX LIMIT_OUTPUT /* escaped, beside a result, it fits a report */

#define STORE_RETRY_MS 1000
#define PROGRESS_EVERY_MS 300

/* ---- mail ---- */

static struct arrived *add_arrived(struct worker *w)
{
    w->arrived = array_grown(w->arrived, w->n_arrived, &w->cap_arrived, sizeof(*w->arrived));
    struct arrived *arrived = &w->arrived[w->n_arrived++];
    memset(arrived, 0, sizeof(*arrived));
    return arrived;
}

void round_arrived(struct worker *w, const struct recorded_end *take_end)
{
    add_arrived(w)->end = *take_end;
}

void round_forget(struct worker *w, const char *turn_id, int attempt, const char *boot)
{
    struct arrived *arrived = add_arrived(w);
    arrived->forget = true;
    arrived->end.turn = turn_id_of(turn_id);
    arrived->end.attempt = attempt;
    snprintf(arrived->end.boot.s, sizeof(arrived->end.boot.s), "%s", boot);
}

/* The executor's object, with the output that it wrote beside it. */
static char *result_with_output(const struct executor_end *end)
{
    struct buf result = BUF_INIT;
    size_t kept = end->output_len < OUTPUT_KEPT_MAX ? end->output_len : OUTPUT_KEPT_MAX;
    size_t body = end->result_len;

    while (kept > 0 && kept < end->output_len &&
           ((unsigned char)end->output[kept] & 0xc0) == 0x80) {
        kept--; /* not in the middle of a character */
    }
    while (body > 0 && end->result[body - 1] != '}') {
        body--;
    }
    BATON_PRE(body > 0);
    buf_add(&result, end->result, body - 1);
    if (kept > 0) {
        buf_add_text(&result, ",\"output\":");
        text_json_add_plain(&result, end->output, kept);
        buf_add_text(&result, ",\"output_truncated\":");
        buf_add_text(&result, end->output_truncated || kept < end->output_len ? "true" : "false");
    }
    buf_add_char(&result, '}');
    char *text = buf_take(&result, NULL);
    BATON_INVARIANT(text != NULL);
    return text;
}

static void take_end(struct worker *w, const struct executor_event *event)
{
    const struct live *live = lives_find(&w->lives, event->turn.s);
    const struct executor_end *from = &event->end;

    metric_add(METRIC_attempts_running, -1);
    if (from->started_at.v != 0 && from->ended_at.v >= from->started_at.v) {
        metric_observe(METRIC_execution, from->ended_at.v - from->started_at.v);
    }
    progress_remove(w->state_dir, event->turn.s);
    if (live == NULL || live->record.attempt != event->attempt || live->phase != LIVE_running) {
        diag_line(DIAG_info, "attempt.end_ignored", D_TEXT("turn", event->turn.s),
                  D_INT("attempt", event->attempt),
                  D_TEXT("why", "cancelled or settled elsewhere"));
        return;
    }
    struct recorded_end end = {
        .turn = event->turn,
        .attempt = event->attempt,
        .boot = event->boot,
        .partition = live->partition,
        .failed = !from->ok,
        .class = from->failure,
        .retry_after_ms = from->retry_after_ms,
        .uncounted = !from->ok && (from->never_started || from->killed_by_stop),
        .started_at = from->started_at,
        .ended_at = from->ended_at,
    };
    if (!end.uncounted) {
        const struct attempt *attempt =
            &live->record.attempts[live->record.n_attempts - 1]; /* the one that ran */
        rest_note(w, attempt->profile.s, &end);
        if (!end.failed) {
            circuit_success(&w->circuit, w->service->name.s);
        }
    }
    if (from->ok) {
        end.result = result_with_output(from);
    } else {
        snprintf(end.note, sizeof(end.note), "%s", from->message != NULL ? from->message : "");
    }
    snprintf(end.usage, sizeof(end.usage), "%s", from->usage != NULL ? from->usage : "");
    /* What a provider says of a failure belongs to the turn (`turns show`), not into a log. */
    const bool ours = from->never_started || diag_wants(DIAG_debug);
    diag_line(DIAG_info, "attempt.ended", D_TURN(&live->record),
              D_TEXT("verdict", from->ok ? verdict_word(from->verdict) : NULL),
              D_TEXT("class", from->ok ? NULL : failure_word(from->failure)),
              D_TEXT("note", ours ? end.note : NULL));
    round_arrived(w, &end);
}

static void take_leases(struct worker *w)
{
    struct turn_id turn;
    struct boot_id boot; /* of the fact: perhaps an older one than this */
    int attempt;
    while (leases_take(w->leases, &turn, &attempt, &boot)) {
        struct live *live = lives_find(&w->lives, turn.s);
        round_forget(w, turn.s, attempt, boot.s);
        if (live != NULL && live->held && live->record.attempt == attempt) {
            lives_remove(&w->lives, live);
        }
    }
}

/* Tells it to those who watch on this host, a few times a second at most: a later one says more. */
static void take_progress(struct worker *w, const struct executor_event *event)
{
    struct live *live = lives_find(&w->lives, event->turn.s);
    const struct mono_ms now = mono_now();
    struct progress progress = {
        .attempt = event->attempt, .service = w->service->name, .worker = w->id, .at = wall_now()};
    if (live == NULL || live->phase != LIVE_running || now.v < live->progress_due.v) {
        return;
    }
    live->progress_due.v = now.v + PROGRESS_EVERY_MS;
    snprintf(progress.text, sizeof(progress.text), "%s", event->text);
    progress_write(w->state_dir, event->turn.s, &progress);
}

void round_mail(struct worker *w, void *mail)
{
    if (mail == w->leases) {
        take_leases(w);
        return;
    }
    struct executor_event *event = mail;
    switch (event->kind) {
    case EXECUTOR_EVENT_progress:
        take_progress(w, event);
        diag_line(DIAG_debug, "attempt.progress", D_TEXT("turn", event->turn.s),
                  D_INT("attempt", event->attempt), D_TEXT("text", event->text));
        break;
    case EXECUTOR_EVENT_end:
        take_end(w, event);
        break;
    }
    executor_event_free(event);
}

/* ---- 1 and 2: fold, record, start ---- */

static baton_code fold_decision(struct worker *w, struct decision *decision,
                                struct baton_error *err)
{
    baton_code rc;
    if (decision->tombstone) {
        return store_turn_forget(w->store, decision->record.id.s, err);
    }
    struct mono_ms due = {INT64_MAX};
    if (!w->paused[decision->partition]) {
        due = due_of(w->log, &decision->record);
    }
    const struct log_place place =
        place_of(&decision->record, decision->partition, decision->offset, decision->at);
    rc = store_turn_fold(w->store, &place, &decision->record, decision->bytes.data,
                         decision->bytes.len, due, err);
    if (rc == BATON_OK && decision->settled_attempt != 0) {
        rc = store_end_forget(w->store, decision->record.id.s, decision->settled_attempt,
                              decision->settled_boot.s, err);
    }
    return rc;
}

static baton_code fold_all(struct worker *w, struct baton_error *err)
{
    int64_t next[LOG_PARTITIONS_MAX] = {0};
    baton_code rc = BATON_OK;

    /* Ends first: a decision of the same tick (a cancel, say) may be what they need not be kept
     * for. */
    for (size_t i = 0; rc == BATON_OK && i < w->n_arrived; i++) {
        const struct recorded_end *end = &w->arrived[i].end;
        rc = w->arrived[i].forget
                 ? store_end_forget(w->store, end->turn.s, end->attempt, end->boot.s, err)
                 : store_end_note(w->store, end, err);
    }
    for (size_t i = 0; rc == BATON_OK && i < w->committed.count; i++) {
        struct decision *decision = &w->committed.list[i];
        rc = fold_decision(w, decision, err);
        if (decision->offset >= next[decision->partition]) {
            next[decision->partition] = decision->offset + 1;
        }
    }
    for (size_t i = 0; rc == BATON_OK && i < w->committed.n_notes; i++) {
        struct note_change *note = &w->committed.notes[i];
        rc = store_note_fold(w->store, note->partition, note->key,
                             note->drop ? NULL : note->value.data, note->value.len, err);
        if (note->offset >= next[note->partition]) {
            next[note->partition] = note->offset + 1;
        }
    }
    for (int32_t p = 0; rc == BATON_OK && p < LOG_PARTITIONS_MAX; p++) {
        if (next[p] > 0) {
            rc = store_checkpoint_set(w->store, p, next[p], wall_now(), err);
        }
    }
    return rc;
}

/* What the folded decisions mean for what runs here. */
static void apply_decision(struct worker *w, struct decision *decision, bool start)
{
    struct live *live = lives_find(&w->lives, decision->record.id.s);

    if (decision->record.state != TURN_running || decision->tombstone) {
        foreign_remove(w, decision->record.id.s);
        leases_drop(w->leases, decision->record.id.s);
    }
    if (live != NULL && (decision->record.state != TURN_running ||
                         decision->record.attempt != live->record.attempt)) {
        lives_remove(&w->lives, live);
    }
    if (decision->turn != NULL && start) {
        claim_start(w, decision);
    }
}

static void apply_ends(struct worker *w)
{
    for (size_t i = 0; i < w->n_arrived; i++) {
        struct recorded_end *end = &w->arrived[i].end;
        struct live *live = lives_find(&w->lives, end->turn.s);
        if (w->arrived[i].forget || live == NULL || live->phase != LIVE_running ||
            live->record.attempt != end->attempt) {
            free(end->result);
            continue;
        }
        if (live->held) {
            leases_report(w->leases, end);
        }
        lives_end(&w->lives, live, end);
    }
    w->n_arrived = 0;
}

static baton_code blocked(struct worker *w, baton_code rc, const struct baton_error *err)
{
    w->blocked = true;
    w->store_wait.v = mono_now().v + STORE_RETRY_MS;
    diag_limited(&w->limit, DIAG_error, "store.blocked", D_CODE("code", rc),
                 D_TEXT("error", err->text));
    return BATON_OK;
}

baton_code round_fold(struct worker *w, bool start, struct baton_error *err)
{
    w->blocked = false;
    if (w->committed.count == 0 && w->committed.n_notes == 0 && w->n_arrived == 0) {
        return BATON_OK;
    }
    baton_code rc = store_begin(w->store, __func__, err);
    if (rc == BATON_OK) {
        rc = fold_all(w, err);
        if (rc == BATON_OK) {
            rc = store_commit(w->store, err);
        } else {
            store_rollback(w->store);
        }
    }
    if (baton_code_class(rc) == BATON_CLASS_retry) {
        return blocked(w, rc, err); /* a full disk: all of it stays and is tried again */
    }
    if (rc != BATON_OK) {
        return rc;
    }
    apply_ends(w);
    for (size_t i = 0; i < w->committed.count; i++) {
        apply_decision(w, &w->committed.list[i], start);
    }
    bool notes[LOG_PARTITIONS_MAX] = {false};
    for (size_t i = 0; i < w->committed.n_notes; i++) {
        notes[w->committed.notes[i].partition] = true;
    }
    decisions_clear(&w->committed);
    for (int32_t p = 0; rc == BATON_OK && p < LOG_PARTITIONS_MAX; p++) {
        if (notes[p] && w->engine != NULL) {
            rc = operate_restore(w, p, err);
        }
    }
    return rc;
}

/* ---- 3: decide ---- */

baton_code round_tick(struct worker *w, struct baton_error *err)
{
    size_t claimed = 0;
    bool any = false;

    baton_code rc = round_fold(w, true, err);
    w->next_due.v = INT64_MAX;
    if (rc != BATON_OK || w->blocked) {
        engine_capacity(w->engine, 0);
        return rc;
    }
    worker_reload_due(w);
    store_look(w->store);
    settle_ended(w);
    if ((w->reopen && (rc = restore_again(w, err)) != BATON_OK) ||
        (rc = foreign_expire(w, err)) != BATON_OK ||
        (w->facts_due && (rc = restore_facts(w, err)) != BATON_OK)) {
        return rc;
    }
    if ((rc = circuit_tick(w, err)) != BATON_OK) {
        return rc;
    }
    blocked_tell(w, true);
    rest_tell(w);
    size_t parallel = (size_t)w->service->parallel;
    size_t capacity = w->stopping || w->lives.running >= parallel ? 0 : parallel - w->lives.running;
    const size_t claims = circuit_room(w, capacity, false);
    capacity = circuit_room(w, capacity, true);
    if (claims > 0) {
        rc = claim_due(w, claims, &claimed, err);
        capacity -= claimed < capacity ? claimed : capacity;
    }
    if (rc == BATON_OK && claims > claimed) {
        rc = store_next_due(w->store, &any, &w->next_due, err);
        if (!any) {
            w->next_due.v = INT64_MAX;
        }
    }
    engine_capacity(w->engine, capacity);
    return rc;
}

/* ---- 4: commit ---- */

static void clear_in_batch(struct worker *w)
{
    for (struct live *live = w->lives.ended; live != NULL; live = live->ended_next) {
        live->in_batch = false;
    }
}

void round_drop(struct worker *w)
{
    w->reopen = w->reopen || w->batch.count > 0;
    decisions_clear(&w->batch);
    tell_clear(w);
    span_list_clear(&w->spans);
    clear_in_batch(w);
}

baton_code round_commit(struct worker *w, struct baton_error *err)
{
    enum engine_result result = ENGINE_DROPPED;
    int64_t culprit = -1;

    store_look_end(w->store);
    tell_all(w);
    baton_code rc = engine_commit(w->engine, &result, &culprit, err);
    if (rc != BATON_OK || result != ENGINE_COMMITTED) {
        round_drop(w);
        return rc;
    }
    tracer_send(w->tracer, &w->spans);
    if (w->batch.count == 0 && w->batch.n_notes == 0) {
        return BATON_OK; /* what the store could not take yet stays */
    }
    for (size_t i = 0; i < w->batch.count; i++) {
        w->batch.list[i].offset = engine_offset(w->engine, w->batch.list[i].put);
        w->batch.list[i].at = engine_appended(w->engine, w->batch.list[i].put);
    }
    for (size_t i = 0; i < w->batch.n_notes; i++) {
        w->batch.notes[i].offset = engine_offset(w->engine, w->batch.notes[i].put);
    }
    BATON_INVARIANT(w->committed.count == 0 && w->committed.n_notes == 0);
    struct decisions empty = w->committed;
    w->committed = w->batch;
    w->batch = empty;
    if (w->committed.count > 0 || w->committed.n_notes > 0) {
        engine_again(w->engine);
    }
    return BATON_OK;
}

/* ---- partitions that move ---- */

struct holding {
    struct worker *w;
    const int32_t *partitions;
    size_t count;
    struct held *held;
    size_t n_held;
    int64_t *from;
};

static void hold_one(struct live *live, void *arg)
{
    struct holding *holding = arg;
    for (size_t i = 0; i < holding->count; i++) {
        if (holding->partitions[i] != live->partition || live->held) {
            continue;
        }
        live->held = true;
        holding->w->lives.changes++;
        live->in_batch = false;
        if (live->phase == LIVE_running) {
            holding->held[holding->n_held++] = (struct held){live->record.id, live->record.attempt,
                                                             live->partition, holding->from[i]};
        } else {
            leases_report(holding->w->leases, &live->end);
        }
    }
}

static void list_running(struct live *live, void *arg)
{
    struct holding *holding = arg;
    if (live->phase == LIVE_running && !live->held) {
        holding->held[holding->n_held++] =
            (struct held){live->record.id, live->record.attempt, live->partition, 0};
    }
}

void round_tell_leases(struct worker *w)
{
    const struct mono_ms now = mono_now();
    struct holding holding = {.w = w};

    if (w->lives.changes == w->told_changes || now.v - w->told_at.v < TELL_LEASES_MS) {
        return;
    }
    holding.held = calloc(w->lives.count + 1, sizeof(*holding.held));
    BATON_INVARIANT(holding.held != NULL);
    lives_each(&w->lives, list_running, &holding);
    leases_running(w->leases, holding.held, holding.n_held);
    free(holding.held);
    w->told_changes = w->lives.changes;
    w->told_at = now;
}

void round_hold(struct worker *w, const int32_t *partitions, size_t count, bool lost)
{
    int64_t from[LOG_PARTITIONS_MAX];
    struct wall_ms at;
    struct holding holding = {w, partitions, count, NULL, 0, from};

    for (size_t i = 0; i < count; i++) {
        if (store_checkpoint_get(w->store, partitions[i], &from[i], &at, NULL) != BATON_OK ||
            from[i] < 0) {
            from[i] = 0;
        }
    }
    holding.held = calloc(w->lives.count + 1, sizeof(*holding.held));
    BATON_INVARIANT(holding.held != NULL);
    lives_each(&w->lives, hold_one, &holding);
    leases_hold(w->leases, holding.held, holding.n_held, lost);
    free(holding.held);
}

/* Queued turns of partitions that have gone wait elsewhere: nothing here is woken by them, or waits
 * behind them. */
static baton_code forget_dues(struct worker *w, const int32_t *partitions, size_t count,
                              struct baton_error *err)
{
    baton_code rc = store_begin(w->store, __func__, err);
    if (rc != BATON_OK) {
        return rc;
    }
    for (size_t i = 0; rc == BATON_OK && i < count; i++) {
        rc = store_dues_clear(w->store, partitions[i], err);
    }
    if (rc == BATON_OK) {
        return store_commit(w->store, err);
    }
    store_rollback(w->store);
    return rc;
}

void round_moved(struct worker *w, const struct engine_event *event)
{
    struct baton_error err;

    round_drop(w);
    foreign_drop_all(w);
    /* What the log has taken is true all the same; after a loss nothing new is started. */
    if (round_fold(w, !event->lost, &err) != BATON_OK || w->blocked) {
        diag_line(DIAG_error, "store.failed", D_TEXT("error", err.text));
        decisions_clear(&w->committed); /* the next owner reads it from the log */
    }
    if (forget_dues(w, event->moved, event->n_moved, &err) != BATON_OK) {
        diag_line(DIAG_warn, "store.failed", D_TEXT("error", err.text)); /* only wakes too often */
    }
    round_hold(w, event->moved, event->n_moved, event->lost);
    w->facts_due = true;
}
