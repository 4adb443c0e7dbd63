/*
 * Housekeeping: records and tombstones that are old enough go, some at a time. Called by poll.c,
 * from whichever member comes first when a minute has passed since anybody did it.
 */
#include "common/log/local/internal.h"
#include "common/log/local/queries.h"

#include <string.h>

#define KEEP_ROWS 2000 /* of one transaction: some 10 ms */
#define KEEP_PARTS 64  /* looked at in one call */

struct keep_part {
    int64_t part;
    int64_t low;
    int64_t next;
    bool compact;
    int64_t retention_ms;
    int64_t tombstone_ms;
};

/* The partition behind `after` that may have aged records; *ret_found false: none. */
static baton_code next_part(struct local_conn *conn, int64_t after, struct keep_part *ret_part,
                            bool *ret_found, struct baton_error *err)
{
    struct stmt stmt = db_stmt(&conn->db, KEEP_PARTS_NEXT);
    stmt_int(&stmt, ":after", after);
    baton_code rc = stmt_step(&stmt, ret_found, err);
    if (rc == BATON_OK && *ret_found) {
        *ret_part = (struct keep_part){.part = stmt_get_int(&stmt, 0),
                                       .low = stmt_get_int(&stmt, 1),
                                       .next = stmt_get_int(&stmt, 2),
                                       .compact = strcmp(stmt_get_text(&stmt, 3), "compact") == 0,
                                       .retention_ms = stmt_get_int(&stmt, 4),
                                       .tombstone_ms = stmt_get_int(&stmt, 5)};
        stmt_reset(&stmt);
    }
    return rc;
}

static baton_code drop_tombstones(struct local_conn *conn, const struct keep_part *part,
                                  int64_t now, int64_t max, int64_t *ret_rows,
                                  struct baton_error *err)
{
    struct stmt stmt = db_stmt(&conn->db, TOMBSTONE_DELETE);
    int rows = 0;
    stmt_int(&stmt, ":part", part->part);
    stmt_int(&stmt, ":before", now - part->tombstone_ms);
    stmt_int(&stmt, ":max", max);
    baton_code rc = stmt_run(&stmt, &rows, err);
    *ret_rows = rows;
    return rc;
}

/* Deletes aged records from the front, up to the first that is young. */
static baton_code drop_aged(struct local_conn *conn, const struct keep_part *part, int64_t now,
                            int64_t max, int64_t *ret_rows, struct baton_error *err)
{
    struct stmt stmt = db_stmt(&conn->db, RECORD_OLDEST);
    bool row = false;
    *ret_rows = 0;
    stmt_int(&stmt, ":before", now - part->retention_ms);
    stmt_int(&stmt, ":from", local_record_id(part->part, part->low));
    stmt_int(&stmt, ":end", local_record_id(part->part, part->next));
    stmt_int(&stmt, ":max", max);
    baton_code rc = stmt_step(&stmt, &row, err);
    if (rc != BATON_OK || !row) {
        return rc;
    }
    bool young = !stmt_get_null(&stmt, 0);
    int64_t first_young = stmt_get_int(&stmt, 0) & LOCAL_OFFSET_MAX;
    int64_t last = stmt_get_int(&stmt, 1) & LOCAL_OFFSET_MAX;
    int64_t count = stmt_get_int(&stmt, 2);
    stmt_reset(&stmt);
    int64_t before = young ? first_young : last + 1;
    if (count == 0 || before <= part->low) {
        return BATON_OK;
    }
    *ret_rows = young ? before - part->low : count;
    return local_delete_below(conn, part->part, part->low, before, err);
}

/* now: the log's time; what it does not know is not old. */
static baton_code keep_some(struct local_conn *conn, int64_t now, int64_t *cursor, bool *ret_more,
                            struct baton_error *err)
{
    int64_t left = KEEP_ROWS;
    struct keep_part part = {0};
    bool found = true;
    baton_code rc = BATON_OK;
    for (int looked = 0; looked < KEEP_PARTS && left > 0; looked++) {
        int64_t rows = 0;
        if ((rc = next_part(conn, *cursor, &part, &found, err)) != BATON_OK || !found) {
            break;
        }
        rc = part.compact ? drop_tombstones(conn, &part, now, left, &rows, err)
                          : drop_aged(conn, &part, now, left, &rows, err);
        if (rc != BATON_OK) {
            break;
        }
        left -= rows;
        if (left > 0) {
            *cursor = part.part;
        }
    }
    *ret_more = rc == BATON_OK && found;
    if (rc == BATON_OK && !found) {
        *cursor = 0;
        struct stmt stmt = db_stmt(&conn->db, KEEP_DONE);
        stmt_int(&stmt, ":at", wall_now().v);
        rc = stmt_run(&stmt, NULL, err);
    }
    return rc;
}

static baton_code keep_due(struct local_conn *conn, bool *ret_due, struct baton_error *err)
{
    struct stmt stmt = db_stmt(&conn->db, KEEP_LAST);
    bool row = false;
    baton_code rc = stmt_step(&stmt, &row, err);
    if (rc == BATON_OK) {
        int64_t age_ms = row ? wall_now().v - stmt_get_int(&stmt, 0) : KEEP_EVERY_MS;
        *ret_due = age_ms < 0 || age_ms >= KEEP_EVERY_MS;
        stmt_reset(&stmt);
    }
    return rc;
}

baton_code local_keep(struct local_conn *conn, int64_t *cursor, bool *ret_more,
                      struct baton_error *err)
{
    bool due = false;
    struct wall_ms now = {0};
    *ret_more = false;
    if (!clock_time(conn->log->clock, &now)) {
        return BATON_OK;
    }
    baton_code rc = keep_due(conn, &due, err);
    if (rc != BATON_OK || !due || (rc = local_begin(conn, 0, err)) != BATON_OK) {
        return rc;
    }
    if ((rc = keep_some(conn, now.v, cursor, ret_more, err)) == BATON_OK) {
        return local_commit(conn, NULL, err);
    }
    local_rollback(conn);
    return rc;
}
