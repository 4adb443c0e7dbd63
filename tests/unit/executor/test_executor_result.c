/* What an executor's answer means: every row of the table, every refusal (DESIGN section 7). */
#include "common/base/limits.h"
#include "worker/executor/result.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct executor_outcome check(enum role role, const char *bytes, bool signaled, int value)
{
    struct executor_outcome outcome;
    struct executor_exit exit = {.signaled = signaled, .value = value};
    executor_result_check(role, verdicts_of(role), bytes, strlen(bytes), false, &exit, &outcome);
    assert_true(outcome.ok == (outcome.message[0] == '\0'));
    return outcome;
}

static void expect_class(const char *bytes, int status, enum failure failure)
{
    struct executor_outcome outcome = check(ROLE_reviewer, bytes, false, status);
    if (outcome.ok || outcome.failure != failure) {
        fail_msg("%s with %d: %s, wanted %s", bytes, status,
                 outcome.ok ? "ok" : failure_word(outcome.failure), failure_word(failure));
    }
}

static void test_every_exit_status_without_a_result(void **state)
{
    (void)state;
    for (int status = 0; status < 256; status++) {
        enum failure want = status == 0    ? FAILURE_no_verdict
                            : status == 65 ? FAILURE_bad_request
                            : status == 75 ? FAILURE_unavailable
                            : status == 77 ? FAILURE_auth
                                           : FAILURE_crash;
        expect_class("", status, want);
        expect_class(" \n\t\r\n", status, want);
        /* a verdict needs exit 0 */
        if (status != 0) {
            expect_class("{\"verdict\":\"approve\"}", status, want);
        }
    }
}

static void test_every_signal(void **state)
{
    (void)state;
    for (int signal = 1; signal < 32; signal++) {
        struct executor_outcome outcome = check(ROLE_owner, "{\"verdict\":\"done\"}", true, signal);
        assert_false(outcome.ok);
        assert_int_equal(outcome.failure, signal == SIGKILL ? FAILURE_killed : FAILURE_crash);
        outcome = check(ROLE_owner, "{\"verdict\":\"do", true, signal); /* cut off */
        assert_int_equal(outcome.failure, signal == SIGKILL ? FAILURE_killed : FAILURE_crash);
    }
}

static void test_every_verdict_for_every_role(void **state)
{
    (void)state;
    for (int role = 0; role < ROLE_COUNT; role++) {
        for (int verdict = 0; verdict < VERDICT_COUNT; verdict++) {
            char object[64];
            snprintf(object, sizeof(object), "{\"verdict\":\"%s\"}",
                     verdict_word((enum verdict)verdict));
            struct executor_outcome outcome = check((enum role)role, object, false, 0);
            if (verdict_legal((enum role)role, (enum verdict)verdict)) {
                assert_true(outcome.ok);
                assert_int_equal(outcome.verdict, verdict);
                assert_int_equal(outcome.object_len, strlen(object));
            } else {
                assert_false(outcome.ok);
                assert_int_equal(outcome.failure, FAILURE_no_verdict);
            }
        }
    }
    expect_class("{\"verdict\":\"Approve\"}", 0, FAILURE_no_verdict);
    expect_class("{\"verdict\":\"approve \"}", 0, FAILURE_no_verdict);
    expect_class("{\"verdict\":\"\"}", 0, FAILURE_no_verdict);
    expect_class("{}", 0, FAILURE_no_verdict);
    expect_class("{\"summary\":\"fine\"}", 0, FAILURE_no_verdict);
}

static void test_every_class(void **state)
{
    (void)state;
    for (int failure = 0; failure < FAILURE_COUNT; failure++) {
        char object[64];
        snprintf(object, sizeof(object), "{\"class\":\"%s\"}", failure_word((enum failure)failure));
        bool reserved = failure == FAILURE_killed || failure == FAILURE_lost;
        enum failure want = reserved ? FAILURE_invalid_output : (enum failure)failure;
        expect_class(object, 0, want);
        expect_class(object, 1, want); /* whatever the exit status */
    }
    expect_class("{\"class\":\"sad\"}", 0, FAILURE_invalid_output);
    expect_class("{\"class\":\"\"}", 0, FAILURE_invalid_output);
}

static void test_class_carries_message_and_retry_after(void **state)
{
    (void)state;
    struct executor_outcome outcome =
        check(ROLE_owner,
              "{\"class\":\"rate_limited\",\"retry_after_ms\":42000,\"message\":\"slow down\"}",
              false, 3);
    assert_int_equal(outcome.failure, FAILURE_rate_limited);
    assert_int_equal(outcome.retry_after_ms, 42000);
    assert_string_equal(outcome.message, "slow down");
    outcome = check(ROLE_owner, "{\"class\":\"quota\",\"message\":\"\"}", false, 0);
    assert_string_equal(outcome.message, failure_text(FAILURE_quota));
    expect_class("{\"class\":\"quota\",\"retry_after_ms\":-1}", 0, FAILURE_invalid_output);
    expect_class("{\"class\":\"quota\",\"retry_after_ms\":604800001}", 0, FAILURE_invalid_output);
    expect_class("{\"class\":\"quota\",\"retry_after_ms\":\"5\"}", 0, FAILURE_invalid_output);
    expect_class("{\"retry_after_ms\":5}", 0, FAILURE_invalid_output);
    expect_class("{\"message\":\"m\"}", 0, FAILURE_invalid_output);
}

static void test_long_message_is_cut(void **state)
{
    (void)state;
    char object[5000] = "{\"class\":\"policy\",\"message\":\"";
    memset(object + strlen(object), 'm', 4000);
    strcat(object, "\"}");
    struct executor_outcome outcome = check(ROLE_owner, object, false, 0);
    assert_int_equal(outcome.failure, FAILURE_policy);
    assert_int_equal(strlen(outcome.message), EXECUTOR_MESSAGE_MAX);
}

static void test_X34_malformed_results(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{\"verdict\":\"approve\"}{\"verdict\":\"approve\"}",   /* two */
        "{\"verdict\":\"approve\"}\n{\"verdict\":\"changes\"}", /* two lines */
        "junk {\"verdict\":\"approve\"}",
        "{\"verdict\":\"approve\"",
        "[\"approve\"]",
        "\"approve\"",
        "null",
        "{\"verdict\":\"approve\",\"verdict\":\"changes\"}",
        "{\"verdict\":\"approve\",\"Verdict\":\"changes\"}",
        "{\"verdict\":1}",
        "{\"verdict\":null}",
        "{\"verdict\":\"appr\\u0000ove\"}",
        "{\"verdict\":\"approve\",\"summary\":\"\xFF\"}",
        "{\"verdict\":\"approve\",\"summary\":7}",
        "{\"verdict\":\"approve\",\"data\":[]}",
        "{\"verdict\":\"approve\",\"items\":{}}",
        "{\"verdict\":\"approve\",\"cost\":1}",
        "{\"verdict\":\"approve\",\"cost\":{\"usd\":0.5}}", /* whole numbers only */
        "{\"verdict\":\"approve\",\"output\":\"mine\"}",    /* the worker's own */
        "{\"verdict\":\"approve\",\"role\":\"owner\"}",
        "{\"verdict\":\"approve\",\"class\":\"auth\"}",
        "{\"class\":\"auth\",\"summary\":\"both\"}",
        "\xEF\xBB\xBF{\"verdict\":\"approve\"}",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        expect_class(bad[i], 0, FAILURE_invalid_output);
        expect_class(bad[i], 75, FAILURE_invalid_output);
    }
}

static void test_sizes(void **state)
{
    (void)state;
    struct executor_outcome outcome;
    struct executor_exit exit = {.value = 0};
    char *object = malloc(LIMIT_RESULT + 64);
    size_t head = (size_t)sprintf(object, "{\"verdict\":\"approve\",\"data\":{\"a\":\"");
    memset(object + head, 'x', LIMIT_RESULT);
    memcpy(object + LIMIT_RESULT - 3, "\"}}", 3);
    executor_result_check(ROLE_reviewer, verdicts_of(ROLE_reviewer), object, LIMIT_RESULT, false,
                          &exit, &outcome);
    assert_true(outcome.ok);
    executor_result_check(ROLE_reviewer, verdicts_of(ROLE_reviewer), object, LIMIT_RESULT, true,
                          &exit, &outcome);
    assert_int_equal(outcome.failure, FAILURE_invalid_output);
    memset(object + head, 'x', LIMIT_RESULT);
    memcpy(object + LIMIT_RESULT - 2, "\"}}", 3);
    executor_result_check(ROLE_reviewer, verdicts_of(ROLE_reviewer), object, LIMIT_RESULT + 1,
                          false, &exit, &outcome);
    assert_int_equal(outcome.failure, FAILURE_invalid_output);
    free(object);
    char summary[LIMIT_SUMMARY + 64] = "{\"verdict\":\"approve\",\"summary\":\"";
    memset(summary + strlen(summary), 's', LIMIT_SUMMARY + 1);
    strcat(summary, "\"}");
    expect_class(summary, 0, FAILURE_invalid_output);
}

static void test_object_is_found_within_white_space(void **state)
{
    (void)state;
    struct executor_outcome outcome =
        check(ROLE_reviewer, " \n{\"verdict\":\"approve\"}\r\n", false, 0);
    assert_true(outcome.ok);
    assert_int_equal(outcome.object_at, 2);
    assert_int_equal(outcome.object_len, strlen("{\"verdict\":\"approve\"}"));
}

/* S6: a workflow may leave fewer of the role's verdicts. */
static void test_S6_a_verdict_that_is_left_out(void **state)
{
    static const char object[] = "{\"verdict\":\"changes\"}";
    struct executor_exit exit = {.value = 0};
    struct executor_outcome outcome;
    (void)state;
    executor_result_check(ROLE_reviewer, VERDICT_BIT(VERDICT_approve), object, strlen(object),
                          false, &exit, &outcome);
    assert_false(outcome.ok);
    assert_int_equal(outcome.failure, FAILURE_no_verdict);
    assert_non_null(strstr(outcome.message, "changes"));
    executor_result_check(ROLE_reviewer, VERDICT_BIT(VERDICT_changes), object, strlen(object),
                          false, &exit, &outcome);
    assert_true(outcome.ok);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_exit_status_without_a_result),
        cmocka_unit_test(test_every_signal),
        cmocka_unit_test(test_every_verdict_for_every_role),
        cmocka_unit_test(test_S6_a_verdict_that_is_left_out),
        cmocka_unit_test(test_every_class),
        cmocka_unit_test(test_class_carries_message_and_retry_after),
        cmocka_unit_test(test_long_message_is_cut),
        cmocka_unit_test(test_X34_malformed_results),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_object_is_found_within_white_space),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
