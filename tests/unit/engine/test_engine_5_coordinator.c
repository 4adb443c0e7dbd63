/*
 * An engine that serves a coordinator: requests and outcomes are its inputs, a run log is its state. Both
 * arrive judged as what they are, outcomes first, and outcomes are left in the log for everybody.
 */
#include "tests/unit/record/fixture.h"

/* The rig has names of its own for what both need. */
#include "tests/unit/engine/engine_rig.h"

#include "common/record/outcome.h"
#include "common/record/request.h"

struct coordinator {
    struct rig *rig;
    struct box box;
    struct trust *trust;
    struct signer *alice;
    struct signer *claude;
    struct engine *engine;
    struct mailbox *mail;
    char seen[4096]; /* of each record: 'o' or 'q' (outcome, request), '!' where it was refused */
    bool speak;      /* each request is answered: into the topic that is also the second input */
    size_t rounds;   /* that wrote something */
};

static void make_topic(struct rig *rig, const char *name, enum log_cleanup cleanup)
{
    const struct log_topic topic = {.name = name,
                                    .partitions = PARTS,
                                    .cleanup = cleanup,
                                    .retention_ms = -1,
                                    .tombstone_ms = 1000,
                                    .record_bytes_max = 300000};
    OK(log_topics_create(rig->log, &topic, 1, err));
}

static void coordinator_open(struct coordinator *c, struct rig *rig)
{
    memset(c, 0, sizeof(*c));
    c->rig = rig;
    make_topic(rig, "requests", LOG_CLEANUP_delete);
    make_topic(rig, "outcomes", LOG_CLEANUP_delete);
    make_topic(rig, "runs", LOG_CLEANUP_compact);
    spy.state = "runs";
    box_fleet(&c->box);
    c->trust = load_trust(&c->box);
    c->alice = load_signer(&c->box, "alice");
    c->claude = load_signer(&c->box, "claude");
    c->mail = mailbox_new(16);
    assert_non_null(c->mail);
    static const char *const outputs[] = {"out", "outcomes"};
    const struct engine_spec spec = {
        .log = rig->log,
        .group = GROUP,
        .worker = "c1",
        .boot = boot_id_new(),
        .inputs = {{"requests", ENGINE_REQUESTS, true}, {"outcomes", ENGINE_OUTCOMES, false}},
        .state = "runs",
        .outputs = outputs,
        .n_outputs = 2,
        .session_ms = 3000,
        .heartbeat_ms = 50,
        .receiver = {c->trust, FLEET, true, NULL, PARTS},
        .verify_threads = 1,
        .mail = c->mail,
        .wake_fd = -1,
    };
    OK(engine_open(&spec, &c->engine, err));
}

static void coordinator_close(struct coordinator *c)
{
    engine_close(c->engine, true, 1000);
    mailbox_free(c->mail);
    signer_free(c->alice);
    signer_free(c->claude);
    trust_free(c->trust);
    box_close(&c->box);
}

static void publish_signed(struct coordinator *c, const char *topic, const char *key,
                           const struct buf *value, const struct signer *signer,
                           enum proof_class class)
{
    struct post post;
    assert_true(buf_ok(value));
    post_value(&post, key, value->data, value->len);
    post_sign(&post, signer, FLEET, class);
    post.record.topic = topic;
    post.record.partition = log_partition_of(key, strlen(key), PARTS);
    OK(log_publish(c->rig->publisher, &post.record, 1, 5000, err));
    post_done(&post);
}

/* A start by alice, signed by whom the test says. Returns its run. */
static struct plain_id send_start(struct coordinator *c, const char *key,
                                  const struct signer *signer)
{
    static char summary[] = "Fix it";
    struct request r;
    struct buf value = BUF_INIT;
    memset(&r, 0, sizeof(r));
    r.kind = REQUEST_start;
    r.id = plain_id_of("q-1");
    r.run_id = request_run_id(FLEET, "alice", key);
    r.at = wall_now();
    r.workflow = plain_id_of("paired-review");
    r.task_id = task_id_of("t-41");
    snprintf(r.key, sizeof(r.key), "%s", key);
    r.summary = summary;
    request_encode(&r, &value);
    publish_signed(c, "requests", r.run_id.s, &value, signer, PROOF_request);
    buf_done(&value);
    return r.run_id;
}

static void send_parked(struct coordinator *c, const char *run_id, const struct signer *signer)
{
    struct outcome o;
    struct buf value = BUF_INIT;
    memset(&o, 0, sizeof(o));
    o.event = OUTCOME_parked;
    o.turn_id = turn_id_of("a97714f129ea975fdcb2f1a8ed9d4087");
    o.origin = plain_id_of("coordinator");
    o.born = service_id_of("claude");
    o.has_role = true;
    o.role = ROLE_reviewer;
    o.task_id = task_id_of("t-41");
    o.run_id = plain_id_of(run_id);
    o.intent = plain_id_of("review");
    o.service = service_id_of("claude");
    o.at = wall_now();
    outcome_encode(&o, &value);
    publish_signed(c, "outcomes", run_id, &value, signer, PROOF_outcome);
    buf_done(&value);
}

static void put(struct coordinator *c, const char *topic, int32_t partition,
                const struct log_record *of)
{
    const struct log_record record = {.topic = topic,
                                      .partition = partition,
                                      .key = of->key,
                                      .key_len = of->key_len,
                                      .value = "{}",
                                      .value_len = 2};
    (void)engine_put(c->engine, &record);
}

static void on_event(struct coordinator *c, const struct engine_event *event)
{
    const struct receipt *receipt = event->receipt;
    const bool first = event->kind == ENGINE_record;
    const size_t n = strlen(c->seen);
    assert_true(n + 1 < sizeof(c->seen));
    assert_null(receipt->turn);
    assert_null(receipt->control);
    assert_true((receipt->request != NULL) == (first && receipt->code == BATON_OK));
    assert_true((receipt->outcome != NULL) == (!first && receipt->code == BATON_OK));
    c->seen[n] = receipt->code != BATON_OK ? '!' : first ? 'q' : 'o';
    if (receipt->code == BATON_OK) {
        put(c, "runs", event->partition, event->record);
    }
    if (first && c->speak) {
        put(c, "outcomes", LOG_PARTITION_BY_KEY, event->record);
    }
    engine_take(c->engine);
}

static void step(struct coordinator *c, int64_t wait_ms)
{
    struct engine_event event;
    OK(engine_next(c->engine, (struct mono_ms){mono_now().v + wait_ms}, &event, err));
    switch (event.kind) {
    case ENGINE_restoring:
        engine_restore_from(c->engine, LOG_OFFSET_NONE);
        break;
    case ENGINE_tick:
        engine_capacity(c->engine, 100);
        break;
    case ENGINE_control:
    case ENGINE_record:
        on_event(c, &event);
        break;
    case ENGINE_round: {
        enum engine_result result;
        int64_t culprit;
        const size_t before = strlen(spy.calls);
        OK(engine_commit(c->engine, &result, &culprit, err));
        assert_int_equal(result, ENGINE_COMMITTED);
        c->rounds += strlen(spy.calls) > before ? 1 : 0;
        break;
    }
    case ENGINE_none:
    case ENGINE_mail:
    case ENGINE_wake:
    case ENGINE_fold:
    case ENGINE_assigned:
    case ENGINE_moved:
        break;
    }
}

/* Until so many records were given, and what they led to is in the log. */
static void until_seen(struct coordinator *c, size_t count)
{
    int64_t end = mono_now().v + WAIT_MS;
    while ((strlen(c->seen) < count || engine_batch_count(c->engine) > 0) && mono_now().v < end) {
        step(c, 20);
    }
    if (strlen(c->seen) != count) {
        fail_msg("%s: %zu records are due", c->seen, count);
    }
}

static void test_both_inputs_arrive_judged(void **state)
{
    struct rig *rig = *state;
    struct coordinator c;
    coordinator_open(&c, rig);
    struct plain_id run = send_start(&c, "k-1", c.alice);
    until_seen(&c, 1);
    assert_string_equal(c.seen, "q");
    send_parked(&c, run.s, c.claude);
    until_seen(&c, 2);
    assert_string_equal(c.seen, "qo");
    /* Neither counts by the word of another. */
    send_start(&c, "k-2", c.claude);
    until_seen(&c, 3);
    send_parked(&c, run.s, c.alice);
    until_seen(&c, 4);
    assert_string_equal(c.seen, "qo!!");
    /* The state is that of the run's partition, with an offset of both inputs. */
    const int32_t at = log_partition_of(run.s, strlen(run.s), PARTS);
    assert_non_null(strstr(rig_keys(rig, "runs", at), run.s));
    assert_true(rig_offset(rig, "requests", at) >= 1);
    assert_true(rig_offset(rig, "outcomes", at) >= 1);
    coordinator_close(&c);
}

/* What services said while no coordinator was there comes before what people ask. */
static void test_a_coordinator_hears_outcomes_before_requests(void **state)
{
    struct rig *rig = *state;
    struct coordinator c;
    coordinator_open(&c, rig);
    struct plain_id run = send_start(&c, "k-1", c.alice);
    for (int i = 0; i < 3; i++) {
        send_parked(&c, run.s, c.claude);
    }
    until_seen(&c, 4);
    assert_string_equal(c.seen, "oooq");
    coordinator_close(&c);
}

/* Requests that were taken are deleted; outcomes stay for everybody, though they were taken, too. */
static void test_outcomes_are_left_to_their_age(void **state)
{
    struct rig *rig = *state;
    struct coordinator c;
    int64_t low = 0;
    int64_t high = 0;
    coordinator_open(&c, rig);
    struct plain_id run = send_start(&c, "k-1", c.alice);
    const int32_t at = log_partition_of(run.s, strlen(run.s), PARTS);
    send_parked(&c, run.s, c.claude);
    until_seen(&c, 2);
    for (int i = 0; i < 2; i++) {
        engine_trim(c.engine);
        OK(log_watermarks(rig->log, "requests", at, &low, &high, err));
        assert_int_equal(low, high);
        OK(log_watermarks(rig->log, "outcomes", at, &low, &high, err));
        assert_int_equal(low, 0);
        assert_int_equal(high, 1);
        assert_int_equal(engine_position(c.engine, ENGINE_CONTROL_INPUT, at), 1);
    }
    /* Somebody's age limit takes them: that is no topic that was made again. */
    OK(log_trim(rig->log, "outcomes", at, 1, err));
    engine_trim(c.engine);
    send_parked(&c, run.s, c.claude);
    until_seen(&c, 3);
    assert_string_equal(c.seen, "oqo");
    engine_trim(c.engine);
    OK(log_watermarks(rig->log, "outcomes", at, &low, &high, err));
    assert_int_equal(low, 1);
    assert_int_equal(high, 2);
    coordinator_close(&c);
}

/* What it tells stands in its own input: it hears itself once, and comes to rest. */
static void test_its_own_words_come_back_once(void **state)
{
    struct rig *rig = *state;
    struct coordinator c;
    coordinator_open(&c, rig);
    c.speak = true;
    send_start(&c, "k-1", c.alice);
    until_seen(&c, 2);
    assert_string_equal(c.seen, "q!"); /* the words here are no outcome */
    /* So long that an end which was reached is committed. */
    for (int64_t end = mono_now().v + EOF_IDLE_MS + 500; mono_now().v < end;) {
        step(&c, 20);
    }
    const size_t rounds = c.rounds;
    for (int64_t end = mono_now().v + EOF_IDLE_MS + 500; mono_now().v < end;) {
        step(&c, 20);
    }
    assert_int_equal(c.rounds, rounds);
    assert_true(engine_drained(c.engine));
    coordinator_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(test_both_inputs_arrive_judged),
        RIG_TEST(test_a_coordinator_hears_outcomes_before_requests),
        RIG_TEST(test_outcomes_are_left_to_their_age),
        RIG_TEST(test_its_own_words_come_back_once),
    };
    return cmocka_run_group_tests_name("engine: coordinator", tests, NULL, NULL);
}
