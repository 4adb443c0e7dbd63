/*
 * On receipt of a handoff that was passed on: each hop of the chain, its right and its counters (RECORD.md
 * section 6).
 */
#include "receipt_world.h"

#define STATEMENT "1 2 claude codex-review 1 0 0 auth 2026-11-29T14:20:44.020Z"
#define COSTS "2 2 claude codex-review 1 0 0 auth 2026-11-29T14:20:44.020Z 289"
#define DAY_MS (24LL * 3600 * 1000)

static void x1_each_byte_of_a_pass_flipped(void **state)
{
    struct world *w = *state;
    struct post post;
    good(&post, w);
    post_pass(&post, w->claude, STATEMENT);
    expect_handoff(&w->at_codex, &post, BATON_OK);
    size_t len = strlen(post.texts[1]);
    for (size_t i = 0; i < len; i++) {
        char before = post.texts[1][i];
        bool in_id = i >= strlen(STATEMENT) + 1 && i < strlen(STATEMENT) + 17;
        post.texts[1][i] = before == '3' ? '4' : '3';
        expect_handoff(&w->at_codex, &post, in_id ? BATON_E_unknown_key : BATON_E_bad_signature);
        post.texts[1][i] = before;
    }
    post_done(&post);
}

/* Time is that of the log: a turn that waited for weeks is judged by when it was appended. */
static void time_of_a_pass_counts_from_the_pass(void **state)
{
    struct world *w = *state;
    struct post post;
    good(&post, w);
    post_pass(&post, w->claude, "1 2 claude codex-review 1 0 0 auth 2026-12-20T00:00:00.000Z");
    struct wall_ms at = {0};
    assert_true(wall_parse("2026-12-20T00:00:00.000Z", 24, &at));
    post.record.at.v = at.v + TURN_LIFE_MAX_MS;
    expect_handoff(&w->at_codex, &post, BATON_OK);
    post.record.at.v++;
    expect_handoff(&w->at_codex, &post, BATON_E_handoff_expired);
    post.record.at.v = at.v - DAY_MS - 1;
    expect_handoff(&w->at_codex, &post, BATON_E_handoff_expired);
    post_done(&post);
}

static void expect_chain(const struct world *w, const struct receiver *receiver,
                         const struct signer *const *signers, const char *const *statements,
                         size_t count, baton_code code)
{
    struct post post;
    good(&post, w);
    for (size_t i = 0; i < count; i++) {
        post_pass(&post, signers[i], statements[i]);
    }
    expect_handoff(receiver, &post, code);
    post_done(&post);
}

static void x14_passes_need_the_right(void **state)
{
    struct world *w = *state;
    const struct signer *codex[] = {w->codex};
    const struct signer *claude[] = {w->claude};
    const char *by_name[] = {STATEMENT};
    const char *no_edge[] = {"1 2 claude lint 1 0 0 auth 2026-11-29T14:20:44.020Z"};
    /* signed by C in the name of A */
    expect_chain(w, &w->at_codex, codex, by_name, 1, BATON_E_not_permitted);
    /* by one that may itself pass over that edge: still not in the name of A */
    const struct signer *lint[] = {w->lint};
    expect_chain(w, &w->at_codex, lint, by_name, 1, BATON_E_not_permitted);
    /* by A over an edge without right */
    expect_chain(w, &w->at_lint, claude, no_edge, 1, BATON_E_not_permitted);
    /* of a role that the edge lacks */
    struct turn_draft draft = example_draft();
    draft.role = ROLE_owner;
    struct post post = post_draft(&draft, w->coordinator);
    settle_post(&post);
    post_pass(&post, w->claude, STATEMENT);
    expect_handoff(&w->at_codex, &post, BATON_E_not_permitted);
    post_done(&post);
}

static void x15_chains(void **state)
{
    struct world *w = *state;
    const struct signer *two[] = {w->claude, w->codex};
    const struct signer *second[] = {w->codex};
    const char *good_chain[] = {STATEMENT,
                                "1 4 codex-review lint 2 0 0 quota 2026-11-29T14:21:44.020Z"};
    const char *falling[] = {"1 4 claude codex-review 1 0 0 auth 2026-11-29T14:20:44.020Z",
                             "1 4 codex-review lint 2 0 0 quota 2026-11-29T14:21:44.020Z"};
    const char *first_is_1[] = {"1 1 claude codex-review 1 0 0 auth 2026-11-29T14:20:44.020Z"};
    expect_chain(w, &w->at_lint, two, good_chain, 2, BATON_OK);
    /* gap or stripped middle hop */
    expect_chain(w, &w->at_lint, second, good_chain + 1, 1, BATON_E_wrong_service);
    /* the last hop leads elsewhere; stripped last hop */
    expect_chain(w, &w->at_codex, two, good_chain, 2, BATON_E_wrong_service);
    expect_chain(w, &w->at_lint, two, good_chain, 1, BATON_E_wrong_service);
    /* attempts must rise, from 1 */
    expect_chain(w, &w->at_lint, two, falling, 2, BATON_E_invalid_envelope);
    expect_chain(w, &w->at_codex, two, first_is_1, 1, BATON_E_invalid_envelope);
}

/* Every hop is verified, not only the last one. */
static void x15_a_forged_hop_in_the_middle(void **state)
{
    struct world *w = *state;
    for (size_t hop = 1; hop <= 2; hop++) {
        struct post post;
        good(&post, w);
        post_pass(&post, w->claude, STATEMENT);
        post_pass(&post, w->codex, "1 4 codex-review lint 2 0 0 quota 2026-11-29T14:21:44.020Z");
        expect_handoff(&w->at_lint, &post, BATON_OK);
        char *digit = strstr(post.texts[hop], " 0 0 ") + 1; /* its losses */
        *digit = '1';
        expect_handoff(&w->at_lint, &post, BATON_E_bad_signature);
        post_done(&post);
    }
}

static void x15_a_pass_of_another_turn(void **state)
{
    struct world *w = *state;
    struct post post;
    struct turn_draft draft = example_draft();
    draft.key = "r-9.1.3";
    struct post other = post_draft(&draft, w->coordinator);
    settle_post(&other);
    post_pass(&other, w->claude, STATEMENT);
    good(&post, w);
    post_header(&post, "baton-pass", other.texts[1]);
    expect_handoff(&w->at_codex, &post, BATON_E_bad_signature);
    post_done(&post);
    post_done(&other);
}

static void x15_a_loop(void **state)
{
    struct world *w = *state;
    const struct signer *two[] = {w->claude, w->codex};
    const char *back[] = {STATEMENT,
                          "1 3 codex-review claude 2 0 0 quota 2026-11-29T14:21:44.020Z"};
    expect_chain(w, &w->at_claude, two, back, 2, BATON_E_invalid_envelope);
    const struct signer *nine[9];
    const char *texts[9];
    for (size_t i = 0; i < 9; i++) {
        nine[i] = w->claude;
        texts[i] = STATEMENT;
    }
    expect_chain(w, &w->at_codex, nine, texts, 9, BATON_E_invalid_envelope);
}

/* What was spent is signed with each hop, and no service can take back what one before it has told. */
static void x16_costs_never_fall(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *second; /* version, and costs behind the time */
        const char *costs;
        baton_code code;
    } rows[] = {{"2", " 289", BATON_OK},
                {"2", " 290", BATON_OK},
                {"2", " 288", BATON_E_invalid_envelope},
                {"1", "", BATON_E_invalid_envelope}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char text[200];
        struct post post;
        struct receipt receipt;
        snprintf(text, sizeof(text),
                 "%s 4 codex-review lint 2 0 0 quota 2026-11-29T14:21:44.020Z%s", rows[i].second,
                 rows[i].costs);
        good(&post, w);
        post_pass(&post, w->claude, COSTS);
        post_pass(&post, w->codex, text);
        assert_int_equal(receipt_handoff(&w->at_lint, &post.record, &receipt), rows[i].code);
        if (rows[i].code == BATON_OK) {
            assert_int_equal(receipt.passes[0].cost_micros, 289);
            assert_int_equal(receipt.passes[1].cost_micros, strtoll(rows[i].costs, NULL, 10));
        }
        receipt_done(&receipt);
        char *costs = strstr(post.texts[1], " 289 ") + 1;
        *costs = '1';
        expect_handoff(&w->at_lint, &post, BATON_E_bad_signature);
        post_done(&post);
    }
}

static void x16_e19_counters_in_a_pass(void **state)
{
    struct world *w = *state;
    static const char *const attempts[] = {"65535", "2147483647", "-1", "9223372036854775808",
                                           "abc",   "0",          "02"};
    const struct signer *claude[] = {w->claude};
    for (size_t i = 0; i < COUNT_OF(attempts); i++) {
        char text[200];
        const char *statement[] = {text};
        snprintf(text, sizeof(text), "1 %s claude codex-review 1 0 0 auth 2026-11-29T14:20:44.020Z",
                 attempts[i]);
        expect_chain(w, &w->at_codex, claude, statement, 1, BATON_E_invalid_envelope);
        snprintf(text, sizeof(text), "1 2 claude codex-review %s 0 0 auth 2026-11-29T14:20:44.020Z",
                 attempts[i]);
        if (strcmp(attempts[i], "0") != 0) {
            expect_chain(w, &w->at_codex, claude, statement, 1, BATON_E_invalid_envelope);
        }
    }
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        T(x1_each_byte_of_a_pass_flipped),
        T(time_of_a_pass_counts_from_the_pass),
        T(x14_passes_need_the_right),
        T(x15_chains),
        T(x15_a_forged_hop_in_the_middle),
        T(x15_a_pass_of_another_turn),
        T(x15_a_loop),
        T(x16_costs_never_fall),
        T(x16_e19_counters_in_a_pass),
    };
#undef T
    return cmocka_run_group_tests_name("receipt: passes", tests, NULL, NULL);
}
