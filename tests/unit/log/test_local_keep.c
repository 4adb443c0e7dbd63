/* Housekeeping: aged records and tombstones go, everything else stays. */
#include "tests/unit/log/local_log.h"

#define DAY_MS 86400000

static int keep_teardown(void **state)
{
    clock_test_set((struct wall_ms){0}, (struct mono_ms){0});
    return place_teardown(state);
}

static void at(int64_t wall)
{
    clock_test_set((struct wall_ms){wall}, (struct mono_ms){0});
}

/* Runs until nothing is left to do; the number of calls. */
static int keep_all(struct place *place)
{
    struct local_conn *conn = NULL;
    int64_t cursor = 0;
    bool more = true;
    int calls = 0;
    OK(local_conn_take((struct local_log *)place->log, &conn, err));
    while (more) {
        OK(local_keep(conn, &cursor, &more, err));
        calls++;
    }
    local_conn_give(conn);
    return calls;
}

static void test_aged_records_go(void **state)
{
    struct place *place = *state;
    int64_t start = wall_now().v;
    int64_t low = 0;
    int64_t high = 0;
    at(start);
    place_publish(place, "outcomes", 0, "k", "old");
    place_publish(place, "outcomes", 0, "k", "old");
    place_publish(place, "handoff", 0, "k", "old"); /* without limit: stays */
    at(start + 70000);
    place_publish(place, "outcomes", 0, "k", "young");
    place_publish(place, "outcomes", 1, "k", "young");
    keep_all(place);
    assert_int_equal(place_count(place, "outcomes", 0), 1);
    assert_int_equal(place_count(place, "outcomes", 1), 1);
    assert_int_equal(place_count(place, "handoff", 0), 1);
    OK(log_watermarks(place->log, "outcomes", 0, &low, &high, err));
    assert_int_equal(low, 2);
    assert_int_equal(high, 3);

    /* Not twice in a minute, whoever asks. */
    at(start + 70000 + 30000);
    keep_all(place);
    assert_int_equal(place_count(place, "outcomes", 0), 1);
    at(start + 70000 + 60000);
    keep_all(place);
    assert_int_equal(place_count(place, "outcomes", 0), 0);
    OK(log_watermarks(place->log, "outcomes", 0, &low, &high, err));
    assert_int_equal(low, 3);
    assert_int_equal(high, 3);
}

/* A clock that was set back does not stop it, and does not delete what only looks old. */
static void test_clock_set_back(void **state)
{
    struct place *place = *state;
    int64_t start = wall_now().v;
    at(start);
    place_publish(place, "outcomes", 0, "k", "young");
    at(start - DAY_MS);
    place_publish(place, "outcomes", 0, "k", "younger");
    keep_all(place);
    assert_int_equal(place_count(place, "outcomes", 0), 2);
}

static void test_tombstones_go(void **state)
{
    struct place *place = *state;
    int64_t start = wall_now().v;
    at(start);
    place_publish(place, "turns", 0, "a", "state");
    place_publish(place, "turns", 0, "a", NULL);
    place_publish(place, "turns", 0, "b", "state");
    place_publish(place, "turns", 1, "c", NULL);
    assert_int_equal(place_count(place, "turns", 0), 2);
    at(start + 60500);
    place_publish(place, "turns", 1, "d", NULL);
    at(start + 61000);
    keep_all(place);
    assert_int_equal(place_count(place, "turns", 0), 1); /* b's state, however old */
    assert_int_equal(place_count(place, "turns", 1), 1); /* d's tombstone is young */
}

static void test_bounded_work(void **state)
{
    struct place *place = *state;
    enum { N = 5000 };
    struct log_publisher *publisher = NULL;
    struct log_record *records = calloc(N, sizeof(*records));
    int64_t start = wall_now().v;
    at(start);
    for (int i = 0; i < N; i++) {
        records[i] =
            (struct log_record){.topic = "outcomes", .partition = 0, .value = "v", .value_len = 1};
    }
    OK(log_publisher_open(place->log, &publisher, err));
    OK(log_publish(publisher, records, N, 5000, err));
    log_publisher_close(publisher);
    free(records);
    at(start + 70000);
    assert_true(keep_all(place) >= 3);
    assert_int_equal(place_count(place, "outcomes", 0), 0);
}

/* A member does it by itself. */
static void test_members_keep(void **state)
{
    struct place *place = *state;
    struct log_event event;
    int64_t start = wall_now().v;
    at(start);
    place_publish(place, "outcomes", 0, "k", "old");
    at(start + 70000);
    struct local_member *member = place_member(place, "w", &event);
    int64_t end_ns = mono_ns() + 10000000000;
    while (place_count(place, "outcomes", 0) > 0 && mono_ns() < end_ns) {
        OK(log_member_poll(&member->base, &event, err));
        usleep(1000);
    }
    assert_int_equal(place_count(place, "outcomes", 0), 0);
    log_member_close(&member->base, true, 1000);
}

/* Another cleanup brings what is there under it. */
static void test_cleanup_is_changed(void **state)
{
    struct place *place = *state;
    struct log_topic topic = {0};
    for (int i = 0; i < 10; i++) {
        place_publish(place, "handoff", 0, i % 2 == 0 ? "a" : "b", "v");
    }
    place_publish(place, "handoff", 0, NULL, "no key");
    OK(log_topic_describe(place->log, "handoff", &topic, err));
    topic.cleanup = LOG_CLEANUP_compact;
    OK(log_topic_alter(place->log, &topic, err));
    assert_int_equal(place_count(place, "handoff", 0), 2);
    place_publish(place, "handoff", 0, "a", "newest");
    assert_int_equal(place_count(place, "handoff", 0), 2);
    topic.cleanup = LOG_CLEANUP_delete;
    OK(log_topic_alter(place->log, &topic, err));
    place_publish(place, "handoff", 0, "a", "beside");
    assert_int_equal(place_count(place, "handoff", 0), 3);
}

#define KEEP_TEST(name) cmocka_unit_test_setup_teardown(name, log_setup, keep_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        KEEP_TEST(test_aged_records_go), KEEP_TEST(test_clock_set_back),
        KEEP_TEST(test_tombstones_go),   KEEP_TEST(test_bounded_work),
        KEEP_TEST(test_members_keep),    KEEP_TEST(test_cleanup_is_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
