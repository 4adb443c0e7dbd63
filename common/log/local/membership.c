/*
 * A member's place in its group: join, leave, bury, each one write transaction. Called by member.c
 * and poll.c.
 */
#include "common/log/local/internal.h"
#include "common/log/local/queries.h"

#include <string.h>

baton_code member_standing(struct local_member *member, struct standing *ret_standing,
                           struct baton_error *err)
{
    struct stmt stmt = db_stmt(&member->conn->db, MEMBER_LOOK);
    struct standing standing = {0};
    bool row = true;
    baton_code rc;

    stmt_int(&stmt, ":consumer", member->group_id);
    stmt_text(&stmt, ":worker", member->worker);
    while ((rc = stmt_step(&stmt, &row, err)) == BATON_OK && row) {
        standing.member = true;
        standing.twin = strcmp(stmt_get_text(&stmt, 0), member->boot.s) != 0;
        standing.generation = stmt_get_int(&stmt, 1);
        if (!stmt_get_null(&stmt, 2)) {
            standing.owned |= (uint64_t)1 << stmt_get_int(&stmt, 2);
        }
        standing.txn = stmt_get_int(&stmt, 3);
    }
    if (rc == BATON_OK) {
        *ret_standing = standing;
    }
    return rc;
}

/* The group's row, made if need be; *ret_changed: it had another number of partitions. */
static baton_code find_or_add_group(struct local_member *member, bool *ret_changed,
                                    struct baton_error *err)
{
    struct db *db = &member->conn->db;
    struct stmt stmt = db_stmt(db, CONSUMER_FIND);
    bool row = false;
    stmt_text(&stmt, ":name", member->group);
    baton_code rc = stmt_step(&stmt, &row, err);
    if (rc == BATON_OK && row) {
        member->group_id = stmt_get_int(&stmt, 0);
        *ret_changed = stmt_get_int(&stmt, 1) != member->partitions;
        stmt_reset(&stmt);
        return BATON_OK;
    }
    if (rc == BATON_OK) {
        *ret_changed = true;
        stmt = db_stmt(db, CONSUMER_ADD);
        stmt_text(&stmt, ":name", member->group);
        stmt_int(&stmt, ":partitions", member->partitions);
        if ((rc = stmt_run(&stmt, NULL, err)) == BATON_OK) {
            rc = group_find(member->conn, member->group, &member->group_id, err);
        }
    }
    return rc;
}

/* Is there a row for this worker id, and is it of this process? */
static baton_code own_row(struct local_member *member, bool *ret_there, bool *ret_ours,
                          struct baton_error *err)
{
    struct stmt stmt = db_stmt(&member->conn->db, MEMBER_FIND);
    bool row = false;
    stmt_int(&stmt, ":consumer", member->group_id);
    stmt_text(&stmt, ":worker", member->worker);
    baton_code rc = stmt_step(&stmt, &row, err);
    if (rc == BATON_OK) {
        *ret_there = row;
        *ret_ours = row && strcmp(stmt_get_text(&stmt, 0), member->boot.s) == 0;
        stmt_reset(&stmt);
    }
    return rc;
}

static baton_code write_row(struct local_member *member, bool there, struct baton_error *err)
{
    struct stmt stmt = db_stmt(&member->conn->db, there ? MEMBER_TAKE : MEMBER_ADD);
    stmt_int(&stmt, ":consumer", member->group_id);
    stmt_text(&stmt, ":worker", member->worker);
    stmt_text(&stmt, ":boot", member->boot.s);
    stmt_int(&stmt, ":slot", member->slot.number);
    stmt_int(&stmt, ":session", member->session_ms);
    return stmt_run(&stmt, NULL, err);
}

static baton_code join(struct local_member *member, struct baton_error *err)
{
    bool changed = false;
    bool buried = false;
    bool there = false;
    bool ours = false;
    baton_code rc;

    if ((rc = find_or_add_group(member, &changed, err)) != BATON_OK ||
        (rc = group_bury(member->conn, member->group_id, member->worker, false, &buried, err)) !=
            BATON_OK ||
        (rc = own_row(member, &there, &ours, err)) != BATON_OK ||
        (rc = write_row(member, there, err)) != BATON_OK) {
        return rc;
    }
    if (changed || buried || !there) {
        rc = group_rebalance(member->conn, member->group_id, member->partitions, err);
    }
    return rc;
}

static baton_code leave(struct local_member *member, bool leave_group, struct baton_error *err)
{
    bool there = false;
    bool ours = false;
    baton_code rc = own_row(member, &there, &ours, err);
    if (rc != BATON_OK || !ours) {
        return rc;
    }
    if (!leave_group) {
        struct stmt stmt = db_stmt(&member->conn->db, MEMBER_AWAY);
        stmt_int(&stmt, ":until", mono_now().v + member->session_ms);
        stmt_int(&stmt, ":consumer", member->group_id);
        stmt_text(&stmt, ":worker", member->worker);
        stmt_text(&stmt, ":boot", member->boot.s);
        return stmt_run(&stmt, NULL, err);
    }
    struct stmt stmt = db_stmt(&member->conn->db, ASSIGNMENT_CLEAR);
    stmt_int(&stmt, ":consumer", member->group_id);
    if ((rc = stmt_run(&stmt, NULL, err)) != BATON_OK) {
        return rc;
    }
    stmt = db_stmt(&member->conn->db, MEMBER_DELETE);
    stmt_int(&stmt, ":consumer", member->group_id);
    stmt_text(&stmt, ":worker", member->worker);
    stmt_text(&stmt, ":boot", member->boot.s);
    if ((rc = stmt_run(&stmt, NULL, err)) != BATON_OK) {
        return rc;
    }
    return group_rebalance(member->conn, member->group_id, member->partitions, err);
}

/* Ends the transaction by its result; after a commit the group hears of it. */
static baton_code conclude(struct local_member *member, baton_code rc, struct baton_error *err)
{
    if (rc != BATON_OK) {
        local_rollback(member->conn);
        return rc;
    }
    rc = local_commit(member->conn, NULL, err);
    if (rc == BATON_OK) {
        bell_ring(member->conn->log, BELL_group, member->group);
    }
    return rc;
}

baton_code member_join(struct local_member *member, int64_t timeout_ms, struct baton_error *err)
{
    baton_code rc = local_begin(member->conn, timeout_ms, err);
    return rc != BATON_OK ? rc : conclude(member, join(member, err), err);
}

baton_code member_leave(struct local_member *member, bool leave_group, int64_t timeout_ms,
                        struct baton_error *err)
{
    baton_code rc = local_begin(member->conn, timeout_ms, err);
    return rc != BATON_OK ? rc : conclude(member, leave(member, leave_group, err), err);
}

baton_code member_bury(struct local_member *member, struct baton_error *err)
{
    bool changed = false;
    baton_code rc = local_begin(member->conn, LOCAL_POLL_WAIT_MS, err);
    if (rc != BATON_OK) {
        return rc;
    }
    rc = group_bury(member->conn, member->group_id, member->worker, member->judges, &changed, err);
    if (rc == BATON_OK && !changed) {
        local_rollback(member->conn);
        return BATON_OK;
    }
    if (rc == BATON_OK) {
        rc = group_rebalance(member->conn, member->group_id, member->partitions, err);
    }
    return conclude(member, rc, err);
}
