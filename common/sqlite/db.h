/*
 * A hardened SQLite connection and its statements: used by the store and by the local log, the only
 * parts that touch SQLite.
 *
 * One connection for each thread; nothing here is shared. Statements come from a list made of .sql
 * files (common/sql.cmake), are prepared once, bound by name, and reset in the function that stepped
 * them. Callers see codes, never SQLITE_ROW.
 */
#ifndef BATON_COMMON_SQLITE_DB_H
#define BATON_COMMON_SQLITE_DB_H

#include "baton/code.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A bind of a statement: its name (a literal) and its number. */
struct db_param {
    const char *name;
    int index;
};

struct db {
    sqlite3 *handle;
    const char *path;
    const char *const *sql; /* statement texts, by number */
    const char *const *names;
    sqlite3_stmt **stmts;
    struct db_param **params; /* of each statement, in the order in which it was bound last */
    size_t n_stmts;
    const char *damaged;
    const char *txn; /* __func__ of the open transaction, or NULL */
};

enum db_mode { DB_create, DB_existing, DB_readonly };

/*
 * Opens: 0600, synchronous FULL, foreign keys, defensive, no trusted schema, no extension, no
 * ATTACH. Nothing else about the file is checked here. damaged: what to do where SQLite says that the file is
 * (any error of this db then ends with it). The strings are borrowed for the life of db.
 */
baton_code db_open(struct db *db, const char *path, enum db_mode mode, const char *const *sql,
                   const char *const *names, size_t n_stmts, const char *damaged,
                   struct baton_error *err);
/* Turns the write-ahead log on. This writes into the file, so its owner looks first whether the
 * file is his. */
baton_code db_use_wal(struct db *db, struct baton_error *err);
void db_close(struct db *db);
/* Gives back what only makes the next statements faster (pages of the cache): for who has nothing
 * to do. */
void db_rest(struct db *db);

/* The table of SQLite's results: what kind of trouble it is. */
baton_code db_code(int sqlite_result);

/* Runs statements without results from a file's text (schema, migrations). */
baton_code db_script(struct db *db, const char *what, const char *text, struct baton_error *err);
baton_code db_pragma_int(struct db *db, const char *pragma, int64_t *ret_value,
                         struct baton_error *err);

/* A statement that is being bound and stepped; the first error sticks and is told by the step. */
struct stmt {
    struct db *db;
    sqlite3_stmt *s;
    int number;
    int rc;      /* SQLITE_OK, or the first failure */
    int n_binds; /* so far */
};

struct stmt db_stmt(struct db *db, int number);
/* name: a literal. It is looked up once; bound in the same order each time, a bind costs a
 * comparison of pointers. */
void stmt_int(struct stmt *stmt, const char *name, int64_t value);
void stmt_null(struct stmt *stmt, const char *name);
/* The text or bytes are borrowed until the statement is reset; NULL binds NULL. */
void stmt_text(struct stmt *stmt, const char *name, const char *text);
void stmt_blob(struct stmt *stmt, const char *name, const void *bytes, size_t len);

/* Steps to the next row: *ret_row false at the end (the statement is reset then, and on error). */
baton_code stmt_step(struct stmt *stmt, bool *ret_row, struct baton_error *err);
/* Runs to the end; nothing is read. *ret_changes (may be NULL): rows changed. */
baton_code stmt_run(struct stmt *stmt, int *ret_changes, struct baton_error *err);
void stmt_reset(struct stmt *stmt);

/* Columns of the present row, by position in the SELECT. Text and bytes live until the next step.
 */
int64_t stmt_get_int(const struct stmt *stmt, int column);
bool stmt_get_null(const struct stmt *stmt, int column);
const char *stmt_get_text(const struct stmt *stmt, int column); /* never NULL */
const void *stmt_get_blob(const struct stmt *stmt, int column, size_t *ret_len);

#endif
