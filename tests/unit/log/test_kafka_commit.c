/*
 * What each error of a transaction ends as (KAFKA.md 2.2), injected with librdkafka's mock cluster,
 * since a real broker does not give them on demand. Whether it is right about transactions is shown
 * by the conformance suite on a real broker.
 */
#include "tests/unit/log/kafka_mock.h"

#define NONE (-1)
#define SOME (-2) /* whichever is sent first */

struct row {
    const char *name;
    enum mock_request request;
    rd_kafka_resp_err_t error;
    int times;
    int verdict;
    int64_t culprit;
    baton_code code; /* of an abort; BATON_OK: not looked at */
};

static const struct row rows[] = {
    /* Retried inside. */
    {"load", MOCK_txn_offset_commit, RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS, 2,
     LOG_VERDICT_committed, NONE, BATON_OK},
    {"end not available", MOCK_end_txn, RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE, 2,
     LOG_VERDICT_committed, NONE, BATON_OK},
    {"replicas", MOCK_produce, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, 2, LOG_VERDICT_committed,
     NONE, BATON_OK},
    {"concurrent", MOCK_add_partitions, RD_KAFKA_RESP_ERR_CONCURRENT_TRANSACTIONS, 3,
     LOG_VERDICT_committed, NONE, BATON_OK},
    /* The group says that it is over. */
    {"generation", MOCK_txn_offset_commit, RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION, 1,
     LOG_VERDICT_lost, NONE, BATON_OK},
    {"member", MOCK_txn_offset_commit, RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID, 1, LOG_VERDICT_lost,
     NONE, BATON_OK},
    {"instance", MOCK_txn_offset_commit, RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID, 1, LOG_VERDICT_lost,
     NONE, BATON_OK},
    /* FIELD A12: no reason to stop. */
    {"rebalance", MOCK_txn_offset_commit, RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS, 1,
     LOG_VERDICT_aborted, NONE, BATON_E_service_unavailable},
    {"end unknown", MOCK_end_txn, RD_KAFKA_RESP_ERR_UNKNOWN, 1, LOG_VERDICT_aborted, NONE,
     BATON_OK},
    {"mapping", MOCK_add_partitions, RD_KAFKA_RESP_ERR_INVALID_PRODUCER_ID_MAPPING, 1,
     LOG_VERDICT_aborted, NONE, BATON_OK},
    /* A record is to blame. */
    {"too large", MOCK_produce, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, 1, LOG_VERDICT_aborted, SOME,
     BATON_E_record_too_large},
    {"no right, found at once", MOCK_add_partitions, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
     2, LOG_VERDICT_aborted, 0, BATON_E_not_permitted},
    {"no right, not found", MOCK_add_partitions, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, 1,
     LOG_VERDICT_aborted, NONE, BATON_E_not_permitted},
    {"group right", MOCK_add_offsets, RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED, 1,
     LOG_VERDICT_aborted, NONE, BATON_E_not_permitted},
    /* FIELD B07: the producer is of no use any more. */
    {"fenced at offsets", MOCK_add_offsets, RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH, 1,
     LOG_VERDICT_fenced, NONE, BATON_OK},
    {"fenced at partitions", MOCK_add_partitions, RD_KAFKA_RESP_ERR_PRODUCER_FENCED, 1,
     LOG_VERDICT_fenced, NONE, BATON_OK},
    {"fenced at produce", MOCK_produce, RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH, 1,
     LOG_VERDICT_fenced, NONE, BATON_OK},
    {"fenced at the end", MOCK_end_txn, RD_KAFKA_RESP_ERR_PRODUCER_FENCED, 1, LOG_VERDICT_fenced,
     NONE, BATON_OK},
    {"state", MOCK_end_txn, RD_KAFKA_RESP_ERR_INVALID_TXN_STATE, 1, LOG_VERDICT_unknown, NONE,
     BATON_OK},
    {"sequence", MOCK_produce, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, 1,
     LOG_VERDICT_unknown, NONE, BATON_OK},
};

static struct baton_error why; /* of the last commit */

static struct log_commit_result commit(struct mock *mock, int64_t timeout_ms)
{
    struct baton_error err = {0};
    static char big[2000];
    memset(big, 'x', sizeof(big));
    struct log_record records[] = {
        {.topic = "t.turns.a", .key = "k", .key_len = 1, .value = "v", .value_len = 1},
        {.topic = "t.outcomes",
         .partition = LOG_PARTITION_BY_KEY,
         .key = "k",
         .key_len = 1,
         .value = big,
         .value_len = sizeof(big)},
    };
    const struct log_offset offset = {.input = 0, .partition = 0, .next = 1};
    const struct log_txn txn = {.generation = mock->generation,
                                .records = records,
                                .n_records = 2,
                                .offsets = &offset,
                                .n_offsets = 1};
    struct log_commit_result result = {0};
    mock_check(log_commit(mock->member, &txn, timeout_ms, &result, &err), &err);
    why = err;
    return result;
}

/* Whatever happened, work goes on: at most three transactions, and a new producer where it is asked
 * for. */
static void goes_on(struct mock *mock, int verdict)
{
    struct baton_error err = {0};
    if (verdict == LOG_VERDICT_lost) {
        (void)mock_await(mock, LOG_EVENT_lost);
        return; /* the mock's group knows of nothing and gives nothing back */
    }
    if (verdict == LOG_VERDICT_fenced || verdict == LOG_VERDICT_unknown) {
        mock_check(log_member_renew(mock->member, &err), &err);
    }
    for (int tries = 0; tries < 3; tries++) {
        if (commit(mock, 10000).verdict == LOG_VERDICT_committed) {
            return;
        }
    }
    fail_msg("no transaction commits any more");
}

static void check_row(struct mock *mock, const struct row *row)
{
    if (mock->member == NULL) { /* after a row that ended in `lost` */
        mock_join(mock, row->name);
        mock->generation = mock_await(mock, LOG_EVENT_assigned).generation;
    }
    for (int i = 0; i < row->times; i++) {
        rd_kafka_mock_push_request_errors(mock->cluster, (int16_t)row->request, 1, row->error);
    }
    struct log_commit_result result = commit(mock, 10000);
    for (int i = 0; i < 3 && result.verdict == LOG_VERDICT_unknown; i++) {
        result = commit(mock, 10000); /* the same call again, as the engine does */
    }
    if ((int)result.verdict != row->verdict ||
        (row->culprit == SOME ? result.culprit < 0 : result.culprit != row->culprit) ||
        (row->code != BATON_OK && result.code != row->code)) {
        fail_msg("%s: verdict %d, culprit %d, code %s: %s", row->name, (int)result.verdict,
                 (int)result.culprit, baton_code_word(result.code), why.text);
    }
    goes_on(mock, row->verdict);
    if (row->verdict == LOG_VERDICT_lost) {
        mock_part(mock);
    }
}

static void test_A12_B07_each_error_has_its_verdict(void **state)
{
    struct mock mock;
    (void)state;
    mock_start(&mock);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        print_message("%s\n", rows[i].name);
        check_row(&mock, &rows[i]);
    }
    mock_end(&mock);
}

/* A member that has committed once. */
static void begin(struct mock *mock)
{
    mock_start(mock);
    mock_join(mock, "t.worker.a");
    mock->generation = mock_await(mock, LOG_EVENT_assigned).generation;
    assert_int_equal(commit(mock, 10000).verdict, LOG_VERDICT_committed);
}

/* A topic is refused while later records are still being handed over: it is refused for that. */
static void test_no_right_found_while_sending(void **state)
{
    enum { MANY = 50000 };
    struct mock mock;
    struct baton_error err = {0};
    struct log_commit_result result = {0};
    struct log_record *records = calloc(MANY, sizeof(*records));
    (void)state;
    assert_non_null(records);
    for (size_t i = 0; i < MANY; i++) {
        records[i] = (struct log_record){
            .topic = "t.turns.a", .key = "k", .key_len = 1, .value = "v", .value_len = 1};
    }
    begin(&mock);
    rd_kafka_mock_push_request_errors(mock.cluster, MOCK_add_partitions, 1,
                                      RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    const struct log_offset offset = {.input = 0, .partition = 0, .next = 1};
    const struct log_txn txn = {.generation = mock.generation,
                                .records = records,
                                .n_records = MANY,
                                .offsets = &offset,
                                .n_offsets = 1};
    mock_check(log_commit(mock.member, &txn, 10000, &result, &err), &err);
    assert_int_equal(result.verdict, LOG_VERDICT_aborted);
    assert_int_equal(result.code, BATON_E_not_permitted);
    assert_int_equal(commit(&mock, 10000).verdict, LOG_VERDICT_committed);
    mock_end(&mock);
    free(records);
}

/* The brokers go away in a transaction: its outcome is not known, and the same call finds out. */
static void test_away_in_a_transaction(void **state)
{
    struct mock mock;
    (void)state;
    begin(&mock);
    rd_kafka_mock_broker_set_down(mock.cluster, 1);
    struct log_commit_result result = commit(&mock, 500);
    assert_int_not_equal(result.verdict, LOG_VERDICT_committed);
    rd_kafka_mock_broker_set_up(mock.cluster, 1);
    const int64_t end = mono_ns() + 30000000000;
    while (result.verdict != LOG_VERDICT_committed && mono_ns() < end) {
        if (result.verdict == LOG_VERDICT_fenced) {
            struct baton_error err = {0};
            mock_check(log_member_renew(mock.member, &err), &err);
        }
        result = commit(&mock, 1000);
    }
    assert_int_equal(result.verdict, LOG_VERDICT_committed);
    mock_end(&mock);
}

/* FIELD B01: closing ends in time with all brokers gone. */
static void test_B01_close_without_brokers(void **state)
{
    struct mock mock;
    (void)state;
    begin(&mock);
    rd_kafka_mock_broker_set_down(mock.cluster, 1);
    (void)commit(&mock, 300);
    const int64_t before = mono_ns();
    log_member_close(mock.member, true, 3000);
    mock.member = NULL;
    assert_true(mono_ns() - before < 8000000000);
    mock_end(&mock);
}

/* What the driver can know by itself costs no transaction. */
static void test_old_generation_is_not_sent(void **state)
{
    struct mock mock;
    (void)state;
    mock_start(&mock);
    mock_join(&mock, "t.worker.a");
    mock.generation = mock_await(&mock, LOG_EVENT_assigned).generation - 1;
    rd_kafka_mock_push_request_errors(mock.cluster, MOCK_add_partitions, 1,
                                      RD_KAFKA_RESP_ERR_PRODUCER_FENCED);
    assert_int_equal(commit(&mock, 10000).verdict, LOG_VERDICT_lost);
    mock.generation++;
    assert_int_equal(commit(&mock, 10000).verdict, LOG_VERDICT_fenced);
    mock_end(&mock);
}

/* From now on no broker says where partitions end, so nothing is seen to be shown to readers. */
static void hide_ends(struct mock *mock)
{
    static rd_kafka_resp_err_t errors[20000]; /* they are asked for every half millisecond */
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        errors[i] = RD_KAFKA_RESP_ERR_UNKNOWN;
    }
    rd_kafka_mock_push_request_errors_array(mock->cluster, MOCK_list_offsets,
                                            sizeof(errors) / sizeof(errors[0]), errors);
}

static void show_ends(struct mock *mock)
{
    rd_kafka_mock_clear_request_errors(mock->cluster, MOCK_list_offsets);
}

/* LOG.md: a commit is none before readers see it; the same call finds out when they do. */
static void test_a_commit_is_none_before_it_is_seen(void **state)
{
    struct mock mock;
    (void)state;
    begin(&mock);
    hide_ends(&mock);
    assert_int_equal(commit(&mock, 1000).verdict, LOG_VERDICT_unknown);
    show_ends(&mock);
    assert_int_equal(commit(&mock, 10000).verdict, LOG_VERDICT_committed);
    assert_int_equal(commit(&mock, 10000).verdict, LOG_VERDICT_committed);
    mock_end(&mock);
}

/* LOG.md: nothing is begun before an abort is seen. */
static void test_nothing_is_begun_before_an_abort_is_seen(void **state)
{
    struct mock mock;
    struct baton_error err = {0};
    struct log_commit_result result = {0};
    (void)state;
    begin(&mock);
    rd_kafka_mock_push_request_errors(mock.cluster, MOCK_txn_offset_commit, 1,
                                      RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS);
    assert_int_equal(commit(&mock, 10000).verdict, LOG_VERDICT_aborted);
    hide_ends(&mock);
    const struct log_offset offset = {.input = 0, .partition = 0, .next = 1};
    const struct log_txn txn = {.generation = mock.generation, .offsets = &offset, .n_offsets = 1};
    assert_int_not_equal(log_commit(mock.member, &txn, 1000, &result, &err), BATON_OK);
    show_ends(&mock);
    assert_int_equal(commit(&mock, 10000).verdict, LOG_VERDICT_committed);
    mock_end(&mock);
}

/* Rule 13, the driver's half: what names a partition that is not ours is not sent. */
static void test_a_partition_of_another_is_not_sent(void **state)
{
    struct mock mock;
    struct baton_error err = {0};
    struct log_commit_result result = {0};
    (void)state;
    begin(&mock);
    const struct log_offset offset = {.input = 0, .partition = 7, .next = 1};
    const struct log_txn txn = {.generation = mock.generation, .offsets = &offset, .n_offsets = 1};
    rd_kafka_mock_push_request_errors(mock.cluster, MOCK_add_offsets, 1,
                                      RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH);
    mock_check(log_commit(mock.member, &txn, 10000, &result, &err), &err);
    assert_int_equal(result.verdict, LOG_VERDICT_lost);
    assert_int_equal(commit(&mock, 10000).verdict, LOG_VERDICT_fenced);
    mock_end(&mock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_A12_B07_each_error_has_its_verdict),
        cmocka_unit_test(test_no_right_found_while_sending),
        cmocka_unit_test(test_away_in_a_transaction),
        cmocka_unit_test(test_B01_close_without_brokers),
        cmocka_unit_test(test_old_generation_is_not_sent),
        cmocka_unit_test(test_a_partition_of_another_is_not_sent),
        cmocka_unit_test(test_a_commit_is_none_before_it_is_seen),
        cmocka_unit_test(test_nothing_is_begun_before_an_abort_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
