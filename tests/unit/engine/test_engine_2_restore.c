/*
 * Restore: its order, how far it reads, and what is decided before it is over: nothing
 * (protocol rules 4 to 6, 10, 16).
 */
#include "tests/unit/engine/engine_rig.h"

/* Rule 5: committed offsets, then the end of the state topic, then reading, then the owner record.
 */
static void test_rule_05_order_of_a_restore(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    rig_publish(rig, "state", 0, "a", "v");
    rig_publish(rig, "in", 0, "n", "v");
    driven_open(&d, rig, "w1");
    driven_until(&d, '+', 1);
    /* One call for the offsets of all; both ends; one partition is empty, so one reader. */
    assert_string_equal(spy.calls, "owwrcssssc");
    assert_string_equal(d.trace, "RRFAATr+");
    assert_string_equal(d.folded, "a");
    driven_close(&d);
}

static void test_rule_05_the_owner_record_names_worker_and_boot(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    struct log_reader *reader = NULL;
    struct log_batch batch = {0};
    driven_open(&d, rig, "w1");
    driven_ready(&d);
    OK(log_reader_open(rig->log, "state", 1, 0, LOG_READ_committed, &reader, err));
    OK(log_reader_next(reader, 10, 0, &batch, err));
    assert_int_equal(batch.count, 1);
    assert_int_equal(batch.records[0].key_len, strlen(TURN_LOG_OWNER_KEY));
    assert_memory_equal(batch.records[0].key, TURN_LOG_OWNER_KEY, strlen(TURN_LOG_OWNER_KEY));
    char value[512];
    snprintf(value, sizeof(value), "%.*s", (int)batch.records[0].value_len,
             (const char *)batch.records[0].value);
    assert_non_null(strstr(value, "\"worker\":\"w1\""));
    assert_non_null(strstr(value, d.engine->spec.boot.s));
    log_reader_close(reader);
    log_batch_free(&batch);
    driven_close(&d);
}

/* Nothing is given before every partition is restored and its owner record is in the log. */
static void test_rule_10_no_round_before_all_is_restored(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    enum { COUNT = 8200 }; /* more than are folded at a time, twice */
    static char keys[COUNT][16];
    static struct log_record records[COUNT];
    for (int i = 0; i < COUNT; i++) {
        snprintf(keys[i], sizeof(keys[i]), "k%d", i);
        records[i] = (struct log_record){.topic = "state",
                                         .partition = 1,
                                         .key = keys[i],
                                         .key_len = strlen(keys[i]),
                                         .value = "v",
                                         .value_len = 1};
    }
    OK(log_publish(rig->publisher, records, COUNT, 20000, err));
    rig_publish(rig, "in", 0, "n", "v");
    rig_publish(rig, "ctl", 0, "x", "v");
    driven_open(&d, rig, "w1");
    driven_until(&d, 'T', 1);
    assert_string_equal(d.trace, "RRFFFAAT");
    driven_close(&d);
}

/* Rule 5: where the group has no offset, the low watermark stands for it and is sent. */
static void test_rule_05_the_low_watermark_stands_for_no_offset(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    rig_publish(rig, "in", 0, "a", "v");
    rig_publish(rig, "in", 0, "b", "v");
    OK(log_trim(rig->log, "in", 0, 1, err));
    assert_int_equal(rig_offset(rig, "in", 0), LOG_OFFSET_NONE);
    driven_open(&d, rig, "w1");
    d.leave = true;
    driven_ready(&d);
    assert_int_equal(rig_offset(rig, "in", 0), 1);
    assert_int_equal(rig_offset(rig, "in", 1), 0);
    driven_close(&d);
}

/* A committed offset below what is there (trimmed by hand) does not go back. */
static void test_an_offset_below_the_log_is_its_beginning(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    driven_open(&d, rig, "w1");
    driven_ready(&d);
    driven_close(&d);
    rig_publish(rig, "in", 0, "a", "v");
    rig_publish(rig, "in", 0, "b", "v");
    OK(log_trim(rig->log, "in", 0, 1, err));
    driven_open(&d, rig, "w1");
    driven_until(&d, '+', 1);
    assert_string_equal(d.seen, "b");
    assert_int_equal(rig_offset(rig, "in", 0), 2);
    driven_close(&d);
}

/* Rule 5: the log has dropped what lay open in the partition: the offsets may be of a transaction that it
 * does not show. The inputs are read again, once, by whoever restores it next. */
static void test_rule_05_offsets_ahead_of_the_partition(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    int64_t low = 0;
    rig_publish(rig, "in", 0, "a", "v");
    rig_publish(rig, "in", 0, "b", "v");
    driven_open(&d, rig, "w1");
    driven_until(&d, '+', 1);
    driven_close(&d);
    assert_int_equal(rig_offset(rig, "in", 0), 2);
    OK(log_watermarks(rig->log, "state", 0, &low, &spy.noted, err));
    driven_open(&d, rig, "w1");
    driven_until(&d, '+', 1);
    assert_string_equal(d.seen, "a b");
    driven_close(&d);
    rig_publish(rig, "in", 0, "c", "v");
    driven_open(&d, rig, "w1");
    driven_until(&d, '+', 1);
    assert_string_equal(d.seen, "c");
    driven_close(&d);
}

/* Rule 16: reading goes on at the checkpoint, and sees each key's newest record. */
static void test_rule_16_the_checkpoint_is_honoured(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    static const char *const keys[] = {"a", "b", "a", "c", "d"}; /* offsets 0 to 4; a is replaced */
    for (int i = 0; i < 5; i++) {
        rig_publish(rig, "state", 0, keys[i], "v");
    }
    driven_open(&d, rig, "w1");
    driven_ready(&d);
    assert_string_equal(d.folded, "b a c d");
    assert_int_equal(d.next[0], 5);
    assert_int_equal(d.high[0], 5);
    driven_close(&d);

    driven_open(&d, rig, "w1");
    d.checkpoint[0] = 3;
    driven_ready(&d);
    assert_string_equal(d.folded, "c d ~ ~"); /* the owner records of the one before lie behind */
    assert_int_equal(d.high[0], 6);
    driven_close(&d);

    driven_open(&d, rig, "w1");
    d.checkpoint[0] = 7; /* nothing is new: nothing is folded */
    driven_ready(&d);
    assert_string_equal(d.folded, "~"); /* of partition 1, which is read whole */
    driven_close(&d);
}

/* A log that cannot be reached is waited for; nothing is decided meanwhile. */
static void test_an_unreachable_log_is_waited_for(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    rig_publish(rig, "in", 0, "a", "v");
    spy.unavailable = 2;
    int64_t start = mono_now().v;
    driven_open(&d, rig, "w1");
    driven_until(&d, '+', 1);
    assert_string_equal(d.trace, "RRAATr+");
    assert_true(mono_now().v - start >= 3 * RETRY_FIRST_MS); /* 100, then 200 */
    assert_non_null(strstr(spy.calls, "oooww"));
    driven_close(&d);
}

/* Rule 6: what was not committed is read again after a restore. */
static void test_rule_06_handoffs_above_the_offset_are_read_again(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    rig_publish(rig, "in", 0, "a", "v");
    rig_publish(rig, "in", 0, "b", "v");
    driven_open(&d, rig, "w1");
    d.capacity = 1;
    driven_until(&d, '+', 1);
    driven_until(&d, 'r', 2); /* b is given, its round is not ended */
    driven_close(&d);
    driven_open(&d, rig, "w1");
    driven_until(&d, '+', 1);
    assert_string_equal(d.seen, "b");
    driven_close(&d);
}

/* Rule 4: a second process under the same id has the newer boot; the older one hears `twin` and
 * stops. */
static void test_rule_04_a_twin_ends_the_older_one(void **state)
{
    struct rig *rig = *state;
    struct driven older;
    struct driven newer;
    struct engine_event event;
    struct baton_error err = {0};
    baton_code rc = BATON_OK;
    driven_open(&older, rig, "w1");
    driven_ready(&older);
    driven_finish(&older);
    driven_open(&newer, rig, "w1");
    driven_ready(&newer);
    for (int64_t end = mono_now().v + WAIT_MS; rc == BATON_OK && mono_now().v < end;) {
        rc = engine_next(older.engine, (struct mono_ms){mono_now().v + 20}, &event, &err);
        if (rc == BATON_OK && event.kind == ENGINE_round) {
            enum engine_result result;
            int64_t culprit;
            rc = engine_commit(older.engine, &result, &culprit, &err);
        }
    }
    assert_int_equal(rc, BATON_E_twin);
    driven_close(&older);
    rig_publish(rig, "in", 0, "a", "v");
    driven_until(&newer, '+', 1);
    driven_close(&newer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(test_rule_05_order_of_a_restore),
        RIG_TEST(test_rule_05_the_owner_record_names_worker_and_boot),
        RIG_TEST(test_rule_05_the_low_watermark_stands_for_no_offset),
        RIG_TEST(test_rule_05_offsets_ahead_of_the_partition),
        RIG_TEST(test_an_offset_below_the_log_is_its_beginning),
        RIG_TEST(test_rule_10_no_round_before_all_is_restored),
        RIG_TEST(test_rule_16_the_checkpoint_is_honoured),
        RIG_TEST(test_rule_06_handoffs_above_the_offset_are_read_again),
        RIG_TEST(test_an_unreachable_log_is_waited_for),
        RIG_TEST(test_rule_04_a_twin_ends_the_older_one),
    };
    return cmocka_run_group_tests_name("engine: restore", tests, NULL, NULL);
}
