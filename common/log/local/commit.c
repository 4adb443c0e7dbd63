/*
 * A member's transaction: records and offsets, bound to an assignment. Called by common/log/log.c
 * (log_commit).
 *
 * Member, generation and ownership are checked in the very transaction that writes, so there is no
 * moment between the check and the commit. Each has a number in the member's row: after an outcome
 * that is not known (the disk failed in the commit itself), the same call again finds out by it.
 */
#include "common/log/local/internal.h"
#include "common/log/local/queries.h"

#include "common/base/fault.h"

#include <stdlib.h>
#include <string.h>

static bool owns(uint64_t owned, int32_t partition)
{
    return partition >= 0 && partition < LOG_PARTITIONS_MAX && (owned >> partition & 1) != 0;
}

/* Whoever names a partition in a transaction must own it: offsets, and records of the state topic.
 */
static bool owns_all(const struct standing *standing, const struct log_txn *txn)
{
    for (size_t i = 0; i < txn->n_offsets; i++) {
        if (!owns(standing->owned, txn->offsets[i].partition)) {
            return false;
        }
    }
    for (size_t i = 0; i < txn->n_records; i++) {
        if (txn->records[i].partition != LOG_PARTITION_BY_KEY &&
            !owns(standing->owned, txn->records[i].partition)) {
            return false;
        }
    }
    return true;
}

/* The answer of who may not commit; false: may. */
static bool refused(const struct standing *standing, const struct log_txn *txn,
                    struct log_commit_result *result)
{
    if (standing->member && standing->twin) {
        result->verdict = LOG_VERDICT_fenced;
        return true;
    }
    if (!standing->member || standing->generation != txn->generation || !owns_all(standing, txn)) {
        result->verdict = LOG_VERDICT_lost;
        return true;
    }
    return false;
}

static baton_code write_offsets(struct local_member *member, const struct log_txn *txn,
                                struct baton_error *err)
{
    baton_code rc = BATON_OK;
    for (size_t i = 0; rc == BATON_OK && i < txn->n_offsets; i++) {
        const struct log_offset *offset = &txn->offsets[i];
        struct stmt stmt = db_stmt(&member->conn->db, COMMITTED_SET);
        stmt_int(&stmt, ":consumer", member->group_id);
        stmt_int(&stmt, ":part", member->first_part[offset->input] + offset->partition);
        stmt_int(&stmt, ":next", offset->next);
        rc = stmt_run(&stmt, NULL, err);
    }
    return rc;
}

static baton_code write_number(struct local_member *member, struct baton_error *err)
{
    struct stmt stmt = db_stmt(&member->conn->db, MEMBER_SET_TXN);
    stmt_int(&stmt, ":txn", member->txn);
    stmt_int(&stmt, ":consumer", member->group_id);
    stmt_text(&stmt, ":worker", member->worker);
    return stmt_run(&stmt, NULL, err);
}

static void tell_places(const struct log_txn *txn, const struct append_place *places,
                        struct wall_ms at)
{
    for (size_t i = 0; i < txn->n_records; i++) {
        txn->records[i].partition = places[i].partition;
        txn->records[i].offset = places[i].offset;
        txn->records[i].at = at;
    }
}

void member_forget_unsure(struct local_member *member)
{
    free(member->unsure_places);
    member->unsure_places = NULL;
    member->unsure = false;
}

/* Writes everything; a record that the log does not take is told as culprit. */
static baton_code write_all(struct local_member *member, const struct log_txn *txn,
                            struct append *append, struct append_place *places, struct wall_ms at,
                            int64_t *ret_culprit, struct baton_error *err)
{
    baton_code rc;
    *ret_culprit = -1;
    for (size_t i = 0; i < txn->n_records; i++) {
        if ((rc = append_record(append, &txn->records[i], at, &places[i], err)) != BATON_OK) {
            *ret_culprit = append_is_culprit(rc) ? (int64_t)i : -1;
            return rc;
        }
    }
    if ((rc = append_finish(append, err)) != BATON_OK ||
        (rc = write_offsets(member, txn, err)) != BATON_OK) {
        return rc;
    }
    return write_number(member, err);
}

/* Commits what was written; an outcome that is not known is kept for the repetition. */
static void settle(struct local_member *member, const struct log_txn *txn,
                   struct append_place **places, struct wall_ms at,
                   struct log_commit_result *result, struct baton_error *err)
{
    bool unsure = false;
    baton_code rc = BATON_OK;
    if (FAULT_FAILS(log_before_commit)) {
        rc = baton_fail(err, BATON_E_service_unavailable, "fault point log.before_commit");
        unsure = true;
        local_rollback(member->conn);
    } else {
        rc = local_commit(member->conn, &unsure, err);
    }
    if (rc == BATON_OK && FAULT_FAILS(log_after_commit)) {
        rc = baton_fail(err, BATON_E_service_unavailable, "fault point log.after_commit");
        unsure = true;
    }
    if (rc == BATON_OK) {
        result->verdict = LOG_VERDICT_committed;
        tell_places(txn, *places, at);
    } else if (unsure) {
        result->verdict = LOG_VERDICT_unknown;
        result->code = rc;
        member->unsure = true;
        member->unsure_places = *places;
        member->unsure_at = at;
        *places = NULL;
    } else {
        result->verdict = LOG_VERDICT_aborted;
        result->code = rc;
    }
}

/* In the transaction: checks, writes, commits. Leaves the queue in every case. */
static baton_code commit(struct local_member *member, const struct log_txn *txn,
                         struct append *append, struct append_place **places,
                         struct log_commit_result *result, struct baton_error *err)
{
    struct standing standing;
    struct wall_ms at = clock_date(member->conn->log->clock);
    baton_code rc = member_standing(member, &standing, err);
    if (rc != BATON_OK) {
        local_rollback(member->conn);
        return rc;
    }
    if (member->unsure && standing.member && !standing.twin && standing.txn == member->txn) {
        local_rollback(member->conn);
        tell_places(txn, member->unsure_places, member->unsure_at);
        member_forget_unsure(member);
        result->verdict = LOG_VERDICT_committed;
        return BATON_OK;
    }
    member_forget_unsure(member); /* it is known now: it did not happen */
    if (refused(&standing, txn, result)) {
        local_rollback(member->conn);
        return BATON_OK;
    }
    member->txn = standing.txn + 1;
    rc = write_all(member, txn, append, *places, at, &result->culprit, err);
    if (rc == BATON_OK) {
        settle(member, txn, places, at, result, err);
        return BATON_OK;
    }
    local_rollback(member->conn);
    if (result->culprit < 0 && rc != BATON_E_disk_full) {
        return rc; /* nothing was sent, and no record is to blame */
    }
    result->verdict = LOG_VERDICT_aborted;
    result->code = rc;
    return BATON_OK;
}

baton_code local_member_commit(struct log_member *base, const struct log_txn *txn,
                               int64_t timeout_ms, struct log_commit_result *ret_result,
                               struct baton_error *err)
{
    struct local_member *member = (struct local_member *)base;
    struct append append = {.conn = member->conn, .turn = member->turn};
    struct log_commit_result result = {.code = BATON_OK, .culprit = -1};
    struct append_place *places = malloc((txn->n_records + 1) * sizeof(*places));
    baton_code rc;

    if (places == NULL) {
        return baton_fail(err, BATON_E_no_memory, "%s: out of memory", member->conn->log->path);
    }
    rc = local_begin(member->conn, timeout_ms, err);
    if (rc == BATON_OK) {
        rc = commit(member, txn, &append, &places, &result, err);
    }
    if (rc == BATON_OK) {
        if (result.verdict == LOG_VERDICT_committed || result.verdict == LOG_VERDICT_unknown) {
            append_ring(&append);
        }
        if (result.verdict == LOG_VERDICT_lost || result.verdict == LOG_VERDICT_fenced) {
            member->look = true;
            member_wake(member); /* the poll has something to tell */
        }
        member->turn = append.turn;
        *ret_result = result;
    }
    append_done(&append);
    free(places);
    return rc;
}

baton_code local_member_renew(struct log_member *base, struct baton_error *err)
{
    struct local_member *member = (struct local_member *)base;
    (void)err;
    /* What is not committed is not there; nothing has to be settled. */
    member_forget_unsure(member);
    return BATON_OK;
}
