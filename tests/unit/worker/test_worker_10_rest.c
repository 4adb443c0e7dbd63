/*
 * Which credential profiles rest, and what ends it (RULES ): the state alone, without a log. What
 * a fleet sees of it is in tests/fleet/test_75_profiles.py.
 */
#include "worker/rest.h"

#include "common/record/rest_note.h"
#include "worker/executor/executor.h"
#include "worker/failure_table.h"
#include "worker/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static const char yaml[] = "version: 1\n"
                           "proof: off\n"
                           "services:\n"
                           "  lint:\n"
                           "    roles: [reviewer]\n"
                           "    executor: {kind: callback}\n"
                           "    profiles:\n"
                           "      - {name: one, env: {KEY: {from: KEY_ONE}}}\n"
                           "      - {name: two, env: {KEY: {from: KEY_TWO}}}\n";

struct made {
    struct config *config;
    struct worker w;
    struct executor_env *envs[2];
};

static void read_env(struct made *made, size_t i)
{
    struct baton_error err;
    const struct config_profile *profile = &made->w.service->profiles[i];
    executor_env_free(made->envs[i]);
    made->envs[i] = NULL;
    assert_int_equal(
        executor_env_resolve(NULL, 0, profile->env, profile->n_env, &made->envs[i], &err),
        BATON_OK);
}

static void make(struct made *made, const char *rest)
{
    struct baton_error err = {0};
    struct buf findings = BUF_INIT;
    const char *const sets[] = {rest};
    memset(made, 0, sizeof(*made));
    if (config_parse("/x/baton.yaml", yaml, strlen(yaml), sets, 1, &made->config, &findings,
                     &err) != BATON_OK) {
        fail_msg("%s", findings.data);
    }
    buf_done(&findings);
    made->w.config = made->config;
    made->w.service = config_service_find(made->config, "lint");
    made->w.envs = made->envs;
    setenv("KEY_ONE", "the first key", 1);
    setenv("KEY_TWO", "the second key", 1);
    read_env(made, 0);
    read_env(made, 1);
}

static void done(struct made *made)
{
    executor_env_free(made->envs[0]);
    executor_env_free(made->envs[1]);
    config_free(made->config);
}

static void ends(struct made *made, const char *profile, enum failure class, int64_t retry_after_ms)
{
    const struct recorded_end end = {.failed = class != FAILURE_COUNT,
                                     .class = class,
                                     .retry_after_ms = retry_after_ms,
                                     .started_at = wall_now()};
    rest_note(&made->w, profile, &end);
}

static unsigned resting(struct made *made)
{
    struct all_rest rest;
    return rest_look(&made->w, &rest);
}

/* As the note of this worker would tell the next owner. */
static struct rest_profile told(const struct made *made, size_t i)
{
    const struct rest *rest = &made->w.rests[i];
    return (struct rest_profile){made->w.service->profiles[i].name, rest->class, rest->since,
                                 rest->until_wall, rest->mark};
}

static void test_r33_which_class_rests_and_how_long(void **state)
{
    static const struct {
        enum failure class;
        int64_t retry_after_ms;
        bool rests;
        bool refused;
    } rows[] = {
        {FAILURE_auth, 0, true, true},
        {FAILURE_auth, 1000, true, true},
        {FAILURE_quota, 0, true, false},
        {FAILURE_quota, 60000, true, false},
        {FAILURE_rate_limited, 0, false, false},
        {FAILURE_rate_limited, 60000, true, false},
        {FAILURE_access_denied, 0, false, false},
        {FAILURE_unavailable, 60000, false, false},
        {FAILURE_crash, 0, false, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct made made;
        make(&made, "retry.rest=10m");
        ends(&made, "one", rows[i].class, rows[i].retry_after_ms);
        assert_int_equal(resting(&made), rows[i].rests ? 1 : 0);
        assert_int_equal(rest_any_refused(&made.w), rows[i].refused);
        const struct rest_profile one = told(&made, 0);
        assert_true(!rows[i].rests || rest_profile_refused(&one) == rows[i].refused);
        done(&made);
        make(&made, "retry.rest=0s");
        ends(&made, "one", FAILURE_auth, 0);
        assert_int_equal(resting(&made), 0);
        done(&made);
    }
}

static void test_r33_what_ends_a_refusal(void **state)
{
    struct made made;
    (void)state;
    make(&made, "retry.rest=10m");
    ends(&made, "one", FAILURE_auth, 0);
    ends(&made, "two", FAILURE_auth, 0);
    const struct wall_ms since = made.w.rests[0].since;
    ends(&made, "one", FAILURE_quota, 1); /* no time is up for what waits to be cleared */
    ends(&made, "one", FAILURE_unavailable, 0);
    ends(&made, "one", FAILURE_auth, 0);
    assert_int_equal(resting(&made), 3);
    assert_int_equal(made.w.rests[0].since.v, since.v);
    ends(&made, "one", FAILURE_COUNT, 0); /* a success, of that one only */
    assert_int_equal(resting(&made), 2);
    rest_clear(&made.w, "one", wall_now());
    rest_clear(&made.w, "nobody", wall_now());
    assert_int_equal(resting(&made), 2);
    rest_clear(&made.w, "two", wall_now());
    assert_int_equal(resting(&made), 0);
    ends(&made, "one", FAILURE_auth, 0);
    ends(&made, "two", FAILURE_auth, 0);
    rest_look_again(&made.w, 0, false); /* the same credentials */
    rest_look_again(&made.w, 1, false);
    assert_int_equal(resting(&made), 3);
    setenv("KEY_TWO", "a new key", 1);
    read_env(&made, 1);
    rest_look_again(&made.w, 1, true);
    assert_int_equal(resting(&made), 1);
    /* An attempt that began with the old one is refused now: that says nothing of the new one. */
    const struct recorded_end late = {
        .failed = true, .class = FAILURE_auth, .started_at = {made.w.rests[1].changed.v - 1}};
    rest_note(&made.w, "two", &late);
    assert_int_equal(resting(&made), 1);
    /* X22: what was said of an older refusal. */
    ends(&made, "two", FAILURE_auth, 0);
    rest_clear(&made.w, "", (struct wall_ms){made.w.rests[1].since.v - 2 * 24 * 3600 * 1000});
    assert_int_equal(resting(&made), 3);
    rest_clear(&made.w, "", wall_now());
    assert_int_equal(resting(&made), 0);
    done(&made);
}

static void test_r33_the_next_owner_takes_it_over(void **state)
{
    struct made before;
    struct made after;
    (void)state;
    make(&before, "retry.rest=10m");
    ends(&before, "one", FAILURE_auth, 0);
    ends(&before, "two", FAILURE_auth, 0);
    rest_clear(&before.w, "two", wall_now());
    ends(&before, "two", FAILURE_quota, 0);
    const struct rest_profile one = told(&before, 0);
    const struct rest_profile two = told(&before, 1);
    assert_int_equal(strlen(one.mark.s), REST_MARK_LEN);
    make(&after, "retry.rest=10m");
    rest_adopt(&after.w, &one);
    rest_adopt(&after.w, &two); /* what only rests is tried again */
    assert_int_equal(resting(&after), 1);
    assert_int_equal(after.w.rests[0].since.v, one.since.v);
    assert_int_equal(after.w.rests[0].class, FAILURE_auth);
    done(&after);
    make(&after, "retry.rest=10m"); /* it has worked here since */
    ends(&after, "one", FAILURE_COUNT, 0);
    rest_adopt(&after.w, &one);
    assert_int_equal(resting(&after), 0);
    done(&after);
    make(&after, "retry.rest=10m"); /* another credential */
    setenv("KEY_ONE", "a new key", 1);
    read_env(&after, 0);
    rest_adopt(&after.w, &one);
    assert_int_equal(resting(&after), 0);
    done(&after);
    done(&before);
}

/* With nowhere else to go, that which was tried longest ago: so each has its turn. */
static void test_r39_which_is_tried_when_all_are_refused(void **state)
{
    struct made made;
    struct all_rest rest;
    (void)state;
    make(&made, "retry.rest=10m");
    ends(&made, "one", FAILURE_auth, 0);
    ends(&made, "two", FAILURE_auth, 0);
    made.w.rests[0].tried.v = 2000;
    made.w.rests[1].tried.v = 1000;
    assert_int_equal(rest_look(&made.w, &rest), 3);
    assert_string_equal(rest.profile, "two");
    assert_int_equal(rest.class, FAILURE_auth);
    assert_false(rest.named);
    made.w.rests[1].tried.v = 3000;
    (void)rest_look(&made.w, &rest);
    assert_string_equal(rest.profile, "one");
    rest_clear(&made.w, "", wall_now());
    ends(&made, "one", FAILURE_auth, 0);
    ends(&made, "two", FAILURE_quota, 60000); /* what has a time is up before what has none */
    (void)rest_look(&made.w, &rest);
    assert_string_equal(rest.profile, "two");
    assert_true(rest.named && rest.wait_ms > 0 && rest.wait_ms <= 60000);
    done(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_r33_which_class_rests_and_how_long),
        cmocka_unit_test(test_r33_what_ends_a_refusal),
        cmocka_unit_test(test_r33_the_next_owner_takes_it_over),
        cmocka_unit_test(test_r39_which_is_tried_when_all_are_refused),
    };
    return cmocka_run_group_tests_name("worker: profiles that rest", tests, NULL, NULL);
}
