/* What is said of workers that take nothing, and of attempts whose end is not told: on a driver that shows one
 * handoff, and a group that can go on between two looks. */
#include "tests/unit/producer/host.h"

#include "common/log/batch.h"
#include "common/log/driver.h"
#include "topics/service_view.h"

#define AN_HOUR_MS 3600000

static const char id_a[] = "aaaaaa00000000000000000000000001";
static const struct log_driver_ops fake_ops;
static int looks;    /* how often the group was asked where it stands */
static int taken_at; /* from that question on it has taken the handoff in */

static baton_code topic_describe(struct log *log, const char *name, struct log_topic *ret_topic,
                                 struct baton_error *err)
{
    (void)log;
    (void)err;
    *ret_topic = (struct log_topic){.name = name, .partitions = 1};
    return BATON_OK;
}

/* The handoff, and empty turn logs. */
static int64_t end_of(const char *topic)
{
    return strstr(topic, "handoff") != NULL ? 1 : 0;
}

static baton_code watermarks(struct log *log, const char *topic, int32_t partition,
                             int64_t *ret_low, int64_t *ret_high, struct baton_error *err)
{
    (void)log;
    (void)partition;
    (void)err;
    *ret_low = 0;
    *ret_high = end_of(topic);
    return BATON_OK;
}

static baton_code reader_open(struct log *log, const char *topic, int32_t partition, int64_t from,
                              enum log_isolation isolation, struct log_reader **ret_reader,
                              struct baton_error *err)
{
    struct log_reader *reader = calloc(1, sizeof(*reader));
    (void)log;
    (void)topic;
    (void)partition;
    (void)isolation;
    (void)err;
    assert_int_equal(from, 0);
    reader->ops = &fake_ops;
    *ret_reader = reader;
    return BATON_OK;
}

static void reader_close(struct log_reader *reader)
{
    free(reader);
}

static baton_code reader_next(struct log_reader *reader, size_t max, int64_t timeout_ms,
                              struct log_batch *batch, struct baton_error *err)
{
    bool damaged = false;
    (void)reader;
    (void)max;
    (void)timeout_ms;
    (void)err;
    assert_true(batch_begin(batch, "t", 0));
    assert_true(batch_add(batch, 0, (struct wall_ms){wall_now().v - AN_HOUR_MS}, id_a, 32, "x", 1,
                          NULL, 0, &damaged));
    batch->next_offset = 1;
    batch->at_end = true;
    return BATON_OK;
}

static baton_code group_offset(struct log *log, const char *group, const char *topic,
                               int32_t partition, int64_t *ret_offset, struct baton_error *err)
{
    (void)log;
    (void)group;
    (void)topic;
    (void)partition;
    (void)err;
    *ret_offset = looks++ >= taken_at ? 1 : LOG_OFFSET_NONE;
    return BATON_OK;
}

/* One worker, which has the one partition. */
static baton_code group_members(struct log *log, const char *group, int64_t timeout_ms,
                                struct log_group_member **ret_members, size_t *ret_count,
                                struct baton_error *err)
{
    (void)log;
    (void)group;
    (void)timeout_ms;
    (void)err;
    *ret_members = calloc(1, sizeof(**ret_members));
    assert_non_null(*ret_members);
    (*ret_members)[0] = (struct log_group_member){.worker = "w1", .count = 1};
    *ret_count = 1;
    return BATON_OK;
}

static const struct log_driver_ops fake_ops = {
    .name = "fake",
    .replaces_keys = true,
    .topic_describe = topic_describe,
    .watermarks = watermarks,
    .reader_open = reader_open,
    .reader_close = reader_close,
    .reader_next = reader_next,
    .group_members = group_members,
    .group_offset = group_offset,
};

static bool untaken_if_taken_at(int look)
{
    struct host host;
    struct log log = {.ops = &fake_ops};
    struct service_view view;
    host_open(&host, HOST_SERVICES);
    looks = 0;
    taken_at = look;
    assert_int_equal(
        service_view_read(&log, host.config, &host.config->services[0], true, &view, NULL),
        BATON_OK);
    const bool untaken = service_view_untaken(&view);
    assert_true(untaken == service_view_stalled(&view));
    assert_int_equal(view.lag, untaken ? 1 : 0);
    service_view_done(&view);
    host_close(&host);
    return untaken;
}

/* Workers that have just begun own what waited while they were away; and what waited may be finished before the
 * turn logs are read. Only what nobody takes in while it is looked at stalls. */
static void test_what_is_taken_meanwhile_does_not_stall(void **state)
{
    (void)state;
    assert_false(untaken_if_taken_at(0));
    assert_false(untaken_if_taken_at(1)); /* while the turn logs were read */
    assert_false(untaken_if_taken_at(2)); /* soon */
    assert_true(untaken_if_taken_at(100));
    assert_in_range(looks, 2, 8);
}

/* A worker that is back has its time, where the log shows that it is: an attempt of a younger boot. */
static void test_who_is_back_has_time_to_tell_an_end(void **state)
{
    (void)state;
    const int64_t now = wall_now().v;
    struct config_service service = {.deadline_ms = 60000};
    struct log_group_member workers[] = {{.worker = "w1", .count = 1}};
    struct service_turn running[] = {{.state = TURN_running,
                                      .worker = plain_id_of("w1"),
                                      .boot = {"00000000000000000000000000000001"},
                                      .since = {now - AN_HOUR_MS}},
                                     {.state = TURN_running,
                                      .worker = plain_id_of("w1"),
                                      .boot = {"00000000000000000000000000000002"},
                                      .since = {now - 10000}}};
    struct service_view view = {
        .service = &service, .workers = workers, .n_workers = 1, .running = running};
    view.n_running = 1;
    assert_true(service_view_overdue(&view, &running[0]));
    assert_int_equal(service_view_stop(&view, &running[0]).v, now - AN_HOUR_MS + 60000);
    view.n_running = 2;
    assert_false(service_view_overdue(&view, &running[0]));
    running[1].since.v = now - AN_HOUR_MS / 2; /* long enough */
    assert_true(service_view_overdue(&view, &running[0]));
    running[1].since.v = now - 10000;
    running[1].boot = running[0].boot; /* it never was away */
    assert_true(service_view_overdue(&view, &running[0]));
    running[1].boot.s[0] = '9';
    running[1].worker = plain_id_of("w2");
    assert_true(service_view_overdue(&view, &running[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_taken_meanwhile_does_not_stall),
        cmocka_unit_test(test_who_is_back_has_time_to_tell_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
