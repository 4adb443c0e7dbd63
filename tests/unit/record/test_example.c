/* The worked example of the record: every byte that is said about it, made and verified. */
#include "fixture.h"

#define ID "a97714f129ea975fdcb2f1a8ed9d4087"
#define SIG                                                                                        \
    "1 06e3fd8fda29bb60 "                                                                          \
    "ec8f7b7c3b18f8d960f027c5f4b119f718608b131d0040994d62b1efccecb185ec95718d99661933527285328310" \
    "f7"                                                                                           \
    "9e57ec2852a3539b4682d0b82a232c6008"
#define STATEMENT "1 2 claude codex-review 1 0 0 auth 2026-11-29T14:20:44.020Z"
#define PASS                                                                                       \
    STATEMENT                                                                                      \
    " deb2ded39dc26fce "                                                                           \
    "1ea462bf63f7b3a00672b89918723af650c165675525ab18fd2c929a474c438b34d3ed0f6aa81677300ac2cd1bf5" \
    "e5"                                                                                           \
    "df553eb03edf364875258466795220c50d"
#define VALUE                                                                                      \
    "{\"version\":1,\"turn_id\":\"" ID "\",\"origin\":\"coordinator\",\"service\":\"claude\","     \
    "\"role\":\"reviewer\",\"task_id\":\"t-41\",\"task_rev\":7,\"run_id\":\"r-9\",\"epoch\":1,"    \
    "\"intent\":\"review\",\"key\":\"r-9.1.2\",\"parent\":\"\","                                   \
    "\"created_at\":\"2026-11-29T14:20:43.120Z\",\"expires_at\":\"2026-12-06T14:20:43.120Z\","     \
    "\"summary\":\"Review fix.diff\",\"data\":{},"                                                 \
    "\"payload\":{\"media_type\":\"text/plain\",\"text\":\"hello\"}}"
#define DIGEST "e49971cb84165a932b50f4066edab16fc855f4ddf1b4e49daff933b4c819a917"

static void example_value_is_written_as_shown(void **state)
{
    (void)state;
    struct turn_draft draft = example_draft();
    struct turn *turn = make_turn(&draft);
    char hex[65];
    assert_int_equal(turn->len, 390);
    assert_string_equal(turn->bytes, VALUE);
    assert_string_equal(turn->id.s, ID);
    hex_encode(turn->digest.b, DIGEST_LEN, hex);
    assert_string_equal(hex, DIGEST);
    turn_free(turn);
}

static void example_signed_bytes(void **state)
{
    (void)state;
    struct digest digest = digest_of(VALUE, strlen(VALUE));
    uint8_t message[PROOF_MESSAGE_MAX];
    char hex[2 * PROOF_MESSAGE_MAX + 1];
    size_t n = proof_message(FLEET, PROOF_turn, ID, 32, NULL, &digest, message);
    assert_int_equal(n, 102);
    hex_encode(message, n, hex);
    assert_string_equal(hex,
                        "4241544f4e2d50524f4f462d3100"
                        "0000000470726f64"
                        "000000047475726e"
                        "000000206139373731346631323965613937356664636232663161386564396434303837"
                        "00000000" DIGEST);
    n = proof_message(FLEET, PROOF_pass, ID, 32, STATEMENT, &digest, message);
    assert_int_equal(n, 161);
}

static void example_signatures_are_made_as_shown(void **state)
{
    (void)state;
    struct box box;
    struct digest digest = digest_of(VALUE, strlen(VALUE));
    struct proof_text proof;
    struct baton_error err;
    char *text = NULL;
    box_fleet(&box);
    struct signer *coordinator = load_signer(&box, "coordinator");
    struct signer *claude = load_signer(&box, "claude");
    assert_string_equal(signer_key_id(coordinator).s, "06e3fd8fda29bb60");
    assert_string_equal(signer_key_id(claude).s, "deb2ded39dc26fce");
    assert_int_equal(
        signer_sign(coordinator, FLEET, PROOF_turn, ID, 32, NULL, &digest, &proof, &err), BATON_OK);
    assert_string_equal(proof.s, SIG);
    struct pass pass = {.attempt = 2,
                        .from = service_id_of("claude"),
                        .to = service_id_of("codex-review"),
                        .failures = 1,
                        .class = FAILURE_auth,
                        .at = {EXAMPLE_MS + 900}};
    assert_int_equal(pass_make(&pass, claude, FLEET, ID, &digest, &text, &err), BATON_OK);
    assert_string_equal(text, PASS);
    free(text);
    signer_free(coordinator);
    signer_free(claude);
    box_close(&box);
}

static void example_is_taken_in(void **state)
{
    (void)state;
    struct box box;
    struct post post;
    struct receipt receipt;
    box_fleet(&box);
    struct trust *trust = load_trust(&box);
    struct receiver receiver = receiver_of(trust, "codex-review");
    post_value(&post, ID, VALUE, strlen(VALUE));
    assert_int_equal(post.record.partition, 1);
    post_header(&post, "baton-sig", SIG);
    post_header(&post, "baton-pass", PASS);
    assert_int_equal(receipt_handoff(&receiver, &post.record, &receipt), BATON_OK);
    assert_true(receipt.proven);
    assert_int_equal(receipt.turn->role, ROLE_reviewer);
    assert_int_equal(receipt.attempt, 2);
    assert_int_equal(receipt.failures, 1);
    assert_int_equal(receipt.losses, 0);
    assert_int_equal(receipt.replays, 0);
    assert_int_equal(receipt.n_passes, 1);
    assert_string_equal(receipt.passes[0].text, PASS);
    assert_string_equal(receipt.signature, SIG);
    assert_string_equal(trust_principal_name(receipt.signer), "coordinator");
    /* And again from the store, with what the receipt has kept. */
    struct receipt stored;
    char *passes[] = {receipt.passes[0].text};
    assert_int_equal(receipt_stored(&receiver, ID, receipt.turn->bytes, receipt.turn->len,
                                    receipt.signature, passes, 1, &stored),
                     BATON_OK);
    assert_int_equal(stored.turn->role, ROLE_reviewer);
    assert_int_equal(stored.attempt, 2);
    receipt_done(&stored);
    receipt_done(&receipt);
    post_done(&post);
    trust_free(trust);
    box_close(&box);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(example_value_is_written_as_shown),
        cmocka_unit_test(example_signed_bytes),
        cmocka_unit_test(example_signatures_are_made_as_shown),
        cmocka_unit_test(example_is_taken_in),
    };
    return cmocka_run_group_tests_name("the worked example", tests, NULL, NULL);
}
