/* A store in a folder of its own, and turn records to fold into it: for the tests of common/store.
 */
#ifndef BATON_TESTS_UNIT_STORE_FIXTURE_H
#define BATON_TESTS_UNIT_STORE_FIXTURE_H

#include "common/base/fault.h"
#include "common/store/internal.h"
#include "common/store/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TURN_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define TURN_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define TURN_C "cccccccccccccccccccccccccccccccc"
#define WHEN 1795962043120LL

struct shelf {
    char dir[64];
    char path[80]; /* of store.db */
    struct boot_id boot;
    struct store *store;
};

#define OK(call)                                                                                   \
    do {                                                                                           \
        struct baton_error ok_err = {0};                                                           \
        struct baton_error *err = &ok_err;                                                         \
        baton_code ok_rc = (call);                                                                 \
        if (ok_rc != BATON_OK) {                                                                   \
            fail_msg("line %d: %s: %s: %s", __LINE__, #call, baton_code_word(ok_rc), ok_err.text); \
        }                                                                                          \
    } while (0)

/* The call answers this code, and its error says why with this text in it. */
#define REFUSED(code, part, call)                                                                  \
    do {                                                                                           \
        struct baton_error no_err = {0};                                                           \
        struct baton_error *err = &no_err;                                                         \
        baton_code no_rc = (call);                                                                 \
        if (no_rc != (code) || strstr(no_err.text, (part)) == NULL) {                              \
            fail_msg("line %d: %s: %s: %s", __LINE__, #call, baton_code_word(no_rc), no_err.text); \
        }                                                                                          \
    } while (0)

__attribute__((unused)) static struct store_owner shelf_owner(const struct shelf *shelf)
{
    return (struct store_owner){"cluster-1", "baton.turns.lint", "lint/host-1", shelf->boot};
}

/* Opens with a boot of its own. */
__attribute__((unused)) static void shelf_open(struct shelf *shelf)
{
    shelf->boot = boot_id_new();
    const struct store_owner owner = shelf_owner(shelf);
    OK(store_open(shelf->dir, &owner, &shelf->store, err));
}

__attribute__((unused)) static void shelf_close(struct shelf *shelf)
{
    store_close(shelf->store);
    shelf->store = NULL;
}

static int shelf_empty(void **state)
{
    struct shelf *shelf = calloc(1, sizeof(*shelf));
    assert_non_null(shelf);
    snprintf(shelf->dir, sizeof(shelf->dir), "/tmp/baton-store-XXXXXX");
    assert_non_null(mkdtemp(shelf->dir));
    snprintf(shelf->path, sizeof(shelf->path), "%s/store.db", shelf->dir);
    *state = shelf;
    return 0;
}

__attribute__((unused)) static int shelf_setup(void **state)
{
    shelf_empty(state);
    shelf_open(*state);
    return 0;
}

static int shelf_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int shelf_teardown(void **state)
{
    struct shelf *shelf = *state;
    store_close(shelf->store);
    nftw(shelf->dir, shelf_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(shelf);
    return 0;
}

#define EMPTY_TEST(name) cmocka_unit_test_setup_teardown(name, shelf_empty, shelf_teardown)
#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, shelf_setup, shelf_teardown)

/* SQL from outside, past every check of ours; the answer's first column, or "" (static). NULL:
 * refused. */
__attribute__((unused)) static const char *shelf_sql(const char *path, const char *sql)
{
    static char answer[1024];
    sqlite3 *handle = NULL;
    sqlite3_stmt *stmt = NULL;
    const char *rest = sql;
    int rc = sqlite3_open(path, &handle);
    assert_int_equal(rc, SQLITE_OK);
    sqlite3_busy_timeout(handle, 5000);
    answer[0] = '\0';
    while (rc == SQLITE_OK && rest[0] != '\0') {
        if ((rc = sqlite3_prepare_v2(handle, rest, -1, &stmt, &rest)) == SQLITE_OK) {
            while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
                const unsigned char *text = sqlite3_column_text(stmt, 0);
                snprintf(answer, sizeof(answer), "%s", text != NULL ? (const char *)text : "NULL");
            }
            const int ended = sqlite3_finalize(stmt);
            rc = rc == SQLITE_DONE ? ended : rc;
            stmt = NULL;
        }
    }
    if (rc != SQLITE_OK) {
        snprintf(answer, sizeof(answer), "%s", sqlite3_errmsg(handle));
    }
    sqlite3_finalize(stmt);
    assert_int_equal(sqlite3_close(handle), SQLITE_OK);
    return rc == SQLITE_OK ? answer : NULL;
}

/* A turn of the reviewer that runs at attempt 1 under a lease of shelf's boot. */
__attribute__((unused)) static void record_running(struct turn_record *record, const char *id,
                                                   const char *boot)
{
    turn_record_init(record);
    record->id = turn_id_of(id);
    record->origin = plain_id_of("coordinator");
    record->service = service_id_of("lint");
    record->role = ROLE_reviewer;
    record->task_id = task_id_of("t-41");
    record->task_rev = 7;
    record->run_id = plain_id_of("r-9");
    record->epoch = 1;
    record->intent = plain_id_of("review");
    record->created_at.v = WHEN;
    record->updated_at.v = WHEN;
    record->state = TURN_running;
    record->attempt = 1;
    record->since = 1;
    record->lease_worker = plain_id_of("host-1");
    snprintf(record->lease_boot.s, sizeof(record->lease_boot.s), "%s", boot);
    record->handoff = strdup("{\"bytes\":\"of the turn\"}");
    record->handoff_len = strlen(record->handoff);
    struct attempt *attempt = turn_record_add_attempt(record);
    attempt->no = 1;
    attempt->service = record->service;
    attempt->worker = record->lease_worker;
    attempt->profile = plain_id_of("default");
    attempt->state = ATTEMPT_running;
    attempt->started_at.v = WHEN;
}

/* The newest attempt fails; the next one is queued (due at once) or runs. */
__attribute__((unused)) static void record_next(struct turn_record *record, enum attempt_state next)
{
    struct attempt *attempt = turn_record_attempt(record, record->attempt);
    attempt->state = ATTEMPT_failed;
    attempt->has_class = true;
    attempt->class = FAILURE_overloaded;
    attempt->ended_at.v = WHEN + 1;
    struct attempt last = *attempt;
    record->attempt++;
    attempt = turn_record_add_attempt(record);
    attempt->no = record->attempt;
    attempt->service = last.service;
    attempt->worker = last.worker;
    attempt->profile = last.profile;
    attempt->state = next;
    record->state = next == ATTEMPT_running ? TURN_running : TURN_queued;
    if (next != ATTEMPT_running) {
        record->lease_worker.s[0] = '\0';
        record->lease_boot.s[0] = '\0';
    }
}

__attribute__((unused)) static void record_close(struct turn_record *record, enum turn_state state)
{
    struct attempt *attempt = turn_record_attempt(record, record->attempt);
    attempt->state = state == TURN_completed ? ATTEMPT_completed : ATTEMPT_cancelled;
    attempt->ended_at.v = WHEN + 2;
    record->state = state;
    record->ended_at.v = WHEN + 2;
    record->lease_worker.s[0] = '\0';
    record->lease_boot.s[0] = '\0';
}

__attribute__((unused)) static baton_code fold_in(struct store *store, int32_t partition,
                                                  int64_t offset, const struct turn_record *record,
                                                  int64_t due, struct baton_error *err)
{
    struct buf bytes = BUF_INIT;
    turn_record_encode(record, &bytes);
    assert_true(buf_ok(&bytes));
    const struct log_place place = {partition, offset, {WHEN + 2 + offset}};
    baton_code rc =
        store_turn_fold(store, &place, record, bytes.data, bytes.len, (struct mono_ms){due}, err);
    buf_done(&bytes);
    return rc;
}

/* Folds in a transaction of its own, with the checkpoint behind it. */
__attribute__((unused)) static void fold(struct store *store, int32_t partition, int64_t offset,
                                         const struct turn_record *record, int64_t due)
{
    OK(store_begin(store, __func__, err));
    OK(fold_in(store, partition, offset, record, due, err));
    OK(store_checkpoint_set(store, partition, offset + 1, (struct wall_ms){WHEN}, err));
    OK(store_commit(store, err));
}

__attribute__((unused)) static void fold_new(struct store *store, int32_t partition, int64_t offset,
                                             const char *id, enum turn_state state, int64_t due)
{
    struct turn_record record;
    record_running(&record, id, "0123456789abcdef0123456789abcdef");
    if (state == TURN_queued) {
        record_next(&record, ATTEMPT_queued);
    } else if (state == TURN_completed || state == TURN_cancelled) {
        record_close(&record, state);
    }
    fold(store, partition, offset, &record, due);
    turn_record_done(&record);
}

/* Is the turn there, and in which state? TURN_STATE_COUNT: no. */
__attribute__((unused)) static enum turn_state state_in(struct store *store, const char *id)
{
    struct turn_record record;
    bool found = false;
    OK(store_turn_get(store, id, &found, &record, NULL, NULL, err));
    if (!found) {
        return TURN_STATE_COUNT;
    }
    enum turn_state state = record.state;
    turn_record_done(&record);
    return state;
}

#endif
