/* Housekeeping: aged records and tombstones go, everything else stays. */
#include "tests/unit/log/local_log.h"

#define DAY_MS 86400000

static int keep_teardown(void **state)
{
    clock_test_set((struct wall_ms){0}, (struct mono_ms){0});
    return place_teardown(state);
}

static int64_t begun_wall;
static int64_t begun_mono;

/* Time has passed since the test began, by the wall clock and by the monotonic one. */
static void passed(int64_t wall_ms, int64_t mono_ms)
{
    clock_test_set((struct wall_ms){begun_wall + wall_ms}, (struct mono_ms){begun_mono + mono_ms});
}

static void at(int64_t wall)
{
    passed(wall - begun_wall, wall - begun_wall);
}

static int keep_setup(void **state)
{
    begun_wall = wall_now().v;
    begun_mono = mono_now().v;
    passed(0, 0);
    return log_setup(state);
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
    int64_t start = begun_wall;
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

static int64_t log_now(struct log *log)
{
    struct wall_ms now = {0};
    assert_true(log_time(log, &now));
    return now.v - begun_wall;
}

/* A clock that jumps ahead, or of one process that differs, makes nothing old; what has passed does. */
static void test_clock_ahead(void **state)
{
    struct place *place = *state;
    struct log *other = NULL;
    passed(0, 0);
    place_publish(place, "outcomes", 0, "k", "young");
    passed(DAY_MS, 1000);
    assert_int_equal(log_now(place->log), 1000);
    keep_all(place);
    assert_int_equal(place_count(place, "outcomes", 0), 1);
    OK(log_open(&place->config, &other, err));
    assert_int_equal(log_now(other), 1000);
    log_close(other);
    passed(DAY_MS + 71000, 71000);
    keep_all(place);
    assert_int_equal(place_count(place, "outcomes", 0), 0);
}

/* One that goes back takes the log's time back with it, for all; what was dated before is younger. */
static void test_clock_back_for_all(void **state)
{
    struct place *place = *state;
    struct log *other = NULL;
    passed(0, 0);
    OK(log_open(&place->config, &other, err));
    passed(-DAY_MS, 0);
    place_publish(place, "outcomes", 0, "k", "young");
    passed(0, 0);
    assert_int_equal(log_now(other), -DAY_MS);
    log_close(other);
}

/* Nothing says what the clock did while the host was down: the number is made anew. */
static void test_host_has_started_anew(void **state)
{
    struct place *place = *state;
    char path[100];
    passed(0, 0);
    assert_int_equal(log_now(place->log), 0);
    log_close(place->log);
    snprintf(path, sizeof(path), "%s.d/clock", place->path);
    FILE *file = fopen(path, "re+");
    assert_non_null(file);
    assert_int_equal(fseek(file, 4, SEEK_SET), 0);
    assert_true(fputs("another boot", file) >= 0);
    fclose(file);
    passed(DAY_MS, 1000);
    OK(log_open(&place->config, &place->log, err));
    assert_int_equal(log_now(place->log), DAY_MS);
}

/* A clock that was set back does not stop it, and does not delete what only looks old. */
static void test_clock_set_back(void **state)
{
    struct place *place = *state;
    int64_t start = begun_wall;
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
    int64_t start = begun_wall;
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
    int64_t start = begun_wall;
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
    int64_t ms = 70000;
    passed(0, 0);
    place_publish(place, "outcomes", 0, "k", "old");
    passed(ms, ms);
    struct local_member *member = place_member(place, "w", &event);
    int64_t end_ns = mono_ns() + 10000000000;
    while (place_count(place, "outcomes", 0) > 0 && mono_ns() < end_ns) {
        ms += 10; /* it beats */
        passed(ms, ms);
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

#define KEEP_TEST(name) cmocka_unit_test_setup_teardown(name, keep_setup, keep_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        KEEP_TEST(test_aged_records_go),       KEEP_TEST(test_clock_set_back),
        KEEP_TEST(test_tombstones_go),         KEEP_TEST(test_bounded_work),
        KEEP_TEST(test_members_keep),          KEEP_TEST(test_cleanup_is_changed),
        KEEP_TEST(test_clock_ahead),           KEEP_TEST(test_clock_back_for_all),
        KEEP_TEST(test_host_has_started_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
