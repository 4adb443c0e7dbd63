/*
 * Rounds: the order of events, what is taken and what is given again, and when an offset moves
 * (protocol rules 11, 12, 17).
 */
#include "tests/unit/engine/engine_rig.h"

/* Control before records, each partition in its order; one transaction at the end. */
static void test_order_of_events_in_a_round(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    rig_publish(rig, "in", 0, "a", "v");
    rig_publish(rig, "in", 0, "b", "v");
    rig_publish(rig, "ctl", 0, "x", "v");
    rig_publish(rig, "ctl", 0, "y", "v");
    driven_open(&d, rig, "w1");
    driven_until(&d, '+', 1);
    assert_string_equal(d.trace, "RRAATCCrr+");
    assert_string_equal(d.seen, "x y a b");
    assert_int_equal(rig_offset(rig, "in", 0), 2);
    assert_int_equal(rig_offset(rig, "ctl", 0), 2);
    driven_close(&d);
}

/* Rule 17: an offset moves with the batch that takes the record in, not before and not without. */
static void test_rule_17_offsets_move_only_with_the_batch(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    driven_open(&d, rig, "w1");
    driven_ready(&d);
    rig_publish(rig, "in", 0, "a", "v");
    rig_publish(rig, "in", 0, "b", "v");
    d.write = true;
    driven_until(&d, 'r', 2);
    assert_int_equal(engine_position(d.engine, ENGINE_INPUT, 0),
                     1); /* b is in the caller's hands */
    assert_int_equal(rig_offset(rig, "in", 0), 0);
    driven_until(&d, '+', 1);
    assert_int_equal(engine_position(d.engine, ENGINE_INPUT, 0), 2);
    assert_int_equal(rig_offset(rig, "in", 0), 2);
    assert_string_equal(rig_keys(rig, "state", 0), "~ a b");
    assert_int_equal(engine_offset(d.engine, 0) + 1, engine_offset(d.engine, 1));
    driven_close(&d);
}

/* A record that was not taken holds back its own partition, and is given again. */
static void test_rule_17_records_not_taken_are_given_again(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    driven_open(&d, rig, "w1");
    driven_ready(&d);
    d.leave_key = "b";
    rig_publish(rig, "in", 0, "a", "v");
    rig_publish(rig, "in", 0, "b", "v");
    rig_publish(rig, "in", 0, "c", "v");
    rig_publish(rig, "in", 1, "d", "v");
    for (int64_t end = mono_now().v + WAIT_MS;
         strstr(d.seen, "b b") == NULL && mono_now().v < end;) {
        (void)driven_step(&d, 20);
    }
    driven_finish(&d);
    assert_null(strstr(d.seen, "c"));
    assert_non_null(strstr(d.seen, "d"));
    assert_int_equal(rig_offset(rig, "in", 0), 1);
    assert_int_equal(rig_offset(rig, "in", 1), 1);
    d.leave_key = NULL;
    driven_until(&d, 'r', strlen(d.seen) / 2 + 3);
    driven_finish(&d);
    assert_int_equal(rig_offset(rig, "in", 0), 3);
    driven_close(&d);
}

/* While nothing can be taken the engine does not spin. */
static void test_records_that_stay_cost_no_processor(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    driven_open(&d, rig, "w1");
    driven_ready(&d);
    d.leave = true;
    rig_publish(rig, "in", 0, "a", "v");
    rig_publish(rig, "ctl", 1, "x", "v");
    driven_until(&d, 'r', 1);
    size_t before = strlen(d.seen);
    for (int64_t end = mono_now().v + 500; mono_now().v < end;) {
        (void)driven_step(&d, 5000);
    }
    size_t given = (strlen(d.seen) - before) / 2;
    if (given < 2 || given > 20) {
        fail_msg("%zu records in half a second", given);
    }
    driven_close(&d);
}

/* Rule 12: an offset of every partition whose state is written, unchanged if nothing advanced. */
static void test_rule_12_every_written_partition_has_its_offsets(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    driven_open(&d, rig, "w1");
    driven_until(&d, 'T', 1);
    assert_int_equal(spy.n_offsets, 2 * PARTS); /* the owner record, of both */
    assert_int_equal(rig_offset(rig, "in", 0), 0);
    assert_int_equal(rig_offset(rig, "in", 1), 0);
    assert_int_equal(rig_offset(rig, "ctl", 1), 0);
    put_state(&d, 1, "state", "k", 1);
    driven_until(&d, '+', 1);
    assert_int_equal(spy.n_offsets, 2);
    for (int input = 0; input < LOG_INPUTS; input++) {
        assert_int_equal(spy.offsets[input].input, input);
        assert_int_equal(spy.offsets[input].partition, 1);
        assert_int_equal(spy.offsets[input].next, 0);
    }
    driven_close(&d);
}

/* An empty round writes nothing. */
static void test_an_empty_round_sends_nothing(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    driven_open(&d, rig, "w1");
    driven_ready(&d);
    size_t before = strlen(spy.calls);
    for (int i = 0; i < 20; i++) {
        (void)driven_step(&d, 1);
    }
    assert_int_equal(strlen(spy.calls), before);
    driven_close(&d);
}

static void test_capacity_bounds_a_round(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    for (int i = 0; i < 7; i++) {
        rig_publish(rig, "in", i % 2, (const char *[]){"a", "b", "c", "d", "e", "f", "g"}[i], "v");
    }
    driven_open(&d, rig, "w1");
    d.capacity = 3;
    driven_until(&d, '+', 3);
    assert_string_equal(d.trace, "RRAATrrr+Trrr+Tr+");
    d.capacity = 0;
    rig_publish(rig, "in", 0, "h", "v");
    rig_publish(rig, "ctl", 0, "x", "v");
    driven_until(&d, 'C', 1); /* control is always read */
    driven_finish(&d);
    for (int i = 0; i < 10; i++) {
        (void)driven_step(&d, 5);
    }
    assert_null(strchr(d.seen, 'h'));
    d.capacity = 1;
    driven_until(&d, 'r', 8);
    driven_close(&d);
}

static void test_a_held_partition_is_not_read_and_control_goes_on(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    driven_open(&d, rig, "w1");
    driven_ready(&d);
    engine_hold(d.engine, 0, true);
    rig_publish(rig, "in", 0, "a", "v");
    rig_publish(rig, "in", 1, "b", "v");
    rig_publish(rig, "ctl", 0, "x", "v");
    driven_until(&d, 'r', 1);
    driven_until(&d, 'C', 1);
    driven_finish(&d);
    for (int i = 0; i < 10; i++) {
        (void)driven_step(&d, 5);
    }
    assert_null(strchr(d.seen, 'a'));
    engine_hold(d.engine, 0, false);
    driven_until(&d, 'r', 2);
    driven_close(&d);
}

/* What was said before a restore comes before what waits to be done, unless it cannot be taken. */
static void test_what_is_said_comes_first_unless_it_cannot_be_taken(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    rig_publish(rig, "in", 0, "a", "v");
    rig_publish(rig, "in", 1, "b", "v");
    rig_publish(rig, "ctl", 0, "x", "v");
    driven_open(&d, rig, "w1");
    d.leave_key = "x";
    driven_until(&d, 'r', 1);
    driven_finish(&d);
    for (int i = 0; i < 10; i++) {
        (void)driven_step(&d, 5);
    }
    assert_null(strchr(d.seen, 'a'));
    engine_heard(d.engine, 0);
    driven_until(&d, 'r', 2);
    assert_non_null(strchr(d.seen, 'a'));
    driven_finish(&d);
    assert_true(rig_offset(rig, "ctl", 0) <= 0);
    driven_close(&d);
}

static void test_stop_taking_leaves_what_nobody_took(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    driven_open(&d, rig, "w1");
    driven_ready(&d);
    engine_stop_taking(d.engine);
    rig_publish(rig, "in", 0, "a", "v");
    rig_publish(rig, "ctl", 0, "x", "v");
    driven_until(&d, 'C', 1);
    driven_finish(&d);
    for (int i = 0; i < 10; i++) {
        (void)driven_step(&d, 5);
    }
    assert_string_equal(d.seen, "x");
    assert_int_equal(rig_offset(rig, "in", 0), 0);
    driven_close(&d);
}

static void test_drained_when_both_inputs_were_read_to_their_ends(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    rig_publish(rig, "in", 1, "a", "v");
    driven_open(&d, rig, "w1");
    assert_false(engine_drained(d.engine));
    driven_ready(&d);
    assert_false(engine_drained(d.engine));
    driven_until(&d, '+', 1);
    for (int64_t end = mono_now().v + WAIT_MS; !engine_drained(d.engine) && mono_now().v < end;) {
        (void)driven_step(&d, 5);
    }
    assert_true(engine_drained(d.engine));
    d.leave = true;
    rig_publish(rig, "ctl", 1, "x", "v");
    driven_until(&d, 'C', 1);
    assert_false(engine_drained(d.engine));
    driven_close(&d);
}

/* What was taken away is not done: who has nothing just now does not know whether anything waits. */
static void test_not_drained_while_the_group_decides(void **state)
{
    struct rig *rig = *state;
    struct driven a;
    struct driven b;
    driven_open(&a, rig, "w1");
    driven_ready(&a);
    for (int64_t end = mono_now().v + WAIT_MS; !engine_drained(a.engine) && mono_now().v < end;) {
        (void)driven_step(&a, 5);
    }
    assert_true(engine_drained(a.engine));
    driven_open(&b, rig, "w2");
    enum engine_event_kind kind = ENGINE_none;
    for (int64_t end = mono_now().v + WAIT_MS; kind != ENGINE_moved && mono_now().v < end;) {
        (void)driven_step(&b, 0);
        kind = driven_step(&a, 5);
    }
    assert_int_equal(kind, ENGINE_moved);
    assert_false(engine_drained(a.engine));
    driven_close(&b);
    driven_close(&a);
}

/* An end that lies behind what was taken is committed alone after an idle second: lag is what
 * nobody took. */
static void test_an_end_is_committed_when_idle(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    driven_open(&d, rig, "w1");
    d.capacity = 0;
    driven_ready(&d);
    driven_until(&d, 'T', 1);
    driven_finish(&d);
    rig_publish(rig, "in", 0, "a", "v");
    rig_publish(rig, "in", 0, "b", "v");
    OK(log_trim(rig->log, "in", 0, 2, err));
    d.capacity = 10;
    engine_capacity(d.engine, 10);
    int64_t start = mono_now().v;
    while (strchr(d.trace, '+') == NULL && mono_now().v - start < WAIT_MS) {
        (void)driven_step(&d, 5000);
    }
    assert_string_equal(d.seen, "");
    assert_int_equal(rig_offset(rig, "in", 0), 2);
    assert_true(mono_now().v - start >= EOF_IDLE_MS);
    driven_close(&d);
}

static void test_mail_and_wake_are_given(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    int fds[2];
    char byte;
    assert_int_equal(pipe(fds), 0);
    driven_init(&d, rig);
    struct engine_spec spec = driven_spec(rig, "w1", d.mail);
    spec.wake_fd = fds[0];
    OK(engine_open(&spec, &d.engine, err));
    driven_ready(&d);
    driven_finish(&d);
    int message = 0;
    assert_true(mailbox_post(d.mail, &message));
    driven_until(&d, 'm', 1);
    driven_finish(&d);
    assert_int_equal(write(fds[1], "s", 1), 1);
    driven_until(&d, 'w', 1);
    assert_int_equal(read(fds[0], &byte, 1), 1);
    driven_close(&d);
    close(fds[0]);
    close(fds[1]);
}

static void test_the_caller_may_ask_for_a_round(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    driven_open(&d, rig, "w1");
    driven_ready(&d);
    driven_quiet(&d);
    engine_again(d.engine);
    int64_t start = mono_now().v;
    assert_int_equal(driven_step(&d, 5000), ENGINE_tick);
    assert_true(mono_now().v - start < 2000);
    driven_close(&d);
}

/* What was taken in is deleted, what nobody took stays (rule 30). */
static void test_rule_30_trim_deletes_only_what_was_taken(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    int64_t low = 0;
    int64_t high = 0;
    driven_open(&d, rig, "w1");
    driven_ready(&d);
    d.leave_key = "c";
    rig_publish(rig, "in", 0, "a", "v");
    rig_publish(rig, "in", 0, "b", "v");
    rig_publish(rig, "in", 0, "c", "v");
    rig_publish(rig, "ctl", 0, "x", "v");
    driven_until(&d, '+', 1);
    engine_trim(d.engine);
    OK(log_watermarks(rig->log, "in", 0, &low, &high, err));
    assert_int_equal(low, 2);
    assert_int_equal(high, 3);
    OK(log_watermarks(rig->log, "ctl", 0, &low, &high, err));
    assert_int_equal(low, 1);
    driven_close(&d);
}

/* Where a transaction right behind another is dear, it waits; what is due before it does not. */
static void test_transactions_keep_their_distance(void **state)
{
    struct rig *rig = *state;
    struct driven d;
    driven_open(&d, rig, "w1");
    driven_ready(&d);
    d.write = true;
    spy.ops.commit_gap_ms = 1000;
    d.trace[0] = '\0';
    rig_publish(rig, "in", 0, "a", "v");
    driven_until(&d, '+', 1);
    const int64_t first = mono_now().v;
    rig_publish(rig, "in", 0, "b", "v");
    assert_int_equal(driven_step(&d, 5000), ENGINE_tick);
    assert_true(mono_now().v - first < 500); /* executors start at once */
    rig_publish(rig, "in", 1, "c", "v");
    d.trace[0] = '\0';
    driven_until(&d, '+', 1);
    assert_true(mono_now().v - first >= 999);
    assert_int_equal(strlen(d.seen), strlen("a b c")); /* gathered meanwhile: one transaction */
    driven_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(test_order_of_events_in_a_round),
        RIG_TEST(test_an_empty_round_sends_nothing),
        RIG_TEST(test_rule_17_offsets_move_only_with_the_batch),
        RIG_TEST(test_rule_17_records_not_taken_are_given_again),
        RIG_TEST(test_records_that_stay_cost_no_processor),
        RIG_TEST(test_rule_12_every_written_partition_has_its_offsets),
        RIG_TEST(test_capacity_bounds_a_round),
        RIG_TEST(test_a_held_partition_is_not_read_and_control_goes_on),
        RIG_TEST(test_what_is_said_comes_first_unless_it_cannot_be_taken),
        RIG_TEST(test_stop_taking_leaves_what_nobody_took),
        RIG_TEST(test_drained_when_both_inputs_were_read_to_their_ends),
        RIG_TEST(test_not_drained_while_the_group_decides),
        RIG_TEST(test_an_end_is_committed_when_idle),
        RIG_TEST(test_mail_and_wake_are_given),
        RIG_TEST(test_the_caller_may_ask_for_a_round),
        RIG_TEST(test_transactions_keep_their_distance),
        RIG_TEST(test_rule_30_trim_deletes_only_what_was_taken),
    };
    return cmocka_run_group_tests_name("engine: rounds", tests, NULL, NULL);
}
