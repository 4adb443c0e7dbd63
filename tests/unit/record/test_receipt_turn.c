/*
 * On receipt of a handoff: what the turn says, of whom, for whom and when, against who signed it (RECORD.md
 * section 6); and the same again for a turn that the store has.
 */
#include "receipt_world.h"

#define STATEMENT "1 2 claude codex-review 1 0 0 auth 2026-11-29T14:20:44.020Z"
#define DAY_MS (24LL * 3600 * 1000)

/* The origin signs its own bytes again with another role, under the id of the first. */
static void x5_another_role_under_the_same_id(void **state)
{
    struct world *w = *state;
    struct post post;
    struct turn_draft draft = example_draft();
    struct turn *turn = make_turn(&draft);
    char *at = strstr(turn->bytes, "\"role\":\"reviewer\"");
    assert_non_null(at);
    memcpy(at, "\"role\":\"owner\"   ", 17);
    post_value(&post, turn->id.s, turn->bytes, turn->len);
    post_sign(&post, w->coordinator, FLEET, PROOF_turn);
    expect_handoff(&w->at_claude, &post, BATON_E_invalid_envelope);
    turn_free(turn);
    post_done(&post);
}

static void expect_draft_at(const struct world *w, const struct turn_draft *draft,
                            const struct signer *signer, const char *service, baton_code code)
{
    struct receiver receiver = receiver_of(w->trust, service);
    struct post post = post_draft(draft, signer);
    settle_post(&post);
    expect_handoff(&receiver, &post, code);
    post_done(&post);
}

static void x6_origin_without_the_right(void **state)
{
    struct world *w = *state;
    struct turn_draft draft = example_draft();
    draft.origin = "alice";
    draft.role = ROLE_owner;
    expect_draft_at(w, &draft, w->alice, "claude", BATON_OK);
    draft.role = ROLE_reviewer;
    expect_draft_at(w, &draft, w->alice, "claude", BATON_E_not_permitted);
    draft.role = ROLE_owner;
    draft.service = "codex-review";
    expect_draft_at(w, &draft, w->alice, "codex-review", BATON_E_not_permitted);
}

static void x7_a_service_signs_a_birth(void **state)
{
    struct world *w = *state;
    struct turn_draft draft = example_draft();
    draft.origin = "claude";
    draft.service = "codex-review";
    expect_draft_at(w, &draft, w->claude, "codex-review", BATON_E_not_permitted);
    draft.origin = "coordinator";
    expect_draft_at(w, &draft, w->claude, "codex-review", BATON_E_not_permitted);
}

static void x8_the_name_or_id_of_another_origin(void **state)
{
    struct world *w = *state;
    struct turn_draft draft = example_draft();
    draft.role = ROLE_owner;
    draft.origin = "alice";
    struct turn *hers = make_turn(&draft);
    /* ci writes `origin: alice` */
    expect_draft_at(w, &draft, w->ci, "claude", BATON_E_not_permitted);
    /* ci uses alice's id for a turn of its own */
    draft.origin = "ci";
    struct turn *mine = make_turn(&draft);
    struct post post;
    char *at = strstr(mine->bytes, mine->id.s);
    memcpy(at, hers->id.s, 32);
    post_value(&post, hers->id.s, mine->bytes, mine->len);
    post_sign(&post, w->ci, FLEET, PROOF_turn);
    expect_handoff(&w->at_claude, &post, BATON_E_invalid_envelope);
    post_done(&post);
    /* a key that is not the turn's id, properly signed */
    post_value(&post, hers->id.s, mine->bytes, mine->len);
    memcpy(strstr(post.value, hers->id.s), mine->id.s, 32);
    post_sign(&post, w->ci, FLEET, PROOF_turn);
    expect_handoff(&w->at_claude, &post, BATON_E_invalid_envelope);
    post_done(&post);
    turn_free(hers);
    turn_free(mine);
}

static void x9_other_content_under_the_same_id(void **state)
{
    struct world *w = *state;
    struct turn_draft draft = example_draft();
    struct receipt first;
    struct receipt second;
    struct post a = post_draft(&draft, w->coordinator);
    draft.payload = "hellp";
    struct post b = post_draft(&draft, w->coordinator);
    settle_post(&a);
    settle_post(&b);
    assert_int_equal(receipt_handoff(&w->at_claude, &a.record, &first), BATON_OK);
    assert_int_equal(receipt_handoff(&w->at_claude, &b.record, &second), BATON_OK);
    assert_string_equal(first.turn->id.s, second.turn->id.s);
    assert_memory_not_equal(first.turn->content.b, second.turn->content.b, DIGEST_LEN);
    receipt_done(&first);
    receipt_done(&second);
    post_done(&a);
    post_done(&b);
}

static void x10_copied_to_another_service(void **state)
{
    struct world *w = *state;
    struct post post;
    good(&post, w);
    expect_handoff(&w->at_codex, &post, BATON_E_wrong_service);
    /* I11: a name is the whole name */
    struct receiver near = w->at_claude;
    near.service = "claud";
    expect_handoff(&near, &post, BATON_E_wrong_service);
    near.service = "claude-2";
    expect_handoff(&near, &post, BATON_E_wrong_service);
    post_done(&post);
}

static void x11_copied_to_another_partition(void **state)
{
    struct world *w = *state;
    struct post post;
    good(&post, w);
    for (int32_t p = 0; p < PARTITIONS; p++) {
        post.record.partition = p;
        expect_handoff(&w->at_claude, &post, p == 1 ? BATON_OK : BATON_E_wrong_partition);
    }
    post_done(&post);
}

static void x12_sent_again_later(void **state)
{
    struct world *w = *state;
    struct post post;
    good(&post, w);
    post.record.at.v = EXAMPLE_MS + TURN_LIFE_MAX_MS;
    expect_handoff(&w->at_claude, &post, BATON_OK);
    post.record.at.v++;
    expect_handoff(&w->at_claude, &post, BATON_E_handoff_expired);
    post.record.at.v = EXAMPLE_MS + 8 * DAY_MS;
    expect_handoff(&w->at_claude, &post, BATON_E_handoff_expired);
    post.record.at.v = EXAMPLE_MS + 15 * DAY_MS;
    expect_handoff(&w->at_claude, &post, BATON_E_handoff_expired);
    post_done(&post);
}

static void x13_signed_in_the_future(void **state)
{
    struct world *w = *state;
    struct post post;
    good(&post, w);
    post.record.at.v = EXAMPLE_MS - DAY_MS;
    expect_handoff(&w->at_claude, &post, BATON_OK);
    post.record.at.v--;
    expect_handoff(&w->at_claude, &post, BATON_E_handoff_expired);
    post.record.at.v = EXAMPLE_MS - 365 * DAY_MS;
    expect_handoff(&w->at_claude, &post, BATON_E_handoff_expired);
    post_done(&post);
}

static void x18_roles_that_are_none(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *role;
        baton_code code;
    } rows[] = {
        {"", BATON_E_role_unresolved},
        {"\"role\":\"Reviewer\",", BATON_E_role_unresolved},
        {"\"role\":\"reviewer \",", BATON_E_role_unresolved},
        {"\"role\":null,", BATON_E_role_unresolved},
        {"\"reason\":\"reviewer-please\",", BATON_E_role_unresolved},
        {"\"role\":\"reviewer\",\"role\":\"owner\",", BATON_E_invalid_envelope},
        {"\"role\":\"reviewer\",\"role\":\"reviewer\",", BATON_E_invalid_envelope},
    };
    struct turn_draft draft = example_draft();
    struct turn *turn = make_turn(&draft);
    const char *at = strstr(turn->bytes, "\"role\":\"reviewer\",");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct post post;
        char value[1024];
        snprintf(value, sizeof(value), "%.*s%s%s", (int)(at - turn->bytes), turn->bytes,
                 rows[i].role, at + strlen("\"role\":\"reviewer\","));
        post_value(&post, turn->id.s, value, strlen(value));
        post_sign(&post, w->coordinator, FLEET, PROOF_turn);
        expect_handoff(&w->at_claude, &post, rows[i].code);
        post_done(&post);
    }
    turn_free(turn);
}

static void c03_c20_empty_and_null(void **state)
{
    struct world *w = *state;
    struct post post;
    good(&post, w);
    const void *value = post.record.value;
    post.record.value = NULL;
    post.record.value_len = 0;
    expect_handoff(&w->at_claude, &post, BATON_E_invalid_envelope);
    post.record.value = "";
    expect_handoff(&w->at_claude, &post, BATON_E_invalid_envelope);
    post.record.value = value;
    post.record.value_len = (size_t)TURN_BYTES_MAX + 1;
    expect_handoff(&w->at_claude, &post, BATON_E_record_too_large);
    post_done(&post);
    good(&post, w);
    post.record.key = NULL;
    post.record.key_len = 0;
    expect_handoff(&w->at_claude, &post, BATON_E_invalid_envelope);
    post.record.key = "";
    expect_handoff(&w->at_claude, &post, BATON_E_invalid_envelope);
    post.record.key_len = (size_t)1 << 40;
    expect_handoff(&w->at_claude, &post, BATON_E_invalid_envelope);
    post_done(&post);
}

static void x19_stored_turns_are_judged_again(void **state)
{
    struct world *w = *state;
    struct post post;
    struct receipt receipt;
    good(&post, w);
    post_pass(&post, w->claude, STATEMENT);
    char *passes[] = {post.texts[1]};
    assert_int_equal(receipt_stored(&w->at_codex, post.key, post.value, post.record.value_len,
                                    post.texts[0], passes, 1, &receipt),
                     BATON_OK);
    assert_int_equal(receipt.turn->role, ROLE_reviewer);
    receipt_done(&receipt);
    /* a payload changed in the store */
    char *at = strstr(post.value, "hello");
    *at = 'H';
    assert_int_equal(receipt_stored(&w->at_codex, post.key, post.value, post.record.value_len,
                                    post.texts[0], passes, 1, &receipt),
                     BATON_E_bad_signature);
    receipt_done(&receipt);
    *at = 'h';
    /* a role changed in the store */
    char *role = strstr(post.value, "reviewer");
    memcpy(role, "arbiter\"", 8);
    role[8] = ' ';
    assert_int_equal(receipt_stored(&w->at_codex, post.key, post.value, post.record.value_len,
                                    post.texts[0], passes, 1, &receipt),
                     BATON_E_bad_signature);
    receipt_done(&receipt);
    memcpy(role, "reviewer\"", 9);
    /* a chain, signature or id changed in the store */
    assert_int_equal(receipt_stored(&w->at_codex, post.key, post.value, post.record.value_len,
                                    post.texts[0], NULL, 0, &receipt),
                     BATON_E_wrong_service);
    receipt_done(&receipt);
    assert_int_equal(receipt_stored(&w->at_codex, post.key, post.value, post.record.value_len, NULL,
                                    passes, 1, &receipt),
                     BATON_E_bad_signature);
    receipt_done(&receipt);
    assert_int_equal(receipt_stored(&w->at_codex, "00000000000000000000000000000000", post.value,
                                    post.record.value_len, post.texts[0], passes, 1, &receipt),
                     BATON_E_bad_signature);
    receipt_done(&receipt);
    /* no time: what was taken in does not expire */
    post_done(&post);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        T(x5_another_role_under_the_same_id),
        T(x6_origin_without_the_right),
        T(x7_a_service_signs_a_birth),
        T(x8_the_name_or_id_of_another_origin),
        T(x9_other_content_under_the_same_id),
        T(x10_copied_to_another_service),
        T(x11_copied_to_another_partition),
        T(x12_sent_again_later),
        T(x13_signed_in_the_future),
        T(x18_roles_that_are_none),
        T(c03_c20_empty_and_null),
        T(x19_stored_turns_are_judged_again),
    };
#undef T
    return cmocka_run_group_tests_name("receipt: turn", tests, NULL, NULL);
}
