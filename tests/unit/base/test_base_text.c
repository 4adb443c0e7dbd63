/* Foreign text never reaches a terminal raw, and JSON is always JSON (X32, P-99). */
#include "base_test.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/table.h"
#include "common/base/text.h"

#include <cjson/cJSON.h>

struct sample {
    const char *in;
    size_t len;
    const char *shown; /* by text_add */
    const char *json;  /* by text_json_add */
};

#define S(in, shown, json)                                                                         \
    {                                                                                              \
        in, sizeof(in) - 1, shown, json                                                            \
    }
static const struct sample samples[] = {
    S("plain", "plain", "\"plain\""),
    S("\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80", "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80",
      "\"\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\""),
    S("\x1b[2J", "\\x1b[2J", "\"\\u001b[2J\""),
    S("\x1b]0;x\x07", "\\x1b]0;x\\x07", "\"\\u001b]0;x\\u0007\""),
    S("a\nb\tc\r", "a\\x0ab\\x09c\\x0d", "\"a\\nb\\tc\\r\""),
    S("a\0b", "a\\x00b", "\"a\\u0000b\""),
    S("\x7f", "\\x7f", "\"\\u007f\""),
    S("\x9b"
      "2J",
      "\\x9b2J",
      "\"\xEF\xBF\xBD"
      "2J\""), /* raw C1: no UTF-8 */
    S("\xC2\x9b"
      "2J",
      "\\u{9b}2J", "\"\\u009b2J\""),         /* U+009B CSI */
    S("\xC2\x85", "\\u{85}", "\"\\u0085\""), /* NEL */
    S("\xE2\x80\xAE"
      "evil",
      "\\u{202e}evil", "\"\\u202eevil\""), /* RLO */
    S("\xE2\x81\xA6x\xE2\x81\xA9", "\\u{2066}x\\u{2069}", "\"\\u2066x\\u2069\""),
    S("\xE2\x80\x8B", "\\u{200b}", "\"\\u200b\""),
    S("\xE2\x80\x8E\xE2\x80\x8F", "\\u{200e}\\u{200f}", "\"\\u200e\\u200f\""),
    S("\xD8\x9C", "\\u{61c}", "\"\\u061c\""),
    S("\xE2\x80\xA8\xE2\x80\xA9", "\\u{2028}\\u{2029}", "\"\\u2028\\u2029\""),
    S("\xEF\xBB\xBF", "\\u{feff}", "\"\\ufeff\""),
    S("\xC2\xAD", "\\u{ad}", "\"\\u00ad\""),
    S("\xF3\xA0\x81\x81", "\\u{e0041}", "\"\\udb40\\udc41\""), /* tag A */
    S("\xF3\xA0\x84\x80", "\\u{e0100}", "\"\\udb40\\udd00\""),
    S("\xC0\x80", "\\xc0\\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\""), /* overlong NUL */
    S("\xC0\xAF", "\\xc0\\xaf", "\"\xEF\xBF\xBD\xEF\xBF\xBD\""),
    S("\xED\xA0\x80", "\\xed\\xa0\\x80",
      "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""), /* surrogate */
    S("\xF4\x90\x80\x80", "\\xf4\\x90\\x80\\x80",
      "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""),
    S("\xE2\x82", "\\xe2\\x82", "\"\xEF\xBF\xBD\xEF\xBF\xBD\""), /* cut short */
    S("\"\\", "\"\\", "\"\\\"\\\\\""),
    S("", "", "\"\""),
};

static void x32_foreign_text_is_escaped(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(samples); i++) {
        struct buf shown = BUF_INIT;
        struct buf json = BUF_INIT;
        text_add(&shown, samples[i].in, samples[i].len, 0);
        text_json_add(&json, samples[i].in, samples[i].len);
        assert_string_equal(text_in(&shown), samples[i].shown);
        assert_string_equal(text_in(&json), samples[i].json);
        assert_string_equal(text_quote(samples[i].in, samples[i].len).s, samples[i].shown);
        cJSON *parsed = cJSON_Parse(json.data);
        assert_non_null(parsed);
        cJSON_Delete(parsed);
        buf_done(&shown);
        buf_done(&json);
    }
}

/* Every code point and every byte: the output has nothing dangerous left in it. */
static void x32_nothing_dangerous_is_left(void **state)
{
    (void)state;
    for (uint32_t point = 0; point <= 0x10FFFF; point++) {
        char in[4];
        size_t n;
        if (point < 0x80) {
            in[0] = (char)point;
            n = 1;
        } else if (point < 0x800) {
            in[0] = (char)(0xC0 | point >> 6);
            in[1] = (char)(0x80 | (point & 63));
            n = 2;
        } else if (point < 0x10000) {
            in[0] = (char)(0xE0 | point >> 12);
            in[1] = (char)(0x80 | (point >> 6 & 63));
            in[2] = (char)(0x80 | (point & 63));
            n = 3;
        } else {
            in[0] = (char)(0xF0 | point >> 18);
            in[1] = (char)(0x80 | (point >> 12 & 63));
            in[2] = (char)(0x80 | (point >> 6 & 63));
            in[3] = (char)(0x80 | (point & 63));
            n = 4;
        }
        struct text_quote quote = text_quote(in, n);
        size_t len = strlen(quote.s);
        assert_true(len > 0);
        for (size_t i = 0; i < len;) {
            uint32_t out;
            size_t k = text_utf8_next(quote.s + i, len - i, &out);
            assert_true(k > 0);
            assert_false(text_dangerous(out));
            i += k;
        }
        bool surrogate = point >= 0xD800 && point <= 0xDFFF;
        assert_int_equal(text_utf8_valid(in, n), !surrogate);
    }
    for (int c = 0x80; c < 0x100; c++) {
        char in = (char)c;
        assert_int_equal(text_quote(&in, 1).s[0], '\\');
    }
}

static void text_is_cut_between_characters(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    text_add(&out, "0123456789", 10, 10);
    assert_string_equal(text_in(&out), "0123456789");
    buf_clear(&out);
    text_add(&out, "0123456789a", 11, 10);
    assert_string_equal(text_in(&out), "0123456...");
    buf_clear(&out);
    text_add(&out, "12345\x1b\x1b\x1b", 8, 10); /* an escape is not cut in two */
    assert_string_equal(text_in(&out), "12345...");
    buf_clear(&out);
    text_add(&out, "\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC", 12, 10);
    assert_string_equal(text_in(&out), "\xE2\x82\xAC\xE2\x82\xAC...");
    buf_clear(&out);
    buf_add_text(&out, "before:");
    text_add(&out, "abcdef", 6, 4);
    assert_string_equal(text_in(&out), "before:a...");
    buf_done(&out);
    char longer[1000];
    memset(longer, 'x', sizeof(longer));
    struct text_quote quote = text_quote(longer, sizeof(longer));
    assert_int_equal(strlen(quote.s), TEXT_QUOTE_MAX);
    assert_string_equal(quote.s + TEXT_QUOTE_MAX - 3, "...");
    assert_string_equal(text_quote_of(NULL).s, "");
}

static void lines_keep_their_newlines(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    text_add_lines(&out, "a\r\n\n\tb\x1b\r", 8, 0, "  ");
    assert_string_equal(text_in(&out), "  a\n\n      b\\x1b\\x0d");
    buf_done(&out);
}

static void plain_json_escapes_what_json_demands(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    text_json_add_plain(&out, "a\"\\\n\x01\x7f\xE2\x80\xAE\xC3\xA4\xff", 12);
    assert_string_equal(text_in(&out),
                        "\"a\\\"\\\\\\n\\u0001\x7f\xE2\x80\xAE\xC3\xA4\xEF\xBF\xBD\"");
    buf_done(&out);
}

static void utf8_is_validated_at_any_alignment(void **state)
{
    (void)state;
    char text[64];
    for (size_t at = 0; at < sizeof(text); at++) {
        memset(text, 'a', sizeof(text));
        assert_true(text_utf8_valid(text, sizeof(text)));
        text[at] = (char)0xFF;
        assert_false(text_utf8_valid(text, sizeof(text)));
        text[at] = (char)0xC3; /* followed by 'a', or by nothing */
        assert_false(text_utf8_valid(text, sizeof(text)));
        if (at + 1 < sizeof(text)) {
            text[at + 1] = (char)0xA4;
            assert_true(text_utf8_valid(text, sizeof(text)));
        }
    }
    assert_true(text_utf8_valid("", 0));
}

static void widths(void **state)
{
    (void)state;
    assert_int_equal(text_width("abc", 3), 3);
    assert_int_equal(text_width("\xE6\xBC\xA2", 3), 2);
    assert_int_equal(text_width("e\xCC\x81", 3), 1);
    assert_int_equal(text_width("\xF0\x9F\x98\x80", 4), 2);
}

/* ---- jsonw ---- */

static void jsonw_writes_commas_and_nesting(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    struct jsonw w = jsonw_to(&out);
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "a", "x");
    jsonw_key_int(&w, "b", INT64_MIN);
    jsonw_key(&w, "c");
    jsonw_begin_array(&w);
    jsonw_int(&w, 1);
    jsonw_begin_object(&w);
    jsonw_end(&w);
    jsonw_begin_array(&w);
    jsonw_end(&w);
    jsonw_null(&w);
    jsonw_bool(&w, false);
    jsonw_text(&w, NULL);
    jsonw_raw(&w, "{\"r\":1}", 7);
    jsonw_end(&w);
    jsonw_key_bool(&w, "d", true);
    jsonw_key_plain(&w, "e", "p", 1);
    jsonw_key_raw(&w, "f", "[]", 2);
    assert_false(jsonw_whole(&w));
    jsonw_key_any(&w, "g\"\x1b", 3);
    jsonw_real(&w, 1.5);
    jsonw_end(&w);
    assert_true(jsonw_whole(&w));
    assert_string_equal(text_in(&out),
                        "{\"a\":\"x\",\"b\":-9223372036854775808,\"c\":[1,{},[],null,false,null,"
                        "{\"r\":1}],\"d\":true,\"e\":\"p\",\"f\":[],\"g\\\"\\u001b\":1.5}");
    buf_done(&out);
}

static void jsonw_numbers(void **state)
{
    (void)state;
    static const struct {
        double in;
        const char *out;
    } reals[] = {{0, "0"},     {2, "2"},        {-0.25, "-0.25"},    {1.0 / 3, "0.333333"},
                 {100, "100"}, {1e300, "null"}, {1.0 / 0.0, "null"}, {0.0 / 0.0, "null"}};
    for (size_t i = 0; i < COUNT_OF(reals); i++) {
        struct buf out = BUF_INIT;
        struct jsonw w = jsonw_to(&out);
        jsonw_real(&w, reals[i].in);
        assert_string_equal(text_in(&out), reals[i].out);
        assert_true(jsonw_whole(&w));
        buf_done(&out);
    }
}

/* Every byte and some pairs, as value and as key: any JSON parser takes the result. */
static void jsonw_is_valid_whatever_comes_in(void **state)
{
    (void)state;
    for (int a = 0; a < 256; a++) {
        for (int b = 0; b < 256; b += 5) {
            char in[3] = {(char)a, (char)b, (char)a};
            struct buf out = BUF_INIT;
            struct jsonw w = jsonw_to(&out);
            jsonw_begin_object(&w);
            jsonw_key_any(&w, in, sizeof(in));
            jsonw_bytes(&w, in, sizeof(in));
            jsonw_key_plain(&w, "plain", in, sizeof(in));
            jsonw_end(&w);
            assert_true(text_utf8_valid(out.data, out.len));
            cJSON *parsed = cJSON_ParseWithLengthOpts(out.data, out.len + 1, NULL, true);
            if (parsed == NULL && a != 0 && b != 0) {
                fail_msg("not JSON: %s", out.data);
            }
            cJSON_Delete(parsed);
            buf_done(&out);
        }
    }
}

static void jsonw_nests_to_its_depth(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    struct jsonw w = jsonw_to(&out);
    for (int i = 0; i < JSONW_DEPTH; i++) {
        jsonw_begin_array(&w);
    }
    for (int i = 0; i < JSONW_DEPTH; i++) {
        jsonw_end(&w);
    }
    assert_true(jsonw_whole(&w));
    assert_int_equal(out.len, 2 * JSONW_DEPTH);
    buf_done(&out);
}

/* ---- tables ---- */

static void table_is_aligned_and_escaped(void **state)
{
    (void)state;
    static const char *const titles[] = {"ID", "N", "SUMMARY"};
    struct table *table = table_new(titles, 3);
    struct buf out = BUF_INIT;
    table_text(table, "t-1");
    table_int(table, 5);
    table_text(table, "fine");
    table_text(table, "t-200");
    table_int(table, 1234);
    table_text(table, "\x1b[31mred\nline");
    table_text(table, "t-3");
    table_int(table, 0);
    table_text(table, NULL);
    assert_int_equal(table_rows(table), 3);
    assert_true(table_print(table, 0, &out));
    assert_string_equal(text_in(&out), "ID        N  SUMMARY\n"
                                       "t-1       5  fine\n"
                                       "t-200  1234  \\x1b[31mred\\x0aline\n"
                                       "t-3       0  -\n");
    table_free(table);
    buf_done(&out);
}

static void table_fits_the_terminal(void **state)
{
    (void)state;
    static const char *const titles[] = {"ID", "SUMMARY", "STATE"};
    struct table *table = table_new(titles, 3);
    struct buf out = BUF_INIT;
    table_text(table, "0123456789abcdef");
    table_text(table, "a summary that is much too long for this terminal \xE6\xBC\xA2\xE6\xBC\xA2");
    table_text(table, "parked");
    assert_true(table_print(table, 50, &out));
    size_t widest = 0;
    for (const char *at = text_in(&out); *at != '\0';) {
        size_t n = strcspn(at, "\n");
        size_t columns = text_width(at, n);
        widest = columns > widest ? columns : widest;
        assert_true(n == 0 || at[n - 1] != ' ');
        at += n + 1;
    }
    assert_true(widest <= 50);
    assert_non_null(strstr(out.data, "0123456789abcdef")); /* an id that is cut is no id */
    assert_non_null(strstr(out.data, "...  parked"));
    table_free(table);
    buf_done(&out);
}

/* A title that is wider than the narrowest column: once, the blanks behind it had no end. */
static void table_keeps_its_titles_when_narrow(void **state)
{
    (void)state;
    static const char *const titles[] = {"ID", "WORKERS (PARTITIONS)", "OLDEST WAITING"};
    struct table *table = table_new(titles, 3);
    struct buf out = BUF_INIT;
    table_text(table, "0123456789abcdef");
    table_text(table, "vm-1 (0,1,2,3) vm-2 (4,5,6,7)");
    table_int(table, 7);
    assert_true(table_print(table, 20, &out));
    assert_string_equal(text_in(&out), "ID                WORKERS (PARTITIONS)  OLDEST WAITING\n"
                                       "0123456789abcdef  vm-1 (0,1,2,3) vm...               7\n");
    table_free(table);
    buf_done(&out);
}

static void table_cuts_nothing_that_is_whole(void **state)
{
    (void)state;
    static const char *const titles[] = {"ID", "TASK", "AT", "NOTE"};
    struct table *table = table_new(titles, 4);
    struct buf out = BUF_INIT;
    table_text(table, "0123");
    table_text(table, "a-task-with-a-long-name");
    table_whole(table, "11-29 17:14:21");
    table_whole(table, "the last runs over the edge where it must");
    assert_true(table_print(table, 48, &out));
    assert_string_equal(
        text_in(&out),
        "ID    TASK          AT              NOTE\n"
        "0123  a-task-wi...  11-29 17:14:21  the last runs over the edge where it must\n");
    table_free(table);
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(x32_foreign_text_is_escaped),
        cmocka_unit_test(x32_nothing_dangerous_is_left),
        cmocka_unit_test(text_is_cut_between_characters),
        cmocka_unit_test(lines_keep_their_newlines),
        cmocka_unit_test(plain_json_escapes_what_json_demands),
        cmocka_unit_test(utf8_is_validated_at_any_alignment),
        cmocka_unit_test(widths),
        cmocka_unit_test(jsonw_writes_commas_and_nesting),
        cmocka_unit_test(jsonw_numbers),
        cmocka_unit_test(jsonw_is_valid_whatever_comes_in),
        cmocka_unit_test(jsonw_nests_to_its_depth),
        cmocka_unit_test(table_is_aligned_and_escaped),
        cmocka_unit_test(table_fits_the_terminal),
        cmocka_unit_test(table_keeps_its_titles_when_narrow),
        cmocka_unit_test(table_cuts_nothing_that_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
