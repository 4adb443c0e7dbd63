/* The note about credential profiles that rest: what is written is read, and nothing else. */
#include "common/base/check.h"
#include "common/record/rest_note.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_what_is_written_is_read(void **state)
{
    struct rest_note note = {.worker = plain_id_of("w1"),
                             .boot = {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}};
    struct rest_note back;
    struct buf value = BUF_INIT;
    (void)state;
    for (; note.count < LIMIT_PROFILES; note.count++) {
        note.profiles[note.count] = (struct rest_profile){
            plain_id_of("a-name"), FAILURE_quota, {1795962044000}, {1795962045000}};
    }
    rest_note_encode(&note, &value);
    assert_true(rest_note_parse(value.data, value.len, &back));
    assert_int_equal(back.count, LIMIT_PROFILES);
    assert_string_equal(back.worker.s, "w1");
    assert_string_equal(back.boot.s, note.boot.s);
    assert_string_equal(back.profiles[LIMIT_PROFILES - 1].name.s, "a-name");
    assert_int_equal(back.profiles[0].class, FAILURE_quota);
    assert_int_equal(back.profiles[0].until.v, 1795962045000);
    for (size_t cut = 0; cut < value.len; cut++) {
        assert_false(rest_note_parse(value.data, cut, &back));
        assert_int_equal(back.count, 0);
    }
    buf_done(&value);
    assert_true(rest_note_is_key("~rest", 5));
    assert_false(rest_note_is_key("~rests", 6));
}

#define NOTE(profiles)                                                                             \
    "{\"version\":1,\"worker\":\"w\",\"boot\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\","               \
    "\"profiles\":" profiles "}"
#define SINCE "\"since\":\"2026-11-30T00:00:00.000Z\",\"until\":\"2026-11-30T00:00:00.000Z\""

static void test_what_no_owner_writes_is_none(void **state)
{
    static const char *const bad[] = {
        "[]",
        "{}",
        NOTE("7"),
        NOTE("[7]"),
        NOTE("[{\"name\":\"A\",\"class\":\"auth\"," SINCE "}]"),
        NOTE("[{\"name\":\"a\",\"class\":\"bored\"," SINCE "}]"),
        NOTE("[{\"name\":\"a\",\"class\":\"auth\"}]"),
    };
    struct rest_note note;
    (void)state;
    assert_true(rest_note_parse(NOTE("[{\"name\":\"a\",\"class\":\"auth\"," SINCE "}]"),
                                strlen(NOTE("[{\"name\":\"a\",\"class\":\"auth\"," SINCE "}]")),
                                &note));
    assert_false(rest_note_parse(NULL, 0, &note));
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        if (rest_note_parse(bad[i], strlen(bad[i]), &note)) {
            fail_msg("taken: %s", bad[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_written_is_read),
        cmocka_unit_test(test_what_no_owner_writes_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
