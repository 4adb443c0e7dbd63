/* The handoff operation: one case for each stage that refuses only there (H-01), and what each means. */
#include "run_fixture.h"

static struct handoff_ask by_verdict(const char *from, enum verdict verdict)
{
    return (struct handoff_ask){.actor = HANDOFF_ACTOR_workflow,
                                .from = from,
                                .has_verdict = true,
                                .verdict = verdict,
                                .summary = "do it"};
}

static struct handoff_ask asked(enum handoff_actor actor, const char *from, const char *target)
{
    return (struct handoff_ask){.actor = actor, .from = from, .target = target, .summary = "do it"};
}

static struct handoff_result decide(const struct run *run, const struct handoff_ask *ask)
{
    struct handoff_result result;
    handoff_decide(run, ask, &result);
    assert_true((result.code == BATON_OK) == (result.status == HANDOFF_queued));
    assert_true(result.code == BATON_OK || result.text[0] != '\0');
    return result;
}

static void refused(const struct run *run, struct handoff_ask ask, enum handoff_status status,
                    enum handoff_stage stage, baton_code code)
{
    const struct handoff_result result = decide(run, &ask);
    if (result.status != status || result.stage != stage || result.code != code) {
        fail_msg("from %s to %s: %s at %s: %s (%s)", ask.from,
                 ask.target != NULL ? ask.target : "-", handoff_status_word(result.status),
                 handoff_stage_word(result.stage), baton_code_word(result.code), result.text);
    }
}

static bool nobody(void *arg, size_t slot, baton_code *ret_code)
{
    (void)arg;
    *ret_code = BATON_E_unknown_service;
    return slot == SIZE_MAX;
}

static bool not_b(void *arg, size_t slot, baton_code *ret_code)
{
    (void)arg;
    *ret_code = BATON_E_unknown_service;
    return slot != 2;
}

static void test_H01_each_stage_refuses_by_its_name(void **state)
{
    struct run *run = run_make();
    const struct handoff_hook_end blocks = {.code = BATON_E_hook_blocked, .text = "no"};
    struct handoff_ask ask;
    (void)state;
    ask = by_verdict("dev", VERDICT_done);
    ask.summary = " \n";
    refused(run, ask, HANDOFF_blocked, HANDOFF_STAGE_policy, BATON_E_invalid_request); /* H-45 */
    refused(run, by_verdict("boss", VERDICT_done), HANDOFF_failed, HANDOFF_STAGE_resolve_source,
            BATON_E_source_unknown); /* H-04 */
    refused(run, by_verdict("end", VERDICT_reset), HANDOFF_blocked,
            HANDOFF_STAGE_resolve_transition, BATON_E_no_transitions);
    refused(run, by_verdict("dev", VERDICT_blocked), HANDOFF_blocked,
            HANDOFF_STAGE_resolve_transition, BATON_E_unknown_target);
    refused(run, by_verdict("rev.b", VERDICT_escalate), HANDOFF_blocked,
            HANDOFF_STAGE_authorize_topology, BATON_E_topology_denied); /* H-08 */
    assert_true(run_count(run, "again") && run_count(run, "again"));
    refused(run, by_verdict("rev.a", VERDICT_changes), HANDOFF_blocked, HANDOFF_STAGE_cycle_limit,
            BATON_E_cycle_limit); /* H-09 */
    ask = by_verdict("dev", VERDICT_done_with_concerns);
    ask.hook = &blocks;
    refused(run, ask, HANDOFF_blocked, HANDOFF_STAGE_hook, BATON_E_hook_blocked);
    ask = by_verdict("dev", VERDICT_done);
    ask.reachable = nobody;
    refused(run, ask, HANDOFF_failed, HANDOFF_STAGE_publish, BATON_E_unknown_service);
    assert_true(run_move(run, RUN_cancelled, "", (struct wall_ms){1}));
    refused(run, by_verdict("dev", VERDICT_done), HANDOFF_blocked, HANDOFF_STAGE_resolve_run,
            BATON_E_run_terminal); /* H-03 */
    run_free(run);
}

static void test_H05_one_transition_fits_or_none(void **state)
{
    struct run *run = run_make();
    struct handoff_ask ask;
    (void)state;
    refused(run, asked(HANDOFF_ACTOR_agent, "rev.a", "nowhere"), HANDOFF_blocked,
            HANDOFF_STAGE_resolve_transition, BATON_E_unknown_target);
    refused(run, asked(HANDOFF_ACTOR_agent, "rev.a", "Rev.b"), HANDOFF_blocked,
            HANDOFF_STAGE_resolve_transition, BATON_E_unknown_target); /* FIELD I11: exactly so */
    refused(run, asked(HANDOFF_ACTOR_person, "rev.a", "rev.b"), HANDOFF_blocked,
            HANDOFF_STAGE_resolve_transition, BATON_E_ambiguous_target); /* ask and ask2 */
    ask = asked(HANDOFF_ACTOR_agent, "rev.a", "rev.b"); /* without the verdict of ask2 it is ask */
    assert_string_equal(decide(run, &ask).transition->name.s, "ask");
    refused(run, asked(HANDOFF_ACTOR_agent, "rev.a", "dev"), HANDOFF_blocked,
            HANDOFF_STAGE_resolve_transition, BATON_E_unknown_target); /* changes was not said */
    ask.target = "dev";
    ask.has_verdict = true;
    ask.verdict = VERDICT_changes;
    assert_string_equal(decide(run, &ask).transition->name.s, "again");
    ask =
        asked(HANDOFF_ACTOR_person, "rev.a", "dev"); /* a person may take it without the verdict */
    assert_string_equal(decide(run, &ask).transition->name.s, "again");
    run_free(run);
}

/* More of them than are shown: whole names, and a sign that there are more. */
static void test_H05_names_of_targets_are_whole(void **state)
{
    struct run *run = run_make();
    struct buf text = BUF_INIT;
    struct buf findings = BUF_INIT;
    struct handoff_ask ask = asked(HANDOFF_ACTOR_agent, "dev", "nowhere");
    (void)state;
    buf_printf(&text, "version: 1\nname: wide\nstart: dev\nnodes:\n  dev: {role: owner, service: "
                      "one}\n");
    for (int i = 10; i < 40; i++) {
        buf_printf(&text, "  a-node-of-many-%d: {role: owner, service: one}\n", i);
    }
    buf_printf(&text, "transitions:\n");
    for (int i = 10; i < 40; i++) {
        buf_printf(&text, "  t-%d: {from: dev, to: a-node-of-many-%d}\n", i, i);
    }
    buf_printf(&text, "ends:\n  good: {from: dev, when: [done], as: completed}\n"
                      "channels:\n  - {from: dev, to: [");
    for (int i = 10; i < 40; i++) {
        buf_printf(&text, "%sa-node-of-many-%d", i > 10 ? ", " : "", i);
    }
    buf_printf(&text, "]}\n");
    workflow_free(run->workflow);
    if (workflow_parse("wide", text.data, text.len, NULL, &run->workflow, &findings, NULL, NULL) !=
        BATON_OK) {
        fail_msg("%.*s", (int)findings.len, findings.data);
    }
    const struct handoff_result result = decide(run, &ask);
    assert_int_equal(result.code, BATON_E_unknown_target);
    const char *names = strstr(result.text, "lead to: ");
    assert_non_null(names);
    int shown = 10;
    for (names += strlen("lead to: "); strncmp(names, "a-node", 6) == 0; shown++) {
        char whole[32];
        snprintf(whole, sizeof(whole), "a-node-of-many-%d, ", shown);
        assert_memory_equal(names, whole, strlen(whole));
        names += strlen(whole);
    }
    assert_true(shown > 15);
    assert_string_equal(names, "…");
    buf_done(&text);
    buf_done(&findings);
    run_free(run);
}

static void test_H06_H23_H26_targets(void **state)
{
    struct run *run = run_make();
    struct handoff_ask ask = by_verdict("dev", VERDICT_done);
    struct handoff_result result = decide(run, &ask);
    (void)state;
    assert_int_equal(result.targets, SLOT_BIT(1) | SLOT_BIT(2)); /* a node: all its slots */
    ask.reachable = not_b;
    result = decide(run, &ask);
    assert_int_equal(result.status, HANDOFF_queued);
    assert_int_equal(result.targets, SLOT_BIT(1));
    assert_int_equal(result.unreached, SLOT_BIT(2)); /* H-23 */
    refused(run, asked(HANDOFF_ACTOR_agent, "rev.a", "rev.a"), HANDOFF_blocked,
            HANDOFF_STAGE_resolve_transition, BATON_E_self_target); /* H-26; rev.b is a sibling */
    run_free(run);
}

/* H-14: at the cap no hook is asked; what wants one says so before anything else follows. */
static void test_H14_H30_H33_H38_hooks(void **state)
{
    struct run *run = run_make();
    struct handoff_hook_end end = {.code = BATON_OK};
    struct handoff_ask ask = by_verdict("dev", VERDICT_done_with_concerns);
    struct handoff_result result = decide(run, &ask);
    (void)state;
    assert_true(result.wants_hook && result.code == BATON_E_hook_unavailable);
    ask.hook = &end;
    assert_int_equal(decide(run, &ask).status, HANDOFF_queued);
    end = (struct handoff_hook_end){
        .code = BATON_E_hook_retry, .retry_after_ms = 5000, .text = "later"};
    result = decide(run, &ask);
    assert_true(result.code == BATON_E_hook_retry && result.retry_after_ms == 5000); /* H-42 */

    ask = asked(HANDOFF_ACTOR_agent, "dev", "rev.b");
    ask.hook = &end;
    refused(run, ask, HANDOFF_blocked, HANDOFF_STAGE_hook, BATON_E_hook_denied); /* people only */
    ask = asked(HANDOFF_ACTOR_person, "dev", "end");
    ask.hook = &end;
    refused(run, ask, HANDOFF_blocked, HANDOFF_STAGE_hook, BATON_E_hook_denied); /* switched off */

    run->task_status = TASK_STATUS_in_review;
    ask = by_verdict("rev.b", VERDICT_changes); /* H-33: a side effect holds nothing up */
    ask.hook = &end;
    assert_int_equal(decide(run, &ask).status, HANDOFF_queued);
    run_free(run);
}

static void test_H37_data_that_a_hook_declares(void **state)
{
    struct run *run = run_make();
    const struct handoff_hook_end end = {.code = BATON_OK};
    const char *keys[] = {"url"};
    struct handoff_ask ask = by_verdict("dev", VERDICT_done_with_concerns);
    (void)state;
    ask.hook = &end;
    ask.data = keys;
    ask.n_data = 1;
    assert_int_equal(decide(run, &ask).status, HANDOFF_queued);
    keys[0] = "other";
    refused(run, ask, HANDOFF_blocked, HANDOFF_STAGE_resolve_transition, BATON_E_unsupported_field);
    ask.verdict = VERDICT_done; /* no hook */
    keys[0] = "url";
    refused(run, ask, HANDOFF_blocked, HANDOFF_STAGE_resolve_transition, BATON_E_unsupported_field);
    run_free(run);
}

/* H-40: what the run is about is said once. */
static void test_H40_another_subject_is_refused(void **state)
{
    struct run *run = run_make();
    const struct handoff_hook_end end = {.code = BATON_OK};
    struct handoff_ask ask = by_verdict("dev", VERDICT_done_with_concerns);
    char subject[RUN_SUBJECT_MAX + 2];
    char facts[700];
    (void)state;
    ask.hook = &end;
    ask.facts = "{\"url\":\"https://x/1\"}";
    struct handoff_result result = decide(run, &ask);
    assert_int_equal(result.status, HANDOFF_queued);
    assert_null(run->subject); /* deciding says nothing */
    assert_true(handoff_subject(result.transition, ask.facts, subject));
    assert_string_equal(subject, "https://x/1");
    run_freeze_subject(run, subject);
    run_freeze_subject(run, "https://x/2"); /* once */
    assert_int_equal(decide(run, &ask).status, HANDOFF_queued);
    ask.facts = "{\"other\":\"https://x/2\"}"; /* none is named */
    assert_int_equal(decide(run, &ask).status, HANDOFF_queued);
    ask.facts = "{\"url\":\"https://x/2\"}";
    refused(run, ask, HANDOFF_blocked, HANDOFF_STAGE_resolve_transition, BATON_E_subject_changed);
    ask.hook = NULL; /* before its hook, too */
    refused(run, ask, HANDOFF_blocked, HANDOFF_STAGE_resolve_transition, BATON_E_subject_changed);
    snprintf(facts, sizeof(facts), "{\"url\":\"%0*d\"}", RUN_SUBJECT_MAX + 1, 0);
    ask.facts = facts;
    refused(run, ask, HANDOFF_blocked, HANDOFF_STAGE_resolve_transition,
            BATON_E_subject_unavailable);
    ask.verdict = VERDICT_done; /* without a hook it is a fact like others */
    assert_int_equal(decide(run, &ask).status, HANDOFF_queued);
    assert_true(run_move(run, RUN_cancelled, "", (struct wall_ms){1}));
    run_reopen(run, "again", (struct wall_ms){2});
    assert_null(run->subject);
    run_free(run);
}

static void test_H61_a_phase_of_the_task(void **state)
{
    struct run *run = run_make();
    (void)state;
    refused(run, by_verdict("rev.b", VERDICT_changes), HANDOFF_blocked,
            HANDOFF_STAGE_resolve_transition, BATON_E_hook_blocked);
    run_free(run);
}

/* A result of an older epoch moves nothing. */
static void test_an_older_epoch_is_refused(void **state)
{
    struct run *run = run_make();
    struct run_turn *turn = turn_make(run, "0123456789abcdef0123456789abcdef", "dev", RUN_START);
    struct handoff_ask ask = by_verdict("dev", VERDICT_done);
    (void)state;
    ask.turn = turn;
    assert_int_equal(decide(run, &ask).status, HANDOFF_queued);
    run->epoch = 2;
    refused(run, ask, HANDOFF_blocked, HANDOFF_STAGE_resolve_run, BATON_E_run_terminal);
    run_free(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_H01_each_stage_refuses_by_its_name),
        cmocka_unit_test(test_H05_one_transition_fits_or_none),
        cmocka_unit_test(test_H05_names_of_targets_are_whole),
        cmocka_unit_test(test_H06_H23_H26_targets),
        cmocka_unit_test(test_H14_H30_H33_H38_hooks),
        cmocka_unit_test(test_H37_data_that_a_hook_declares),
        cmocka_unit_test(test_H40_another_subject_is_refused),
        cmocka_unit_test(test_H61_a_phase_of_the_task),
        cmocka_unit_test(test_an_older_epoch_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
