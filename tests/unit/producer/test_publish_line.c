/* Lines of `baton publish --lines`: what becomes a request, and how each mistake is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "producer/publish_line.h"

static const struct publish_request fallback = {
    .service = "alpha", .role = "owner", .intent = "work", .task_rev = 2, .life_ms = 5000};

static struct publish_line line_of(const char *text)
{
    struct publish_line line;
    struct baton_error err = {BATON_OK, ""};
    if (publish_line_read(text, strlen(text), &fallback, &line, &err) != BATON_OK) {
        fail_msg("%s: %s", text, err.text);
    }
    return line;
}

static void refused(const char *text, const char *why)
{
    struct publish_line line;
    struct baton_error err = {BATON_OK, ""};
    assert_int_equal(publish_line_read(text, strlen(text), &fallback, &line, &err),
                     BATON_E_invalid_request);
    assert_int_equal(err.code, BATON_E_invalid_request);
    if (strstr(err.text, why) == NULL) {
        fail_msg("%s: '%s' does not say '%s'", text, err.text, why);
    }
    assert_null(line.doc);
}

static void test_what_a_line_leaves_out_the_options_say(void **state)
{
    (void)state;
    struct publish_line line = line_of("{\"task\":\"t-1\"}");
    assert_string_equal(line.request.service, "alpha");
    assert_string_equal(line.request.role, "owner");
    assert_int_equal(line.request.task_rev, 2);
    assert_int_equal(line.request.life_ms, 5000);
    publish_line_done(&line);
    line = line_of(
        "{\"task\":\"t-1\",\"service\":\"beta\",\"role\":\"arbiter\",\"rev\":9,\"expires\":\"2h\","
        "\"data\":{\"a\":\"b\"},\"payload\":\"hello\",\"not_before\":\"2026-11-29T14:20:43Z\"}");
    assert_string_equal(line.request.service, "beta");
    assert_string_equal(line.request.role, "arbiter");
    assert_int_equal(line.request.task_rev, 9);
    assert_int_equal(line.request.life_ms, 2 * 3600 * 1000);
    assert_memory_equal(line.request.data, "{\"a\":\"b\"}", line.request.data_len);
    assert_int_equal(line.request.payload_len, 5);
    assert_true(line.request.not_before.v > 0);
    publish_line_done(&line);
}

static void test_the_same_line_has_the_same_key(void **state)
{
    (void)state;
    struct publish_line one = line_of("{\"task\":\"t-1\"}");
    struct publish_line same = line_of("{\"task\":\"t-1\"}");
    struct publish_line other = line_of("{\"task\":\"t-1\" }");
    struct publish_line own = line_of("{\"task\":\"t-1\",\"key\":\"k\"}");
    assert_string_equal(one.key, same.key);
    assert_string_not_equal(one.key, other.key);
    assert_true(idempotency_key_valid(one.key, strlen(one.key)));
    assert_string_equal(own.request.key, "k");
    publish_line_done(&one);
    publish_line_done(&same);
    publish_line_done(&other);
    publish_line_done(&own);
}

static void test_mistakes_are_told(void **state)
{
    (void)state;
    refused("", "the text is empty");
    refused("{\"task\":\"t\"} x", "JSON, column 14");
    refused("[]", "not a JSON object");
    refused("null", "not a JSON object");
    refused("{}", "task is missing");
    refused("{\"Task\":\"t\"}", "'Task' is not known");
    refused("{\"task\":\"t\",\"task\":\"u\"}", "JSON, column");
    refused("{\"task\":1}", "task must be a text");
    refused("{\"task\":\"t\",\"key\":\"\"}", "key is empty");
    refused("{\"task\":\"t\",\"rev\":-1}", "rev must be an integer from 0");
    refused("{\"task\":\"t\",\"rev\":2147483648}", "rev must be an integer from 0");
    refused("{\"task\":\"t\",\"data\":\"x\"}", "data must be an object");
    refused("{\"task\":\"t\",\"payload\":[]}", "payload must be a text");
    refused("{\"task\":\"t\",\"payload\":{},\"media_type\":\"a/b\"}", "media_type in it");
    refused("{\"task\":\"t\",\"not_before\":\"soon\"}", "not_before 'soon' is no time");
    refused("{\"task\":\"t\",\"deadline\":\"\"}", "deadline '' is no time");
    refused("{\"task\":\"t\",\"expires\":\"8d\"}", "expires '8d' is no duration");
    refused("{\"task\":\"t\",\"expires\":\"0s\"}", "expires '0s' is no duration");
}

static void test_a_line_is_bounded(void **state)
{
    (void)state;
    static char text[PUBLISH_LINE_MAX + 64];
    struct publish_line line;
    struct baton_error err;
    memset(text, ' ', sizeof(text));
    assert_int_equal(publish_line_read(text, sizeof(text), &fallback, &line, &err),
                     BATON_E_record_too_large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_line_leaves_out_the_options_say),
        cmocka_unit_test(test_the_same_line_has_the_same_key),
        cmocka_unit_test(test_mistakes_are_told),
        cmocka_unit_test(test_a_line_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
