/* What runs here, or has run: an attempt starts once in a worker's life (protocol rule 19). */
#include "worker/live.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

static const char *const turn = "0123456789abcdef0123456789abcdef";
static const char *const other = "0123456789abcdef0123456789abcdee";

/* Even where the log has undone the claim, and it is claimed once more: not a second time. */
static void test_rule_19_an_attempt_starts_once(void **state)
{
    struct lives lives;
    char id[40];
    (void)state;
    assert_true(lives_init(&lives));
    assert_true(lives_start_once(&lives, turn, 1));
    assert_false(lives_start_once(&lives, turn, 1));
    assert_true(lives_start_once(&lives, turn, 2));
    assert_true(lives_start_once(&lives, other, 1));
    for (int i = 0; i < LIVES_STARTS - 3; i++) {
        snprintf(id, sizeof(id), "%032d", i);
        assert_true(lives_start_once(&lives, id, 1));
    }
    assert_false(lives_start_once(&lives, turn, 1));
    assert_false(lives_start_once(&lives, turn, 2));
    assert_false(lives_start_once(&lives, other, 1));
    lives_done(&lives);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rule_19_an_attempt_starts_once),
    };
    return cmocka_run_group_tests_name("worker: what runs here", tests, NULL, NULL);
}
