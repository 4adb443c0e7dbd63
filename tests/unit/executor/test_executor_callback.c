/* Kind callback: a C function on threads; run under thread sanitizer, too (baton/executor.h). */
#include "pool_fixture.h"

#include <pthread.h>
#include <stdatomic.h>

struct work {
    atomic_int calls;
    atomic_int inside;
    atomic_int most_inside;
    atomic_bool release;
    atomic_int stops_seen;
};

static int enter(struct work *work)
{
    int inside = atomic_fetch_add(&work->inside, 1) + 1;
    int most = atomic_load(&work->most_inside);
    while (inside > most && !atomic_compare_exchange_weak(&work->most_inside, &most, inside)) {
    }
    return atomic_fetch_add(&work->calls, 1) + 1;
}

static int leave(struct work *work, int status)
{
    atomic_fetch_sub(&work->inside, 1);
    return status;
}

static void open_callback(struct fixture *f, struct work *work, baton_executor_fn fn, int threads)
{
    memset(work, 0, sizeof(*work));
    fixture_new(f, EXECUTOR_KIND_callback);
    f->set.callback = fn;
    f->set.callback_arg = work;
    f->set.callback_threads = threads;
    f->set.parallel = 16;
    fixture_open(f, NULL);
}

static int approve_all(const struct baton_attempt *attempt, struct baton_result *result, void *arg)
{
    enter(arg);
    (void)attempt;
    baton_result_verdict(result, "approve", NULL);
    return leave(arg, 0);
}

static int tell_facts(const struct baton_attempt *attempt, struct baton_result *result, void *arg)
{
    char summary[512];
    size_t len;
    const char *turn = baton_attempt_turn(attempt, &len);
    enter(arg);
    snprintf(summary, sizeof(summary), "%s %d %s %s %s %d %s %s %s %d %zu %s",
             baton_attempt_turn_id(attempt), baton_attempt_number(attempt),
             baton_attempt_role(attempt), baton_attempt_service(attempt),
             baton_attempt_task_id(attempt), baton_attempt_task_rev(attempt),
             baton_attempt_run_id(attempt), baton_attempt_intent(attempt),
             baton_attempt_place(attempt), (int)baton_attempt_read_only(attempt), len,
             baton_attempt_stopped(attempt) ? "stopped" : "on");
    if (strlen(turn) != len || baton_attempt_time_left_ms(attempt) <= 0 ||
        baton_attempt_env(attempt, "ABSENT") != NULL ||
        strcmp(baton_attempt_traceparent(attempt), TRACE) != 0) {
        return leave(arg, 1);
    }
    baton_attempt_progress(attempt, baton_attempt_env(attempt, "TOKEN"));
    baton_result_output(result, "out ", 4);
    baton_result_output(result, baton_attempt_env(attempt, "TOKEN"),
                        strlen(baton_attempt_env(attempt, "TOKEN")));
    baton_result_verdict(result, "approve", summary);
    return leave(arg, 0);
}

static void test_callback_sees_its_attempt(void **state)
{
    (void)state;
    struct fixture f;
    struct work work;
    struct executor_env *env;
    setenv("CALLBACK_TEST_TOKEN", "token-of-the-callback", 1);
    struct config_env values[] = {
        {(char *)"TOKEN", ENV_SOURCE_from, (char *)"CALLBACK_TEST_TOKEN"}};
    assert_int_equal(executor_env_resolve(values, 1, NULL, 0, &env, NULL), BATON_OK);
    open_callback(&f, &work, tell_facts, 0);
    f.job.env = env;
    f.job.place = "/tmp";
    f.job.read_only = true;
    fixture_start(&f);
    executor_env_free(env); /* the attempt has its share */
    struct executor_event *event = fixture_next(&f, EXECUTOR_EVENT_end);
    assert_string_equal(event->end.output, "out ***");
    assert_string_equal(f.progress, "***\n");
    expect_ok(event, VERDICT_approve,
              "{\"verdict\":\"approve\",\"summary\":\"" TURN
              " 1 reviewer lint T-41/a#1 7 r-9 review /tmp 1 33 on\"}");
    fixture_done(&f);
}

static int by_attempt(const struct baton_attempt *attempt, struct baton_result *result, void *arg)
{
    enter(arg);
    switch (baton_attempt_number(attempt)) {
    case 1:
        return leave(arg, 0);
    case 2:
        return leave(arg, 75);
    case 3:
        return leave(arg, 77);
    case 4:
        return leave(arg, -1);
    case 5:
        baton_result_verdict(result, "approve", NULL);
        return leave(arg, 65);
    case 6:
        baton_result_verdict(result, "done", NULL);
        return leave(arg, 0);
    case 7:
        baton_result_fail(result, "rate_limited", "slow \"down\"\n", 1234);
        return leave(arg, 0);
    case 8:
        baton_result_fail(result, "killed", NULL, 0);
        return leave(arg, 0);
    case 9:
        baton_result_json(result, "{\"verdict\":\"approve\"}{}", 23);
        return leave(arg, 0);
    case 10: {
        char *large = calloc(1, 200000);
        baton_result_json(result, large, 200000);
        free(large);
        return leave(arg, 0);
    }
    default:
        baton_result_fail(result, "auth", NULL, 0);
        baton_result_json(result, "{\"verdict\":\"approve\",\"items\":[1]}", 33);
        return leave(arg, 0); /* the last call counts */
    }
}

static void test_ends_are_those_of_exec(void **state)
{
    (void)state;
    static const struct {
        enum failure failure;
        const char *message;
    } rows[] = {{FAILURE_no_verdict, "without a result"},
                {FAILURE_unavailable, "75"},
                {FAILURE_auth, "77"},
                {FAILURE_crash, "-1"},
                {FAILURE_bad_request, "65"},
                {FAILURE_no_verdict, "'done'"},
                {FAILURE_rate_limited, "slow \"down\""},
                {FAILURE_invalid_output, "'killed'"},
                {FAILURE_invalid_output, "not one JSON"},
                {FAILURE_invalid_output, "larger"}};
    struct fixture f;
    struct work work;
    open_callback(&f, &work, by_attempt, 1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        f.job.attempt = (int32_t)i + 1;
        struct executor_event *event = fixture_run(&f);
        assert_int_equal(event->end.retry_after_ms, i == 6 ? 1234 : 0);
        expect_failure(event, rows[i].failure, rows[i].message);
    }
    f.job.attempt = 11;
    expect_ok(fixture_run(&f), VERDICT_approve, "{\"verdict\":\"approve\",\"items\":[1]}");
    fixture_done(&f);
}

static void run_many(int threads, int count)
{
    struct fixture f;
    struct work work;
    bool *seen = calloc((size_t)count + 1, sizeof(*seen));
    int ended = 0;
    open_callback(&f, &work, approve_all, threads);
    for (int i = 1; i <= count;) {
        f.job.attempt = i;
        if (executor_start(f.pool, &f.job, NULL) == BATON_OK) {
            i++;
        }
        for (struct executor_event *event;
             i - 1 - ended >= 64 && (event = fixture_next(&f, EXECUTOR_EVENT_end)) != NULL;) {
            assert_true(event->end.ok && !seen[event->attempt]);
            seen[event->attempt] = true;
            ended++;
            executor_event_free(event);
        }
    }
    for (; ended < count; ended++) {
        struct executor_event *event = fixture_next(&f, EXECUTOR_EVENT_end);
        assert_true(event->end.ok && !seen[event->attempt]);
        seen[event->attempt] = true;
        executor_event_free(event);
    }
    assert_int_equal(atomic_load(&work.calls), count);
    assert_true(atomic_load(&work.most_inside) <= threads);
    fixture_done(&f);
    free(seen);
}

static void test_many_turns_each_ends_once(void **state)
{
    (void)state;
    run_many(1, 3000);
    run_many(4, 3000);
}

static int wait_for_release(const struct baton_attempt *attempt, struct baton_result *result,
                            void *arg)
{
    struct work *work = arg;
    enter(work);
    while (!atomic_load(&work->release)) {
        baton_attempt_progress(attempt, "still here");
        usleep(1000);
    }
    baton_result_verdict(result, "approve", NULL);
    return leave(work, 0);
}

static int heed_stop(const struct baton_attempt *attempt, struct baton_result *result, void *arg)
{
    struct work *work = arg;
    enter(work);
    while (!baton_attempt_stopped(attempt)) {
        usleep(1000);
    }
    atomic_fetch_add(&work->stops_seen, 1);
    baton_result_verdict(result, "approve", NULL);
    return leave(work, 0);
}

static void wait_inside(struct work *work, int n)
{
    while (atomic_load(&work->inside) != n) {
        usleep(500);
    }
}

static void test_stop_is_heeded(void **state)
{
    (void)state;
    struct fixture f;
    struct work work;
    open_callback(&f, &work, heed_stop, 1);
    fixture_start(&f);
    wait_inside(&work, 1);
    executor_stop(f.pool, &f.job.turn, 1, EXECUTOR_STOP_stop);
    expect_ok(fixture_next(&f, EXECUTOR_EVENT_end), VERDICT_approve, "{\"verdict\":\"approve\"}");
    f.job.deadline_ms = 1000;
    expect_failure(fixture_run(&f), FAILURE_timeout, "deadline");
    assert_int_equal(atomic_load(&work.stops_seen), 2);
    fixture_done(&f);
}

static void test_waiting_turn_is_withdrawn(void **state)
{
    (void)state;
    struct fixture f;
    struct work work;
    open_callback(&f, &work, wait_for_release, 1);
    fixture_start(&f);
    wait_inside(&work, 1);
    f.job.attempt = 2;
    fixture_start(&f);
    executor_stop(f.pool, &f.job.turn, 2, EXECUTOR_STOP_cancel);
    struct executor_event *event = fixture_next(&f, EXECUTOR_EVENT_end);
    assert_int_equal(event->attempt, 2);
    assert_true(event->end.never_started && event->end.killed_by_stop);
    expect_failure(event, FAILURE_killed, "cancel");
    atomic_store(&work.release, true);
    expect_ok(fixture_next(&f, EXECUTOR_EVENT_end), VERDICT_approve, "{\"verdict\":\"approve\"}");
    assert_int_equal(atomic_load(&work.calls), 1);
    fixture_done(&f);
}

static void test_E06_callback_that_does_not_return_frees_its_slot(void **state)
{
    (void)state;
    struct fixture f;
    struct work work;
    open_callback(&f, &work, wait_for_release, 1);
    f.job.deadline_ms = 1000; /* the thread begins before that, or it would be withdrawn */
    for (int attempt = 1; attempt <= 9; attempt++) { /* one, and eight that stand in */
        f.job.attempt = attempt;
        expect_failure(fixture_run(&f), FAILURE_timeout, "deadline");
        wait_inside(&work, attempt);
    }
    f.job.attempt = 10; /* no thread is left: it waits, and never starts */
    struct executor_event *event = fixture_run(&f);
    assert_true(event->end.never_started);
    expect_failure(event, FAILURE_timeout, "before it could start");
    atomic_store(&work.release, true); /* all return: their late results are dropped */
    wait_inside(&work, 0);
    f.job.deadline_ms = WAIT_MS;
    f.job.attempt = 11;
    expect_ok(fixture_run(&f), VERDICT_approve, "{\"verdict\":\"approve\"}");
    assert_int_equal(atomic_load(&work.calls), 10);
    fixture_done(&f);
}

static void test_free_leaves_a_hanging_callback_behind(void **state)
{
    (void)state;
    static struct work work; /* the thread that is left behind still reads it */
    struct fixture f;
    open_callback(&f, &work, wait_for_release, 1);
    fixture_start(&f);
    wait_inside(&work, 1);
    fixture_done(&f);
    atomic_store(&work.release, true);
    wait_inside(&work, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_callback_sees_its_attempt),
        cmocka_unit_test(test_ends_are_those_of_exec),
        cmocka_unit_test(test_many_turns_each_ends_once),
        cmocka_unit_test(test_stop_is_heeded),
        cmocka_unit_test(test_waiting_turn_is_withdrawn),
        cmocka_unit_test(test_E06_callback_that_does_not_return_frees_its_slot),
        cmocka_unit_test(test_free_leaves_a_hanging_callback_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
