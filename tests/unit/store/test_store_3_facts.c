/* Facts: recorded ends stay whatever happens to the image, until they are forgotten (protocol rule
 * 7). */
#include "tests/unit/store/store_fixture.h"

static void note(struct shelf *shelf, const struct recorded_end *end)
{
    OK(store_begin(shelf->store, __func__, err));
    OK(store_end_note(shelf->store, end, err));
    OK(store_commit(shelf->store, err));
}

static struct recorded_end success(const struct shelf *shelf, const char *id, char *result)
{
    return (struct recorded_end){.turn = turn_id_of(id),
                                 .attempt = 2,
                                 .boot = shelf->boot,
                                 .partition = 3,
                                 .result = result,
                                 .usage = "{\"cost_micros\":289}",
                                 .started_at = {WHEN},
                                 .ended_at = {WHEN + 1}};
}

static void test_rule_07_an_end_is_kept_over_restarts(void **state)
{
    struct shelf *shelf = *state;
    struct boot_id boot = shelf->boot;
    struct recorded_end back;
    bool found = false;
    const struct recorded_end end = success(shelf, TURN_A, (char *)"{\"verdict\":\"approve\"}");

    note(shelf, &end);
    shelf_close(shelf);
    shelf_open(shelf);
    OK(store_end_get(shelf->store, TURN_A, 2, boot.s, &found, &back, err));
    assert_true(found);
    assert_false(back.failed);
    assert_string_equal(back.result, "{\"verdict\":\"approve\"}");
    assert_string_equal(back.usage, "{\"cost_micros\":289}");
    assert_int_equal(back.partition, 3);
    assert_int_equal(back.started_at.v, WHEN);
    assert_int_equal(back.ended_at.v, WHEN + 1);
    free(back.result);
    /* A fact belongs to its token. */
    OK(store_end_get(shelf->store, TURN_A, 1, boot.s, &found, &back, err));
    assert_false(found);
    OK(store_end_get(shelf->store, TURN_A, 2, shelf->boot.s, &found, &back, err));
    assert_false(found);
}

static void test_every_failure_class_is_kept(void **state)
{
    struct shelf *shelf = *state;
    for (int class = 0; class < FAILURE_COUNT; class ++) {
        struct recorded_end end = {.turn = turn_id_of(TURN_A),
                                   .attempt = class + 1,
                                   .boot = shelf->boot,
                                   .failed = true,
                                   .class = (enum failure) class,
                                   .retry_after_ms = 1000 + class,
                                   .uncounted = class % 2 == 0,
                                   .ended_at = {WHEN}};
        struct recorded_end back;
        bool found = false;
        snprintf(end.note, sizeof(end.note), "why: %d", class);
        note(shelf, &end);
        OK(store_end_get(shelf->store, TURN_A, class + 1, shelf->boot.s, &found, &back, err));
        assert_true(found && back.failed && back.result == NULL);
        assert_int_equal(back.class, class);
        assert_int_equal(back.retry_after_ms, 1000 + class);
        assert_int_equal(back.uncounted, class % 2 == 0);
        assert_string_equal(back.note, end.note);
    }
}

/* I4: at most one result for each attempt. */
static void test_the_first_end_of_a_token_stays(void **state)
{
    struct shelf *shelf = *state;
    struct recorded_end end = success(shelf, TURN_A, (char *)"{\"verdict\":\"approve\"}");
    struct recorded_end back;
    bool found = false;
    note(shelf, &end);
    end.result = (char *)"{\"verdict\":\"changes\"}";
    note(shelf, &end);
    OK(store_end_get(shelf->store, TURN_A, 2, shelf->boot.s, &found, &back, err));
    assert_string_equal(back.result, "{\"verdict\":\"approve\"}");
    free(back.result);
}

static void test_ends_outlive_the_image(void **state)
{
    struct shelf *shelf = *state;
    const struct recorded_end end = success(shelf, TURN_A, NULL);
    struct recorded_end back;
    bool found = false;
    fold_new(shelf->store, 3, 1, TURN_A, TURN_running, 0);
    note(shelf, &end);
    OK(store_begin(shelf->store, __func__, err));
    OK(store_image_drop(shelf->store, 3, err));
    OK(store_commit(shelf->store, err));
    OK(store_end_get(shelf->store, TURN_A, 2, shelf->boot.s, &found, &back, err));
    assert_true(found);
}

static void test_ends_in_pages_and_forgotten(void **state)
{
    struct shelf *shelf = *state;
    struct recorded_end ends[4];
    size_t count = 0;
    bool found = true;
    static const char *const ids[] = {TURN_C, TURN_A, TURN_B};
    for (size_t i = 0; i < 3; i++) {
        const struct recorded_end end = success(shelf, ids[i], (char *)"{}");
        note(shelf, &end);
    }
    OK(store_ends(shelf->store, 0, ends, 2, &count, err));
    assert_int_equal(count, 2);
    assert_string_equal(ends[0].turn.s, TURN_A);
    free(ends[0].result);
    free(ends[1].result);
    OK(store_ends(shelf->store, 2, ends, 4, &count, err));
    assert_int_equal(count, 1);
    assert_string_equal(ends[0].turn.s, TURN_C);
    free(ends[0].result);
    OK(store_begin(shelf->store, __func__, err));
    OK(store_end_forget(shelf->store, TURN_A, 2, "another boot", err));
    OK(store_end_forget(shelf->store, TURN_B, 2, shelf->boot.s, err));
    OK(store_commit(shelf->store, err));
    OK(store_end_get(shelf->store, TURN_B, 2, shelf->boot.s, &found, &ends[0], err));
    assert_false(found);
    OK(store_ends(shelf->store, 0, ends, 4, &count, err));
    assert_int_equal(count, 2);
    free(ends[0].result);
    free(ends[1].result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_rule_07_an_end_is_kept_over_restarts),
        STORE_TEST(test_every_failure_class_is_kept),
        STORE_TEST(test_the_first_end_of_a_token_stays),
        STORE_TEST(test_ends_outlive_the_image),
        STORE_TEST(test_ends_in_pages_and_forgotten),
    };
    return cmocka_run_group_tests_name("store: facts", tests, NULL, NULL);
}
