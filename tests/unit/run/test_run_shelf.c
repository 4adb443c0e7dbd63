/* Runs along one workflow share it: read by its bytes once, whatever becomes of the runs. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs_of_one_workflow_share_it_and_others_do_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
