/* Kind exec with real programs (DESIGN section 7; FIELD G, E06, E16, C15; RULES L; RECORD X34). */
#include "pool_fixture.h"

#include "common/base/limits.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

static void test_verdict_output_and_turn(void **state)
{
    (void)state;
    struct fixture f;
    fixture_new(&f, EXECUTOR_KIND_exec);
    fixture_open_script(&f,
                        "cat; echo; echo problem >&2; printf ' {\"verdict\":\"approve\"}\\n' >&3");
    struct executor_event *event = fixture_run(&f);
    assert_string_equal(event->turn.s, TURN);
    assert_int_equal(event->attempt, 1);
    assert_string_equal(event->end.output,
                        "{\"version\":1,\n\"summary\":\"Review\"}\n[standard error]\nproblem\n");
    assert_false(event->end.output_truncated);
    assert_false(event->end.never_started);
    assert_false(event->end.killed_by_stop);
    assert_true(event->end.started_at.v > 0 && event->end.ended_at.v >= event->end.started_at.v);
    expect_ok(event, VERDICT_approve, "{\"verdict\":\"approve\"}");
    fixture_done(&f);
}

static void test_exit_statuses(void **state)
{
    (void)state;
    static const struct {
        const char *end;
        enum failure failure;
        const char *message;
    } rows[] = {
        {"exit 0", FAILURE_no_verdict, "without a result"},
        {"exit 65", FAILURE_bad_request, "65"},
        {"exit 75", FAILURE_unavailable, "75"},
        {"exit 77", FAILURE_auth, "77"},
        {"exit 1", FAILURE_crash, "exit status 1"},
        {"echo first >&2; printf 'disk \\033 full\n\n' >&2; exit 2", FAILURE_crash,
         "exit status 2: disk \\x1b full"},
        {"exit 137", FAILURE_crash, "exit status 137"},
        {"kill -9 $$", FAILURE_killed, "signal 9"},
        {"kill -SEGV $$", FAILURE_crash, "signal 11"},
        {"printf '{\"verdict\":\"approve\"}' >&3; exit 75", FAILURE_unavailable, "75"},
        {"printf '{\"verdict\":\"done\"}' >&3", FAILURE_no_verdict, "'done' is none of the role"},
        {"printf '{\"class\":\"policy\",\"message\":\"no\\\\u001b[1m\"}' >&3; exit 9",
         FAILURE_policy, "no\\x1b[1m"},
        {"printf '{\"verdict\":\"approve\"}{\"verdict\":\"approve\"}' >&3", FAILURE_invalid_output,
         "not one JSON object"},
        {"printf junk >&3", FAILURE_invalid_output, "not one JSON object"},
        {"head -c 70000 /dev/zero | tr '\\0' ' ' >&3; printf '{\"verdict\":\"approve\"}' >&3",
         FAILURE_invalid_output, "larger"},
        {"printf '{\"verdict\":\"appr' >&3; kill -9 $$", FAILURE_killed, "signal 9"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture f;
        fixture_new(&f, EXECUTOR_KIND_exec);
        fixture_open_script(&f, rows[i].end);
        expect_failure(fixture_run(&f), rows[i].failure, rows[i].message);
        fixture_done(&f);
    }
}

/* The declared values of a test, resolved from value, file and variable. */
static struct executor_env *declare(struct fixture *f, const char *file_value)
{
    char path[256];
    struct baton_error err = {0};
    struct executor_env *env;
    snprintf(path, sizeof(path), "%s/secret", f->dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(file_value, file);
    fclose(file);
    setenv("TEST_FROM", "from-variable-secret", 1);
    struct config_env base[] = {{(char *)"REGION", ENV_SOURCE_value, (char *)"eu-west"},
                                {(char *)"TOKEN", ENV_SOURCE_value, (char *)"replaced"}};
    struct config_env profile[] = {{(char *)"TOKEN", ENV_SOURCE_file, path},
                                   {(char *)"OTHER", ENV_SOURCE_from, (char *)"TEST_FROM"}};
    if (executor_env_resolve(base, 2, profile, 2, &env, &err) != BATON_OK) {
        fail_msg("%s", err.text);
    }
    return env;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void test_L_41_environment_is_what_is_declared(void **state)
{
    (void)state;
    struct fixture f;
    fixture_new(&f, EXECUTOR_KIND_exec);
    setenv("CANARY_OF_THE_WORKER", "must not be seen", 1);
    const char *const command[] = {"env", NULL};
    fixture_open(&f, command);
    struct executor_env *env = declare(&f, "tok-secret-value\n");
    f.job.env = env;
    f.job.read_only = true;
    struct executor_event *event = fixture_run(&f);
    char *lines[64];
    int n = 0;
    for (char *at = strtok(event->end.output, "\n"); at != NULL && n < 64;
         at = strtok(NULL, "\n")) {
        lines[n++] = at;
    }
    qsort(lines, (size_t)n, sizeof(lines[0]), by_text);
    char scratch[128] = "";
    for (int i = 0; i < n; i++) {
        if (strncmp(lines[i], "HOME=", 5) == 0) {
            strcpy(scratch, lines[i] + 5);
        }
    }
    char expected[160];
    snprintf(expected, sizeof(expected), "%s/scratch/lint.host-1/" TURN ".1.", f.dir);
    assert_int_equal(strncmp(scratch, expected, strlen(expected)), 0);
    const char *const wanted[][2] = {
        {"BATON_ATTEMPT", "1"},
        {"BATON_BOOT", BOOT},
        {"BATON_HANDOFF", TURN ".1"},
        {"BATON_INTENT", "review"},
        {"BATON_MODE", "unattended"},
        {"BATON_PLACE", scratch},
        {"BATON_READ_ONLY", "1"},
        {"BATON_ROLE", "reviewer"},
        {"BATON_RUN_ID", "r-9"},
        {"BATON_SCRATCH", scratch},
        {"BATON_SERVICE", "lint"},
        {"BATON_TASK_ID", "T-41/a#1"},
        {"BATON_TASK_REV", "7"},
        {"BATON_TURN_ID", TURN},
        {"BATON_WORKER", "lint/host-1"},
        {"HOME", scratch},
        {"LANG", "C.UTF-8"},
        {"OTHER", "***"},
        {"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
        {"REGION", "eu-west"},
        {"TMPDIR", scratch},
        {"TOKEN", "***"},
        {"TRACEPARENT", TRACE},
    };
    assert_int_equal(n, sizeof(wanted) / sizeof(wanted[0]));
    for (int i = 0; i < n; i++) {
        char line[256];
        snprintf(line, sizeof(line), "%s=%s", wanted[i][0], wanted[i][1]);
        assert_string_equal(lines[i], line);
    }
    executor_event_free(event);
    executor_env_free(env);
    fixture_done(&f);
}

static void test_declared_environment_is_checked(void **state)
{
    (void)state;
    struct baton_error err;
    struct executor_env *env;
    static const struct {
        struct config_env env;
        const char *part;
    } bad[] = {
        {{(char *)"BATON_ROLE", ENV_SOURCE_value, (char *)"owner"}, "BATON_ROLE"},
        {{(char *)"A=B", ENV_SOURCE_value, (char *)"x"}, "A=B"},
        {{(char *)"", ENV_SOURCE_value, (char *)"x"}, "names are"},
        {{(char *)"KEY", ENV_SOURCE_file, (char *)"/nonexistent/key"}, "/nonexistent/key"},
        {{(char *)"KEY", ENV_SOURCE_file, (char *)"/dev/zero"}, "no regular file"},
        {{(char *)"KEY", ENV_SOURCE_from, (char *)"NOT_SET_ANYWHERE"}, "NOT_SET_ANYWHERE"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(executor_env_resolve(NULL, 0, &bad[i].env, 1, &env, &err),
                         BATON_E_bad_config);
        assert_non_null(strstr(err.text, bad[i].part));
    }
}

static void test_L_40_secrets_are_masked_everywhere(void **state)
{
    (void)state;
    struct fixture f;
    fixture_new(&f, EXECUTOR_KIND_exec);
    fixture_open_script(
        &f, "printf 'key tok-sec'; sleep 0.05; printf 'ret-value end\\n'; printf %s \"$TOKEN\" | "
            "base64;"
            "printf '%s' \"$OTHER\" >&2;"
            "printf '{\"verdict\":\"approve\",\"summary\":\"with %s\"}' \"$TOKEN\" >&3");
    struct executor_env *env = declare(&f, "tok-secret-value");
    f.job.env = env;
    struct executor_event *event = fixture_run(&f);
    /* The last character of a padded base64 is not the secret's alone: it stays. */
    assert_string_equal(event->end.output, "key *** end\n***Q==\n[standard error]\n***");
    expect_ok(event, VERDICT_approve, "{\"verdict\":\"approve\",\"summary\":\"with ***\"}");
    fixture_done(&f);
    executor_env_free(env);

    fixture_new(&f, EXECUTOR_KIND_exec);
    fixture_open_script(&f, "printf '{\"class\":\"auth\",\"message\":\"bad %s\"}' \"$TOKEN\" >&3");
    f.job.env = env = declare(&f, "tok-secret-value");
    expect_failure(fixture_run(&f), FAILURE_auth, "bad ***");
    fixture_done(&f);
    executor_env_free(env);

    fixture_new(&f, EXECUTOR_KIND_exec);
    fixture_open_script(&f, "printf '{\"%s\":1}' \"$TOKEN\" >&3");
    f.job.env = env = declare(&f, "tok-secret-value");
    expect_failure(fixture_run(&f), FAILURE_invalid_output, "'***'");
    fixture_done(&f);
    executor_env_free(env);
}

static void test_G04_flood_is_drained_and_bounded(void **state)
{
    (void)state;
    struct fixture f;
    fixture_new(&f, EXECUTOR_KIND_exec);
    fixture_open_script(&f, "echo first; echo worst >&2;"
                            "head -c 200000000 /dev/zero | tr '\\0' o & "
                            "head -c 200000000 /dev/zero | tr '\\0' e >&2; wait;"
                            "echo last; echo final >&2; printf '{\"verdict\":\"changes\"}' >&3");
    struct executor_event *event = fixture_run(&f);
    assert_true(event->end.output_truncated);
    assert_true(event->end.output_len <= LIMIT_OUTPUT);
    assert_int_equal(strncmp(event->end.output, "first\noooo", 10), 0);
    assert_non_null(strstr(event->end.output, "bytes left out]"));
    assert_non_null(strstr(event->end.output, "oooolast\n[standard error]\nworst\neeee"));
    assert_string_equal(event->end.output + event->end.output_len - 10, "eeeefinal\n");
    executor_event_free(event);
    fixture_done(&f);
}

static void test_C15_output_becomes_text(void **state)
{
    (void)state;
    struct fixture f;
    fixture_new(&f, EXECUTOR_KIND_exec);
    fixture_open_script(&f, "printf 'a\\000b\\377c\\303\\244\\033[1m'; exit 75");
    struct executor_event *event = fixture_run(&f);
    assert_string_equal(event->end.output, "a\xEF\xBF\xBD"
                                           "b\xEF\xBF\xBD"
                                           "c\xC3\xA4\x1B[1m");
    executor_event_free(event);
    fixture_done(&f);
}

/* Grandchildren outside of the session, deaf to TERM, that hold all descriptors. */
#define TREE                                                                                       \
    "echo $$ > ../../../c; setsid sh -c 'echo $$ > ../../../a; exec sleep 1000' & "                \
    "(setsid sh -c 'trap \"\" TERM HUP; echo $$ > ../../../b; while :; do sleep 1000; done' &) ; "

static void test_G01_E06_E16_deadline_ends_the_whole_tree(void **state)
{
    (void)state;
    struct fixture f;
    fixture_new(&f, EXECUTOR_KIND_exec);
    fixture_open_script(&f, "trap '' TERM; " TREE "while :; do sleep 0.05; done");
    f.job.deadline_ms = 1500;
    fixture_start(&f);
    long pids[] = {fixture_number(&f, "a"), fixture_number(&f, "b"), fixture_number(&f, "c")};
    struct executor_event *event = fixture_next(&f, EXECUTOR_EVENT_end);
    for (int i = 0; i < 3; i++) {
        assert_false(process_alive(pids[i]));
    }
    assert_false(event->end.never_started);
    expect_failure(event, FAILURE_timeout, "1.500 s");
    fixture_done(&f);
}

/* Longer than the heartbeat in all, never without a sign for nearly so long; and one that is silent. */
static void test_E06_output_renews_the_heartbeat(void **state)
{
    static const char *const ways[] = {"echo step", "echo step >&2"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct fixture f;
        char script[256];
        fixture_new(&f, EXECUTOR_KIND_exec);
        snprintf(
            script, sizeof(script),
            "for i in $(seq 40); do %s; sleep 0.1; done; printf '{\"verdict\":\"approve\"}' >&3",
            ways[i]);
        fixture_open_script(&f, script);
        f.job.heartbeat_ms = 2000;
        expect_ok(fixture_run(&f), VERDICT_approve, "{\"verdict\":\"approve\"}");
        fixture_done(&f);
    }
    struct fixture f;
    fixture_new(&f, EXECUTOR_KIND_exec);
    fixture_open_script(&f, "echo begins; exec sleep 1000");
    f.job.heartbeat_ms = 700;
    struct executor_event *event = fixture_run(&f);
    assert_false(event->end.never_started || event->end.killed_by_stop);
    expect_failure(event, FAILURE_timeout, "no progress for 0.700 s");
    fixture_done(&f);
}

/* Signs of life move no deadline. */
static void test_E06_a_ticker_has_a_deadline(void **state)
{
    (void)state;
    struct fixture f;
    fixture_new(&f, EXECUTOR_KIND_exec);
    fixture_open_script(&f, "while :; do echo tick; sleep 0.02; done");
    f.job.heartbeat_ms = 2000;
    f.job.deadline_ms = 1000;
    expect_failure(fixture_run(&f), FAILURE_timeout, "the deadline of 1.000 s passed");
    fixture_done(&f);
}

static void test_verdict_after_the_deadline_is_late(void **state)
{
    (void)state;
    struct fixture f;
    fixture_new(&f, EXECUTOR_KIND_exec);
    fixture_open_script(&f, "trap 'printf \"{\\\"verdict\\\":\\\"approve\\\"}\" >&3; exit 0' TERM;"
                            "while :; do sleep 0.02; done");
    f.job.deadline_ms = 200;
    expect_failure(fixture_run(&f), FAILURE_timeout, "deadline");
    fixture_done(&f);
}

static void test_X34_descriptors_and_double_fork_do_not_hold_the_end(void **state)
{
    (void)state;
    struct fixture f;
    fixture_new(&f, EXECUTOR_KIND_exec);
    fixture_open_script(&f, TREE
                        "while [ ! -s ../../../a ] || [ ! -s ../../../b ]; do sleep 0.01; done;"
                        "printf '{\"verdict\":\"approve\"}' >&3; exit 0");
    struct executor_event *event = fixture_run(&f);
    assert_false(process_alive(fixture_number(&f, "a")));
    assert_false(process_alive(fixture_number(&f, "b")));
    expect_ok(event, VERDICT_approve, "{\"verdict\":\"approve\"}");
    fixture_done(&f);
}

static void test_stop_lets_a_verdict_finish(void **state)
{
    (void)state;
    struct fixture f;
    fixture_new(&f, EXECUTOR_KIND_exec);
    f.set.grace_ms = 20000;
    fixture_open_script(&f, "trap 'printf \"{\\\"verdict\\\":\\\"approve\\\"}\" >&3; exit 0' TERM;"
                            "echo 1 > ../../../ready; while :; do sleep 0.02; done");
    fixture_start(&f);
    fixture_number(&f, "ready");
    executor_stop(f.pool, &f.job.turn, 1, EXECUTOR_STOP_stop);
    expect_ok(fixture_next(&f, EXECUTOR_EVENT_end), VERDICT_approve, "{\"verdict\":\"approve\"}");
    executor_stop(f.pool, &f.job.turn, 1, EXECUTOR_STOP_stop); /* not known any more: nothing */
    fixture_done(&f);
}

static void test_stop_and_cancel_and_kill(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) {
        struct fixture f;
        fixture_new(&f, EXECUTOR_KIND_exec);
        f.set.grace_ms = how == 2 ? 600000 : 100;
        fixture_open_script(&f, "trap '' TERM; echo $$ > ../../../p; while :; do sleep 0.02; done");
        fixture_start(&f);
        long pid = fixture_number(&f, "p");
        if (how == 2) {
            executor_kill(f.pool, &f.job.turn, 1);
        } else {
            executor_stop(f.pool, &f.job.turn, 1,
                          how == 0 ? EXECUTOR_STOP_stop : EXECUTOR_STOP_cancel);
        }
        struct executor_event *event = fixture_next(&f, EXECUTOR_EVENT_end);
        assert_true(event->end.killed_by_stop);
        assert_false(event->end.never_started);
        assert_false(process_alive(pid));
        expect_failure(event, FAILURE_killed, how == 1 ? "cancel" : "stop");
        fixture_done(&f);
    }
}

static void test_beyond_parallel_waits_and_never_started(void **state)
{
    (void)state;
    struct fixture f;
    fixture_new(&f, EXECUTOR_KIND_exec);
    f.set.parallel = 1;
    fixture_open_script(&f, "echo $BATON_ATTEMPT >> ../../../started; echo 1 > ../../../p;"
                            "while [ ! -e ../../../go ]; do sleep 0.01; done;"
                            "printf '{\"verdict\":\"approve\"}' >&3");
    fixture_start(&f);
    fixture_number(&f, "p");
    f.job.attempt = 2;
    fixture_start(&f);
    f.job.attempt = 3;
    f.job.deadline_ms = 100;
    fixture_start(&f);
    f.job.attempt = 4;
    f.job.deadline_ms = WAIT_MS;
    fixture_start(&f);
    struct executor_event *event = fixture_next(&f, EXECUTOR_EVENT_end);
    assert_int_equal(event->attempt, 3);
    assert_true(event->end.never_started);
    assert_int_equal(event->end.started_at.v, 0);
    expect_failure(event, FAILURE_timeout, "before it could start");
    executor_stop(f.pool, &f.job.turn, 2, EXECUTOR_STOP_cancel);
    event = fixture_next(&f, EXECUTOR_EVENT_end);
    assert_int_equal(event->attempt, 2);
    assert_true(event->end.never_started && event->end.killed_by_stop);
    expect_failure(event, FAILURE_killed, "cancel");
    char path[256];
    snprintf(path, sizeof(path), "%s/go", f.dir);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    event = fixture_next(&f, EXECUTOR_EVENT_end);
    assert_int_equal(event->attempt, 1);
    executor_event_free(event);
    event = fixture_next(&f, EXECUTOR_EVENT_end);
    assert_int_equal(event->attempt, 4);
    expect_ok(event, VERDICT_approve, "{\"verdict\":\"approve\"}");
    fixture_done(&f);
}

static void test_place_is_the_working_directory(void **state)
{
    (void)state;
    struct fixture f;
    fixture_new(&f, EXECUTOR_KIND_exec);
    fixture_open_script(&f, "pwd; echo $BATON_PLACE; exit 75");
    f.job.place = f.dir;
    struct executor_event *event = fixture_run(&f);
    char expected[160];
    snprintf(expected, sizeof(expected), "%s\n%s\n", f.dir, f.dir);
    assert_string_equal(event->end.output, expected);
    executor_event_free(event);
    f.job.place = "/nonexistent/place";
    event = fixture_run(&f);
    assert_true(event->end.never_started);
    expect_failure(event, FAILURE_bad_request, "/nonexistent/place");
    fixture_done(&f);
}

static void test_scratch_is_private_and_goes_away(void **state)
{
    (void)state;
    struct fixture f;
    fixture_new(&f, EXECUTOR_KIND_exec);
    fixture_open_script(&f, "stat -c %a .; cd $HOME; ln -s / link; mkdir -p ro/x/y; touch ro/x/f; "
                            "chmod 500 ro/x/y ro/x ro; i=0; while [ $i -lt 300 ]; do mkdir d; cd d;"
                            "touch f; i=$((i+1)); done; exit 75");
    struct executor_event *event = fixture_run(&f);
    assert_string_equal(event->end.output, "700\n");
    executor_event_free(event);
    wait_scratch_empty(&f);
    fixture_done(&f);
}

static void test_program_that_vanished(void **state)
{
    (void)state;
    struct fixture f;
    char path[256];
    char command_line[300];
    fixture_new(&f, EXECUTOR_KIND_exec);
    snprintf(path, sizeof(path), "%s/program", f.dir);
    snprintf(command_line, sizeof(command_line), "cp /bin/true %s", path);
    assert_int_equal(system(command_line), 0);
    const char *const command[] = {path, NULL};
    fixture_open(&f, command);
    unlink(path);
    struct executor_event *event = fixture_run(&f);
    assert_true(event->end.never_started);
    expect_failure(event, FAILURE_unavailable, "cannot execute");
    fixture_done(&f);
}

static void test_programs_are_resolved_at_start(void **state)
{
    (void)state;
    struct fixture f;
    struct baton_error err;
    fixture_new(&f, EXECUTOR_KIND_exec);
    const char *bad[] = {"no-such-program-anywhere", "/etc/passwd", "relative/program", "/"};
    f.set.n_command = 1;
    for (size_t i = 0; i < 4; i++) {
        f.set.command = &bad[i];
        assert_int_equal(executor_pool_new(&f.set, f.events, &f.pool, &err), BATON_E_bad_config);
        assert_non_null(strstr(err.text, bad[i]));
    }
    const char *good = "true";
    f.set.command = &good;
    f.set.guard_path = "/nonexistent/baton-guard";
    assert_int_equal(executor_pool_new(&f.set, f.events, &f.pool, &err), BATON_E_bad_config);
    assert_non_null(strstr(err.text, "/nonexistent/baton-guard"));
    f.pool = NULL;
    fixture_done(&f);
}

static void test_prefix_stands_in_front(void **state)
{
    (void)state;
    struct fixture f;
    fixture_new(&f, EXECUTOR_KIND_exec);
    const char *const prefix[] = {"env", "-u", "LANG", "HOME=/declared"};
    f.set.prefix = prefix;
    f.set.n_prefix = 4;
    fixture_open_script(&f, "echo \"$HOME${LANG-unset}\"; exit 75");
    struct executor_event *event = fixture_run(&f);
    assert_string_equal(event->end.output, "/declaredunset\n");
    executor_event_free(event);
    fixture_done(&f);
}

/* RECORD 4: a prefix's user passes no folder of a store; where its scratch directories are is nobody else's. */
static void test_prefix_has_its_scratch_apart(void **state)
{
    (void)state;
    struct fixture f;
    struct baton_error err;
    struct stat st;
    char apart[256];
    char own[300];
    const char *const prefix[] = {"env", "LC_ALL=C"};
    fixture_new(&f, EXECUTOR_KIND_exec);
    snprintf(apart, sizeof(apart), "%s/apart", f.dir);
    snprintf(own, sizeof(own), "%s/lint.host-1", apart);
    f.set.prefix = prefix;
    f.set.n_prefix = 2;
    f.set.scratch_dir = apart;
    assert_int_equal(symlink("/tmp", apart), 0);
    const char *const command[] = {"/bin/true"};
    f.set.command = command;
    f.set.n_command = 1;
    assert_int_equal(executor_pool_new(&f.set, f.events, &f.pool, &err), BATON_E_bad_config);
    assert_non_null(strstr(err.text, apart));
    f.pool = NULL;
    assert_int_equal(unlink(apart), 0);

    fixture_open_script(&f, "stat -c %a . >&2; pwd; exit 75");
    struct executor_event *event = fixture_run(&f);
    assert_int_equal(strncmp(event->end.output, own, strlen(own)), 0);
    assert_non_null(strstr(event->end.output, "770"));
    executor_event_free(event);
    assert_int_equal(stat(apart, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0711);
    assert_int_equal(stat(own, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0711);
    snprintf(own, sizeof(own), "%s/scratch", f.dir);
    assert_int_equal(stat(own, &st), -1);
    fixture_done(&f);
}

static void test_lost_guard_is_killed_and_swept(void **state)
{
    (void)state;
    struct fixture f;
    fixture_new(&f, EXECUTOR_KIND_exec);
    fixture_open_script(&f, "setsid sh -c 'echo $$ > ../../../a; exec sleep 1000' & "
                            "echo $PPID > ../../../g; wait; sleep 1000");
    fixture_start(&f);
    long orphan = fixture_number(&f, "a");
    kill((pid_t)fixture_number(&f, "g"), SIGKILL);
    struct executor_event *event = fixture_next(&f, EXECUTOR_EVENT_end);
    assert_false(event->end.killed_by_stop);
    expect_failure(event, FAILURE_killed, "baton-guard");
    wait_process_gone(orphan, WAIT_MS);
    fixture_done(&f);
}

static void test_free_ends_what_runs(void **state)
{
    (void)state;
    struct fixture f;
    fixture_new(&f, EXECUTOR_KIND_exec);
    f.set.grace_ms = 600000;
    fixture_open_script(&f, "trap '' TERM; " TREE "while :; do sleep 0.05; done");
    fixture_start(&f);
    long pids[] = {fixture_number(&f, "a"), fixture_number(&f, "b"), fixture_number(&f, "c")};
    executor_pool_free(f.pool);
    f.pool = NULL;
    for (int i = 0; i < 3; i++) {
        assert_false(process_alive(pids[i]));
    }
    struct executor_event *event = fixture_next(&f, EXECUTOR_EVENT_end);
    assert_true(event->end.killed_by_stop);
    executor_event_free(event);
    fixture_done(&f);
}

static void test_G07_L_39_worker_killed_leaves_nothing(void **state)
{
    (void)state;
    struct fixture f;
    fixture_new(&f, EXECUTOR_KIND_exec);
    pid_t worker = fork();
    if (worker == 0) {
        fixture_open_script(&f, TREE "while :; do sleep 0.05; done");
        fixture_start(&f);
        pause();
        _exit(0);
    }
    long pids[] = {fixture_number(&f, "a"), fixture_number(&f, "b"), fixture_number(&f, "c")};
    kill(worker, SIGKILL);
    waitpid(worker, NULL, 0);
    int64_t until = mono_now().v + 1000;
    for (int i = 0; i < 3; i++) {
        wait_process_gone(pids[i], until - mono_now().v);
    }
    assert_int_equal(fixture_scratch_count(&f), 1);
    fixture_open_script(&f, "exit 75"); /* the next boot */
    wait_scratch_empty(&f);
    fixture_done(&f);
}

static void await_program(long pid, const char *name)
{
    char path[64];
    char text[32] = "";
    snprintf(path, sizeof(path), "/proc/%ld/comm", pid);
    for (int tries = 0; strcmp(text, name) != 0; tries++) {
        FILE *file = fopen(path, "re");
        assert_non_null(file);
        assert_non_null(fgets(text, sizeof(text), file));
        fclose(file);
        assert_true(tries < 20000);
        usleep(1000);
    }
}

static void test_L_46_start_kills_what_an_earlier_boot_left(void **state)
{
    (void)state;
    struct fixture f;
    fixture_new(&f, EXECUTOR_KIND_exec);
    char script[700];
    snprintf(
        script, sizeof(script),
        "cd %s; BATON_WORKER=lint/host-1 BATON_BOOT=bbbb BATON_SCRATCH=%s/scratch/lint.host-1/x "
        "sh -c 'echo $$ > old; exec sleep 1000' & "
        "BATON_WORKER=lint/host-1 BATON_BOOT=bbbb BATON_SCRATCH=/elsewhere/scratch/lint.host-1/x "
        "sh -c 'echo $$ > fleet; exec sleep 1000' &",
        f.dir, f.dir);
    assert_int_equal(system(script), 0);
    long old = fixture_number(&f, "old");
    long fleet = fixture_number(&f, "fleet");
    await_program(old, "sleep\n"); /* while it becomes another program it has no environment */
    await_program(fleet, "sleep\n");
    fixture_open_script(&f, "exit 75");
    bool gone = !process_alive(old);
    bool untouched = process_alive(fleet);
    kill((pid_t)fleet, SIGKILL);
    assert_true(gone);
    assert_true(untouched);
    fixture_done(&f);
}

static long context_switches(void)
{
    char line[128];
    long n = -1;
    FILE *pipe = popen("for t in /proc/$PPID/task/*; do if grep -q executors $t/comm; then "
                       "grep ^voluntary $t/status; fi; done",
                       "r");
    assert_non_null(pipe);
    assert_non_null(fgets(line, sizeof(line), pipe));
    assert_int_equal(sscanf(line, "voluntary_ctxt_switches: %ld", &n), 1);
    pclose(pipe);
    return n;
}

static void test_idle_pool_sleeps(void **state)
{
    (void)state;
    struct fixture f;
    fixture_new(&f, EXECUTOR_KIND_exec);
    fixture_open_script(&f, "exit 75");
    expect_failure(fixture_run(&f), FAILURE_unavailable, "");
    wait_scratch_empty(&f);
    long before = context_switches();
    usleep(300000); /* the thing waited for is that nothing happens */
    assert_int_equal(context_switches(), before);
    fixture_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdict_output_and_turn),
        cmocka_unit_test(test_exit_statuses),
        cmocka_unit_test(test_L_41_environment_is_what_is_declared),
        cmocka_unit_test(test_declared_environment_is_checked),
        cmocka_unit_test(test_L_40_secrets_are_masked_everywhere),
        cmocka_unit_test(test_C15_output_becomes_text),
        cmocka_unit_test(test_G04_flood_is_drained_and_bounded),
        cmocka_unit_test(test_G01_E06_E16_deadline_ends_the_whole_tree),
        cmocka_unit_test(test_E06_output_renews_the_heartbeat),
        cmocka_unit_test(test_E06_a_ticker_has_a_deadline),
        cmocka_unit_test(test_verdict_after_the_deadline_is_late),
        cmocka_unit_test(test_X34_descriptors_and_double_fork_do_not_hold_the_end),
        cmocka_unit_test(test_stop_lets_a_verdict_finish),
        cmocka_unit_test(test_stop_and_cancel_and_kill),
        cmocka_unit_test(test_beyond_parallel_waits_and_never_started),
        cmocka_unit_test(test_place_is_the_working_directory),
        cmocka_unit_test(test_scratch_is_private_and_goes_away),
        cmocka_unit_test(test_program_that_vanished),
        cmocka_unit_test(test_programs_are_resolved_at_start),
        cmocka_unit_test(test_prefix_stands_in_front),
        cmocka_unit_test(test_prefix_has_its_scratch_apart),
        cmocka_unit_test(test_lost_guard_is_killed_and_swept),
        cmocka_unit_test(test_free_ends_what_runs),
        cmocka_unit_test(test_G07_L_39_worker_killed_leaves_nothing),
        cmocka_unit_test(test_L_46_start_kills_what_an_earlier_boot_left),
        cmocka_unit_test(test_idle_pool_sleeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
