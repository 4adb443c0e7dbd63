/* Kind child: the protocol, its refusals, and who ends when a child does (worker/EXECUTOR.md). */
#include "pool_fixture.h"

#include <signal.h>
#include <sys/wait.h>

static void open_mode(struct fixture *f, const char *mode)
{
    fixture_new(f, EXECUTOR_KIND_child);
    f->set.hello_ms = 20000;
    const char *const command[] = {BATON_TEST_SOURCE "/tests/unit/executor/child_modes.py", mode,
                                   f->dir, NULL};
    fixture_open(f, command);
}

static struct executor_env *declare(const char *profile, const char *token)
{
    struct executor_env *env;
    struct baton_error err;
    setenv("CHILD_TEST_TOKEN", token, 1);
    struct config_env values[] = {{(char *)"PROFILE", ENV_SOURCE_value, (char *)profile},
                                  {(char *)"TOKEN", ENV_SOURCE_from, (char *)"CHILD_TEST_TOKEN"}};
    assert_int_equal(executor_env_resolve(values, 2, NULL, 0, &env, &err), BATON_OK);
    return env;
}

static size_t starts(const struct fixture *f)
{
    char path[128];
    struct stat st;
    snprintf(path, sizeof(path), "%s/starts", f->dir);
    return stat(path, &st) == 0 ? (size_t)st.st_size : 0;
}

static void test_one_child_does_many_turns(void **state)
{
    (void)state;
    struct fixture f;
    open_mode(&f, "answer");
    f.set.parallel = 1;
    struct executor_env *env = declare("team", "token-of-the-team");
    f.job.env = env;
    f.job.place = "/tmp";
    for (int attempt = 1; attempt <= 20; attempt++) {
        char expected[300];
        f.job.attempt = attempt;
        snprintf(
            expected, sizeof(expected),
            "{\"verdict\": \"approve\", \"summary\": \"***\", \"data\": {\"role\": \"reviewer\", "
            "\"place\": \"/tmp\", \"attempt\": \"%d\", \"version\": 1, \"marker\": \"0\", "
            "\"profile\": \"team\"}}",
            attempt);
        struct executor_event *event = fixture_run(&f);
        assert_string_equal(event->end.output, "");
        expect_ok(event, VERDICT_approve, expected);
    }
    assert_int_equal(starts(&f), 1);
    fixture_done(&f);
    executor_env_free(env);
}

static void test_L_41_environment_of_a_child(void **state)
{
    (void)state;
    struct fixture f;
    open_mode(&f, "environment");
    setenv("CANARY_OF_THE_WORKER", "must not be seen", 1);
    /* Python itself adds LC_CTYPE where LANG is C; with C.UTF-8 it does not */
    expect_ok(
        fixture_run(&f), VERDICT_approve,
        "{\"verdict\": \"approve\", \"items\": [\"BATON_ATTEMPT\", \"BATON_BOOT\", \"BATON_MODE\", "
        "\"BATON_SCRATCH\", \"BATON_SERVICE\", \"BATON_WORKER\", \"HOME\", \"LANG\", \"PATH\", "
        "\"TMPDIR\"]}");
    fixture_done(&f);
}

static void test_progress_comes_masked_before_the_end(void **state)
{
    (void)state;
    struct fixture f;
    open_mode(&f, "progress");
    struct executor_env *env = declare("team", "token-of-the-team");
    f.job.env = env;
    expect_ok(fixture_run(&f), VERDICT_approve, "{\"verdict\": \"approve\"}");
    assert_string_equal(f.progress, "step 0 ***\nstep 1 ***\nstep 2 ***\n");
    fixture_done(&f);
    executor_env_free(env);
}

static void test_ends_of_turns(void **state)
{
    (void)state;
    static const struct {
        const char *mode;
        enum failure failure;
        const char *message;
        bool never_started;
    } rows[] = {
        {"class", FAILURE_quota, "spent", false},
        {"illegal", FAILURE_no_verdict, "'done'", false},
        {"crash", FAILURE_crash, "exit status 9: about to fall", false},
        {"killed", FAILURE_killed, "signal 9", false},
        {"close-output", FAILURE_crash, "closed its standard output", false},
        {"junk", FAILURE_invalid_output, "not JSON", false},
        {"too-long", FAILURE_invalid_output, "more than 1048576 bytes", false},
        {"unknown-member", FAILURE_invalid_output, "unknown members", false},
        {"unknown-type", FAILURE_invalid_output, "no hello, progress or result", false},
        {"unknown-id", FAILURE_invalid_output, "does not have", false},
        {"no-result-member", FAILURE_invalid_output, "a result without result", false},
        {"large-result", FAILURE_invalid_output, "larger than", false},
        {"second-hello", FAILURE_invalid_output, "second hello", false},
        {"exit-before-hello", FAILURE_crash, "exit status 3", true},
        {"wrong-protocol", FAILURE_unavailable, "protocol 1", true},
        {"junk-hello", FAILURE_unavailable, "not JSON", true},
        {"result-before-hello", FAILURE_unavailable, "before its hello", true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture f;
        open_mode(&f, rows[i].mode);
        struct executor_event *event = fixture_run(&f);
        assert_int_equal(event->end.never_started, rows[i].never_started);
        if (strcmp(rows[i].mode, "crash") == 0) {
            assert_string_equal(event->end.output, "[standard error]\nabout to fall\n");
        }
        expect_failure(event, rows[i].failure, rows[i].message);
        fixture_done(&f);
    }
}

static void test_hello_has_a_deadline(void **state)
{
    (void)state;
    struct fixture f;
    fixture_new(&f, EXECUTOR_KIND_child);
    f.set.hello_ms = 300;
    const char *const command[] = {BATON_TEST_SOURCE "/tests/unit/executor/child_modes.py",
                                   "no-hello", f.dir, NULL};
    fixture_open(&f, command);
    struct executor_event *event = fixture_run(&f);
    assert_true(event->end.never_started);
    expect_failure(event, FAILURE_unavailable, "did not say hello");
    fixture_done(&f);
}

static void test_second_result_ends_the_child_not_the_turn(void **state)
{
    (void)state;
    struct fixture f;
    open_mode(&f, "two-results");
    expect_ok(fixture_run(&f), VERDICT_approve, "{\"verdict\": \"approve\"}");
    wait_process_gone(fixture_number(&f, "two"), WAIT_MS);
    f.job.attempt = 2;
    expect_ok(fixture_run(&f), VERDICT_approve, "{\"verdict\": \"approve\"}"); /* a new child */
    assert_int_equal(starts(&f), 2);
    fixture_done(&f);
}

static void test_result_before_exit_counts(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct fixture f;
        open_mode(&f, "answer-and-exit");
        expect_ok(fixture_run(&f), VERDICT_approve, "{\"verdict\": \"approve\"}");
        fixture_done(&f);
    }
}

static void test_parallel_turns_on_one_child(void **state)
{
    (void)state;
    struct fixture f;
    open_mode(&f, "parallel");
    f.job.attempt = 1;
    fixture_start(&f);
    f.job.attempt = 2;
    fixture_start(&f);
    f.job.attempt = 3;
    fixture_start(&f);
    for (int i = 0; i < 3; i++) {
        struct executor_event *event = fixture_next(&f, EXECUTOR_EVENT_end);
        expect_ok(event, VERDICT_approve, "{\"verdict\": \"approve\", \"summary\": \"one of 3\"}");
    }
    assert_int_equal(starts(&f), 1); /* nobody knew how many it takes: its hello was waited for */
    fixture_done(&f);
}

static void test_children_beside_each_other_without_parallel(void **state)
{
    (void)state;
    struct fixture f;
    open_mode(&f, "hang");
    for (int attempt = 1; attempt <= 3; attempt++) {
        f.job.attempt = attempt;
        fixture_start(&f);
    }
    long pids[] = {fixture_number(&f, "hang-1"), fixture_number(&f, "hang-2"),
                   fixture_number(&f, "hang-3")};
    assert_true(pids[0] != pids[1] && pids[1] != pids[2] && pids[0] != pids[2]);
    /* the death of one concerns its own turn only */
    kill((pid_t)pids[1], SIGTERM);
    struct executor_event *event = fixture_next(&f, EXECUTOR_EVENT_end);
    assert_int_equal(event->attempt, 2);
    expect_failure(event, FAILURE_crash, "signal 15");
    assert_true(process_alive(pids[0]) && process_alive(pids[2]));
    fixture_done(&f);
    assert_false(process_alive(pids[0]) || process_alive(pids[2]));
}

static void test_E16_deadline_cancels_then_kills_the_child(void **state)
{
    (void)state;
    struct fixture f;
    open_mode(&f, "hang");
    f.job.deadline_ms = 3000;
    fixture_start(&f);
    long pid = fixture_number(&f, "hang-1");
    struct executor_event *event = fixture_next(&f, EXECUTOR_EVENT_end);
    fixture_number(&f, "cancelled");
    expect_failure(event, FAILURE_timeout, "3.000 s");
    wait_process_gone(pid, WAIT_MS);
    fixture_done(&f);
}

static void test_E06_progress_renews_the_heartbeat(void **state)
{
    (void)state;
    struct fixture f;
    open_mode(&f, "slow-progress");
    f.job.heartbeat_ms = 2000;
    expect_ok(fixture_run(&f), VERDICT_approve, "{\"verdict\": \"approve\"}");
    fixture_done(&f);
    open_mode(&f, "hang");
    f.job.heartbeat_ms = 700;
    fixture_start(&f);
    struct executor_event *event = fixture_next(&f, EXECUTOR_EVENT_end);
    fixture_number(&f, "cancelled");
    expect_failure(event, FAILURE_timeout, "no progress for 0.700 s");
    fixture_done(&f);
}

static void test_others_on_a_killed_child_are_killed(void **state)
{
    (void)state;
    struct fixture f;
    open_mode(&f, "parallel-hang");
    fixture_start(&f);
    long pid = fixture_number(&f, "hang-1");
    f.job.attempt = 2;
    fixture_start(&f);
    assert_int_equal(fixture_number(&f, "hang-2"), pid);
    executor_kill(f.pool, &f.job.turn, 2);
    bool seen[3] = {false};
    for (int i = 0; i < 2; i++) {
        struct executor_event *event = fixture_next(&f, EXECUTOR_EVENT_end);
        seen[event->attempt] = true;
        assert_int_equal(event->end.killed_by_stop, event->attempt == 2);
        expect_failure(event, FAILURE_killed, event->attempt == 2 ? "stop" : "another turn on it");
    }
    assert_true(seen[1] && seen[2]);
    fixture_done(&f);
}

static void test_junk_ends_all_turns_of_the_child(void **state)
{
    (void)state;
    struct fixture f;
    open_mode(&f, "parallel-junk");
    for (int attempt = 1; attempt <= 3; attempt++) {
        f.job.attempt = attempt;
        fixture_start(&f);
    }
    for (int i = 0; i < 3; i++) {
        expect_failure(fixture_next(&f, EXECUTOR_EVENT_end), FAILURE_invalid_output, "not JSON");
    }
    fixture_done(&f);
}

static void test_stop_may_still_bring_a_verdict(void **state)
{
    (void)state;
    struct fixture f;
    fixture_new(&f, EXECUTOR_KIND_child);
    f.set.grace_ms = 20000;
    const char *const command[] = {BATON_TEST_SOURCE "/tests/unit/executor/child_modes.py",
                                   "cancel-answers", f.dir, NULL};
    fixture_open(&f, command);
    fixture_start(&f);
    fixture_number(&f, "hang-1");
    executor_stop(f.pool, &f.job.turn, 1, EXECUTOR_STOP_stop);
    expect_ok(fixture_next(&f, EXECUTOR_EVENT_end), VERDICT_approve, "{\"verdict\": \"approve\"}");
    fixture_done(&f);
}

static void test_deaf_child_never_started_a_turn_it_did_not_read(void **state)
{
    (void)state;
    struct fixture f;
    open_mode(&f, "deaf");
    f.job.deadline_ms = 4000;
    char *large = malloc(250000);
    memset(large, ' ', 250000);
    memcpy(large, "{}", 2);
    f.job.json = large;
    f.job.json_len = 250000;
    struct executor_event *event = fixture_run(&f);
    assert_false(event->end.never_started); /* its pipe took the beginning of the line */
    expect_failure(event, FAILURE_timeout, "deadline");
    free(large);
    fixture_done(&f);
}

static void test_profiles_have_their_own_children(void **state)
{
    (void)state;
    struct fixture f;
    fixture_new(&f, EXECUTOR_KIND_child);
    f.set.parallel = 1;
    const char *const command[] = {BATON_TEST_SOURCE "/tests/unit/executor/child_modes.py",
                                   "answer", f.dir, NULL};
    fixture_open(&f, command);
    struct executor_env *team = declare("team", "token-of-the-team");
    struct executor_env *backup = declare("backup", "token-of-the-backup");
    struct executor_env *rotated = declare("backup", "another-token-now");
    const struct {
        struct executor_env *env;
        const char *profile;
        size_t starts;
    } rows[] = {{team, "team", 1},
                {team, "team", 1},
                {backup, "backup", 2},  /* the idle one of the other profile makes room */
                {rotated, "backup", 3}, /* other values: another child */
                {rotated, "backup", 3}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char part[64];
        f.job.attempt = (int32_t)i + 1;
        f.job.env = rows[i].env;
        f.job.profile = plain_id_of(rows[i].profile);
        struct executor_event *event = fixture_run(&f);
        assert_true(event->end.ok);
        snprintf(part, sizeof(part), "\"profile\": \"%s\"", rows[i].profile);
        assert_non_null(strstr(event->end.result, part));
        executor_event_free(event);
        assert_int_equal(starts(&f), rows[i].starts);
    }
    wait_process_gone(fixture_number(&f, "pid-team"), WAIT_MS); /* let go by the end of its input */
    fixture_number(&f, "stdin-ended");
    fixture_done(&f);
    executor_env_free(team);
    executor_env_free(backup);
    executor_env_free(rotated);
}

static void test_dying_children_make_the_next_wait(void **state)
{
    (void)state;
    struct fixture f;
    open_mode(&f, "crash");
    int64_t begin = mono_now().v;
    for (int attempt = 1; attempt <= 4; attempt++) {
        f.job.attempt = attempt;
        expect_failure(fixture_run(&f), FAILURE_crash, "exit status 9");
    }
    assert_true(mono_now().v - begin >= 560); /* 100 + 200 + 400 ms, less a jitter of 20 % */
    assert_int_equal(starts(&f), 4);
    fixture_done(&f);
}

static void test_G07_child_dies_with_its_worker(void **state)
{
    (void)state;
    struct fixture f;
    fixture_new(&f, EXECUTOR_KIND_child);
    pid_t worker = fork();
    if (worker == 0) {
        const char *const command[] = {BATON_TEST_SOURCE "/tests/unit/executor/child_modes.py",
                                       "hang", f.dir, NULL};
        fixture_open(&f, command);
        fixture_start(&f);
        pause();
        _exit(0);
    }
    long pid = fixture_number(&f, "hang-1");
    kill(worker, SIGKILL);
    waitpid(worker, NULL, 0);
    wait_process_gone(pid, WAIT_MS);
    fixture_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_child_does_many_turns),
        cmocka_unit_test(test_L_41_environment_of_a_child),
        cmocka_unit_test(test_progress_comes_masked_before_the_end),
        cmocka_unit_test(test_ends_of_turns),
        cmocka_unit_test(test_hello_has_a_deadline),
        cmocka_unit_test(test_second_result_ends_the_child_not_the_turn),
        cmocka_unit_test(test_result_before_exit_counts),
        cmocka_unit_test(test_parallel_turns_on_one_child),
        cmocka_unit_test(test_children_beside_each_other_without_parallel),
        cmocka_unit_test(test_E16_deadline_cancels_then_kills_the_child),
        cmocka_unit_test(test_E06_progress_renews_the_heartbeat),
        cmocka_unit_test(test_others_on_a_killed_child_are_killed),
        cmocka_unit_test(test_junk_ends_all_turns_of_the_child),
        cmocka_unit_test(test_stop_may_still_bring_a_verdict),
        cmocka_unit_test(test_deaf_child_never_started_a_turn_it_did_not_read),
        cmocka_unit_test(test_profiles_have_their_own_children),
        cmocka_unit_test(test_dying_children_make_the_next_wait),
        cmocka_unit_test(test_G07_child_dies_with_its_worker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
