/*
 * The store's life: lock, open, take for this boot, transactions, close.
 * Called by the worker's start and by its rounds; what is in it is in image.c and facts.c.
 */
#include "common/store/internal.h"

#include "common/base/check.h"
#include "common/base/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static baton_code make_folder(const char *dir, struct baton_error *err)
{
    char path[4096];
    struct stat st;

    if (snprintf(path, sizeof(path), "%s", dir) >= (int)sizeof(path)) {
        return baton_fail(err, BATON_E_store_failed, "%s: the path is too long", dir);
    }
    for (char *at = path + 1; *at != '\0'; at++) {
        if (*at == '/') {
            *at = '\0';
            if (mkdir(path, 0700) != 0 && errno != EEXIST) {
                return baton_fail(err, BATON_E_store_failed, "%s: cannot be created: %m", path);
            }
            *at = '/';
        }
    }
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        return baton_fail(err, BATON_E_store_failed, "%s: cannot be created: %m", path);
    }
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        return baton_fail(err, BATON_E_store_failed, "%s: is not a folder", path);
    }
    if (st.st_uid != geteuid() || (st.st_mode & 077) != 0) {
        const bool shared =
            (st.st_mode & (S_ISVTX | S_IWOTH)) != 0; /* not to be closed to others */
        return baton_fail(err, BATON_E_store_failed,
                          "%s: must belong to this user and be closed to others; %s%s", path,
                          shared ? "set state_dir to a folder of its own" : "run: chmod 700 ",
                          shared ? "" : path);
    }
    return BATON_OK;
}

/* Locks <dir>/store.lock for the life of the process; a second process hears the pid of the first.
 */
static baton_code take_lock(const char *dir, int *ret_fd, struct baton_error *err)
{
    char path[4096];
    char text[32];

    snprintf(path, sizeof(path), "%s/store.lock", dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return baton_fail(err, BATON_E_store_failed, "%s: cannot be opened: %m", path);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int cause = errno;
        ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
        close(fd);
        if (cause != EWOULDBLOCK) {
            return baton_fail(err, BATON_E_store_failed, "%s: cannot be locked: %s", path,
                              strerror(cause));
        }
        text[n > 0 ? n : 0] = '\0';
        text[strcspn(text, "\n")] = '\0';
        return baton_fail(err, BATON_E_store_busy,
                          "%s: process %s has this worker's store; stop it, or choose another --id",
                          dir, text[0] != '\0' ? text : "(unknown)");
    }
    int n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)n, 0) != n) {
        baton_code rc = baton_fail(err, errno == ENOSPC ? BATON_E_disk_full : BATON_E_store_failed,
                                   "%s: cannot be written: %m", path);
        close(fd);
        return rc;
    }
    *ret_fd = fd;
    return BATON_OK;
}

/* Writes this boot into the owner row; drops the image if it follows another log. */
static baton_code take_owner(struct store *store, const struct store_owner *owner,
                             struct baton_error *err)
{
    bool row = false;
    bool same = false;
    baton_code rc;
    static const int drops[] = {STMT_IMAGE_DROP_ALL_TURNS, STMT_IMAGE_DROP_ALL_NOTES,
                                STMT_IMAGE_DROP_ALL_CHECKPOINTS};

    struct stmt get = db_stmt(&store->db, STMT_OWNER_GET);
    if ((rc = stmt_step(&get, &row, err)) != BATON_OK) {
        return rc;
    }
    if (row) {
        if (strcmp(stmt_get_text(&get, 2), owner->worker) != 0) {
            rc = baton_fail(err, BATON_E_store_failed,
                            "%s: is the store of worker %.100s, not of %s; name another state_dir",
                            store->path, stmt_get_text(&get, 2), owner->worker);
            stmt_reset(&get);
            return rc;
        }
        snprintf(store->previous.s, sizeof(store->previous.s), "%s", stmt_get_text(&get, 3));
        same = strcmp(stmt_get_text(&get, 0), owner->cluster) == 0 &&
               strcmp(stmt_get_text(&get, 1), owner->topic) == 0;
        stmt_reset(&get);
    }
    for (size_t i = 0; row && !same && i < COUNT_OF(drops); i++) {
        struct stmt drop = db_stmt(&store->db, drops[i]);
        if ((rc = stmt_run(&drop, NULL, err)) != BATON_OK) {
            return rc;
        }
    }
    /* Monotonic times of an older boot, perhaps of an older boot of the host, mean nothing here. */
    struct stmt clear = db_stmt(&store->db, STMT_DUES_CLEAR_ALL);
    if ((rc = stmt_run(&clear, NULL, err)) != BATON_OK) {
        return rc;
    }
    struct stmt set = db_stmt(&store->db, STMT_OWNER_SET);
    stmt_text(&set, ":cluster", owner->cluster);
    stmt_text(&set, ":topic", owner->topic);
    stmt_text(&set, ":worker", owner->worker);
    stmt_text(&set, ":boot", owner->boot.s);
    stmt_int(&set, ":pid", getpid());
    stmt_int(&set, ":at", wall_now().v);
    return stmt_run(&set, NULL, err);
}

baton_code store_open(const char *dir, const struct store_owner *owner, struct store **ret_store,
                      struct baton_error *err)
{
    struct store *store = calloc(1, sizeof(*store));
    baton_code rc;

    if (store == NULL) {
        return baton_fail(err, BATON_E_no_memory, "%s: out of memory", dir);
    }
    store->lock_fd = -1;
    store->boot = owner->boot;
    snprintf(store->path, sizeof(store->path), "%s/store.db", dir);
    if ((rc = make_folder(dir, err)) != BATON_OK ||
        (rc = take_lock(dir, &store->lock_fd, err)) != BATON_OK ||
        (rc = db_open(&store->db, store->path, DB_create, store_sql, store_sql_names,
                      STORE_SQL_COUNT, STORE_DAMAGED, err)) != BATON_OK ||
        (rc = store_migrate(&store->db, err)) != BATON_OK ||
        (rc = store_schema_check(&store->db, err)) != BATON_OK) {
        goto out;
    }
    struct stmt begin = db_stmt(&store->db, STMT_BEGIN);
    if ((rc = stmt_run(&begin, NULL, err)) != BATON_OK) {
        goto out;
    }
    store->db.txn = __func__;
    if ((rc = take_owner(store, owner, err)) != BATON_OK) {
        store_rollback(store);
        goto out;
    }
    if ((rc = store_commit(store, err)) != BATON_OK) {
        goto out;
    }
    *ret_store = store;
    store = NULL;
out:
    store_close(store);
    return rc;
}

void store_close(struct store *store)
{
    if (store == NULL) {
        return;
    }
    if (store->db.txn != NULL) {
        store_rollback(store);
    }
    db_close(&store->db);
    if (store->lock_fd >= 0) {
        close(store->lock_fd); /* releases the lock */
    }
    free(store);
}

void store_rest(struct store *store)
{
    db_rest(&store->db);
}

const char *store_previous_boot(const struct store *store)
{
    return store->previous.s;
}

baton_code store_begin(struct store *store, const char *where, struct baton_error *err)
{
    bool row = false;
    baton_code rc;

    BATON_PRE(store->db.txn == NULL);
    store_look_end(store);
    struct stmt begin = db_stmt(&store->db, STMT_BEGIN);
    if ((rc = stmt_run(&begin, NULL, err)) != BATON_OK) {
        return rc;
    }
    store->db.txn = where;
    struct stmt is = db_stmt(&store->db, STMT_OWNER_IS);
    stmt_text(&is, ":boot", store->boot.s);
    rc = stmt_step(&is, &row, err);
    stmt_reset(&is);
    if (rc == BATON_OK && !row) {
        rc = baton_fail(err, BATON_E_twin, "%s: another process has taken this store; stopping",
                        store->path);
    }
    if (rc != BATON_OK) {
        store_rollback(store);
    }
    return rc;
}

baton_code store_commit(struct store *store, struct baton_error *err)
{
    BATON_PRE(store->db.txn != NULL);
    FAULT_POINT(store_before_commit);
    struct stmt commit = db_stmt(&store->db, STMT_COMMIT);
    baton_code rc = FAULT_FAILS(store_commit)
                        ? baton_fail(err, BATON_E_disk_full, "%s: injected fault", store->path)
                        : stmt_run(&commit, NULL, err);
    if (rc != BATON_OK) {
        store_rollback(store);
        return rc;
    }
    store->db.txn = NULL;
    FAULT_POINT(store_after_commit);
    return BATON_OK;
}

void store_rollback(struct store *store)
{
    if (store->db.txn != NULL) {
        /* SQLite may have rolled back by itself; then there is nothing left to do. */
        if (sqlite3_get_autocommit(store->db.handle) == 0) {
            struct stmt rollback = db_stmt(&store->db, STMT_ROLLBACK);
            (void)stmt_run(&rollback, NULL, NULL);
        }
        store->db.txn = NULL;
    }
}

void store_look(struct store *store)
{
    if (store->db.txn == NULL && !store->looking) {
        struct stmt begin = db_stmt(&store->db, STMT_BEGIN_LOOK);
        store->looking = stmt_run(&begin, NULL, NULL) == BATON_OK;
    }
}

void store_look_end(struct store *store)
{
    if (store->looking) {
        BATON_INVARIANT(sqlite3_txn_state(store->db.handle, NULL) != SQLITE_TXN_WRITE);
        /* It has read only: nothing can be lost, whatever the end says. */
        struct stmt commit = db_stmt(&store->db, STMT_COMMIT);
        (void)stmt_run(&commit, NULL, NULL);
        store->looking = false;
    }
}
