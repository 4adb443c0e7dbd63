/* On receipt of a handoff: the proof over its exact bytes, its headers and its key (RECORD.md section 6). */
#include "receipt_world.h"

#define STATEMENT "1 2 claude codex-review 1 0 0 auth 2026-11-29T14:20:44.020Z"
#define DAY_MS (24LL * 3600 * 1000)

static void a_good_handoff_is_taken_in(void **state)
{
    struct world *w = *state;
    struct post post;
    struct receipt receipt;
    good(&post, w);
    post_header(&post, "baton-wait", "claimed");
    post_header(&post, "traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    post_header(&post, "baton-attempts", "[]");
    post_header(&post, "foreign", "anything");
    assert_int_equal(receipt_handoff(&w->at_claude, &post.record, &receipt), BATON_OK);
    assert_int_equal(receipt.attempt, 1);
    assert_int_equal(receipt.failures + receipt.losses + receipt.replays, 0);
    assert_true(receipt.wait_claimed);
    assert_non_null(receipt.traceparent);
    assert_string_equal(receipt.history, "[]");
    assert_string_equal(receipt.key_id.s, "06e3fd8fda29bb60");
    receipt_done(&receipt);
    post_done(&post);
}

static void x1_each_byte_of_the_value_flipped(void **state)
{
    struct world *w = *state;
    struct post post;
    good(&post, w);
    for (size_t i = 0; i < post.record.value_len; i++) {
        post.value[i] ^= 1;
        expect_handoff(&w->at_claude, &post, BATON_E_bad_signature);
        post.value[i] ^= 1;
    }
    expect_handoff(&w->at_claude, &post, BATON_OK);
    post_done(&post);
}

static void x1_each_byte_of_the_key_flipped(void **state)
{
    struct world *w = *state;
    struct post post;
    good(&post, w);
    for (size_t i = 0; i < post.record.key_len; i++) {
        post.key[i] ^= 1;
        expect_handoff(&w->at_claude, &post, BATON_E_bad_signature);
        post.key[i] ^= 1;
    }
    post_done(&post);
}

/* A flipped key id is another key; every other byte breaks the proof itself. */
static void x1_each_byte_of_the_signature_flipped(void **state)
{
    struct world *w = *state;
    struct post post;
    good(&post, w);
    for (size_t i = 0; i < strlen(post.texts[0]); i++) {
        char before = post.texts[0][i];
        bool in_id = i >= 2 && i < 18;
        post.texts[0][i] = before == 'a' ? 'b' : 'a';
        if (i == 0 || i == 1 || i == 18) {
            post.texts[0][i] = (char)(before ^ 1);
        }
        expect_handoff(&w->at_claude, &post, in_id ? BATON_E_unknown_key : BATON_E_bad_signature);
        post.texts[0][i] = before;
    }
    expect_handoff(&w->at_claude, &post, BATON_OK);
    post_done(&post);
}

static void x1_signature_of_another_record(void **state)
{
    struct world *w = *state;
    struct post post;
    struct post other;
    struct turn_draft draft = example_draft();
    draft.key = "r-9.1.3";
    good(&post, w);
    other = post_draft(&draft, w->coordinator);
    settle_post(&other);
    memcpy(post.texts[0], other.texts[0], sizeof(post.texts[0]));
    expect_handoff(&w->at_claude, &post, BATON_E_bad_signature);
    post_done(&post);
    post_done(&other);
}

static void x2_the_header_is_exact(void **state)
{
    struct world *w = *state;
    struct post post;
    char proof[160];
    good(&post, w);
    snprintf(proof, sizeof(proof), "%.150s", post.texts[0]);
    /* none */
    post.record.n_headers = 0;
    expect_handoff(&w->at_claude, &post, BATON_E_bad_signature);
    /* two, also the same twice */
    post_header(&post, "baton-sig", proof);
    post_header(&post, "baton-sig", proof);
    expect_handoff(&w->at_claude, &post, BATON_E_bad_signature);
    post.record.n_headers = 1;
    expect_handoff(&w->at_claude, &post, BATON_OK);
    /* another case of the name: no baton-sig */
    post.headers[0].name = "Baton-Sig";
    expect_handoff(&w->at_claude, &post, BATON_E_bad_signature);
    post.headers[0].name = "baton-sig";
    /* upper-case hex */
    char *at = post.texts[0] + 30;
    at += strcspn(at, "abcdef");
    *at = (char)(*at - 32);
    expect_handoff(&w->at_claude, &post, BATON_E_bad_signature);
    /* another length, a NUL, a null value */
    snprintf(post.texts[0], sizeof(post.texts[0]), "%s0", proof);
    post.headers[0].value_len = strlen(post.texts[0]);
    expect_handoff(&w->at_claude, &post, BATON_E_bad_signature);
    snprintf(post.texts[0], sizeof(post.texts[0]), "%s", proof);
    post.headers[0].value_len = strlen(proof) - 1;
    expect_handoff(&w->at_claude, &post, BATON_E_bad_signature);
    post.headers[0].value_len = strlen(proof);
    post.headers[0].value = NULL;
    expect_handoff(&w->at_claude, &post, BATON_E_bad_signature);
    post_done(&post);
}

static void x2_unknown_headers_of_ours(void **state)
{
    struct world *w = *state;
    static const char *const names[] = {"baton-x",   "baton-seal", "baton-",
                                        "Baton-Sig", "BATON-PASS", "baton-role"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct post post;
        good(&post, w);
        post_header(&post, names[i], "x");
        expect_handoff(&w->at_claude, &post, BATON_E_schema_unsupported);
        post_done(&post);
    }
}

static void headers_are_counted_before_they_are_read(void **state)
{
    struct world *w = *state;
    struct post post;
    good(&post, w);
    while (post.record.n_headers < 33) {
        post_header(&post, "foreign", "x");
    }
    expect_handoff(&w->at_claude, &post, BATON_E_invalid_envelope);
    post.record.n_headers = 32;
    expect_handoff(&w->at_claude, &post, BATON_OK);
    /* 10,000 of them, and ones of absurd size, cost nothing: only numbers are looked at. */
    post.record.n_headers = 10000;
    expect_handoff(&w->at_claude, &post, BATON_E_invalid_envelope);
    post.record.n_headers = 2;
    post.headers[1].value_len = (size_t)1 << 40;
    expect_handoff(&w->at_claude, &post, BATON_E_invalid_envelope);
    post_done(&post);
}

static void information_in_headers_is_kept_or_dropped(void **state)
{
    struct world *w = *state;
    static const char *const bad[] = {"", "00",
                                      "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                                      "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                                      "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\n"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct post post;
        struct receipt receipt;
        good(&post, w);
        post_header(&post, "traceparent", bad[i]);
        post_header(&post, "baton-wait", "forever");
        post_header(&post, "baton-code", "bad_signature");
        post_header(&post, "baton-class", "invalid");
        assert_int_equal(receipt_handoff(&w->at_claude, &post.record, &receipt), BATON_OK);
        assert_null(receipt.traceparent);
        assert_false(receipt.wait_claimed);
        receipt_done(&receipt);
        post_done(&post);
    }
}

static void x3_untrusted_key_then_trusted(void **state)
{
    struct world *w = *state;
    struct post post;
    struct turn_draft draft = example_draft();
    draft.origin = "stranger";
    post = post_draft(&draft, w->stranger);
    settle_post(&post);
    expect_handoff(&w->at_claude, &post, BATON_E_unknown_key);
    write_file(w->box.trust, "stranger.yaml", "kind: program\ncreate: {claude: [reviewer]}\n",
               0644);
    put_public(&w->box, "stranger", "stranger");
    assert_true(trust_changed(w->trust));
    struct trust *again = load_trust(&w->box);
    struct receiver receiver = receiver_of(again, "claude");
    expect_handoff(&receiver, &post, BATON_OK);
    trust_free(again);
    post_done(&post);
}

static void x3_revoked_key(void **state)
{
    struct world *w = *state;
    struct post post;
    char name[64];
    good(&post, w);
    snprintf(name, sizeof(name), "%s.revoked", signer_key_id(w->coordinator).s);
    write_file(w->box.trust, name, "", 0644);
    struct trust *again = load_trust(&w->box);
    struct receiver receiver = receiver_of(again, "claude");
    expect_handoff(&receiver, &post, BATON_E_unknown_key);
    /* A turn that was taken in before is found out at its next attempt. */
    struct receipt receipt;
    assert_int_equal(receipt_stored(&receiver, post.key, post.value, post.record.value_len,
                                    post.texts[0], NULL, 0, &receipt),
                     BATON_E_unknown_key);
    receipt_done(&receipt);
    trust_free(again);
    post_done(&post);
}

static void x4_other_fleet_other_class(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *fleet;
        enum proof_class class;
    } rows[] = {{"staging", PROOF_turn}, {"", PROOF_turn},       {FLEET, PROOF_control},
                {FLEET, PROOF_pass},     {FLEET, PROOF_request}, {FLEET, PROOF_outcome}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct post post;
        good(&post, w);
        post.record.n_headers = 0;
        post_sign(&post, w->coordinator, rows[i].fleet, rows[i].class);
        expect_handoff(&w->at_claude, &post, BATON_E_bad_signature);
        post_done(&post);
    }
}

/* A forged record that names a running turn gives the caller nothing that it could act on. */
static void x17_an_unproven_record_carries_nothing(void **state)
{
    struct world *w = *state;
    struct post post;
    struct receipt receipt;
    good(&post, w);
    post.value[post.record.value_len - 3] ^= 1;
    assert_int_equal(receipt_handoff(&w->at_claude, &post.record, &receipt), BATON_E_bad_signature);
    assert_false(receipt.proven);
    assert_null(receipt.turn);
    assert_null(receipt.signature);
    assert_int_equal(receipt.n_passes, 0);
    receipt_done(&receipt);
    post_done(&post);
}

/* The proof comes before the parser: bytes that are no JSON are not even looked at unsigned. */
static void the_proof_comes_before_the_parser(void **state)
{
    struct world *w = *state;
    struct post post;
    post_value(&post, "a97714f129ea975fdcb2f1a8ed9d4087", "{\"", 2);
    expect_handoff(&w->at_claude, &post, BATON_E_bad_signature);
    post_sign(&post, w->coordinator, FLEET, PROOF_turn);
    expect_handoff(&w->at_claude, &post, BATON_E_invalid_envelope);
    post_done(&post);
}

static void x29_off_and_required_side_by_side(void **state)
{
    struct world *w = *state;
    struct post post;
    struct receipt receipt;
    struct receiver off = w->at_claude;
    off.proof_required = false;
    good(&post, w);
    post.record.n_headers = 0;
    expect_handoff(&w->at_claude, &post, BATON_E_bad_signature);
    assert_int_equal(receipt_handoff(&off, &post.record, &receipt), BATON_OK);
    assert_true(receipt.proven);
    assert_null(receipt.signature);
    assert_null(receipt.signer);
    assert_string_equal(receipt.key_id.s, "");
    receipt_done(&receipt);
    off.trust = NULL;
    assert_int_equal(receipt_handoff(&off, &post.record, &receipt), BATON_OK);
    receipt_done(&receipt);
    post_done(&post);
}

static void off_keeps_signatures_and_checks_all_else(void **state)
{
    struct world *w = *state;
    struct post post;
    struct receipt receipt;
    struct receiver off = w->at_codex;
    off.proof_required = false;
    good(&post, w);
    post_header(&post, "baton-pass", STATEMENT);
    assert_int_equal(receipt_handoff(&off, &post.record, &receipt), BATON_OK);
    assert_string_equal(receipt.signature, post.texts[0]);
    assert_non_null(receipt.signer);
    assert_int_equal(receipt.attempt, 2);
    assert_string_equal(receipt.passes[0].text, STATEMENT);
    receipt_done(&receipt);
    expect_handoff(&w->at_codex, &post, BATON_E_bad_signature);
    /* address, partition, time and id hold without proofs, too */
    off.service = "lint";
    expect_handoff(&off, &post, BATON_E_wrong_service);
    off.service = "codex-review";
    post.record.partition = 0;
    expect_handoff(&off, &post, BATON_E_wrong_partition);
    post.record.partition = 1;
    post.record.at.v += 8 * DAY_MS;
    expect_handoff(&off, &post, BATON_E_handoff_expired);
    post.record.at.v = EXAMPLE_MS;
    memcpy(strstr(post.value, "t-41"), "t-42", 4);
    expect_handoff(&off, &post, BATON_E_invalid_envelope);
    post_done(&post);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        T(a_good_handoff_is_taken_in),
        T(x1_each_byte_of_the_value_flipped),
        T(x1_each_byte_of_the_key_flipped),
        T(x1_each_byte_of_the_signature_flipped),
        T(x1_signature_of_another_record),
        T(x2_the_header_is_exact),
        T(x2_unknown_headers_of_ours),
        T(headers_are_counted_before_they_are_read),
        T(information_in_headers_is_kept_or_dropped),
        T(x3_untrusted_key_then_trusted),
        T(x3_revoked_key),
        T(x4_other_fleet_other_class),
        T(x17_an_unproven_record_carries_nothing),
        T(the_proof_comes_before_the_parser),
        T(x29_off_and_required_side_by_side),
        T(off_keeps_signatures_and_checks_all_else),
    };
#undef T
    return cmocka_run_group_tests_name("receipt: proof", tests, NULL, NULL);
}
