/*
 * The image of the turn log: folding what the log says, and reading it back.
 * In: worker/round.c, worker/restore.c  Out: sql/queries.sql
 */
#include "common/store/internal.h"

#include "common/base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

baton_code store_checkpoint_get(struct store *store, int32_t partition, int64_t *ret_next,
                                struct wall_ms *ret_at, struct baton_error *err)
{
    bool row = false;
    struct stmt get = db_stmt(&store->db, STMT_CHECKPOINT_GET);
    stmt_int(&get, ":partition", partition);
    baton_code rc = stmt_step(&get, &row, err);
    if (rc == BATON_OK) {
        *ret_next = row ? stmt_get_int(&get, 0) : -1;
        ret_at->v = row ? stmt_get_int(&get, 1) : 0;
    }
    stmt_reset(&get);
    return rc;
}

baton_code store_checkpoint_set(struct store *store, int32_t partition, int64_t next,
                                struct wall_ms at, struct baton_error *err)
{
    struct stmt set = db_stmt(&store->db, STMT_CHECKPOINT_SET);
    stmt_int(&set, ":partition", partition);
    stmt_int(&set, ":next", next);
    stmt_int(&set, ":at", at.v);
    return stmt_run(&set, NULL, err);
}

baton_code store_image_drop(struct store *store, int32_t partition, struct baton_error *err)
{
    static const int drops[] = {STMT_IMAGE_DROP_TURNS, STMT_IMAGE_DROP_NOTES,
                                STMT_IMAGE_DROP_CHECKPOINT};
    baton_code rc = BATON_OK;
    for (size_t i = 0; rc == BATON_OK && i < COUNT_OF(drops); i++) {
        struct stmt drop = db_stmt(&store->db, drops[i]);
        stmt_int(&drop, ":partition", partition);
        rc = stmt_run(&drop, NULL, err);
    }
    return rc;
}

static void bind_time(struct stmt *stmt, const char *name, struct wall_ms at)
{
    if (at.v != 0) {
        stmt_int(stmt, name, at.v);
    } else {
        stmt_null(stmt, name);
    }
}

static baton_code put_attempt(struct store *store, int number, const struct turn_record *record,
                              const struct attempt *attempt, int *ret_changes,
                              struct baton_error *err)
{
    struct stmt fold = db_stmt(&store->db, number);
    stmt_text(&fold, ":turn", record->id.s);
    stmt_int(&fold, ":no", attempt->no);
    stmt_text(&fold, ":role", role_word(record->role));
    stmt_text(&fold, ":service", attempt->service.s);
    stmt_text(&fold, ":worker", attempt->worker.s);
    stmt_text(&fold, ":profile", attempt->profile.s);
    stmt_text(&fold, ":state", attempt_state_word(attempt->state));
    stmt_text(&fold, ":class", attempt->has_class ? failure_word(attempt->class) : NULL);
    bind_time(&fold, ":started_at", attempt->started_at);
    bind_time(&fold, ":ended_at", attempt->ended_at);
    return stmt_run(&fold, ret_changes, err);
}

static baton_code fold_attempt(struct store *store, const struct turn_record *record,
                               const struct attempt *attempt, bool known, struct baton_error *err)
{
    int changes = 0;
    baton_code rc = BATON_OK;
    if (known) {
        rc = put_attempt(store, STMT_ATTEMPT_MOVE, record, attempt, &changes, err);
    }
    if (rc == BATON_OK && changes == 0) {
        rc = put_attempt(store, STMT_ATTEMPT_FOLD, record, attempt, NULL, err);
    }
    return rc;
}

/* A full record has dropped its oldest attempts: an image that still shows one of them live is
 * behind. */
static baton_code forget_attempts(struct store *store, const struct turn_record *record,
                                  struct baton_error *err)
{
    struct stmt forget = db_stmt(&store->db, STMT_ATTEMPTS_FORGET);
    stmt_text(&forget, ":turn", record->id.s);
    stmt_int(&forget, ":before", record->attempts[0].no);
    return stmt_run(&forget, NULL, err);
}

static baton_code put_turn(struct store *store, int number, const struct log_place *place,
                           const struct turn_record *record, const void *bytes, size_t len,
                           struct mono_ms due, int *ret_changes, struct baton_error *err)
{
    char digest[2 * DIGEST_LEN + 1];
    char content[2 * DIGEST_LEN + 1];

    hex_encode(record->digest.b, DIGEST_LEN, digest);
    hex_encode(record->content.b, DIGEST_LEN, content);
    struct stmt fold = db_stmt(&store->db, number);
    stmt_text(&fold, ":turn", record->id.s);
    stmt_int(&fold, ":partition", place->partition);
    stmt_int(&fold, ":offset", place->offset);
    stmt_text(&fold, ":origin", record->origin.s);
    stmt_text(&fold, ":service", record->service.s);
    stmt_text(&fold, ":role", role_word(record->role));
    stmt_text(&fold, ":task", record->task_id.s);
    stmt_int(&fold, ":task_rev", record->task_rev);
    stmt_text(&fold, ":run", record->run_id.s);
    stmt_int(&fold, ":epoch", record->epoch);
    stmt_text(&fold, ":intent", record->intent.s);
    stmt_text(&fold, ":digest", digest);
    stmt_text(&fold, ":content", content);
    stmt_int(&fold, ":created_at", record->created_at.v);
    stmt_text(&fold, ":state", turn_state_word(record->state));
    stmt_int(&fold, ":attempt", record->attempt);
    if (record->state == TURN_queued) {
        stmt_int(&fold, ":due", due.v);
    } else {
        stmt_null(&fold, ":due");
    }
    stmt_text(&fold, ":lease_worker", record->lease_worker.s);
    stmt_text(&fold, ":lease_boot", record->lease_boot.s);
    bind_time(&fold, ":ended_at", turn_state_open(record->state) ? (struct wall_ms){0} : place->at);
    stmt_blob(&fold, ":record", bytes, len);
    return stmt_run(&fold, ret_changes, err);
}

baton_code store_turn_fold(struct store *store, const struct log_place *place,
                           const struct turn_record *record, const void *bytes, size_t len,
                           struct mono_ms due, struct baton_error *err)
{
    int changes = 0;

    BATON_PRE(store->db.txn != NULL && place->at.v > 0);
    baton_code rc = put_turn(store, STMT_TURN_MOVE, place, record, bytes, len, due, &changes, err);
    const bool known = changes > 0;
    if (rc == BATON_OK && !known) {
        rc = put_turn(store, STMT_TURN_FOLD, place, record, bytes, len, due, NULL, err);
    }
    if (rc != BATON_OK && sqlite3_extended_errcode(store->db.handle) == SQLITE_CONSTRAINT_TRIGGER) {
        return baton_fail(
            err, BATON_E_role_mismatch,
            "turn %s: its record in the turn log contradicts the identity in the store",
            record->id.s);
    }
    if (rc == BATON_OK && record->n_attempts == TURN_ATTEMPTS_MAX) {
        rc = forget_attempts(store, record, err);
    }
    /* Oldest first: an attempt ends before its successor lives (the UNIQUE index on live ones). */
    for (size_t i = 0; rc == BATON_OK && i < record->n_attempts; i++) {
        rc = fold_attempt(store, record, &record->attempts[i], known, err);
    }
    return rc;
}

baton_code store_turn_forget(struct store *store, const char *turn_id, struct baton_error *err)
{
    struct stmt forget = db_stmt(&store->db, STMT_TURN_FORGET);
    stmt_text(&forget, ":turn", turn_id);
    return stmt_run(&forget, NULL, err);
}

baton_code store_note_fold(struct store *store, int32_t partition, const char *key,
                           const void *value, size_t len, struct baton_error *err)
{
    struct stmt fold = db_stmt(&store->db, value != NULL ? STMT_NOTE_FOLD : STMT_NOTE_FORGET);
    stmt_int(&fold, ":partition", partition);
    stmt_text(&fold, ":key", key);
    if (value != NULL) {
        stmt_blob(&fold, ":value", value, len);
    }
    return stmt_run(&fold, NULL, err);
}

baton_code store_turn_get(struct store *store, const char *turn_id, bool *ret_found,
                          struct turn_record *ret_record, int32_t *ret_partition,
                          enum role *ret_column_role, struct baton_error *err)
{
    bool row = false;
    size_t len = 0;
    struct stmt get = db_stmt(&store->db, STMT_TURN_GET);
    stmt_text(&get, ":turn", turn_id);
    baton_code rc = stmt_step(&get, &row, err);
    if (rc == BATON_OK && row) {
        const void *bytes = stmt_get_blob(&get, 3, &len);
        const char *role = stmt_get_text(&get, 2);
        enum role column_role = ROLE_COUNT;
        rc = turn_record_parse(bytes, len, ret_record, err);
        if (rc == BATON_OK && !role_parse(role, strlen(role), &column_role)) {
            turn_record_done(ret_record);
            rc = baton_fail(err, BATON_E_role_mismatch, "turn %s: its role column is no role",
                            turn_id);
        }
        if (rc == BATON_OK && ret_partition != NULL) {
            *ret_partition = (int32_t)stmt_get_int(&get, 0);
        }
        if (rc == BATON_OK && ret_column_role != NULL) {
            *ret_column_role = column_role;
        }
    }
    stmt_reset(&get);
    if (rc == BATON_OK) {
        *ret_found = row;
    }
    return rc;
}

baton_code store_turn_known(struct store *store, const char *turn_id, bool *ret_known,
                            struct baton_error *err)
{
    bool row = false;
    struct stmt known = db_stmt(&store->db, STMT_TURN_KNOWN);
    stmt_text(&known, ":turn", turn_id);
    baton_code rc = stmt_step(&known, &row, err);
    stmt_reset(&known);
    if (rc == BATON_OK) {
        *ret_known = row;
    }
    return rc;
}

baton_code store_note_get(struct store *store, int32_t partition, const char *key, bool *ret_found,
                          struct buf *value, struct baton_error *err)
{
    bool row = false;
    size_t len = 0;
    struct stmt get = db_stmt(&store->db, STMT_NOTE_GET);
    stmt_int(&get, ":partition", partition);
    stmt_text(&get, ":key", key);
    baton_code rc = stmt_step(&get, &row, err);
    if (rc == BATON_OK && row) {
        const void *bytes = stmt_get_blob(&get, 0, &len);
        buf_add(value, bytes, len);
    }
    stmt_reset(&get);
    if (rc == BATON_OK) {
        *ret_found = row;
    }
    return rc;
}

baton_code store_notes(struct store *store, int32_t partition, const char *prefix,
                       struct store_note **ret_notes, size_t *ret_count, struct baton_error *err)
{
    struct store_note *notes = NULL;
    size_t count = 0;
    bool row = true;
    char until[160];
    baton_code rc;

    /* Keys are printable: '\x7f' is behind every key with this prefix. */
    BATON_PRE(strlen(prefix) + 2 < sizeof(until));
    snprintf(until, sizeof(until), "%s\x7f", prefix);
    struct stmt from = db_stmt(&store->db, STMT_NOTES_FROM);
    stmt_int(&from, ":partition", partition);
    stmt_text(&from, ":from", prefix);
    stmt_text(&from, ":until", until);
    while ((rc = stmt_step(&from, &row, err)) == BATON_OK && row) {
        struct store_note *grown = realloc(notes, (count + 1) * sizeof(*notes));
        size_t len = 0;
        if (grown == NULL) {
            rc = baton_fail(err, BATON_E_no_memory, "%s: out of memory", store->path);
            break;
        }
        notes = grown;
        struct store_note *note = &notes[count++];
        *note = (struct store_note){"", BUF_INIT};
        snprintf(note->key, sizeof(note->key), "%s", stmt_get_text(&from, 0));
        const void *bytes = stmt_get_blob(&from, 1, &len);
        buf_add(&note->value, bytes, len);
    }
    stmt_reset(&from);
    if (rc != BATON_OK) {
        for (size_t i = 0; i < count; i++) {
            buf_done(&notes[i].value);
        }
        free(notes);
        return rc;
    }
    *ret_notes = notes;
    *ret_count = count;
    return BATON_OK;
}

baton_code store_turns_due(struct store *store, struct mono_ms now, struct store_due *ret_due,
                           size_t max, size_t *ret_count, struct baton_error *err)
{
    bool row = true;
    size_t count = 0;
    baton_code rc;
    struct stmt due = db_stmt(&store->db, STMT_TURNS_DUE);
    stmt_int(&due, ":now", now.v);
    stmt_int(&due, ":max", (int64_t)max);
    while ((rc = stmt_step(&due, &row, err)) == BATON_OK && row) {
        ret_due[count].id = turn_id_of(stmt_get_text(&due, 0));
        ret_due[count++].partition = (int32_t)stmt_get_int(&due, 1);
    }
    stmt_reset(&due);
    *ret_count = count;
    return rc;
}

baton_code store_next_due(struct store *store, bool *ret_any, struct mono_ms *ret_at,
                          struct baton_error *err)
{
    bool row = false;
    struct stmt next = db_stmt(&store->db, STMT_TURN_NEXT_DUE);
    baton_code rc = stmt_step(&next, &row, err);
    if (rc == BATON_OK) {
        *ret_any = row && !stmt_get_null(&next, 0);
        ret_at->v = *ret_any ? stmt_get_int(&next, 0) : 0;
    }
    stmt_reset(&next);
    return rc;
}

baton_code store_turns_open(struct store *store, int32_t partition, const char *after,
                            struct store_open_turn *ret_turns, size_t max, size_t *ret_count,
                            struct baton_error *err)
{
    bool row = true;
    size_t count = 0;
    baton_code rc;
    struct stmt open = db_stmt(&store->db, STMT_TURNS_OPEN);
    stmt_int(&open, ":partition", partition);
    stmt_text(&open, ":after", after);
    stmt_int(&open, ":max", (int64_t)max);
    while ((rc = stmt_step(&open, &row, err)) == BATON_OK && row) {
        const char *state = stmt_get_text(&open, 1);
        ret_turns[count].id = turn_id_of(stmt_get_text(&open, 0));
        BATON_INVARIANT(turn_state_parse(state, strlen(state), &ret_turns[count].state));
        count++;
    }
    stmt_reset(&open);
    *ret_count = count;
    return rc;
}

static void count_in(struct stmt *row, struct store_counts *counts)
{
    const char *word = stmt_get_text(row, 0);
    const int64_t n = stmt_get_int(row, 1);
    const struct wall_ms created_at = {stmt_get_int(row, 2)};
    enum turn_state state = TURN_queued;
    BATON_INVARIANT(turn_state_parse(word, strlen(word), &state));
    if (state == TURN_parked) {
        counts->parked += n;
        return;
    }
    if (state == TURN_queued) {
        counts->queued += n;
    } else {
        counts->running += n;
    }
    if (counts->oldest.s[0] == '\0' || created_at.v < counts->created_at.v) {
        counts->oldest = turn_id_of(stmt_get_text(row, 3));
        counts->created_at = created_at;
    }
}

baton_code store_count(struct store *store, int32_t partition, struct store_counts *counts,
                       struct baton_error *err)
{
    bool row = true;
    baton_code rc;
    struct stmt each = db_stmt(&store->db, STMT_OPEN_COUNT);
    stmt_int(&each, ":partition", partition);
    while ((rc = stmt_step(&each, &row, err)) == BATON_OK && row) {
        count_in(&each, counts);
    }
    stmt_reset(&each);
    return rc;
}

baton_code store_due_set(struct store *store, const char *turn_id, struct mono_ms due,
                         struct baton_error *err)
{
    struct stmt set = db_stmt(&store->db, STMT_TURN_DUE_SET);
    stmt_text(&set, ":turn", turn_id);
    stmt_int(&set, ":due", due.v);
    return stmt_run(&set, NULL, err);
}

baton_code store_dues_clear(struct store *store, int32_t partition, struct baton_error *err)
{
    struct stmt clear = db_stmt(&store->db, STMT_DUES_CLEAR);
    stmt_int(&clear, ":partition", partition);
    return stmt_run(&clear, NULL, err);
}

baton_code store_turns_ended(struct store *store, int32_t partition, struct wall_ms before,
                             struct turn_id *ret_ids, size_t max, size_t *ret_count,
                             struct baton_error *err)
{
    bool row = true;
    size_t count = 0;
    baton_code rc;
    struct stmt ended = db_stmt(&store->db, STMT_TURNS_ENDED);
    stmt_int(&ended, ":partition", partition);
    stmt_int(&ended, ":before", before.v);
    stmt_int(&ended, ":max", (int64_t)max);
    while ((rc = stmt_step(&ended, &row, err)) == BATON_OK && row) {
        ret_ids[count++] = turn_id_of(stmt_get_text(&ended, 0));
    }
    stmt_reset(&ended);
    *ret_count = count;
    return rc;
}
