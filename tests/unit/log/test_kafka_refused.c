/*
 * Publishing and reading when brokers refuse, or are away: injected with librdkafka's mock cluster.
 * What they do when all is well is shown by the conformance suite on a real broker.
 */
#include "tests/unit/log/kafka_mock.h"

#include <stdio.h>

static int set_up(void **state)
{
    static struct mock mock;
    mock_start(&mock);
    *state = &mock;
    return 0;
}

static int tear_down(void **state)
{
    mock_end(*state);
    return 0;
}

static struct log_record record_of(const char *topic, const char *value)
{
    return (struct log_record){.topic = topic,
                               .partition = 0,
                               .key = "k",
                               .key_len = 1,
                               .value = value,
                               .value_len = strlen(value)};
}

static struct log_publisher *publisher_of(struct mock *mock)
{
    struct baton_error err = {0};
    struct log_publisher *publisher = NULL;
    mock_check(log_publisher_open(mock->log, &publisher, &err), &err);
    return publisher;
}

/* What is in partition 0, and that its end is told. */
static size_t count(struct mock *mock, const char *topic, struct log_batch *batch)
{
    struct baton_error err = {0};
    struct log_reader *reader = NULL;
    mock_check(log_reader_open(mock->log, topic, 0, 0, LOG_READ_committed, &reader, &err), &err);
    mock_check(log_reader_next(reader, 1000, 0, batch, &err), &err);
    assert_true(batch->at_end);
    log_reader_close(reader);
    return batch->count;
}

struct row {
    const char *name;
    rd_kafka_resp_err_t error;
    int times;
    baton_code code;
    const char *says;
};

static const struct row rows[] = {
    {"retried inside", RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, 2, BATON_OK, NULL},
    {"leader", RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, 1, BATON_OK, NULL},
    /* FIELD B13: the right, the topic and who lacks it; B05: a refused record is no success. */
    {"right", RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, 1, BATON_E_not_permitted,
     "(User:ANONYMOUS) lacks the right 'Write' on topic t.outcomes"},
    {"too large", RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, 1, BATON_E_record_too_large, "t.outcomes"},
    {"no key", RD_KAFKA_RESP_ERR_INVALID_RECORD, 1, BATON_E_invalid_request, "without a key"},
};

static void test_B05_B13_refused(void **state)
{
    struct mock *mock = *state;
    struct log_publisher *publisher = publisher_of(mock);
    struct log_batch batch = {0};
    size_t there = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        struct baton_error err = {0};
        struct log_record record = record_of("t.outcomes", row->name);
        for (int k = 0; k < row->times; k++) {
            rd_kafka_mock_push_request_errors(mock->cluster, MOCK_produce, 1, row->error);
        }
        baton_code rc = log_publish(publisher, &record, 1, 15000, &err);
        if (rc != row->code || (row->says != NULL && strstr(err.text, row->says) == NULL)) {
            fail_msg("%s: %s: %s", row->name, baton_code_word(rc), err.text);
        }
        there += rc == BATON_OK ? 1 : 0;

        /* And the publisher goes on. */
        record = record_of("t.outcomes", "next");
        mock_check(log_publish(publisher, &record, 1, 15000, &err), &err);
        there += 1;
        assert_int_equal(count(mock, "t.outcomes", &batch), there);
        assert_int_equal(batch.records[there - 1].offset, record.offset);
        assert_memory_equal(batch.records[there - 1].value, "next", 4);
    }
    log_publisher_close(publisher);
    log_batch_free(&batch);
}

static void test_missing_is_not_made(void **state)
{
    struct mock *mock = *state;
    struct baton_error err = {0};
    struct log_publisher *publisher = publisher_of(mock);
    struct log_record record = record_of("t.missing", "v");
    rd_kafka_mock_topic_set_error(mock->cluster, "t.missing",
                                  RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    assert_int_equal(log_publish(publisher, &record, 1, 5000, &err), BATON_E_topic_missing);
    assert_non_null(strstr(err.text, "t.missing"));
    assert_non_null(strstr(err.text, "baton topics apply"));
    log_publisher_close(publisher);
}

/* Brokers that answer no question for a topic's settings: one wait, not one for each topic, and what is
 * published is taken. */
static void test_settings_without_an_answer(void **state)
{
    static const char *const topics[] = {"t.outcomes", "t.turns.a", "t.handoff.b", "t.handoff.a"};
    struct mock *mock = *state;
    struct baton_error err = {0};
    struct log_publisher *publisher = publisher_of(mock);
    mock_silent(mock, 0);
    const int64_t began_ns = mono_ns();
    for (size_t i = 0; i < sizeof(topics) / sizeof(topics[0]); i++) {
        struct log_record record = record_of(topics[i], "v");
        mock_check(log_publish(publisher, &record, 1, 15000, &err), &err);
        assert_int_equal(record.offset, 0);
    }
    const int64_t took_ms = (mono_ns() - began_ns) / 1000000;
    assert_true(took_ms >= 2900 && took_ms < 8000);
    log_publisher_close(publisher);
}

/* Asked for a group's offset while its coordinator moves or starts: asked again, and no crash. */
static void test_a_coordinator_that_moves(void **state)
{
    static const rd_kafka_resp_err_t errors[] = {RD_KAFKA_RESP_ERR_NOT_COORDINATOR,
                                                 RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE,
                                                 RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS};
    struct mock *mock = *state;
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        struct baton_error err = {0};
        int64_t offset = 0;
        rd_kafka_mock_push_request_errors(mock->cluster, MOCK_offset_fetch, 1, errors[i]);
        mock_check(log_group_offset(mock->log, "group", "t.handoff.a", 0, &offset, &err), &err);
        assert_int_equal(offset, LOG_OFFSET_NONE);
    }
}

/* A record whose time was over while the brokers were away is not sent when they are back. */
static void test_late_is_never_sent(void **state)
{
    struct mock *mock = *state;
    struct baton_error err = {0};
    struct log_publisher *publisher = publisher_of(mock);
    struct log_batch batch = {0};
    struct log_record first = record_of("t.outcomes", "first");
    struct log_record late = record_of("t.outcomes", "late");
    struct log_record last = record_of("t.outcomes", "last");
    mock_check(log_publish(publisher, &first, 1, 15000, &err), &err);

    rd_kafka_mock_broker_set_down(mock->cluster, 1);
    int64_t began_ns = mono_ns();
    assert_int_equal(log_publish(publisher, &late, 1, 700, &err), BATON_E_timed_out);
    int64_t took_ms = (mono_ns() - began_ns) / 1000000;
    assert_true(took_ms >= 690 && took_ms < 6000);
    assert_non_null(strstr(err.text, "t.outcomes"));
    rd_kafka_mock_broker_set_up(mock->cluster, 1);

    mock_check(log_publish(publisher, &last, 1, 20000, &err), &err);
    assert_int_equal(count(mock, "t.outcomes", &batch), 2);
    assert_memory_equal(batch.records[1].value, "last", 4);
    log_publisher_close(publisher);
    log_batch_free(&batch);
}

/* FIELD B01: everything ends while no broker is there; and a reader says why it has nothing. */
static void test_B01_closed_without_brokers(void **state)
{
    struct mock *mock = *state;
    struct baton_error err = {0};
    struct log_publisher *publisher = publisher_of(mock);
    struct log_reader *reader = NULL;
    struct log_batch batch = {0};
    struct log_record record = record_of("t.outcomes", "v");
    mock_check(log_publish(publisher, &record, 1, 15000, &err), &err);
    mock_check(log_reader_open(mock->log, "t.outcomes", 0, 0, LOG_READ_committed, &reader, &err),
               &err);
    mock_check(log_reader_next(reader, 10, 100, &batch, &err), &err);
    assert_int_equal(batch.count, 1);
    mock_check(log_reader_next(reader, 10, 100, &batch, &err), &err); /* waits at the broker */
    assert_int_equal(batch.count, 0);

    rd_kafka_mock_broker_set_down(mock->cluster, 1);
    assert_int_equal(log_publish(publisher, &record, 1, 300, &err), BATON_E_timed_out);
    int64_t began_ns = mono_ns();
    assert_int_equal(log_reader_next(reader, 10, 100, &batch, &err), BATON_E_service_unavailable);
    assert_non_null(strstr(err.text, "t.outcomes"));
    assert_true(mono_ns() - began_ns < 20000000000);

    began_ns = mono_ns();
    log_reader_close(reader);
    log_publisher_close(publisher);
    log_close(mock->log);
    assert_true(mono_ns() - began_ns < 5000000000);
    mock->log = NULL;
    log_batch_free(&batch);
}

/* More headers than a record may have reach whoever refuses it, not cut and not fatal. */
static void test_many_headers_are_read(void **state)
{
    enum { MANY = LOG_HEADERS_MAX + 8, LONG = 70000 };
    struct mock *mock = *state;
    struct log_batch batch = {0};
    char value[] = "v";
    char text[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(mock->cluster),
                      text, sizeof(text));
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
    rd_kafka_headers_t *headers = rd_kafka_headers_new(MANY);
    for (int i = 0; i < MANY; i++) {
        char short_name[16];
        snprintf(short_name, sizeof(short_name), "h%d", i);
        rd_kafka_header_add(headers, short_name, -1, i % 2 == 0 ? "v" : NULL, i % 2 == 0 ? 1 : -1);
    }
    char *name = malloc(LONG + 1); /* longer than a batch can hold */
    memset(name, 'n', LONG);
    name[LONG] = '\0';
    rd_kafka_header_add(headers, name, -1, "v", 1);
    free(name);
    assert_int_equal(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t.outcomes"), RD_KAFKA_V_PARTITION(0),
                                       RD_KAFKA_V_VALUE(value, 1), RD_KAFKA_V_HEADERS(headers),
                                       RD_KAFKA_V_END),
                     0);
    assert_int_equal(rd_kafka_flush(rk, 15000), 0);
    rd_kafka_destroy(rk);
    assert_int_equal(count(mock, "t.outcomes", &batch), 1);
    assert_int_equal(batch.records[0].n_headers, MANY + 1);
    assert_true(strspn(batch.records[0].headers[MANY].name, "n") > 256);
    assert_string_equal(batch.records[0].headers[MANY - 1].name, "h39");
    assert_null(batch.records[0].headers[MANY - 1].value);
    assert_non_null(batch.records[0].headers[MANY - 2].value);
    log_batch_free(&batch);
}

/* Two who read one partition at once, in one log, each from its own place. */
static void test_two_readers_of_a_partition(void **state)
{
    static const char *const expected[] = {"a", "b", "b", "c"};
    struct mock *mock = *state;
    struct baton_error err = {0};
    struct log_publisher *publisher = publisher_of(mock);
    struct log_reader *readers[2] = {NULL, NULL};
    struct log_batch batch = {0};
    for (int i = 0; i < 3; i++) {
        struct log_record record = record_of("t.outcomes", i == 0 ? "a" : i == 1 ? "b" : "c");
        mock_check(log_publish(publisher, &record, 1, 15000, &err), &err);
    }
    for (int i = 0; i < 2; i++) {
        mock_check(
            log_reader_open(mock->log, "t.outcomes", 0, i, LOG_READ_committed, &readers[i], &err),
            &err);
    }
    for (int i = 0; i < 4; i++) {
        mock_check(log_reader_next(readers[i % 2], 1, 5000, &batch, &err), &err);
        assert_int_equal(batch.count, 1);
        assert_memory_equal(batch.records[0].value, expected[i], 1);
    }
    mock_check(log_reader_next(readers[1], 1, 0, &batch, &err), &err);
    assert_true(batch.count == 0 && batch.at_end);
    mock_check(log_reader_next(readers[0], 5, 0, &batch, &err), &err);
    assert_true(batch.count == 1 && batch.at_end);
    log_reader_close(readers[0]);
    log_reader_close(readers[1]);
    log_publisher_close(publisher);
    log_batch_free(&batch);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_B05_B13_refused),          TEST(test_missing_is_not_made),
        TEST(test_late_is_never_sent),       TEST(test_B01_closed_without_brokers),
        TEST(test_many_headers_are_read),    TEST(test_two_readers_of_a_partition),
        TEST(test_a_coordinator_that_moves), TEST(test_settings_without_an_answer),
    };
    return cmocka_run_group_tests_name("kafka refused", tests, NULL, NULL);
}
