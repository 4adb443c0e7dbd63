/*
 * Groups: who is a member, who has which partitions, how far the group has come. Called by
 * member.c, membership.c and poll.c.
 *
 * Join, leave and death are one write transaction each: rows, new generation, range assignment. The
 * same number of every input goes to the same member, so what concerns a turn is in one hand.
 */
#include "common/log/local/internal.h"
#include "common/log/local/queries.h"

#include "common/base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static baton_code rows_grow(struct group_row **rows, size_t count, struct baton_error *err)
{
    if ((count & (count - 1)) != 0 && count != 0) {
        return BATON_OK; /* room is doubled at each power of two */
    }
    size_t max = count == 0 ? 1 : 2 * count;
    struct group_row *more = realloc(*rows, max * sizeof(*more));
    if (more == NULL) {
        return baton_fail(err, BATON_E_no_memory, "members of a group: out of memory");
    }
    *rows = more;
    return BATON_OK;
}

baton_code group_rows(struct local_conn *conn, int64_t group, struct group_row **ret_rows,
                      size_t *ret_count, struct baton_error *err)
{
    struct stmt stmt = db_stmt(&conn->db, MEMBER_LIST);
    struct group_row *rows = NULL;
    size_t count = 0;
    bool row = true;
    baton_code rc;

    stmt_int(&stmt, ":consumer", group);
    while ((rc = stmt_step(&stmt, &row, err)) == BATON_OK && row) {
        if ((rc = rows_grow(&rows, count, err)) != BATON_OK) {
            stmt_reset(&stmt);
            break;
        }
        struct group_row *to = &rows[count++];
        *to = (struct group_row){.slot = (int)stmt_get_int(&stmt, 2),
                                 .session_ms = stmt_get_int(&stmt, 3),
                                 .away_until = stmt_get_int(&stmt, 4)};
        snprintf(to->worker, sizeof(to->worker), "%s", stmt_get_text(&stmt, 0));
        snprintf(to->boot, sizeof(to->boot), "%s", stmt_get_text(&stmt, 1));
    }
    if (rc != BATON_OK) {
        free(rows);
        return rc;
    }
    *ret_rows = rows;
    *ret_count = count;
    return BATON_OK;
}

bool group_row_stays(const struct local_log *log, const struct group_row *row, bool drop_silent)
{
    if (row->away_until != 0) {
        /* A time that lies more than a session ahead is of before the host's last start. */
        int64_t rest_ms = row->away_until - mono_now().v;
        return rest_ms > 0 && rest_ms <= row->session_ms;
    }
    switch (slot_look(log, row->slot, row->boot, NULL)) {
    case SLOT_alive:
        return true;
    case SLOT_silent:
        return !drop_silent;
    case SLOT_dead:
        break;
    }
    return false;
}

static baton_code delete_assignments(struct local_conn *conn, int64_t group,
                                     struct baton_error *err)
{
    struct stmt stmt = db_stmt(&conn->db, ASSIGNMENT_CLEAR);
    stmt_int(&stmt, ":consumer", group);
    return stmt_run(&stmt, NULL, err);
}

baton_code group_bury(struct local_conn *conn, int64_t group, const char *self, bool drop_silent,
                      bool *ret_changed, struct baton_error *err)
{
    struct group_row *rows = NULL;
    size_t count = 0;
    baton_code rc = group_rows(conn, group, &rows, &count, err);
    *ret_changed = false;
    for (size_t i = 0; rc == BATON_OK && i < count; i++) {
        if ((self != NULL && strcmp(rows[i].worker, self) == 0) ||
            group_row_stays(conn->log, &rows[i], drop_silent)) {
            continue;
        }
        if (!*ret_changed && (rc = delete_assignments(conn, group, err)) != BATON_OK) {
            break;
        }
        *ret_changed = true;
        struct stmt stmt = db_stmt(&conn->db, MEMBER_DELETE);
        stmt_int(&stmt, ":consumer", group);
        stmt_text(&stmt, ":worker", rows[i].worker);
        stmt_text(&stmt, ":boot", rows[i].boot);
        rc = stmt_run(&stmt, NULL, err);
    }
    free(rows);
    return rc;
}

baton_code group_rebalance(struct local_conn *conn, int64_t group, int32_t partitions,
                           struct baton_error *err)
{
    struct group_row *rows = NULL;
    size_t count = 0;
    baton_code rc = group_rows(conn, group, &rows, &count, err);
    if (rc == BATON_OK) {
        struct stmt stmt = db_stmt(&conn->db, CONSUMER_RAISE);
        stmt_int(&stmt, ":consumer", group);
        stmt_int(&stmt, ":partitions", partitions);
        rc = stmt_run(&stmt, NULL, err);
    }
    if (rc == BATON_OK) {
        rc = delete_assignments(conn, group, err);
    }
    int32_t no = 0;
    for (size_t i = 0; rc == BATON_OK && i < count; i++) {
        int32_t share = partitions / (int32_t)count + ((int32_t)i < partitions % (int32_t)count);
        for (int32_t end = no + share; rc == BATON_OK && no < end; no++) {
            struct stmt stmt = db_stmt(&conn->db, ASSIGNMENT_ADD);
            stmt_int(&stmt, ":consumer", group);
            stmt_int(&stmt, ":no", no);
            stmt_text(&stmt, ":worker", rows[i].worker);
            rc = stmt_run(&stmt, NULL, err);
        }
    }
    BATON_POST(rc != BATON_OK || count == 0 || no == partitions);
    free(rows);
    return rc;
}

baton_code group_find(struct local_conn *conn, const char *name, int64_t *ret_group,
                      struct baton_error *err)
{
    struct stmt stmt = db_stmt(&conn->db, CONSUMER_FIND);
    bool row = false;
    stmt_text(&stmt, ":name", name);
    baton_code rc = stmt_step(&stmt, &row, err);
    if (rc == BATON_OK) {
        *ret_group = row ? stmt_get_int(&stmt, 0) : 0;
        stmt_reset(&stmt);
    }
    return rc;
}

baton_code group_committed(struct local_conn *conn, int64_t group, int64_t part,
                           int64_t *ret_offset, struct baton_error *err)
{
    struct stmt stmt = db_stmt(&conn->db, COMMITTED_GET);
    bool row = false;
    stmt_int(&stmt, ":consumer", group);
    stmt_int(&stmt, ":part", part);
    baton_code rc = stmt_step(&stmt, &row, err);
    if (rc == BATON_OK) {
        *ret_offset = row ? stmt_get_int(&stmt, 0) : LOG_OFFSET_NONE;
        stmt_reset(&stmt);
    }
    return rc;
}

static baton_code partitions_of(struct local_conn *conn, int64_t group,
                                struct log_group_member *member, struct baton_error *err)
{
    struct stmt stmt = db_stmt(&conn->db, ASSIGNMENT_OF);
    bool row = true;
    baton_code rc;
    stmt_int(&stmt, ":consumer", group);
    stmt_text(&stmt, ":worker", member->worker);
    while ((rc = stmt_step(&stmt, &row, err)) == BATON_OK && row) {
        if (member->count < LOG_PARTITIONS_MAX) {
            member->partitions[member->count++] = (int32_t)stmt_get_int(&stmt, 0);
        }
    }
    return rc;
}

static baton_code members_of(struct local_conn *conn, int64_t group,
                             struct log_group_member **ret_members, size_t *ret_count,
                             struct baton_error *err)
{
    struct group_row *rows = NULL;
    size_t n_rows = 0;
    baton_code rc = group_rows(conn, group, &rows, &n_rows, err);
    if (rc != BATON_OK) {
        return rc;
    }
    struct log_group_member *members = calloc(n_rows + 1, sizeof(*members));
    size_t count = 0;
    if (members == NULL) {
        rc = baton_fail(err, BATON_E_no_memory, "members of a group: out of memory");
    }
    for (size_t i = 0; rc == BATON_OK && i < n_rows; i++) {
        /* A row whose process is dead waits for whoever comes next; from outside it is gone. */
        if (group_row_stays(conn->log, &rows[i], false)) {
            memcpy(members[count].worker, rows[i].worker, sizeof(rows[i].worker));
            rc = partitions_of(conn, group, &members[count++], err);
        }
    }
    free(rows);
    if (rc != BATON_OK) {
        free(members);
        return rc;
    }
    *ret_members = members;
    *ret_count = count;
    return BATON_OK;
}

/* A file is not waited for. */
baton_code local_group_members(struct log *base, const char *group, int64_t timeout_ms,
                               struct log_group_member **ret_members, size_t *ret_count,
                               struct baton_error *err)
{
    (void)timeout_ms;
    struct local_conn *conn = NULL;
    int64_t id = 0;
    baton_code rc = local_conn_take((struct local_log *)base, &conn, err);
    if (rc == BATON_OK && (rc = group_find(conn, group, &id, err)) == BATON_OK) {
        rc = members_of(conn, id, ret_members, ret_count, err);
    }
    local_conn_give(conn);
    return rc;
}

baton_code local_group_offset(struct log *base, const char *group, const char *topic,
                              int32_t partition, int64_t *ret_offset, struct baton_error *err)
{
    struct local_conn *conn = NULL;
    int64_t id = 0;
    int64_t part = 0;
    baton_code rc = local_conn_take((struct local_log *)base, &conn, err);
    if (rc == BATON_OK && (rc = local_part_find(conn, topic, partition, &part, err)) == BATON_OK &&
        (rc = group_find(conn, group, &id, err)) == BATON_OK) {
        rc = group_committed(conn, id, part, ret_offset, err);
    }
    local_conn_give(conn);
    return rc;
}

bool local_member_died(struct log *base, const char *boot)
{
    return slot_died_in((const struct local_log *)base, boot);
}

/* A transaction here ends with its process: the dead leave nothing open. */
baton_code local_fence(struct log *base, const char *group, const char *worker,
                       const char *const *topics, size_t n_topics, int64_t timeout_ms,
                       struct baton_error *err)
{
    (void)base;
    (void)group;
    (void)worker;
    (void)topics;
    (void)n_topics;
    (void)timeout_ms;
    (void)err;
    return BATON_OK;
}
