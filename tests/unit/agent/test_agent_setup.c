/*
 * What the agent programs are started with: argv, environment, files.
 */
#include "common/base/check.h"
#include "worker/agent/agent.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const char *declared(const void *arg, const char *name)
{
    const char *const *pairs = arg;
    for (size_t i = 0; pairs[i] != NULL; i += 2) {
        if (strcmp(pairs[i], name) == 0) {
            return pairs[i + 1];
        }
    }
    return NULL;
}

static bool has(const struct agent_words *words, const char *first, const char *second)
{
    for (size_t i = 0; i < words->count; i++) {
        if (strcmp(words->list[i], first) == 0 &&
            (second == NULL || (i + 1 < words->count && strcmp(words->list[i + 1], second) == 0))) {
            return true;
        }
    }
    return false;
}

static void test_argv_has_the_mode_and_never_a_secret(void **state)
{
    static const char *const env[] = {"ANTHROPIC_API_KEY", "sk-canary",      "OPENAI_API_KEY",
                                      "sk-canary",         "GEMINI_API_KEY", "sk-canary",
                                      "OPENAI_BASE_URL",   "http://m/v1",    NULL};
    static const struct {
        const char *program;
        const char *option;
        const char *modes[3];
    } rows[] = {
        {"claude", "--permission-mode", {"plan", "acceptEdits", "bypassPermissions"}},
        {"codex", "-s", {"read-only", "workspace-write", "danger-full-access"}},
        {"gemini", "--approval-mode", {"plan", "auto_edit", "yolo"}},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        for (int access = 0; access < 3; access++) {
            struct agent_setup setup = {0};
            struct agent_request request = {.access = (enum agent_access)access,
                                            .model = "m-1",
                                            .schema = "{}",
                                            .scratch = "/scratch",
                                            .declared = declared,
                                            .declared_arg = env};
            agent_find(rows[i].program)->setup(&request, &setup);
            assert_true(has(&setup.argv, rows[i].option, rows[i].modes[access]));
            assert_true(has(&setup.argv, "m-1", NULL));
            for (size_t k = 0; k < setup.argv.count; k++) {
                assert_null(strstr(setup.argv.list[k], "canary"));
            }
            for (size_t k = 0; k < setup.files.count; k++) {
                assert_null(strstr(setup.files.list[k], "canary"));
            }
            assert_int_equal(setup.files.count % 2, 0);
            assert_false(setup.argv.broken || setup.env.broken || setup.files.broken);
            agent_setup_done(&setup);
        }
    }
}

/* S11: what lies in the place names neither the server that gets the key nor programs to start. */
static void test_s11_the_place_names_no_server(void **state)
{
    static const char *const none[] = {NULL};
    struct agent_setup claude = {0};
    struct agent_setup gemini = {0};
    struct agent_setup codex = {0};
    const struct agent_request request = {.access = AGENT_ACCESS_full,
                                          .schema = "{}",
                                          .scratch = "/scratch",
                                          .place = "/place",
                                          .home = "/home",
                                          .declared = declared,
                                          .declared_arg = none};
    (void)state;
    agent_find("claude")->setup(&request, &claude);
    assert_true(has(&claude.argv, "--setting-sources", "user"));
    agent_find("gemini")->setup(&request, &gemini);
    assert_true(has(&gemini.env,
                    "GOOGLE_GEMINI_BASE_URL=https://generativelanguage.googleapis.com/", NULL));
    assert_true(has(&gemini.env, "CODE_ASSIST_ENDPOINT=https://cloudcode-pa.googleapis.com", NULL));
    assert_true(has(&gemini.env, "NODE_TLS_REJECT_UNAUTHORIZED=1", NULL));
    assert_true(has(&gemini.env, "GEMINI_CLI_TRUST_WORKSPACE=false", NULL));
    agent_find("codex")->setup(&request, &codex);
    assert_true(has(&codex.argv, "-c", "projects={\"/place\"={trust_level=\"untrusted\"}}"));
    agent_setup_done(&codex);
    agent_setup_done(&claude);
    agent_setup_done(&gemini);
}

/* Codex retries by itself unless its provider says otherwise: whichever way it signs in. */
static void test_codex_has_a_provider_that_does_not_retry(void **state)
{
    static const char *const none[] = {NULL};
    static const char *const keyed[] = {"OPENAI_API_KEY", "sk-1", NULL};
    static const char *const named[] = {"OPENAI_BASE_URL", "http://m/v1", NULL};
    static const struct {
        const char *const *env;
        const char *config; /* of the home; NULL: there is no home */
        const char *provider;
    } rows[] = {
#define PROVIDER(rest)                                                                             \
    "model_providers.baton={name=\"OpenAI\"," rest                                                 \
    ",wire_api=\"responses\",request_max_retries=0,stream_max_retries=0}"
        {keyed, NULL,
         PROVIDER("base_url=\"https://api.openai.com/v1\",env_key=\"OPENAI_API_KEY\"")},
        {none, NULL, PROVIDER("requires_openai_auth=true")},
        {named, NULL, PROVIDER("base_url=\"http://m/v1\",requires_openai_auth=true")},
        {none, "model=\"x\"\n", PROVIDER("requires_openai_auth=true")},
        {none,
         "# model_provider = \"x\"\nmodel_providers.x.name = \"y\"\n[a]\nmodel_provider = \"x\"\n",
         PROVIDER("requires_openai_auth=true")},
        {none, "model=\"x\"\n  model_provider = \"mine\"\n",
         NULL}, /* a provider of its own is meant */
        {keyed, "model_provider=\"mine\"\n",
         PROVIDER("base_url=\"https://api.openai.com/v1\",env_key=\"OPENAI_API_KEY\"")},
#undef PROVIDER
    };
    char home[] = "/tmp/baton-home-XXXXXX";
    char path[64];
    char file[80];
    (void)state;
    assert_non_null(mkdtemp(home));
    snprintf(path, sizeof(path), "%s/.codex", home);
    snprintf(file, sizeof(file), "%s/config.toml", path);
    assert_int_equal(mkdir(path, 0700), 0);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct agent_setup setup = {0};
        const struct agent_request request = {.schema = "{}",
                                              .scratch = "/scratch",
                                              .home = rows[i].config != NULL ? home : NULL,
                                              .declared = declared,
                                              .declared_arg = rows[i].env};
        if (rows[i].config != NULL) {
            FILE *out = fopen(file, "we");
            assert_non_null(out);
            fputs(rows[i].config, out);
            fclose(out);
        }
        agent_find("codex")->setup(&request, &setup);
        assert_int_equal(has(&setup.argv, "-c", "model_provider=\"baton\""),
                         rows[i].provider != NULL);
        assert_true(rows[i].provider == NULL || has(&setup.argv, "-c", rows[i].provider));
        assert_true(has(&setup.argv, "-c", "features.unbounded_connection_retries=false"));
        assert_true(has(&setup.argv, "-c", "analytics.enabled=false"));
        assert_int_equal(has(&setup.argv, "-c", "features.plugins=false"), rows[i].config == NULL);
        agent_setup_done(&setup);
    }
    /* What lies there is the agent's: a FIFO in its place holds nobody up. */
    unlink(file);
    assert_int_equal(mkfifo(file, 0600), 0);
    struct agent_setup setup = {0};
    const struct agent_request request = {.schema = "{}",
                                          .scratch = "/scratch",
                                          .home = home,
                                          .declared = declared,
                                          .declared_arg = none};
    alarm(30);
    agent_find("codex")->setup(&request, &setup);
    alarm(0);
    assert_true(has(&setup.argv, "-c", "model_provider=\"baton\""));
    agent_setup_done(&setup);
    unlink(file);
    rmdir(path);
    rmdir(home);
}

/* I22: sessions are kept and gone on in where that is asked for, and what is no name is never an option. */
static void test_i22_sessions_in_argv(void **state)
{
    static const char *const none[] = {NULL};
    static const struct {
        const char *program;
        const char *option;
        const char *not_kept; /* NULL: it has no such option */
    } rows[] = {{"claude", "--resume", "--no-session-persistence"},
                {"codex", "resume", "--ephemeral"},
                {"gemini", "--resume", NULL}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        for (int kept = 0; kept < 3; kept++) { /* not, kept, and gone on in */
            struct agent_setup setup = {0};
            const struct agent_request request = {.schema = "{}",
                                                  .scratch = "/scratch",
                                                  .keep_session = kept > 0,
                                                  .session = kept == 2 ? "s-1" : NULL,
                                                  .declared = declared,
                                                  .declared_arg = none};
            agent_find(rows[i].program)->setup(&request, &setup);
            assert_int_equal(has(&setup.argv, rows[i].option, "s-1"), kept == 2);
            assert_true(rows[i].not_kept == NULL ||
                        has(&setup.argv, rows[i].not_kept, NULL) == (kept == 0));
            assert_true(strcmp(rows[i].program, "codex") != 0 ||
                        strcmp(setup.argv.list[setup.argv.count - 1], "-") == 0);
            agent_setup_done(&setup);
        }
    }
    assert_true(agent_session_valid("01a22ae5-e4b0-73c3-9506-6ce87f8a2776"));
    assert_false(agent_session_valid("--dangerously-skip-permissions"));
    assert_false(agent_session_valid("../other"));
    assert_false(agent_session_valid("a b"));
    assert_false(agent_session_valid(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_argv_has_the_mode_and_never_a_secret),
        cmocka_unit_test(test_s11_the_place_names_no_server),
        cmocka_unit_test(test_codex_has_a_provider_that_does_not_retry),
        cmocka_unit_test(test_i22_sessions_in_argv),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
