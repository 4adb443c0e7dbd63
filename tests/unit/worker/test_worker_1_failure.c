/*
 * What follows a failure, as a table: every class, with profiles, retries and budgets left or
 * spent, with and without a wait that the provider asks for (RULES S1, R-40; DESIGN section 6).
 */
#include "worker/failure_table.h"

#include "common/record/turn_record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char yaml[] =
    "version: 1\n"
    "proof: off\n"
    "services:\n"
    "  lint:\n"
    "    roles: [reviewer]\n"
    "    executor: {kind: callback}\n"
    "    profiles: [{name: one, env: {}}, {name: two, env: {}}, {name: three, env: {}}]\n";

static struct config *configure(const char *const *sets, size_t n_sets)
{
    struct config *config = NULL;
    struct baton_error err = {0};
    struct buf findings = BUF_INIT;
    if (config_parse("/x/baton.yaml", yaml, strlen(yaml), sets, n_sets, &config, &findings, &err) !=
        BATON_OK) {
        fail_msg("%s", findings.data);
    }
    buf_done(&findings);
    return config;
}

/* Attempts as failure_next sees them: the newest one has failed and is counted already. */
static void add_attempt(struct turn_record *record, const char *profile, enum failure class)
{
    struct attempt *attempt = turn_record_add_attempt(record);
    assert_non_null(attempt);
    record->attempt++;
    attempt->no = record->attempt;
    attempt->service = service_id_of("lint");
    attempt->profile = plain_id_of(profile);
    attempt->state = ATTEMPT_failed;
    attempt->has_class = true;
    attempt->class = class;
    attempt->started_at.v = 1;
    if (failure_counts_in(class) == COUNTER_losses) {
        record->losses++;
    } else {
        record->failures++;
    }
}

static void record_of(struct turn_record *record)
{
    turn_record_init(record);
    record->since = 1;
}

/* No other service can be had, and no profile rests. */
static const struct chances nowhere = {NULL, 0};

struct world {
    enum failure class;
    int tried;   /* profiles that were given up */
    int retries; /* with the present profile */
    bool failures_spent, losses_spent, attempts_spent;
    bool long_wait; /* retry-after beyond retry.max_wait */
    bool fallback;  /* another service can be had */
    bool rests;     /* the profiles that are left rest */
};

/* What the rules say, told once more from the default lists. */
static enum next_kind expected(const struct config *config, const struct world *world)
{
    bool loss = failure_counts_in(world->class) == COUNTER_losses;
    char list[64];
    if (world->failures_spent || world->losses_spent || world->attempts_spent) {
        return NEXT_park;
    }
    snprintf(list, sizeof(list), "%s", failure_default_actions(world->class));
    for (char *save = NULL, *word = strtok_r(list, " ", &save); word != NULL;
         word = strtok_r(NULL, " ", &save)) {
        if (strcmp(word, "retry") == 0 && !world->long_wait &&
            (loss || world->retries < config->retry.each_service)) {
            return NEXT_retry;
        }
        if (strcmp(word, "rotate") == 0 && world->tried < 2 && !world->rests) {
            return NEXT_rotate;
        }
        if (strcmp(word, "delegate") == 0 && world->fallback) {
            return NEXT_delegate;
        }
    }
    return NEXT_park;
}

static void build(const struct config *config, const struct world *world,
                  struct turn_record *record)
{
    static const char *const profiles[] = {"one", "two", "three"};
    record_of(record);
    for (int i = 0; i < world->tried; i++) {
        add_attempt(record, profiles[i], FAILURE_auth);
        record->tried[record->n_tried++] = plain_id_of(profiles[i]);
    }
    for (int i = 0; i < world->retries; i++) {
        add_attempt(record, profiles[world->tried], FAILURE_overloaded);
    }
    add_attempt(record, profiles[world->tried], world->class);
    record->failures = world->failures_spent ? config->budget.failures : 1;
    record->losses = world->losses_spent ? config->budget.losses : 1;
    if (world->attempts_spent) {
        record->attempt = config->budget.attempts;
    }
}

static void test_every_class_in_every_world(void **state)
{
    (void)state;
    struct config *config = configure(NULL, 0);
    const struct config_service *service = config_service_find(config, "lint");
    int n = 0;
    for (int bits = 0; bits < FAILURE_COUNT * 3 * 5 * 64; bits++) {
        const struct world world = {
            .class = (enum failure)(bits % FAILURE_COUNT),
            .tried = bits / FAILURE_COUNT % 3,
            .retries = bits / FAILURE_COUNT / 3 % 5,
            .failures_spent = (bits / FAILURE_COUNT / 15 & 1) != 0,
            .losses_spent = (bits / FAILURE_COUNT / 15 & 2) != 0,
            .attempts_spent = (bits / FAILURE_COUNT / 15 & 4) != 0,
            .long_wait = (bits / FAILURE_COUNT / 15 & 8) != 0,
            .fallback = (bits / FAILURE_COUNT / 15 & 16) != 0,
            .rests = (bits / FAILURE_COUNT / 15 & 32) != 0,
        };
        struct turn_record record;
        build(config, &world, &record);
        int64_t wait = world.long_wait ? config->retry.max_wait_ms + 1 : 1500;
        const struct chances chances = {world.fallback ? "other" : NULL, world.rests ? 6 : 0};
        struct next_step step =
            failure_next(config, service, &record, world.class, wait, &chances, 0.5);
        if (step.kind != expected(config, &world)) {
            fail_msg("%s, %d tried, %d retries, spent %d%d%d, long wait %d: %d",
                     failure_word(world.class), world.tried, world.retries, world.failures_spent,
                     world.losses_spent, world.attempts_spent, world.long_wait, (int)step.kind);
        }
        if (step.kind == NEXT_retry) {
            assert_true(world.class == FAILURE_lost ? step.delay_ms == 0 : step.delay_ms >= wait);
            assert_string_equal(step.profile, record.attempts[record.n_attempts - 1].profile.s);
        } else if (step.kind == NEXT_rotate) {
            assert_string_equal(step.profile, world.tried == 0 ? "two" : "three");
        } else if (step.kind == NEXT_delegate) {
            assert_string_equal(step.to, "other");
        } else {
            assert_int_not_equal(step.code, BATON_OK);
        }
        turn_record_done(&record);
        n++;
    }
    assert_int_equal(n, FAILURE_COUNT * 3 * 5 * 64);
    config_free(config);
}

/* Why a turn was parked is told by its code. */
static void test_codes_of_parking(void **state)
{
    (void)state;
    static const struct {
        struct world world;
        baton_code code;
    } rows[] = {
        {{.class = FAILURE_bad_request}, BATON_E_executor_failed},
        {{.class = FAILURE_policy}, BATON_E_executor_failed},
        {{.class = FAILURE_readonly_violated}, BATON_E_readonly_violated},
        {{.class = FAILURE_no_verdict, .retries = 3}, BATON_E_no_verdict},
        {{.class = FAILURE_auth, .tried = 2}, BATON_E_executor_failed},
        {{.class = FAILURE_overloaded, .failures_spent = true}, BATON_E_attempts_exhausted},
        {{.class = FAILURE_overloaded, .attempts_spent = true}, BATON_E_attempts_exhausted},
        {{.class = FAILURE_lost, .losses_spent = true}, BATON_E_worker_killed},
        {{.class = FAILURE_crash, .losses_spent = true, .failures_spent = true},
         BATON_E_worker_killed},
    };
    struct config *config = configure(NULL, 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct turn_record record;
        build(config, &rows[i].world, &record);
        struct next_step step = failure_next(config, config_service_find(config, "lint"), &record,
                                             rows[i].world.class, 0, &nowhere, 0.5);
        assert_int_equal(step.kind, NEXT_park);
        assert_string_equal(baton_code_word(step.code), baton_code_word(rows[i].code));
        turn_record_done(&record);
    }
    config_free(config);
}

/* The configured list is what counts, in its order. */
static void test_a_rotation_after_a_crash_counts_as_no_retry(void **state)
{
    (void)state;
    static const char crash[] =
        "version: 1\nproof: off\non_failure: {crash: [rotate, park]}\n"
        "services:\n  lint:\n    roles: [reviewer]\n    executor: {kind: callback}\n"
        "    profiles: [{name: one, env: {}}, {name: two, env: {}}]\n";
    struct config *config = NULL;
    struct turn_record record;
    assert_int_equal(config_parse("/x/b.yaml", crash, strlen(crash), NULL, 0, &config, NULL, NULL),
                     BATON_OK);
    const struct config_service *service = config_service_find(config, "lint");
    record_of(&record);
    add_attempt(&record, "one", FAILURE_crash);
    struct next_step step = failure_next(config, service, &record, FAILURE_crash, 0, &nowhere, 0.5);
    assert_int_equal(step.kind, NEXT_rotate);
    record.tried[record.n_tried++] = plain_id_of("one");
    for (int retries = 0; retries < 3; retries++) {
        add_attempt(&record, "two", FAILURE_overloaded);
        step = failure_next(config, service, &record, FAILURE_overloaded, 0, &nowhere, 0.5);
        assert_int_equal(step.kind, NEXT_retry);
        assert_int_equal(step.delay_ms, 2000 << retries); /* doubled each time, from the first */
    }
    add_attempt(&record, "two", FAILURE_overloaded);
    step = failure_next(config, service, &record, FAILURE_overloaded, 0, &nowhere, 0.5);
    assert_int_equal(step.kind, NEXT_park);
    turn_record_done(&record);
    config_free(config);
}

/* A service whose executor dies by itself has so many retries, and then it is another one's turn; whom
 * somebody killed, or whose worker went, has the turn's budget alone. */
static void test_crashes_are_retried_so_often_and_then_passed_on(void **state)
{
    (void)state;
    static const char *const sets[] = {"retry.each_service=2", "budget.losses=9"};
    static const char *const never[] = {"retry.each_service=0"};
    struct config *config = configure(never, 1);
    struct turn_record lost;
    record_of(&lost);
    add_attempt(&lost, "one", FAILURE_lost);
    assert_int_equal(failure_next(config, config_service_find(config, "lint"), &lost, FAILURE_lost,
                                  0, &nowhere, 0.5)
                         .kind,
                     NEXT_retry);
    turn_record_done(&lost);
    config_free(config);

    config = configure(sets, 2);
    const struct config_service *service = config_service_find(config, "lint");
    const struct chances elsewhere = {"other", 0};
    for (int class = FAILURE_crash; class <= FAILURE_killed; class ++) {
        struct turn_record record;
        record_of(&record);
        for (int n = 0; n < 5; n++) {
            add_attempt(&record, "one", (enum failure) class);
            const struct next_step step =
                failure_next(config, service, &record, (enum failure) class, 0, &elsewhere, 0.5);
            assert_int_equal(step.kind,
                             class == FAILURE_crash && n >= 2 ? NEXT_delegate : NEXT_retry);
        }
        turn_record_done(&record);
    }
    config_free(config);
}

/* Not counted: an attempt that provably never started. */
static void test_a_try_that_never_started_counts_as_no_retry(void **state)
{
    (void)state;
    struct config *config = configure(NULL, 0);
    struct turn_record record;
    record_of(&record);
    for (int i = 0; i < 5; i++) {
        add_attempt(&record, "one", FAILURE_unavailable);
        record.attempts[record.n_attempts - 1].started_at.v = 0;
    }
    record.failures = 0;
    add_attempt(&record, "one", FAILURE_unavailable);
    struct next_step step = failure_next(config, config_service_find(config, "lint"), &record,
                                         FAILURE_unavailable, 0, &nowhere, 0.5);
    assert_int_equal(step.kind, NEXT_retry);
    assert_int_equal(step.delay_ms, 2000);
    turn_record_done(&record);
    config_free(config);
}

/* A program that is not there for an hour is waited for, not parked within two minutes. */
static void test_what_never_starts_is_tried_ever_later(void **state)
{
    (void)state;
    struct config *config = configure(NULL, 0);
    struct turn_record record;
    int64_t waited_ms = 0;
    record_of(&record);
    for (int i = 0; i < 63; i++) {
        add_attempt(&record, "one", FAILURE_unavailable);
        record.attempts[record.n_attempts - 1].started_at.v = 0;
        struct next_step step = uncounted_next(config, &record, FAILURE_unavailable, 0.5);
        assert_int_equal(step.kind, NEXT_retry);
        assert_int_equal(step.delay_ms, i < 8 ? 2000 << i : 300000);
        waited_ms += step.delay_ms;
    }
    assert_true(waited_ms > 3600000);
    add_attempt(&record, "one", FAILURE_unavailable);
    record.attempts[record.n_attempts - 1].started_at.v = 0;
    struct next_step step = uncounted_next(config, &record, FAILURE_unavailable, 0.5);
    assert_int_equal(step.kind, NEXT_park);
    assert_int_equal(step.code, BATON_E_attempts_exhausted);

    /* One that started ends the row; whom a clean stop ended goes on at once. */
    record.attempt = 3;
    record.attempts[record.n_attempts - 2].started_at.v = 1;
    assert_int_equal(uncounted_next(config, &record, FAILURE_unavailable, 0.5).delay_ms, 2000);
    assert_int_equal(uncounted_next(config, &record, FAILURE_killed, 0.5).delay_ms, 0);
    turn_record_done(&record);
    config_free(config);
}

/* A replay begins a new series: profiles and retries are there again, the budget is not. */
static void test_a_replay_begins_a_new_series(void **state)
{
    (void)state;
    struct config *config = configure(NULL, 0);
    const struct config_service *service = config_service_find(config, "lint");
    struct turn_record record;
    const struct world world = {.class = FAILURE_auth, .tried = 2};
    build(config, &world, &record);
    record.since = record.attempt + 1;
    record.n_tried = 0;
    add_attempt(&record, "one", FAILURE_auth);
    assert_int_equal(failure_next(config, service, &record, FAILURE_auth, 0, &nowhere, 0.5).kind,
                     NEXT_rotate);
    record.failures = config->budget.failures;
    assert_int_equal(failure_next(config, service, &record, FAILURE_auth, 0, &nowhere, 0.5).kind,
                     NEXT_park);
    turn_record_done(&record);
    config_free(config);
}

/* Jitter never goes below what the provider asked for, and losses wait, too. */
static void test_delays(void **state)
{
    (void)state;
    struct config *config = configure(NULL, 0);
    const struct config_service *service = config_service_find(config, "lint");
    struct turn_record record;
    const struct world world = {.class = FAILURE_rate_limited};
    build(config, &world, &record);
    assert_int_equal(
        failure_next(config, service, &record, FAILURE_rate_limited, 0, &nowhere, 0.0).delay_ms,
        1600);
    assert_int_equal(
        failure_next(config, service, &record, FAILURE_rate_limited, 0, &nowhere, 1.0).delay_ms,
        2400);
    assert_int_equal(
        failure_next(config, service, &record, FAILURE_rate_limited, 9000, &nowhere, 0.0).delay_ms,
        9000);
    record.losses = 2;
    assert_int_equal(
        failure_next(config, service, &record, FAILURE_crash, 0, &nowhere, 0.5).delay_ms, 4000);
    turn_record_done(&record);
    config_free(config);
}

/* `rotate` passes over a profile that rests. */
static void test_rotate_passes_over_what_rests(void **state)
{
    (void)state;
    struct config *config = configure(NULL, 0);
    const struct config_service *service = config_service_find(config, "lint");
    const struct chances second = {NULL, 1u << 1};
    struct turn_record record;
    record_of(&record);
    add_attempt(&record, "one", FAILURE_auth);
    struct next_step step = failure_next(config, service, &record, FAILURE_auth, 0, &second, 0.5);
    assert_int_equal(step.kind, NEXT_rotate);
    assert_string_equal(step.profile, "three");
    turn_record_done(&record);
    config_free(config);
}

/* How a first attempt begins: with a profile that does not rest; else the list of the class, and
 * where it comes to park a try. */
static void test_a_first_attempt_while_profiles_rest(void **state)
{
    (void)state;
    struct config *config = configure(NULL, 0);
    const struct config_service *service = config_service_find(config, "lint");
    static const struct {
        unsigned resting;
        const char *to;
        struct all_rest rest;
        bool waited;
        enum next_kind kind;
        const char *profile;
        int64_t delay_ms;
    } rows[] = {
        {0, "other", {0}, false, NEXT_start, "one", 0},
        {1, "other", {0}, false, NEXT_start, "two", 0},
        {5, "other", {0}, false, NEXT_start, "two", 0},
        {3, NULL, {0}, false, NEXT_start, "three", 0},
        /* all rest: delegate, else a try with the one that is up first */
        {7, "other", {FAILURE_auth, 60000, false, "two"}, false, NEXT_delegate, NULL, 0},
        {7, NULL, {FAILURE_auth, 60000, false, "two"}, false, NEXT_start, "two", 0},
        {7, "other", {FAILURE_quota, 60000, true, "two"}, false, NEXT_delegate, NULL, 0},
        {7, NULL, {FAILURE_quota, 60000, false, "two"}, false, NEXT_start, "two", 0},
        /* a time that the provider named is waited for where the list says retry, once */
        {7, NULL, {FAILURE_quota, 60000, true, "two"}, false, NEXT_retry, NULL, 60000},
        {7, "other", {FAILURE_rate_limited, 60000, true, "two"}, false, NEXT_retry, NULL, 60000},
        {7, "other", {FAILURE_rate_limited, 60000, true, "two"}, true, NEXT_delegate, NULL, 0},
        {7, NULL, {FAILURE_rate_limited, 60000, true, "two"}, true, NEXT_start, "two", 0},
        /* beyond retry.max_wait it is not waited for */
        {7, "other", {FAILURE_rate_limited, 900001, true, "two"}, false, NEXT_delegate, NULL, 0},
        {7, NULL, {FAILURE_rate_limited, 900001, true, "two"}, false, NEXT_start, "two", 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct chances chances = {rows[i].to, rows[i].resting};
        struct next_step step =
            first_next(config, service, &chances, &rows[i].rest, rows[i].waited);
        if (step.kind != rows[i].kind) {
            fail_msg("row %zu: %d", i, (int)step.kind);
        }
        if (rows[i].profile != NULL) {
            assert_string_equal(step.profile, rows[i].profile);
        }
        if (rows[i].kind == NEXT_delegate) {
            assert_string_equal(step.to, "other");
        }
        assert_int_equal(step.delay_ms, rows[i].delay_ms);
    }
    config_free(config);
}

/* Costs that are spent park the turn whatever the list says; one that tells none has no bound. */
static void test_costs_that_are_spent(void **state)
{
    static const char *const sets[] = {"budget.max_cost=1.5"};
    static const struct {
        const char *first;
        const char *second;
        enum next_kind kind;
    } rows[] = {
        {"{\"cost_micros\":1000000}", "{\"cost_micros\":499999}", NEXT_retry},
        {"{\"cost_micros\":1000000}", "{\"cost_micros\":500000}", NEXT_park},
        {NULL, "{\"cost_micros\":1500000}", NEXT_park},
        {"{\"output_tokens\":9}", NULL, NEXT_retry},
    };
    (void)state;
    struct config *config = configure(sets, 1);
    const struct config_service *service = config_service_find(config, "lint");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct turn_record record;
        record_of(&record);
        add_attempt(&record, "one", FAILURE_overloaded);
        add_attempt(&record, "one", FAILURE_overloaded);
        record.attempts[0].usage = rows[i].first != NULL ? strdup(rows[i].first) : NULL;
        record.attempts[1].usage = rows[i].second != NULL ? strdup(rows[i].second) : NULL;
        const struct next_step step =
            failure_next(config, service, &record, FAILURE_overloaded, 0, &nowhere, 0);
        assert_int_equal(step.kind, rows[i].kind);
        assert_true(step.kind != NEXT_park || step.code == BATON_E_cost_exhausted);
        turn_record_done(&record);
    }
    config_free(config);
}

/* What the services before this one spent is what the last pass tells, whatever is told of their attempts;
 * and what an attempt cost counts, too, when it is too old to be kept. */
static void test_costs_are_those_of_the_pass(void **state)
{
    static const struct {
        const char *pass;
        const char *told; /* of the attempt before */
        const char *own;
        int64_t cost;
    } rows[] = {
        {"2 2 other lint 1 0 0 auth 2026-11-29T14:20:44.020Z 700", "{\"cost_micros\":700}",
         "{\"cost_micros\":5}", 705},
        {"2 2 other lint 1 0 0 auth 2026-11-29T14:20:44.020Z 700", "{\"cost_micros\":0}", NULL,
         700},
        {"2 2 other lint 1 0 0 auth 2026-11-29T14:20:44.020Z 700", NULL, "{}", 700},
        {"1 2 other lint 1 0 0 auth 2026-11-29T14:20:44.020Z", "{\"cost_micros\":9007199254740992}",
         "{\"cost_micros\":5}", 5},
        {"2 2 other lint 1 0 0 auth 2026-11-29T14:20:44.020Z 9007199254740992", NULL,
         "{\"cost_micros\":5}", 9007199254740992},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct turn_record record;
        record_of(&record);
        add_attempt(&record, "one", FAILURE_auth);
        add_attempt(&record, "one", FAILURE_overloaded);
        record.attempts[0].usage = rows[i].told != NULL ? strdup(rows[i].told) : NULL;
        record.attempts[1].usage = rows[i].own != NULL ? strdup(rows[i].own) : NULL;
        record.passes = calloc(1, sizeof(*record.passes));
        assert_non_null(record.passes);
        record.passes[record.n_passes++] = strdup(rows[i].pass);
        assert_int_equal(turn_record_cost(&record), rows[i].cost);
        for (int more = 0; more < 2 * TURN_ATTEMPTS_MAX; more++) {
            add_attempt(&record, "one", FAILURE_overloaded);
        }
        assert_int_equal(record.attempts[0].no, 2 * TURN_ATTEMPTS_MAX + 2 - TURN_ATTEMPTS_MAX + 1);
        assert_int_equal(turn_record_cost(&record), rows[i].cost);
        turn_record_done(&record);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_class_in_every_world),
        cmocka_unit_test(test_codes_of_parking),
        cmocka_unit_test(test_a_rotation_after_a_crash_counts_as_no_retry),
        cmocka_unit_test(test_crashes_are_retried_so_often_and_then_passed_on),
        cmocka_unit_test(test_a_try_that_never_started_counts_as_no_retry),
        cmocka_unit_test(test_what_never_starts_is_tried_ever_later),
        cmocka_unit_test(test_a_replay_begins_a_new_series),
        cmocka_unit_test(test_delays),
        cmocka_unit_test(test_rotate_passes_over_what_rests),
        cmocka_unit_test(test_a_first_attempt_while_profiles_rest),
        cmocka_unit_test(test_costs_that_are_spent),
        cmocka_unit_test(test_costs_are_those_of_the_pass),
    };
    return cmocka_run_group_tests_name("worker: what follows a failure", tests, NULL, NULL);
}
