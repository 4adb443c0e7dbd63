/* The configuration read again: which keys differ, and by what they mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/config_again.h"

static struct config *parsed(const char *more)
{
    char text[1024];
    struct config *config = NULL;
    struct baton_error err = {BATON_OK, ""};
    snprintf(
        text, sizeof(text),
        "version: 1\nservices:\n  alpha:\n    roles: [owner]\n    executor: {kind: exec, command: "
        "[/bin/true]}\n%s",
        more);
    if (config_parse("baton.yaml", text, strlen(text), NULL, 0, &config, NULL, &err) != BATON_OK) {
        fail_msg("%s", err.text);
    }
    return config;
}

static enum config_effect effect_of(const char *key, const void *arg)
{
    assert_string_equal(arg, "it");
    return strncmp(key, "budget.", 7) == 0 ? CONFIG_EFFECT_now
           : strcmp(key, "state_dir") == 0 ? CONFIG_EFFECT_restart
                                           : CONFIG_EFFECT_none;
}

static void differ(const char *before, const char *after, const char *now, const char *restart)
{
    struct config *old = parsed(before);
    struct config *fresh = parsed(after);
    struct buf keys = BUF_INIT;
    config_differs(old, fresh, effect_of, "it", CONFIG_EFFECT_now, &keys);
    assert_string_equal(keys.len > 0 ? keys.data : "", now);
    buf_clear(&keys);
    config_differs(old, fresh, effect_of, "it", CONFIG_EFFECT_restart, &keys);
    assert_string_equal(keys.len > 0 ? keys.data : "", restart);
    buf_done(&keys);
    config_free(old);
    config_free(fresh);
}

static void test_what_differs_is_named_by_its_effect(void **state)
{
    (void)state;
    differ("", "", "", "");
    differ("", "budget: {failures: 6}\n", "", ""); /* written, and the same */
    differ("", "budget: {failures: 5, losses: 9}\n", "budget.failures, budget.losses", "");
    differ("state_dir: /a\nbudget: {replays: 1}\n", "state_dir: /b\n", "budget.replays",
           "state_dir");
    differ("", "retry: {first: 9s}\n", "", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_differs_is_named_by_its_effect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
