/*
 * Is this our file, in a place where a log may lie? Called by open.c before anything is read of it.
 *
 * Place: a folder and a file of this user that nobody else may open, on a file system of this host.
 * Content: our application id, no newer version, and exactly the schema that schema.sql gives, so
 * that no trigger or view that somebody planted runs in our transactions.
 */
#include "common/base/check.h"
#include "common/log/local/internal.h"
#include "common/log/local/queries.h"
#include "common/log/local/file.h"
#include "common/log/local/schema.h"
#include "common/sqlite/place.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A folder may hold more than the log: who does what is printed here must not lock others out of it. */
static baton_code open_folder(const char *path, const struct stat *st, struct baton_error *err)
{
    const bool shared = (st->st_mode & (S_ISVTX | S_IWOTH)) != 0;
    return baton_fail(err, BATON_E_bad_config,
                      "%s: mode %04o lets others in: %s%s%sset local.path to a file in a folder "
                      "of its own",
                      path, st->st_mode & 07777, shared ? "" : "`chmod 700 ", shared ? "" : path,
                      shared ? "" : "` if nothing else is in it, else ");
}

static baton_code check_private(const char *path, const struct stat *st, const char *mode_hint,
                                struct baton_error *err)
{
    if (st->st_uid != geteuid()) {
        return baton_fail(err, BATON_E_bad_config,
                          "%s: belongs to uid %u and this program runs as uid %u: run it as the "
                          "user whose log it is",
                          path, st->st_uid, geteuid());
    }
    if ((st->st_mode & 077) != 0) {
        return S_ISDIR(st->st_mode) ? open_folder(path, st, err)
                                    : baton_fail(err, BATON_E_bad_config,
                                                 "%s: mode %04o lets others in: `chmod %s %s`",
                                                 path, st->st_mode & 07777, mode_hint, path);
    }
    return BATON_OK;
}

static baton_code check_folder(const char *folder, struct baton_error *err)
{
    struct stat st;
    struct place_type type;

    if (stat(folder, &st) != 0) {
        return baton_fail(
            err, errno == ENOENT ? BATON_E_service_unavailable : BATON_E_bad_config,
            "%s: there is no log here: %m; `baton init` or `baton topics apply` makes "
            "one",
            folder);
    }
    if (!S_ISDIR(st.st_mode)) {
        return baton_fail(err, BATON_E_bad_config, "%s: is no folder", folder);
    }
    if (place_is_remote(folder, &type)) {
        return baton_fail(err, BATON_E_bad_config,
                          "%s: lies on a network file system (type %s), where locks and shared "
                          "memory do not hold: set local.path to a disk of this host, or use Kafka",
                          folder, type.s);
    }
    return check_private(folder, &st, "700", err);
}

static baton_code check_file(const char *path, bool may_miss, struct baton_error *err)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        if (errno == ENOENT && may_miss) {
            return BATON_OK;
        }
        return baton_fail(
            err, errno == ENOENT ? BATON_E_service_unavailable : BATON_E_bad_config,
            "%s: there is no log here: %m; `baton init` or `baton topics apply` makes "
            "one",
            path);
    }
    if (!S_ISREG(st.st_mode)) {
        return baton_fail(err, BATON_E_bad_config, "%s: is no regular file", path);
    }
    return check_private(path, &st, "600", err);
}

baton_code file_check_folder_of(const char *path, struct baton_error *err)
{
    char *copy = strdup(path);
    if (copy == NULL) {
        return baton_fail(err, BATON_E_no_memory, "%s: out of memory", path);
    }
    baton_code rc = check_folder(dirname(copy), err);
    free(copy);
    return rc;
}

baton_code file_check_place(const char *path, struct baton_error *err)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    baton_code rc = file_check_folder_of(path, err);
    for (size_t i = 0; rc == BATON_OK && i < COUNT_OF(suffixes); i++) {
        char *name = NULL;
        if (asprintf(&name, "%s%s", path, suffixes[i]) < 0) {
            return baton_fail(err, BATON_E_no_memory, "%s: out of memory", path);
        }
        rc = check_file(name, i > 0, err);
        free(name);
    }
    return rc;
}

baton_code file_is_empty(struct db *db, bool *ret_empty, struct baton_error *err)
{
    int64_t application = 0;
    int64_t version = 0;
    int64_t objects = 0;
    baton_code rc;
    if ((rc = db_pragma_int(db, "PRAGMA application_id", &application, err)) != BATON_OK ||
        (rc = db_pragma_int(db, "PRAGMA user_version", &version, err)) != BATON_OK ||
        (rc = db_pragma_int(db, local_sql[SCHEMA_COUNT], &objects, err)) != BATON_OK) {
        return rc;
    }
    *ret_empty = application == 0 && version == 0 && objects == 0;
    return BATON_OK;
}

baton_code file_migrate(struct db *db, int64_t version, struct baton_error *err)
{
    baton_code rc = BATON_OK;
    for (; rc == BATON_OK && version < LOCAL_SCHEMA_SQL_COUNT; version++) {
        rc = db_script(db, local_schema_sql_names[version], local_schema_sql[version], err);
    }
    return rc;
}

int file_version_now(void)
{
    return LOCAL_SCHEMA_SQL_COUNT;
}

baton_code file_version(struct db *db, int64_t *ret_version, struct baton_error *err)
{
    int64_t application = 0;
    int64_t version = 0;
    baton_code rc;
    if ((rc = db_pragma_int(db, "PRAGMA application_id", &application, err)) != BATON_OK ||
        (rc = db_pragma_int(db, "PRAGMA user_version", &version, err)) != BATON_OK) {
        return rc;
    }
    if (application != FILE_APPLICATION_ID) {
        return baton_fail(err, BATON_E_store_failed,
                          "%s: is no log of Baton (application id %08llx): point local.path at "
                          "another file",
                          db->path, (unsigned long long)application);
    }
    if (version > LOCAL_SCHEMA_SQL_COUNT) {
        return baton_fail(err, BATON_E_store_failed,
                          "%s: was written by a newer program (version %lld, this one knows %d): "
                          "install that one",
                          db->path, (long long)version, LOCAL_SCHEMA_SQL_COUNT);
    }
    *ret_version = version;
    return BATON_OK;
}

static baton_code differs(const struct db *db, const char *what, const struct stmt *stmt,
                          struct baton_error *err)
{
    return baton_fail(err, BATON_E_store_failed,
                      "%s: its schema is not ours: %s %s `%s`: somebody has changed the file; keep "
                      "it as evidence and begin a new log, or restore a copy",
                      db->path, what, stmt_get_text(stmt, 0), stmt_get_text(stmt, 1));
}

/* The order of SCHEMA_LIST; the end of a list is behind everything. */
static int schema_order(const struct stmt *a, bool a_row, const struct stmt *b, bool b_row)
{
    if (!a_row || !b_row) {
        return (int)b_row - (int)a_row;
    }
    int order = strcmp(stmt_get_text(a, 0), stmt_get_text(b, 0));
    return order != 0 ? order : strcmp(stmt_get_text(a, 1), stmt_get_text(b, 1));
}

/* Walks both sorted lists and names the first difference. */
static baton_code compare_schemas(struct db *db, struct db *expected, struct baton_error *err)
{
    struct stmt ours = db_stmt(expected, SCHEMA_LIST);
    struct stmt theirs = db_stmt(db, SCHEMA_LIST);
    bool our_row = false;
    bool their_row = false;
    baton_code rc;

    do {
        if ((rc = stmt_step(&ours, &our_row, err)) != BATON_OK ||
            (rc = stmt_step(&theirs, &their_row, err)) != BATON_OK) {
            break;
        }
        int order = schema_order(&ours, our_row, &theirs, their_row);
        if (order < 0) {
            rc = differs(db, "it lacks", &ours, err);
        } else if (order > 0) {
            rc = differs(db, "it has", &theirs, err);
        } else if (our_row && strcmp(stmt_get_text(&ours, 2), stmt_get_text(&theirs, 2)) != 0) {
            rc = differs(db, "it has another", &theirs, err);
        }
    } while (rc == BATON_OK && our_row);
    stmt_reset(&ours);
    stmt_reset(&theirs);
    return rc;
}

baton_code file_check_schema(struct db *db, struct baton_error *err)
{
    struct db expected;
    baton_code rc = db_open(&expected, ":memory:", DB_existing, local_sql, local_sql_names,
                            LOCAL_SQL_COUNT, LOCAL_DAMAGED, err);
    if (rc != BATON_OK) {
        return rc;
    }
    rc = file_migrate(&expected, 0, err);
    if (rc == BATON_OK) {
        rc = compare_schemas(db, &expected, err);
    }
    db_close(&expected);
    return rc;
}
