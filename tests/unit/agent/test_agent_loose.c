/* Foreign JSON: what is one value, what stands in it, and that nothing else gets through. */
#include "common/base/check.h"
#include "worker/agent/loose.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool parses(const char *text)
{
    struct loose value;
    size_t len = strlen(text);
    char *bytes = malloc(len + 1); /* without the NUL in reach: a sanitizer sees one byte too far */
    assert_non_null(bytes);
    memcpy(bytes, text, len);
    bool ok = loose_parse(bytes, len, &value);
    free(bytes);
    return ok;
}

static void test_one_value_and_nothing_else(void **state)
{
    static const char *const good[] = {
        "{}",
        "[]",
        "[[]]",
        " {\"a\" : [1, 2.5e-3, -0, 1E+9, true, false, null, \"\\u00e9\\n\"]} ",
        "0",
        "\"\"",
        "{\"a\":1,\"a\":2}",
        "12345678901234567890",
        "[{\"a\":{}},[{}]]",
        "-0.5",
    };
    static const char *const bad[] = {
        "",           " ",     "{",         "}",           "[1,]",    "{\"a\"}",  "{\"a\":}",
        "{\"a\":1,}", "{a:1}", "01",        "1.",          "1e",      "-",        "tru",
        "nulll",      "\"",    "\"\\x\"",   "\"\\u12g4\"", "[1}",     "{\"]",     "[1 2]",
        "{} {}",      "{}x",   "[\"a\" 1]", "\"\\",        "\"\\u00", "[,1]",     "{,}",
        ".5",         "+1",    "{\"a\" 1}", "[[]",         "]",       "{\"a\":1",
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        if (!parses(good[i])) {
            fail_msg("refused: %s", good[i]);
        }
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        if (parses(bad[i])) {
            fail_msg("taken: %s", bad[i]);
        }
    }
}

static void test_depth_is_bounded(void **state)
{
    char text[2 * 200001];
    struct loose value;
    (void)state;
    for (size_t depth = LOOSE_DEPTH_MAX - 1; depth <= 200000; depth = depth * 3 / 2 + 1) {
        memset(text, '[', depth);
        text[depth] = '1';
        memset(text + depth + 1, ']', depth);
        assert_int_equal(loose_parse(text, 2 * depth + 1, &value), depth <= LOOSE_DEPTH_MAX);
    }
}

static struct loose of(const char *text)
{
    struct loose value;
    assert_true(loose_parse(text, strlen(text), &value));
    return value;
}

static void test_members(void **state)
{
    struct loose value =
        of("{\"a\":{\"b\":{\"c\":7}},\"list\":[1,\"two\",{}],\"a\":2,\"ok\":true}");
    struct loose name;
    struct loose member;
    int64_t number;
    size_t at = 0;
    int count = 0;
    (void)state;
    assert_true(loose_number(loose_at(value, "a.b.c"), 1, &number) && number == 7);
    assert_int_equal(loose_kind(loose_at(value, "a.x.c")), LOOSE_none);
    assert_int_equal(loose_kind(loose_at(value, "list.b")), LOOSE_none);
    assert_int_equal(loose_kind(loose_member(value, "A")), LOOSE_none);
    assert_true(loose_true(loose_member(value, "ok")));
    assert_false(loose_true(loose_member(value, "a")));
    while (loose_next(value, &at, &name, &member)) {
        count++;
    }
    assert_int_equal(count, 4);
    at = 0;
    count = 0;
    while (loose_next(loose_member(value, "list"), &at, NULL, &member)) {
        assert_true(count != 1 || loose_is(member, "two"));
        count++;
    }
    assert_int_equal(count, 3);
    at = 0;
    assert_false(loose_next(of("[ ]"), &at, NULL, &member));
    assert_false(loose_next(of("7"), &at, NULL, &member));
}

static void check_text(const char *json, size_t max, const char *expected)
{
    struct buf out = BUF_INIT;
    loose_text(of(json), max, &out);
    assert_string_equal(out.data != NULL ? out.data : "", expected);
    buf_done(&out);
}

static void test_texts(void **state)
{
    (void)state;
    check_text("\"a\\\"\\\\\\/\\b\\f\\n\\r\\tz\"", 100, "a\"\\/\b\f\n\r\tz");
    check_text("\"\\u00e9\\u20AC\\ud83d\\ude00\"", 100, "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
    check_text("\"\\ud83d-\\ude00\"", 100, "\xEF\xBF\xBD-\xEF\xBF\xBD"); /* halves alone */
    check_text("\"\\ud83d\\u0041\"", 100,
               "\xEF\xBF\xBD"
               "A");
    check_text("\"a\\u0000b\"", 100,
               "a\xEF\xBF\xBD"
               "b");
    check_text("\"a\xFF"
               "b\"",
               100,
               "a\xEF\xBF\xBD"
               "b");
    check_text("\"ab\\u20ac\"", 4, "ab"); /* cut between characters */
    check_text("7", 100, "");
}

static void check_number(const char *json, int64_t scale, int64_t expected)
{
    int64_t number = -1;
    assert_true(loose_number(of(json), scale, &number));
    assert_int_equal(number, expected);
}

static void test_numbers(void **state)
{
    int64_t number = 5;
    (void)state;
    check_number("0.000289", 1000000, 289);
    check_number("1.5e-3", 1000000, 1500);
    check_number("-2.25", 1000000, -2250000);
    check_number("3E2", 1, 300);
    check_number("1e400", 1, INT64_MAX);
    check_number("-1e400", 1000000, -INT64_MAX);
    check_number("1e-400", 1000000, 0);
    check_number("0e999999999999", 1, 0);
    check_number("99999999999999999999999999", 1, INT64_MAX);
    check_number("0.1234567890123456789012345", 1000000, 123456);
    assert_false(loose_number(of("\"7\""), 1, &number));
    assert_int_equal(number, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_value_and_nothing_else),
        cmocka_unit_test(test_depth_is_bounded),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
