/*
 * The image of the turn log: folding takes the log's word, whatever was there before, and never
 * another identity (DESIGN section 4; RULES; STYLE Q10).
 */
#include "tests/unit/store/store_fixture.h"

static const char *count_of(struct shelf *shelf, const char *table)
{
    char sql[64];
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", table);
    return shelf_sql(shelf->path, sql);
}

static void test_what_was_folded_is_read_back(void **state)
{
    struct shelf *shelf = *state;
    struct turn_record record;
    struct turn_record back;
    int32_t partition = -1;
    enum role role = ROLE_COUNT;
    bool found = false;
    bool known = true;

    record_running(&record, TURN_A, shelf->boot.s);
    fold(shelf->store, 3, 17, &record, 0);
    OK(store_turn_get(shelf->store, TURN_A, &found, &back, &partition, &role, err));
    assert_true(found);
    assert_int_equal(partition, 3);
    assert_int_equal(role, ROLE_reviewer);
    assert_int_equal(back.state, TURN_running);
    assert_string_equal(back.lease_boot.s, shelf->boot.s);
    assert_string_equal(back.handoff, record.handoff);
    turn_record_done(&back);
    OK(store_turn_known(shelf->store, TURN_A, &known, err));
    assert_true(known);
    OK(store_turn_known(shelf->store, TURN_B, &known, err));
    assert_false(known);
    OK(store_turn_get(shelf->store, TURN_B, &found, &back, NULL, NULL, err));
    assert_false(found);
    turn_record_done(&record);
}

/* Q10: what follows a commit may run twice. */
static void test_q10_folding_twice_is_harmless(void **state)
{
    struct shelf *shelf = *state;
    struct turn_record record;
    record_running(&record, TURN_A, shelf->boot.s);
    fold(shelf->store, 0, 1, &record, 0);
    fold(shelf->store, 0, 1, &record, 0);
    record_next(&record, ATTEMPT_queued);
    fold(shelf->store, 0, 2, &record, 5);
    fold(shelf->store, 0, 2, &record, 5);
    assert_string_equal(count_of(shelf, "turn"), "1");
    assert_string_equal(count_of(shelf, "attempt"), "2");
    assert_string_equal(shelf_sql(shelf->path, "SELECT due_ms FROM turn"), "5");
    turn_record_done(&record);
}

/* Compaction leaves only the newest record: any state may follow any other. */
static void test_folding_skips_states(void **state)
{
    struct shelf *shelf = *state;
    struct turn_record record;
    record_running(&record, TURN_A, shelf->boot.s);
    fold(shelf->store, 0, 1, &record, 0);
    record_next(&record, ATTEMPT_running);
    record_next(&record, ATTEMPT_running);
    record_next(&record, ATTEMPT_queued);
    record_next(&record, ATTEMPT_running);
    fold(shelf->store, 0, 9, &record, 0); /* running 1 -> running 5 */
    assert_string_equal(count_of(shelf, "attempt"), "5");
    assert_string_equal(shelf_sql(shelf->path,
                                  "SELECT group_concat(no) FROM attempt WHERE state IN "
                                  "('queued', 'running')"),
                        "5");
    record_close(&record, TURN_completed);
    fold(shelf->store, 0, 30, &record, 0);
    assert_int_equal(state_in(shelf->store, TURN_A), TURN_completed);
    turn_record_done(&record);
}

/* A record keeps the newest 64 attempts: the image of an older one must not stay live for ever. */
static void test_r12_an_attempt_that_left_the_record_is_not_live(void **state)
{
    struct shelf *shelf = *state;
    struct turn_record record;
    record_running(&record, TURN_A, shelf->boot.s);
    fold(shelf->store, 0, 1, &record, 0);
    for (int i = 0; i < TURN_ATTEMPTS_MAX + 2; i++) {
        record_next(&record, ATTEMPT_running);
    }
    assert_null(turn_record_attempt(&record, 1));
    fold(shelf->store, 0, 2, &record, 0);
    assert_string_equal(shelf_sql(shelf->path,
                                  "SELECT group_concat(no) FROM attempt WHERE state IN "
                                  "('queued', 'running')"),
                        "67");
    turn_record_done(&record);
}

/* an identity that the image holds never changes, the role least of all; nothing is changed
 * then. */
static void test_r24_another_identity_is_refused(void **state)
{
    struct shelf *shelf = *state;
    struct turn_record record;
    record_running(&record, TURN_A, shelf->boot.s);
    fold(shelf->store, 0, 1, &record, 0);
    record_next(&record, ATTEMPT_queued);

    OK(store_begin(shelf->store, __func__, err));
    record.role = ROLE_owner;
    REFUSED(BATON_E_role_mismatch, "contradicts", fold_in(shelf->store, 0, 2, &record, 0, err));
    record.role = ROLE_reviewer;
    record.service = service_id_of("other");
    REFUSED(BATON_E_role_mismatch, "contradicts", fold_in(shelf->store, 0, 2, &record, 0, err));
    record.service = service_id_of("lint");
    record.content.b[0] ^= 1;
    REFUSED(BATON_E_role_mismatch, "contradicts", fold_in(shelf->store, 0, 2, &record, 0, err));
    OK(store_commit(shelf->store, err));
    assert_string_equal(shelf_sql(shelf->path, "SELECT role || state || log_offset FROM turn"),
                        "reviewerrunning1");
    turn_record_done(&record);
}

/* R-24 from outside: the file itself refuses, whoever writes it. */
static void test_r24_plain_sqlite_cannot_change_a_role(void **state)
{
    struct shelf *shelf = *state;
    char command[256];
    fold_new(shelf->store, 0, 1, TURN_A, TURN_running, 0);
    assert_null(shelf_sql(shelf->path, "UPDATE turn SET role = 'owner'"));
    assert_null(shelf_sql(shelf->path, "UPDATE attempt SET role = 'owner'"));
    snprintf(command, sizeof(command),
             "sqlite3 %s \"UPDATE turn SET role = 'owner'\" 2>&1 | grep -q 'role included, never "
             "changes'",
             shelf->path);
    if (system("command -v sqlite3 >/dev/null") == 0) {
        assert_int_equal(system(command), 0);
    }
    assert_string_equal(shelf_sql(shelf->path, "SELECT role FROM turn"), "reviewer");
}

/* the index is what keeps it, whatever a record says. */
static void test_r12_two_live_attempts_are_refused(void **state)
{
    struct shelf *shelf = *state;
    struct turn_record record;
    fold_new(shelf->store, 0, 1, TURN_A, TURN_running, 0);
    record_running(&record, TURN_A, shelf->boot.s);
    record_next(&record, ATTEMPT_running);
    turn_record_attempt(&record, 1)->state = ATTEMPT_running;
    OK(store_begin(shelf->store, __func__, err));
    REFUSED(BATON_E_store_failed, "UNIQUE", fold_in(shelf->store, 0, 2, &record, 0, err));
    store_rollback(shelf->store);
    assert_string_equal(count_of(shelf, "attempt"), "1");
    turn_record_done(&record);
}

static void test_an_attempt_has_the_role_of_its_turn(void **state)
{
    struct shelf *shelf = *state;
    fold_new(shelf->store, 0, 1, TURN_A, TURN_completed, 0);
    assert_null(shelf_sql(
        shelf->path, "INSERT INTO attempt (turn_id, no, role, service, worker, profile, state) "
                     "VALUES ('" TURN_A "', 2, 'owner', 's', 'w', 'p', 'queued')"));
    assert_null(shelf_sql(shelf->path,
                          "PRAGMA foreign_keys = ON; INSERT INTO attempt "
                          "(turn_id, no, role, service, worker, profile, state) "
                          "VALUES ('" TURN_B "', 1, 'owner', 's', 'w', 'p', 'queued')"));
}

static void test_a_tombstone_forgets_turn_and_attempts(void **state)
{
    struct shelf *shelf = *state;
    fold_new(shelf->store, 0, 1, TURN_A, TURN_completed, 0);
    OK(store_begin(shelf->store, __func__, err));
    OK(store_turn_forget(shelf->store, TURN_A, err));
    OK(store_turn_forget(shelf->store, TURN_B, err)); /* unknown: nothing */
    OK(store_commit(shelf->store, err));
    assert_string_equal(count_of(shelf, "turn"), "0");
    assert_string_equal(count_of(shelf, "attempt"), "0");
}

static void test_checkpoint_get_set_drop(void **state)
{
    struct shelf *shelf = *state;
    int64_t next = 0;
    struct wall_ms at = {7};

    OK(store_checkpoint_get(shelf->store, 1, &next, &at, err));
    assert_int_equal(next, -1);
    fold_new(shelf->store, 1, 41, TURN_A, TURN_queued, 1);
    fold_new(shelf->store, 2, 7, TURN_B, TURN_running, 1);
    OK(store_checkpoint_get(shelf->store, 1, &next, &at, err));
    assert_int_equal(next, 42);
    assert_int_equal(at.v, WHEN);

    OK(store_begin(shelf->store, __func__, err));
    OK(store_note_fold(shelf->store, 1, "~pause", "{}", 2, err));
    OK(store_note_fold(shelf->store, 2, "~pause", "{}", 2, err));
    OK(store_image_drop(shelf->store, 1, err));
    OK(store_commit(shelf->store, err));
    OK(store_checkpoint_get(shelf->store, 1, &next, &at, err));
    assert_int_equal(next, -1);
    assert_int_equal(state_in(shelf->store, TURN_A), TURN_STATE_COUNT);
    assert_int_equal(state_in(shelf->store, TURN_B), TURN_running); /* of another partition */
    assert_string_equal(count_of(shelf, "note"), "1");
}

static void test_a_rollback_leaves_nothing(void **state)
{
    struct shelf *shelf = *state;
    struct turn_record record;
    int64_t next = 0;
    struct wall_ms at;
    record_running(&record, TURN_A, shelf->boot.s);
    OK(store_begin(shelf->store, __func__, err));
    OK(fold_in(shelf->store, 0, 1, &record, 0, err));
    OK(store_checkpoint_set(shelf->store, 0, 2, (struct wall_ms){WHEN}, err));
    store_rollback(shelf->store);
    store_rollback(shelf->store); /* none is open: nothing */
    assert_int_equal(state_in(shelf->store, TURN_A), TURN_STATE_COUNT);
    OK(store_checkpoint_get(shelf->store, 0, &next, &at, err));
    assert_int_equal(next, -1);
    turn_record_done(&record);
}

/* A full disk: all of it is undone, said so, and may be done again. */
static void test_a_full_disk_undoes_all_of_it(void **state)
{
#ifdef BATON_FAULTS
    struct shelf *shelf = *state;
    struct turn_record record;
    char text[128];
    record_running(&record, TURN_A, shelf->boot.s);
    assert_true(fault_set("store.commit:fail", text, sizeof(text)));
    OK(store_begin(shelf->store, __func__, err));
    OK(fold_in(shelf->store, 0, 1, &record, 0, err));
    REFUSED(BATON_E_disk_full, "store.db", store_commit(shelf->store, err));
    assert_int_equal(state_in(shelf->store, TURN_A), TURN_STATE_COUNT);
    assert_int_equal(baton_code_class(BATON_E_disk_full), BATON_CLASS_retry);
    fold(shelf->store, 0, 1, &record, 0);
    assert_int_equal(state_in(shelf->store, TURN_A), TURN_running);
    assert_true(fault_set("", text, sizeof(text)));
    turn_record_done(&record);
#else
    (void)state;
    skip();
#endif
}

static void test_due_turns_come_in_their_order(void **state)
{
    struct shelf *shelf = *state;
    struct store_due due[4];
    size_t count = 9;
    bool any = true;
    struct mono_ms at;

    OK(store_next_due(shelf->store, &any, &at, err));
    assert_false(any);
    fold_new(shelf->store, 0, 1, TURN_A, TURN_queued, 300);
    fold_new(shelf->store, 1, 1, TURN_B, TURN_queued, 100);
    fold_new(shelf->store, 1, 2, TURN_C, TURN_running, 0);
    OK(store_next_due(shelf->store, &any, &at, err));
    assert_true(any);
    assert_int_equal(at.v, 100);
    OK(store_turns_due(shelf->store, (struct mono_ms){99}, due, 4, &count, err));
    assert_int_equal(count, 0);
    OK(store_turns_due(shelf->store, (struct mono_ms){300}, due, 4, &count, err));
    assert_int_equal(count, 2);
    assert_string_equal(due[0].id.s, TURN_B);
    assert_int_equal(due[0].partition, 1);
    assert_string_equal(due[1].id.s, TURN_A);
    OK(store_turns_due(shelf->store, (struct mono_ms){300}, due, 1, &count, err));
    assert_int_equal(count, 1);
    OK(store_begin(shelf->store, __func__, err));
    OK(store_due_set(shelf->store, TURN_B, (struct mono_ms){500}, err));
    OK(store_commit(shelf->store, err));
    OK(store_next_due(shelf->store, &any, &at, err));
    assert_int_equal(at.v, 300);
}

/* Times of the monotonic clock belong to one boot of one host: a new owner waits by its own. */
static void test_a_new_boot_knows_no_due_times(void **state)
{
    struct shelf *shelf = *state;
    bool any = true;
    struct mono_ms at;
    fold_new(shelf->store, 0, 1, TURN_A, TURN_queued, 300);
    shelf_close(shelf);
    shelf_open(shelf);
    OK(store_next_due(shelf->store, &any, &at, err));
    assert_false(any);
    assert_int_equal(state_in(shelf->store, TURN_A), TURN_queued);
}

/* Turns of a partition that went away wait elsewhere: here they are due at no time. */
static void test_turns_of_a_moved_partition_are_not_due(void **state)
{
    struct shelf *shelf = *state;
    struct store_due due[4];
    size_t count = 9;
    fold_new(shelf->store, 0, 1, TURN_A, TURN_queued, 100);
    fold_new(shelf->store, 1, 1, TURN_B, TURN_queued, 200);
    OK(store_begin(shelf->store, __func__, err));
    OK(store_dues_clear(shelf->store, 0, err));
    OK(store_commit(shelf->store, err));
    OK(store_turns_due(shelf->store, (struct mono_ms){300}, due, 1, &count, err));
    assert_int_equal(count, 1);
    assert_string_equal(due[0].id.s, TURN_B);
}

static void test_open_turns_come_in_pages(void **state)
{
    struct shelf *shelf = *state;
    struct store_open_turn open[2];
    size_t count = 0;
    fold_new(shelf->store, 0, 1, TURN_C, TURN_running, 0);
    fold_new(shelf->store, 0, 2, TURN_A, TURN_queued, 1);
    fold_new(shelf->store, 0, 3, TURN_B, TURN_queued, 1);
    fold_new(shelf->store, 0, 4, "dddddddddddddddddddddddddddddddd", TURN_completed, 1);
    fold_new(shelf->store, 1, 5, "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee", TURN_running, 1);
    OK(store_turns_open(shelf->store, 0, "", open, 2, &count, err));
    assert_int_equal(count, 2);
    assert_string_equal(open[0].id.s, TURN_A);
    assert_int_equal(open[0].state, TURN_queued);
    OK(store_turns_open(shelf->store, 0, open[1].id.s, open, 2, &count, err));
    assert_int_equal(count, 1);
    assert_string_equal(open[0].id.s, TURN_C);
    assert_int_equal(open[0].state, TURN_running);
}

/* By the date that the log gave the end, not by the one that stands in the record. */
static void test_ended_turns_by_age(void **state)
{
    struct shelf *shelf = *state;
    struct turn_id ids[4];
    size_t count = 9;
    fold_new(shelf->store, 0, 1, TURN_A, TURN_completed, 0); /* ended at WHEN + 2, dated + 3 */
    fold_new(shelf->store, 0, 2, TURN_B, TURN_running, 0);
    fold_new(shelf->store, 1, 3, TURN_C, TURN_cancelled, 0);
    OK(store_turns_ended(shelf->store, 0, (struct wall_ms){WHEN + 2}, ids, 4, &count, err));
    assert_int_equal(count, 0);
    OK(store_turns_ended(shelf->store, 0, (struct wall_ms){WHEN + 3}, ids, 4, &count, err));
    assert_int_equal(count, 1);
    assert_string_equal(ids[0].s, TURN_A);
    /* what is open has no age */
    OK(store_turns_ended(shelf->store, 0, (struct wall_ms){WHEN + 1000000}, ids, 4, &count, err));
    assert_int_equal(count, 1);
}

static void test_notes_by_key_and_prefix(void **state)
{
    struct shelf *shelf = *state;
    struct store_note *notes = NULL;
    struct buf value = BUF_INIT;
    size_t count = 0;
    bool found = false;

    OK(store_begin(shelf->store, __func__, err));
    OK(store_note_fold(shelf->store, 0, "~cancel." TURN_A ".k2", "two", 3, err));
    OK(store_note_fold(shelf->store, 0, "~cancel." TURN_A ".k1", "one", 3, err));
    OK(store_note_fold(shelf->store, 0, "~cancel." TURN_B ".k1", "other", 5, err));
    OK(store_note_fold(shelf->store, 1, "~cancel." TURN_A ".k3", "elsewhere", 9, err));
    OK(store_note_fold(shelf->store, 0, "~pause", "p", 1, err));
    OK(store_note_fold(shelf->store, 0, "~pause", "q", 1, err));
    OK(store_commit(shelf->store, err));
    OK(store_notes(shelf->store, 0, "~cancel." TURN_A ".", &notes, &count, err));
    assert_int_equal(count, 2);
    assert_string_equal(notes[0].key, "~cancel." TURN_A ".k1");
    assert_string_equal(notes[0].value.data, "one");
    for (size_t i = 0; i < count; i++) {
        buf_done(&notes[i].value);
    }
    free(notes);
    OK(store_note_get(shelf->store, 0, "~pause", &found, &value, err));
    assert_true(found);
    assert_string_equal(value.data, "q");
    buf_done(&value);
    OK(store_begin(shelf->store, __func__, err));
    OK(store_note_fold(shelf->store, 0, "~pause", NULL, 0, err));
    OK(store_commit(shelf->store, err));
    OK(store_note_get(shelf->store, 0, "~pause", &found, &value, err));
    assert_false(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_what_was_folded_is_read_back),
        STORE_TEST(test_q10_folding_twice_is_harmless),
        STORE_TEST(test_folding_skips_states),
        STORE_TEST(test_r12_an_attempt_that_left_the_record_is_not_live),
        STORE_TEST(test_r24_another_identity_is_refused),
        STORE_TEST(test_r24_plain_sqlite_cannot_change_a_role),
        STORE_TEST(test_r12_two_live_attempts_are_refused),
        STORE_TEST(test_an_attempt_has_the_role_of_its_turn),
        STORE_TEST(test_a_tombstone_forgets_turn_and_attempts),
        STORE_TEST(test_checkpoint_get_set_drop),
        STORE_TEST(test_a_rollback_leaves_nothing),
        STORE_TEST(test_a_full_disk_undoes_all_of_it),
        STORE_TEST(test_due_turns_come_in_their_order),
        STORE_TEST(test_a_new_boot_knows_no_due_times),
        STORE_TEST(test_turns_of_a_moved_partition_are_not_due),
        STORE_TEST(test_open_turns_come_in_pages),
        STORE_TEST(test_ended_turns_by_age),
        STORE_TEST(test_notes_by_key_and_prefix),
    };
    return cmocka_run_group_tests_name("store: image", tests, NULL, NULL);
}
