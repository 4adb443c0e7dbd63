/*
 * FIELD B02: the coordinator of group and transactions goes from broker to broker, as at a rolling restart;
 * injected with librdkafka's mock cluster, which moves it at a word. On real brokers: tests/fleet/test_48.
 * And one that does not answer: who asks for the group waits no longer than it said.
 */
#include "tests/unit/log/kafka_mock.h"

#define BROKERS 3
#define MOVES 4
#define GROUP "t.worker.a"
#define IN_TIME_NS 30000000000 /* the row's bound */

static void start(struct mock *mock)
{
    static const char *const topics[] = {"t.handoff.a", "t.control.a", "t.turns.a", "t.outcomes",
                                         "t.handoff.b"};
    char text[256];
    struct baton_error err = {0};
    struct config config = {.log = LOG_KIND_kafka, .partitions = 2};
    memset(mock, 0, sizeof(*mock));
    mock->rk = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), text, sizeof(text));
    assert_non_null(mock->rk);
    mock->cluster = rd_kafka_mock_cluster_new(mock->rk, BROKERS);
    assert_non_null(mock->cluster);
    for (size_t i = 0; i < sizeof(topics) / sizeof(topics[0]); i++) {
        assert_int_equal(rd_kafka_mock_topic_create(mock->cluster, topics[i], 2, BROKERS), 0);
    }
    char *brokers = strdup(rd_kafka_mock_cluster_bootstraps(mock->cluster));
    config.kafka_brokers = brokers;
    mock_check(log_open(&config, &mock->log, &err), &err);
    mock_silent(mock, INT64_MAX);
    free(brokers);
}

static void move_to(struct mock *mock, int32_t group, int32_t transactions)
{
    assert_int_equal(rd_kafka_mock_coordinator_set(mock->cluster, "group", GROUP, group), 0);
    assert_int_equal(
        rd_kafka_mock_coordinator_set(mock->cluster, "transaction", GROUP ".w1", transactions), 0);
}

/* One transaction with the offset of an input, as the engine begins and repeats it. */
static struct log_commit_result commit(struct mock *mock)
{
    struct baton_error err = {0};
    struct log_commit_result result = {0};
    const struct log_record record = {
        .topic = "t.turns.a", .key = "k", .key_len = 1, .value = "v", .value_len = 1};
    const struct log_offset offset = {.input = 0, .partition = 0, .next = 1};
    const struct log_txn txn = {.generation = mock->generation,
                                .records = (struct log_record *)&record,
                                .n_records = 1,
                                .offsets = &offset,
                                .n_offsets = 1};
    mock_check(log_commit(mock->member, &txn, 5000, &result, &err), &err);
    return result;
}

/* What the engine does between two transactions; a new assignment is its new generation. */
static void poll_once(struct mock *mock)
{
    struct baton_error err = {0};
    struct log_event event;
    mock_check(log_member_poll(mock->member, &event, &err), &err);
    if (event.kind == LOG_EVENT_assigned) {
        mock->generation = event.generation;
    }
}

static void test_B02_a_coordinator_that_moves_is_followed(void **state)
{
    struct mock mock;
    (void)state;
    start(&mock);
    move_to(&mock, 1, 2);
    mock_join(&mock, GROUP);
    mock.generation = mock_await(&mock, LOG_EVENT_assigned).generation;
    assert_int_equal(commit(&mock).verdict, LOG_VERDICT_committed);
    for (int32_t move = 1; move <= MOVES; move++) {
        const int64_t began_ns = mono_ns();
        struct log_commit_result result;
        move_to(&mock, 1 + move % BROKERS, 1 + (move + move / BROKERS) % BROKERS);
        do {
            struct baton_error err = {0};
            poll_once(&mock);
            result = commit(&mock);
            if (result.verdict == LOG_VERDICT_fenced) {
                mock_check(log_member_renew(mock.member, &err), &err);
            }
            assert_true(mono_ns() - began_ns < IN_TIME_NS);
        } while (result.verdict != LOG_VERDICT_committed);
        for (int polls = 0; polls < 5; polls++) { /* heartbeats reach the new one, too */
            struct pollfd none = {.fd = -1};
            (void)poll(&none, 1, 100);
            poll_once(&mock);
        }
    }
    mock_end(&mock);
}

/* Brokers answer after 30 s: the question ends, unanswered, long before what it takes without a bound (10 s). */
static void test_a_group_is_asked_for_no_longer_than_there_is_time(void **state)
{
    struct mock mock;
    struct log_group_member *members = NULL;
    size_t count = 0;
    struct baton_error err = {0};
    (void)state;
    start(&mock);
    for (int32_t id = 1; id <= BROKERS; id++) {
        assert_int_equal(rd_kafka_mock_broker_set_rtt(mock.cluster, id, 30000), 0);
    }
    const int64_t began_ns = mono_ns();
    const baton_code rc = log_group_members_within(mock.log, GROUP, 300, &members, &count, &err);
    assert_int_equal(rc, BATON_E_timed_out);
    assert_true(mono_ns() - began_ns < 6000000000);
    mock_end(&mock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_group_is_asked_for_no_longer_than_there_is_time),
        cmocka_unit_test(test_B02_a_coordinator_that_moves_is_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
