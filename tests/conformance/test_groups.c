/* Groups: joining, sharing, leaving, restarting, dying, being silent, having a twin. */
#include "tests/conformance/actor.h"
#include "tests/conformance/suite.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ALL ((1u << PARTITIONS) - 1)

static void test_one_member_has_all(void **state)
{
    struct fixture *f = *state;
    struct log_event event;
    struct log_member *member = join(f, "w1", &event);
    assert_int_equal(event.count, PARTITIONS);
    for (int32_t p = 0; p < PARTITIONS; p++) {
        assert_int_equal(event.partitions[p], p);
    }
    log_member_close(member, true, f->wait_ms);
}

static void test_missing_input(void **state)
{
    struct fixture *f = *state;
    struct log_member_spec spec = fixture_spec(f, "w1");
    struct log_member *member = NULL;
    struct baton_error why = {0};
    spec.inputs[1] = f->missing;
    assert_int_equal(log_member_open(f->log, &spec, &member, &why), BATON_E_topic_missing);
    assert_non_null(strstr(why.text, f->missing));
    assert_null(member);
}

static void test_session_out_of_bounds(void **state)
{
    struct fixture *f = *state;
    struct log_member_spec spec = fixture_spec(f, "w1");
    struct log_member *member = NULL;
    spec.session_ms = 1;
    spec.heartbeat_ms = 1;
    assert_int_equal(log_member_open(f->log, &spec, &member, NULL), BATON_E_bad_config);
    assert_null(member);
}

/* Range: sorted by worker id, the first get one more; both inputs alike (the events have one list).
 */
static void test_one_to_four_members(void **state)
{
    struct fixture *f = *state;
    struct actor a = actor_start(f, "member", "a");
    actor_await_mask(f, &a, 0xf);
    struct actor b = actor_start(f, "member", "b");
    actor_await_mask(f, &a, 0x3);
    actor_await_mask(f, &b, 0xc);
    struct actor c = actor_start(f, "member", "c");
    actor_await_mask(f, &a, 0x3);
    actor_await_mask(f, &b, 0x4);
    actor_await_mask(f, &c, 0x8);
    struct actor d = actor_start(f, "member", "d");
    actor_await_mask(f, &a, 0x1);
    actor_await_mask(f, &b, 0x2);
    actor_await_mask(f, &c, 0x4);
    actor_await_mask(f, &d, 0x8);

    /* Everybody knows the same generation, and was told by revoked and assigned in turn. */
    AWAIT(f, atomic_load(&a.shared->told_generation) == atomic_load(&d.shared->told_generation));
    assert_int_equal(atomic_load(&a.shared->n_assigned), atomic_load(&a.shared->n_revoked) + 1);
    assert_int_equal(atomic_load(&a.shared->n_lost), 0);

    actor_end(f, &a, ACTOR_leave);
    actor_await_mask(f, &b, 0x3);
    actor_end(f, &b, ACTOR_leave);
    actor_end(f, &c, ACTOR_leave);
    actor_await_mask(f, &d, ALL);
    actor_end(f, &d, ACTOR_leave);
}

/* FIELD A24: more members than partitions; who has none is a healthy member. */
static void test_A24_more_members_than_partitions(void **state)
{
    struct fixture *f = *state;
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    struct actor actors[5];
    for (int i = 0; i < 5; i++) {
        actors[i] = actor_start(f, "member", names[i]);
        AWAIT(f, atomic_load(&actors[i].shared->n_assigned) > 0);
    }
    for (int i = 0; i < 4; i++) {
        actor_await_mask(f, &actors[i], 1u << i);
    }
    actor_await_mask(f, &actors[4], 0);
    actor_kill(&actors[1]);
    actor_done(&actors[1]);
    actor_await_mask(f, &actors[4], 0x8);
    for (int i = 0; i < 5; i++) {
        if (i != 1) {
            actor_end(f, &actors[i], ACTOR_leave);
        }
    }
}

static void test_revoked_then_assigned(void **state)
{
    struct fixture *f = *state;
    struct log_event event;
    struct log_member *member = join(f, "a", &event);
    int64_t first = event.generation;
    struct actor b = actor_start(f, "member", "b");
    event = await_event(f, member, LOG_EVENT_revoked);
    assert_int_equal(event.generation, first);
    assert_int_equal(event.count, PARTITIONS);
    event = await_event(f, member, LOG_EVENT_assigned);
    assert_true(event.generation > first);
    assert_int_equal(event.count, 2);
    assert_int_equal(event.partitions[0], 0);
    actor_await_mask(f, &b, 0xc);
    actor_end(f, &b, ACTOR_leave);
    event = await_event(f, member, LOG_EVENT_revoked);
    event = await_event(f, member, LOG_EVENT_assigned);
    assert_int_equal(event.count, PARTITIONS);
    log_member_close(member, true, f->wait_ms);
}

/* A clean restart within the session: no rebalance for the others, the same partitions back. */
static void test_static_restart(void **state)
{
    struct fixture *f = *state;
    struct actor a = actor_start(f, "member", "a");
    actor_await_mask(f, &a, ALL);
    struct actor b = actor_start(f, "member", "b");
    actor_await_mask(f, &a, 0x3);
    actor_await_mask(f, &b, 0xc);
    int assigned = atomic_load(&a.shared->n_assigned);
    actor_end(f, &b, ACTOR_close);
    b = actor_start(f, "member", "b");
    actor_await_mask(f, &b, 0xc);
    assert_int_equal(atomic_load(&a.shared->n_assigned), assigned);
    assert_int_equal(atomic_load(&a.shared->mask), 0x3);
    assert_int_equal(atomic_load(&a.shared->told_generation),
                     atomic_load(&b.shared->told_generation));
    actor_end(f, &b, ACTOR_leave);
    actor_end(f, &a, ACTOR_leave);
}

/* Who left comes back under its id before a session is over, alone or beside others. */
static void test_left_and_back(void **state)
{
    struct fixture *f = *state;
    struct actor a = actor_start(f, "member", "a");
    actor_await_mask(f, &a, ALL);
    actor_end(f, &a, ACTOR_leave);
    a = actor_start(f, "member", "a");
    actor_await_mask(f, &a, ALL);
    struct actor b = actor_start(f, "member", "b");
    actor_await_mask(f, &a, 0x3);
    actor_await_mask(f, &b, 0xc);
    actor_end(f, &b, ACTOR_leave);
    actor_await_mask(f, &a, ALL);
    b = actor_start(f, "member", "b");
    actor_await_mask(f, &b, 0xc);
    actor_await_mask(f, &a, 0x3);
    actor_end(f, &a, ACTOR_leave);
    actor_await_mask(f, &b, ALL);
    a = actor_start(f, "member", "a");
    actor_await_mask(f, &a, 0x3);
    actor_await_mask(f, &b, 0xc);
    actor_end(f, &b, ACTOR_leave);
    actor_end(f, &a, ACTOR_leave);
}

/* Who leaves while it is still joining leaves all the same: the others have everything again long
 * before its session is over, which here is longer than the test may take. */
static void test_left_while_joining(void **state)
{
    struct fixture *f = *state;
    const int64_t session_ms = f->session_ms;
    struct actor b = actor_start(f, "member", "b");
    actor_await_mask(f, &b, ALL);
    f->session_ms = 20000;
    for (int polls = 0; polls < 48; polls = 2 * polls + 1) {
        struct log_member_spec spec = fixture_spec(f, "a");
        struct log_member *member = NULL;
        struct log_event event;
        OK(log_member_open(f->log, &spec, &member, &err));
        for (int i = 0; i < polls; i++) {
            OK(log_member_poll(member, &event, &err));
            usleep(2000);
        }
        log_member_close(member, true, f->wait_ms);
        const int64_t before_ns = mono_ns();
        int64_t since_ns =
            before_ns; /* with all of them for three heartbeats: nothing comes after */
        while (mono_ns() - since_ns < 3 * f->heartbeat_ms * 1000000) {
            if (atomic_load(&b.shared->mask) != ALL) {
                since_ns = mono_ns();
            }
            assert_true(mono_ns() - before_ns < f->session_ms * 700000);
            usleep(2000);
        }
    }
    f->session_ms = session_ms;
    actor_end(f, &b, ACTOR_leave);
}

/* Its place is kept for a session and no longer. */
static void test_static_member_stays_away(void **state)
{
    struct fixture *f = *state;
    struct actor a = actor_start(f, "member", "a");
    struct actor b = actor_start(f, "member", "b");
    actor_await_mask(f, &a, 0x3);
    actor_await_mask(f, &b, 0xc);
    int64_t before_ns = mono_ns();
    actor_end(f, &b, ACTOR_close);
    actor_await_mask(f, &a, ALL);
    assert_true(mono_ns() - before_ns >= f->session_ms * 900000);
    actor_end(f, &a, ACTOR_leave);
}

static void test_kill_and_takeover(void **state)
{
    struct fixture *f = *state;
    struct actor a = actor_start(f, "member", "a");
    struct actor b = actor_start(f, "member", "b");
    actor_await_mask(f, &a, 0x3);
    actor_await_mask(f, &b, 0xc);
    int64_t generation = atomic_load(&b.shared->told_generation);
    actor_kill(&a);
    actor_done(&a);
    actor_await_mask(f, &b, ALL);
    assert_true(atomic_load(&b.shared->told_generation) > generation);
    assert_int_equal(atomic_load(&b.shared->n_lost), 0);

    /* The dead one comes again: an ordinary join. */
    a = actor_start(f, "member", "a");
    actor_await_mask(f, &a, 0x3);
    actor_await_mask(f, &b, 0xc);
    actor_end(f, &a, ACTOR_leave);
    actor_end(f, &b, ACTOR_leave);
}

static void test_kill_alone_and_restart(void **state)
{
    struct fixture *f = *state;
    struct actor a = actor_start(f, "member", "a");
    actor_await_mask(f, &a, ALL);
    actor_kill(&a);
    actor_done(&a);
    a = actor_start(f, "member", "a");
    actor_await_mask(f, &a, ALL);
    actor_end(f, &a, ACTOR_leave);
}

static void test_stopped_for_a_session(void **state)
{
    struct fixture *f = *state;
    struct actor a = actor_start(f, "member", "a");
    struct actor b = actor_start(f, "member", "b");
    actor_await_mask(f, &a, 0x3);
    actor_await_mask(f, &b, 0xc);
    int64_t old = atomic_load(&a.shared->told_generation);
    assert_int_equal(actor_commit(f, &a, old, 0, "before", 1), LOG_VERDICT_committed);
    actor_stop(&a);
    actor_await_mask(f, &b, ALL);
    actor_continue(&a);
    AWAIT(f, atomic_load(&a.shared->n_lost) == 1);
    actor_await_mask(f, &a, 0x3); /* it has joined again */
    actor_await_mask(f, &b, 0xc);
    assert_int_equal(actor_commit(f, &a, old, 0, "stale", 2), LOG_VERDICT_lost);
    actor_end(f, &a, ACTOR_leave);
    actor_end(f, &b, ACTOR_leave);
}

/* Lives, but its engine hangs: removed like a stopped one; its commit is the first to find out. */
static void test_hung_for_a_session(void **state)
{
    struct fixture *f = *state;
    struct actor a = actor_start(f, "member", "a");
    struct actor b = actor_start(f, "member", "b");
    actor_await_mask(f, &a, 0x3);
    actor_await_mask(f, &b, 0xc);
    int64_t old = atomic_load(&a.shared->told_generation);
    actor_do(f, &a, ACTOR_idle);
    actor_await_mask(f, &b, ALL);
    assert_int_equal(actor_commit(f, &a, old, 0, "stale", 1), LOG_VERDICT_lost);
    assert_int_equal(count_all(f, f->turns), 0);
    actor_kill(&a);
    actor_done(&a);
    actor_end(f, &b, ACTOR_leave);
}

/* FIELD B04: the older of two processes with one id ends, and names the id. */
static void test_B04_twin(void **state)
{
    struct fixture *f = *state;
    struct log_event event;
    struct baton_error why = {0};
    struct log_member *old = join(f, "same", &event);
    int64_t generation = event.generation;
    struct actor new = actor_start(f, "member", "same");
    actor_await_mask(f, &new, ALL);

    struct log_record record = record_of(f->turns, 0, "turn", "of the older");
    struct log_offset offset = {.partition = 0, .next = 7};
    struct log_txn txn = {.generation = generation,
                          .records = &record,
                          .n_records = 1,
                          .offsets = &offset,
                          .n_offsets = 1};
    struct log_commit_result result = {0};
    OK(log_commit(old, &txn, f->wait_ms, &result, &err));
    assert_true(result.verdict == LOG_VERDICT_fenced || result.verdict == LOG_VERDICT_lost);
    assert_int_equal(count_all(f, f->turns), 0);

    int64_t end_ns = mono_ns() + f->wait_ms * 1000000;
    baton_code rc;
    while ((rc = log_member_poll(old, &event, &why)) == BATON_OK && mono_ns() < end_ns) {
        usleep(1000);
    }
    assert_int_equal(rc, BATON_E_twin);
    assert_non_null(strstr(why.text, "same"));
    log_member_close(old, true, f->wait_ms); /* takes nothing away from the newer */
    assert_int_equal(
        actor_commit(f, &new, atomic_load(&new.shared->told_generation), 0, "newer", 1),
        LOG_VERDICT_committed);
    actor_end(f, &new, ACTOR_leave);
}

static int64_t offset_of_handoff(const struct fixture *f, int32_t partition)
{
    int64_t offset = 0;
    OK(log_group_offset(f->log, f->group, f->handoff, partition, &offset, &err));
    return offset;
}

static void test_group_from_outside(void **state)
{
    struct fixture *f = *state;
    struct log_group_member *members = NULL;
    size_t count = 99;
    OK(log_group_members(f->log, f->group, &members, &count, &err));
    assert_int_equal(count, 0);
    free(members);
    assert_int_equal(offset_of_handoff(f, 0), LOG_OFFSET_NONE);

    struct actor b = actor_start(f, "member", "b");
    struct actor a = actor_start(f, "member", "a");
    actor_await_mask(f, &a, 0x3);
    actor_await_mask(f, &b, 0xc);
    OK(log_group_members(f->log, f->group, &members, &count, &err));
    assert_int_equal(count, 2);
    assert_string_equal(members[0].worker, "a");
    assert_string_equal(members[1].worker, "b");
    assert_int_equal(members[1].count, 2);
    assert_int_equal(members[1].partitions[0], 2);
    assert_int_equal(members[1].partitions[1], 3);
    free(members);
    assert_int_equal(actor_commit(f, &a, atomic_load(&a.shared->told_generation), 0, "v", 42),
                     LOG_VERDICT_committed);
    AWAIT(f, offset_of_handoff(f, 0) == 42); /* not waiting for what is being committed */
    assert_int_equal(offset_of_handoff(f, 1), LOG_OFFSET_NONE);
    actor_end(f, &a, ACTOR_leave);
    actor_end(f, &b, ACTOR_leave);
}

static void test_fence_of_the_dead(void **state)
{
    struct fixture *f = *state;
    struct actor a = actor_start(f, "member", "a");
    actor_await_mask(f, &a, ALL);
    assert_int_equal(actor_commit(f, &a, atomic_load(&a.shared->told_generation), 0, "v", 1),
                     LOG_VERDICT_committed);
    actor_kill(&a);
    actor_done(&a);
    OK(log_fence(f->log, f->group, "a", (const char *[]){f->turns, f->outcomes}, 2, f->wait_ms,
                 &err));
    OK(log_fence(f->log, f->group, "never-was", (const char *[]){f->turns, f->outcomes}, 2,
                 f->wait_ms, &err));
    struct log_event event;
    struct log_member *b = join(f, "b", &event);
    int64_t offsets[LOG_INPUTS][LOG_PARTITIONS_MAX];
    OK(log_member_committed(b, event.partitions, event.count, f->wait_ms, offsets, &err));
    log_member_close(b, true, f->wait_ms);
}

/* What was published while nobody looked is fetched; the rest of a queue stays in the log. */
static void test_fetch_is_back_pressure(void **state)
{
    struct fixture *f = *state;
    struct log_event event;
    struct log_batch batch = {0};
    for (int i = 0; i < 10; i++) {
        publish_one(f, f->handoff, 1, "k", "0123456789");
    }
    publish_one(f, f->control, 1, "k", "control");
    struct log_member *member = join(f, "w", &event);
    fetch_some(f, member, 0, 1, 3, &batch);
    assert_int_equal(batch.count, 3);
    assert_string_equal(batch.records[0].topic, f->handoff);
    assert_int_equal(batch.records[0].partition, 1);
    assert_false(batch.at_end);
    assert_int_equal(batch.next_offset, batch.records[2].offset + 1);
    int64_t last = batch.records[2].offset;

    /* About bytes_max bytes, at least one record. */
    OK(log_member_fetch(member, 0, 1, 100, 1, &batch, &err));
    assert_int_equal(batch.count, 1);
    assert_true(batch.records[0].offset > last);
    fetch_some(f, member, 0, 1, 6, &batch);
    assert_int_equal(batch.count, 6);
    for (int tries = 0; !batch.at_end && tries < 1000; tries++) {
        OK(log_member_poll(member, &event, &err));
        OK(log_member_fetch(member, 0, 1, 100, SIZE_MAX, &batch, &err));
        assert_int_equal(batch.count, 0);
    }
    assert_true(batch.at_end);
    int64_t end = batch.next_offset;

    /* The other input has a queue of its own, other partitions are empty. */
    fetch_some(f, member, 1, 1, 1, &batch);
    assert_true(value_is(&batch.records[0], "control"));
    OK(log_member_fetch(member, 0, 0, 100, SIZE_MAX, &batch, &err));
    assert_int_equal(batch.count, 0);

    int64_t offset = publish_one(f, f->handoff, 1, "k", "later");
    assert_true(offset >= end);
    fetch_some(f, member, 0, 1, 1, &batch);
    assert_int_equal(batch.records[0].offset, offset);

    OK(log_member_seek(member, 0, 1, last, &err));
    fetch_some(f, member, 0, 1, 8, &batch);
    assert_int_equal(batch.records[0].offset, last);
    log_batch_free(&batch);
    log_member_close(member, true, f->wait_ms);
}

/* The descriptor wakes who waits for a record of another process. */
static void test_descriptor_wakes(void **state)
{
    struct fixture *f = *state;
    struct log_event event;
    struct log_batch batch = {0};
    struct log_member *member = join(f, "w", &event);
    OK(log_member_fetch(member, 0, 2, 1, SIZE_MAX, &batch, &err));
    publish_one(f, f->handoff, 2, "k", "v");
    struct pollfd waited = {.fd = log_member_fd(member), .events = POLLIN};
    assert_int_equal(poll(&waited, 1, (int)f->wait_ms), 1);
    fetch_some(f, member, 0, 2, 1, &batch);
    log_batch_free(&batch);
    log_member_close(member, true, f->wait_ms);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int run_groups(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_one_member_has_all),
        TEST(test_missing_input),
        TEST(test_session_out_of_bounds),
        TEST(test_fetch_is_back_pressure),
        TEST(test_descriptor_wakes),
        TEST(test_revoked_then_assigned),
        TEST(test_one_to_four_members),
        TEST(test_A24_more_members_than_partitions),
        TEST(test_static_restart),
        TEST(test_left_and_back),
        TEST(test_static_member_stays_away),
        TEST(test_kill_alone_and_restart),
        TEST(test_left_while_joining),
        TEST(test_kill_and_takeover),
        TEST(test_stopped_for_a_session),
        TEST(test_hung_for_a_session),
        TEST(test_B04_twin),
        TEST(test_group_from_outside),
        TEST(test_fence_of_the_dead),
    };
    return cmocka_run_group_tests_name("groups", tests, NULL, NULL);
}
