/*
 * Connections of the local log, and its write transactions. Called by every other file here.
 *
 * A log keeps a few connections for calls of any thread; members, publishers and readers hold one
 * each for as long as they live.
 */
#include "common/log/local/file.h"
#include "common/log/local/internal.h"
#include "common/log/local/queries.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define IDLE_MAX 2 /* connections kept for the next call: more are rarely used at once */

static int open_queue(const struct local_log *log)
{
    char path[4096];
    int n = snprintf(path, sizeof(path), "%s/write.lock", log->side);
    if (n < 0 || (size_t)n >= sizeof(path)) {
        return -1;
    }
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

void local_conn_close(struct local_conn *conn)
{
    if (conn != NULL) {
        db_close(&conn->db);
        if (conn->queue_fd >= 0) {
            close(conn->queue_fd);
        }
        free(conn);
    }
}

static baton_code conn_open(struct local_log *log, struct local_conn **ret_conn,
                            struct baton_error *err)
{
    struct local_conn *conn = calloc(1, sizeof(*conn));
    if (conn == NULL) {
        return baton_fail(err, BATON_E_no_memory, "%s: out of memory", log->path);
    }
    conn->log = log;
    conn->queue_fd = open_queue(log);
    if (conn->queue_fd < 0) {
        baton_code rc = baton_fail(err, BATON_E_service_unavailable,
                                   "%s/write.lock: cannot be opened: %m", log->side);
        local_conn_close(conn);
        return rc;
    }
    baton_code rc = db_open(&conn->db, log->path, DB_existing, local_sql, local_sql_names,
                            LOCAL_SQL_COUNT, LOCAL_DAMAGED, err);
    if (rc == BATON_OK) {
        rc = db_script(&conn->db, local_sql_names[SETTINGS], local_sql[SETTINGS], err);
    }
    if (rc != BATON_OK) {
        local_conn_close(conn);
        return rc;
    }
    *ret_conn = conn;
    return BATON_OK;
}

baton_code local_conn_take(struct local_log *log, struct local_conn **ret_conn,
                           struct baton_error *err)
{
    pthread_mutex_lock(&log->lock);
    struct local_conn *conn = log->idle;
    if (conn != NULL) {
        log->idle = conn->next;
        log->n_idle--;
    }
    pthread_mutex_unlock(&log->lock);
    if (conn == NULL) {
        return conn_open(log, ret_conn, err);
    }
    conn->next = NULL;
    *ret_conn = conn;
    return BATON_OK;
}

void local_conn_give(struct local_conn *conn)
{
    if (conn == NULL) {
        return;
    }
    struct local_log *log = conn->log;
    sqlite3_db_release_memory(conn->db.handle);
    pthread_mutex_lock(&log->lock);
    bool keep = log->n_idle < IDLE_MAX;
    if (keep) {
        conn->next = log->idle;
        log->idle = conn;
        log->n_idle++;
    }
    pthread_mutex_unlock(&log->lock);
    if (!keep) {
        local_conn_close(conn);
    }
}

baton_code local_begin(struct local_conn *conn, int64_t timeout_ms, struct baton_error *err)
{
    if (!queue_enter(conn->queue_fd, timeout_ms)) {
        return baton_fail(err, BATON_E_timed_out,
                          "%s: another process has been writing for %lld ms; is it stopped? "
                          "`fuser %s/write.lock` lists who has the log open",
                          conn->log->path, (long long)timeout_ms, conn->log->side);
    }
    struct stmt stmt = db_stmt(&conn->db, BEGIN_WRITE);
    baton_code rc = stmt_run(&stmt, NULL, err);
    if (rc != BATON_OK) {
        queue_leave(conn->queue_fd);
    }
    return rc;
}

static void roll_back(struct local_conn *conn)
{
    if (!sqlite3_get_autocommit(conn->db.handle)) {
        /* Fails only where nothing is open any more; either way nothing is. */
        sqlite3_exec(conn->db.handle, "ROLLBACK", NULL, NULL, NULL);
    }
}

baton_code local_commit(struct local_conn *conn, bool *ret_unsure, struct baton_error *err)
{
    struct stmt stmt = db_stmt(&conn->db, COMMIT_WRITE);
    baton_code rc = stmt_run(&stmt, NULL, err);
    if (rc != BATON_OK) {
        /*
         * A frame that a failed fsync left behind may be found by a recovery after a crash, unless
         * somebody has written over it. A full disk stops before the frame that commits.
         */
        int result = sqlite3_extended_errcode(conn->db.handle) & 0xff;
        if (ret_unsure != NULL) {
            *ret_unsure = result != SQLITE_FULL && result != SQLITE_BUSY && result != SQLITE_NOMEM;
        }
        roll_back(conn);
    }
    queue_leave(conn->queue_fd);
    return rc;
}

void local_rollback(struct local_conn *conn)
{
    roll_back(conn);
    queue_leave(conn->queue_fd);
}
