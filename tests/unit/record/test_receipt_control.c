/* On receipt of control records: who may ask the owner of a turn for what (RECORD.md section 6). */
#include "receipt_world.h"

#define STATEMENT "1 2 claude codex-review 1 0 0 auth 2026-11-29T14:20:44.020Z"
#define DAY_MS (24LL * 3600 * 1000)

#define TURN "a97714f129ea975fdcb2f1a8ed9d4087"

static void expect_control_by(const struct receiver *receiver, const struct signer *signer,
                              const struct control *control, const char *key, int32_t partition,
                              baton_code code)
{
    struct buf value = BUF_INIT;
    struct post post;
    control_encode(control, &value);
    post_value(&post, key, value.data, value.len);
    if (partition >= 0) {
        post.record.partition = partition;
    }
    if (signer != NULL) {
        post_sign(&post, signer, FLEET, PROOF_control);
    }
    expect_control(receiver, &post, code);
    buf_done(&value);
    post_done(&post);
}

static struct control control_of(enum control_kind kind)
{
    struct control c;
    memset(&c, 0, sizeof(c));
    c.kind = kind;
    c.id = plain_id_of("c-1");
    if (control_service_key(kind) == NULL) {
        c.turn_id = turn_id_of(TURN);
    }
    c.at.v = EXAMPLE_MS;
    c.attempt = 1;
    c.boot = boot_id_new();
    c.failed = true;
    c.class = FAILURE_timeout;
    return c;
}

static void x21_who_may_cancel(void **state)
{
    struct world *w = *state;
    struct control c = control_of(CONTROL_cancel);
    expect_control_by(&w->at_claude, NULL, &c, TURN, -1, BATON_E_bad_signature);
    expect_control_by(&w->at_claude, w->stranger, &c, TURN, -1, BATON_E_unknown_key);
    expect_control_by(&w->at_claude, w->claude, &c, TURN, -1, BATON_E_not_permitted);
    expect_control_by(&w->at_claude, w->codex, &c, TURN, -1, BATON_E_not_permitted);
    expect_control_by(&w->at_claude, w->coordinator, &c, TURN, -1, BATON_OK);
    expect_control_by(&w->at_claude, w->ci, &c, TURN, -1, BATON_OK);
}

/* Which turn it is decides: its origin, who operates its first service, or this one. */
static void x21_who_may_cancel_this_turn(void **state)
{
    struct world *w = *state;
    struct receipt receipt;
    memset(&receipt, 0, sizeof(receipt));
    receipt.signer = trust_principal_find(w->trust, "alice"); /* operates codex-review */
    assert_true(receipt_may_cancel(&w->at_claude, &receipt, "alice", "claude"));
    assert_false(receipt_may_cancel(&w->at_claude, &receipt, "coordinator", "claude"));
    assert_true(receipt_may_cancel(&w->at_codex, &receipt, "coordinator", "claude"));
    assert_true(receipt_may_cancel(&w->at_lint, &receipt, "coordinator", "codex-review"));
    receipt.signer = trust_principal_find(w->trust, "claude"); /* a service: never */
    assert_false(receipt_may_cancel(&w->at_claude, &receipt, "claude", "claude"));
    receipt.signer = NULL;
    assert_false(receipt_may_cancel(&w->at_claude, &receipt, "alice", "claude"));
    struct receiver off = w->at_claude;
    off.proof_required = false;
    assert_true(receipt_may_cancel(&off, &receipt, "alice", "claude"));
}

static void x21_who_may_replay_and_pause(void **state)
{
    struct world *w = *state;
    static const enum control_kind kinds[] = {CONTROL_replay, CONTROL_pause, CONTROL_resume,
                                              CONTROL_clear};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        struct control c = control_of(kinds[i]);
        const char *key = kinds[i] == CONTROL_replay  ? TURN
                          : kinds[i] == CONTROL_clear ? "~rest"
                                                      : "~pause";
        expect_control_by(&w->at_claude, w->ci, &c, key, -1, BATON_OK);
        expect_control_by(&w->at_claude, w->alice, &c, key, -1, BATON_E_not_permitted);
        expect_control_by(&w->at_codex, w->alice, &c, key, -1, BATON_OK);
        expect_control_by(&w->at_claude, w->claude, &c, key, -1, BATON_E_not_permitted);
        expect_control_by(&w->at_claude, w->coordinator, &c, key, -1, BATON_E_not_permitted);
        expect_control_by(&w->at_claude, NULL, &c, key, -1, BATON_E_bad_signature);
    }
}

static void x23_only_the_service_itself_reports(void **state)
{
    struct world *w = *state;
    static const enum control_kind kinds[] = {CONTROL_renew, CONTROL_report};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        struct control c = control_of(kinds[i]);
        expect_control_by(&w->at_claude, w->claude, &c, TURN, -1, BATON_OK);
        expect_control_by(&w->at_codex, w->claude, &c, TURN, -1, BATON_E_not_permitted);
        expect_control_by(&w->at_claude, w->ci, &c, TURN, -1, BATON_E_not_permitted);
        expect_control_by(&w->at_claude, w->coordinator, &c, TURN, -1, BATON_E_not_permitted);
    }
}

static void control_keys_and_partitions(void **state)
{
    struct world *w = *state;
    struct control cancel = control_of(CONTROL_cancel);
    struct control pause = control_of(CONTROL_pause);
    expect_control_by(&w->at_claude, w->ci, &cancel, "00000000000000000000000000000000", -1,
                      BATON_E_invalid_envelope);
    expect_control_by(&w->at_claude, w->ci, &cancel, "~pause", -1, BATON_E_invalid_envelope);
    expect_control_by(&w->at_claude, w->ci, &pause, TURN, -1, BATON_E_invalid_envelope);
    expect_control_by(&w->at_claude, w->ci, &pause, "~other", -1, BATON_E_invalid_envelope);
    expect_control_by(&w->at_claude, w->ci, &pause, "~rest", -1, BATON_E_invalid_envelope);
    for (int32_t p = 0; p < PARTITIONS; p++) {
        expect_control_by(&w->at_claude, w->ci, &pause, "~pause", p, BATON_OK);
        expect_control_by(&w->at_claude, w->ci, &cancel, TURN, p,
                          p == 1 ? BATON_OK : BATON_E_wrong_partition);
    }
}

static void control_signed_as_something_else(void **state)
{
    struct world *w = *state;
    struct control c = control_of(CONTROL_cancel);
    struct buf value = BUF_INIT;
    struct post post;
    control_encode(&c, &value);
    post_value(&post, TURN, value.data, value.len);
    post_sign(&post, w->ci, FLEET, PROOF_turn);
    expect_control(&w->at_claude, &post, BATON_E_bad_signature);
    post.record.n_headers = 0;
    post_sign(&post, w->ci, "staging", PROOF_control);
    expect_control(&w->at_claude, &post, BATON_E_bad_signature);
    post.record.n_headers = 0;
    post_sign(&post, w->ci, FLEET, PROOF_control);
    expect_control(&w->at_claude, &post, BATON_OK);
    post_pass(&post, w->claude, STATEMENT);
    expect_control(&w->at_claude, &post, BATON_E_schema_unsupported);
    /* a pause from the future would outlive every resume */
    post.record.n_headers = 1;
    post.record.at.v = EXAMPLE_MS - DAY_MS - 1;
    expect_control(&w->at_claude, &post, BATON_E_handoff_expired);
    buf_done(&value);
    post_done(&post);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        T(x21_who_may_cancel),           T(x21_who_may_cancel_this_turn),
        T(x21_who_may_replay_and_pause), T(x23_only_the_service_itself_reports),
        T(control_keys_and_partitions),  T(control_signed_as_something_else),
    };
#undef T
    return cmocka_run_group_tests_name("receipt: control", tests, NULL, NULL);
}
