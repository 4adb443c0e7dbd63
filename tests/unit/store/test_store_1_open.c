/*
 * Opening a store: whose it is, who is refused, and what becomes of files that are not ours
 * (protocol rule 2; RULES H-49, H-50, X20).
 */
#include "tests/unit/store/store_fixture.h"

#include <fcntl.h>

static void test_file_and_folder_are_closed_to_others(void **state)
{
    struct shelf *shelf = *state;
    struct stat st;
    char dir[96];
    struct store *store = NULL;
    const struct store_owner owner = shelf_owner(shelf);

    assert_int_equal(stat(shelf->path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    snprintf(dir, sizeof(dir), "%s/lint/host-1", shelf->dir);
    OK(store_open(dir, &owner, &store, err));
    assert_int_equal(stat(dir, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    store_close(store);
    assert_int_equal(chmod(dir, 0711), 0);
    REFUSED(BATON_E_store_failed, "chmod 700", store_open(dir, &owner, &store, err));
    assert_int_equal(chmod(dir, 0750), 0);
    REFUSED(BATON_E_store_failed, "chmod 700", store_open(dir, &owner, &store, err));
}

/* A second process hears the pid of the first, and may have the store once that is gone. */
static void test_rule_02_second_process_is_refused_with_the_pid(void **state)
{
    struct shelf *shelf = *state;
    char pid[32];
    snprintf(pid, sizeof(pid), "process %ld ", (long)getpid());
    pid_t child = fork();
    if (child == 0) {
        struct baton_error err = {0};
        struct store *store = NULL;
        const struct store_owner owner = shelf_owner(shelf);
        baton_code rc = store_open(shelf->dir, &owner, &store, &err);
        _exit(rc == BATON_E_store_busy && strstr(err.text, pid) != NULL ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    shelf_close(shelf);
    shelf_open(shelf);
}

/* The kernel drops the lock of a process that was killed. */
static void test_rule_02_a_killed_process_leaves_no_lock(void **state)
{
    struct shelf *shelf = *state;
    pid_t child = fork();
    if (child == 0) {
        struct store *store = NULL;
        const struct store_owner owner = shelf_owner(shelf);
        if (store_open(shelf->dir, &owner, &store, NULL) == BATON_OK) {
            raise(SIGKILL);
        }
        _exit(1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    shelf_open(shelf);
}

/* Every transaction checks whose store it is; a twin hears of it and changes nothing. */
static void test_rule_02_every_transaction_checks_the_boot(void **state)
{
    struct shelf *shelf = *state;
    fold_new(shelf->store, 0, 1, TURN_A, TURN_running, 0);
    assert_non_null(shelf_sql(shelf->path, "UPDATE owner SET boot_id = 'another'"));
    REFUSED(BATON_E_twin, "another process", store_begin(shelf->store, __func__, err));
    REFUSED(BATON_E_twin, "another process", store_begin(shelf->store, __func__, err));
    assert_string_equal(shelf_sql(shelf->path, "SELECT state FROM turn"), "running");
}

static void test_the_boot_before_is_told(void **state)
{
    struct shelf *shelf = *state;
    shelf_open(shelf);
    assert_string_equal(store_previous_boot(shelf->store), "");
    struct boot_id before = shelf->boot;
    shelf_close(shelf);
    shelf_open(shelf);
    assert_string_equal(store_previous_boot(shelf->store), before.s);
}

static void test_a_newer_file_is_refused_and_left_alone(void **state)
{
    struct shelf *shelf = *state;
    const struct store_owner owner = shelf_owner(shelf);
    shelf_close(shelf);
    assert_non_null(shelf_sql(shelf->path, "PRAGMA user_version = 99"));
    REFUSED(BATON_E_store_failed, "newer Baton",
            store_open(shelf->dir, &owner, &shelf->store, err));
    assert_string_equal(shelf_sql(shelf->path, "PRAGMA user_version"), "99");
}

static void test_a_foreign_database_is_refused_and_left_alone(void **state)
{
    struct shelf *shelf = *state;
    const struct store_owner owner = shelf_owner(shelf);
    assert_non_null(
        shelf_sql(shelf->path, "PRAGMA application_id = 252006675; CREATE TABLE photo (id)"));
    REFUSED(BATON_E_store_failed, "another program",
            store_open(shelf->dir, &owner, &shelf->store, err));
    assert_string_equal(shelf_sql(shelf->path, "SELECT group_concat(name) FROM sqlite_schema"),
                        "photo");
    assert_int_equal(unlink(shelf->path), 0);
    assert_non_null(
        shelf_sql(shelf->path, "CREATE TABLE photo (id)")); /* names no program at all */
    REFUSED(BATON_E_store_failed, "another program",
            store_open(shelf->dir, &owner, &shelf->store, err));
}

static void test_a_file_that_is_no_database_is_refused(void **state)
{
    struct shelf *shelf = *state;
    const struct store_owner owner = shelf_owner(shelf);
    int fd = open(shelf->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    for (int i = 0; i < 300; i++) {
        assert_int_equal(write(fd, "not a database at all\n", 22), 22);
    }
    close(fd);
    REFUSED(BATON_E_store_failed, "made from the log again",
            store_open(shelf->dir, &owner, &shelf->store, err));
}

/* X20: what somebody planted would run with our rights. */
static void test_x20_planted_objects_are_refused(void **state)
{
    static const char *const planted[] = {
        "CREATE TRIGGER promote AFTER INSERT ON attempt BEGIN DELETE FROM note; END",
        "CREATE VIEW turns AS SELECT * FROM turn",
        "CREATE TABLE more (a)",
        "DROP TRIGGER turn_identity",
        "DROP INDEX attempt_live",
        "ALTER TABLE turn ADD COLUMN role2 TEXT",
    };
    struct shelf *shelf = *state;
    const struct store_owner owner = shelf_owner(shelf);
    for (size_t i = 0; i < sizeof(planted) / sizeof(planted[0]); i++) {
        shelf_open(shelf);
        shelf_close(shelf);
        if (shelf_sql(shelf->path, planted[i]) == NULL) {
            fail_msg("%s", planted[i]);
        }
        REFUSED(BATON_E_store_failed, "planted",
                store_open(shelf->dir, &owner, &shelf->store, err));
        assert_int_equal(unlink(shelf->path), 0);
    }
}

static void test_a_link_in_place_of_the_file_is_refused(void **state)
{
    struct shelf *shelf = *state;
    char target[96];
    const struct store_owner owner = shelf_owner(shelf);
    snprintf(target, sizeof(target), "%s/elsewhere", shelf->dir);
    assert_int_equal(symlink(target, shelf->path), 0);
    REFUSED(BATON_E_store_failed, "store.db", store_open(shelf->dir, &owner, &shelf->store, err));
    assert_int_not_equal(access(target, F_OK), 0);
}

static void test_another_workers_store_is_refused(void **state)
{
    struct shelf *shelf = *state;
    struct store_owner owner = shelf_owner(shelf);
    shelf_close(shelf);
    owner.worker = "lint/host-2";
    REFUSED(BATON_E_store_failed, "lint/host-1",
            store_open(shelf->dir, &owner, &shelf->store, err));
}

/* Rule 16: an image of another log is dropped; what ended here is a fact whatever the log. */
static void test_rule_16_image_of_another_cluster_is_dropped(void **state)
{
    struct shelf *shelf = *state;
    struct recorded_end end = {.turn = turn_id_of(TURN_A), .attempt = 1, .boot = shelf->boot};
    struct store_owner owner;
    int64_t next = 0;
    struct wall_ms at;
    bool found = false;

    fold_new(shelf->store, 2, 5, TURN_A, TURN_running, 0);
    OK(store_begin(shelf->store, __func__, err));
    OK(store_note_fold(shelf->store, 2, "~pause", "{}", 2, err));
    OK(store_end_note(shelf->store, &end, err));
    OK(store_commit(shelf->store, err));
    shelf_close(shelf);

    owner = shelf_owner(shelf);
    owner.cluster = "cluster-2";
    OK(store_open(shelf->dir, &owner, &shelf->store, err));
    assert_int_equal(state_in(shelf->store, TURN_A), TURN_STATE_COUNT);
    OK(store_checkpoint_get(shelf->store, 2, &next, &at, err));
    assert_int_equal(next, -1);
    assert_string_equal(shelf_sql(shelf->path, "SELECT count(*) FROM note"), "0");
    assert_string_equal(shelf_sql(shelf->path, "SELECT count(*) FROM attempt"), "0");
    OK(store_end_get(shelf->store, TURN_A, 1, shelf->boot.s, &found, &end, err));
    assert_true(found);
}

/* H-50: what migrations make of an empty file is what the files say; H-49: doing it again does
 * nothing. */
static void test_h49_h50_fresh_schema_is_the_migrated_one(void **state)
{
    struct shelf *shelf = *state;
    struct db db;
    OK(db_open(&db, shelf->path, DB_create, store_sql, store_sql_names, STORE_SQL_COUNT, "", err));
    OK(store_migrate(&db, err));
    OK(store_schema_check(&db, err));
    assert_string_equal(shelf_sql(shelf->path, "SELECT count(*) FROM migration"), "1");
    char at[32];
    snprintf(at, sizeof(at), "%s", shelf_sql(shelf->path, "SELECT at FROM migration"));
    OK(store_migrate(&db, err));
    assert_string_equal(shelf_sql(shelf->path, "SELECT count(*) FROM migration"), "1");
    assert_string_equal(shelf_sql(shelf->path, "SELECT at FROM migration"), at);
    OK(store_schema_check(&db, err));
    db_close(&db);
}

static void test_no_statement_may_attach_a_file(void **state)
{
    struct shelf *shelf = *state;
    assert_int_not_equal(
        sqlite3_exec(shelf->store->db.handle, "ATTACH ':memory:' AS other", NULL, NULL, NULL),
        SQLITE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        EMPTY_TEST(test_h49_h50_fresh_schema_is_the_migrated_one),
        STORE_TEST(test_file_and_folder_are_closed_to_others),
        STORE_TEST(test_rule_02_second_process_is_refused_with_the_pid),
        EMPTY_TEST(test_rule_02_a_killed_process_leaves_no_lock),
        STORE_TEST(test_rule_02_every_transaction_checks_the_boot),
        EMPTY_TEST(test_the_boot_before_is_told),
        STORE_TEST(test_another_workers_store_is_refused),
        STORE_TEST(test_a_newer_file_is_refused_and_left_alone),
        EMPTY_TEST(test_a_foreign_database_is_refused_and_left_alone),
        EMPTY_TEST(test_a_file_that_is_no_database_is_refused),
        EMPTY_TEST(test_a_link_in_place_of_the_file_is_refused),
        EMPTY_TEST(test_x20_planted_objects_are_refused),
        STORE_TEST(test_rule_16_image_of_another_cluster_is_dropped),
        STORE_TEST(test_no_statement_may_attach_a_file),
    };
    return cmocka_run_group_tests_name("store: opening", tests, NULL, NULL);
}
