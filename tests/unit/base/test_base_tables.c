/* Every table of closed words against the rules that fix it (RULES S1, S2, S6, S7; DESIGN section
 * 6). */
#include "base_test.h"

#include "baton/code.h"
#include "common/base/check.h"
#include "common/base/failure.h"
#include "common/base/fault.h"
#include "common/base/metrics.h"
#include "common/base/role.h"
#include "common/base/state.h"
#include "common/base/word.h"

struct move {
    const char *from; /* NULL: (none) */
    const char *to;
};

/* RULES S1, row by row. */
static const struct move turn_moves[] = {
    {NULL, "queued"},         {NULL, "running"},        {NULL, "parked"},
    {NULL, "cancelled"},      {"queued", "running"},    {"running", "queued"},
    {"queued", "delegated"},  {"running", "delegated"}, {"running", "parked"},
    {"queued", "parked"},     {"parked", "queued"},     {"parked", "delegated"},
    {"running", "completed"}, {"queued", "cancelled"},  {"running", "cancelled"},
    {"parked", "cancelled"},
};
/* RULES S2. */
static const struct move attempt_moves[] = {
    {NULL, "queued"},         {NULL, "running"},        {"queued", "running"},
    {"running", "completed"}, {"running", "failed"},    {"running", "delegated"},
    {NULL, "failed"},         {"queued", "failed"},     {"queued", "delegated"},
    {"queued", "cancelled"},  {"running", "cancelled"}, {NULL, "cancelled"},
};

static bool listed(const struct move *moves, size_t n, const char *from, const char *to)
{
    for (size_t i = 0; i < n; i++) {
        bool same_from = from == NULL ? moves[i].from == NULL
                                      : moves[i].from != NULL && strcmp(moves[i].from, from) == 0;
        if (same_from && strcmp(moves[i].to, to) == 0) {
            return true;
        }
    }
    return false;
}

static void s1_every_pair_of_turn_states(void **state)
{
    (void)state;
    assert_int_equal(TURN_STATE_COUNT, 6);
    for (unsigned to = 0; to < TURN_STATE_COUNT; to++) {
        const char *to_word = turn_state_word((enum turn_state)to);
        assert_int_equal(turn_state_may_begin((enum turn_state)to),
                         listed(turn_moves, COUNT_OF(turn_moves), NULL, to_word));
        for (unsigned from = 0; from < TURN_STATE_COUNT; from++) {
            const char *from_word = turn_state_word((enum turn_state)from);
            bool may = turn_state_may_move((enum turn_state)from, (enum turn_state)to);
            if (may != listed(turn_moves, COUNT_OF(turn_moves), from_word, to_word)) {
                fail_msg("%s -> %s is %s", from_word, to_word, may ? "allowed" : "refused");
            }
            if (!turn_state_open((enum turn_state)from)) {
                assert_false(may); /* no exit from a closed state */
            }
        }
    }
}

static void s1_open_and_closed(void **state)
{
    (void)state;
    for (unsigned i = 0; i < TURN_STATE_COUNT; i++) {
        assert_int_equal(
            turn_state_open((enum turn_state)i),
            word_in_list("queued running parked", turn_state_word((enum turn_state)i)));
    }
}

static void s2_every_pair_of_attempt_states(void **state)
{
    (void)state;
    assert_int_equal(ATTEMPT_STATE_COUNT, 6);
    for (unsigned to = 0; to < ATTEMPT_STATE_COUNT; to++) {
        const char *to_word = attempt_state_word((enum attempt_state)to);
        assert_int_equal(attempt_state_may_begin((enum attempt_state)to),
                         listed(attempt_moves, COUNT_OF(attempt_moves), NULL, to_word));
        for (unsigned from = 0; from < ATTEMPT_STATE_COUNT; from++) {
            const char *from_word = attempt_state_word((enum attempt_state)from);
            bool may = attempt_state_may_move((enum attempt_state)from, (enum attempt_state)to);
            if (may != listed(attempt_moves, COUNT_OF(attempt_moves), from_word, to_word)) {
                fail_msg("%s -> %s is %s", from_word, to_word, may ? "allowed" : "refused");
            }
        }
        assert_int_equal(attempt_state_live((enum attempt_state)to),
                         word_in_list("queued running", to_word));
    }
}

/* DESIGN section 6, and `circuit:` of the example configuration. */
static void every_pair_of_circuit_states(void **state)
{
    (void)state;
    static const char *const moves[] = {"closed>open", "closed>half_open", "open>half_open",
                                        "open>closed", "half_open>closed"};
    size_t n = 0;
    for (int from = 0; from < CIRCUIT_STATE_COUNT; from++) {
        const char *word = circuit_state_word((enum circuit_state)from);
        enum circuit_state parsed;
        assert_true(circuit_state_parse(word, strlen(word), &parsed) && (int)parsed == from);
        for (int to = 0; to < CIRCUIT_STATE_COUNT; to++) {
            char move[64];
            bool wanted = false;
            snprintf(move, sizeof(move), "%s>%s", word, circuit_state_word((enum circuit_state)to));
            for (size_t i = 0; i < COUNT_OF(moves); i++) {
                wanted = wanted || strcmp(moves[i], move) == 0;
            }
            assert_int_equal(
                circuit_state_may_move((enum circuit_state)from, (enum circuit_state)to), wanted);
            n += wanted ? 1 : 0;
        }
    }
    assert_int_equal(n, COUNT_OF(moves));
}

/* DESIGN section 6: what is the provider's side; what is our own (timeout) says nothing. */
static void what_a_class_says_of_the_provider(void **state)
{
    (void)state;
    for (unsigned i = 0; i < FAILURE_COUNT; i++) {
        const char *word = failure_word((enum failure)i);
        const enum provider_sign wanted =
            word_in_list("auth rate_limited quota overloaded unavailable", word) ? PROVIDER_down
            : word_in_list("access_denied bad_request policy", word)             ? PROVIDER_up
                                                                                 : PROVIDER_nothing;
        assert_int_equal(failure_says((enum failure)i), wanted);
    }
}

static void state_words_are_exact(void **state)
{
    (void)state;
    enum turn_state turn = TURN_parked;
    enum attempt_state attempt = ATTEMPT_failed;
    assert_false(turn_state_parse("Queued", 6, &turn));
    assert_false(turn_state_parse("queued ", 7, &turn));
    assert_false(turn_state_parse("lost", 4, &turn));
    assert_int_equal(turn, TURN_parked);
    assert_true(turn_state_parse("queuedX", 6, &turn));
    assert_int_equal(turn, TURN_queued);
    assert_false(attempt_state_parse("lost", 4, &attempt)); /* a class, no state */
    assert_int_equal(attempt, ATTEMPT_failed);
}

/* RULES S7: words of each group and its exit status; what later pages added follows. */
struct exit_group {
    int exit;
    const char *words;
};
static const struct exit_group exits[] = {
    {0, "ok"},
    {2, "invalid_request key_unsafe unsupported_field unsupported_option bad_service bad_mode "
        "bad_invoke bad_alias alias_conflict"},
    {7, "invalid_envelope bad_signature unknown_key turn_conflict wrong_partition "
        "schema_unsupported wrong_service handoff_expired role_unresolved role_not_served "
        "role_mismatch"},
    {3, "source_unknown no_transitions unknown_target ambiguous_target no_target self_target "
        "topology_denied cycle_limit"},
    {3, "hook_denied hook_blocked hook_retry hook_unavailable patch_invalid rate_limited"},
    {6, "run_terminal turn_open stale_revision subject_changed subject_unavailable report_stale "
        "one_time_run handoff_denied approval_expired handoff_accepted limit_changed"},
    {6, "run_busy place_busy handoff_busy"},
    {4, "not_permitted unauthenticated person_required invoke_denied confirm_needed "
        "unattended_denied nested_start handoff_not_available handoff_disabled access_lost "
        "agent_unsupported handoff_exclusive step_limit daily_limit wrong_lease_kind"},
    {2, "handoff_invalid handoff_edit_invalid budget_exceeded reference_unknown "
        "duplicate_reference scope_unavailable handoff_kind_mismatch proposal_kind_mismatch "
        "record_too_large"},
    {7, "no_verdict readonly_violated finish_failed missing_capability needs_local_worker "
        "place_missing payload_unavailable deadline_exceeded attempts_exhausted cost_exhausted"},
    {5, "unknown_service run_not_found run_ambiguous turn_not_found handoff_not_found "
        "result_not_found"},
    {7, "result_unsupported result_invalid"},
    {8, "publish_failed queue_failed service_unavailable store_failed"},
    {1, "unexpected"},
    {2, "usage bad_config"},
    {5, "key_not_found"},
    {6, "store_busy twin turn_closed not_parked replays_exhausted duplicate"},
    {7, "worker_killed executor_failed"},
    {8, "timed_out disk_full topic_missing no_memory stopped"},
};

static void s7_every_code_has_its_exit_status(void **state)
{
    (void)state;
    size_t listed_codes = 0;
    for (size_t g = 0; g < COUNT_OF(exits); g++) {
        for (const char *at = exits[g].words; *at != '\0';) {
            char word[64];
            size_t n = strcspn(at, " ");
            snprintf(word, sizeof(word), "%.*s", (int)n, at);
            baton_code code;
            if (!baton_code_parse(word, &code)) {
                fail_msg("no code %s", word);
            }
            assert_string_equal(baton_code_word(code), word);
            if (baton_code_exit(code) != exits[g].exit) {
                fail_msg("%s exits with %d", word, baton_code_exit(code));
            }
            listed_codes++;
            at += n + strspn(at + n, " ");
        }
    }
    size_t codes = 0;
#define ONE(number, word, class, exit, text) codes++;
    BATON_CODES(ONE)
#undef ONE
    assert_int_equal(codes, listed_codes); /* none that this test does not name */
}

static void s7_an_unknown_code_is_unexpected(void **state)
{
    (void)state;
    baton_code code = BATON_E_usage;
    assert_string_equal(baton_code_word((baton_code)9999), "unexpected");
    assert_string_equal(baton_code_word((baton_code)-1), "unexpected");
    assert_int_equal(baton_code_exit((baton_code)9999), 1);
    assert_false(baton_code_parse("Ok", &code));
    assert_false(baton_code_parse("", &code));
    assert_int_equal(code, BATON_E_usage);
}

static void errors_are_set_once_and_get_context(void **state)
{
    (void)state;
    struct baton_error err;
    assert_int_equal(baton_fail(&err, BATON_E_timed_out, "no answer in %d s", 5),
                     BATON_E_timed_out);
    assert_string_equal(err.text, "no answer in 5 s");
    baton_fail_context(&err, BATON_E_publish_failed, "handoff %s: ", "3f");
    assert_string_equal(err.text, "handoff 3f: no answer in 5 s");
    assert_int_equal(err.code, BATON_E_publish_failed);
    assert_int_equal(baton_fail(NULL, BATON_E_usage, "nobody listens"), BATON_E_usage);
}

/* RULES S6. */
static void s6_verdicts_of_each_role(void **state)
{
    (void)state;
    static const char *const legal[] = {
        [ROLE_owner] = "done done_with_concerns blocked needs_context",
        [ROLE_reviewer] = "approve changes blocked needs_context escalate",
        [ROLE_arbiter] = "proceed revise reset escalate",
    };
    assert_int_equal(ROLE_COUNT, 3);
    assert_int_equal(VERDICT_COUNT, 10);
    for (unsigned role = 0; role < ROLE_COUNT; role++) {
        for (unsigned v = 0; v < VERDICT_COUNT; v++) {
            const char *word = verdict_word((enum verdict)v);
            assert_int_equal(verdict_legal((enum role)role, (enum verdict)v),
                             word_in_list(legal[role], word));
        }
    }
}

static void r23_roles_are_closed_words(void **state)
{
    (void)state;
    enum role role = ROLE_arbiter;
    static const struct {
        const char *text;
        size_t len;
    } wrong[] = {
        {"Owner", 5},
        {"OWNER", 5},
        {" owner", 6},
        {"owner ", 6},
        {"owner\n", 6},
        {"human", 5},
        {"", 0},
        {"owner\0", 6},
        {"own\0er", 6},
        {"owne", 4},
        {"ownerr", 6},
        {"reviewers", 9},
        {"owner,reviewer", 14},
        {"0", 1},
        {"owner\0reviewer", 14},
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_false(role_parse(wrong[i].text, wrong[i].len, &role));
        assert_int_equal(role, ROLE_arbiter);
    }
    char *long_word = calloc(1, 1 << 20);
    memset(long_word, 'o', 1 << 20);
    assert_false(role_parse(long_word, 1 << 20, &role));
    free(long_word);
    assert_true(role_parse("owner", 5, &role));
    assert_int_equal(role, ROLE_owner);
    assert_true(role_parse("reviewer", 8, &role));
    assert_int_equal(role, ROLE_reviewer);
    assert_true(role_parse("arbiter", 7, &role));
    assert_int_equal(role, ROLE_arbiter);
}

static void every_failure_list_ends_with_park(void **state)
{
    (void)state;
    assert_int_equal(FAILURE_COUNT, 15);
    for (unsigned i = 0; i < FAILURE_COUNT; i++) {
        const char *list = failure_default_actions((enum failure)i);
        unsigned seen = 0;
        enum action last = ACTION_retry;
        for (const char *at = list; *at != '\0';) {
            size_t n = strcspn(at, " ");
            assert_true(action_parse(at, n, &last));
            assert_int_equal(seen & (1u << last), 0);
            seen |= 1u << last;
            at += n + strspn(at + n, " ");
        }
        assert_int_equal(last, ACTION_park);
    }
}

/* DESIGN section 4: losses are crash, killed, lost; every other class is a failure. */
static void failures_and_losses(void **state)
{
    (void)state;
    for (unsigned i = 0; i < FAILURE_COUNT; i++) {
        bool loss = word_in_list("crash killed lost", failure_word((enum failure)i));
        assert_int_equal(failure_counts_in((enum failure)i),
                         loss ? COUNTER_losses : COUNTER_failures);
        enum failure parsed;
        const char *word = failure_word((enum failure)i);
        assert_true(failure_parse(word, strlen(word), &parsed));
        assert_int_equal(parsed, i);
    }
}

static void names_of_metrics_and_fault_points(void **state)
{
    (void)state;
    static const char *const names[] = {
#define NAME(id, name, kind, label, help) name " " #kind,
        METRICS(NAME)
#undef NAME
    };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        assert_int_equal(strncmp(names[i], "baton_", 6), 0);
        bool total = strstr(names[i], "_total ") != NULL;
        assert_int_equal(total, strstr(names[i], " counter") != NULL);
        for (size_t k = 0; k < i; k++) {
            assert_string_not_equal(names[i], names[k]);
        }
    }
    for (unsigned i = 0; i < FAULT_COUNT; i++) {
        for (unsigned k = 0; k < i; k++) {
            assert_string_not_equal(fault_name((enum fault)i), fault_name((enum fault)k));
        }
    }
}

static void nearest_words(void **state)
{
    (void)state;
    static const char *const words[] = {"prefix", "proof", "partitions"};
    assert_string_equal(word_nearest(words, 3, "prefx"), "prefix");
    assert_string_equal(word_nearest(words, 3, "partition"), "partitions");
    assert_null(word_nearest(words, 3, "zzzzzz"));
    assert_false(word_in_list("retry rotate", "rot"));
    assert_false(word_in_list("retry rotate", ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(s1_every_pair_of_turn_states),
        cmocka_unit_test(s1_open_and_closed),
        cmocka_unit_test(s2_every_pair_of_attempt_states),
        cmocka_unit_test(every_pair_of_circuit_states),
        cmocka_unit_test(what_a_class_says_of_the_provider),
        cmocka_unit_test(state_words_are_exact),
        cmocka_unit_test(s7_every_code_has_its_exit_status),
        cmocka_unit_test(s7_an_unknown_code_is_unexpected),
        cmocka_unit_test(errors_are_set_once_and_get_context),
        cmocka_unit_test(s6_verdicts_of_each_role),
        cmocka_unit_test(r23_roles_are_closed_words),
        cmocka_unit_test(every_failure_list_ends_with_park),
        cmocka_unit_test(failures_and_losses),
        cmocka_unit_test(names_of_metrics_and_fault_points),
        cmocka_unit_test(nearest_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
