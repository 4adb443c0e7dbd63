/* What makes thousands of runs cheap: runs along one workflow share it, read by its bytes once, whatever becomes
 * of them; and an ended one is known by the beginning of its record. */
#include "run_fixture.h"

static void test_runs_of_one_workflow_share_it_and_others_do_not(void **state)
{
    struct workflow_shelf shelf = {.list = NULL};
    struct run *run = run_make();
    struct run *one = NULL;
    struct run *two = NULL;
    struct run *copy = NULL;
    struct run *own = NULL;
    struct buf value = BUF_INIT;
    (void)state;
    run_encode(run, &value);
    assert_int_equal(run_parse_shelved(value.data, value.len, &shelf, &one, NULL), BATON_OK);
    assert_int_equal(run_parse_shelved(value.data, value.len, &shelf, &two, NULL), BATON_OK);
    assert_int_equal(run_parse(value.data, value.len, &own, NULL), BATON_OK);
    assert_ptr_equal(one->workflow, two->workflow);
    assert_ptr_not_equal(one->workflow, own->workflow);
    assert_int_equal(shelf.count, 1);
    run_free(one);
    assert_int_equal(run_copy(two, &copy), BATON_OK);
    assert_ptr_equal(two->workflow, copy->workflow);
    run_free(two);
    assert_string_equal(copy->workflow->text, workflow_text);
    run_free(copy);
    assert_int_equal(run_copy(own, &copy), BATON_OK);
    assert_ptr_not_equal(own->workflow, copy->workflow);
    run_free(own);
    assert_string_equal(copy->workflow->text, workflow_text);
    run_free(copy);

    /* Another byte, another workflow: a run goes on by what it began with. */
    char *text = NULL;
    assert_true(asprintf(&text, "%s# edited\n", workflow_text) > 0);
    struct workflow *edited = NULL;
    assert_int_equal(workflow_shelf_find(&shelf, "small", text, strlen(text), &edited, NULL),
                     BATON_OK);
    assert_int_equal(shelf.count, 2);
    assert_ptr_not_equal(edited, shelf.list[0]);
    assert_int_equal(workflow_shelf_find(&shelf, "none", "version: 1\n", 11, &edited, NULL),
                     BATON_E_bad_config);
    assert_int_equal(shelf.count, 2);
    free(text);
    run_free(run);
    buf_done(&value);
    workflow_shelf_done(&shelf);
}

/* What a coordinator's start relies on for ended runs; whatever else it is, run_parse is to judge. */
static void test_a_record_says_at_its_beginning_that_its_run_has_ended(void **state)
{
    static const char *const others[] = {
        "",
        "{",
        "{}",
        "{\"version\":1,}",
        "{\"version\":1,\"state\":\"completed",
        "{\"version\":1,\"x\":\"\\\"state\\\":\\\"completed\\\"\"}",
        "{\"version\":2,\"run_id\":\"r\",\"state\":\"completed\"}",
        "{\"version\":1,\"run_id\":\"r\",\"state\":\"finished\"}"};
    (void)state;
    for (int i = 0; i < RUN_STATE_COUNT; i++) {
        struct run *run = run_make();
        struct buf value = BUF_INIT;
        free(run->summary);
        run->summary = strdup("\",\"state\":\"completed\"");
        run->state = (enum run_state)i;
        run_encode(run, &value);
        assert_int_equal(run_record_ended(value.data, value.len), !run_state_open(run->state));
        assert_false(run_record_ended(value.data, value.len - 1));
        buf_done(&value);
        run_free(run);
    }
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        assert_false(run_record_ended(others[i], strlen(others[i])));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs_of_one_workflow_share_it_and_others_do_not),
        cmocka_unit_test(test_a_record_says_at_its_beginning_that_its_run_has_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
