/* On receipt: each attack of RECORD.md section 6 that can be shown on one record is refused. */
#include "fixture.h"

#define STATEMENT "1 2 claude codex-review 1 0 0 auth 2026-11-29T14:20:44.020Z"
#define COSTS "2 2 claude codex-review 1 0 0 auth 2026-11-29T14:20:44.020Z 289"
#define DAY_MS (24LL * 3600 * 1000)

struct world {
    struct box box;
    struct trust *trust;
    struct signer *coordinator;
    struct signer *claude;
    struct signer *codex;
    struct signer *lint;
    struct signer *alice;
    struct signer *ci;
    struct signer *stranger;
    struct receiver at_claude;
    struct receiver at_codex;
    struct receiver at_lint;
};

static int open_world(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    box_fleet(&w->box);
    w->trust = load_trust(&w->box);
    w->coordinator = load_signer(&w->box, "coordinator");
    w->claude = load_signer(&w->box, "claude");
    w->codex = load_signer(&w->box, "codex-review");
    w->lint = load_signer(&w->box, "lint");
    w->alice = load_signer(&w->box, "alice");
    w->ci = load_signer(&w->box, "ci");
    w->stranger = load_signer(&w->box, "stranger");
    w->at_claude = receiver_of(w->trust, "claude");
    w->at_codex = receiver_of(w->trust, "codex-review");
    w->at_lint = receiver_of(w->trust, "lint");
    *state = w;
    return 0;
}

static int close_world(void **state)
{
    struct world *w = *state;
    signer_free(w->coordinator);
    signer_free(w->claude);
    signer_free(w->codex);
    signer_free(w->lint);
    signer_free(w->alice);
    signer_free(w->ci);
    signer_free(w->stranger);
    trust_free(w->trust);
    box_close(&w->box);
    free(w);
    return 0;
}

/* The turn of a draft, signed by its origin, on its partition. */
static struct post post_draft(const struct turn_draft *draft, const struct signer *signer)
{
    struct post post;
    struct turn *turn = make_turn(draft);
    post_value(&post, turn->id.s, turn->bytes, turn->len);
    post_sign(&post, signer, FLEET, PROOF_turn);
    turn_free(turn);
    return post;
}

/* A post is moved by the return above: its pointers must lead to where it is now. */
static void settle_post(struct post *post)
{
    post->record.key = post->key;
    post->record.headers = post->headers;
    for (size_t i = 0; i < post->record.n_headers; i++) {
        post->headers[i].value = post->texts[i];
    }
}

static struct post *good(struct post *post, const struct world *w)
{
    struct turn_draft draft = example_draft();
    *post = post_draft(&draft, w->coordinator);
    settle_post(post);
    return post;
}

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

/* ---- control records ---- */

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

/* ---- proof: off ---- */

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
        T(x1_each_byte_of_a_pass_flipped),
        T(x1_signature_of_another_record),
        T(x2_the_header_is_exact),
        T(x2_unknown_headers_of_ours),
        T(headers_are_counted_before_they_are_read),
        T(information_in_headers_is_kept_or_dropped),
        T(x3_untrusted_key_then_trusted),
        T(x3_revoked_key),
        T(x4_other_fleet_other_class),
        T(x5_another_role_under_the_same_id),
        T(x6_origin_without_the_right),
        T(x7_a_service_signs_a_birth),
        T(x8_the_name_or_id_of_another_origin),
        T(x9_other_content_under_the_same_id),
        T(x10_copied_to_another_service),
        T(x11_copied_to_another_partition),
        T(x12_sent_again_later),
        T(x13_signed_in_the_future),
        T(time_of_a_pass_counts_from_the_pass),
        T(x14_passes_need_the_right),
        T(x15_chains),
        T(x15_a_forged_hop_in_the_middle),
        T(x15_a_pass_of_another_turn),
        T(x15_a_loop),
        T(x16_costs_never_fall),
        T(x16_e19_counters_in_a_pass),
        T(x17_an_unproven_record_carries_nothing),
        T(x18_roles_that_are_none),
        T(the_proof_comes_before_the_parser),
        T(c03_c20_empty_and_null),
        T(x19_stored_turns_are_judged_again),
        T(x21_who_may_cancel),
        T(x21_who_may_cancel_this_turn),
        T(x21_who_may_replay_and_pause),
        T(x23_only_the_service_itself_reports),
        T(control_keys_and_partitions),
        T(control_signed_as_something_else),
        T(x29_off_and_required_side_by_side),
        T(off_keeps_signatures_and_checks_all_else),
    };
#undef T
    return cmocka_run_group_tests_name("on receipt", tests, NULL, NULL);
}
