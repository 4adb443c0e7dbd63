/* A member's transactions: all or nothing, and only from who owns what they name. */
#include "tests/conformance/actor.h"
#include "tests/conformance/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct log_commit_result commit(const struct fixture *f, struct log_member *member,
                                       const struct log_txn *txn)
{
    struct log_commit_result result = {0};
    OK(log_commit(member, txn, f->wait_ms, &result, &err));
    return result;
}

/* DESIGN section 4: records of several topics and offsets become visible together. */
static void test_commit_is_one(void **state)
{
    struct fixture *f = *state;
    struct log_event event;
    struct log_batch batch = {0};
    struct log_member *member = join(f, "w", &event);
    struct log_record records[] = {record_of(f->turns, 1, "turn", "claimed"),
                                   record_of(f->outcomes, LOG_PARTITION_BY_KEY, "turn", "claimed"),
                                   record_of(f->turns, 2, "other", "claimed")};
    struct log_offset offsets[] = {{.input = 0, .partition = 1, .next = 5},
                                   {.input = 1, .partition = 1, .next = 6},
                                   {.input = 0, .partition = 2, .next = 7}};
    struct log_txn txn = {.generation = event.generation,
                          .records = records,
                          .n_records = 3,
                          .offsets = offsets,
                          .n_offsets = 3};
    struct log_commit_result result = commit(f, member, &txn);
    assert_int_equal(result.verdict, LOG_VERDICT_committed);
    assert_int_equal(result.culprit, -1);
    assert_int_equal(records[1].partition, log_partition_of("turn", 4, PARTITIONS));

    read_all(f, f->turns, 1, 0, &batch);
    assert_int_equal(batch.count, 1);
    assert_int_equal(batch.records[0].offset, records[0].offset);
    assert_int_equal(count_all(f, f->outcomes), 1);

    /* Who wrote it is told what it was dated with, and the log's time goes on from there. */
    struct wall_ms now = {0};
    assert_int_equal(batch.records[0].at.v, records[0].at.v);
    assert_true(log_time(f->log, &now));
    assert_in_range(now.v, records[0].at.v - 1000, records[0].at.v + 60000);

    int64_t committed[LOG_INPUTS][LOG_PARTITIONS_MAX];
    OK(log_member_committed(member, event.partitions, event.count, f->wait_ms, committed, &err));
    assert_int_equal(committed[0][0], LOG_OFFSET_NONE);
    assert_int_equal(committed[0][1], 5);
    assert_int_equal(committed[1][1], 6);
    assert_int_equal(committed[0][2], 7);
    assert_int_equal(committed[1][2], LOG_OFFSET_NONE);

    /* Offsets alone: how an idle group moves on. Unchanged ones are as good. */
    txn.n_records = 0;
    assert_int_equal(commit(f, member, &txn).verdict, LOG_VERDICT_committed);
    log_batch_free(&batch);
    log_member_close(member, true, f->wait_ms);
}

/* The next owner finds what the last one committed (rule 5). */
static void test_offsets_pass_to_the_next(void **state)
{
    struct fixture *f = *state;
    struct log_event event;
    int64_t committed[LOG_INPUTS][LOG_PARTITIONS_MAX];
    struct actor a = actor_start(f, "member", "a");
    actor_await_mask(f, &a, 0xf);
    assert_int_equal(actor_commit(f, &a, atomic_load(&a.shared->told_generation), 3, "v", 11),
                     LOG_VERDICT_committed);
    actor_kill(&a);
    actor_done(&a);
    struct log_member *b = join(f, "b", &event);
    OK(log_member_committed(b, event.partitions, event.count, f->wait_ms, committed, &err));
    for (size_t i = 0; i < event.count; i++) {
        assert_int_equal(committed[0][i], event.partitions[i] == 3 ? 11 : LOG_OFFSET_NONE);
    }
    assert_int_equal(count_all(f, f->turns), 1);
    log_member_close(b, true, f->wait_ms);
}

/* Rule 14: what was decided under another assignment is refused, whole. */
static void test_old_generation_is_lost(void **state)
{
    struct fixture *f = *state;
    struct log_event event;
    struct log_member *a = join(f, "a", &event);
    int64_t old = event.generation;
    assert_int_equal(commit_one(f, a, old, 0, "turn", "1", 1).verdict, LOG_VERDICT_committed);
    struct actor b = actor_start(f, "member", "b");
    await_event(f, a, LOG_EVENT_revoked);
    event = await_event(f, a, LOG_EVENT_assigned);

    /* Partition 0 is still a's: the generation alone decides. */
    assert_int_equal(event.partitions[0], 0);
    assert_int_equal(commit_one(f, a, old, 0, "turn", "2", 2).verdict, LOG_VERDICT_lost);
    assert_int_equal(commit_one(f, a, event.generation, 0, "turn", "3", 3).verdict,
                     LOG_VERDICT_committed);
    int64_t offset = 0;
    OK(log_group_offset(f->log, f->group, f->handoff, 0, &offset, &err));
    assert_int_equal(offset, 3);
    actor_await_mask(f, &b, 0xc);
    actor_end(f, &b, ACTOR_leave);
    log_member_close(a, true, f->wait_ms);
}

/* After a rebalance a member of the present generation does not touch what another one owns. The
 * engine never asks for it (rule 13); the driver is the second line where it can be. */
static void test_partition_of_another_is_lost(void **state)
{
    struct fixture *f = *state;
    struct log_event event;
    struct actor a = actor_start(f, "member", "a");
    actor_await_mask(f, &a, 0xf);
    struct log_member *b = join(f, "b", &event);
    actor_await_mask(f, &a, 0x3);
    assert_int_equal(event.partitions[0], 2);
    assert_int_equal(commit_one(f, b, event.generation, 0, "turn", "not mine", 1).verdict,
                     LOG_VERDICT_lost);
    assert_int_equal(count_all(f, f->turns), 0);
    assert_int_equal(commit_one(f, b, event.generation, 2, "turn", "mine", 1).verdict,
                     LOG_VERDICT_committed);
    log_member_close(b, true, f->wait_ms);
    actor_end(f, &a, ACTOR_leave);
}

/* DESIGN section 4: a definite abort names its record, and the rest commits without it. */
static void check_culprit(struct fixture *f, struct log_record bad, baton_code code)
{
    struct log_event event;
    struct log_member *member = join(f, "w", &event);
    struct log_record records[] = {record_of(f->turns, 0, "a", "1"), bad,
                                   record_of(f->outcomes, 0, "b", "2")};
    struct log_offset offset = {.input = 0, .partition = 0, .next = 9};
    struct log_txn txn = {.generation = event.generation,
                          .records = records,
                          .n_records = 3,
                          .offsets = &offset,
                          .n_offsets = 1};
    struct log_commit_result result = commit(f, member, &txn);
    int64_t committed = 0;
    assert_int_equal(result.verdict, LOG_VERDICT_aborted);
    assert_int_equal(result.code, code);
    assert_int_equal(result.culprit, 1);
    assert_int_equal(count_all(f, f->turns) + count_all(f, f->outcomes), 0);
    OK(log_group_offset(f->log, f->group, f->handoff, 0, &committed, &err));
    assert_int_equal(committed, LOG_OFFSET_NONE);

    records[1] = records[2];
    txn.n_records = 2;
    assert_int_equal(commit(f, member, &txn).verdict, LOG_VERDICT_committed);
    assert_int_equal(count_all(f, f->turns), 1);
    assert_int_equal(count_all(f, f->outcomes), 1);
    log_member_close(member, true, f->wait_ms);
}

static void test_culprit_too_large(void **state)
{
    struct fixture *f = *state;
    size_t len = f->record_bytes_max + 1000;
    char *big = malloc(len);
    unsigned seed = 7;
    for (size_t i = 0; i < len; i++) {
        big[i] = (char)rand_r(&seed); /* nothing that compression makes small */
    }
    struct log_record bad = record_of(f->outcomes, 0, "k", NULL);
    bad.value = big;
    bad.value_len = len;
    check_culprit(f, bad, BATON_E_record_too_large);
    free(big);
}

static void test_culprit_without_topic(void **state)
{
    struct fixture *f = *state;
    check_culprit(f, record_of(f->missing, 0, "k", "v"), BATON_E_topic_missing);
}

static void test_two_members_interleaved(void **state)
{
    struct fixture *f = *state;
    enum { ROUNDS = 20 };
    struct actor a = actor_start(f, "member", "a");
    struct actor b = actor_start(f, "member", "b");
    actor_await_mask(f, &a, 0x3);
    actor_await_mask(f, &b, 0xc);
    int64_t generation = atomic_load(&a.shared->told_generation);
    for (int i = 1; i <= ROUNDS; i++) {
        char value[24];
        snprintf(value, sizeof(value), "%d", i);
        assert_int_equal(actor_commit(f, &a, generation, 0, value, i), LOG_VERDICT_committed);
        assert_int_equal(actor_commit(f, &b, generation, 3, value, 100 + i), LOG_VERDICT_committed);
    }
    int64_t offset = 0;
    OK(log_group_offset(f->log, f->group, f->handoff, 0, &offset, &err));
    assert_int_equal(offset, ROUNDS);
    OK(log_group_offset(f->log, f->group, f->handoff, 3, &offset, &err));
    assert_int_equal(offset, 100 + ROUNDS);
    actor_end(f, &a, ACTOR_leave);
    actor_end(f, &b, ACTOR_leave);
}

static void test_renew(void **state)
{
    struct fixture *f = *state;
    struct log_event event;
    struct log_member *member = join(f, "w", &event);
    assert_int_equal(commit_one(f, member, event.generation, 0, "turn", "1", 1).verdict,
                     LOG_VERDICT_committed);
    OK(log_member_renew(member, &err));
    assert_int_equal(commit_one(f, member, event.generation, 0, "turn", "2", 2).verdict,
                     LOG_VERDICT_committed);
    log_member_close(member, true, f->wait_ms);
}

static void test_commit_with_many_records(void **state)
{
    struct fixture *f = *state;
    enum { N = 500 };
    struct log_event event;
    struct log_member *member = join(f, "w", &event);
    struct log_record *records = calloc(2 * N, sizeof(*records));
    char(*keys)[24] = calloc(N, sizeof(*keys));
    struct log_offset offsets[PARTITIONS];
    for (int i = 0; i < N; i++) {
        snprintf(keys[i], sizeof(keys[i]), "turn-%d", i);
        records[2 * i] = record_of(f->turns, i % PARTITIONS, keys[i], "state");
        records[2 * i + 1] = record_of(f->outcomes, LOG_PARTITION_BY_KEY, keys[i], "outcome");
    }
    for (int32_t p = 0; p < PARTITIONS; p++) {
        offsets[p] = (struct log_offset){.input = 0, .partition = p, .next = N};
    }
    struct log_txn txn = {.generation = event.generation,
                          .records = records,
                          .n_records = 2 * N,
                          .offsets = offsets,
                          .n_offsets = PARTITIONS};
    assert_int_equal(commit(f, member, &txn).verdict, LOG_VERDICT_committed);
    assert_int_equal(count_all(f, f->turns), N);
    assert_int_equal(count_all(f, f->outcomes), N);
    log_member_close(member, true, f->wait_ms);
    free(records);
    free(keys);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int run_commits(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_commit_is_one),
        TEST(test_commit_with_many_records),
        TEST(test_renew),
        TEST(test_culprit_too_large),
        TEST(test_culprit_without_topic),
        TEST(test_offsets_pass_to_the_next),
        TEST(test_old_generation_is_lost),
        TEST(test_partition_of_another_is_lost),
        TEST(test_two_members_interleaved),
    };
    return cmocka_run_group_tests_name("commits", tests, NULL, NULL);
}
