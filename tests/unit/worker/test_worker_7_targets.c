/*
 * Outcomes cannot be written for a while: decisions are dropped, made again without them, and
 * nothing that needs one is forgotten (DESIGN "One bad record must not abort everybody's tick";
 * protocol rules 9, 28; RULES I3).
 */
#define WAIT_MS 60000 /* a target is unavailable for 30 s */
#include "tests/unit/worker/host.h"

#ifdef BATON_FAULTS

static void let_outcomes_hold(struct host *host, size_t bytes)
{
    struct log_topic topic;
    struct topic_name name = host_topic(TOPIC_outcomes);
    topic_settings(TOPIC_outcomes, name.s, host->config->partitions, &topic);
    if (bytes > 0) {
        topic.record_bytes_max = bytes;
    }
    OK(log_topic_alter(host->log, &topic, err));
}

static void wait_logged(struct host *host, const char *worker, const char *event)
{
    char command[256];
    snprintf(command, sizeof(command), "grep -q %s %s/%s.log", event, host->dir, worker);
    for (int64_t end = mono_now().v + WAIT_MS; system(command) != 0; usleep(5000)) {
        assert_true(mono_now().v < end);
    }
}

static struct turn_id id_of(const struct sending *sending)
{
    struct turn *turn = NULL;
    const struct turn_draft draft = {.fleet = PREFIX,
                                     .origin = "tester",
                                     .service = SERVICE,
                                     .role = sending->role,
                                     .task_id = "t-1",
                                     .run_id = "",
                                     .intent = "work",
                                     .key = sending->key,
                                     .parent = "",
                                     .created_at = wall_now(),
                                     .summary = "x"};
    OK(turn_encode(&draft, &turn, err));
    struct turn_id id = turn->id;
    turn_free(turn);
    return id;
}

/*
 * A recorded end of the last boot, and a handoff with a cancel that came before it: both are
 * decided when the worker comes back, and their batch is dropped.
 */
static void test_dropped_decisions_of_a_restore_are_made_again(void **state)
{
    struct host *host = *state;
    const struct sending early = {.role = ROLE_arbiter, .plan = "proceed", .key = "early"};
    struct turn_id cancelled = id_of(&early);
    int status = 0;

    send_cancel(host, cancelled.s);
    worker_start(host, "w1");
    wait_told(host, cancelled.s, "answer:turn_not_found");
    worker_stop(host, "w1");
    struct turn_id ended = send_turn(host, ROLE_reviewer, "approve,changes");
    worker_start_as(host, "w1", "log.before_commit:kill:3", false);
    worker_wait_killed(host, "w1");
    assert_int_equal(calls_of(host, ended.s, 1), 1);
    send_turn_as(host, &early);

    worker_start_as(host, "w1", "restore.end:stop", false);
    struct worker_process *worker = host_worker(host, "w1");
    assert_int_equal(waitpid(worker->pid, &status, WUNTRACED), worker->pid);
    assert_true(WIFSTOPPED(status));
    let_outcomes_hold(host, 16);
    kill(worker->pid, SIGCONT);
    wait_logged(host, "w1", "engine.target_unavailable");
    /* What needs no outcome goes on, but not behind the handoff that waits for one. */
    int32_t waits = log_partition_of(cancelled.s, strlen(cancelled.s), host->config->partitions);
    struct turn_id other = send_turn_as(
        host,
        &(struct sending){.role = ROLE_reviewer, .plan = "hang,approve", .partition = 2 - waits});
    wait_called(host, other.s, 1);
    let_outcomes_hold(host, 0);
    host_go(host);

    wait_for(host, ended.s, TURN_completed, 1);
    wait_for(host, cancelled.s, TURN_cancelled, 1);
    wait_for(host, other.s, TURN_completed, 1);
    worker_stop(host, "w1");
    assert_int_equal(calls_of(host, ended.s, 0), 1);
    assert_int_equal(calls_of(host, cancelled.s, 0), 0);
}

#endif

int main(void)
{
#ifdef BATON_FAULTS
    const struct CMUnitTest tests[] = {
        HOST_TEST(test_dropped_decisions_of_a_restore_are_made_again),
    };
    return cmocka_run_group_tests_name("worker: targets", tests, NULL, NULL);
#else
    return 0;
#endif
}
