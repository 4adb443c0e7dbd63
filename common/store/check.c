/*
 * Looking at a store from outside, and copying it. Both work while a worker runs.
 * Called by deploy/cmd_store.c and deploy/doctor_host.c.
 */
#include "common/store/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opens <dir>/store.db read-only and checks version and schema. */
static baton_code open_readonly(const char *dir, char *path, size_t path_size, struct db *db,
                                struct baton_error *err)
{
    int64_t version = 0;
    baton_code rc;

    if (snprintf(path, path_size, "%s/store.db", dir) >= (int)path_size) {
        return baton_fail(err, BATON_E_store_failed, "%s: the path is too long", dir);
    }
    if (access(path, R_OK) != 0) {
        return baton_fail(err, BATON_E_store_failed, "%s: %s", path, strerror(errno));
    }
    if ((rc = db_open(db, path, DB_readonly, store_sql, store_sql_names, STORE_SQL_COUNT,
                      STORE_DAMAGED, err)) != BATON_OK) {
        return rc;
    }
    if ((rc = store_version_check(db, &version, err)) != BATON_OK ||
        (rc = store_schema_check(db, err)) != BATON_OK) {
        db_close(db);
    }
    return rc;
}

/* Does a live process hold the lock? */
static bool is_locked(const char *dir)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/store.lock", dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    bool locked = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(fd);
    return locked;
}

static baton_code collect(struct db *db, int number, void (*row_of)(const struct stmt *, void *),
                          void *arg, struct baton_error *err)
{
    bool row = true;
    baton_code rc;
    struct stmt stmt = db_stmt(db, number);
    while ((rc = stmt_step(&stmt, &row, err)) == BATON_OK && row) {
        row_of(&stmt, arg);
    }
    return rc;
}

static void add_finding(const struct stmt *row, void *arg)
{
    struct buf *findings = arg;
    const char *text = stmt_get_text(row, 0);
    if (strcmp(text, "ok") != 0) { /* what integrity_check says of a sound file */
        buf_add_text(findings, text);
        buf_add_char(findings, '\n');
    }
}

static void add_count(const struct stmt *row, void *arg)
{
    struct store_summary *summary = arg;
    const char *word = stmt_get_text(row, 0);
    enum turn_state state;
    if (turn_state_parse(word, strlen(word), &state)) {
        summary->turns[state] = stmt_get_int(row, 1);
    }
}

static void add_owner(const struct stmt *row, void *arg)
{
    struct store_summary *summary = arg;
    snprintf(summary->owner.cluster, sizeof(summary->owner.cluster), "%s", stmt_get_text(row, 0));
    snprintf(summary->owner.topic, sizeof(summary->owner.topic), "%s", stmt_get_text(row, 1));
    snprintf(summary->owner.worker, sizeof(summary->owner.worker), "%s", stmt_get_text(row, 2));
    snprintf(summary->owner.boot, sizeof(summary->owner.boot), "%s", stmt_get_text(row, 3));
    summary->pid = stmt_get_int(row, 4);
}

baton_code store_check(const char *dir, struct store_summary *ret_summary, struct buf *findings,
                       struct baton_error *err)
{
    char path[4096];
    struct db db;
    struct stat st;
    baton_code rc;

    memset(ret_summary, 0, sizeof(*ret_summary));
    if ((rc = open_readonly(dir, path, sizeof(path), &db, err)) != BATON_OK) {
        return rc;
    }
    if (stat(path, &st) == 0) {
        ret_summary->size_bytes = st.st_size;
        if ((st.st_mode & 077) != 0) {
            buf_printf(findings, "%s can be read by others; run: chmod 600 %s\n", path, path);
        }
    }
    ret_summary->running = is_locked(dir);
    if ((rc = collect(&db, STMT_OWNER_GET, add_owner, ret_summary, err)) == BATON_OK &&
        (rc = collect(&db, STMT_TURNS_COUNT, add_count, ret_summary, err)) == BATON_OK &&
        (rc = collect(&db, STMT_INTEGRITY, add_finding, findings, err)) == BATON_OK) {
        rc = collect(&db, STMT_CHECK_ALL, add_finding, findings, err);
    }
    db_close(&db);
    return rc;
}

baton_code store_backup(const char *dir, const char *to_path, struct baton_error *err)
{
    char path[4096];
    struct db db;
    sqlite3 *to = NULL;
    baton_code rc;

    if ((rc = open_readonly(dir, path, sizeof(path), &db, err)) != BATON_OK) {
        return rc;
    }
    int fd = open(to_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        rc = baton_fail(err, errno == EEXIST ? BATON_E_invalid_request : BATON_E_store_failed,
                        "%s: %s", to_path, strerror(errno));
        db_close(&db);
        return rc;
    }
    close(fd);
    int result = sqlite3_open_v2(to_path, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (result == SQLITE_OK) {
        sqlite3_backup *copy = sqlite3_backup_init(to, "main", db.handle, "main");
        if (copy != NULL) {
            sqlite3_backup_step(copy, -1); /* the error, if any, comes from finish */
            result = sqlite3_backup_finish(copy);
        } else {
            result = sqlite3_errcode(to);
        }
    }
    if (result != SQLITE_OK) {
        rc = baton_fail(err, db_code(result), "%s: the copy failed: %s", to_path,
                        sqlite3_errmsg(to));
        unlink(to_path);
    }
    sqlite3_close(to);
    db_close(&db);
    return rc;
}
