/* What only the local log can show of a commit: unknown outcomes, a full disk, the writers' queue.
 */
#include "tests/unit/log/local_log.h"

#include "common/base/fault.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static struct log_commit_result commit_to(struct local_member *member, int64_t generation,
                                          struct log_record *record, int64_t next)
{
    struct log_offset offset = {.input = 0, .partition = 0, .next = next};
    struct log_txn txn = {.generation = generation,
                          .records = record,
                          .n_records = 1,
                          .offsets = &offset,
                          .n_offsets = 1};
    struct log_commit_result result = {0};
    OK(log_commit(&member->base, &txn, 5000, &result, err));
    return result;
}

static struct log_record outcome(void)
{
    return (struct log_record){.topic = "outcomes",
                               .partition = LOG_PARTITION_BY_KEY,
                               .key = "k",
                               .key_len = 1,
                               .value = "v",
                               .value_len = 1};
}

static int64_t committed(struct place *place)
{
    int64_t offset = 0;
    OK(log_group_offset(place->log, "group", "handoff", 0, &offset, err));
    return offset;
}

static size_t outcomes(struct place *place)
{
    return place_count(place, "outcomes", 0) + place_count(place, "outcomes", 1);
}

#ifdef BATON_FAULTS
static void fault(const char *spec)
{
    char text[256] = "";
    fault_begin(); /* before, or the environment would be read over it */
    if (!fault_set(spec, text, sizeof(text))) {
        fail_msg("%s: %s", spec, text);
    }
}

/* Rule 15: repeating the same call settles an unknown outcome, whichever it was. */
static void check_unknown(struct place *place, const char *spec, size_t visible)
{
    struct log_event event;
    struct local_member *member = place_member(place, "w", &event);
    struct log_record record = outcome();
    fault(spec);
    assert_int_equal(commit_to(member, event.generation, &record, 5).verdict, LOG_VERDICT_unknown);
    assert_int_equal(record.partition, LOG_PARTITION_BY_KEY);
    assert_int_equal(outcomes(place), visible);
    assert_int_equal(commit_to(member, event.generation, &record, 5).verdict,
                     LOG_VERDICT_committed);
    assert_int_equal(outcomes(place), 1);
    assert_int_equal(committed(place), 5);
    assert_int_equal(record.offset, 0);
    assert_int_equal(record.partition, log_partition_of("k", 1, 2));
    struct log_record again = outcome();
    assert_int_equal(commit_to(member, event.generation, &again, 6).verdict, LOG_VERDICT_committed);
    assert_int_equal(outcomes(place), 2);
    log_member_close(&member->base, true, 1000);
}

static void test_unknown_that_did_not_happen(void **state)
{
    check_unknown(*state, "log.before_commit:fail", 0);
}

static void test_unknown_that_happened(void **state)
{
    check_unknown(*state, "log.after_commit:fail", 1);
}

/* After a renewal the same call is another transaction: the caller has restored in between. */
static void test_unknown_then_renew(void **state)
{
    struct place *place = *state;
    struct log_event event;
    struct local_member *member = place_member(place, "w", &event);
    struct log_record record = outcome();
    fault("log.after_commit:fail");
    assert_int_equal(commit_to(member, event.generation, &record, 5).verdict, LOG_VERDICT_unknown);
    OK(log_member_renew(&member->base, err));
    assert_int_equal(commit_to(member, event.generation, &record, 6).verdict,
                     LOG_VERDICT_committed);
    assert_int_equal(outcomes(place), 2);
    log_member_close(&member->base, true, 1000);
}
#endif

/* FIELD F04: a full disk aborts, says so, changes nothing; with room it goes on. */
static void test_F04_disk_full(void **state)
{
    struct place *place = *state;
    struct log_event event;
    struct local_member *member = place_member(place, "w", &event);
    struct log_record record = outcome();
    int64_t pages = 0;
    char pragma[64];
    char *big = calloc(1, 90000);
    OK(db_pragma_int(&member->conn->db, "PRAGMA page_count", &pages, err));
    snprintf(pragma, sizeof(pragma), "PRAGMA max_page_count = %lld", (long long)pages + 2);
    OK(db_script(&member->conn->db, "limit", pragma, err));
    record.value = big;
    record.value_len = 90000;
    struct log_commit_result result = commit_to(member, event.generation, &record, 5);
    assert_int_equal(result.verdict, LOG_VERDICT_aborted);
    assert_int_equal(result.code, BATON_E_disk_full);
    assert_int_equal(result.culprit, -1);
    assert_int_equal(outcomes(place), 0);
    assert_int_equal(committed(place), LOG_OFFSET_NONE);
    OK(db_script(&member->conn->db, "limit", "PRAGMA max_page_count = 1000000", err));
    assert_int_equal(commit_to(member, event.generation, &record, 5).verdict,
                     LOG_VERDICT_committed);
    assert_int_equal(outcomes(place), 1);
    free(big);
    log_member_close(&member->base, true, 1000);
}

/* FIELD F05: the disk fails in the commit itself: neither success nor failure, and the same call
 * again settles it. (A limit on the size of files gives a real error of the write.) */
static void test_F05_failing_disk_is_unknown(void **state)
{
    struct place *place = *state;
    struct log_event event;
    struct local_member *member = place_member(place, "w", &event);
    struct log_record record = outcome();
    struct rlimit old;
    struct rlimit small;
    struct stat st;
    char path[128];
    snprintf(path, sizeof(path), "%s-wal", place->path);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = (rlim_t)st.st_size + 100;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    struct log_commit_result first = commit_to(member, event.generation, &record, 5);
    struct log_commit_result second = commit_to(member, event.generation, &record, 5);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(first.verdict, LOG_VERDICT_unknown);
    assert_int_equal(first.code, BATON_E_store_failed);
    assert_int_equal(second.verdict, LOG_VERDICT_unknown);
    assert_int_equal(outcomes(place), 0);
    assert_int_equal(commit_to(member, event.generation, &record, 5).verdict,
                     LOG_VERDICT_committed);
    assert_int_equal(outcomes(place), 1);
    assert_int_equal(committed(place), 5);
    log_member_close(&member->base, true, 1000);
}

/* Whoever stands still with the pen in his hand is waited for, but not for ever; the dead are not.
 */
static void test_queue_is_bounded(void **state)
{
    struct place *place = *state;
    struct baton_error why = {0};
    char path[128];
    snprintf(path, sizeof(path), "%s.d/write.lock", place->path);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int fd = open(path, O_RDWR | O_CLOEXEC);
        bool entered = fd >= 0 && queue_enter(fd, 1000);
        raise(entered ? SIGSTOP : SIGKILL);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));

    struct log_event event;
    struct log_record record = outcome();
    struct log_publisher *publisher = NULL;
    OK(log_publisher_open(place->log, &publisher, err));
    int64_t start_ns = mono_ns();
    assert_int_equal(log_publish(publisher, &record, 1, 100, &why), BATON_E_timed_out);
    assert_true(mono_ns() - start_ns < 5000000000);
    assert_non_null(strstr(why.text, "write.lock"));
    assert_int_equal(outcomes(place), 0); /* readers are not held up */

    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    OK(log_publish(publisher, &record, 1, 1000, err));
    log_publisher_close(publisher);
    struct local_member *member = place_member(place, "w", &event);
    log_member_close(&member->base, true, 1000);
}

/* One log, many threads: each call with a connection of its own. */
static void *use_log(void *arg)
{
    struct place *place = arg;
    struct log_publisher *publisher = NULL;
    struct log_record record = outcome();
    struct log_topic topic;
    int64_t low;
    int64_t high;
    if (log_publisher_open(place->log, &publisher, NULL) != BATON_OK) {
        return arg;
    }
    for (int i = 0; i < 50; i++) {
        record.partition = LOG_PARTITION_BY_KEY;
        if (log_publish(publisher, &record, 1, 20000, NULL) != BATON_OK ||
            log_topic_describe(place->log, "turns", &topic, NULL) != BATON_OK ||
            log_watermarks(place->log, "outcomes", 0, &low, &high, NULL) != BATON_OK) {
            return arg;
        }
    }
    log_publisher_close(publisher);
    return NULL;
}

static void test_threads_share_a_log(void **state)
{
    struct place *place = *state;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, use_log, place), 0);
    }
    for (int i = 0; i < 4; i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(outcomes(place), 200);
}

/* FIELD F02: a long reader and a foreign program do not make writers fail. */
static void test_F02_reader_beside_writers(void **state)
{
    struct place *place = *state;
    sqlite3 *other = NULL;
    assert_int_equal(sqlite3_open(place->path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN; SELECT count(*) FROM record;", NULL, NULL, NULL),
                     SQLITE_OK);
    for (int i = 0; i < 100; i++) {
        place_publish(place, "outcomes", 0, "k", "v");
    }
    assert_int_equal(sqlite3_exec(other, "COMMIT; PRAGMA integrity_check;", NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(other);
    assert_int_equal(outcomes(place), 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef BATON_FAULTS
        LOG_TEST(test_unknown_that_did_not_happen),
        LOG_TEST(test_unknown_that_happened),
        LOG_TEST(test_unknown_then_renew),
#endif
        LOG_TEST(test_F04_disk_full),
        LOG_TEST(test_F05_failing_disk_is_unknown),
        LOG_TEST(test_queue_is_bounded),
        LOG_TEST(test_threads_share_a_log),
        LOG_TEST(test_F02_reader_beside_writers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
