/* Ids, clocks, quantities and delays: grammar and round trips. */
#include "base_test.h"

#include "common/base/backoff.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/id.h"
#include "common/base/quantity.h"
#include "common/base/word.h"

static void r23_ids_have_one_grammar(void **state)
{
    (void)state;
    char longest[KEY_MAX + 2];
    memset(longest, 'a', sizeof(longest));
    assert_true(plain_id_valid("a.b-c_0", 7));
    assert_true(file_id_valid("a.b-c_0", 7));
    assert_false(file_id_valid(".", 1));
    assert_false(file_id_valid("..", 2));
    assert_false(file_id_valid(".a", 2));
    assert_false(plain_id_valid("", 0));
    assert_false(plain_id_valid("A", 1));
    assert_false(plain_id_valid(" a", 2));
    assert_false(plain_id_valid("a ", 2));
    assert_false(plain_id_valid("a\n", 2));
    assert_false(plain_id_valid("a\0", 2));
    assert_false(plain_id_valid("a/b", 3));
    assert_false(plain_id_valid("\xC3\xA4", 2));
    assert_true(plain_id_valid(longest, ID_MAX));
    assert_false(plain_id_valid(longest, ID_MAX + 1));
    assert_true(idempotency_key_valid(longest, KEY_MAX));
    assert_false(idempotency_key_valid(longest, KEY_MAX + 1));
    assert_true(task_id_valid("ORG/repo#12:x", 13));
    assert_false(task_id_valid("a b", 3));
    assert_false(task_id_valid("a\x1b", 2));
}

static void d14_service_names(void **state)
{
    (void)state;
    char longest[SERVICE_MAX + 1];
    memset(longest, 's', sizeof(longest));
    assert_true(service_id_valid("claude-review", 13));
    assert_true(service_id_valid(longest, SERVICE_MAX));
    assert_false(service_id_valid(longest, SERVICE_MAX + 1));
    static const char *const wrong[] = {"",     "a.b",
                                        "a_b",  "x/y",
                                        "..",   "coordinator",
                                        "A",    "a b",
                                        "a\n",  "__consumer_offsets",
                                        "../x", "\xC3\xA4"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_false(service_id_valid(wrong[i], strlen(wrong[i])));
    }
    assert_true(service_id_valid("coordinators", 12));
}

static void hex_both_ways(void **state)
{
    (void)state;
    const uint8_t bytes[] = {0x00, 0x0f, 0xa5, 0xff};
    uint8_t back[4];
    char hex[9];
    hex_encode(bytes, sizeof(bytes), hex);
    assert_string_equal(hex, "000fa5ff");
    assert_true(hex_decode(hex, 8, back, 4));
    assert_memory_equal(bytes, back, 4);
    assert_false(hex_decode("000FA5FF", 8, back, 4));
    assert_false(hex_decode("000fa5f", 7, back, 4));
    assert_false(hex_valid("000fa5fg", 8, 8));
}

static void boots_differ(void **state)
{
    (void)state;
    struct boot_id a = boot_id_new();
    struct boot_id b = boot_id_new();
    assert_true(hex_valid(a.s, strlen(a.s), 32));
    assert_string_not_equal(a.s, b.s);
}

static void times_round_trip(void **state)
{
    (void)state;
    static const int64_t times[] = {
        0, 1, 951782400000, 1709210096123, 1796048443120, 253402300799999};
    for (size_t i = 0; i < COUNT_OF(times); i++) {
        struct wall_ms back;
        struct time_text text = wall_text((struct wall_ms){times[i]});
        assert_int_equal(strlen(text.s), TIME_TEXT_LEN);
        assert_true(wall_parse(text.s, TIME_TEXT_LEN, &back));
        assert_int_equal(back.v, times[i]);
    }
    assert_string_equal(wall_text((struct wall_ms){0}).s, "1970-01-01T00:00:00.000Z");
    assert_string_equal(wall_text((struct wall_ms){951782400000}).s, "2000-02-29T00:00:00.000Z");
}

static void times_that_are_none(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "2026-02-29T00:00:00.000Z",
        "2026-13-01T00:00:00.000Z",
        "2026-00-01T00:00:00.000Z",
        "2026-01-32T00:00:00.000Z",
        "2026-01-01T24:00:00.000Z",
        "2026-01-01T00:60:00.000Z",
        "2026-01-01T00:00:60.000Z",
        "2026-01-01T00:00:00.000z",
        "2026-01-01 00:00:00.000Z",
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:00:00.00Z",
        "2026-01-01T00:00:00.000+",
        "1969-12-31T23:59:59.999Z",
        "+026-01-01T00:00:00.000Z",
        "2026-01-01T00:00:00.000Z ",
        "1900-02-29T00:00:00.000Z",
        "",
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct wall_ms at = {7};
        if (wall_parse(wrong[i], strlen(wrong[i]), &at)) {
            fail_msg("taken: %s", wrong[i]);
        }
        assert_int_equal(at.v, 7);
    }
}

static void u7_the_clock_can_be_held(void **state)
{
    (void)state;
    clock_test_set((struct wall_ms){1000}, (struct mono_ms){5});
    assert_int_equal(wall_now().v, 1000);
    assert_int_equal(mono_now().v, 5);
    clock_test_set((struct wall_ms){0}, (struct mono_ms){0});
    assert_true(wall_now().v > 1600000000000);
    struct mono_ms a = mono_now();
    assert_true(mono_now().v >= a.v);
}

static bool duration_is(const char *text, int64_t ms)
{
    int64_t got = -1;
    return quantity_duration_parse(text, strlen(text), &got) && got == ms;
}

static void durations(void **state)
{
    (void)state;
    assert_true(duration_is("500ms", 500));
    assert_true(duration_is("0s", 0));
    assert_true(duration_is("2s", 2000));
    assert_true(duration_is("20m", 1200000));
    assert_true(duration_is("6h", 21600000));
    assert_true(duration_is("7d", 604800000));
    static const char *const wrong[] = {"",
                                        "5",
                                        "s",
                                        "5S",
                                        "5 s",
                                        "-5s",
                                        "+5s",
                                        "1.5s",
                                        "5s ",
                                        "05s",
                                        "1h30m",
                                        "5sec",
                                        "99999999999999999999s",
                                        "10001d",
                                        "0x5s"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        int64_t ms = 42;
        if (quantity_duration_parse(wrong[i], strlen(wrong[i]), &ms)) {
            fail_msg("taken: %s", wrong[i]);
        }
        assert_int_equal(ms, 42);
    }
    static const int64_t values[] = {0,     1,     999,     1000,     1500,
                                     60000, 90000, 3600000, 86400000, 90061001};
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        assert_true(duration_is(quantity_duration_text(values[i]).s, values[i]));
    }
    assert_string_equal(quantity_duration_text(1200000).s, "20m");
    assert_string_equal(quantity_age_text(0).s, "0s");
    assert_string_equal(quantity_age_text(90999).s, "90s");
    assert_string_equal(quantity_age_text(120000).s, "2m");
    assert_string_equal(quantity_age_text(2 * 3600000 + 59000).s, "2h");
    assert_string_equal(quantity_age_text(-5).s, "0s");
    assert_string_equal(quantity_duration_text(1500).s, "1500ms");
}

static void numbers(void **state)
{
    (void)state;
    int64_t n;
    double d;
    assert_true(quantity_int_parse("-12", 3, &n) && n == -12);
    assert_true(quantity_int_parse("0", 1, &n) && n == 0);
    assert_true(quantity_int_parse("9223372036854775807", 19, &n) && n == INT64_MAX);
    static const char *const wrong[] = {
        "",   "-", "012", "0x10", "1e3", "1_000", "1.0", " 1", "1 ", "+1", "9223372036854775808",
        "one"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_false(quantity_int_parse(wrong[i], strlen(wrong[i]), &n));
    }
    assert_true(quantity_real_parse("0.25", 4, &d) && d == 0.25);
    assert_true(quantity_real_parse("2", 1, &d) && d == 2);
    static const char *const unreal[] = {"", ".5", "1.", "1e3", "nan", "inf", "-1", "0x1p3", "1,5"};
    for (size_t i = 0; i < COUNT_OF(unreal); i++) {
        assert_false(quantity_real_parse(unreal[i], strlen(unreal[i]), &d));
    }
    assert_true(quantity_size_parse("64K", 3, &n) && n == 65536);
    assert_true(quantity_size_parse("10", 2, &n) && n == 10);
    assert_false(quantity_size_parse("9223372036854775807K", 20, &n));
    assert_false(quantity_size_parse("64k", 3, &n));
}

static void backoff_grows_is_capped_and_has_jitter(void **state)
{
    (void)state;
    const struct backoff b = {.first_ms = 2000, .factor = 2, .max_ms = 300000, .jitter = 0.2};
    assert_int_equal(backoff_delay_drawn_ms(&b, 1, 0, 0.5), 2000);
    assert_int_equal(backoff_delay_drawn_ms(&b, 2, 0, 0.5), 4000);
    assert_int_equal(backoff_delay_drawn_ms(&b, 5, 0, 0.5), 32000);
    assert_int_equal(backoff_delay_drawn_ms(&b, 9, 0, 0.5), 300000);
    assert_int_equal(backoff_delay_drawn_ms(&b, 1000000, 0, 0.5), 300000);
    assert_int_equal(backoff_delay_drawn_ms(&b, 1, 0, 0), 1600);
    assert_int_equal(backoff_delay_drawn_ms(&b, 1, 0, 1), 2400);
    int64_t least = INT64_MAX;
    int64_t most = 0;
    for (int i = 0; i < 1000; i++) {
        int64_t delay = backoff_delay_ms(&b, 3, 0);
        assert_in_range(delay, 6400, 9600);
        least = delay < least ? delay : least;
        most = delay > most ? delay : most;
    }
    assert_true(most - least > 1000); /* it is drawn, not fixed */
}

static void backoff_is_never_below_retry_after(void **state)
{
    (void)state;
    const struct backoff b = {.first_ms = 100, .factor = 2, .max_ms = 1000, .jitter = 1};
    for (int i = 0; i < 100; i++) {
        assert_true(backoff_delay_ms(&b, 1, 60000) >= 60000); /* above max, too */
    }
    const struct backoff none = {.first_ms = 0, .factor = 1, .max_ms = 0, .jitter = 0};
    assert_int_equal(backoff_delay_ms(&none, INT32_MAX, 0), 0);
}

static void a_hash_goes_on_where_it_was(void **state)
{
    (void)state;
    assert_int_equal(hash_bytes(HASH_START, NULL, 0), HASH_START);
    assert_int_equal(hash_bytes(HASH_START, "a", 1), 0xaf63dc4c8601ec8cU); /* FNV-1a, 64 bits */
    assert_int_equal(hash_bytes(hash_bytes(HASH_START, "foo", 3), "bar", 3), 0x85944171f73967e8U);
}

static void a_word_is_all_of_its_bytes(void **state)
{
    (void)state;
    assert_true(word_is("~owner", "~owner and more", 6));
    assert_false(word_is("~owner", "~owners", 7));
    assert_false(word_is("~owner", "~own", 4));
    assert_false(word_is("~owner", NULL, 6));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(r23_ids_have_one_grammar),
        cmocka_unit_test(d14_service_names),
        cmocka_unit_test(hex_both_ways),
        cmocka_unit_test(boots_differ),
        cmocka_unit_test(times_round_trip),
        cmocka_unit_test(times_that_are_none),
        cmocka_unit_test(u7_the_clock_can_be_held),
        cmocka_unit_test(durations),
        cmocka_unit_test(numbers),
        cmocka_unit_test(backoff_grows_is_capped_and_has_jitter),
        cmocka_unit_test(backoff_is_never_below_retry_after),
        cmocka_unit_test(a_hash_goes_on_where_it_was),
        cmocka_unit_test(a_word_is_all_of_its_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
