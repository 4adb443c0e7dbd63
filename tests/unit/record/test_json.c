/* Strict JSON: every trap that cJSON walks into is refused before it, with a place (X33, C14, C18).
 */
#include "fixture.h"

#include "common/record/json.h"

#include <sys/mman.h>

static baton_code parse(const char *text, size_t len, int depth, struct baton_error *err)
{
    struct json_doc *doc = NULL;
    baton_code rc = json_parse(text, len, 1 << 20, depth, &doc, err);
    assert_true((doc != NULL) == (rc == BATON_OK));
    json_free(doc);
    return rc;
}

static void takes(const char *text)
{
    struct baton_error err;
    if (parse(text, strlen(text), 16, &err) != BATON_OK) {
        fail_msg("%s: %s", text, err.text);
    }
}

/* Refused, and the error holds the words. */
static void refuses_bytes(const char *text, size_t len, const char *words)
{
    struct baton_error err;
    baton_code rc = parse(text, len, 16, &err);
    if (rc != BATON_E_invalid_envelope || strstr(err.text, words) == NULL) {
        fail_msg("%.60s: %s, %s", text, baton_code_word(rc), rc == BATON_OK ? "" : err.text);
    }
}

static void refuses(const char *text, const char *words)
{
    refuses_bytes(text, strlen(text), words);
}

static void json_takes_what_is_json(void **state)
{
    (void)state;
    takes("{}");
    takes("[]");
    takes(" \t\r\n{ \"a\" : [ 1 , -2 , true , false , null , \"\" , { } , [ ] ] } \n");
    takes("0");
    takes("\"x\"");
    takes("{\"\":1}");
    takes("{\"a\":{\"a\":{\"a\":1}}}");
    takes("\"\\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u00e4 \\ud83d\\ude00 \xc3\xa4 \xe2\x82\xac "
          "\xf0\x9f\x98\x80\"");
}

static void json_refuses_what_is_none(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",         " ",          "{",       "}",         "{]",       "[1,]", "[,1]",   "{\"a\"}",
        "{\"a\":}", "{\"a\":1,}", "{a:1}",   "{'a':1}",   "[1 2]",    "\"",   "\"\\\"", "\"\\",
        "tru",      "True",       "NaN",     "Infinity",  "+1",       "-",    "[1",     "{\"a\":1",
        "// x\n1",  "/**/1",      "\"\\x\"", "\"\\u12\"", "undefined"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        refuses(bad[i], "");
    }
    refuses("\"a\nb\"", "U+000A");
}

static void json_x33_duplicate_keys_at_each_level(void **state)
{
    (void)state;
    refuses("{\"role\":\"owner\",\"role\":\"reviewer\"}", "stands twice");
    refuses("{\"a\":{\"b\":1,\"c\":2,\"b\":3}}", "stands twice");
    refuses("{\"a\":[{\"b\":{\"c\":1,\"c\":1}}]}", "stands twice");
    takes("{\"a\":{\"b\":1},\"b\":{\"a\":1}}");
    /* Case matters, so these are two keys. */
    takes("{\"role\":1,\"Role\":2}");
}

static void json_x33_duplicate_keys_by_escapes(void **state)
{
    (void)state;
    refuses("{\"role\":1,\"\\u0072ole\":2}", "stands twice");
    refuses("{\"\\ud83d\\ude00\":1,\"\xf0\x9f\x98\x80\":2}", "stands twice");
    refuses("{\"a\\/b\":1,\"a/b\":2}", "stands twice");
    takes("{\"a\\nb\":1,\"anb\":2}");
}

static void json_duplicates_among_many_keys(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    struct baton_error err;
    for (int twice = 0; twice < 2; twice++) {
        buf_clear(&text);
        buf_add_char(&text, '{');
        for (int i = 0; i < 20000; i++) {
            buf_printf(&text, "\"k%d\":%d,", i, i);
        }
        buf_printf(&text, "\"%s\":0}", twice ? "k\\u0031234" : "z");
        assert_int_equal(parse(text.data, text.len, 16, &err),
                         twice ? BATON_E_invalid_envelope : BATON_OK);
    }
    buf_done(&text);
}

static void json_c14_escaped_nul(void **state)
{
    (void)state;
    refuses("{\"a\":\"x\\u0000y\"}", "NUL");
    refuses("{\"a\\u0000b\":1}", "NUL");
    refuses_bytes("\"a\0b\"", 5, "U+0000");
    refuses_bytes("{}\0", 3, "behind the value");
    refuses_bytes("\0{}", 3, "");
}

static void json_trailing_bytes(void **state)
{
    (void)state;
    refuses("{}x", "behind the value");
    refuses("{} {}", "behind the value");
    refuses("1,", "behind the value");
    refuses("{\"a\":1}}", "behind the value");
}

static void json_byte_order_mark(void **state)
{
    (void)state;
    refuses("\xEF\xBB\xBF{}", "byte order mark");
    refuses("{}\xEF\xBB\xBF", "behind the value");
}

static void json_invalid_utf8_of_each_kind(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "\x80", /* a continuation alone */
        "\xbf",
        "\xc3", /* cut */
        "\xe2\x82",
        "\xf0\x9f\x98",
        "\xc0\x80", /* overlong NUL */
        "\xc1\xbf", /* overlong */
        "\xe0\x80\xaf",
        "\xf0\x80\x80\xaf",
        "\xed\xa0\x80", /* surrogates */
        "\xed\xbf\xbf",
        "\xf4\x90\x80\x80", /* beyond U+10FFFF */
        "\xf5\x80\x80\x80",
        "\xfe",
        "\xff",
        "\xc3\x28", /* continuation missing */
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        char text[32];
        snprintf(text, sizeof(text), "{\"a\":\"x%s\"}", bad[i]);
        refuses(text, "UTF-8");
        snprintf(text, sizeof(text), "{\"x%s\":1}", bad[i]);
        refuses(text, "UTF-8");
    }
}

static void json_lone_surrogates(void **state)
{
    (void)state;
    refuses("\"\\ud83d\"", "surrogate");
    refuses("\"\\ude00\"", "surrogate");
    refuses("\"\\ud83dx\"", "surrogate");
    refuses("\"\\ud83d\\u0041\"", "surrogate");
    refuses("\"\\ud83d\\ud83d\"", "surrogate");
}

static void json_numbers_are_integers_that_fit(void **state)
{
    (void)state;
    takes("9007199254740992");
    takes("-9007199254740992");
    refuses("9007199254740993", "2^53");
    refuses("-9007199254740993", "2^53");
    refuses("99999999999999999999999999", "2^53");
    refuses("-0", "-0");
    refuses("1.0", "integers");
    refuses("1.5", "integers");
    refuses("1e3", "integers");
    refuses("1E3", "integers");
    refuses("0.1", "integers");
    refuses("01", "leading zero");
    refuses("-01", "leading zero");
    refuses(".5", "");
    refuses("0x10", "");
}

static void json_numbers_keep_their_value(void **state)
{
    (void)state;
    struct json_doc *doc = NULL;
    struct baton_error err;
    const char *text = "[9007199254740992,-9007199254740992,0,1]";
    assert_int_equal(json_parse(text, strlen(text), 100, 4, &doc, &err), BATON_OK);
    const struct json_value *v = json_first(json_root(doc));
    assert_true(json_int(v) == 9007199254740992LL);
    assert_true(json_int(json_next(v)) == -9007199254740992LL);
    json_free(doc);
}

/* C18: nesting of any depth is refused cleanly above the cap, objects as well as arrays. */
static void json_c18_depth(void **state)
{
    (void)state;
    static const int depths[] = {15, 16, 17, 64, 999, 1000, 1001, 200000};
    struct buf text = BUF_INIT;
    struct baton_error err;
    for (size_t i = 0; i < COUNT_OF(depths); i++) {
        for (int objects = 0; objects < 2; objects++) {
            buf_clear(&text);
            for (int d = 0; d < depths[i]; d++) {
                buf_add_text(&text, objects ? (d + 1 < depths[i] ? "{\"a\":" : "{") : "[");
            }
            for (int d = 0; d < depths[i]; d++) {
                buf_add_char(&text, objects ? '}' : ']');
            }
            struct json_doc *doc = NULL;
            baton_code rc = json_parse(text.data, text.len, 4 << 20, 16, &doc, &err);
            assert_int_equal(rc, depths[i] <= 16 ? BATON_OK : BATON_E_invalid_envelope);
            if (rc != BATON_OK) {
                assert_non_null(strstr(err.text, "deeper than 16"));
            }
            json_free(doc);
        }
    }
    buf_done(&text);
}

static void json_size_and_number_of_values(void **state)
{
    (void)state;
    struct json_doc *doc = NULL;
    struct baton_error err;
    struct buf text = BUF_INIT;
    assert_int_equal(json_parse("[1]", 3, 2, 16, &doc, &err), BATON_E_record_too_large);
    assert_int_equal(json_parse(NULL, 0, 2, 16, &doc, &err), BATON_E_invalid_envelope);
    buf_add_char(&text, '[');
    for (int i = 0; i < 70000; i++) {
        buf_add_text(&text, "1,");
    }
    buf_add_text(&text, "1]");
    refuses_bytes(text.data, text.len, "65536 values");
    buf_done(&text);
}

static void json_says_line_and_column(void **state)
{
    (void)state;
    refuses("{\"a\":1,\n  \"b\":x}", "line 2 column 7");
    refuses("{\n\"\xc3\xa4\": \"\xc3\xa4\", \"a\":1.5}", "line 2 column 15");
    refuses("{\"a\":1,\n\"a\":2}", "line 2 column 1");
}

/* C02: the bytes end where their length says, not at a NUL: here at the end of a page. */
static void json_c02_reads_by_length(void **state)
{
    (void)state;
    long page = sysconf(_SC_PAGESIZE);
    struct baton_error err;
    char *two =
        mmap(NULL, (size_t)page * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(two != MAP_FAILED);
    assert_int_equal(mprotect(two + page, (size_t)page, PROT_NONE), 0);
    static const char *const texts[] = {"{\"a\":\"b\"}", "[1]",      "123",        "{\"a\":12",
                                        "\"abc",         "\"a\\u12", "tru",        "[nul",
                                        "{\"a\"",        "\"\\",     "\"\xe2\x82", "-"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        size_t len = strlen(texts[i]);
        char *at = two + page - len;
        memcpy(at, texts[i], len);
        (void)parse(at, len, 16, &err);
    }
    munmap(two, (size_t)page * 2);
}

static void json_raw_gives_members_as_they_stand(void **state)
{
    (void)state;
    const char *text =
        "{ \"a\" : { \"b\" : [ 1, 2 ] } , \"\\u0063\":\"\\u0041\",\"d\":[],\"e\":-5 }";
    struct json_doc *doc = NULL;
    struct baton_error err;
    assert_int_equal(json_parse(text, strlen(text), 1000, 16, &doc, &err), BATON_OK);
    static const char *const rows[][2] = {
        {"a", "{ \"b\" : [ 1, 2 ] }"}, {"c", "\"\\u0041\""}, {"d", "[]"}, {"e", "-5"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct json_span raw = json_raw(doc, rows[i][0]);
        assert_non_null(raw.at);
        assert_int_equal(raw.len, strlen(rows[i][1]));
        assert_memory_equal(raw.at, rows[i][1], raw.len);
    }
    assert_null(json_raw(doc, "b").at);
    assert_null(json_raw(doc, "x").at);
    assert_null(json_member(json_root(doc), "A"));
    assert_string_equal(json_text(json_member(json_root(doc), "c"), NULL), "A");
    json_free(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_takes_what_is_json),
        cmocka_unit_test(json_refuses_what_is_none),
        cmocka_unit_test(json_x33_duplicate_keys_at_each_level),
        cmocka_unit_test(json_x33_duplicate_keys_by_escapes),
        cmocka_unit_test(json_duplicates_among_many_keys),
        cmocka_unit_test(json_c14_escaped_nul),
        cmocka_unit_test(json_trailing_bytes),
        cmocka_unit_test(json_byte_order_mark),
        cmocka_unit_test(json_invalid_utf8_of_each_kind),
        cmocka_unit_test(json_lone_surrogates),
        cmocka_unit_test(json_numbers_are_integers_that_fit),
        cmocka_unit_test(json_numbers_keep_their_value),
        cmocka_unit_test(json_c18_depth),
        cmocka_unit_test(json_size_and_number_of_values),
        cmocka_unit_test(json_says_line_and_column),
        cmocka_unit_test(json_c02_reads_by_length),
        cmocka_unit_test(json_raw_gives_members_as_they_stand),
    };
    return cmocka_run_group_tests_name("strict JSON", tests, NULL, NULL);
}
