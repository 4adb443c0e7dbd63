/* worker/EXECUTOR.md: its examples are the tested files, its tables are the code's. */
#include "pool_fixture.h"

#include "common/base/limits.h"
#include "worker/executor/result.h"

static char *read_file(const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", BATON_TEST_SOURCE, name);
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        fail_msg("cannot read %s", path);
        return NULL;
    }
    char *text = calloc(1, 256 * 1024);
    assert_non_null(text);
    assert_true(fread(text, 1, 256 * 1024 - 1, file) > 0);
    fclose(file);
    return text;
}

static void expect_in(const char *document, const char *text)
{
    if (strstr(document, text) == NULL) {
        fail_msg("worker/EXECUTOR.md lacks: %s", text);
    }
}

/* "| `role` | `verdict` `verdict` |", from words with single spaces. */
static void expect_verdicts(const char *document, const char *role, const char *verdicts)
{
    char line[256];
    int n = snprintf(line, sizeof(line), "| `%s` | `", role);
    for (const char *at = verdicts; *at != '\0'; at++) {
        n += snprintf(line + n, sizeof(line) - (size_t)n, "%s",
                      *at == ' ' ? "` `" : (char[]){*at, '\0'});
    }
    snprintf(line + n, sizeof(line) - (size_t)n, "` |\n");
    expect_in(document, line);
}

static void test_document_has_the_examples_and_tables(void **state)
{
    (void)state;
    char *document = read_file("worker/EXECUTOR.md");
    static const char *const examples[] = {"review.sh", "review.py", "child.py"};
    for (size_t i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof(name), "tests/fixtures/executors/%s", examples[i]);
        char *example = read_file(name);
        expect_in(document, example);
        free(example);
    }
#define EXIT_LINE(status, word, text) expect_in(document, "| " #status " | `" #word "` |");
    EXECUTOR_EXITS(EXIT_LINE)
#undef EXIT_LINE
    for (int failure = 0; failure < FAILURE_COUNT; failure++) {
        char word[40];
        snprintf(word, sizeof(word), "`%s`", failure_word((enum failure)failure));
        expect_in(document, word);
    }
#define ROLE_LINE(word, verdicts) expect_verdicts(document, #word, verdicts);
    ROLES(ROLE_LINE)
#undef ROLE_LINE
    free(document);
}

static void open_example(struct fixture *f, const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/tests/fixtures/executors/%s", BATON_TEST_SOURCE, name);
    const char *const command[] = {path, NULL};
    fixture_open(f, command);
}

static void give(struct fixture *f, const char *json)
{
    f->job.json = json;
    f->job.json_len = strlen(json);
}

#define WITH_CONFLICT                                                                              \
    "{\"summary\":\"Review\",\"payload\":{\"media_type\":\"text/plain\",\"text\":\"<<<<<<< x\"}}"
#define WITHOUT                                                                                    \
    "{\"summary\":\"Review\",\"payload\":{\"media_type\":\"text/plain\",\"text\":\"hello\"}}"

static void test_example_sh(void **state)
{
    (void)state;
    struct fixture f;
    fixture_new(&f, EXECUTOR_KIND_exec);
    open_example(&f, "review.sh");
    give(&f, WITH_CONFLICT);
    struct executor_event *event = fixture_run(&f);
    assert_string_equal(event->end.output, "attempt 1 of T-41/a#1: a merge conflict is left\n");
    expect_ok(event, VERDICT_changes,
              "{\"verdict\":\"changes\",\"summary\":\"a merge conflict is left\"}");
    give(&f, WITHOUT);
    expect_ok(fixture_run(&f), VERDICT_approve, "{\"verdict\":\"approve\"}");
    f.job.role = ROLE_owner;
    expect_failure(fixture_run(&f), FAILURE_bad_request, "only reviews");
    fixture_done(&f);
}

static void test_example_python(void **state)
{
    (void)state;
    struct fixture f;
    fixture_new(&f, EXECUTOR_KIND_exec);
    open_example(&f, "review.py");
    give(&f, WITHOUT);
    struct executor_event *event = fixture_run(&f);
    assert_string_equal(event->end.output, "5 bytes as reviewer\n");
    expect_ok(event, VERDICT_approve,
              "{\"verdict\": \"approve\", \"summary\": \"Review\", \"data\": {\"bytes\": \"5\"}}");
    give(&f, "{\"summary\":\"Review\"}");
    event = fixture_run(&f);
    assert_int_equal(event->end.retry_after_ms, 2000);
    expect_failure(event, FAILURE_rate_limited, "nothing there yet");
    fixture_done(&f);
}

static void test_example_child(void **state)
{
    (void)state;
    struct fixture f;
    fixture_new(&f, EXECUTOR_KIND_child);
    open_example(&f, "child.py");
    give(&f, WITH_CONFLICT);
    expect_ok(fixture_run(&f), VERDICT_changes, "{\"verdict\": \"changes\"}");
    give(&f, WITHOUT);
    f.job.attempt = 2;
    expect_ok(fixture_run(&f), VERDICT_approve, "{\"verdict\": \"approve\"}");
    assert_string_equal(f.progress, "reading\nreading\n");
    fixture_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_document_has_the_examples_and_tables),
        cmocka_unit_test(test_example_sh),
        cmocka_unit_test(test_example_python),
        cmocka_unit_test(test_example_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
