/* A hardened SQLite connection and its statements. Called by common/store and common/log/local. */
#include "common/sqlite/db.h"

#include "common/base/check.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    int result;
    baton_code code;
} db_codes[] = {
    {SQLITE_BUSY, BATON_E_service_unavailable}, {SQLITE_LOCKED, BATON_E_service_unavailable},
    {SQLITE_FULL, BATON_E_disk_full},           {SQLITE_NOMEM, BATON_E_no_memory},
    {SQLITE_TOOBIG, BATON_E_record_too_large},  {SQLITE_IOERR, BATON_E_store_failed},
    {SQLITE_CORRUPT, BATON_E_store_failed},     {SQLITE_NOTADB, BATON_E_store_failed},
    {SQLITE_READONLY, BATON_E_store_failed},    {SQLITE_CANTOPEN, BATON_E_store_failed},
    {SQLITE_PERM, BATON_E_store_failed},        {SQLITE_CONSTRAINT, BATON_E_store_failed},
};

baton_code db_code(int sqlite_result)
{
    for (size_t i = 0; i < COUNT_OF(db_codes); i++) {
        if (db_codes[i].result == (sqlite_result & 0xff)) {
            return db_codes[i].code;
        }
    }
    return BATON_E_store_failed;
}

/* Sets err from the connection's last error, `<path>: <what>: <SQLite's text>`, and what to do with a file that is
 * damaged; returns its code. */
static baton_code fail(const struct db *db, int sqlite_result, const char *what,
                       struct baton_error *err)
{
    const char *text =
        db->handle != NULL ? sqlite3_errmsg(db->handle) : sqlite3_errstr(sqlite_result);
    const int kind = sqlite_result & 0xff;
    const bool damaged = kind == SQLITE_CORRUPT || kind == SQLITE_NOTADB;
    return baton_fail(err, db_code(sqlite_result), "%s: %s: %s (%d)%s%s", db->path, what, text,
                      sqlite_result, damaged ? "; " : "", damaged ? db->damaged : "");
}

static baton_code configure(struct db *db, enum db_mode mode, struct baton_error *err)
{
    /*
     * Ids are hashes, so their indexes are written everywhere: the cache holds those of some ten
     * thousand turns (it is only taken as it is needed), and the write-ahead log gathers more of
     * such pages than by default before they go to the file.
     */
    static const char settings[] = "PRAGMA synchronous = FULL;"
                                   "PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;"
                                   "PRAGMA cell_size_check = ON; PRAGMA cache_size = -8192;"
                                   "PRAGMA mmap_size = 0; PRAGMA wal_autocheckpoint = 4000;";
    static const char settings_readonly[] = "PRAGMA query_only = ON; PRAGMA trusted_schema = OFF;"
                                            "PRAGMA cache_size = -2048;";
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    sqlite3_limit(db->handle, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_extended_result_codes(db->handle, 1);
    sqlite3_busy_timeout(db->handle, 5000);
    return db_script(db, "opening", mode == DB_readonly ? settings_readonly : settings, err);
}

baton_code db_open(struct db *db, const char *path, enum db_mode mode, const char *const *sql,
                   const char *const *names, size_t n_stmts, const char *damaged,
                   struct baton_error *err)
{
    int flags = SQLITE_OPEN_NOMUTEX;
    baton_code rc;

    *db = (struct db){
        .path = path, .sql = sql, .names = names, .n_stmts = n_stmts, .damaged = damaged};
    if (mode == DB_create) {
        /* Made before SQLite sees it, so that it never exists with wider permissions. */
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0) {
            return baton_fail(err, BATON_E_store_failed, "%s: cannot be created: %m", path);
        }
        close(fd);
        flags |= SQLITE_OPEN_READWRITE;
    } else {
        flags |= mode == DB_readonly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
    }
    db->stmts = calloc(n_stmts, sizeof(*db->stmts));
    db->params = calloc(n_stmts, sizeof(*db->params));
    if (db->stmts == NULL || db->params == NULL) {
        db_close(db);
        return baton_fail(err, BATON_E_no_memory, "%s: out of memory", path);
    }
    int result = sqlite3_open_v2(path, &db->handle, flags, NULL);
    if (result != SQLITE_OK) {
        rc = fail(db, result, "cannot be opened", err);
    } else {
        rc = configure(db, mode, err);
    }
    if (rc != BATON_OK) {
        db_close(db);
    }
    return rc;
}

baton_code db_use_wal(struct db *db, struct baton_error *err)
{
    return db_script(db, "write-ahead log", "PRAGMA journal_mode = WAL", err);
}

void db_close(struct db *db)
{
    if (db->stmts != NULL) {
        for (size_t i = 0; i < db->n_stmts; i++) {
            sqlite3_finalize(db->stmts[i]);
        }
        free(db->stmts);
    }
    if (db->params != NULL) {
        for (size_t i = 0; i < db->n_stmts; i++) {
            free(db->params[i]);
        }
        free(db->params);
    }
    if (db->handle != NULL) {
        sqlite3_close(db->handle);
    }
    *db = (struct db){0};
}

void db_rest(struct db *db)
{
    (void)sqlite3_db_release_memory(db->handle);
}

baton_code db_script(struct db *db, const char *what, const char *text, struct baton_error *err)
{
    int result = sqlite3_exec(db->handle, text, NULL, NULL, NULL);
    return result == SQLITE_OK ? BATON_OK : fail(db, result, what, err);
}

baton_code db_pragma_int(struct db *db, const char *pragma, int64_t *ret_value,
                         struct baton_error *err)
{
    sqlite3_stmt *s = NULL;
    int result = sqlite3_prepare_v2(db->handle, pragma, -1, &s, NULL);
    if (result == SQLITE_OK) {
        result = sqlite3_step(s);
    }
    if (result != SQLITE_ROW) {
        sqlite3_finalize(s);
        return fail(db, result, pragma, err);
    }
    *ret_value = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return BATON_OK;
}

struct stmt db_stmt(struct db *db, int number)
{
    BATON_PRE(number >= 0 && (size_t)number < db->n_stmts);
    struct stmt stmt = {db, db->stmts[number], number, SQLITE_OK, 0};
    if (stmt.s == NULL) {
        stmt.rc = sqlite3_prepare_v3(db->handle, db->sql[number], -1, SQLITE_PREPARE_PERSISTENT,
                                     &stmt.s, NULL);
        db->stmts[number] = stmt.s;
        if (stmt.s != NULL) {
            /* Without memory for it, every bind looks its name up. */
            db->params[number] =
                calloc((size_t)sqlite3_bind_parameter_count(stmt.s) + 1, sizeof(struct db_param));
        }
    }
    return stmt;
}

static int parameter(struct stmt *stmt, const char *name)
{
    if (stmt->rc != SQLITE_OK) {
        return 0;
    }
    struct db_param *known = stmt->db->params[stmt->number];
    int at = stmt->n_binds++;
    if (known != NULL && at <= sqlite3_bind_parameter_count(stmt->s)) {
        known += at;
        if (known->name == name) {
            return known->index;
        }
    } else {
        known = NULL;
    }
    int index = sqlite3_bind_parameter_index(stmt->s, name);
    BATON_PRE(index > 0); /* a name that the statement does not have is our mistake */
    if (known != NULL) {
        *known = (struct db_param){name, index};
    }
    return index;
}

static void bound(struct stmt *stmt, int result)
{
    if (stmt->rc == SQLITE_OK) {
        stmt->rc = result;
    }
}

void stmt_int(struct stmt *stmt, const char *name, int64_t value)
{
    int index = parameter(stmt, name);
    if (index > 0) {
        bound(stmt, sqlite3_bind_int64(stmt->s, index, value));
    }
}

void stmt_null(struct stmt *stmt, const char *name)
{
    int index = parameter(stmt, name);
    if (index > 0) {
        bound(stmt, sqlite3_bind_null(stmt->s, index));
    }
}

void stmt_text(struct stmt *stmt, const char *name, const char *text)
{
    int index = parameter(stmt, name);
    if (index > 0) {
        bound(stmt, sqlite3_bind_text(stmt->s, index, text, -1, SQLITE_STATIC));
    }
}

void stmt_blob(struct stmt *stmt, const char *name, const void *bytes, size_t len)
{
    int index = parameter(stmt, name);
    if (index > 0) {
        bound(stmt, sqlite3_bind_blob64(stmt->s, index, bytes, len, SQLITE_STATIC));
    }
}

void stmt_reset(struct stmt *stmt)
{
    if (stmt->s != NULL) {
        sqlite3_reset(stmt->s);
        sqlite3_clear_bindings(stmt->s);
    }
}

baton_code stmt_step(struct stmt *stmt, bool *ret_row, struct baton_error *err)
{
    int result = stmt->rc != SQLITE_OK ? stmt->rc : sqlite3_step(stmt->s);
    if (result == SQLITE_ROW) {
        *ret_row = true;
        return BATON_OK;
    }
    if (result == SQLITE_DONE) {
        *ret_row = false;
        stmt_reset(stmt);
        return BATON_OK;
    }
    baton_code rc = fail(stmt->db, result, stmt->db->names[stmt->number], err);
    stmt_reset(stmt);
    return rc;
}

baton_code stmt_run(struct stmt *stmt, int *ret_changes, struct baton_error *err)
{
    bool row = true;
    baton_code rc = BATON_OK;
    while (rc == BATON_OK && row) {
        rc = stmt_step(stmt, &row, err);
    }
    if (rc == BATON_OK && ret_changes != NULL) {
        *ret_changes = sqlite3_changes(stmt->db->handle);
    }
    return rc;
}

int64_t stmt_get_int(const struct stmt *stmt, int column)
{
    return sqlite3_column_int64(stmt->s, column);
}

bool stmt_get_null(const struct stmt *stmt, int column)
{
    return sqlite3_column_type(stmt->s, column) == SQLITE_NULL;
}

const char *stmt_get_text(const struct stmt *stmt, int column)
{
    const unsigned char *text = sqlite3_column_text(stmt->s, column);
    return text != NULL ? (const char *)text : "";
}

const void *stmt_get_blob(const struct stmt *stmt, int column, size_t *ret_len)
{
    const void *bytes = sqlite3_column_blob(stmt->s, column);
    *ret_len = (size_t)sqlite3_column_bytes(stmt->s, column);
    return bytes != NULL ? bytes : "";
}
