/*
 * Publishing on Kafka: what is said to be in the log is there. A partition whose broker becomes its
 * leader between two batches of a producer that is new to it refuses the first and takes the second;
 * librdkafka then counts the first as acknowledged, too.
 */
#include "tests/unit/log/kafka_mock.h"

#define RECORDS 600
#define RTT_MS 40 /* so that a second batch is ready while the first is under way */

static void test_B05_a_refused_batch_is_not_overtaken(void **state)
{
    static struct log_record records[RECORDS];
    struct baton_error err = {0};
    struct log_publisher *publisher = NULL;
    struct mock mock;
    int64_t low = 0;
    int64_t high = 0;
    (void)state;
    mock_start(&mock);
    mock_check(log_publisher_open(mock.log, &publisher, &err), &err);
    for (size_t i = 0; i < RECORDS; i++) {
        records[i] = (struct log_record){
            .topic = "t.handoff.b", .key = "k", .key_len = 1, .value = "v", .value_len = 1};
    }
    /* The producer gets its id, else all records wait for that and go in one batch. */
    records[0].partition = 1;
    mock_check(log_publish(publisher, records, 1, 20000, &err), &err);
    records[0].partition = 0;
    rd_kafka_mock_broker_set_rtt(mock.cluster, 1, RTT_MS);
    rd_kafka_mock_push_request_errors(mock.cluster, (int16_t)MOCK_produce, 1,
                                      RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION);
    mock_check(log_publish(publisher, records, RECORDS, 20000, &err), &err);
    for (size_t i = 0; i < RECORDS; i++) {
        assert_true(records[i].offset >= 0);
    }
    mock_check(log_watermarks(mock.log, "t.handoff.b", 0, &low, &high, &err), &err);
    assert_int_equal(high, RECORDS);
    log_publisher_close(publisher);
    mock_end(&mock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_B05_a_refused_batch_is_not_overtaken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
