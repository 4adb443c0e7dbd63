/* Bounded lines out of pieces. */
#include "common/process/line_io.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Feeds text in pieces, writes what comes out as "W(line)" and "L(line)". */
static char *lines(const char *text, size_t piece, size_t max)
{
    struct line_reader reader;
    struct buf out = BUF_INIT;
    const char *line;
    size_t len;
    line_reader_init(&reader, max);
    for (size_t at = 0; at < strlen(text); at += piece) {
        size_t n = strlen(text) - at < piece ? strlen(text) - at : piece;
        assert_true(line_reader_feed(&reader, text + at, n));
        for (enum line_state state;
             (state = line_reader_next(&reader, &line, &len)) != LINE_none;) {
            buf_printf(&out, "%c(%.*s)", state == LINE_whole ? 'W' : 'L', (int)len, line);
        }
        assert_true(reader.kept.cap <= 256);
    }
    if (line_reader_rest(&reader, &line, &len)) {
        buf_printf(&out, "R(%.*s)", (int)len, line);
    }
    line_reader_done(&reader);
    return buf_take(&out, NULL);
}

static void test_lines_in_any_pieces(void **state)
{
    (void)state;
    static const char text[] =
        "one\n\ntwo\r\nexactly8\nninechars\n0123456789abcdefghij\nlast\nrest";
    for (size_t piece = 1; piece < sizeof(text); piece++) {
        char *got = lines(text, piece, 8);
        assert_string_equal(got, "W(one)W()W(two)W(exactly8)L(ninechar)L(01234567)W(last)R(rest)");
        free(got);
    }
}

static void test_the_last_line_is_one_as_others_are(void **state)
{
    (void)state;
    char *got = lines("one\r\ntwo\r", 4, 8);
    assert_string_equal(got, "W(one)R(two)");
    free(got);
}

static void test_endless_line_stays_bounded(void **state)
{
    (void)state;
    char text[20001];
    memset(text, 'x', 20000);
    memcpy(text + 19990, "\nend\n", 6);
    char *got = lines(text, 50, 8);
    assert_string_equal(got, "L(xxxxxxxx)W(end)");
    free(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_in_any_pieces),
        cmocka_unit_test(test_the_last_line_is_one_as_others_are),
        cmocka_unit_test(test_endless_line_stays_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
