/* A library that only some processes need: its functions are found, and what is missing is said with the
 * package that has it. */
#include "base_test.h"

#include "common/base/library.h"

#include <math.h>

static void found(void **state)
{
    (void)state;
    struct baton_error err = {BATON_OK, ""};
    __typeof__(&cos) function = NULL;
    const struct library_symbol symbols[] = {LIBRARY_SYMBOL(cos, function)};
    struct library library = {"libm.so.6", "libc6", "some.key", symbols, 1, NULL, false};
    assert_int_equal(library_load(&library, &err), BATON_OK);
    assert_non_null(function);
    assert_true(function(0.0) > 0.99);
}

static void not_on_this_machine(void **state)
{
    (void)state;
    struct baton_error err = {BATON_OK, ""};
    struct library library = {"libnobody-has.so.1", "libnobody1", "some.key", NULL, 0, NULL, false};
    assert_int_equal(library_load(&library, &err), BATON_E_bad_config);
    assert_non_null(strstr(err.text, "some.key: this needs libnobody-has.so.1"));
    assert_non_null(strstr(err.text, "apt-get install libnobody1"));
}

static void without_the_function(void **state)
{
    (void)state;
    struct baton_error err = {BATON_OK, ""};
    void *function = NULL;
    const struct library_symbol symbols[] = {{.name = "no_such_function", .to = &function}};
    struct library library = {"libm.so.6", "libc6", "some.key", symbols, 1, NULL, false};
    assert_int_equal(library_load(&library, &err), BATON_E_bad_config);
    assert_non_null(strstr(err.text, "has no no_such_function"));
    assert_null(function);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(found),
        cmocka_unit_test(not_on_this_machine),
        cmocka_unit_test(without_the_function),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
