/* FIELD F08: kill -9 at any moment. What a transaction holds is there as a whole or not at all. */
#include "tests/conformance/actor.h"
#include "tests/conformance/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What each partition says: newest count of turn log, outcomes, offset. All must be the same. */
static int64_t count_of_partition(const struct fixture *f, int32_t partition)
{
    struct log_batch batch = {0};
    char text[32] = "0";
    int64_t committed = 0;
    read_all(f, f->turns, partition, 0, &batch);
    if (batch.count > 0) {
        const struct log_record *newest = &batch.records[batch.count - 1];
        assert_true(newest->value_len < sizeof(text));
        memcpy(text, newest->value, newest->value_len);
        text[newest->value_len] = '\0';
    }
    int64_t count = strtoll(text, NULL, 10);
    read_all(f, f->outcomes, partition, 0, &batch);
    assert_int_equal(batch.count, count); /* one for each, none twice */
    for (size_t i = 0; i < batch.count; i++) {
        snprintf(text, sizeof(text), "%zu", i + 1);
        assert_true(value_is(&batch.records[i], text));
    }
    OK(log_group_offset(f->log, f->group, f->handoff, partition, &committed, &err));
    assert_int_equal(committed == LOG_OFFSET_NONE ? 0 : committed, count);
    log_batch_free(&batch);
    return count;
}

static void test_F08_committer_is_killed(void **state)
{
    struct fixture *f = *state;
    enum { KILLS = 40 };
    int64_t count = 0;
    unsigned seed = 4711;
    for (int i = 0; i < KILLS; i++) {
        struct actor actor = actor_start(f, "committer", "w");
        AWAIT(f, atomic_load(&actor.shared->n_commits) > 0);
        usleep((useconds_t)(rand_r(&seed) % 20000));
        actor_kill(&actor);
        int64_t known = count + atomic_load(&actor.shared->n_commits);
        actor_done(&actor);
        /* What it left open is ended, or its markers would come partition by partition. */
        OK(log_fence(f->log, f->group, "w", (const char *[]){f->turns, f->outcomes}, 2, f->wait_ms,
                     &err));

        int64_t found = count_of_partition(f, 0);
        assert_true(found == known || found == known + 1); /* nothing that was answered is lost */
        for (int32_t p = 1; p < PARTITIONS; p++) {
            assert_int_equal(count_of_partition(f, p), found);
        }
        count = found;
    }
}

static void test_F08_publishers_are_killed(void **state)
{
    struct fixture *f = *state;
    enum { KILLS = 20 };
    unsigned seed = 815;
    for (int i = 0; i < KILLS; i++) {
        char name[24];
        snprintf(name, sizeof(name), "p%d", i);
        struct actor actor = actor_start_counting(f, "publisher", name, 1000000);
        size_t before = count_all(f, f->outcomes);
        AWAIT(f, count_all(f, f->outcomes) > before);
        usleep((useconds_t)(rand_r(&seed) % 10000));
        actor_kill(&actor);
        actor_done(&actor);
        publish_one(f, f->outcomes, 0, "k", "after"); /* the log goes on at once */
    }
}

#define COPIERS 3

/* One fault or move of a copier, chosen by chance; it runs again afterwards. */
static void disturb(const struct fixture *f, struct actor *actor, const char *name, unsigned *seed)
{
    switch (rand_r(seed) % 4) {
    case 0:
        actor_kill(actor);
        actor_done(actor);
        *actor = actor_start(f, "copier", name);
        break;
    case 1:
        actor_stop(actor);
        usleep((useconds_t)(f->session_ms * 1500));
        actor_continue(actor);
        break;
    case 2:
        actor_end(f, actor, ACTOR_leave);
        *actor = actor_start(f, "copier", name);
        break;
    default:
        actor_end(f, actor, ACTOR_close);
        *actor = actor_start(f, "copier", name);
        break;
    }
}

static bool all_copied(const struct fixture *f)
{
    for (int32_t p = 0; p < PARTITIONS; p++) {
        int64_t low = 0;
        int64_t high = 0;
        int64_t committed = 0;
        OK(log_watermarks(f->log, f->handoff, p, &low, &high, &err));
        OK(log_group_offset(f->log, f->group, f->handoff, p, &committed, &err));
        if (committed < high && !(high == 0 && committed == LOG_OFFSET_NONE)) {
            return false;
        }
    }
    return true;
}

/* FIELD A04: members come, go, die and stand still by chance; each record is copied just once. */
static void test_A04_churn(void **state)
{
    struct fixture *f = *state;
    enum { ROUNDS = 25, EACH = 20 };
    static const char *const names[COPIERS] = {"a", "b", "c"};
    struct actor actors[COPIERS];
    struct log_batch batch = {0};
    bool seen[ROUNDS * EACH] = {false};
    unsigned seed = 42;
    for (int i = 0; i < COPIERS; i++) {
        actors[i] = actor_start(f, "copier", names[i]);
    }
    for (int n = 0; n < ROUNDS * EACH; n++) {
        char value[24];
        snprintf(value, sizeof(value), "%d", n);
        publish_one(f, f->handoff, LOG_PARTITION_BY_KEY, value, value);
        if (n % EACH == EACH - 1) {
            int who = rand_r(&seed) % COPIERS;
            disturb(f, &actors[who], names[who], &seed);
        }
    }
    f->wait_ms *=
        3; /* on brokers each disturbance costs a session, a rebalance and a hidden partition */
    AWAIT(f, all_copied(f));
    for (int i = 0; i < COPIERS; i++) {
        actor_end(f, &actors[i], ACTOR_leave);
    }
    for (int32_t p = 0; p < PARTITIONS; p++) {
        read_all(f, f->outcomes, p, 0, &batch);
        int last = -1;
        for (size_t i = 0; i < batch.count; i++) {
            char text[24] = "";
            memcpy(text, batch.records[i].value, batch.records[i].value_len);
            int n = atoi(text);
            assert_true(n > last); /* also in order: one owner at a time */
            seen[n] = true;
            last = n;
        }
    }
    for (int n = 0; n < ROUNDS * EACH; n++) {
        assert_true(seen[n]);
    }
    log_batch_free(&batch);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int run_crashes(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_F08_committer_is_killed),
        TEST(test_F08_publishers_are_killed),
        TEST(test_A04_churn),
    };
    return cmocka_run_group_tests_name("crashes", tests, NULL, NULL);
}
