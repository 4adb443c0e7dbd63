/* The note about credential profiles that rest: what is written is read, and nothing else. */
#include "common/base/check.h"
#include "common/record/rest_note.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
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
            plain_id_of("a-name"), FAILURE_quota, {1795962044000}, {1795962045000}, {""}};
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

/* what waits to be cleared has no end, and the mark of its credential instead. */
static void test_r33_refused_is_without_an_end(void **state)
{
    static const char *const marks[] = {"0a9f", ""};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(marks); i++) {
        struct rest_note note = {
            .worker = plain_id_of("w1"), .boot = {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}, .count = 1};
        struct rest_note back;
        struct buf value = BUF_INIT;
        note.profiles[0] = (struct rest_profile){
            .name = plain_id_of("team"), .class = FAILURE_auth, .since = {1795962044000}};
        snprintf(note.profiles[0].mark.s, sizeof(note.profiles[0].mark.s), "%s", marks[i]);
        rest_note_encode(&note, &value);
        assert_true(rest_note_parse(value.data, value.len, &back));
        assert_true(rest_profile_refused(&back.profiles[0]));
        assert_true(rest_profile_rests(&back.profiles[0], (struct wall_ms){INT64_MAX}));
        assert_string_equal(back.profiles[0].mark.s, marks[i]);
        assert_int_equal(back.profiles[0].since.v, 1795962044000);
        buf_done(&value);
    }
    const struct rest_profile timed = {.until = {1000}};
    assert_false(rest_profile_refused(&timed));
    assert_true(rest_profile_rests(&timed, (struct wall_ms){999}));
    assert_false(rest_profile_rests(&timed, (struct wall_ms){1000}));

    struct rest_note two = {.count = 2};
    two.profiles[0] = (struct rest_profile){.name = plain_id_of("team"), .until = {1000}};
    two.profiles[1] = (struct rest_profile){.name = plain_id_of("own")};
    assert_ptr_equal(rest_note_find(&two, "team", (struct wall_ms){999}), &two.profiles[0]);
    assert_null(rest_note_find(&two, "team", (struct wall_ms){1000}));
    assert_ptr_equal(rest_note_find(&two, "own", (struct wall_ms){1000}), &two.profiles[1]);
    assert_null(rest_note_find(&two, "other", (struct wall_ms){0}));
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
        NOTE("[{\"name\":\"a\",\"class\":\"auth\",\"since\":\"2026-11-30T00:00:00.000Z\"}]"),
        NOTE("[{\"name\":\"a\",\"class\":\"auth\",\"since\":\"2026-11-30T00:00:00.000Z\",\"mark\":"
             "\"0A9F\"}]"),
        NOTE("[{\"name\":\"a\",\"class\":\"auth\",\"since\":\"2026-11-30T00:00:00.000Z\",\"mark\":"
             "\"0a9f0\"}]"),
        NOTE("[{\"name\":\"a\",\"class\":\"auth\",\"since\":\"2026-11-30T00:00:00.000Z\",\"until\":"
             "\"1970-01-01T00:00:00.000Z\"}]"),
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
        cmocka_unit_test(test_r33_refused_is_without_an_end),
        cmocka_unit_test(test_what_no_owner_writes_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
