/* Opens, makes and closes a local log. In: common/log/log.c. Out: every other file here through local_ops. */
#include "common/log/local/local.h"

#include "common/base/check.h"
#include "common/log/local/file.h"
#include "common/log/local/internal.h"
#include "common/log/local/queries.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void log_free(struct local_log *log)
{
    if (log == NULL) {
        return;
    }
    while (log->idle != NULL) {
        struct local_conn *conn = log->idle;
        log->idle = conn->next;
        local_conn_close(conn);
    }
    clock_close(log->clock);
    pthread_mutex_destroy(&log->lock);
    free(log->path);
    free(log->side);
    free(log);
}

static void local_log_close(struct log *base)
{
    log_free((struct local_log *)base);
}

static const char *local_log_cluster(const struct log *base)
{
    return ((const struct local_log *)base)->cluster;
}

static bool local_log_time(struct log *base, struct wall_ms *ret_now)
{
    return clock_time(((struct local_log *)base)->clock, ret_now);
}

/* Makes one folder; an existing one is as good. */
static bool make_folder(const char *path)
{
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

/* Makes the folders above path that are missing. */
static bool make_parents(const char *path)
{
    char *copy = strdup(path);
    bool made = copy != NULL;
    for (char *at = made ? strchr(copy + 1, '/') : NULL; made && at != NULL;
         at = strchr(at + 1, '/')) {
        *at = '\0';
        made = make_folder(copy);
        *at = '/';
    }
    free(copy);
    return made;
}

bool local_make_side(const char *side)
{
    static const char *const folders[] = {"", "/members", "/bells"};
    for (size_t i = 0; i < COUNT_OF(folders); i++) {
        char *name = NULL;
        bool made = asprintf(&name, "%s%s", side, folders[i]) >= 0 && make_folder(name);
        free(name);
        if (!made) {
            return false;
        }
    }
    return true;
}

static baton_code log_new(const char *path, struct local_log **ret_log, struct baton_error *err)
{
    struct local_log *log = calloc(1, sizeof(*log));
    if (log == NULL || pthread_mutex_init(&log->lock, NULL) != 0) {
        free(log);
        return baton_fail(err, BATON_E_no_memory, "%s: out of memory", path);
    }
    log->base.ops = &local_ops;
    log->path = strdup(path);
    if (log->path == NULL || asprintf(&log->side, "%s.d", path) < 0) {
        log->side = NULL;
        log_free(log);
        return baton_fail(err, BATON_E_no_memory, "%s: out of memory", path);
    }
    if (!local_make_side(log->side)) {
        baton_code rc =
            baton_fail(err, BATON_E_service_unavailable, "%s: cannot be made: %m", log->side);
        log_free(log);
        return rc;
    }
    log->clock = clock_open(log->side);
    *ret_log = log;
    return BATON_OK;
}

/* In a write transaction: an empty file becomes a log, an older one a present one. */
static baton_code bring_up(struct local_conn *conn, struct baton_error *err)
{
    struct db *db = &conn->db;
    bool empty = false;
    int64_t version = 0;
    baton_code rc = file_is_empty(db, &empty, err);
    if (rc == BATON_OK && !empty) {
        rc = file_version(db, &version, err);
    }
    if (rc == BATON_OK && version < file_version_now()) {
        rc = file_migrate(db, version, err);
    }
    if (rc != BATON_OK || !empty) {
        return rc;
    }
    char cluster[32 + 1];
    random_hex(cluster, 32);
    struct stmt stmt = db_stmt(db, META_ADD);
    stmt_text(&stmt, ":cluster", cluster);
    stmt_int(&stmt, ":at", wall_now().v);
    stmt_text(&stmt, ":program", BATON_VERSION);
    return stmt_run(&stmt, NULL, err);
}

static baton_code in_transaction(struct local_conn *conn, struct baton_error *err)
{
    baton_code rc = local_begin(conn, LOCAL_WAIT_MS, err);
    if (rc != BATON_OK) {
        return rc;
    }
    rc = bring_up(conn, err);
    if (rc == BATON_OK) {
        return local_commit(conn, NULL, err);
    }
    local_rollback(conn);
    return rc;
}

static baton_code read_cluster(struct local_conn *conn, struct baton_error *err)
{
    struct stmt stmt = db_stmt(&conn->db, META_CLUSTER);
    bool row = false;
    baton_code rc = stmt_step(&stmt, &row, err);
    if (rc == BATON_OK && !row) {
        return baton_fail(err, BATON_E_store_failed, "%s: has lost its identity (table meta)",
                          conn->log->path);
    }
    if (rc == BATON_OK) {
        snprintf(conn->log->cluster, sizeof(conn->log->cluster), "%s", stmt_get_text(&stmt, 0));
        stmt_reset(&stmt);
    }
    return rc;
}

/* Looks at what is in the file, and brings an older version up. */
static baton_code check_content(struct local_conn *conn, struct baton_error *err)
{
    int64_t version = 0;
    bool empty = false;
    baton_code rc = file_is_empty(&conn->db, &empty, err);
    if (rc == BATON_OK && empty) {
        return baton_fail(err, BATON_E_service_unavailable,
                          "%s: is empty; `baton init` or `baton topics apply` makes a log of it",
                          conn->log->path);
    }
    if (rc == BATON_OK) {
        rc = file_version(&conn->db, &version, err);
    }
    if (rc == BATON_OK) {
        rc = db_use_wal(&conn->db, err);
    }
    if (rc == BATON_OK && version < file_version_now()) {
        rc = in_transaction(conn, err);
    }
    if (rc == BATON_OK) {
        rc = file_check_schema(&conn->db, err);
    }
    return rc == BATON_OK ? read_cluster(conn, err) : rc;
}

baton_code local_log_there(const struct local_log *log, struct baton_error *err)
{
    struct stat st;
    int result = stat(log->path, &st);
    if (result != 0 && errno != ENOENT) {
        return BATON_OK; /* whatever it is, it says nothing about the file */
    }
    if (result == 0 && st.st_dev == log->dev && st.st_ino == log->ino) {
        return BATON_OK;
    }
    return baton_fail(
        err, BATON_E_topic_missing,
        "%s: was deleted or replaced while it was open, so that nobody would see what "
        "is written; stop every worker before a log is restored, then start them again",
        log->path);
}

baton_code local_log_open(const char *path, struct log **ret_log, struct baton_error *err)
{
    struct local_log *log = NULL;
    struct local_conn *conn = NULL;
    baton_code rc;

    if ((rc = file_check_place(path, err)) != BATON_OK ||
        (rc = log_new(path, &log, err)) != BATON_OK ||
        (rc = local_conn_take(log, &conn, err)) != BATON_OK ||
        (rc = check_content(conn, err)) != BATON_OK) {
        local_conn_close(conn);
        log_free(log);
        return rc;
    }
    struct stat st;
    if (stat(path, &st) == 0) {
        log->dev = st.st_dev;
        log->ino = st.st_ino;
    }
    local_conn_give(conn);
    *ret_log = &log->base;
    return BATON_OK;
}

/* Two who make it at once make one file; which is filled is settled by the transaction. */
static baton_code make_file(const char *path, struct baton_error *err)
{
    struct stat st;
    struct db db;
    if (stat(path, &st) == 0) {
        return BATON_OK;
    }
    baton_code rc = db_open(&db, path, DB_create, local_sql, local_sql_names, LOCAL_SQL_COUNT,
                            LOCAL_DAMAGED, err);
    if (rc == BATON_OK) {
        db_close(&db);
    }
    return rc;
}

baton_code local_log_create(const char *path, struct baton_error *err)
{
    struct local_log *log = NULL;
    struct local_conn *conn = NULL;
    bool empty = false;
    baton_code rc;

    if (!make_parents(path)) {
        return baton_fail(err, BATON_E_service_unavailable, "%s: its folder cannot be made: %m",
                          path);
    }
    if ((rc = file_check_folder_of(path, err)) != BATON_OK ||
        (rc = log_new(path, &log, err)) != BATON_OK) {
        return rc;
    }
    if ((rc = make_file(path, err)) == BATON_OK && (rc = file_check_place(path, err)) == BATON_OK &&
        (rc = local_conn_take(log, &conn, err)) == BATON_OK) {
        if ((rc = file_is_empty(&conn->db, &empty, err)) == BATON_OK && empty) {
            rc = db_use_wal(&conn->db, err);
        }
        if (rc == BATON_OK) {
            rc = in_transaction(conn, err);
        }
        local_conn_close(conn);
    }
    log_free(log);
    return rc;
}

const struct log_driver_ops local_ops = {
    .name = "local",
    .replaces_keys = true,
    .close = local_log_close,
    .cluster = local_log_cluster,
    .time = local_log_time,
    .topic_describe = local_topic_describe,
    .topics_create = local_topics_create,
    .topic_alter = local_topic_alter,
    .topics_list = local_topics_list,
    .watermarks = local_watermarks,
    .trim = local_trim,
    .publisher_open = local_publisher_open,
    .publisher_close = local_publisher_close,
    .publish = local_publish,
    .reader_open = local_reader_open,
    .reader_close = local_reader_close,
    .reader_next = local_reader_next,
    .member_open = local_member_open,
    .member_close = local_member_close,
    .member_fd = local_member_fd,
    .member_poll = local_member_poll,
    .member_committed = local_member_committed,
    .member_seek = local_member_seek,
    .member_fetch = local_member_fetch,
    .member_end = local_member_end,
    .commit = local_member_commit,
    .member_renew = local_member_renew,
    .fence = local_fence,
    .member_died = local_member_died,
    .group_members = local_group_members,
    .group_offset = local_group_offset,
};

const char *local_log_version(bool *ret_old)
{
    *ret_old = sqlite3_libversion_number() < SQLITE_VERSION_NUMBER;
    return sqlite3_libversion();
}
