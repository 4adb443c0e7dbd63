/*
 * Judging beside the engine: records come with their judgement, in their order, and are judged
 * again under a new trust (RECORD.md section 3).
 */
#include "tests/unit/record/fixture.h"

/* The rig has names of its own for what both need. */
#include "tests/unit/engine/engine_rig.h"

struct judged {
    struct box box;
    struct trust *trust;
    struct signer *coordinator;
    struct driven d;
    size_t capacity; /* of each round */
    size_t ahead;    /* commits after which a whole chunk was read and judged already */
};

static void judged_open(struct judged *j, struct rig *rig, int threads)
{
    j->capacity = 1000;
    j->ahead = 0;
    box_fleet(&j->box);
    j->trust = load_trust(&j->box);
    j->coordinator = load_signer(&j->box, "coordinator");
    driven_init(&j->d, rig);
    struct engine_spec spec = driven_spec(rig, "w1", j->d.mail);
    spec.receiver = (struct receiver){j->trust, FLEET, true, "claude", PARTS};
    spec.verify_threads = threads;
    OK(engine_open(&spec, &j->d.engine, err));
}

static void judged_close(struct judged *j)
{
    driven_close(&j->d);
    trust_free(j->trust);
    signer_free(j->coordinator);
    box_close(&j->box);
}

/* Publishes a turn of the example's fleet; spoil: one byte of its proof is another. */
static struct turn_id send_turn(struct judged *j, const char *key, bool spoil)
{
    struct turn_draft draft = example_draft();
    struct post post;
    draft.key = key;
    draft.created_at = wall_now();
    struct turn *turn = make_turn(&draft);
    struct turn_id id = turn->id;
    post_value(&post, turn->id.s, turn->bytes, turn->len);
    post_sign(&post, j->coordinator, FLEET, PROOF_turn);
    if (spoil) {
        char *last = &post.texts[0][strlen(post.texts[0]) - 1];
        *last = *last == '0' ? '1' : '0';
    }
    post.record.topic = "in";
    post.record.partition = log_partition_of(turn->id.s, strlen(turn->id.s), PARTS);
    OK(log_publish(j->d.rig->publisher, &post.record, 1, 5000, err));
    post_done(&post);
    turn_free(turn);
    return id;
}

static void note_ahead(struct judged *j)
{
    for (size_t p = 0; p < PARTS; p++) {
        const struct feed *feed = &j->d.engine->parts[p].feeds[ENGINE_INPUT];
        j->ahead += feed->at == 0 && feed->batch.count > 0 ? 1 : 0;
    }
}

/* Steps until a record is given; false: a round ended before. */
static bool next_record(struct judged *j, struct engine_event *event)
{
    for (int64_t end = mono_now().v + WAIT_MS; mono_now().v < end;) {
        OK(engine_next(j->d.engine, (struct mono_ms){mono_now().v + 20}, event, err));
        switch (event->kind) {
        case ENGINE_restoring:
            engine_restore_from(j->d.engine, LOG_OFFSET_NONE);
            break;
        case ENGINE_tick:
            engine_capacity(j->d.engine, j->capacity);
            break;
        case ENGINE_record:
            return true;
        case ENGINE_round: {
            enum engine_result result;
            int64_t culprit;
            OK(engine_commit(j->d.engine, &result, &culprit, err));
            note_ahead(j);
            break;
        }
        case ENGINE_none:
        case ENGINE_mail:
        case ENGINE_wake:
        case ENGINE_fold:
        case ENGINE_assigned:
        case ENGINE_moved:
        case ENGINE_control:
            break;
        }
    }
    return false;
}

static void finish_round(struct judged *j)
{
    struct engine_event event;
    enum engine_result result;
    int64_t culprit;
    do {
        OK(engine_next(j->d.engine, mono_now(), &event, err));
        if (event.kind == ENGINE_record) {
            engine_take(j->d.engine);
        }
    } while (event.kind != ENGINE_round);
    OK(engine_commit(j->d.engine, &result, &culprit, err));
}

static size_t judge_many(struct rig *rig, int threads, size_t capacity)
{
    struct judged j;
    struct engine_event event;
    struct turn_id sent[PARTS][64];
    int n_sent[PARTS] = {0};
    int n_given[PARTS] = {0};

    judged_open(&j, rig, threads);
    j.capacity = capacity;
    for (int i = 0; i < 40; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%d", i);
        struct turn_id id = send_turn(&j, key, i % 5 == 3);
        int p = log_partition_of(id.s, strlen(id.s), PARTS);
        sent[p][n_sent[p]++] = id;
    }
    int bad = 0;
    for (int i = 0; i < 40; i++) {
        assert_true(next_record(&j, &event));
        int p = event.partition;
        assert_memory_equal(event.record->key, sent[p][n_given[p]++].s, 32);
        if (event.receipt->code == BATON_OK) {
            assert_true(event.receipt->proven);
            assert_memory_equal(event.receipt->turn->id.s, event.record->key, 32);
            assert_int_equal(event.receipt->turn->role, ROLE_reviewer);
        } else {
            assert_int_equal(event.receipt->code, BATON_E_bad_signature);
            assert_null(event.receipt->turn);
            bad++;
        }
        engine_take(j.d.engine);
    }
    assert_int_equal(bad, 8);
    judged_close(&j);
    return j.ahead;
}

static void test_judged_in_order_on_one_thread(void **state)
{
    (void)judge_many(*state, 0, 1000);
}

static void test_judged_in_order_on_three_threads(void **state)
{
    (void)judge_many(*state, 2, 1000);
}

/* Of a backlog helpers judge the next chunk while the commit waits for the log. */
static void test_a_backlog_is_judged_while_the_commit_waits(void **state)
{
    assert_true(judge_many(*state, 2, 3) > 0);
}

static void test_without_helpers_nothing_is_read_ahead(void **state)
{
    assert_int_equal(judge_many(*state, 0, 3), 0);
}

/* A record that waits is judged anew when the trust changes: the same bytes, another answer. */
static void test_a_new_trust_judges_what_waits(void **state)
{
    struct rig *rig = *state;
    struct judged j;
    struct engine_event event;
    char path[256];

    judged_open(&j, rig, 1);
    snprintf(path, sizeof(path), "%s/coordinator.%s.pem", j.box.trust,
             signer_key_id(j.coordinator).s);
    assert_int_equal(unlink(path), 0);
    write_file(j.box.trust, "coordinator.yaml", "kind: program\ncoordinate: true\n", 0644);
    put_private(&j.box, "other",
                "0808080808080808080808080808080808080808080808080808080808080808");
    put_public(&j.box, "other", "coordinator");
    struct trust *without = load_trust(&j.box);
    engine_trust(j.d.engine, without);
    send_turn(&j, "a", false);
    assert_true(next_record(&j, &event));
    assert_int_equal(event.receipt->code, BATON_E_unknown_key);
    engine_trust(j.d.engine, j.trust); /* the present record is judged again, too */
    assert_int_equal(event.receipt->code, BATON_OK);
    engine_take(j.d.engine);
    finish_round(&j);
    trust_free(without);
    judged_close(&j);
}

/* The caller takes the turn out of its receipt; if its batch is dropped the record is judged again.
 */
static void test_a_dropped_batch_gives_whole_receipts_again(void **state)
{
    struct rig *rig = *state;
    struct judged j;
    struct engine_event event;
    judged_open(&j, rig, 0);
    send_turn(&j, "a", false);
    assert_true(next_record(&j, &event));
    turn_free(event.receipt->turn);
    event.receipt->turn = NULL;
    put_state(&j.d, event.partition, "state", "k", 1);
    engine_take(j.d.engine);
    spy.refuse = 1;
    spy.verdict = LOG_VERDICT_aborted;
    finish_round(&j);
    assert_true(next_record(&j, &event));
    assert_non_null(event.receipt->turn);
    assert_int_equal(event.receipt->code, BATON_OK);
    engine_take(j.d.engine);
    finish_round(&j);
    judged_close(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(test_judged_in_order_on_one_thread),
        RIG_TEST(test_judged_in_order_on_three_threads),
        RIG_TEST(test_a_backlog_is_judged_while_the_commit_waits),
        RIG_TEST(test_without_helpers_nothing_is_read_ahead),
        RIG_TEST(test_a_new_trust_judges_what_waits),
        RIG_TEST(test_a_dropped_batch_gives_whole_receipts_again),
    };
    return cmocka_run_group_tests_name("engine: proofs", tests, NULL, NULL);
}
