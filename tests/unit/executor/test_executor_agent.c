/*
 * Kind agent around stand-ins for the agent programs: what each is handed, and what its output becomes.
 * What the real programs print is in test_agent_outputs.
 */
#include "common/base/check.h"
#include "pool_fixture.h"

#include <sys/stat.h>

#define TURN_JSON                                                                                  \
    "{\"summary\":\"Review the fix\",\"data\":{},\"payload\":{\"media_type\":\"text/x-diff\","     \
    "\"text\":\"+secret of the payload\"}}"

static const struct config_env env_list[] = {
    {(char *)"ANTHROPIC_API_KEY", ENV_SOURCE_from, (char *)"CANARY_KEY"},
    {(char *)"OPENAI_API_KEY", ENV_SOURCE_from, (char *)"CANARY_KEY"},
    {(char *)"GEMINI_API_KEY", ENV_SOURCE_from, (char *)"CANARY_KEY"},
    {(char *)"CLAUDE_CODE_MAX_RETRIES", ENV_SOURCE_value, (char *)"7"},
    {(char *)"OUT", ENV_SOURCE_value,
     (char *)""}, /* where a stand-in notes what it sees: fixture_agent */
};

struct agent_fixture {
    struct fixture f;
    struct executor_env *env;
    char out[128];
};

/* A pool of kind agent whose program is this script. */
static void agent_new(struct agent_fixture *a, const char *agent, const char *script)
{
    struct config_env list[COUNT_OF(env_list)];
    struct baton_error err = {0};
    char program[128];
    fixture_new(&a->f, EXECUTOR_KIND_agent);
    setenv("CANARY_KEY", "sk-canary-0123456789", 1);
    memcpy(list, env_list, sizeof(list));
    snprintf(a->out, sizeof(a->out), "%s/out", a->f.dir);
    assert_int_equal(mkdir(a->out, 0700), 0);
    list[COUNT_OF(list) - 1].text = a->out;
    assert_int_equal(executor_env_resolve(list, COUNT_OF(list), NULL, 0, &a->env, &err), BATON_OK);
    snprintf(program, sizeof(program), "%s/agent", a->f.dir);
    FILE *file = fopen(program, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", script);
    fclose(file);
    assert_int_equal(chmod(program, 0755), 0);
    a->f.set.agent = agent;
    a->f.job.env = a->env;
    a->f.job.json = TURN_JSON;
    a->f.job.json_len = strlen(TURN_JSON);
    a->f.job.read_only = true;
    const char *const command[] = {program, NULL};
    fixture_open(&a->f, command);
}

static void agent_done(struct agent_fixture *a)
{
    fixture_done(&a->f);
    executor_env_free(a->env);
}

/* A file that a stand-in left in $OUT. */
static char *noted(struct agent_fixture *a, const char *name)
{
    static char text[65536];
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", a->out, name);
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        fail_msg("no %s", path);
    }
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    return text;
}

#define NOTE                                                                                       \
    "for word; do echo \"$word\"; done >$OUT/argv; env >$OUT/env; cat >$OUT/in; pwd >$OUT/pwd\n"   \
    "cp -r \"$BATON_SCRATCH\" $OUT/scratch; ls /proc/self/fd >$OUT/fds\n"

#define RESULT(object)                                                                             \
    "printf '%s\\n' '{\"type\":\"result\",\"is_error\":false,\"structured_output\":" object        \
    ",\"total_cost_usd\":0.25}'\n"

/* S11.10: the prompt goes in on standard input, secrets by the environment, and argv has neither. */
static void test_s11_prompt_and_secrets_are_not_in_argv(void **state)
{
    struct agent_fixture a;
    (void)state;
    agent_new(&a, "claude", NOTE RESULT("{\"verdict\":\"approve\",\"summary\":\"fine\"}"));
    expect_ok(fixture_run(&a.f), VERDICT_approve,
              "{\"verdict\":\"approve\",\"summary\":\"fine\",\"cost\":{\"cost_micros\":250000}}");
    const char *argv = noted(&a, "argv");
    assert_null(strstr(argv, "canary"));
    assert_null(strstr(argv, "secret of the payload"));
    assert_null(strstr(argv, "Review the fix"));
    assert_non_null(strstr(argv, "--permission-mode\nplan\n"));
    assert_non_null(strstr(argv, "\"enum\":[\"blocked\",\"needs_context\",\"approve\",\"changes\","
                                 "\"escalate\"]"));
    const char *in = noted(&a, "in");
    assert_non_null(strstr(in, "You are the reviewer"));
    assert_non_null(strstr(in, "+secret of the payload"));
    assert_null(strstr(in, "canary"));
    agent_done(&a);
}

/* S11.10: an address from a file or variable may hold a password: codex has it in argv, so it is not started. */
static void test_s11_a_secret_address_is_not_in_argv(void **state)
{
    (void)state;
    for (int literal = 0; literal < 2; literal++) {
        const struct config_env base = {(char *)"OUT", ENV_SOURCE_value, NULL};
        struct config_env more[] = {
            base,
            {(char *)"OPENAI_API_KEY", ENV_SOURCE_from, (char *)"CANARY_KEY"},
            {(char *)"OPENAI_BASE_URL", literal ? ENV_SOURCE_value : ENV_SOURCE_from,
             (char *)(literal ? "http://m/v1" : "CANARY_URL")}};
        struct agent_fixture a;
        struct baton_error err;
        char argv[160];
        agent_new(&a, "codex", NOTE "exit 3");
        executor_env_free(a.env);
        setenv("CANARY_URL", "http://me:canary@m/v1", 1);
        more[0].text = a.out;
        assert_int_equal(executor_env_resolve(more, COUNT_OF(more), NULL, 0, &a.env, &err),
                         BATON_OK);
        a.f.job.env = a.env;
        struct executor_event *event = fixture_run(&a.f);
        snprintf(argv, sizeof(argv), "%s/argv", a.out);
        if (literal) {
            assert_non_null(strstr(noted(&a, "argv"), "base_url=\"http://m/v1\""));
        } else {
            assert_int_equal(access(argv, F_OK), -1);
            assert_non_null(strstr(event->end.message, "OPENAI_BASE_URL"));
            assert_null(strstr(event->end.message, "canary"));
        }
        executor_event_free(event);
        agent_done(&a);
    }
}

static int count_lines(const char *text)
{
    int n = 0;
    for (; *text != '\0'; text++) {
        n += *text == '\n' ? 1 : 0;
    }
    return n;
}

/* S11.1: the environment holds what was declared, what is Baton's, and the adapter's own switches. */
static void test_s11_environment_is_what_was_declared(void **state)
{
    static const char *const allowed[] = {
        "BATON_",
        "PATH=",
        "HOME=",
        "TMPDIR=",
        ("TRACEPARENT=" TRACE),
        "LANG=",
        "PWD=",
        "SHLVL=",
        "_=",
        "OLDPWD=",
        "ANTHROPIC_API_KEY=sk-canary",
        "OPENAI_API_KEY=",
        "GEMINI_API_KEY=",
        "OUT=",
        "CLAUDE_CODE_MAX_RETRIES=7", /* declared: it wins */
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
        "DISABLE_",
        "GIT_OPTIONAL_LOCKS=0",
        "NO_COLOR=1",
    };
    struct agent_fixture a;
    (void)state;
    setenv("WORKERS_OWN", "not for agents", 1);
    agent_new(&a, "claude", NOTE RESULT("{\"verdict\":\"approve\",\"summary\":\"fine\"}"));
    executor_event_free(fixture_run(&a.f));
    char *env = noted(&a, "env");
    for (char *line = strtok(env, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        bool known = false;
        for (size_t i = 0; i < COUNT_OF(allowed); i++) {
            known = known || strncmp(line, allowed[i], strlen(allowed[i])) == 0;
        }
        if (!known) {
            fail_msg("%s", line);
        }
    }
    char home[256];
    snprintf(home, sizeof(home), "%s/scratch/lint.host-1/", a.f.dir);
    assert_non_null(strstr(noted(&a, "pwd"), home));    /* no place: its own scratch directory */
    assert_int_equal(count_lines(noted(&a, "fds")), 5); /* 0 to 3 and that of ls */
    wait_scratch_empty(&a.f);
    agent_done(&a);
}

static void test_files_lie_in_the_scratch_directory(void **state)
{
    struct agent_fixture a;
    (void)state;
    agent_new(&a, "codex",
              NOTE "echo '{\"type\":\"item.completed\",\"item\":{\"type\":"
                   "\"agent_message\",\"text\":\"{\\\"verdict\\\":\\\"changes\\\","
                   "\\\"summary\\\":\\\"one\\\"}\"}}'\necho '{\"type\":\"turn.completed\"}'");
    expect_ok(fixture_run(&a.f), VERDICT_changes,
              "{\"verdict\":\"changes\",\"summary\":\"one\",\"cost\":{}}");
    assert_non_null(strstr(noted(&a, "scratch/verdict.schema.json"), "\"approve\""));
    assert_non_null(strstr(noted(&a, "argv"), "--output-schema\n"));
    assert_non_null(strstr(noted(&a, "argv"), "-s\nread-only\n"));
    assert_non_null(strstr(noted(&a, "argv"), "env_key=\"OPENAI_API_KEY\""));
    agent_done(&a);

    agent_new(&a, "gemini",
              NOTE "echo '{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"I say: "
                   "{\\\"verdict\\\":\\\"approve\\\"}\"}'\necho '{\"type\":\"result\",\"status\":"
                   "\"success\",\"stats\":{}}'");
    expect_ok(fixture_run(&a.f), VERDICT_approve, "{\"verdict\":\"approve\",\"cost\":{}}");
    assert_non_null(strstr(noted(&a, "scratch/.gemini/settings.json"), "gemini-api-key"));
    assert_null(strstr(noted(&a, "scratch/.gemini/settings.json"), "canary"));
    assert_non_null(strstr(noted(&a, "in"), "exactly one JSON object"));
    agent_done(&a);
}

static void test_what_it_says_is_told_and_kept(void **state)
{
    struct agent_fixture a;
    (void)state;
    agent_new(
        &a, "claude",
        "echo '{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":"
        "\"I look, and the key is sk-canary-0123456789\"},{\"type\":\"tool_use\",\"name\":"
        "\"Read\"}]}}'\n" RESULT("{\"verdict\":\"approve\",\"summary\":\"sk-canary-0123456789\"}"));
    struct executor_event *event = fixture_run(&a.f);
    assert_true(event->end.ok);
    assert_string_equal(event->end.output, "I look, and the key is ***\n");
    assert_null(strstr(event->end.result, "canary"));
    assert_non_null(strstr(event->end.result, "\"summary\":\"***\""));
    executor_event_free(event);
    assert_non_null(strstr(a.f.progress, "I look, and the key is ***\n"));
    assert_non_null(strstr(a.f.progress, "uses Read\n"));
    agent_done(&a);
}

/* The same for what a line of the program does not show as it is: the keys of pieces, and escaped ones. */
static void check_nothing_told(const char *agent, const char *script, const char *summary)
{
    struct agent_fixture a;
    agent_new(&a, agent, script);
    struct executor_event *event = fixture_run(&a.f);
    if (!event->end.ok || strstr(event->end.result, summary) == NULL) {
        fail_msg("%s: %s %s", agent, event->end.message, event->end.result);
    }
    assert_null(strstr(event->end.result, "0123456789"));
    assert_null(strstr(event->end.output, "0123456789"));
    assert_null(strstr(event->end.output, "sk-can"));
    assert_non_null(strstr(event->end.output, "key ***"));
    assert_null(strstr(a.f.progress, "0123456789"));
    assert_null(strstr(a.f.progress, "sk-can"));
    executor_event_free(event);
    agent_done(&a);
}

#define PIECE(text)                                                                                \
    "echo '{\"type\":\"message\",\"role\":\"assistant\",\"delta\":true,\"content\":\"" text "\"}'" \
    "\n"
#define SAID(text)                                                                                 \
    "echo '{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"" text     \
    "\"}}'\n"

static void test_s11_secrets_that_show_when_decoded(void **state)
{
    (void)state;
    check_nothing_told(
        "gemini",
        PIECE("{\\\"verdict\\\":\\\"approve\\\",\\\"summary\\\":\\\"the key sk-can")
            PIECE("ary-01234") PIECE(
                "56789\\\"}") "echo '{\"type\":\"result\",\"status\":\"success\",\"stats\":{}}'",
        "\"summary\":\"the key ***\"");
    check_nothing_told(
        "codex",
        SAID("the key sk-c\\u0061nary-0123456789") "echo "
                                                   "'{\"type\":\"item.started\",\"item\":{\"type\":"
                                                   "\"command_execution\","
                                                   "\"command\":\"echo "
                                                   "sk-c\\u0061nary-0123456789\"}}'\n" SAID(
                                                       "{\\\"verdict\\\":\\\"approve\\\","
                                                       "\\\"summary\\\":\\\"the key "
                                                       "sk-c\\u0061nary-0123456789\\\"}") "echo "
                                                                                          "'{"
                                                                                          "\"type\""
                                                                                          ":\"turn."
                                                                                          "complete"
                                                                                          "d\"}'",
        "\"summary\":\"the key ***\"");
    check_nothing_told(
        "codex",
        SAID("the key sk-canary-0123456789")
            SAID("{\\\"verdict\\\":\\\"approve\\\",\\\"summary\\\":\\\"the key "
                 "sk-c\\\\u0061nary-0123456789\\\"}") "echo '{\"type\":\"turn.completed\"}'",
        "\"summary\":\"the key ***\"");
}

/* Pieces of one message stand on one line, and the next message on its own. */
static void test_pieces_of_a_message(void **state)
{
    struct agent_fixture a;
    (void)state;
    agent_new(&a, "gemini",
              PIECE("I lo")
                  PIECE("ok") "echo '{\"type\":\"tool_use\",\"tool_name\":\"read\"}'\n" PIECE(
                      "{\\\"verdict\\\":\\\"approve\\\"}") "echo "
                                                           "'{\"type\":\"result\",\"status\":"
                                                           "\"success\",\"stats\":{}}'");
    struct executor_event *event = fixture_run(&a.f);
    assert_true(event->end.ok);
    assert_string_equal(event->end.output, "I look\n{\"verdict\":\"approve\"}\n");
    executor_event_free(event);
    assert_string_equal(a.f.progress, "I lo\nok\nuses read\n{\"verdict\":\"approve\"}\n");
    agent_done(&a);
}

static void check_failure(const char *agent, const char *script, enum failure failure,
                          const char *message)
{
    struct agent_fixture a;
    agent_new(&a, agent, script);
    expect_failure(fixture_run(&a.f), failure, message);
    agent_done(&a);
}

static void test_ends_are_classes(void **state)
{
    (void)state;
    check_failure(
        "claude",
        "echo '{\"type\":\"result\",\"is_error\":true,\"api_error_status\":401,\"result\":"
        "\"Invalid API key sk-canary-0123456789\"}'; exit 1",
        FAILURE_auth, "Invalid API key ***");
    check_failure("claude", RESULT("{\"verdict\":\"done\",\"summary\":\"\"}"), FAILURE_no_verdict,
                  "'done' is none of the role reviewer");
    check_failure("claude", RESULT("{\"verdict\":\"approve\"}") "exit 3", FAILURE_crash,
                  "exit status 3");
    check_failure("claude", "exit 0", FAILURE_invalid_output, "without telling its result");
    check_failure("claude", "echo something broke >&2; exit 9", FAILURE_crash, "something broke");
    check_failure("codex", "kill -9 $$", FAILURE_killed, "signal 9");
    check_failure("codex", "kill -11 $$", FAILURE_crash, "signal 11");
    /* Exit statuses of kind exec are none of an agent's: nothing was refused. */
    check_failure("claude", "exit 77", FAILURE_crash, "exit status 77");
    check_failure("codex", "exit 65", FAILURE_crash, "exit status 65");
    check_failure("gemini", "exit 75", FAILURE_crash, "exit status 75");
    check_failure("claude", RESULT("{\"verdict\":\"approve\",\"summary\":\"\"}") "exit 77",
                  FAILURE_crash, "exit status 77");
    check_failure("codex", "head -c 3000000 /dev/zero | tr '\\0' x; exit 0", FAILURE_invalid_output,
                  "without telling its result");
}

static void test_a_deadline_tells_what_it_waited_for(void **state)
{
    struct agent_fixture a;
    (void)state;
    agent_new(&a, "gemini",
              "echo 'Attempt 1 failed with status 503. Retrying with backoff...' >&2\n"
              "echo '}' >&2; exec sleep 100");
    a.f.job.deadline_ms = 500;
    expect_failure(fixture_run(&a.f), FAILURE_timeout,
                   "passed; before that: Attempt 1 failed with status 503");
    agent_done(&a);
}

/* Events on standard output are progress; that it waits and tries again, on standard error, is none. */
static void test_E06_events_renew_the_heartbeat(void **state)
{
    struct agent_fixture a;
    (void)state;
    agent_new(&a, "claude",
              "for i in $(seq 40); do echo '{\"type\":\"system\"}'; sleep 0.1; done\n"
              "echo '{\"type\":\"result\",\"is_error\":false,\"structured_output\":"
              "{\"verdict\":\"approve\",\"summary\":\"\"}}'");
    a.f.job.heartbeat_ms = 2000;
    struct executor_event *event = fixture_run(&a.f);
    assert_true(event->end.ok);
    executor_event_free(event);
    agent_done(&a);
    agent_new(
        &a, "gemini",
        "while :; do echo 'Attempt 1 failed with status 503. Retrying' >&2; sleep 0.02; done");
    a.f.job.heartbeat_ms = 700;
    expect_failure(fixture_run(&a.f), FAILURE_timeout,
                   "no progress for 0.700 s; before that: Attempt 1 failed with status 503");
    agent_done(&a);
}

static void test_access_and_place(void **state)
{
    static const struct {
        enum executor_access access;
        bool read_only;
        const char *mode;
    } rows[] = {
        {EXECUTOR_ACCESS_auto, true, "plan"},
        {EXECUTOR_ACCESS_auto, false, "acceptEdits"},
        {EXECUTOR_ACCESS_read, false, "plan"},
        {EXECUTOR_ACCESS_write, true, "acceptEdits"},
        {EXECUTOR_ACCESS_full, true, "bypassPermissions"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct agent_fixture a;
        char expected[256];
        agent_new(&a, "claude", NOTE RESULT("{\"verdict\":\"approve\",\"summary\":\"fine\"}"));
        executor_pool_free(a.f.pool);
        char program[128];
        snprintf(program, sizeof(program), "%s/agent", a.f.dir);
        const char *const command[] = {program, NULL};
        a.f.set.access = rows[i].access;
        a.f.set.home = a.f.dir;
        a.f.job.read_only = rows[i].read_only;
        a.f.job.place = a.f.dir;
        fixture_open(&a.f, command);
        executor_event_free(fixture_run(&a.f));
        snprintf(expected, sizeof(expected), "--permission-mode\n%s\n", rows[i].mode);
        assert_non_null(strstr(noted(&a, "argv"), expected));
        snprintf(expected, sizeof(expected), "%s\n", a.f.dir);
        assert_string_equal(noted(&a, "pwd"), expected);
        snprintf(expected, sizeof(expected), "\nHOME=%s\n", a.f.dir);
        assert_non_null(strstr(noted(&a, "env"), expected));
        agent_done(&a);
    }
}

/* L-36: a session that is gone begins anew, but not over what it has changed: that would be its ground. */
static void test_l36_nothing_begins_anew_over_a_change(void **state)
{
    static const char *const does[] = {"true", "echo x >x"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(does); i++) {
        struct agent_fixture a;
        char script[1024];
        char place[96];
        char program[128];
        snprintf(script, sizeof(script),
                 "if [ ! -e $OUT/again ]; then touch $OUT/again; %s\n"
                 "echo 'No conversation found with session ID: s-1' >&2; exit 1; fi\n%s",
                 does[i], RESULT("{\"verdict\":\"approve\",\"summary\":\"fine\"}"));
        agent_new(&a, "claude", script);
        executor_pool_free(a.f.pool);
        snprintf(place, sizeof(place), "%s/place", a.f.dir);
        snprintf(program, sizeof(program), "%s/agent", a.f.dir);
        assert_int_equal(mkdir(place, 0700), 0);
        const char *const command[] = {program, NULL};
        a.f.set.home = a.f.dir;
        a.f.set.resume = true;
        a.f.job.session = "s-1";
        a.f.job.place = place;
        fixture_open(&a.f, command);
        struct executor_event *event = fixture_run(&a.f);
        if (i == 0) {
            assert_true(event->end.ok);
            executor_event_free(event);
        } else {
            expect_failure(event, FAILURE_readonly_violated, "has changed");
        }
        agent_done(&a);
    }
}

static void test_a_bad_prompt_stops_the_start(void **state)
{
    struct fixture f;
    struct baton_error err;
    const char *const command[] = {"sh", NULL};
    (void)state;
    fixture_new(&f, EXECUTOR_KIND_agent);
    f.set.agent = "claude";
    f.set.prompts = "/nonexistent/prompts";
    f.set.command = command;
    f.set.n_command = 1;
    assert_int_equal(executor_pool_new(&f.set, f.events, &f.pool, &err), BATON_E_bad_config);
    assert_non_null(strstr(err.text, "/nonexistent/prompts"));
    f.set.prompts = NULL;
    f.set.agent = "clade";
    assert_int_equal(executor_pool_new(&f.set, f.events, &f.pool, &err), BATON_E_usage);
    f.pool = NULL;
    fixture_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_s11_prompt_and_secrets_are_not_in_argv),
        cmocka_unit_test(test_s11_a_secret_address_is_not_in_argv),
        cmocka_unit_test(test_s11_environment_is_what_was_declared),
        cmocka_unit_test(test_files_lie_in_the_scratch_directory),
        cmocka_unit_test(test_what_it_says_is_told_and_kept),
        cmocka_unit_test(test_s11_secrets_that_show_when_decoded),
        cmocka_unit_test(test_pieces_of_a_message),
        cmocka_unit_test(test_ends_are_classes),
        cmocka_unit_test(test_a_deadline_tells_what_it_waited_for),
        cmocka_unit_test(test_E06_events_renew_the_heartbeat),
        cmocka_unit_test(test_access_and_place),
        cmocka_unit_test(test_l36_nothing_begins_anew_over_a_change),
        cmocka_unit_test(test_a_bad_prompt_stops_the_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
