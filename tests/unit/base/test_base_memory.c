/*
 * Memory runs out at every allocation, one after the other (STYLE M5): nothing crashes, nothing
 * leaks, the answer is no_memory. The allocator is replaced for this program; sanitizers have their
 * own, so there only the good case runs.
 */
#include "base_test.h"

#include "common/base/config.h"
#include "common/base/mailbox.h"
#include "common/base/table.h"
#include "tests/unit/failing_memory.h"

typedef baton_code attempt(void);

/* Runs the attempt with its k-th allocation failing, until it needs fewer than k. */
static void each_allocation_fails(attempt *attempt_once)
{
    long k = 0;
    baton_code rc = BATON_E_no_memory;
    for (k = 1; rc != BATON_OK; k++) {
        assert_true(k < 100000);
        live = 0;
        fail_at = OWN_ALLOCATOR ? k : 0;
        rc = attempt_once();
        bool failed = OWN_ALLOCATOR && fail_at == 0;
        fail_at = 0;
        if (rc != (failed ? BATON_E_no_memory : BATON_OK)) {
            fail_msg("allocation %ld %s: %s", k, failed ? "failed" : "was not needed",
                     baton_code_word(rc));
        }
        if (live != 0) {
            fail_msg("allocation %ld failed: %ld are left", k, live);
        }
    }
    assert_true(k > (OWN_ALLOCATOR ? 3 : 1));
}

static const char text[] =
    "version: 1\nprefix: a\nkafka: {brokers: [a:1, b:2], client: {x: y}, security: sasl_ssl, "
    "sasl: {mechanism: PLAIN, username: u, password: {file: p}}, certificate: c, key: k}\n"
    "services:\n  a:\n    roles: [owner, reviewer]\n    place: here\n"
    "    executor: {kind: exec, command: [./x, y], prefix: [z], env: {A: {value: b}, B: {file: c}, "
    "C: {from: D}}}\n"
    "    profiles: [{name: p, env: {T: {file: t}}}, {name: q}]\n"
    "  b: {roles: [owner], executor: {kind: agent, agent: claude, model: m}}\n"
    "roles: {owner: {chain: [a, b]}}\non_failure: {auth: [rotate, park]}\nworkflows: [w.yaml]\n"
    "http: {listen: 'a:1'}\n";

static baton_code load_once(void)
{
    static const char *const sets[] = {"budget.failures=3", "services.a.parallel=2"};
    struct config *config = NULL;
    struct baton_error err;
    baton_code rc =
        config_parse("/etc/x/f.yaml", text, sizeof(text) - 1, sets, 2, &config, NULL, &err);
    assert_int_equal(config != NULL, rc == BATON_OK);
    config_free(config);
    return rc;
}

static baton_code show_once(void)
{
    struct config *config = NULL;
    struct buf out = BUF_INIT;
    baton_code rc =
        config_parse("/etc/x/f.yaml", text, sizeof(text) - 1, NULL, 0, &config, NULL, NULL);
    if (rc == BATON_OK) {
        config_show(config, true, &out);
        config_show(config, false, &out);
        config_document(false, &out);
        config_warnings(config, &out);
        rc = buf_ok(&out) ? BATON_OK : BATON_E_no_memory;
    }
    buf_done(&out);
    config_free(config);
    return rc;
}

static baton_code table_once(void)
{
    static const char *const titles[] = {"A", "B"};
    struct buf out = BUF_INIT;
    struct table *table = table_new(titles, 2);
    for (int i = 0; table != NULL && i < 100; i++) {
        table_text(table, "some text");
        table_int(table, i);
    }
    bool whole = table != NULL && table_print(table, 40, &out);
    table_free(table);
    buf_done(&out);
    return whole ? BATON_OK : BATON_E_no_memory;
}

static baton_code mailbox_once(void)
{
    struct mailbox *mailbox = mailbox_new(4);
    bool made = mailbox != NULL;
    mailbox_free(mailbox);
    return made ? BATON_OK : BATON_E_no_memory;
}

static void m5_configuration(void **state)
{
    (void)state;
    each_allocation_fails(load_once);
}

static void m5_show(void **state)
{
    (void)state;
    each_allocation_fails(show_once);
}

static void m5_table(void **state)
{
    (void)state;
    each_allocation_fails(table_once);
}

static void m5_mailbox(void **state)
{
    (void)state;
    struct mailbox *mailbox = mailbox_new(1);
    assert_non_null(mailbox);
    mailbox_free(mailbox);
    live = 0;
    fail_at = OWN_ALLOCATOR;
    assert_int_equal(mailbox_once(), OWN_ALLOCATOR ? BATON_E_no_memory : BATON_OK);
    assert_int_equal(live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(m5_configuration),
        cmocka_unit_test(m5_show),
        cmocka_unit_test(m5_table),
        cmocka_unit_test(m5_mailbox),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
