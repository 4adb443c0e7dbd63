/* On receipt of requests and outcomes: who may ask for what, and whose word counts for a run. */
#include "receipt_world.h"

#include "common/record/outcome.h"
#include "common/record/request.h"

#define DAY_MS (24LL * 3600 * 1000)
#define TURN "a97714f129ea975fdcb2f1a8ed9d4087"
#define STATEMENT "1 2 claude codex-review 1 0 0 auth 2026-11-29T14:20:44.020Z"

static int open_run_world(void **state)
{
    struct world *w = make_world();
    /* a program that may ask for one kind */
    write_file(w->box.trust, "ci.yaml",
               "kind: program\noperate: [claude]\ncreate: {claude: [owner]}\nrequest: [cancel]\n",
               0644);
    return load_world(w, state);
}

/* A value under a key, as a class of record; signer NULL: unsigned. */
static void post_of(struct post *post, const char *key, const struct buf *value,
                    const struct signer *signer, enum proof_class class)
{
    assert_true(buf_ok(value));
    post_value(post, key, value->data, value->len);
    if (signer != NULL) {
        post_sign(post, signer, FLEET, class);
    }
}

static struct request start_of(const char *requester)
{
    static char summary[] = "Fix it";
    struct request r;
    memset(&r, 0, sizeof(r));
    r.kind = REQUEST_start;
    r.id = plain_id_of("q-1");
    r.run_id = request_run_id(FLEET, requester, "k-1");
    r.at.v = EXAMPLE_MS;
    r.workflow = plain_id_of("paired-review");
    r.task_id = task_id_of("t-41");
    r.task_rev = 7;
    snprintf(r.key, sizeof(r.key), "k-1");
    r.summary = summary;
    return r;
}

static struct request request_of(enum request_kind kind)
{
    static char reason[] = "why";
    struct request r = start_of("alice");
    r.kind = kind;
    r.request_no = kind == REQUEST_start ? 0 : 1;
    snprintf(r.from, sizeof(r.from), "owner");
    snprintf(r.target, sizeof(r.target), "reviewer");
    r.reason = reason;
    return r;
}

static void expect_post(const struct receiver *here, const struct post *post,
                        enum proof_class class, baton_code code)
{
    struct receipt receipt;
    baton_code rc = class == PROOF_request ? receipt_request(here, &post->record, &receipt)
                                           : receipt_outcome(here, &post->record, &receipt);
    if (rc != code) {
        fail_msg("%s (%s) instead of %s", baton_code_word(rc), receipt.note, baton_code_word(code));
    }
    assert_int_equal(receipt.code, code);
    assert_true((receipt.request != NULL) == (code == BATON_OK && class == PROOF_request));
    assert_true((receipt.outcome != NULL) == (code == BATON_OK && class == PROOF_outcome));
    assert_true(code == BATON_OK ? receipt.proven : receipt.note[0] != '\0');
    receipt_done(&receipt);
}

static void expect_request(const struct receiver *here, const struct signer *signer,
                           const struct request *request, baton_code code)
{
    struct buf value = BUF_INIT;
    struct post post;
    request_encode(request, &value);
    post_of(&post, request->run_id.s, &value, signer, PROOF_request);
    expect_post(here, &post, PROOF_request, code);
    post_done(&post);
    buf_done(&value);
}

static void a_good_request_is_taken_in(void **state)
{
    struct world *w = *state;
    struct request r = start_of("alice");
    struct buf value = BUF_INIT;
    struct post post;
    struct receipt receipt;
    request_encode(&r, &value);
    post_of(&post, r.run_id.s, &value, w->alice, PROOF_request);
    post_header(&post, "traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    assert_int_equal(receipt_request(&w->at_coordinator, &post.record, &receipt), BATON_OK);
    assert_string_equal(receipt.request->run_id.s, r.run_id.s);
    assert_string_equal(receipt.request->workflow.s, "paired-review");
    assert_string_equal(trust_principal_name(receipt.signer), "alice");
    assert_string_equal(receipt.signature, post.texts[0]);
    assert_non_null(receipt.traceparent);
    assert_null(receipt.turn);
    assert_null(receipt.control);
    receipt_done(&receipt);
    post_done(&post);
    buf_done(&value);
}

static void x26_who_may_ask_for_what(void **state)
{
    struct world *w = *state;
    for (int kind = 0; kind < REQUEST_COUNT; kind++) {
        struct request r = request_of((enum request_kind)kind);
        expect_request(&w->at_coordinator, w->alice, &r, BATON_OK);
        expect_request(&w->at_coordinator, NULL, &r, BATON_E_bad_signature);
        expect_request(&w->at_coordinator, w->stranger, &r, BATON_E_unknown_key);
        if (kind != REQUEST_start) { /* that one has a run id of its own */
            expect_request(&w->at_coordinator, w->ci, &r,
                           kind == REQUEST_cancel ? BATON_OK : BATON_E_not_permitted);
            expect_request(&w->at_coordinator, w->claude, &r, BATON_E_not_permitted);
            expect_request(&w->at_coordinator, w->coordinator, &r, BATON_E_not_permitted);
        }
    }
    struct request mine = start_of("ci");
    expect_request(&w->at_coordinator, w->ci, &mine, BATON_E_not_permitted);
}

/* P-45: nobody can begin the run of another, or one under an id of his choice. */
static void p45_a_start_is_its_signers(void **state)
{
    struct world *w = *state;
    struct request r = start_of("ci");
    expect_request(&w->at_coordinator, w->alice, &r, BATON_E_invalid_envelope);
    r = start_of("alice");
    expect_request(&w->at_coordinator, w->coordinator, &r, BATON_E_invalid_envelope);
    r.key[0] = 'x';
    expect_request(&w->at_coordinator, w->alice, &r, BATON_E_invalid_envelope);
    r = start_of("alice");
    r.run_id = plain_id_of("r-9");
    expect_request(&w->at_coordinator, w->alice, &r, BATON_E_invalid_envelope);
    /* others name a run that is there */
    r = request_of(REQUEST_touch);
    r.run_id = plain_id_of("r-9");
    expect_request(&w->at_coordinator, w->alice, &r, BATON_OK);
}

static void requests_keys_partitions_classes(void **state)
{
    struct world *w = *state;
    struct request r = request_of(REQUEST_cancel);
    struct buf value = BUF_INIT;
    struct post post;
    request_encode(&r, &value);
    post_of(&post, "r-8", &value, w->alice, PROOF_request);
    expect_post(&w->at_coordinator, &post, PROOF_request, BATON_E_invalid_envelope);
    post_done(&post);
    post_of(&post, r.run_id.s, &value, w->alice, PROOF_request);
    const int32_t due = post.record.partition;
    for (int32_t p = 0; p < PARTITIONS; p++) {
        post.record.partition = p;
        expect_post(&w->at_coordinator, &post, PROOF_request,
                    p == due ? BATON_OK : BATON_E_wrong_partition);
    }
    post.record.partition = due;
    post_pass(&post, w->claude, STATEMENT);
    expect_post(&w->at_coordinator, &post, PROOF_request, BATON_E_schema_unsupported);
    post.record.n_headers = 0;
    post_sign(&post, w->alice, FLEET, PROOF_control);
    expect_post(&w->at_coordinator, &post, PROOF_request, BATON_E_bad_signature);
    post.record.n_headers = 0;
    post_sign(&post, w->alice, "staging", PROOF_request);
    expect_post(&w->at_coordinator, &post, PROOF_request, BATON_E_bad_signature);
    post.record.n_headers = 0;
    post_sign(&post, w->alice, FLEET, PROOF_request);
    post.value[post.record.value_len - 2] ^= 1;
    expect_post(&w->at_coordinator, &post, PROOF_request, BATON_E_bad_signature);
    post_done(&post);
    buf_done(&value);
}

/* A run that ended is forgotten after 14 days: a copy of its start must be too old by then. */
static void x26_a_request_sent_again_later(void **state)
{
    struct world *w = *state;
    struct request r = start_of("alice");
    struct buf value = BUF_INIT;
    struct post post;
    request_encode(&r, &value);
    post_of(&post, r.run_id.s, &value, w->alice, PROOF_request);
    post.record.at.v = EXAMPLE_MS + 7 * DAY_MS;
    expect_post(&w->at_coordinator, &post, PROOF_request, BATON_OK);
    post.record.at.v++;
    expect_post(&w->at_coordinator, &post, PROOF_request, BATON_E_handoff_expired);
    post.record.at.v = EXAMPLE_MS - DAY_MS;
    expect_post(&w->at_coordinator, &post, PROOF_request, BATON_OK);
    post.record.at.v--;
    expect_post(&w->at_coordinator, &post, PROOF_request, BATON_E_handoff_expired);
    post_done(&post);
    buf_done(&value);
}

/* ---- outcomes ---- */

static struct outcome outcome_about_turn(enum outcome_event event, const char *service,
                                         enum role role)
{
    struct outcome o;
    memset(&o, 0, sizeof(o));
    o.event = event;
    o.turn_id = turn_id_of(TURN);
    o.origin = plain_id_of("coordinator");
    o.born = service_id_of("claude");
    o.has_role = true;
    o.role = role;
    o.task_id = task_id_of("t-41");
    o.run_id = plain_id_of("r-9");
    o.epoch = 1;
    o.intent = plain_id_of("review");
    o.attempt = 1;
    o.service = service_id_of(service);
    o.at.v = EXAMPLE_MS;
    if (event == OUTCOME_answer) {
        o.answers_id = plain_id_of("c-1");
        snprintf(o.answers_kind, sizeof(o.answers_kind), "cancel");
    }
    return o;
}

/* By whom the coordinator speaks: no turn, or one that nobody knows. */
static struct outcome outcome_about(enum outcome_event event, const char *run_id,
                                    const char *turn_id)
{
    struct outcome o = outcome_about_turn(event, "claude", ROLE_owner);
    struct outcome bare;
    memset(&bare, 0, sizeof(bare));
    bare.event = event;
    bare.run_id = plain_id_of(run_id);
    if (turn_id[0] != '\0') {
        bare.turn_id = turn_id_of(turn_id);
    }
    bare.at = o.at;
    bare.answers_id = o.answers_id;
    memcpy(bare.answers_kind, o.answers_kind, sizeof(bare.answers_kind));
    bare.service = service_id_of(OUTCOME_COORDINATOR);
    return bare;
}

static void expect_outcome(const struct receiver *here, const struct signer *signer,
                           const struct outcome *outcome, const char *key, baton_code code)
{
    struct buf value = BUF_INIT;
    struct post post;
    outcome_encode(outcome, &value);
    post_of(&post, key, &value, signer, PROOF_outcome);
    expect_post(here, &post, PROOF_outcome, code);
    post_done(&post);
    buf_done(&value);
}

/* X24: each event of a turn counts by the word of the service that it names alone. */
static void x24_a_turn_by_the_word_of_its_service(void **state)
{
    struct world *w = *state;
    for (int event = 0; event < OUTCOME_EVENT_COUNT; event++) {
        if (event == OUTCOME_run_ended) {
            continue;
        }
        struct outcome o = outcome_about_turn((enum outcome_event)event, "claude", ROLE_reviewer);
        expect_outcome(&w->at_coordinator, w->claude, &o, "r-9", BATON_OK);
        expect_outcome(&w->at_coordinator, w->lint, &o, "r-9", BATON_E_not_permitted);
        expect_outcome(&w->at_coordinator, w->alice, &o, "r-9", BATON_E_not_permitted);
        expect_outcome(&w->at_coordinator, w->coordinator, &o, "r-9", BATON_E_not_permitted);
        expect_outcome(&w->at_coordinator, w->stranger, &o, "r-9", BATON_E_unknown_key);
        expect_outcome(&w->at_coordinator, NULL, &o, "r-9", BATON_E_bad_signature);
        /* a person who calls himself a service */
        o.service = service_id_of("alice");
        expect_outcome(&w->at_coordinator, w->alice, &o, "r-9", BATON_E_not_permitted);
    }
    struct outcome o = outcome_about_turn(OUTCOME_completed, OUTCOME_COORDINATOR, ROLE_reviewer);
    expect_outcome(&w->at_coordinator, w->coordinator, &o, "r-9", BATON_E_invalid_envelope);
}

/* X24: who may not serve a role has no result of it, and may say that the turn is parked. */
static void x24_work_is_told_by_who_serves_the_role(void **state)
{
    struct world *w = *state;
    static char result[] = "{\"verdict\":\"proceed\"}";
    static const struct {
        enum outcome_event event;
        bool has_state;
        enum turn_state state;
        baton_code code;
    } rows[] = {
        {OUTCOME_claimed, true, TURN_running, BATON_E_not_permitted},
        {OUTCOME_claimed, false, TURN_queued, BATON_E_not_permitted},
        {OUTCOME_completed, true, TURN_completed, BATON_E_not_permitted},
        {OUTCOME_completed, false, TURN_queued, BATON_E_not_permitted},
        {OUTCOME_duplicate, true, TURN_completed, BATON_E_not_permitted},
        {OUTCOME_duplicate, true, TURN_running, BATON_E_not_permitted},
        {OUTCOME_answer, true, TURN_completed, BATON_E_not_permitted},
        {OUTCOME_duplicate, true, TURN_parked, BATON_OK},
        {OUTCOME_parked, true, TURN_parked, BATON_OK},
        {OUTCOME_cancelled, true, TURN_cancelled, BATON_OK},
        {OUTCOME_delegated, true, TURN_delegated, BATON_OK},
        {OUTCOME_answer, true, TURN_parked, BATON_OK},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct outcome o = outcome_about_turn(rows[i].event, "claude", ROLE_arbiter);
        o.has_state = rows[i].has_state;
        o.state = rows[i].state;
        expect_outcome(&w->at_coordinator, w->claude, &o, "r-9", rows[i].code);
        o.result = result;
        o.result_len = strlen(result);
        expect_outcome(&w->at_coordinator, w->claude, &o, "r-9", BATON_E_not_permitted);
        o.role = ROLE_reviewer;
        expect_outcome(&w->at_coordinator, w->claude, &o, "r-9", BATON_OK);
    }
}

/* P-70: runs end, and requests are answered, by who may coordinate. */
static void p70_a_run_by_the_word_of_who_coordinates(void **state)
{
    struct world *w = *state;
    static const enum outcome_event events[] = {OUTCOME_run_ended, OUTCOME_answer};
    for (size_t i = 0; i < COUNT_OF(events); i++) {
        struct outcome o = outcome_about(events[i], "r-9", "");
        expect_outcome(&w->at_coordinator, w->coordinator, &o, "r-9", BATON_OK);
        expect_outcome(&w->at_coordinator, w->claude, &o, "r-9", BATON_E_not_permitted);
        expect_outcome(&w->at_coordinator, w->alice, &o, "r-9", BATON_E_not_permitted);
        expect_outcome(&w->at_coordinator, w->ci, &o, "r-9", BATON_E_not_permitted);
        o.service = service_id_of("claude");
        expect_outcome(&w->at_coordinator, w->claude, &o, "r-9", BATON_E_not_permitted);
        expect_outcome(&w->at_coordinator, w->coordinator, &o, "r-9", BATON_E_not_permitted);
    }
    struct outcome nameless = outcome_about(OUTCOME_run_ended, "", TURN);
    expect_outcome(&w->at_coordinator, w->coordinator, &nameless, TURN, BATON_E_invalid_envelope);
}

static void outcomes_keys_and_partitions(void **state)
{
    struct world *w = *state;
    struct outcome o = outcome_about_turn(OUTCOME_completed, "claude", ROLE_reviewer);
    expect_outcome(&w->at_coordinator, w->claude, &o, TURN, BATON_E_invalid_envelope);
    expect_outcome(&w->at_coordinator, w->claude, &o, "r-8", BATON_E_invalid_envelope);
    o.run_id = plain_id_of("");
    o.epoch = 0;
    expect_outcome(&w->at_coordinator, w->claude, &o, TURN, BATON_OK);
    expect_outcome(&w->at_coordinator, w->claude, &o, "r-9", BATON_E_invalid_envelope);
    /* answers about a turn that nobody knows, and about none */
    struct outcome answer = outcome_about(OUTCOME_answer, "", TURN);
    answer.service = service_id_of("claude");
    expect_outcome(&w->at_coordinator, w->claude, &answer, TURN, BATON_OK);
    expect_outcome(&w->at_coordinator, w->claude, &answer, "c-1", BATON_E_invalid_envelope);
    answer = outcome_about(OUTCOME_answer, "", "");
    answer.service = service_id_of("claude");
    expect_outcome(&w->at_coordinator, w->claude, &answer, "c-1", BATON_OK);
    expect_outcome(&w->at_coordinator, w->claude, &answer, TURN, BATON_E_invalid_envelope);
    expect_outcome(&w->at_coordinator, w->lint, &answer, "c-1", BATON_E_not_permitted);

    struct buf value = BUF_INIT;
    struct post post;
    outcome_encode(&o, &value);
    post_of(&post, TURN, &value, w->claude, PROOF_outcome);
    for (int32_t p = 0; p < PARTITIONS; p++) {
        post.record.partition = p;
        expect_post(&w->at_coordinator, &post, PROOF_outcome,
                    p == 1 ? BATON_OK : BATON_E_wrong_partition);
    }
    post.record.partition = 1;
    post.record.n_headers = 0;
    post_sign(&post, w->claude, FLEET, PROOF_turn);
    expect_post(&w->at_coordinator, &post, PROOF_outcome, BATON_E_bad_signature);
    post_done(&post);
    buf_done(&value);
}

/* The passes of the turn travel along: they are read, and signed over the turn, which is not here. */
static void passes_of_an_outcome_are_kept(void **state)
{
    struct world *w = *state;
    struct outcome o = outcome_about_turn(OUTCOME_completed, "claude", ROLE_reviewer);
    struct buf value = BUF_INIT;
    struct post post;
    struct receipt receipt;
    outcome_encode(&o, &value);
    post_of(&post, "r-9", &value, w->claude, PROOF_outcome);
    post_pass(&post, w->stranger, STATEMENT);
    assert_int_equal(receipt_outcome(&w->at_coordinator, &post.record, &receipt), BATON_OK);
    assert_int_equal(receipt.n_passes, 1);
    assert_string_equal(receipt.passes[0].to.s, "codex-review");
    assert_int_equal(receipt.passes[0].attempt, 2);
    assert_string_equal(receipt.passes[0].text, post.texts[1]);
    assert_string_equal(trust_principal_name(receipt.signer), "claude");
    receipt_done(&receipt);
    post_done(&post);
    post_of(&post, "r-9", &value, w->claude, PROOF_outcome);
    post_pass(&post, w->claude, "1 2 claude nowhere 1 0 0");
    expect_post(&w->at_coordinator, &post, PROOF_outcome, BATON_E_invalid_envelope);
    post_done(&post);
    buf_done(&value);
}

/* An outcome of the example's turn by a service, with hops that signers made over the turn. */
static baton_code chain_of(const struct receiver *here, const struct signer *speaker,
                           const char *service, enum role role, const struct signer *const *signers,
                           const char *const *statements, size_t count, struct pass *ret_last)
{
    struct turn_draft draft = example_draft();
    struct turn *turn = make_turn(&draft);
    struct outcome o = outcome_about_turn(OUTCOME_parked, service, role);
    struct buf value = BUF_INIT;
    struct post hops;
    struct post post;
    struct receipt receipt;
    struct baton_error err = {BATON_OK, ""};
    post_value(&hops, turn->id.s, turn->bytes, turn->len);
    outcome_encode(&o, &value);
    post_of(&post, "r-9", &value, speaker, PROOF_outcome);
    for (size_t i = 0; i < count; i++) {
        post_pass(&hops, signers[i], statements[i]);
        post_header(&post, "baton-pass", hops.texts[i]);
    }
    assert_int_equal(receipt_outcome(here, &post.record, &receipt), BATON_OK);
    const struct receipt_turn known = {turn->id.s, "claude", role, &turn->digest};
    baton_code rc = receipt_outcome_chain(here, &receipt, &known, ret_last, &err);
    assert_true(rc == BATON_OK || (err.code == rc && err.text[0] != '\0'));
    receipt_done(&receipt);
    post_done(&hops);
    post_done(&post);
    buf_done(&value);
    turn_free(turn);
    return rc;
}

/* X25: a fallback speaks for a turn with the passes that led to it, and not without. */
static void x25_who_is_at_the_end_of_the_chain(void **state)
{
    struct world *w = *state;
    struct pass last;
    const struct signer *const one[] = {w->claude, w->codex};
    const struct signer *const forged[] = {w->codex, w->codex};
    const char *const hops[] = {STATEMENT,
                                "1 4 codex-review lint 2 0 1 quota 2026-11-29T14:21:44.020Z"};
    const char *const no_edge[] = {"1 2 claude lint 1 0 0 auth 2026-11-29T14:20:44.020Z"};
    assert_int_equal(
        chain_of(&w->at_coordinator, w->claude, "claude", ROLE_reviewer, NULL, NULL, 0, &last),
        BATON_OK);
    assert_int_equal(last.attempt, 1);
    assert_int_equal(last.failures, 0);
    assert_int_equal(
        chain_of(&w->at_coordinator, w->codex, "codex-review", ROLE_reviewer, one, hops, 1, &last),
        BATON_OK);
    assert_int_equal(last.attempt, 2);
    assert_int_equal(last.failures, 1);
    assert_null(last.text);
    assert_int_equal(
        chain_of(&w->at_coordinator, w->lint, "lint", ROLE_reviewer, one, hops, 2, &last),
        BATON_OK);
    assert_int_equal(last.attempt, 4);
    assert_int_equal(last.replays, 1);
    /* without them; with one of two; by who had it before */
    assert_int_equal(
        chain_of(&w->at_coordinator, w->codex, "codex-review", ROLE_reviewer, NULL, NULL, 0, &last),
        BATON_E_not_permitted);
    assert_int_equal(
        chain_of(&w->at_coordinator, w->lint, "lint", ROLE_reviewer, one, hops, 1, &last),
        BATON_E_not_permitted);
    assert_int_equal(
        chain_of(&w->at_coordinator, w->lint, "lint", ROLE_reviewer, one + 1, hops + 1, 1, &last),
        BATON_E_not_permitted);
    assert_int_equal(
        chain_of(&w->at_coordinator, w->claude, "claude", ROLE_reviewer, one, hops, 1, &last),
        BATON_E_not_permitted);
    /* a hop in another's name; over an edge without right; of a role that the edge lacks */
    assert_int_equal(chain_of(&w->at_coordinator, w->codex, "codex-review", ROLE_reviewer, forged,
                              hops, 1, &last),
                     BATON_E_not_permitted);
    assert_int_equal(
        chain_of(&w->at_coordinator, w->lint, "lint", ROLE_reviewer, one, no_edge, 1, &last),
        BATON_E_not_permitted);
    assert_int_equal(
        chain_of(&w->at_coordinator, w->codex, "codex-review", ROLE_owner, one, hops, 1, &last),
        BATON_E_not_permitted);
    /* signed over another turn */
    struct outcome o = outcome_about_turn(OUTCOME_parked, "codex-review", ROLE_reviewer);
    struct buf value = BUF_INIT;
    struct post post;
    struct receipt receipt;
    struct digest digest = digest_of("x", 1);
    const struct receipt_turn known = {TURN, "claude", ROLE_reviewer, &digest};
    outcome_encode(&o, &value);
    post_of(&post, "r-9", &value, w->codex, PROOF_outcome);
    post_pass(&post, w->claude, STATEMENT);
    assert_int_equal(receipt_outcome(&w->at_coordinator, &post.record, &receipt), BATON_OK);
    assert_int_equal(receipt_outcome_chain(&w->at_coordinator, &receipt, &known, &last, NULL),
                     BATON_E_bad_signature);
    receipt_done(&receipt);
    post_done(&post);
    buf_done(&value);
    /* without proofs the chain is the hops' word */
    struct receiver off = w->at_coordinator;
    off.proof_required = false;
    assert_int_equal(
        chain_of(&off, w->codex, "codex-review", ROLE_reviewer, forged, hops, 1, &last), BATON_OK);
    assert_int_equal(chain_of(&off, w->codex, "codex-review", ROLE_reviewer, NULL, NULL, 0, &last),
                     BATON_E_not_permitted);
}

static void off_checks_all_but_who(void **state)
{
    struct world *w = *state;
    struct receiver off = {.fleet = FLEET, .partitions = PARTITIONS};
    struct request r = request_of(REQUEST_cancel);
    expect_request(&off, NULL, &r, BATON_OK);
    expect_request(&off, w->stranger, &r, BATON_OK);
    r = start_of("alice");
    expect_request(&off, NULL, &r, BATON_OK);
    r.request_no = 1;
    expect_request(&off, NULL, &r, BATON_E_invalid_envelope);
    struct outcome o = outcome_about_turn(OUTCOME_completed, "claude", ROLE_arbiter);
    expect_outcome(&off, NULL, &o, "r-9", BATON_OK);
    expect_outcome(&off, w->lint, &o, "r-9", BATON_OK);
    expect_outcome(&off, NULL, &o, "r-8", BATON_E_invalid_envelope);
}

#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, open_run_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_good_request_is_taken_in),
        WORLD_TEST(x26_who_may_ask_for_what),
        WORLD_TEST(p45_a_start_is_its_signers),
        WORLD_TEST(requests_keys_partitions_classes),
        WORLD_TEST(x26_a_request_sent_again_later),
        WORLD_TEST(x24_a_turn_by_the_word_of_its_service),
        WORLD_TEST(x24_work_is_told_by_who_serves_the_role),
        WORLD_TEST(p70_a_run_by_the_word_of_who_coordinates),
        WORLD_TEST(outcomes_keys_and_partitions),
        WORLD_TEST(passes_of_an_outcome_are_kept),
        WORLD_TEST(x25_who_is_at_the_end_of_the_chain),
        WORLD_TEST(off_checks_all_but_who),
    };
    return cmocka_run_group_tests_name("on receipt: runs", tests, NULL, NULL);
}
