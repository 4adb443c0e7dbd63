/*
 * Facts: recorded ends of attempts that ran here; they stay as long as the log shows the attempt
 * claimed with that token (protocol rule 7).
 * In: worker/round.c, worker/restore.c  Out: sql/queries.sql
 */
#include "common/store/internal.h"

#include "common/base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

baton_code store_end_note(struct store *store, const struct recorded_end *end,
                          struct baton_error *err)
{
    BATON_PRE(store->db.txn != NULL);
    struct stmt note = db_stmt(&store->db, STMT_END_NOTE);
    stmt_text(&note, ":turn", end->turn.s);
    stmt_int(&note, ":attempt", end->attempt);
    stmt_text(&note, ":boot", end->boot.s);
    stmt_int(&note, ":partition", end->partition);
    stmt_text(&note, ":class", end->failed ? failure_word(end->class) : NULL);
    stmt_text(&note, ":result", end->result);
    stmt_text(&note, ":note", end->note);
    stmt_text(&note, ":usage", end->usage[0] != '\0' ? end->usage : NULL);
    stmt_int(&note, ":retry_after", end->retry_after_ms);
    stmt_int(&note, ":uncounted", end->uncounted ? 1 : 0);
    stmt_int(&note, ":started_at", end->started_at.v);
    stmt_int(&note, ":ended_at", end->ended_at.v);
    return stmt_run(&note, NULL, err);
}

/* The row of END_GET or ENDS_ALL that a statement stands on. */
static baton_code read_end(const struct store *store, const struct stmt *row,
                           struct recorded_end *ret_end, struct baton_error *err)
{
    *ret_end = (struct recorded_end){
        .turn = turn_id_of(stmt_get_text(row, 0)),
        .attempt = (int)stmt_get_int(row, 1),
        .partition = (int32_t)stmt_get_int(row, 3),
        .failed = !stmt_get_null(row, 4),
        .retry_after_ms = stmt_get_int(row, 7),
        .uncounted = stmt_get_int(row, 8) != 0,
        .started_at = {stmt_get_int(row, 9)},
        .ended_at = {stmt_get_int(row, 10)},
    };
    snprintf(ret_end->boot.s, sizeof(ret_end->boot.s), "%s", stmt_get_text(row, 2));
    snprintf(ret_end->note, sizeof(ret_end->note), "%s", stmt_get_text(row, 6));
    if (!stmt_get_null(row, 11)) {
        snprintf(ret_end->usage, sizeof(ret_end->usage), "%s", stmt_get_text(row, 11));
    }
    if (ret_end->failed) {
        const char *class = stmt_get_text(row, 4);
        BATON_INVARIANT(failure_parse(class, strlen(class), &ret_end->class));
    }
    if (!stmt_get_null(row, 5)) {
        ret_end->result = strdup(stmt_get_text(row, 5));
        if (ret_end->result == NULL) {
            return baton_fail(err, BATON_E_no_memory, "%s: out of memory", store->path);
        }
    }
    return BATON_OK;
}

baton_code store_end_get(struct store *store, const char *turn_id, int attempt, const char *boot,
                         bool *ret_found, struct recorded_end *ret_end, struct baton_error *err)
{
    bool row = false;
    struct stmt get = db_stmt(&store->db, STMT_END_GET);
    stmt_text(&get, ":turn", turn_id);
    stmt_int(&get, ":attempt", attempt);
    stmt_text(&get, ":boot", boot);
    baton_code rc = stmt_step(&get, &row, err);
    if (rc == BATON_OK && row) {
        rc = read_end(store, &get, ret_end, err);
    }
    stmt_reset(&get);
    if (rc == BATON_OK) {
        *ret_found = row;
    }
    return rc;
}

baton_code store_ends(struct store *store, size_t skip, struct recorded_end *ret_ends, size_t max,
                      size_t *ret_count, struct baton_error *err)
{
    bool row = true;
    size_t count = 0;
    baton_code rc;
    struct stmt all = db_stmt(&store->db, STMT_ENDS_ALL);
    stmt_int(&all, ":skip", (int64_t)skip);
    stmt_int(&all, ":max", (int64_t)max);
    while ((rc = stmt_step(&all, &row, err)) == BATON_OK && row) {
        if ((rc = read_end(store, &all, &ret_ends[count], err)) != BATON_OK) {
            break;
        }
        count++;
    }
    stmt_reset(&all);
    if (rc != BATON_OK) {
        for (size_t i = 0; i < count; i++) {
            free(ret_ends[i].result);
        }
        return rc;
    }
    *ret_count = count;
    return BATON_OK;
}

baton_code store_end_forget(struct store *store, const char *turn_id, int attempt, const char *boot,
                            struct baton_error *err)
{
    struct stmt forget = db_stmt(&store->db, STMT_END_FORGET);
    stmt_text(&forget, ":turn", turn_id);
    stmt_int(&forget, ":attempt", attempt);
    stmt_text(&forget, ":boot", boot);
    return stmt_run(&forget, NULL, err);
}
