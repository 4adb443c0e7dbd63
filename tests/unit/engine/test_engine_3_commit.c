/*
 * Commits that do not commit: a record that aborts them, a partition that has moved, an outcome
 * that nobody knows (protocol rules 13 to 15).
 */
#include "tests/unit/engine/engine_rig.h"

/* A missing output topic aborts, is named, and the next batch without it commits. */
static void test_a_culprit_is_named_and_left_out(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    baton_code code = BATON_OK;
    driven_open(&d, rig, "w1");
    driven_ready(&d);
    d.write = true;
    d.also_to = "missing";
    rig_publish(rig, "in", 0, "a", "v");
    rig_publish(rig, "in", 0, "b", "v");
    driven_until(&d, '-', 1);
    assert_int_equal(d.culprit, 1); /* state a, missing a, ... */
    assert_int_equal(rig_offset(rig, "in", 0), 0);
    assert_string_equal(rig_keys(rig, "state", 0), "~");
    assert_true(engine_unavailable(d.engine, "missing", &code));
    assert_int_equal(code, BATON_E_topic_missing);
    assert_false(engine_unavailable(d.engine, "out", &code));
    driven_until(&d, '+', 1);
    assert_string_equal(d.seen, "a b a b");
    assert_int_equal(rig_offset(rig, "in", 0), 2);
    assert_string_equal(rig_keys(rig, "state", 0), "~ a b");
    driven_close(&d);
}

/* Decisions that came from no record (a timer, a recorded end) get their round at once, too. */
static void test_a_culprit_calls_for_another_round(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    driven_open(&d, rig, "w1");
    driven_until(&d, 'T', 1);
    put_state(&d, 0, "state", "k", 1);
    put_state(&d, 0, "missing", "k", 1);
    driven_until(&d, '-', 1);
    int64_t start = mono_now().v;
    assert_int_equal(driven_step(&d, 5000), ENGINE_tick);
    assert_true(mono_now().v - start < 2000);
    driven_close(&d);
}

/* A target is unavailable for 30 s; then a round comes by itself, for what waited for it. */
static void test_an_unavailable_target_is_tried_again(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    baton_code code = BATON_OK;
    driven_open(&d, rig, "w1");
    driven_until(&d, 'T', 1);
    put_state(&d, 0, "state", "k", 1);
    put_state(&d, 0, "missing", "k", 1);
    driven_until(&d, '-', 1);
    driven_quiet(&d);
    d.engine->unavailable[0].until.v = mono_now().v + 100;
    assert_true(engine_unavailable(d.engine, "missing", &code));
    int64_t start = mono_now().v;
    assert_int_equal(driven_step(&d, 5000), ENGINE_tick);
    assert_true(mono_now().v - start < 2000);
    assert_false(engine_unavailable(d.engine, "missing", &code));
    driven_close(&d);
}

/* Rule 13: a batch belongs to one assignment; another member joined, so it is dropped, and nothing
 * is lost. */
static void test_rule_13_an_assignment_change_drops_the_batch(void **state)
{
    struct rig *rig = *state;
    struct driven a;
    struct driven b;
    driven_open(&a, rig, "w1");
    driven_ready(&a);
    a.write = true;
    rig_publish(rig, "in", 0, "n0", "v");
    rig_publish(rig, "in", 1, "n1", "v");
    driven_until(&a, 'r', 2);
    driven_open(&b, rig, "w2"); /* its join is a new generation */
    b.write = true;
    driven_finish(&a);
    assert_null(strchr(a.trace, '+'));
    assert_non_null(strchr(a.trace, '-'));
    assert_string_equal(rig_keys(rig, "state", 0), "~");
    assert_int_equal(rig_offset(rig, "in", 0), 0);
    for (int64_t end = mono_now().v + WAIT_MS;
         (rig_offset(rig, "in", 0) < 1 || rig_offset(rig, "in", 1) < 1) && mono_now().v < end;) {
        (void)driven_step(&a, 5);
        (void)driven_step(&b, 5);
    }
    /* Each has been taken once, by its owner. */
    assert_string_equal(rig_keys(rig, "state", 0), "~ n0");
    assert_string_equal(rig_keys(rig, "state", 1), "~ n1");
    assert_true(strchr(a.trace, 'M') != NULL || strchr(a.trace, 'L') != NULL);
    assert_non_null(strchr(a.trace, '+'));
    assert_non_null(strchr(b.trace, '+'));
    driven_close(&a);
    driven_close(&b);
}

/* Rules 5 and 13: the partition that stays is restored again, too. */
static void test_rule_05_every_assignment_is_a_restore(void **state)
{
    struct rig *rig = *state;
    struct driven a;
    struct driven b;
    driven_open(&a, rig, "w1");
    driven_ready(&a);
    driven_open(&b, rig, "w2");
    for (int64_t end = mono_now().v + WAIT_MS;
         (strstr(a.trace, "MRFA") == NULL || strchr(b.trace, 'A') == NULL) && mono_now().v < end;) {
        (void)driven_step(&a, 5);
        (void)driven_step(&b, 5);
    }
    assert_non_null(strstr(a.trace, "MRFA"));
    assert_int_not_equal(engine_owns(a.engine, 0), engine_owns(b.engine, 0));
    assert_int_not_equal(engine_owns(a.engine, 1), engine_owns(b.engine, 1));
    int32_t mine[LOG_PARTITIONS_MAX];
    assert_int_equal(engine_partitions(a.engine, mine), 1);
    driven_close(&b); /* leaves: its partition comes at once */
    for (int64_t end = mono_now().v + WAIT_MS;
         engine_partitions(a.engine, mine) != 2 && mono_now().v < end;) {
        (void)driven_step(&a, 5);
    }
    assert_int_equal(engine_partitions(a.engine, mine), 2);
    driven_close(&a);
}

/* Rule 14: a refusal means that the partition is lost: dropped, given again, to whoever owns it
 * then. */
static void test_rule_14_a_refused_member_drops_its_decisions(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    driven_open(&d, rig, "w1");
    driven_ready(&d);
    d.write = true;
    spy.refuse = 1;
    spy.verdict = LOG_VERDICT_lost;
    rig_publish(rig, "in", 0, "a", "v");
    driven_until(&d, '-', 1);
    assert_string_equal(rig_keys(rig, "state", 0), "~");
    driven_until(&d, '+', 1);
    assert_string_equal(d.seen, "a a");
    assert_string_equal(rig_keys(rig, "state", 0), "~ a");
    driven_close(&d);
}

/* Rule 15: an unknown outcome is asked again by the same call, and by nothing else. */
static void test_rule_15_an_unknown_outcome_is_asked_again(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    driven_open(&d, rig, "w1");
    driven_ready(&d);
    d.write = true;
    spy.refuse = 2;
    spy.verdict = LOG_VERDICT_unknown;
    rig_publish(rig, "in", 0, "a", "v");
    size_t before = strlen(spy.calls);
    driven_until(&d, '+', 1);
    assert_string_equal(spy.calls + before, "ccc");
    assert_string_equal(d.seen, "a");
    assert_string_equal(rig_keys(rig, "state", 0), "~ a");
    driven_close(&d);
}

/* Rule 15: if that is in vain: a new producer, and every partition is restored before anything is
 * decided. */
static void test_rule_15_a_lasting_doubt_starts_over(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    driven_open(&d, rig, "w1");
    driven_ready(&d);
    d.write = true;
    spy.refuse = 3;
    spy.verdict = LOG_VERDICT_unknown;
    rig_publish(rig, "in", 0, "a", "v");
    driven_until(&d, '!', 1);
    size_t at = strlen(d.trace);
    size_t calls = strlen(spy.calls);
    driven_until(&d, '+', 1);
    assert_string_equal(d.trace + at, "RRFFAATr+");
    assert_int_equal(strncmp(spy.calls + calls, "noww", 4), 0); /* renewed, then restored */
    assert_string_equal(rig_keys(rig, "state", 0), "~ a");
    driven_close(&d);
}

static void test_a_fenced_producer_is_renewed_before_the_restore(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    driven_open(&d, rig, "w1");
    driven_ready(&d);
    d.write = true;
    spy.refuse = 1;
    spy.verdict = LOG_VERDICT_fenced;
    rig_publish(rig, "in", 0, "a", "v");
    driven_until(&d, '!', 1);
    size_t calls = strlen(spy.calls);
    driven_until(&d, '+', 1);
    assert_int_equal(strncmp(spy.calls + calls, "noww", 4), 0);
    driven_close(&d);
}

/* Two processes that fence each other in turn do not go on for ever. */
static void test_fenced_five_times_in_a_minute_is_the_end(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    struct engine_event event;
    baton_code rc = BATON_OK;
    driven_open(&d, rig, "w1");
    driven_ready(&d);
    d.write = true;
    spy.refuse = 5;
    spy.verdict = LOG_VERDICT_fenced;
    rig_publish(rig, "in", 0, "a", "v");
    driven_until(&d, '!', 1);
    for (int i = 0; i < 500 && rc == BATON_OK; i++) {
        rc = engine_next(d.engine, (struct mono_ms){mono_now().v + 20}, &event, NULL);
        if (rc == BATON_OK && event.kind == ENGINE_restoring) {
            engine_restore_from(d.engine, LOG_OFFSET_NONE);
        }
    }
    assert_int_equal(rc, BATON_E_twin);
    assert_int_equal(spy.refuse, 0); /* the fifth, not earlier */
    driven_close(&d);
}

#ifdef BATON_FAULTS
/* Rule 15: the repetition does not come to its turn, and what it repeats has happened. All is restored,
 * and the next batch, which holds more, is not taken for the repetition. */
static void test_rule_15_a_repetition_that_fails_leaves_the_doubt(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    char text[128];
    driven_open(&d, rig, "w1");
    driven_ready(&d);
    d.also_to = "out";
    assert_true(fault_set("log.after_commit:fail", text, sizeof(text)));
    spy.let_through = 1;
    spy.failing = 1;
    rig_publish(rig, "in", 0, "a", "v");
    for (int64_t end = mono_now().v + WAIT_MS; spy.failing > 0 && mono_now().v < end;) {
        (void)driven_step(&d, 5);
    }
    assert_true(fault_set("", text, sizeof(text)));
    rig_publish(rig, "in", 0, "b", "v");
    driven_until(&d, '+', 1);
    assert_int_equal(rig_offset(rig, "in", 0), 2);
    assert_string_equal(d.seen, "a b");
    size_t n = strlen(rig_keys(rig, "out", 0));
    n += strlen(rig_keys(rig, "out", 1));
    assert_true(n == strlen("ab") || n == strlen("a b")); /* each once, over both */
    driven_close(&d);
}

/* The same on the log itself: committed, and nobody knows; not committed, and nobody knows. */
static void test_rule_15_on_the_log_nothing_is_there_twice(void **state)
{
    static const char *const faults[] = {"log.after_commit:fail", "log.before_commit:fail",
                                         "log.before_commit:fail,log.after_commit:fail"};
    struct rig *rig = *state;
    for (size_t i = 0; i < 3; i++) {
        struct driven d;
        char text[128];
        char key[2] = {(char)('a' + i), '\0'};
        driven_open(&d, rig, "w1");
        driven_ready(&d);
        d.also_to = "out";
        assert_true(fault_set(faults[i], text, sizeof(text)));
        rig_publish(rig, "in", 0, key, "v");
        driven_until(&d, '+', 1);
        assert_true(fault_set("", text, sizeof(text)));
        assert_int_equal(rig_offset(rig, "in", 0), (int64_t)i + 1);
        assert_string_equal(d.seen, key);
        driven_close(&d);
    }
    char all[64];
    snprintf(all, sizeof(all), "%s", rig_keys(rig, "out", 0));
    size_t n = strlen(all) + strlen(rig_keys(rig, "out", 1));
    assert_true(n == strlen("abc") + 1 || n == strlen("abc") + 2); /* each once, over both */
}
#endif

/* The log cannot be reached: dropped, waited, given again. */
static void test_a_plain_abort_is_waited_out(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    driven_open(&d, rig, "w1");
    driven_ready(&d);
    spy.refuse = 2;
    spy.verdict = LOG_VERDICT_aborted;
    rig_publish(rig, "in", 0, "a", "v");
    int64_t start = mono_now().v;
    driven_until(&d, '+', 1);
    assert_string_equal(d.seen, "a a a");
    assert_int_equal(d.culprit, -1);
    assert_true(mono_now().v - start >= 3 * RETRY_FIRST_MS);
    driven_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(test_a_culprit_is_named_and_left_out),
        RIG_TEST(test_a_culprit_calls_for_another_round),
        RIG_TEST(test_an_unavailable_target_is_tried_again),
        RIG_TEST(test_a_plain_abort_is_waited_out),
        RIG_TEST(test_rule_13_an_assignment_change_drops_the_batch),
        RIG_TEST(test_rule_05_every_assignment_is_a_restore),
        RIG_TEST(test_rule_14_a_refused_member_drops_its_decisions),
        RIG_TEST(test_rule_15_an_unknown_outcome_is_asked_again),
        RIG_TEST(test_rule_15_a_lasting_doubt_starts_over),
        RIG_TEST(test_a_fenced_producer_is_renewed_before_the_restore),
        RIG_TEST(test_fenced_five_times_in_a_minute_is_the_end),
#ifdef BATON_FAULTS
        RIG_TEST(test_rule_15_a_repetition_that_fails_leaves_the_doubt),
        RIG_TEST(test_rule_15_on_the_log_nothing_is_there_twice),
#endif
    };
    return cmocka_run_group_tests_name("engine: commits", tests, NULL, NULL);
}
