/* Planning and applying topics on a real local log. */
#include "tests/unit/producer/host.h"

#include "topics/provision.h"

static struct provision_plan plan_of(struct host *host)
{
    struct provision_plan plan;
    struct baton_error err = {BATON_OK, ""};
    if (provision_plan_make(host->config, host->log, &plan, &err) != BATON_OK) {
        fail_msg("%s", err.text);
    }
    return plan;
}

static const struct provision_step *step_of(const struct provision_plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->count; i++) {
        if (strcmp(plan->steps[i].name.s, name) == 0) {
            return &plan->steps[i];
        }
    }
    fail_msg("no step for %s", name);
    return NULL;
}

static void apply(struct host *host)
{
    struct provision_plan plan = plan_of(host);
    struct baton_error err = {BATON_OK, ""};
    if (provision_apply(host->log, &plan, &err) != BATON_OK) {
        fail_msg("%s", err.text);
    }
    provision_plan_done(&plan);
}

static void test_plan_apply_nothing_to_do(void **state)
{
    (void)state;
    struct host host;
    struct log_topic found;
    host_open(&host, HOST_SERVICES);
    host_log(&host);
    struct provision_plan plan = plan_of(&host);
    assert_int_equal(plan.count, 2 * 4 + 4);
    assert_int_equal(plan.n_changes, plan.count);
    assert_int_equal(log_topic_describe(host.log, "baton.handoff.alpha", &found, NULL),
                     BATON_E_topic_missing); /* a plan changes nothing */
    provision_plan_done(&plan);
    apply(&host);
    plan = plan_of(&host);
    assert_int_equal(plan.n_changes, 0);
    assert_int_equal(plan.n_refused, 0);
    assert_int_equal(log_topic_describe(host.log, "baton.turns.beta", &found, NULL), BATON_OK);
    assert_int_equal(found.cleanup, LOG_CLEANUP_compact);
    assert_int_equal(found.partitions, 4);
    provision_plan_done(&plan);
    host_close(&host);
}

static void test_settings_are_mended(void **state)
{
    (void)state;
    struct host host;
    struct log_topic topic;
    host_open(&host, HOST_SERVICES);
    host_log(&host);
    apply(&host);
    assert_int_equal(log_topic_describe(host.log, "baton.handoff.alpha", &topic, NULL), BATON_OK);
    topic.retention_ms = 1000;
    assert_int_equal(log_topic_alter(host.log, &topic, NULL), BATON_OK);
    struct provision_plan plan = plan_of(&host);
    assert_int_equal(plan.n_changes, 1);
    assert_int_equal(step_of(&plan, "baton.handoff.alpha")->what, PROVISION_mend);
    assert_non_null(
        strstr(step_of(&plan, "baton.handoff.alpha")->text, "retention is 1s, not no limit"));
    provision_plan_done(&plan);
    apply(&host);
    assert_int_equal(log_topic_describe(host.log, "baton.handoff.alpha", &topic, NULL), BATON_OK);
    assert_int_equal(topic.retention_ms, -1);
    host_close(&host);
}

static void test_the_number_of_partitions_is_never_changed(void **state)
{
    (void)state;
    struct host host;
    struct log_topic found;
    struct baton_error err = {BATON_OK, ""};
    host_open(&host, HOST_SERVICES);
    host_log(&host);
    apply(&host);
    config_free(host.config);
    host.config = host_config(&host, HOST_SERVICES "local: {partitions: 8}\n"
                                                   "");
    struct provision_plan plan = plan_of(&host);
    assert_int_equal(plan.n_refused, plan.count);
    assert_int_equal(provision_apply(host.log, &plan, &err), BATON_E_topic_missing);
    assert_non_null(strstr(err.text, "fixed"));
    assert_int_equal(log_topic_describe(host.log, "baton.handoff.alpha", &found, NULL), BATON_OK);
    assert_int_equal(found.partitions, 4);
    provision_plan_done(&plan);
    host_close(&host);
}

static void test_what_no_service_needs_is_left_alone(void **state)
{
    (void)state;
    struct host host;
    struct log_topic found;
    host_open(&host, HOST_SERVICES);
    host_log(&host);
    apply(&host);
    config_free(host.config);
    host.config = host_config(
        &host, "identity: alice\nservices:\n"
               "  alpha: {roles: [owner], executor: {kind: exec, command: [/bin/true]}}\n");
    struct provision_plan plan = plan_of(&host);
    assert_int_equal(step_of(&plan, "baton.handoff.beta")->what, PROVISION_surplus);
    assert_int_equal(step_of(&plan, "dlq.baton.handoff.beta")->what, PROVISION_surplus);
    assert_int_equal(plan.n_changes, 0);
    assert_int_equal(provision_apply(host.log, &plan, NULL), BATON_OK);
    assert_int_equal(log_topic_describe(host.log, "baton.handoff.beta", &found, NULL), BATON_OK);
    provision_plan_done(&plan);
    host_close(&host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_apply_nothing_to_do),
        cmocka_unit_test(test_settings_are_mended),
        cmocka_unit_test(test_the_number_of_partitions_is_never_changed),
        cmocka_unit_test(test_what_no_service_needs_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
