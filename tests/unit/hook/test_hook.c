/* What each answer of a hook means (H-32 to H-38). */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "common/base/check.h"
#include "common/base/limits.h"
#include "producer/hook/hook.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char pr_url[] = "pr_url";
static char note[] = "note";
static char *declared[] = {pr_url, note};
static const struct workflow_hook hook = {
    .name = {"check"}, .data = declared, .n_data = 2, .timeout_ms = 1000};

#define SENT "{\"files\":\"3\",\"note\":\"old\",\"from\":\"x\"}"

/* An answer by a program that ended with 0, the code that it means, and what a patch made. */
static const struct {
    const char *answer;
    baton_code code;
    int64_t retry_after_ms;
    const char *text; /* a part of the reason */
    const char *summary;
    const char *data;
} answers[] = {
    {"{\"verdict\":\"allow\"}", BATON_OK, 0, "", NULL, NULL},
    {" {\"verdict\":\"allow\"}\n", BATON_OK, 0, "", NULL, NULL},
    {"{\"verdict\":\"block\",\"reason\":\"no\"}", BATON_E_hook_blocked, 0, "no", NULL, NULL},
    {"{\"verdict\":\"block\"}", BATON_E_hook_blocked, 0, "no reason", NULL, NULL},
    {"{\"verdict\":\"retryable_block\",\"reason\":\"ci\",\"retry_after_ms\":70}",
     BATON_E_hook_retry, 70, "ci", NULL, NULL},
    {"{\"verdict\":\"retryable_block\",\"reason\":\"ci\"}", BATON_E_hook_unavailable, 0,
     "retry_after_ms", NULL, NULL},
    {"{\"verdict\":\"retryable_block\",\"retry_after_ms\":-1}", BATON_E_hook_unavailable, 0,
     "retry_after_ms", NULL, NULL},
    {"{\"verdict\":\"retryable_block\",\"retry_after_ms\":86400001}", BATON_E_hook_unavailable, 0,
     "retry_after_ms", NULL, NULL},
    /* whatever is no answer */
    {"", BATON_E_hook_unavailable, 0, "no answer", NULL, NULL},
    {"allow", BATON_E_hook_unavailable, 0, "no JSON", NULL, NULL},
    {"[\"allow\"]", BATON_E_hook_unavailable, 0, "no JSON object", NULL, NULL},
    {"{}", BATON_E_hook_unavailable, 0, "verdict", NULL, NULL},
    {"{\"verdict\":\"Allow\"}", BATON_E_hook_unavailable, 0, "verdict", NULL, NULL},
    {"{\"verdict\":true}", BATON_E_hook_unavailable, 0, "verdict", NULL, NULL},
    {"{\"verdict\":\"allow\"}{}", BATON_E_hook_unavailable, 0, "no JSON", NULL, NULL},
    {"{\"verdict\":\"allow\",\"verdict\":\"block\"}", BATON_E_hook_unavailable, 0, "no JSON", NULL,
     NULL},
    {"{\"verdict\":\"allow\",\"reason\":\"but\"}", BATON_E_hook_unavailable, 0, "reason", NULL,
     NULL},
    {"{\"verdict\":\"allow\",\"patch\":{}}", BATON_E_hook_unavailable, 0, "patch", NULL, NULL},
    {"{\"verdict\":\"patch\"}", BATON_E_hook_unavailable, 0, "patch", NULL, NULL},
    {"{\"verdict\":\"patch\",\"patch\":[]}", BATON_E_hook_unavailable, 0, "patch", NULL, NULL},
    /* patches */
    {"{\"verdict\":\"patch\",\"patch\":{}}", BATON_OK, 0, "", NULL, NULL},
    {"{\"verdict\":\"patch\",\"patch\":{\"summary\":\"new\"}}", BATON_OK, 0, "", "new", NULL},
    {"{\"verdict\":\"patch\",\"patch\":{\"data\":{\"pr_url\":\"u\",\"note\":\"new\"}}}", BATON_OK,
     0, "", NULL, "{\"files\":\"3\",\"pr_url\":\"u\",\"note\":\"new\"}"},
    {"{\"verdict\":\"patch\",\"patch\":{\"target\":\"dev\",\"role\":\"owner\",\"summary\":\"s\"}}",
     BATON_OK, 0, "", "s", NULL},
    {"{\"verdict\":\"patch\",\"patch\":{\"data\":{\"from\":\"boss\"}}}", BATON_OK, 0, "", NULL,
     "{\"files\":\"3\",\"note\":\"old\"}"},
    {"{\"verdict\":\"patch\",\"patch\":{\"summary\":\"\"}}", BATON_E_patch_invalid, 0, "summary",
     NULL, NULL},
    {"{\"verdict\":\"patch\",\"patch\":{\"summary\":\" \\n\"}}", BATON_E_patch_invalid, 0,
     "summary", NULL, NULL},
    {"{\"verdict\":\"patch\",\"patch\":{\"summary\":7}}", BATON_E_patch_invalid, 0, "summary", NULL,
     NULL},
    {"{\"verdict\":\"patch\",\"patch\":{\"summary\":\"s\",\"data\":\"x\"}}", BATON_E_patch_invalid,
     0, "no object", NULL, NULL},
    {"{\"verdict\":\"patch\",\"patch\":{\"data\":{\"note\":1}}}", BATON_E_patch_invalid, 0, "note",
     NULL, NULL},
    {"{\"verdict\":\"patch\",\"patch\":{\"summary\":\"s\",\"data\":{\"other\":\"x\"}}}",
     BATON_E_patch_invalid, 0, "other", NULL, NULL},
};

static const char *or_none(const char *text)
{
    return text != NULL ? text : "(none)";
}

static void test_H32_H38_each_answer(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        const struct hook_said said = {.bytes = answers[i].answer,
                                       .len = strlen(answers[i].answer)};
        struct hook_end end;
        hook_judge(&hook, &said, SENT, &end);
        if (end.decision.code != answers[i].code ||
            end.decision.retry_after_ms != answers[i].retry_after_ms ||
            strstr(end.decision.text, answers[i].text) == NULL ||
            strcmp(or_none(end.summary), or_none(answers[i].summary)) != 0 ||
            strcmp(or_none(end.data), or_none(answers[i].data)) != 0) {
            fail_msg("%s: %s (%s), summary %s, data %s", answers[i].answer,
                     baton_code_word(end.decision.code), end.decision.text, or_none(end.summary),
                     or_none(end.data));
        }
        hook_end_done(&end);
    }
}

/* However its program ended otherwise, an `allow` that it wrote before counts for nothing. */
static void test_H38_each_end(void **state)
{
    static const char allow[] = "{\"verdict\":\"allow\"}";
    const struct hook_said ends[] = {
        {.overflow = true},
        {.timed_out = true, .status = {.end = CHILD_END_signaled, .value = 9}},
        {.status = {.end = CHILD_END_exited, .value = 1}},
        {.status = {.end = CHILD_END_signaled, .value = 11}},
        {.status = {.end = CHILD_END_exec_failed, .value = 8}},
        {.status = {.end = CHILD_END_guard_lost, .value = 9}},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        struct hook_said said = ends[i];
        struct hook_end end;
        said.bytes = allow;
        said.len = strlen(allow);
        hook_judge(&hook, &said, NULL, &end);
        assert_int_equal(end.decision.code, BATON_E_hook_unavailable);
        assert_true(end.decision.text[0] != '\0');
        hook_end_done(&end);
    }
}

/* H-36: at the limits of a turn, and one above each. */
static void test_H36_limits_of_a_patch(void **state)
{
    (void)state;
    for (int over = 0; over < 2; over++) {
        char *text = malloc(2 * LIMIT_SUMMARY);
        char answer[2 * LIMIT_SUMMARY + 100];
        struct hook_end end;
        assert_non_null(text);
        memset(text, 'x', 2 * LIMIT_SUMMARY);
        text[LIMIT_SUMMARY + over] = '\0';
        snprintf(answer, sizeof(answer), "{\"verdict\":\"patch\",\"patch\":{\"summary\":\"%s\"}}",
                 text);
        hook_judge(&hook, &(struct hook_said){.bytes = answer, .len = strlen(answer)}, NULL, &end);
        assert_int_equal(end.decision.code, over ? BATON_E_patch_invalid : BATON_OK);
        hook_end_done(&end);
        snprintf(answer, sizeof(answer),
                 "{\"verdict\":\"patch\",\"patch\":{\"data\":{\"note\":\"%s\"}}}", text);
        hook_judge(&hook, &(struct hook_said){.bytes = answer, .len = strlen(answer)}, NULL, &end);
        assert_int_equal(end.decision.code, over ? BATON_E_patch_invalid : BATON_OK);
        hook_end_done(&end);
        free(text);

        /* With task, from and verdict a turn's data is full. */
        char sent[2048] = "{";
        for (int i = 0; i < LIMIT_DATA_KEYS - 3 - 1 + over; i++) {
            snprintf(sent + strlen(sent), sizeof(sent) - strlen(sent), "%s\"k%d\":\"v\"",
                     i > 0 ? "," : "", i);
        }
        strcat(sent, "}");
        static const char one_more[] =
            "{\"verdict\":\"patch\",\"patch\":{\"data\":{\"note\":\"n\"}}}";
        hook_judge(&hook, &(struct hook_said){.bytes = one_more, .len = strlen(one_more)}, sent,
                   &end);
        assert_int_equal(end.decision.code, over ? BATON_E_patch_invalid : BATON_OK);
        hook_end_done(&end);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_H32_H38_each_answer),
        cmocka_unit_test(test_H38_each_end),
        cmocka_unit_test(test_H36_limits_of_a_patch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
