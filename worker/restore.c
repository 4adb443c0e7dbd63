/*
 * Restore: the log wins (protocol rules 6 to 9). The turn log is folded into the store from its
 * checkpoint on; then every open turn of the partition gets its continuation.
 *
 * In: worker/worker.c  Out: common/store/store.h, worker/claim.c, worker/settle.c,
 * worker/lease/owner.c
 */
#include "worker/restore.h"

#include "common/base/check.h"
#include "common/base/diag.h"
#include "common/engine/engine.h"
#include "common/log/log.h"
#include "common/record/turn_record.h"
#include "common/store/store.h"
#include "worker/claim.h"
#include "worker/decision.h"
#include "worker/executor/executor.h"
#include "worker/internal.h"
#include "worker/lease/lease.h"
#include "worker/lease/owner.h"
#include "worker/live.h"
#include "worker/operate.h"
#include "worker/retention.h"
#include "worker/round.h"
#include "worker/settle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECKPOINT_AHEAD_MS (3600LL * 1000)

#define PAGE 256
#define UNSTARTED_MAX 4096 /* more than any `parallel` */

struct mono_ms due_of(struct log *log, const struct turn_record *record)
{
    int64_t wait = record->not_before.v - log_date(log).v;
    if (record->not_before.v == 0 || wait < 0) {
        wait = 0;
    }
    if (wait > record->delay_ms) {
        wait = record->delay_ms;
    }
    return (struct mono_ms){mono_now().v + wait};
}

struct log_place place_of(const struct turn_record *record, int32_t partition, int64_t offset,
                          struct wall_ms at)
{
    return (struct log_place){partition, offset, at.v > 0 ? at : record->updated_at};
}

baton_code restore_begin(struct worker *w, const struct engine_event *event,
                         struct baton_error *err)
{
    int64_t next = LOG_OFFSET_NONE;
    struct wall_ms at = {0};
    const int32_t p = event->partition;

    /* What the last batch brought into the log comes first, so that it never overwrites anything
     * newer. */
    baton_code rc = round_fold(w, true, err);
    if (rc == BATON_OK && w->blocked) {
        decisions_clear(&w->committed);
    }
    if (rc == BATON_OK) {
        rc = store_checkpoint_get(w->store, p, &next, &at, err);
    }
    if (rc != BATON_OK) {
        return rc;
    }
    const int64_t age_ms = wall_now().v - at.v; /* of the future: a clock was wrong, who knows */
    bool usable = next >= event->low && next <= event->high && age_ms >= -CHECKPOINT_AHEAD_MS &&
                  age_ms <= CHECKPOINT_MAX_AGE_MS && !w->undone[p];
    w->undone[p] = false;
    w->dropped[p] = !usable;
    if (!usable) {
        if (next != LOG_OFFSET_NONE) {
            diag_line(DIAG_warn, "store.image_dropped", D_INT("partition", p),
                      D_INT("checkpoint", next), D_INT("low", event->low),
                      D_INT("high", event->high));
        }
        if ((rc = store_begin(w->store, __func__, err)) == BATON_OK) {
            rc = store_image_drop(w->store, p, err);
            if (rc == BATON_OK) {
                /* An empty image follows the log from its start: what comes later was not seen, and
                 * is not unknown. */
                rc = store_checkpoint_set(w->store, p, event->low, wall_now(), err);
            }
            if (rc == BATON_OK) {
                rc = store_commit(w->store, err);
            } else {
                store_rollback(w->store);
            }
        }
    }
    /* The newest record of the image is read once more: the log must show it, where it keeps records
     * that have newer ones. */
    const bool kept = !log_replaces_keys(w->log) && next > event->low;
    w->to_show[p] = usable && kept ? next - 1 : LOG_OFFSET_NONE;
    if (rc == BATON_OK) {
        engine_restore_from(w->engine, w->to_show[p] != LOG_OFFSET_NONE ? w->to_show[p]
                                       : usable                         ? next
                                                                        : LOG_OFFSET_NONE);
    }
    return rc;
}

/*
 * The image is ahead of the log: what it was told was committed is not there. Brokers have undone a
 * transaction that they had acknowledged (common/log/kafka/confirm.c), or the record was compacted
 * away behind a newer one. The log wins: the image is dropped and read anew. The error passes.
 */
static baton_code image_undone(struct worker *w, int32_t partition, struct baton_error *err)
{
    const int64_t offset = w->to_show[partition];
    w->to_show[partition] = LOG_OFFSET_NONE;
    w->undone[partition] = true;
    diag_line(DIAG_warn, "store.image_undone", D_INT("partition", partition),
              D_INT("offset", offset));
    return baton_fail(
        err, BATON_E_service_unavailable,
        "partition %d of the turn log does not show record %lld, which the store has; "
        "its image is dropped and read again",
        partition, (long long)offset);
}

/* A claim of this worker's last boot that its store never had: its executor was not started (rule
 * 19). */
static baton_code note_unstarted(struct worker *w, int32_t partition,
                                 const struct turn_record *record, struct baton_error *err)
{
    struct turn_record image;
    bool found = false;
    const char *previous = store_previous_boot(w->store);

    if (record->state != TURN_running || w->dropped[partition] || previous[0] == '\0' ||
        strcmp(record->lease_boot.s, previous) != 0 || w->n_unstarted >= UNSTARTED_MAX) {
        return BATON_OK;
    }
    baton_code rc = store_turn_get(w->store, record->id.s, &found, &image, NULL, NULL, err);
    if (rc != BATON_OK) {
        return rc;
    }
    bool had = found && image.state == TURN_running && image.attempt == record->attempt;
    if (found) {
        turn_record_done(&image);
    }
    if (!had) {
        struct turn_id *grown = realloc(w->unstarted, (w->n_unstarted + 1) * sizeof(*grown));
        if (grown == NULL) {
            return baton_fail(err, BATON_E_no_memory, "out of memory");
        }
        w->unstarted = grown;
        w->unstarted[w->n_unstarted++] = record->id;
    }
    return BATON_OK;
}

static bool is_unstarted(const struct worker *w, const struct turn_record *record)
{
    for (size_t i = 0; i < w->n_unstarted; i++) {
        if (strcmp(w->unstarted[i].s, record->id.s) == 0) {
            return strcmp(record->lease_boot.s, store_previous_boot(w->store)) == 0;
        }
    }
    return false;
}

static baton_code fold_turn(struct worker *w, int32_t partition, const struct log_record *record,
                            const char *key, struct baton_error *err)
{
    struct turn_record state;
    struct baton_error why;

    baton_code rc = turn_record_parse(record->value, record->value_len, &state, &why);
    if (rc != BATON_OK || strcmp(state.id.s, key) != 0) {
        diag_line(DIAG_error, "turn_log.unreadable", D_TEXT("key", key),
                  D_INT("partition", partition), D_INT("offset", record->offset),
                  D_TEXT("error", rc != BATON_OK ? why.text : "key and turn differ"));
        if (rc == BATON_OK) {
            turn_record_done(&state);
        }
        return rc == BATON_E_no_memory ? rc : BATON_OK;
    }
    const struct log_place place = place_of(&state, partition, record->offset, record->at);
    rc = note_unstarted(w, partition, &state, err);
    if (rc == BATON_OK) {
        rc = store_turn_fold(w->store, &place, &state, record->value, record->value_len,
                             due_of(w->log, &state), err);
    }
    if (rc == BATON_E_role_mismatch) {
        /* Somebody wrote another identity into the log. Its word is taken as it is, so that the
         * check of the signed bytes refuses the turn before any executor starts. */
        diag_line(DIAG_error, "turn_log.identity_changed", D_TEXT("turn", key),
                  D_INT("offset", record->offset));
        rc = store_turn_forget(w->store, key, err);
        if (rc == BATON_OK) {
            rc = store_turn_fold(w->store, &place, &state, record->value, record->value_len,
                                 due_of(w->log, &state), err);
        }
    }
    turn_record_done(&state);
    return rc;
}

/* Folds one record of the turn log into the store (inside a transaction). */
static baton_code fold_one(struct worker *w, int32_t partition, const struct log_record *record,
                           struct baton_error *err)
{
    char key[160];

    if (record->key == NULL || record->key_len == 0 || record->key_len >= sizeof(key)) {
        diag_line(DIAG_error, "turn_log.unreadable", D_INT("partition", partition),
                  D_INT("offset", record->offset), D_TEXT("error", "a key of no turn and no note"));
        return BATON_OK;
    }
    memcpy(key, record->key, record->key_len);
    key[record->key_len] = '\0';
    if (key[0] == '~') {
        return store_note_fold(w->store, partition, key, record->value, record->value_len, err);
    }
    if (record->value == NULL) {
        return store_turn_forget(w->store, key, err);
    }
    return fold_turn(w, partition, record, key, err);
}

baton_code restore_fold(struct worker *w, const struct engine_event *event, struct baton_error *err)
{
    const int32_t p = event->partition;
    if (w->to_show[p] != LOG_OFFSET_NONE && event->records[0].offset != w->to_show[p]) {
        return image_undone(w, p, err);
    }
    w->to_show[p] = LOG_OFFSET_NONE;
    baton_code rc = store_begin(w->store, __func__, err);
    if (rc != BATON_OK) {
        return rc;
    }
    for (size_t i = 0; rc == BATON_OK && i < event->n_records; i++) {
        rc = fold_one(w, p, &event->records[i], err);
    }
    if (rc == BATON_OK) {
        /* Right behind a record, not behind markers: image_undone() looks for it. */
        const int64_t newest = event->records[event->n_records - 1].offset;
        rc = store_checkpoint_set(w->store, p, newest + 1, wall_now(), err);
    }
    if (rc != BATON_OK) {
        store_rollback(w->store);
        return rc;
    }
    return store_commit(w->store, err);
}

/* ---- every open turn gets its continuation ---- */

/* Claimed by an older boot of this worker: a recorded end is settled, otherwise the attempt is
 * lost, at once. */
static baton_code settle_old_boot(struct worker *w, int32_t partition,
                                  struct turn_record *take_record, struct baton_error *err)
{
    struct recorded_end end;
    bool found = false;
    bool settled;

    baton_code rc = store_end_get(w->store, take_record->id.s, take_record->attempt,
                                  take_record->lease_boot.s, &found, &end, err);
    if (rc != BATON_OK) {
        turn_record_done(take_record);
        return rc;
    }
    if (found) {
        settled = settle_end(w, partition, take_record, &end);
        free(end.result);
    } else {
        bool unstarted = is_unstarted(w, take_record);
        settled = settle_lost(w, partition, take_record, !unstarted,
                              unstarted ? "the worker stopped before it was started"
                                        : "the worker stopped while it ran");
    }
    w->reopen = w->reopen || !settled;
    return BATON_OK;
}

static baton_code continue_running(struct worker *w, int32_t partition,
                                   struct turn_record *take_record, enum role column_role,
                                   struct baton_error *err)
{
    struct live *live = lives_find(&w->lives, take_record->id.s);

    if (strcmp(take_record->lease_boot.s, w->boot.s) == 0) {
        if (live != NULL && live->record.attempt == take_record->attempt) {
            w->lives.changes += live->held ? 1 : 0;
            live->held = false; /* ours again: it never stopped */
            leases_drop(w->leases, take_record->id.s);
            turn_record_done(take_record);
            return BATON_OK;
        }
        return claim_resume(w, partition, take_record, column_role, err);
    }
    if (strcmp(take_record->lease_worker.s, w->id.s) == 0) {
        return settle_old_boot(w, partition, take_record, err);
    }
    foreign_watch(w, partition, take_record);
    turn_record_done(take_record);
    return BATON_OK;
}

static baton_code continue_open(struct worker *w, int32_t partition,
                                const struct store_open_turn *open, struct baton_error *err)
{
    struct turn_record record;
    enum role column_role = ROLE_COUNT;
    bool found = false;

    if (decided(w, open->id.s)) {
        return BATON_OK;
    }
    baton_code rc = store_turn_get(w->store, open->id.s, &found, &record, NULL, &column_role, err);
    if (rc != BATON_OK || !found) {
        return rc;
    }
    if (record.state == TURN_running) {
        return continue_running(w, partition, &record, column_role, err);
    }
    if (record.state == TURN_queued) {
        rc = store_due_set(w->store, record.id.s, due_of(w->log, &record), err);
    }
    turn_record_done(&record);
    return rc;
}

struct current {
    struct worker *w;
    int32_t partition;
    baton_code rc;
    struct baton_error *err;
};

/* Rule 8: an executor here whose attempt the log no longer shows claimed with its token is stopped.
 */
static void stop_if_not_current(struct live *live, void *arg)
{
    struct current *current = arg;
    struct worker *w = current->w;
    struct turn_record record;
    bool found = false;
    bool is_current = false;

    if (live->partition != current->partition || current->rc != BATON_OK) {
        return;
    }
    current->rc =
        store_turn_get(w->store, live->record.id.s, &found, &record, NULL, NULL, current->err);
    if (current->rc != BATON_OK) {
        return;
    }
    if (found) {
        is_current = record.state == TURN_running && record.attempt == live->record.attempt &&
                     strcmp(record.lease_boot.s, w->boot.s) == 0;
        turn_record_done(&record);
    }
    if (!is_current) {
        diag_line(DIAG_warn, "attempt.not_current", D_TURN(&live->record));
        if (live->phase == LIVE_running) {
            executor_kill(w->pool, &live->record.id, live->record.attempt);
        }
        round_forget(w, live->record.id.s, live->record.attempt, w->boot.s);
        leases_drop(w->leases, live->record.id.s);
        lives_remove(&w->lives, live);
    }
}

/* A decision about a turn that runs was dropped, or could not be made: what the log shows is looked
 * at again. */
static baton_code reopen(struct worker *w, int32_t partition, struct baton_error *err)
{
    struct store_open_turn open[PAGE];
    struct turn_id after = {""};
    size_t count = 0;
    baton_code rc;

    do {
        rc = store_turns_open(w->store, partition, after.s, open, PAGE, &count, err);
        for (size_t i = 0; rc == BATON_OK && i < count; i++) {
            if (open[i].state == TURN_running) {
                rc = continue_open(w, partition, &open[i], err);
            }
            after = open[i].id;
        }
    } while (rc == BATON_OK && count == PAGE);
    return rc;
}

baton_code restore_again(struct worker *w, struct baton_error *err)
{
    int32_t partitions[LOG_PARTITIONS_MAX];
    size_t n = engine_partitions(w->engine, partitions);
    baton_code rc = BATON_OK;

    w->reopen = false;
    for (size_t i = 0; rc == BATON_OK && i < n; i++) {
        rc = reopen(w, partitions[i], err);
    }
    return rc;
}

baton_code restore_end(struct worker *w, int32_t partition, struct baton_error *err)
{
    struct store_open_turn open[PAGE];
    struct turn_id after = {""};
    size_t count = 0;
    struct current current = {w, partition, BATON_OK, err};

    if (w->to_show[partition] != LOG_OFFSET_NONE) {
        return image_undone(w, partition, err);
    }
    lives_each(&w->lives, stop_if_not_current, &current);
    baton_code rc = current.rc;
    if (rc == BATON_OK) {
        rc = store_begin(w->store, __func__, err);
    }
    if (rc != BATON_OK) {
        return rc;
    }
    do {
        rc = store_turns_open(w->store, partition, after.s, open, PAGE, &count, err);
        for (size_t i = 0; rc == BATON_OK && i < count; i++) {
            rc = continue_open(w, partition, &open[i], err);
            after = open[i].id;
        }
    } while (rc == BATON_OK && count == PAGE);
    if (rc != BATON_OK) {
        store_rollback(w->store);
        return rc;
    }
    rc = store_commit(w->store, err);
    w->facts_due = true;
    w->paused[partition] = false; /* dues are as the records say; a note may say otherwise */
    return rc == BATON_OK ? operate_restore(w, partition, err) : rc;
}

static baton_code set_due(struct worker *w, const struct turn_id *id, bool paused,
                          struct baton_error *err)
{
    struct turn_record record;
    struct mono_ms due = {INT64_MAX};
    bool found = false;

    baton_code rc = store_turn_get(w->store, id->s, &found, &record, NULL, NULL, err);
    if (rc != BATON_OK || !found) {
        return rc;
    }
    if (!paused) {
        due = due_of(w->log, &record);
    }
    turn_record_done(&record);
    return store_due_set(w->store, id->s, due, err);
}

baton_code restore_dues(struct worker *w, int32_t partition, bool paused, struct baton_error *err)
{
    struct store_open_turn open[PAGE];
    struct turn_id after = {""};
    size_t count = 0;

    baton_code rc = store_begin(w->store, __func__, err);
    if (rc != BATON_OK) {
        return rc;
    }
    do {
        rc = store_turns_open(w->store, partition, after.s, open, PAGE, &count, err);
        for (size_t i = 0; rc == BATON_OK && i < count; i++) {
            if (open[i].state == TURN_queued) {
                rc = set_due(w, &open[i].id, paused, err);
            }
            after = open[i].id;
        }
    } while (rc == BATON_OK && count == PAGE);
    if (rc != BATON_OK) {
        store_rollback(w->store);
        return rc;
    }
    return store_commit(w->store, err);
}

static baton_code judge_fact(struct worker *w, const struct recorded_end *end,
                             struct baton_error *err)
{
    struct turn_record record;
    bool found = false;

    if (!engine_owns(w->engine, end->partition)) {
        leases_report(w->leases, end);
        return BATON_OK;
    }
    baton_code rc = store_turn_get(w->store, end->turn.s, &found, &record, NULL, NULL, err);
    if (rc != BATON_OK) {
        return rc;
    }
    bool claimed = found && record.state == TURN_running && record.attempt == end->attempt &&
                   strcmp(record.lease_boot.s, end->boot.s) == 0;
    if (found) {
        turn_record_done(&record);
    }
    if (!claimed) {
        round_forget(w, end->turn.s, end->attempt,
                     end->boot.s); /* the log has gone on: it is late */
    }
    return BATON_OK;
}

baton_code restore_facts(struct worker *w, struct baton_error *err)
{
    struct recorded_end ends[64];
    size_t skip = 0;
    size_t count = 0;
    baton_code rc;

    do {
        rc = store_ends(w->store, skip, ends, COUNT_OF(ends), &count, err);
        for (size_t i = 0; rc == BATON_OK && i < count; i++) {
            rc = judge_fact(w, &ends[i], err);
        }
        for (size_t i = 0; i < count; i++) {
            free(ends[i].result);
        }
        skip += count;
    } while (rc == BATON_OK && count == COUNT_OF(ends));
    w->facts_due = rc != BATON_OK;
    return rc;
}
