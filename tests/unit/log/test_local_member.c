/* What only the local log can show of members: slots, beats, bells, and who judges whom. */
#include "tests/unit/log/local_log.h"

#include <poll.h>

/* Polls until an event of that kind comes, at most ten seconds. */
static struct log_event await(struct local_member *member, enum log_event_kind kind)
{
    struct log_event event = {0};
    for (int64_t end_ns = mono_ns() + 10000000000; mono_ns() < end_ns;) {
        OK(log_member_poll(&member->base, &event, err));
        if (event.kind == kind) {
            return event;
        }
        if (event.kind == LOG_EVENT_none) {
            struct pollfd waited = {.fd = log_member_fd(&member->base), .events = POLLIN};
            poll(&waited, 1, 100);
        }
    }
    fail_msg("event %d did not come", (int)kind);
    return event;
}

static void test_slots(void **state)
{
    struct place *place = *state;
    const struct local_log *log = (const struct local_log *)place->log;
    struct boot_id boots[3] = {boot_id_new(), boot_id_new(), boot_id_new()};
    struct slot slots[3];
    int32_t pid = 0;
    for (int i = 0; i < 3; i++) {
        OK(slot_take(log, &boots[i], 1000, &slots[i], err));
        assert_int_equal(slots[i].number, i);
    }
    assert_int_equal(slot_look(log, 1, boots[1].s, &pid), SLOT_alive);
    assert_int_equal(pid, getpid());
    assert_int_equal(slot_look(log, 1, boots[2].s, NULL), SLOT_dead); /* somebody else's */
    slot_free(&slots[1]);
    assert_int_equal(slot_look(log, 1, boots[1].s, &pid), SLOT_dead);
    assert_int_equal(pid, 0);
    OK(slot_take(log, &boots[1], 1000, &slots[1], err)); /* the first free one */
    assert_int_equal(slots[1].number, 1);

    atomic_store(&slots[2].page->beat_ms, mono_now().v - 1001);
    assert_int_equal(slot_look(log, 2, boots[2].s, NULL), SLOT_silent);
    slot_beat(&slots[2]);
    assert_int_equal(slot_look(log, 2, boots[2].s, NULL), SLOT_alive);
    assert_int_equal(slot_look(log, 77, boots[2].s, NULL), SLOT_dead);
    for (int i = 0; i < 3; i++) {
        slot_free(&slots[i]);
    }
}

/* Without a bell (no watches left, or somebody deleted the file) records come all the same. */
static void test_deaf_member(void **state)
{
    struct place *place = *state;
    struct log_event event;
    struct log_batch batch = {0};
    char path[128];
    struct local_member *member = place_member(place, "w", &event);
    OK(log_member_fetch(&member->base, 0, 0, 1, SIZE_MAX, &batch, err));
    snprintf(path, sizeof(path), "%s.d/bells/t.handoff", place->path);
    assert_int_equal(unlink(path), 0);
    OK(log_member_poll(&member->base, &event, err));
    assert_int_equal(member->bell_fd, -1);
    OK(log_member_fetch(&member->base, 0, 0, 1, SIZE_MAX, &batch, err));
    assert_int_equal(batch.count, 0);

    int64_t start_ns = mono_ns();
    place_publish(place, "handoff", 0, "k", "v");
    while (batch.count == 0 && mono_ns() - start_ns < 10000000000) {
        struct pollfd waited = {.fd = log_member_fd(&member->base), .events = POLLIN};
        poll(&waited, 1, 1000);
        OK(log_member_poll(&member->base, &event, err));
        OK(log_member_fetch(&member->base, 0, 0, 1, SIZE_MAX, &batch, err));
    }
    assert_int_equal(batch.count, 1);
    log_batch_free(&batch);
    log_member_close(&member->base, true, 1000);
}

/* An idle member asks the file for nothing between two heartbeats. */
static void test_idle_fetch_reads_nothing(void **state)
{
    struct place *place = *state;
    struct log_event event;
    struct log_batch batch = {0};
    struct local_member *member = place_member(place, "w", &event);
    OK(log_member_fetch(&member->base, 0, 0, 1, SIZE_MAX, &batch, err));
    assert_true(batch.at_end);
    assert_int_equal(member->fresh[0] & 1, 0);
    place_publish(place, "handoff", 0, "k", "v");
    OK(log_member_fetch(&member->base, 0, 0, 1, SIZE_MAX, &batch, err));
    assert_int_equal(batch.count, 0); /* not heard yet: it is the poll that hears */
    OK(log_member_poll(&member->base, &event, err));
    OK(log_member_fetch(&member->base, 0, 0, 1, SIZE_MAX, &batch, err));
    assert_int_equal(batch.count, 1);
    log_batch_free(&batch);
    log_member_close(&member->base, true, 1000);
}

/* Who was stopped himself (a host that slept) removes nobody before his next beat. */
static void test_who_slept_does_not_judge(void **state)
{
    struct place *place = *state;
    struct log_event event;
    struct local_member *a = place_member(place, "a", &event);
    struct log_member_spec spec = {.group = "group",
                                   .worker = "b",
                                   .boot = boot_id_new(),
                                   .inputs = {"handoff", "control"},
                                   .session_ms = 600,
                                   .heartbeat_ms = 100};
    struct log_member *b = NULL;
    OK(log_member_open(place->log, &spec, &b, err));
    await(a, LOG_EVENT_revoked);
    event = await(a, LOG_EVENT_assigned);
    assert_int_equal(event.count, 1);
    event = await((struct local_member *)b, LOG_EVENT_assigned);
    assert_int_equal(event.count, 1);

    usleep(700000); /* both are silent for more than a session */
    struct log_event quiet = {0};
    for (int i = 0; i < 20; i++) { /* polled often, but within one heartbeat */
        OK(log_member_poll(&a->base, &quiet, err));
        assert_int_equal(quiet.kind, LOG_EVENT_none);
    }
    assert_false(a->judges);
    OK(log_member_poll(b, &quiet, err)); /* the other one is heard in time */
    assert_int_equal(quiet.kind, LOG_EVENT_none);

    /* Now only b stays silent: gone after a session. */
    await(a, LOG_EVENT_revoked);
    event = await(a, LOG_EVENT_assigned);
    assert_int_equal(event.count, 2);
    await((struct local_member *)b, LOG_EVENT_lost);
    log_member_close(b, true, 1000);
    log_member_close(&a->base, true, 1000);
}

/* An end of waiting that lies in an earlier life of the host does not keep a place for ever. */
static void test_away_before_the_host_started(void **state)
{
    struct place *place = *state;
    const struct local_log *log = (const struct local_log *)place->log;
    int64_t now = mono_now().v;
    struct group_row row = {.worker = "w", .session_ms = 1000, .away_until = now + 500};
    assert_true(group_row_stays(log, &row, true));
    row.away_until = now - 1;
    assert_false(group_row_stays(log, &row, true));
    row.away_until = now + 100000;
    assert_false(group_row_stays(log, &row, true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOG_TEST(test_slots),
        LOG_TEST(test_deaf_member),
        LOG_TEST(test_idle_fetch_reads_nothing),
        LOG_TEST(test_who_slept_does_not_judge),
        LOG_TEST(test_away_before_the_host_started),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
