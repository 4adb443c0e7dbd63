/*
 * Partitions that move while their turns run: the holder goes on, the owner waits for it, one
 * result counts (DESIGN "Moved partitions"; protocol rules 8, 21, 23 to 27).
 *
 * w1 has both partitions; w2 joins and gets the second one.
 */
#include "tests/unit/worker/host.h"

#include <fcntl.h>

/* A turn that runs on w1, whose partition has moved to w2. */
static struct turn_id move_running(struct host *host, const char *plan)
{
    const struct sending sending = {.role = ROLE_reviewer, .plan = plan, .partition = 2};
    const struct sending after = {.role = ROLE_reviewer, .plan = "approve", .partition = 2};
    worker_start(host, "w1");
    struct turn_id id = send_turn_as(host, &sending);
    wait_called(host, id.s, 1);
    worker_start(host, "w2");
    wait_stored(host, "w2", "SELECT count(*) FROM turn WHERE state = 'running'", "1");
    struct turn_id next = send_turn_as(host, &after);
    wait_for(host, next.s, TURN_completed, 1);
    return id;
}

static const char *worker_of(struct host *host, const char *id, int attempt)
{
    static char worker[ID_MAX + 1];
    struct turn_record record;
    assert_true(turn_in_log(host, id, &record));
    snprintf(worker, sizeof(worker), "%s", turn_record_attempt(&record, attempt)->worker.s);
    turn_record_done(&record);
    return worker;
}

/* Rules 21, 24, 26: the attempt outlives its lease by renewals; the owner publishes what it
 * reports. */
static void test_rule_26_a_holder_goes_on_and_its_report_counts(void **state)
{
    struct host *host = *state;
    struct turn_id id = move_running(host, "hang,approve");
    usleep((useconds_t)(host->config->lease_ms + 500) *
           1000); /* longer than a lease that nobody renews */
    host_go(host);
    wait_for(host, id.s, TURN_completed, 1);
    assert_string_equal(attempts_of(host, id.s), "1:completed//one");
    assert_string_equal(worker_of(host, id.s, 1), "w1");
    wait_stored(host, "w1", "SELECT count(*) FROM recorded_end", "0");
    worker_stop(host, "w1");
    worker_stop(host, "w2");
}

/* Rules 20, 25: a holder that dies is declared lost, and attempt n+1 starts with the owner. */
static void test_rule_25_a_dead_holder_is_declared_lost(void **state)
{
    struct host *host = *state;
    struct turn_record record;
    struct turn_id id = move_running(host, "hang,approve");
    worker_kill(host, "w1");
    wait_for(host, id.s, TURN_completed, 2);
    assert_string_equal(attempts_of(host, id.s), "1:failed/lost/one 2:completed//one");
    assert_string_equal(worker_of(host, id.s, 2), "w2");
    assert_true(turn_in_log(host, id.s, &record));
    assert_int_equal(record.losses, 1);
    turn_record_done(&record);
    worker_stop(host, "w2");
}

/* Whether somebody stands in the log's queue of writers. */
static bool queue_is_held(struct host *host)
{
    char path[sizeof(host->dir) + 24];
    struct flock both = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 2};
    snprintf(path, sizeof(path), "%s/log.db.d/write.lock", host->dir);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_OFD_GETLK, &both), 0);
    close(fd);
    return both.l_type != F_UNLCK;
}

/* Whether a member of the log is in the middle of a transaction there, or in line for one. */
static bool log_is_held(struct host *host)
{
    sqlite3 *handle = NULL;
    char path[sizeof(host->dir) + 8];
    snprintf(path, sizeof(path), "%s/log.db", host->dir);
    assert_int_equal(sqlite3_open_v2(path, &handle, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    sqlite3_busy_timeout(handle, 100);
    int rc = sqlite3_exec(handle, "BEGIN IMMEDIATE; ROLLBACK", NULL, NULL, NULL);
    sqlite3_close(handle);
    assert_true(rc == SQLITE_OK || rc == SQLITE_BUSY);
    return rc == SQLITE_BUSY || queue_is_held(host);
}

/* Stops a worker where it holds up nobody else: one that stands still in a transaction of the log
 * keeps all others from writing. */
static void stop_outside(struct host *host, const char *worker)
{
    const pid_t pid = host_worker(host, worker)->pid;
    for (int tries = 0;; tries++) {
        assert_true(tries < 100);
        kill(pid, SIGSTOP);
        if (!log_is_held(host)) {
            return;
        }
        kill(pid, SIGCONT);
        usleep(20000);
    }
}

/* Rule 25: an owner that was away for longer than a lease finds renewals that it has not read, and
 * reads them before it calls anything lost. */
static void test_rule_25_what_was_renewed_meanwhile_is_read_first(void **state)
{
    struct host *host = *state;
    const char *const patient[] = {"local.session=10s", "lease=800ms"};
    host_configure(host, patient, 2);
    struct turn_id id = move_running(host, "hang,approve");
    for (int i = 0; i < 3; i++) {
        stop_outside(host, "w2");
        usleep((useconds_t)(host->config->lease_ms + 700) * 1000);
        kill(host_worker(host, "w2")->pid, SIGCONT);
        usleep(300000);
    }
    host_go(host);
    wait_for(host, id.s, TURN_completed, 0);
    assert_string_equal(attempts_of(host, id.s), "1:completed//one");
    worker_stop(host, "w1");
    worker_stop(host, "w2");
}

/* Rule 27: the holder follows the turn log, and stops what was cancelled there. */
static void test_rule_27_a_cancel_reaches_the_holder(void **state)
{
    struct host *host = *state;
    struct turn_id id = move_running(host, "hang,approve");
    send_cancel(host, id.s);
    wait_for(host, id.s, TURN_cancelled, 1);
    worker_stop(host, "w1"); /* nothing runs there any more: it does not wait for a grace */
    worker_stop(host, "w2");
    assert_string_equal(outcomes_of(host, id.s), "cancelled answer:ok");
    assert_string_equal(store_text(host, "w1", "SELECT count(*) FROM recorded_end"), "0");
}

/* Rule 9: a partition that comes back finds its attempt running, and never calls it again. */
static void test_rule_09_the_partition_comes_back(void **state)
{
    struct host *host = *state;
    struct turn_id id = move_running(host, "hang,approve");
    worker_stop(host, "w2");
    host_go(host);
    wait_for(host, id.s, TURN_completed, 1);
    worker_stop(host, "w1");
    assert_int_equal(calls_of(host, id.s, 0), 1);
}

/* A worker that was stopped for longer than a session: its partitions are others', its result is
 * late. */
static void test_rule_08_a_stopped_worker_kills_what_is_not_current(void **state)
{
    struct host *host = *state;
    struct turn_record record;
    const struct sending sending = {.role = ROLE_reviewer, .plan = "hang,approve", .partition = 1};
    worker_start(host, "w1");
    struct turn_id id = send_turn_as(host, &sending);
    wait_called(host, id.s, 1);
    worker_start(host, "w2");
    kill(host_worker(host, "w1")->pid, SIGSTOP);
    wait_for(host, id.s, TURN_completed, 2);
    kill(host_worker(host, "w1")->pid, SIGCONT);
    struct turn_id next = send_turn_as(
        host, &(struct sending){.role = ROLE_reviewer, .plan = "approve", .partition = 1});
    wait_for(host, next.s, TURN_completed, 1);
    worker_stop(host, "w1");
    worker_stop(host, "w2");
    assert_string_equal(attempts_of(host, id.s), "1:failed/lost/one 2:completed//one");
    assert_true(turn_in_log(host, id.s, &record));
    assert_int_equal(record.losses, 1);
    turn_record_done(&record);
    assert_string_equal(outcomes_of(host, id.s), "completed");
}

/* A clean stop: others take over at once, what runs goes on under its lease, its report counts
 * (I11). */
static void test_a_clean_stop_hands_its_partitions_over(void **state)
{
    struct host *host = *state;
    const struct sending sending = {.role = ROLE_reviewer, .plan = "hang,approve", .partition = 1};
    char stop = WAKE_STOP;
    worker_start(host, "w1");
    struct turn_id id = send_turn_as(host, &sending);
    wait_called(host, id.s, 1);
    worker_start(host, "w2");
    assert_int_equal(write(host_worker(host, "w1")->wake, &stop, 1), 1);
    struct turn_id next = send_turn_as(
        host, &(struct sending){.role = ROLE_reviewer, .plan = "approve", .partition = 1});
    wait_for(host, next.s, TURN_completed, 1); /* w1 takes nothing: w2 has its partition now */
    assert_string_equal(worker_of(host, next.s, 1), "w2");
    host_go(host);
    wait_for(host, id.s, TURN_completed, 1);
    worker_wait_ok(host, "w1");
    worker_stop(host, "w2");
    assert_string_equal(attempts_of(host, id.s), "1:completed//one");
}

/*
 * Rule 26: an engine that does not come round hears of no loss, and its control records pass: what
 * runs is renewed without it, and no work is thrown away. (Here its store is locked by somebody for
 * longer than a session.)
 */
static void test_rule_26_a_blocked_engine_loses_no_work(void **state)
{
    struct host *host = *state;
    const struct sending first = {.role = ROLE_reviewer, .plan = "hang,approve", .partition = 1};
    const struct sending then = {.role = ROLE_reviewer, .plan = "approve", .partition = 1};
    char path[160];
    sqlite3 *handle = NULL;
    worker_start(host, "w1");
    struct turn_id id = send_turn_as(host, &first);
    wait_called(host, id.s, 1);
    worker_start(host, "w2");
    struct turn_id other = send_turn_as(
        host, &(struct sending){.role = ROLE_reviewer, .plan = "approve", .partition = 2});
    wait_for(host, other.s, TURN_completed, 1); /* w2 has joined, and w1 was restored */
    struct turn_id mine = send_turn_as(host, &then);
    wait_for(host, mine.s, TURN_completed, 1);
    usleep(500000); /* the leases' thread is told what runs a few times a second */

    snprintf(path, sizeof(path), "%s/data/" SERVICE "/w1/store.db", host->dir);
    assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
    assert_int_equal(sqlite3_exec(handle, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    struct turn_id blocks = send_turn_as(host, &then); /* its claim is to be stored */
    wait_for(host, blocks.s, TURN_completed, 0);       /* by w2, which has the partition now */
    usleep((useconds_t)host->config->lease_ms *
           1000); /* a lease that nobody renews would be over */
    assert_int_equal(sqlite3_exec(handle, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(handle);
    host_go(host);
    wait_for(host, id.s, TURN_completed, 1);
    worker_stop(host, "w1");
    worker_stop(host, "w2");
    assert_string_equal(attempts_of(host, id.s), "1:completed//one");
}

/* Queued turns of a partition that has gone neither wake this worker nor hide its own. */
static void test_moved_queued_turns_hide_nothing(void **state)
{
    struct host *host = *state;
    const char *const one[] = {"retry.first=1500ms"};
    host_configure(host, one, 1);
    host->config->services[0].parallel = 1;
    struct turn_id moved[3];
    worker_start(host, "w1");
    for (int i = 0; i < 3; i++) {
        moved[i] = send_turn_as(
            host,
            &(struct sending){.role = ROLE_reviewer, .plan = "overloaded,approve", .partition = 2});
        wait_for(host, moved[i].s, TURN_queued, 2);
    }
    worker_start(host, "w2");
    struct turn_id mine = send_turn_as(
        host,
        &(struct sending){.role = ROLE_reviewer, .plan = "overloaded,approve", .partition = 1});
    wait_for(host, mine.s, TURN_completed, 2);
    for (int i = 0; i < 3; i++) {
        wait_for(host, moved[i].s, TURN_completed, 2);
    }
    worker_stop(host, "w1");
    worker_stop(host, "w2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOST_TEST(test_rule_26_a_holder_goes_on_and_its_report_counts),
        HOST_TEST(test_rule_25_a_dead_holder_is_declared_lost),
        HOST_TEST(test_rule_25_what_was_renewed_meanwhile_is_read_first),
        HOST_TEST(test_rule_27_a_cancel_reaches_the_holder),
        HOST_TEST(test_rule_09_the_partition_comes_back),
        HOST_TEST(test_rule_08_a_stopped_worker_kills_what_is_not_current),
        HOST_TEST(test_a_clean_stop_hands_its_partitions_over),
        HOST_TEST(test_rule_26_a_blocked_engine_loses_no_work),
        HOST_TEST(test_moved_queued_turns_hide_nothing),
    };
    return cmocka_run_group_tests_name("worker: moved partitions", tests, NULL, NULL);
}
