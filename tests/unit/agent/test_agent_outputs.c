/*
 * What the agent programs printed, word for word (tests/fixtures/agents), and what each end means.
 */
#include "common/base/check.h"
#include "common/record/json.h"
#include "worker/agent/agent.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A reading of whole bytes, as the pool feeds them. */
struct read {
    struct agent_reading reading;
    struct buf said;
    struct buf doing;
    struct buf object;
    char *usage;
    enum agent_source source;
};

static void read_done(struct read *read)
{
    agent_reading_done(&read->reading);
    buf_done(&read->said);
    buf_done(&read->doing);
    buf_done(&read->object);
    free(read->usage);
}

static void read_bytes(struct read *read, const char *program, const char *bytes, size_t len,
                       const struct agent_end *end)
{
    memset(read, 0, sizeof(*read));
    agent_reading_init(&read->reading, agent_find(program));
    for (size_t at = 0; at < len;) {
        const char *newline = memchr(bytes + at, '\n', len - at);
        size_t n = newline != NULL ? (size_t)(newline - bytes) - at : len - at;
        agent_line(&read->reading, bytes + at, n, &read->said, &read->doing);
        at += n + 1;
    }
    read->source = agent_judge(&read->reading, end, &read->object);
    struct usage usage = agent_usage(&read->reading, read->source);
    read->usage = usage_text(&usage);
    assert_true(strlen(read->usage) <= USAGE_TEXT_MAX && usage_parse(read->usage, &usage));
}

static char *fixture(const char *program, const char *mode, size_t *ret_len)
{
    char path[4096];
    static char bytes[256 * 1024];
    snprintf(path, sizeof(path), "%s/tests/fixtures/agents/%s-%s.out", BATON_TEST_SOURCE, program,
             mode);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fail_msg("no fixture %s", path);
    }
    *ret_len = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    return bytes;
}

/* The object's text members; "" where it is absent. */
static void check_object(const struct read *read, const char *what, const char *name,
                         const char *expected)
{
    struct json_doc *doc = NULL;
    struct baton_error err;
    size_t len;
    if (json_parse(read->object.data, read->object.len, 65536, 16, &doc, &err) != BATON_OK) {
        fail_msg("%s: no strict JSON: %s", what, err.text);
    }
    const char *text = json_member_text(json_root(doc), name, &len);
    if (strcmp(text, expected) != 0) {
        fail_msg("%s: %s is '%s', not '%s': %s", what, name, text, expected, read->object.data);
    }
    json_free(doc);
}

static const struct {
    const char *program;
    const char *mode;
    int status;
    const char *class; /* NULL: a verdict */
    int64_t retry_after_ms;
} cases[] = {
    {"claude", "ok", 0, NULL, 0},
    {"claude", "400", 1, "bad_request", 0},
    {"claude", "401", 1, "auth", 0},
    {"claude", "403", 1, "access_denied", 0},
    {"claude", "429", 1, "rate_limited", 0},
    {"claude", "500", 1, "unavailable", 0},
    {"claude", "503", 1, "overloaded", 0},
    {"claude", "overloaded", 1, "overloaded", 0},
    {"claude", "die", 1, "unavailable", 0},
    {"claude", "junk", 1, "unavailable", 0},
    {"claude", "prose", 0, "no_verdict", 0},
    {"codex", "ok", 0, NULL, 0},
    {"codex", "400", 1, "bad_request", 0},
    {"codex", "401", 1, "auth", 0},
    {"codex", "403", 1, "access_denied", 0},
    {"codex", "429", 1, "rate_limited", 0},
    {"codex", "500", 1, "overloaded", 0},
    {"codex", "overloaded", 1, "overloaded", 0},
    {"codex", "die", 1, "unavailable", 0},
    {"codex", "junk", 1, "unavailable", 0},
    {"codex", "prose", 0, "no_verdict", 0},
    {"gemini", "ok", 0, NULL, 0},
    {"gemini", "400", 144, "auth", 0}, /* API_KEY_INVALID */
    {"gemini", "401", 145, "auth", 0},
    {"gemini", "403", 147, "access_denied", 0},
    {"gemini", "429", 173, "rate_limited", 3600000},
    {"gemini", "503", 247, "overloaded", 0},
    {"gemini", "die", 1, "unavailable", 0},
    {"gemini", "junk", 1, "unavailable", 0},
    {"gemini", "prose", 0, "no_verdict", 0},
};

static void test_each_recorded_end_has_its_class(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char what[64];
        char retry[64];
        struct read read;
        size_t len;
        const char *bytes = fixture(cases[i].program, cases[i].mode, &len);
        const struct agent_end end = {.value = cases[i].status};
        snprintf(what, sizeof(what), "%s %s", cases[i].program, cases[i].mode);
        read_bytes(&read, cases[i].program, bytes, len, &end);
        assert_true(buf_ok(&read.object));
        check_object(&read, what, "class", cases[i].class != NULL ? cases[i].class : "");
        check_object(&read, what, "verdict", cases[i].class != NULL ? "" : "approve");
        snprintf(retry, sizeof(retry), "\"retry_after_ms\":%lld",
                 (long long)cases[i].retry_after_ms);
        assert_int_equal(strstr(read.object.data, "retry_after_ms") != NULL,
                         cases[i].retry_after_ms > 0);
        assert_true(cases[i].retry_after_ms == 0 || strstr(read.object.data, retry) != NULL);
        read_done(&read);
    }
}

static void check_usage(const char *program, const char *const *members)
{
    struct read read;
    size_t len;
    const char *bytes = fixture(program, "ok", &len);
    read_bytes(&read, program, bytes, len, &(struct agent_end){.value = 0});
    for (size_t i = 0; members[i] != NULL; i++) {
        if (strstr(read.usage, members[i]) == NULL) {
            fail_msg("%s: %s is not in %s", program, members[i], read.usage);
        }
    }
    read_done(&read);
}

static void test_what_it_took_is_read(void **state)
{
    static const char *const claude[] = {"\"agent\":\"claude\"",
                                         "\"verdict_from\":\"schema\"",
                                         "\"input_tokens\":10",
                                         "\"cached_tokens\":3",
                                         "\"output_tokens\":9",
                                         "\"cost_micros\":289",
                                         "\"cost_from\":\"program\"",
                                         "\"model\":\"claude-opus",
                                         "\"duration_ms\":",
                                         "\"session\":\"01234567-",
                                         NULL};
    static const char *const codex[] = {"\"agent\":\"codex\"",
                                        "\"verdict_from\":\"schema\"",
                                        "\"input_tokens\":7",
                                        "\"cached_tokens\":4",
                                        "\"output_tokens\":7",
                                        "\"session\":\"01234567-",
                                        NULL};
    static const char *const gemini[] = {"\"agent\":\"gemini\"", "\"verdict_from\":\"text\"",
                                         "\"input_tokens\":5",   "\"output_tokens\":4",
                                         "\"model\":\"x\"",      NULL};
    (void)state;
    check_usage("claude", claude);
    check_usage("codex", codex);
    check_usage("gemini", gemini);
}

/* What gemini thought is output that it tells in no number of its own. */
static void test_thoughts_are_output(void **state)
{
    static const struct {
        const char *stats;
        const char *told;
    } rows[] = {
        {"\"total_tokens\":109,\"input_tokens\":5,\"output_tokens\":4,\"input\":3,\"cached\":2",
         "\"input_tokens\":3,\"cached_tokens\":2,\"output_tokens\":104"},
        {"\"total_tokens\":9,\"input_tokens\":5,\"output_tokens\":4,\"input\":5",
         "\"output_tokens\":4"},
        {"\"total_tokens\":5,\"input_tokens\":5,\"output_tokens\":4", "\"output_tokens\":4"},
        {"\"total_tokens\":99,\"output_tokens\":4", "\"output_tokens\":4"},
        {"\"output_tokens\":4", "\"output_tokens\":4"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char line[256];
        struct read read;
        snprintf(line, sizeof(line),
                 "{\"type\":\"result\",\"status\":\"success\",\"stats\":{%s}}\n", rows[i].stats);
        read_bytes(&read, "gemini", line, strlen(line), &(struct agent_end){.value = 0});
        if (strstr(read.usage, rows[i].told) == NULL) {
            fail_msg("%s: %s is not in %s", rows[i].stats, rows[i].told, read.usage);
        }
        read_done(&read);
    }
}

/* ---- ends that were not recorded ---- */

static void check_made(const char *program, const char *out, const struct agent_end *end,
                       const char *class)
{
    struct read read;
    read_bytes(&read, program, out, strlen(out), end);
    if (class == NULL) {
        assert_int_equal(read.object.len, 0);
    } else {
        check_object(&read, out, "class", class);
    }
    assert_int_equal(read.source, AGENT_SOURCE_none);
    read_done(&read);
}

#define ERROR(text) .error = text, .error_len = sizeof(text) - 1

static void test_what_is_not_known_is_not_guessed(void **state)
{
    static const struct agent_end ok = {.value = 0};
    static const struct agent_end failed = {.value = 1};
    static const struct agent_end killed = {.signaled = true, .value = 9};
    static const char odd[] =
        "{\"type\":\"result\",\"is_error\":true,\"result\":\"the moon is full\"}";
    (void)state;
    /* Nothing told: how it ended is all there is. Nothing told and status 0: no success either. */
    check_made("claude", "", &failed, NULL);
    check_made("claude", "", &ok, "invalid_output");
    check_made("claude", "not JSON at all\n", &ok, "invalid_output");
    check_made("codex", "{\"type\":\"turn.started\"}\n{\"type\":\"turn.comp", &ok,
               "invalid_output");
    check_made("claude", "", &killed, NULL);
    /* Words that no row has. */
    check_made("claude", odd, &failed, "crash");
    check_made("claude", odd, &ok, "invalid_output");
    /* What an agent says is no error: neither of these has told one. */
    check_made("claude",
               "{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":"
               "\"Invalid API key, 401 unauthorized\"}]}}\n",
               &failed, NULL);
    check_made("codex",
               "{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":"
               "\"unexpected status 401 Unauthorized\"}}\n{\"type\":\"turn.completed\"}\n",
               &ok, "no_verdict");
    /* A warning, and an error before a try that works, are none either. */
    check_made("codex",
               "{\"type\":\"item.completed\",\"item\":{\"type\":\"error\",\"message\":"
               "\"unexpected status 401 Unauthorized\"}}\n"
               "{\"type\":\"error\",\"message\":\"unexpected status 503: Reconnecting... 1/5\"}\n"
               "{\"type\":\"turn.completed\"}\n",
               &ok, "no_verdict");
    /* An error that was told, and then it died without its last event. */
    check_made("codex", "{\"type\":\"error\",\"message\":\"unexpected status 401 Unauthorized\"}\n",
               &failed, "auth");
    /* The last line of standard error counts where nothing else was told. */
    check_made("claude", "", &(struct agent_end){.value = 1, ERROR("Not logged in")}, "auth");
    check_made("gemini", "", &(struct agent_end){.value = 41, ERROR("something")}, "auth");
    check_made("gemini", "", &(struct agent_end){.value = 53}, "no_verdict");
    check_made("gemini", "", &(struct agent_end){.value = 173}, "rate_limited");
    check_made("codex", "", &(struct agent_end){.value = 41, ERROR("something")}, NULL);
}

/* Claude's own bounds: the subtype names them, and its list of errors says them in prose. */
/* X34: a program that tells its result twice has told none, whatever the first was; an error stays one. */
static void test_x34_two_results_are_none(void **state)
{
    static const char *const programs[] = {"claude", "codex", "gemini"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(programs); i++) {
        struct buf bytes = BUF_INIT;
        struct read read;
        size_t len;
        const struct agent_end end = {.value = 0};
        const char *ok = fixture(programs[i], "ok", &len);
        buf_add(&bytes, ok, len);
        read_bytes(&read, programs[i], bytes.data, bytes.len, &end);
        check_object(&read, programs[i], "verdict", "approve");
        read_done(&read);
        buf_add(&bytes, ok, len);
        read_bytes(&read, programs[i], bytes.data, bytes.len, &end);
        check_object(&read, programs[i], "class", "invalid_output");
        check_object(&read, programs[i], "verdict", "");
        read_done(&read);
        const char *refused = fixture(programs[i], "401", &len);
        buf_add(&bytes, refused, len);
        const struct agent_end failed = {.value = 1};
        read_bytes(&read, programs[i], bytes.data, bytes.len, &failed);
        check_object(&read, programs[i], "verdict", "");
        read_done(&read);
        buf_done(&bytes);
    }
}

static void test_bounds_of_its_own(void **state)
{
    static const char *const subtypes[] = {"error_max_turns", "error_max_budget_usd",
                                           "error_max_structured_output_retries"};
    static const char *const errors[] = {
        "", "\"Reached maximum budget ($0.01)\"",
        "\"Reached maximum number of turns (3): status 429, usage limit, session limit\""};
    static const struct agent_end failed = {.value = 1};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(subtypes); i++) {
        for (size_t k = 0; k < COUNT_OF(errors); k++) {
            char line[512];
            snprintf(line, sizeof(line),
                     "{\"type\":\"result\",\"subtype\":\"%s\",\"is_error\":true,\"errors\":[%s]}",
                     subtypes[i], errors[k]);
            check_made("claude", line, &failed, "no_verdict");
        }
    }
    check_made("claude",
               "{\"type\":\"result\",\"subtype\":\"error_during_execution\",\"is_error\":true,"
               "\"errors\":[\"Not logged in\"]}",
               &failed, "auth");
}

/* Who can be asked for a structured verdict is not searched for one in its prose. */
static void test_prose_is_the_last_resort(void **state)
{
    static const struct agent_end ok = {.value = 0};
    (void)state;
    check_made(
        "claude",
        "{\"type\":\"result\",\"is_error\":false,\"result\":\"{\\\"verdict\\\":\\\"approve\\\"}\"}",
        &ok, "no_verdict");
    check_made("codex",
               "{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":"
               "\"So: {\\\"verdict\\\":\\\"approve\\\"}\"}}\n{\"type\":\"turn.completed\"}",
               &ok, "no_verdict");
}

static void check_class(const char *program, int status, const char *message, const char *class)
{
    enum failure found;
    bool known = agent_class(agent_find(program), status, message, strlen(message), &found);
    if (class == NULL ? known : !known || strcmp(failure_word(found), class) != 0) {
        fail_msg("%s %d '%s' is %s, not %s", program, status, message,
                 known ? failure_word(found) : "unknown", class != NULL ? class : "unknown");
    }
}

static void test_wordings_of_the_field(void **state)
{
    (void)state;
    check_class("claude", 401, "OAuth token has expired. Please run /login", "auth");
    check_class("claude", 0, "Claude AI usage limit reached|1795962044", "quota");
    check_class("claude", 0, "5-hour limit reached \xE2\x88\x99 resets 3pm", "quota");
    check_class("claude", 0, "Credit balance is too low", "quota");
    check_class("claude", 400, "Your credit balance is too low to access the API", "quota");
    check_class("claude", 429, "This request would exceed your account's rate limit",
                "rate_limited");
    check_class("claude", 0, "Prompt is too long", "bad_request");
    check_class("claude", 0, "appears to violate our Usage Policy", "policy");
    check_class("codex", 0, "You've hit your usage limit. Try again in 3 days 4 hours.", "quota");
    check_class("codex", 429, "You exceeded your current quota, please check your plan", "quota");
    check_class("gemini", 429, "Resource has been exhausted (e.g. check quota).", "rate_limited");
    check_class("gemini", 0, "TypeError: fetch failed", "unavailable");
    check_class("codex", 0, "connect ECONNREFUSED 127.0.0.1:443", "unavailable");
    check_class("claude", 599, "", "unavailable");
    /* Words of one program say nothing of another, and unknown ones nothing at all. */
    check_class("gemini", 0, "Please run /login", NULL);
    check_class("claude", 418, "I am a teapot", NULL);
    check_class("claude", 0, "unauthorised by the moon", NULL);
    check_class("claude", 0, "", NULL);
}

static void check_retry(const char *text, int64_t expected_ms)
{
    assert_int_equal(
        agent_retry_after_ms(text, strlen(text), (struct wall_ms){1795962044000 - 60000}),
        expected_ms);
}

static void test_retry_after(void **state)
{
    (void)state;
    check_retry("Suggested retry after 3600s.", 3600000);
    check_retry("Please try again in 3.5s. Visit", 3500);
    check_retry("Try again in 3 days 4 hours 5 minutes.", ((3 * 24 + 4) * 60 + 5) * 60000LL);
    check_retry("try again in 250ms", 250);
    check_retry("try again in 1h2m3s", 3723000);
    check_retry("\"retryDelay\":\"12s\"", 12000);
    check_retry("usage limit reached|1795962044", 60000);
    check_retry("usage limit reached|1", 0);
    check_retry("try again in 5 apples", 0);
    check_retry("try again in ", 0);
    check_retry("try again in 99999999999999999999 days", 7LL * 24 * 3600 * 1000);
    check_retry("try again in 99999999999999999999ms", 7LL * 24 * 3600 * 1000);
    check_retry("try again in 6 days 20000 minutes", 7LL * 24 * 3600 * 1000);
    check_retry("try again in 900000ms", 900000);
    check_retry("try again in 605 s", 605000);
    check_retry("Retry-After: 30", 30000);
    check_retry("retry-after: 30\r\n", 30000);
    check_retry("Please retry after 3600.", 3600000);
    check_retry("retry after 1.5 (see the status page)", 1500);
    check_retry("retry after 2027-01-01", 0);
    check_retry("try again in 12:30", 0);
    check_retry("try again in 2 hours, 300 of 300 are taken", 2 * 3600000LL);
    check_retry("try again in 400 days", 7LL * 24 * 3600 * 1000);
    check_retry("try again later", 0);
    check_retry("", 0);
}

/* ---- verdicts ---- */

static void test_the_schema_has_the_roles_verdicts_and_no_other(void **state)
{
    (void)state;
    for (unsigned role = 0; role < ROLE_COUNT; role++) {
        struct buf schema = BUF_INIT;
        struct loose value;
        struct loose word;
        size_t at = 0;
        size_t count = 0;
        size_t legal = 0;
        agent_schema(verdicts_of((enum role)role), &schema);
        assert_true(loose_parse(schema.data, schema.len, &value));
        while (loose_next(loose_at(value, "properties.verdict.enum"), &at, NULL, &word)) {
            enum verdict verdict;
            assert_true(verdict_parse(word.at + 1, word.len - 2, &verdict));
            assert_true(verdict_legal((enum role)role, verdict));
            count++;
        }
        for (unsigned i = 0; i < VERDICT_COUNT; i++) {
            legal += verdict_legal((enum role)role, (enum verdict)i) ? 1 : 0;
        }
        assert_int_equal(count, legal);
        buf_done(&schema);
    }
}

static void check_at_end(const char *text, const char *expected)
{
    struct loose object = LOOSE_NONE;
    bool found = agent_verdict_at_end(text, strlen(text), &object);
    if (expected == NULL ? found
                         : !found || object.len != strlen(expected) ||
                               memcmp(object.at, expected, object.len) != 0) {
        fail_msg("in '%s': %.*s", text, (int)object.len, found ? object.at : "");
    }
}

static void test_a_verdict_at_the_end_of_a_text(void **state)
{
    (void)state;
    check_at_end("fine.\n{\"verdict\":\"approve\"}", "{\"verdict\":\"approve\"}");
    check_at_end("```json\n{\"verdict\":\"changes\"}\n```\n", "{\"verdict\":\"changes\"}");
    check_at_end("{\"verdict\":\"a\"} then {\"verdict\":\"b\"}", "{\"verdict\":\"b\"}");
    check_at_end("{\"verdict\":\"a\",\"d\":{\"verdict\":\"b\"}}",
                 "{\"verdict\":\"a\",\"d\":{\"verdict\":\"b\"}}");
    check_at_end("if (x) { y } {\"verdict\":\"a\"}", "{\"verdict\":\"a\"}");
    check_at_end("{\"verdict\":\"approve\"} is what I would say", NULL);
    check_at_end("{\"verdict\":\"approve\"", NULL);
    check_at_end("{\"other\":{\"verdict\":\"approve\"}}", NULL);
    check_at_end("{\"verdict\":7}", NULL);
    check_at_end("approve", NULL);
    check_at_end("", NULL);
}

static void test_a_long_summary_is_cut(void **state)
{
    struct buf out = BUF_INIT;
    struct read read;
    (void)state;
    buf_add_text(&out, "{\"type\":\"result\",\"is_error\":false,\"structured_output\":{\"verdict\":"
                       "\"approve\",\"summary\":\"");
    for (int i = 0; i < 5000; i++) {
        buf_add_text(&out, "\xC3\xA9");
    }
    buf_add_text(&out, "\"}}");
    read_bytes(&read, "claude", out.data, out.len, &(struct agent_end){.value = 0});
    check_object(&read, "long", "verdict", "approve");
    assert_true(read.object.len > 4000 && read.object.len < 4300);
    read_done(&read);
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_recorded_end_has_its_class),
        cmocka_unit_test(test_what_it_took_is_read),
        cmocka_unit_test(test_thoughts_are_output),
        cmocka_unit_test(test_what_is_not_known_is_not_guessed),
        cmocka_unit_test(test_x34_two_results_are_none),
        cmocka_unit_test(test_bounds_of_its_own),
        cmocka_unit_test(test_prose_is_the_last_resort),
        cmocka_unit_test(test_wordings_of_the_field),
        cmocka_unit_test(test_retry_after),
        cmocka_unit_test(test_the_schema_has_the_roles_verdicts_and_no_other),
        cmocka_unit_test(test_a_verdict_at_the_end_of_a_text),
        cmocka_unit_test(test_a_long_summary_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
