/* What an attempt took: strict to read, the same to write, and sums that stay numbers. */
#include "common/base/check.h"
#include "common/record/control.h"
#include "common/record/usage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_what_is_read_is_written(void **state)
{
    static const char text[] =
        "{\"agent\":\"claude\",\"model\":\"m-1\",\"session\":\"s\",\"verdict_from\":\"schema\","
        "\"cost_from\":\"program\","
        "\"input_tokens\":1,\"cached_tokens\":0,\"output_tokens\":3,\"cost_micros\":289,"
        "\"duration_ms\":9007199254740992}";
    struct usage usage;
    (void)state;
    assert_true(usage_parse(text, &usage));
    char *back = usage_text(&usage);
    assert_string_equal(back, text);
    free(back);
    assert_true(usage_parse("{}", &usage));
    assert_int_equal(usage.cost_micros, -1);
    back = usage_text(&usage);
    assert_string_equal(back, "{}");
    free(back);
}

static void test_what_is_not_plain_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{\"tokens\":1}",
        "{\"model\":\"\"}",
        "{\"model\":\"a\\u001bb\"}",
        "{\"model\":\"a\\\"b\"}",
        "{\"model\":\"\\u00e9\"}",
        "{\"agent\":\"a-name-that-is-too-long\"}",
        "{\"cost_micros\":-1}",
        "{\"cost_micros\":1.5}",
        "{\"cost_micros\":\"1\"}",
        "{\"input_tokens\":1,\"input_tokens\":2}",
    };
    struct usage usage;
    (void)state;
    assert_false(usage_parse(NULL, &usage));
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        if (usage_parse(bad[i], &usage)) {
            fail_msg("taken: %s", bad[i]);
        }
    }
}

static void test_sums(void **state)
{
    struct usage sum = usage_none();
    struct usage one = usage_none();
    (void)state;
    one.cost_micros = 5;
    usage_add(&sum, &one);
    usage_add(&sum, &one);
    assert_int_equal(sum.cost_micros, 10);
    assert_int_equal(sum.input_tokens, -1); /* nobody told */
    one.cost_micros = JSON_INT_MAX;
    usage_add(&sum, &one);
    assert_int_equal(sum.cost_micros, JSON_INT_MAX);
    one = sum;
    sum.cost_micros = 7;
    sum.output_tokens = 3;
    usage_subtract(&one, &sum); /* what was not told stays so, and nothing falls below 0 */
    assert_int_equal(one.cost_micros, JSON_INT_MAX - 7);
    assert_int_equal(one.output_tokens, -1);
    usage_subtract(&sum, &one);
    assert_int_equal(sum.cost_micros, 0);
}

/* The longest that can be written fits where it is kept. */
static void test_the_longest_fits(void **state)
{
    struct usage usage;
    (void)state;
#define LONG_TEXT(name, max)                                                                       \
    memset(usage.name, 'x', (max));                                                                \
    usage.name[max] = '\0';
    USAGE_TEXTS(LONG_TEXT)
#define LONG_NUMBER(name) usage.name = INT64_MAX;
    USAGE_NUMBERS(LONG_NUMBER)
    char *text = usage_text(&usage);
    assert_true(strlen(text) <= USAGE_TEXT_MAX);
    assert_true(usage_parse(text, &usage));
    free(text);
}

/* A lease holder's report brings it to the owner; nothing but a report does. */
static void test_a_report_carries_it(void **state)
{
    struct control control = {.kind = CONTROL_report,
                              .id = plain_id_of("r-1"),
                              .turn_id = turn_id_of("0123456789abcdef0123456789abcdef"),
                              .at = {1795962044000},
                              .attempt = 2,
                              .boot = {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
                              .failed = true,
                              .class = FAILURE_auth,
                              .usage = (char *)"{\"agent\":\"codex\",\"output_tokens\":7}"};
    struct buf value = BUF_INIT;
    struct control *back = NULL;
    struct baton_error err;
    (void)state;
    control_encode(&control, &value);
    assert_int_equal(control_parse(value.data, value.len, &back, &err), BATON_OK);
    assert_string_equal(back->usage, control.usage);
    control_free(back);
    char *at = strstr(value.data, "\"output_tokens\"");
    assert_non_null(at);
    memcpy(at, "\"output_tokenz\"", 15); /* a member that there is not */
    assert_int_equal(control_parse(value.data, value.len, &back, &err), BATON_E_invalid_envelope);
    buf_clear(&value);
    control.kind = CONTROL_renew;
    control.failed = false;
    control_encode(&control, &value);
    assert_null(strstr(value.data, "usage"));
    buf_done(&value);
}

/* Whole millionths, rounded up; what a program told itself, and what was not told at all, stays. */
static void test_prices(void **state)
{
    static const struct usage_prices prices = {true, 1250000, 125000, 10000000};
    static const struct usage_prices dear = {true, USAGE_PRICE_MAX, USAGE_PRICE_MAX,
                                             USAGE_PRICE_MAX};
    static const struct usage_prices free_of_charge = {true, 0, 0, 0};
    static const struct usage_prices unknown = {false, 1, 1, 1};
    static const struct {
        const char *told;
        const struct usage_prices *prices;
        int64_t cost;
        const char *from;
    } rows[] = {
        {"{\"input_tokens\":7,\"cached_tokens\":4,\"output_tokens\":7}", &prices, 80, "prices"},
        {"{\"input_tokens\":8,\"cached_tokens\":0,\"output_tokens\":9}", &prices, 100, "prices"},
        {"{\"output_tokens\":1}", &prices, 10, "prices"},
        {"{\"cached_tokens\":1}", &prices, 1, "prices"},
        {"{\"input_tokens\":3000001}", &prices, 3750002, "prices"},
        {"{\"input_tokens\":0}", &prices, 0, "prices"},
        {"{\"input_tokens\":99,\"output_tokens\":99}", &free_of_charge, 0, "prices"},
        {"{\"input_tokens\":9007199254740992,\"cached_tokens\":9007199254740992,"
         "\"output_tokens\":9007199254740992}",
         &dear, JSON_INT_MAX, "prices"},
        {"{\"input_tokens\":7,\"cost_micros\":5}", &prices, 5, ""},
        {"{\"input_tokens\":7,\"cost_micros\":0}", &prices, 0, ""},
        {"{\"duration_ms\":7}", &prices, -1, ""},
        {"{\"input_tokens\":7}", &unknown, -1, ""},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct usage usage;
        assert_true(usage_parse(rows[i].told, &usage));
        usage_price(&usage, rows[i].prices);
        if (usage.cost_micros != rows[i].cost) {
            fail_msg("%s: %lld", rows[i].told, (long long)usage.cost_micros);
        }
        assert_string_equal(usage.cost_from, rows[i].from);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prices),
        cmocka_unit_test(test_what_is_read_is_written),
        cmocka_unit_test(test_what_is_not_plain_is_refused),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_the_longest_fits),
        cmocka_unit_test(test_a_report_carries_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
