/*
 * Schema versions: forward migrations, one transaction each, and the comparison of the file's
 * schema with the expected text (planted triggers and views are refused). Called by store.c and
 * check.c.
 */
#include "common/store/internal.h"

#include "common/base/buf.h"
#include "common/base/check.h"
#include "common/store/schema_0001.h" /* made from sql/schema/0001_image.sql */

#include <stdio.h>
#include <string.h>

/* Number n of this list brings a file from version n to n + 1. Append-only. */
static const char *const *const migrations[STORE_VERSION] = {store_schema_0001_sql};

static baton_code read_versions(struct db *db, int64_t *ret_application, int64_t *ret_version,
                                struct baton_error *err)
{
    baton_code rc = db_pragma_int(db, "PRAGMA application_id", ret_application, err);
    return rc == BATON_OK ? db_pragma_int(db, "PRAGMA user_version", ret_version, err) : rc;
}

baton_code store_version_check(struct db *db, int64_t *ret_version, struct baton_error *err)
{
    int64_t application = 0;
    int64_t version = 0;
    int64_t pages = 0;
    baton_code rc = read_versions(db, &application, &version, err);
    if (rc != BATON_OK || (rc = db_pragma_int(db, "PRAGMA page_count", &pages, err)) != BATON_OK) {
        return rc;
    }
    if (application != STORE_APPLICATION_ID && !(application == 0 && version == 0 && pages <= 1)) {
        return baton_fail(err, BATON_E_store_failed,
                          "%s: is a database of another program; name another state_dir", db->path);
    }
    if (version > STORE_VERSION) {
        return baton_fail(
            err, BATON_E_store_failed,
            "%s: was made by a newer Baton (version %lld, this one knows %d); use that "
            "program, or move the file away: its turns are read from the log again",
            db->path, (long long)version, STORE_VERSION);
    }
    *ret_version = version;
    return BATON_OK;
}

static baton_code migrate_one(struct db *db, int64_t version, struct baton_error *err)
{
    char pragma[96];
    baton_code rc = db_script(db, "begin of a migration", store_sql[STMT_BEGIN], err);
    if (rc != BATON_OK) {
        return rc;
    }
    snprintf(pragma, sizeof(pragma), "PRAGMA application_id = %d; PRAGMA user_version = %lld",
             STORE_APPLICATION_ID, (long long)version + 1);
    if ((rc = db_script(db, "migration", *migrations[version], err)) == BATON_OK &&
        (rc = db_script(db, "migration", pragma, err)) == BATON_OK) {
        struct stmt add = db_stmt(db, STMT_MIGRATION_ADD);
        stmt_int(&add, ":version", version + 1);
        stmt_text(&add, ":program", BATON_VERSION);
        stmt_int(&add, ":at", wall_now().v);
        rc = stmt_run(&add, NULL, err);
    }
    if (rc == BATON_OK) {
        return db_script(db, "commit of a migration", store_sql[STMT_COMMIT], err);
    }
    (void)db_script(db, "rollback of a migration", store_sql[STMT_ROLLBACK], NULL);
    return rc;
}

baton_code store_migrate(struct db *db, struct baton_error *err)
{
    int64_t version = 0;
    baton_code rc = store_version_check(db, &version, err);
    if (rc == BATON_OK) {
        rc = db_use_wal(db, err);
    }
    while (rc == BATON_OK && version < STORE_VERSION) {
        rc = migrate_one(db, version++, err);
    }
    return rc;
}

/* `type name sql` of every object, in order. */
static baton_code schema_text(sqlite3 *handle, struct buf *out)
{
    sqlite3_stmt *s = NULL;
    int result = sqlite3_prepare_v2(handle, store_sql[STMT_SCHEMA_LIST], -1, &s, NULL);
    while (result == SQLITE_OK && (result = sqlite3_step(s)) == SQLITE_ROW) {
        for (int i = 0; i < 3; i++) {
            const unsigned char *text = sqlite3_column_text(s, i);
            buf_add_text(out, text != NULL ? (const char *)text : "");
            buf_add_char(out, i < 2 ? ' ' : '\n');
        }
        result = SQLITE_OK;
    }
    sqlite3_finalize(s);
    return result == SQLITE_DONE && buf_ok(out) ? BATON_OK : BATON_E_store_failed;
}

baton_code store_schema_check(struct db *db, struct baton_error *err)
{
    struct buf expected = BUF_INIT;
    struct buf found = BUF_INIT;
    sqlite3 *fresh = NULL;
    baton_code rc = BATON_OK;

    int result = sqlite3_open_v2(
        ":memory:", &fresh, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    for (int i = 0; result == SQLITE_OK && i < STORE_VERSION; i++) {
        result = sqlite3_exec(fresh, *migrations[i], NULL, NULL, NULL);
    }
    if (result != SQLITE_OK || schema_text(fresh, &expected) != BATON_OK) {
        rc = baton_fail(err, BATON_E_store_failed, "%s: the expected schema cannot be made: %s",
                        db->path, sqlite3_errmsg(fresh));
    } else if (schema_text(db->handle, &found) != BATON_OK) {
        rc = baton_fail(err, BATON_E_store_failed, "%s: its schema cannot be read: %s", db->path,
                        sqlite3_errmsg(db->handle));
    } else if (expected.len != found.len || memcmp(expected.data, found.data, found.len) != 0) {
        rc = baton_fail(
            err, BATON_E_store_failed,
            "%s: its schema is not Baton's (a changed or planted table, trigger or view); "
            "move the file away: its turns are read from the log again",
            db->path);
    }
    sqlite3_close(fresh);
    buf_done(&expected);
    buf_done(&found);
    return rc;
}
