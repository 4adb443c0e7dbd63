/*
 * Death at each moment: the crash table of common/engine/ENGINE.md, row by row, on the same worker
 * and on another one (DESIGN section 4; protocol rules 7, 9, 16, 19 to 21; RULES I3, I4). Needs a
 * build with fault points.
 *
 * The transactions of a worker's log that its first turn sees: 1 owner record, 2 claim, 3 end.
 */
#include "tests/unit/worker/host.h"

#ifdef BATON_FAULTS

static int losses_of(struct host *host, const char *id)
{
    struct turn_record record;
    assert_true(turn_in_log(host, id, &record));
    int losses = record.losses;
    assert_int_equal(record.failures, 0);
    turn_record_done(&record);
    return losses;
}

/* A worker dies at a fault; another one, or the same again, finishes. */
static struct turn_id die_and_go_on(struct host *host, const char *plan, const char *fault,
                                    const char *heir)
{
    struct turn_id id = send_turn(host, ROLE_reviewer, plan);
    worker_start_as(host, "w1", fault, false);
    worker_wait_killed(host, "w1");
    worker_drain(host, heir);
    wait_for(host, id.s, TURN_completed, 0);
    return id;
}

static void test_row_1_before_the_claim_is_in_the_log(void **state)
{
    struct host *host = *state;
    struct turn_id id = die_and_go_on(host, "approve", "log.before_commit:kill:2", "w1");
    assert_string_equal(attempts_of(host, id.s), "1:completed//one");
    assert_int_equal(losses_of(host, id.s), 0);
}

static void test_row_1_on_another_worker(void **state)
{
    struct host *host = *state;
    struct turn_id id = die_and_go_on(host, "approve", "log.before_commit:kill:2", "w2");
    assert_string_equal(attempts_of(host, id.s), "1:completed//one");
    assert_int_equal(losses_of(host, id.s), 0);
}

/* The old boot is dead and nothing had started: lost, without counting as a loss. */
static void test_row_2_claimed_and_not_in_the_store(void **state)
{
    struct host *host = *state;
    struct turn_id id = die_and_go_on(host, "approve", "log.after_commit:kill:2", "w1");
    assert_string_equal(attempts_of(host, id.s), "1:failed/lost/one 2:completed//one");
    assert_int_equal(losses_of(host, id.s), 0);
    assert_int_equal(calls_of(host, id.s, 1), 0);
}

static void test_row_2_with_the_store_ready_and_not_committed(void **state)
{
    struct host *host = *state;
    struct turn_id id = send_turn(host, ROLE_reviewer, "approve");
    /* The first store transaction behind the claim, whichever it is: nothing was called before it.
     */
    for (int n = 2; n < 12; n++) {
        char fault[40];
        snprintf(fault, sizeof(fault), "store.before_commit:kill:%d", n);
        worker_start_as(host, "w1", fault, false);
        worker_wait_killed(host, "w1");
        struct turn_record record;
        bool claimed = turn_in_log(host, id.s, &record);
        turn_record_done(&record);
        if (claimed) {
            break;
        }
    }
    assert_int_equal(calls_of(host, id.s, 0), 0);
    worker_start(host, "w1");
    wait_for(host, id.s, TURN_completed, 2);
    worker_stop(host, "w1");
    assert_int_equal(losses_of(host, id.s), 0);
    assert_int_equal(calls_of(host, id.s, 1), 0);
}

/* Another worker cannot know what started: it waits for a renewal, and counts the loss. */
static void test_row_2_on_another_worker(void **state)
{
    struct host *host = *state;
    struct turn_id id = die_and_go_on(host, "approve", "log.after_commit:kill:2", "w2");
    assert_string_equal(attempts_of(host, id.s), "1:failed/lost/one 2:completed//one");
    assert_int_equal(losses_of(host, id.s), 1);
    assert_int_equal(calls_of(host, id.s, 1), 0);
}

static void test_row_3_while_the_executor_ran(void **state)
{
    struct host *host = *state;
    struct turn_id id = die_and_go_on(host, "die,approve", "", "w1");
    assert_string_equal(attempts_of(host, id.s), "1:failed/lost/one 2:completed//one");
    assert_int_equal(losses_of(host, id.s), 1);
    assert_int_equal(calls_of(host, id.s, 1), 1);
}

static void test_row_3_on_another_worker(void **state)
{
    struct host *host = *state;
    struct turn_id id = die_and_go_on(host, "die,approve", "", "w2");
    assert_string_equal(attempts_of(host, id.s), "1:failed/lost/one 2:completed//one");
    assert_int_equal(losses_of(host, id.s), 1);
}

static void test_row_3_ended_and_not_recorded(void **state)
{
    struct host *host = *state;
    struct turn_id id = die_and_go_on(host, "approve", "executor.ended:kill", "w1");
    assert_string_equal(attempts_of(host, id.s), "1:failed/lost/one 2:completed//one");
    assert_int_equal(losses_of(host, id.s), 1);
}

/* The end is a fact: it is published, and nothing runs again. */
static void test_row_4_recorded_and_not_in_the_log(void **state)
{
    struct host *host = *state;
    struct turn_id id = die_and_go_on(host, "approve", "log.before_commit:kill:3", "w1");
    assert_string_equal(attempts_of(host, id.s), "1:completed//one");
    assert_int_equal(calls_of(host, id.s, 0), 1);
    assert_string_equal(store_text(host, "w1", "SELECT count(*) FROM recorded_end"), "0");
}

static void test_row_4_a_recorded_failure_is_settled_as_one(void **state)
{
    struct host *host = *state;
    struct turn_id id = die_and_go_on(host, "auth,approve", "log.before_commit:kill:3", "w1");
    assert_string_equal(attempts_of(host, id.s), "1:failed/auth/one 2:completed//two");
    assert_int_equal(calls_of(host, id.s, 1), 1);
}

/* Another worker has its partition meanwhile: the old one reports its fact, and it is taken. */
static void test_row_4_on_another_worker_the_fact_is_reported(void **state)
{
    struct host *host = *state;
    const char *const slow[] = {"lease_grace=5s", "lease=10s"};
    const struct sending sending = {.role = ROLE_reviewer, .plan = "approve", .partition = 2};
    host_configure(host, slow, 2);
    struct turn_id id = send_turn_as(host, &sending);
    worker_start_as(host, "w1", "log.before_commit:kill:3", false);
    worker_wait_killed(host, "w1");
    struct turn_id other = send_turn(host, ROLE_reviewer, "approve");
    worker_start(host, "w2");
    wait_for(host, other.s, TURN_completed, 1); /* w2 owns both partitions now */
    worker_start(host, "w1");                   /* gets one of them, by its name the first */
    wait_for(host, id.s, TURN_completed, 1);
    wait_stored(host, "w1", "SELECT count(*) FROM recorded_end", "0");
    worker_stop(host, "w1");
    worker_stop(host, "w2");
    assert_int_equal(calls_of(host, id.s, 0), 1);
}

/* The same for an attempt that has others behind it: what the turn log says of those is older news. */
static void test_row_4_a_second_attempt_is_reported_too(void **state)
{
    struct host *host = *state;
    const char *const slow[] = {"lease_grace=5s", "lease=10s"};
    const struct sending sending = {
        .role = ROLE_reviewer, .plan = "unavailable,approve", .partition = 2};
    host_configure(host, slow, 2);
    struct turn_id id = send_turn_as(host, &sending);
    worker_start_as(host, "w1", "log.before_commit:kill:5", false);
    worker_wait_killed(host, "w1");
    struct turn_id other = send_turn(host, ROLE_reviewer, "approve");
    worker_start(host, "w2");
    wait_for(host, other.s, TURN_completed, 1); /* w2 owns both partitions now */
    worker_start(host, "w1");
    wait_for(host, id.s, TURN_completed, 2);
    wait_stored(host, "w1", "SELECT count(*) FROM recorded_end", "0");
    worker_stop(host, "w1");
    worker_stop(host, "w2");
    assert_int_equal(calls_of(host, id.s, 0), 2);
}

/* It comes too late: kept as late, shown, never applied (rule 21). */
static void test_row_4_a_report_that_comes_too_late(void **state)
{
    struct host *host = *state;
    const struct sending sending = {
        .role = ROLE_reviewer, .plan = "approve,changes", .partition = 2};
    struct turn_record record;
    struct turn_id id = send_turn_as(host, &sending);
    worker_start_as(host, "w1", "log.before_commit:kill:3", false);
    worker_wait_killed(host, "w1");
    worker_start(host, "w2");
    wait_for(host, id.s, TURN_completed, 2);
    worker_start(host, "w1");
    for (int64_t end = mono_now().v + WAIT_MS;; usleep(5000)) {
        assert_true(turn_in_log(host, id.s, &record));
        bool late = record.attempts[0].late;
        bool kept = strstr(record.result, "\"changes\"") != NULL;
        turn_record_done(&record);
        assert_true(kept);
        if (late || mono_now().v > end) {
            assert_true(late);
            break;
        }
    }
    wait_stored(host, "w1", "SELECT count(*) FROM recorded_end", "0");
    worker_stop(host, "w1");
    worker_stop(host, "w2");
    assert_string_equal(attempts_of(host, id.s), "1:failed/lost/one 2:completed//one");
}

static void test_row_5_in_the_log_and_not_in_the_store(void **state)
{
    struct host *host = *state;
    struct turn_id id = die_and_go_on(host, "approve", "log.after_commit:kill:3", "w1");
    assert_string_equal(attempts_of(host, id.s), "1:completed//one");
    assert_int_equal(calls_of(host, id.s, 0), 1);
    assert_string_equal(outcomes_of(host, id.s), "completed");
    assert_string_equal(store_text(host, "w1", "SELECT state FROM turn"), "completed");
    assert_string_equal(store_text(host, "w1", "SELECT count(*) FROM recorded_end"), "0");
}

static void test_row_5_on_another_worker(void **state)
{
    struct host *host = *state;
    struct turn_id id = send_turn(host, ROLE_reviewer, "approve");
    worker_start_as(host, "w1", "log.after_commit:kill:3", false);
    worker_wait_killed(host, "w1");
    wait_for(host, id.s, TURN_completed, 1);
    worker_drain(host, "w2");
    worker_drain(host, "w1");
    assert_int_equal(calls_of(host, id.s, 0), 1);
    assert_string_equal(outcomes_of(host, id.s), "completed");
    assert_string_equal(store_text(host, "w1", "SELECT count(*) FROM recorded_end"), "0");
}

/* The store is lost with its disk: work is lost with it, correctness is not (F6, rule 1). */
static void test_rule_01_a_lost_store_costs_work_only(void **state)
{
    struct host *host = *state;
    char command[160];
    struct turn_id id = send_turn(host, ROLE_reviewer, "approve,changes");
    worker_start_as(host, "w1", "log.before_commit:kill:3", false);
    worker_wait_killed(host, "w1");
    snprintf(command, sizeof(command), "rm -rf %s/data", host->dir);
    assert_int_equal(system(command), 0);
    worker_start(host, "w1");
    wait_for(host, id.s, TURN_completed, 2);
    worker_stop(host, "w1");
    assert_string_equal(attempts_of(host, id.s), "1:failed/lost/one 2:completed//one");
}

/* An older copy of the store comes back: the log wins (rules 6, 16). */
static void test_rule_16_an_older_store_follows_the_log(void **state)
{
    struct host *host = *state;
    char command[320];
    struct turn_id first = send_turn(host, ROLE_reviewer, "overloaded,approve");
    worker_drain(host, "w1");
    snprintf(command, sizeof(command), "cp -a %s/data %s/old", host->dir, host->dir);
    assert_int_equal(system(command), 0);
    struct turn_id second = send_turn(host, ROLE_reviewer, "bad_request");
    worker_start(host, "w1");
    wait_for(host, second.s, TURN_parked, 1);
    send_replay(host, second.s, 1, false);
    wait_for(host, second.s, TURN_parked, 2);
    worker_stop(host, "w1");
    snprintf(command, sizeof(command), "rm -rf %s/data && mv %s/old %s/data", host->dir, host->dir,
             host->dir);
    assert_int_equal(system(command), 0);
    worker_start(host, "w1");
    struct turn_id third = send_turn(host, ROLE_reviewer, "approve");
    wait_for(host, third.s, TURN_completed, 1);
    worker_stop(host, "w1");
    assert_string_equal(
        store_text(host, "w1",
                   "SELECT group_concat(state || attempt) FROM (SELECT state, attempt "
                   "FROM turn ORDER BY state)"),
        "completed2,completed1,parked2");
    (void)first;
}

/* U5: every point, each of its first passings; whatever dies, each turn ends once, and as what it
 * was. */
static void test_every_fault_point(void **state)
{
    struct host *host = *state;
    for (int point = 0; point < FAULT_COUNT; point++) {
        for (int n = 1; n <= 4; n++) {
            char fault[64];
            snprintf(fault, sizeof(fault), "%s:kill:%d", fault_name((enum fault)point), n);
            struct turn_id id = send_turn(host, n % 2 == 0 ? ROLE_arbiter : ROLE_reviewer,
                                          n % 2 == 0 ? "overloaded,proceed" : "overloaded,approve");
            worker_start_as(host, "w1", fault, true);
            (void)worker_wait(host, "w1"); /* killed, or the point is not passed so often */
            worker_drain(host, "w1");
            wait_for(host, id.s, TURN_completed, 0);
        }
    }
}

#endif

int main(void)
{
#ifdef BATON_FAULTS
    const struct CMUnitTest tests[] = {
        HOST_TEST(test_row_1_before_the_claim_is_in_the_log),
        HOST_TEST(test_row_1_on_another_worker),
        HOST_TEST(test_row_2_claimed_and_not_in_the_store),
        HOST_TEST(test_row_2_with_the_store_ready_and_not_committed),
        HOST_TEST(test_row_2_on_another_worker),
        HOST_TEST(test_row_3_while_the_executor_ran),
        HOST_TEST(test_row_3_on_another_worker),
        HOST_TEST(test_row_3_ended_and_not_recorded),
        HOST_TEST(test_row_4_recorded_and_not_in_the_log),
        HOST_TEST(test_row_4_a_recorded_failure_is_settled_as_one),
        HOST_TEST(test_row_4_on_another_worker_the_fact_is_reported),
        HOST_TEST(test_row_4_a_second_attempt_is_reported_too),
        HOST_TEST(test_row_4_a_report_that_comes_too_late),
        HOST_TEST(test_row_5_in_the_log_and_not_in_the_store),
        HOST_TEST(test_row_5_on_another_worker),
        HOST_TEST(test_rule_01_a_lost_store_costs_work_only),
        HOST_TEST(test_rule_16_an_older_store_follows_the_log),
        HOST_TEST(test_every_fault_point),
    };
    return cmocka_run_group_tests_name("worker: the crash table", tests, NULL, NULL);
#else
    return 0;
#endif
}
