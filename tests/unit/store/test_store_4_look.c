/* Looking at a store from outside and copying it, both while a worker has it. */
#include "tests/unit/store/store_fixture.h"

static char *findings_of(struct shelf *shelf, struct store_summary *ret_summary)
{
    struct buf findings = BUF_INIT;
    OK(store_check(shelf->dir, ret_summary, &findings, err));
    char *text = buf_take(&findings, NULL);
    return text != NULL ? text : strdup("");
}

static void test_a_sound_store_has_no_finding(void **state)
{
    struct shelf *shelf = *state;
    struct store_summary summary;
    fold_new(shelf->store, 0, 1, TURN_A, TURN_running, 0);
    fold_new(shelf->store, 0, 2, TURN_B, TURN_queued, 4);
    fold_new(shelf->store, 1, 3, TURN_C, TURN_completed, 0);
    char *text = findings_of(shelf, &summary);
    assert_string_equal(text, "");
    free(text);
    assert_true(summary.running);
    assert_int_equal(summary.pid, getpid());
    assert_string_equal(summary.owner.worker, "lint/host-1");
    assert_string_equal(summary.owner.boot, shelf->boot.s);
    assert_int_equal(summary.turns[TURN_running], 1);
    assert_int_equal(summary.turns[TURN_queued], 1);
    assert_int_equal(summary.turns[TURN_completed], 1);
    assert_true(summary.size_bytes > 0);
    shelf_close(shelf);
    text = findings_of(shelf, &summary);
    free(text);
    assert_false(summary.running);
    assert_int_equal(summary.pid, getpid()); /* of the last one */
}

/* One way to be inconsistent for each line of the check; each must be found, and alone. */
static void test_each_inconsistency_is_found(void **state)
{
    static const struct {
        const char *damage;
        const char *finding;
    } rows[] = {
        {"UPDATE attempt SET state = 'failed' WHERE turn_id = '" TURN_A "'", "has 0 live attempts"},
        {"INSERT INTO attempt (turn_id, no, role, service, worker, profile, state) "
         "VALUES ('" TURN_C "', 2, 'reviewer', 's', 'w', 'p', 'queued'); "
         "UPDATE turn SET attempt = 2 WHERE turn_id = '" TURN_C "'",
         "is completed and has 1 live attempts"},
        {"UPDATE turn SET lease_boot = '' WHERE turn_id = '" TURN_A "'", "nobody holds its lease"},
        {"UPDATE turn SET ended_at = NULL WHERE turn_id = '" TURN_C "'",
         "is completed and has no end"},
        {"UPDATE turn SET ended_at = 5 WHERE turn_id = '" TURN_A "'", "is running and has an end"},
        {"UPDATE turn SET attempt = 9 WHERE turn_id = '" TURN_A "'",
         "is 9 and the highest number is 1"},
        {"DELETE FROM checkpoint WHERE partition = 1", "of partition 1, which has no checkpoint"},
    };
    struct shelf *shelf = *state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct store_summary summary;
        shelf_open(shelf);
        fold_new(shelf->store, 0, 1, TURN_A, TURN_running, 0);
        fold_new(shelf->store, 1, 2, TURN_C, TURN_completed, 0);
        shelf_close(shelf);
        assert_non_null(shelf_sql(shelf->path, rows[i].damage));
        char *text = findings_of(shelf, &summary);
        if (strstr(text, rows[i].finding) == NULL || strchr(text, '\n') != strrchr(text, '\n')) {
            fail_msg("%s: %s", rows[i].damage, text);
        }
        free(text);
        assert_int_equal(unlink(shelf->path), 0);
    }
}

/* A role that was changed under the triggers, which were put back afterwards. */
static void test_a_changed_role_of_an_attempt_is_found(void **state)
{
    struct shelf *shelf = *state;
    struct store_summary summary;
    char trigger[800];
    fold_new(shelf->store, 0, 1, TURN_A, TURN_running, 0);
    shelf_close(shelf);
    snprintf(
        trigger, sizeof(trigger), "%s",
        shelf_sql(shelf->path, "SELECT sql FROM sqlite_schema WHERE name = 'attempt_identity'"));
    assert_non_null(
        shelf_sql(shelf->path, "DROP TRIGGER attempt_identity; UPDATE attempt SET role = 'owner'"));
    assert_non_null(shelf_sql(shelf->path, trigger));
    char *text = findings_of(shelf, &summary);
    assert_non_null(strstr(text, "has another role than its turn"));
    free(text);
}

static void test_x20_checking_refuses_planted_objects(void **state)
{
    struct shelf *shelf = *state;
    struct store_summary summary;
    struct buf findings = BUF_INIT;
    shelf_close(shelf);
    assert_non_null(shelf_sql(shelf->path, "CREATE VIEW v AS SELECT 1"));
    REFUSED(BATON_E_store_failed, "planted", store_check(shelf->dir, &summary, &findings, err));
    buf_done(&findings);
}

static void test_a_missing_store_is_said_so(void **state)
{
    struct shelf *shelf = *state;
    struct store_summary summary;
    struct buf findings = BUF_INIT;
    REFUSED(BATON_E_store_failed, "store.db", store_check(shelf->dir, &summary, &findings, err));
    buf_done(&findings);
}

static void test_open_permissions_are_found(void **state)
{
    struct shelf *shelf = *state;
    struct store_summary summary;
    assert_int_equal(chmod(shelf->path, 0644), 0);
    char *text = findings_of(shelf, &summary);
    assert_non_null(strstr(text, "chmod 600"));
    free(text);
}

static void test_backup_while_a_worker_writes(void **state)
{
    struct shelf *shelf = *state;
    struct stat st;
    char copy[96];
    snprintf(copy, sizeof(copy), "%s/copy.db", shelf->dir);
    fold_new(shelf->store, 0, 1, TURN_A, TURN_running, 0);
    OK(store_begin(shelf->store, __func__,
                   err)); /* a transaction is open: the copy has what was committed */
    OK(store_checkpoint_set(shelf->store, 0, 99, (struct wall_ms){WHEN}, err));
    OK(store_backup(shelf->dir, copy, err));
    OK(store_commit(shelf->store, err));
    assert_string_equal(shelf_sql(copy, "SELECT turn_id FROM turn"), TURN_A);
    assert_string_equal(shelf_sql(copy, "SELECT next_offset FROM checkpoint"), "2");
    assert_string_equal(shelf_sql(copy, "PRAGMA integrity_check"), "ok");
    assert_int_equal(stat(copy, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    REFUSED(BATON_E_invalid_request, "copy.db", store_backup(shelf->dir, copy, err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_a_sound_store_has_no_finding),
        EMPTY_TEST(test_each_inconsistency_is_found),
        STORE_TEST(test_a_changed_role_of_an_attempt_is_found),
        STORE_TEST(test_x20_checking_refuses_planted_objects),
        EMPTY_TEST(test_a_missing_store_is_said_so),
        STORE_TEST(test_open_permissions_are_found),
        STORE_TEST(test_backup_while_a_worker_writes),
    };
    return cmocka_run_group_tests_name("store: looking", tests, NULL, NULL);
}
