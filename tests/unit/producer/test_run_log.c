/* Whether runs stand still, as the group of the coordinators shows it, or does not. */
#include "tests/unit/producer/host.h"

#include "common/log/driver.h"
#include "producer/run_log.h"

/* What the log says of that group. */
static struct {
    baton_code code;
    size_t count;
    int64_t timeout_ms;
    char group[64];
} answer;

static baton_code members(struct log *log, const char *group, int64_t timeout_ms,
                          struct log_group_member **ret_members, size_t *ret_count,
                          struct baton_error *err)
{
    (void)log;
    snprintf(answer.group, sizeof(answer.group), "%s", group);
    answer.timeout_ms = timeout_ms;
    if (answer.code != BATON_OK) {
        return baton_fail(err, answer.code, "no");
    }
    *ret_members = calloc(answer.count + 1, sizeof(**ret_members));
    assert_non_null(*ret_members);
    *ret_count = answer.count;
    return BATON_OK;
}

/* What cannot be seen is neither yes nor no: nobody may be told that a coordinator runs, or that none does. */
static void test_still_is_yes_no_or_not_to_be_seen(void **state)
{
    static const struct log_driver_ops ops = {.group_members = members};
    static const struct {
        baton_code code;
        size_t count;
        enum run_still still;
    } cases[] = {{BATON_OK, 0, RUN_STILL_yes},
                 {BATON_OK, 2, RUN_STILL_no},
                 {BATON_E_not_permitted, 0, RUN_STILL_unseen},
                 {BATON_E_service_unavailable, 0, RUN_STILL_unseen}};
    struct log log = {&ops};
    struct host host;
    (void)state;
    host_open(&host, HOST_SERVICES);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        answer.code = cases[i].code;
        answer.count = cases[i].count;
        assert_int_equal(run_log_still(&log, host.config, 321), cases[i].still);
        assert_int_equal(answer.timeout_ms, 321);
        assert_string_equal(answer.group, "baton.coordinator");
    }
    host_close(&host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_still_is_yes_no_or_not_to_be_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
