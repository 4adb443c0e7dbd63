/*
 * A turn's life at a worker, from claim to end, with real processes on a real log
 * (RULES S1, R-01 to R-44; protocol rules 11, 18, 28, 29).
 */
#include "tests/unit/worker/host.h"

static void test_a_turn_is_claimed_and_completed(void **state)
{
    struct host *host = *state;
    const struct sending sending = {.role = ROLE_reviewer, .plan = "approve", .wait = true};
    struct turn_record record;
    worker_start(host, "w1");
    struct turn_id id = send_turn_as(host, &sending);
    wait_for(host, id.s, TURN_completed, 1);
    assert_string_equal(outcomes_of(host, id.s), "claimed completed");
    assert_int_equal(calls_of(host, id.s, 1), 1);
    assert_true(turn_in_log(host, id.s, &record));
    assert_non_null(strstr(record.result, "\"approve\""));
    assert_null(record.handoff);
    turn_record_done(&record);
    worker_stop(host, "w1");
    assert_string_equal(store_text(host, "w1", "SELECT count(*) FROM recorded_end"), "0");
    assert_string_equal(store_text(host, "w1", "SELECT state FROM turn"), "completed");
}

/* three tries, one turn. */
static void test_r31_a_failed_attempt_is_followed_by_the_next(void **state)
{
    struct host *host = *state;
    struct turn_id id = send_turn(host, ROLE_arbiter, "overloaded,unavailable,proceed");
    worker_drain(host, "w1");
    wait_for(host, id.s, TURN_completed, 3);
    assert_string_equal(attempts_of(host, id.s),
                        "1:failed/overloaded/one 2:failed/unavailable/one 3:completed//one");
    assert_string_equal(outcomes_of(host, id.s), "completed");
}

/* the next credential profile is another attempt of the same turn. */
static void test_r33_rotation_is_another_attempt(void **state)
{
    struct host *host = *state;
    struct turn_id id = send_turn(host, ROLE_reviewer, "auth,approve");
    worker_drain(host, "w1");
    wait_for(host, id.s, TURN_completed, 2);
    assert_string_equal(attempts_of(host, id.s), "1:failed/auth/one 2:completed//two");
}

/* with everything spent the turn is parked, open, with its role; a replay runs the same
 * role. */
static void test_r39_exhausted_is_parked_and_replayed(void **state)
{
    struct host *host = *state;
    struct turn_record record;
    struct turn_id id = send_turn(host, ROLE_arbiter, "auth,auth,proceed");
    worker_start(host, "w1");
    wait_for(host, id.s, TURN_parked, 2);
    assert_string_equal(letters_of(host, id.s), "executor_failed");
    assert_true(turn_in_log(host, id.s, &record));
    assert_int_equal(record.role, ROLE_arbiter);
    assert_int_equal(record.failures, 2);
    assert_non_null(record.handoff); /* all that its next attempt needs */
    turn_record_done(&record);
    send_replay(host, id.s, 2, false);
    wait_for(host, id.s, TURN_completed, 3);
    assert_string_equal(attempts_of(host, id.s),
                        "1:failed/auth/one 2:failed/auth/two 3:completed//one");
    assert_string_equal(outcomes_of(host, id.s), "parked answer:ok completed");
    worker_stop(host, "w1");
}

/* Rule 29: a replay names the attempt that was parked, and is taken over exactly that state. */
static void test_rule_29_a_replay_names_the_parked_attempt(void **state)
{
    struct host *host = *state;
    struct turn_id id = send_turn(host, ROLE_reviewer, "bad_request,hang,approve");
    worker_start(host, "w1");
    wait_for(host, id.s, TURN_parked, 1);
    send_replay(host, id.s, 2, false);
    wait_told(host, id.s, "answer:not_parked");
    send_replay(host, id.s, 1, false);
    wait_called(host, id.s, 2);
    send_replay(host, id.s, 1, false); /* its copy comes again */
    wait_told(host, id.s, "answer:ok answer:not_parked");
    host_go(host);
    wait_for(host, id.s, TURN_completed, 2);
    send_replay(host, id.s, 1, false);
    wait_told(host, id.s, "answer:turn_closed");
    send_replay(host, "0123456789abcdef0123456789abcdef", 1, false);
    wait_told(host, "0123456789abcdef0123456789abcdef", "answer:turn_not_found");
    worker_stop(host, "w1");
}

static void test_the_budget_of_replays(void **state)
{
    struct host *host = *state;
    struct turn_id id = send_turn(host, ROLE_reviewer, "bad_request");
    worker_start(host, "w1");
    for (int attempt = 1; attempt <= 4; attempt++) {
        wait_for(host, id.s, TURN_parked, attempt);
        send_replay(host, id.s, attempt, false);
    }
    wait_told(host, id.s, "answer:replays_exhausted");
    send_replay(host, id.s, 4, true); /* --again lifts it */
    wait_for(host, id.s, TURN_parked, 5);
    worker_stop(host, "w1");
}

/* H-16, R-44: a turn that the log knows is a duplicate, and is answered with what became of it. */
static void test_rule_18_a_known_turn_is_a_duplicate(void **state)
{
    struct host *host = *state;
    const struct sending sending = {.role = ROLE_reviewer, .plan = "approve", .key = "same"};
    worker_start(host, "w1");
    struct turn_id id = send_turn_as(host, &sending);
    struct turn_id again = send_turn_as(host, &sending);
    assert_string_equal(id.s, again.s);
    wait_told(host, id.s, "duplicate");
    wait_for(host, id.s, TURN_completed, 1);
    send_turn_as(host, &sending);
    wait_told(host, id.s, "completed duplicate");
    worker_stop(host, "w1");
    assert_int_equal(calls_of(host, id.s, 0), 1);
    assert_string_equal(letters_of(host, id.s), "");
}

/* X9: another content under the same id is refused, and the first one goes on. */
static void test_x9_a_contradicting_turn_is_rejected(void **state)
{
    struct host *host = *state;
    const struct sending sending = {.role = ROLE_reviewer, .plan = "hang,approve", .key = "same"};
    const struct sending other = {
        .role = ROLE_reviewer, .plan = "hang,approve", .key = "same", .reason = "another payload"};
    worker_start(host, "w1");
    struct turn_id id = send_turn_as(host, &sending);
    wait_called(host, id.s, 1);
    struct turn_id again = send_turn_as(host, &other);
    assert_string_equal(id.s, again.s);
    wait_told(host, id.s, "answer:turn_conflict");
    assert_string_equal(letters_of(host, id.s), "turn_conflict");
    host_go(host);
    wait_for(host, id.s, TURN_completed, 1);
    worker_stop(host, "w1");
}

static void test_cancel_of_a_running_turn(void **state)
{
    struct host *host = *state;
    struct turn_record record;
    struct turn_id id = send_turn(host, ROLE_reviewer, "hang,approve");
    worker_start(host, "w1");
    wait_called(host, id.s, 1);
    send_cancel(host, id.s);
    wait_for(host, id.s, TURN_cancelled, 1);
    assert_string_equal(outcomes_of(host, id.s), "cancelled answer:ok");
    assert_true(turn_in_log(host, id.s, &record));
    assert_string_equal(record.cancel_reason, "enough");
    assert_string_equal(record.cancel_by.s, "unproven");
    turn_record_done(&record);
    send_cancel(host, id.s);
    wait_told(host, id.s, "answer:turn_closed");
    worker_stop(host, "w1");
    assert_string_equal(attempts_of(host, id.s), "1:cancelled//one");
    assert_string_equal(store_text(host, "w1", "SELECT count(*) FROM recorded_end"), "0");
}

static void test_cancel_of_a_queued_and_of_a_parked_turn(void **state)
{
    struct host *host = *state;
    const struct sending later = {
        .role = ROLE_reviewer, .plan = "approve", .not_before_ms = 3600000};
    worker_start(host, "w1");
    struct turn_id queued = send_turn_as(host, &later);
    struct turn_id parked = send_turn(host, ROLE_reviewer, "bad_request");
    wait_for(host, queued.s, TURN_queued, 1);
    wait_for(host, parked.s, TURN_parked, 1);
    send_cancel(host, queued.s);
    send_cancel(host, parked.s);
    wait_for(host, queued.s, TURN_cancelled, 1);
    wait_for(host, parked.s, TURN_cancelled, 1);
    worker_stop(host, "w1");
    assert_int_equal(calls_of(host, queued.s, 0), 0);
}

/* Rule 28: a cancel that comes before its handoff is kept as a note and settles it. */
static void test_rule_28_a_cancel_before_its_handoff(void **state)
{
    struct host *host = *state;
    const struct sending second = {.role = ROLE_arbiter, .plan = "proceed", .key = "early"};
    struct turn *turn = NULL;
    const struct turn_draft draft = {.fleet = PREFIX,
                                     .origin = "tester",
                                     .service = SERVICE,
                                     .role = ROLE_arbiter,
                                     .task_id = "t-1",
                                     .run_id = "",
                                     .intent = "work",
                                     .key = "early",
                                     .parent = "",
                                     .created_at = wall_now(),
                                     .summary = "x"};
    OK(turn_encode(&draft, &turn, err));
    struct turn_id id = turn->id;
    turn_free(turn);
    send_cancel(host, id.s);
    worker_start(host, "w1");
    wait_told(host, id.s, "answer:turn_not_found");
    worker_kill(host, "w1"); /* the note is in the log, not in a process */
    worker_start(host, "w1");
    struct turn_id same = send_turn_as(host, &second);
    assert_string_equal(id.s, same.s);
    wait_for(host, id.s, TURN_cancelled, 1);
    worker_stop(host, "w1");
    assert_int_equal(calls_of(host, id.s, 0), 0);
    assert_string_equal(
        store_text(host, "w1", "SELECT count(*) FROM note WHERE key LIKE '~cancel%'"), "0");
}

/* The same in one round: both lie in the log when the worker comes. */
static void test_rule_28_a_cancel_together_with_its_handoff(void **state)
{
    struct host *host = *state;
    struct turn_id id = send_turn(host, ROLE_reviewer, "approve");
    send_cancel(host, id.s);
    worker_start(host, "w1");
    wait_for(host, id.s, TURN_cancelled, 1);
    worker_stop(host, "w1");
    assert_int_equal(calls_of(host, id.s, 0), 0);
    assert_string_equal(
        store_text(host, "w1", "SELECT count(*) FROM note WHERE key LIKE '~cancel%'"), "0");
}

/* The same while outcomes cannot be written: the note must not be judged before the handoff is
 * taken. */
static void test_rule_28_a_note_outlives_missing_outcomes(void **state)
{
    struct host *host = *state;
    struct turn *turn = NULL;
    const struct turn_draft draft = {.fleet = PREFIX,
                                     .origin = "tester",
                                     .service = SERVICE,
                                     .role = ROLE_arbiter,
                                     .task_id = "t-1",
                                     .run_id = "",
                                     .intent = "work",
                                     .key = "early",
                                     .parent = "",
                                     .created_at = wall_now(),
                                     .summary = "x"};
    const struct sending sending = {.role = ROLE_arbiter, .plan = "proceed", .key = "early"};
    OK(turn_encode(&draft, &turn, err));
    struct turn_id id = turn->id;
    turn_free(turn);
    send_cancel(host, id.s);
    worker_drain(host, "w1");
    struct turn_id first = send_turn(host, ROLE_reviewer, "hang,approve");
    struct turn_id same = send_turn_as(host, &sending);
    assert_string_equal(id.s, same.s);
    worker_start(host, "w1");
    wait_for(host, id.s, TURN_cancelled, 1);
    host_go(host);
    wait_for(host, first.s, TURN_completed, 1);
    worker_stop(host, "w1");
}

static void send_pause(struct host *host, enum control_kind kind, int32_t partition)
{
    struct topic_name topic = host_topic(TOPIC_control);
    struct control control = {.kind = kind};
    struct buf value = BUF_INIT;
    random_hex(control.id.s, 32);
    control.at = wall_now();
    control_encode(&control, &value);
    struct log_record record = {.topic = topic.s,
                                .partition = partition,
                                .key = "~pause",
                                .key_len = 6,
                                .value = value.data,
                                .value_len = value.len};
    OK(log_publish(host->publisher, &record, 1, 5000, err));
    buf_done(&value);
}

static void test_pause_holds_handoffs_and_outlives_a_restart(void **state)
{
    struct host *host = *state;
    for (int round = 0; round < 2; round++) {
        for (int32_t p = 0; p < 2; p++) {
            send_pause(host, round == 0 ? CONTROL_pause : CONTROL_resume, p);
        }
        if (round == 0) {
            worker_start(host, "w1");
            wait_stored(host, "w1", "SELECT count(*) FROM note WHERE key = '~pause'", "2");
            worker_kill(host, "w1");
            struct turn_id id = send_turn(host, ROLE_reviewer, "approve");
            worker_start(host, "w1");
            struct turn_id unknown = turn_id_of("0123456789abcdef0123456789abcdef");
            send_replay(host, unknown.s, 1, false); /* control goes on */
            wait_told(host, unknown.s, "turn_not_found");
            struct turn_record record;
            assert_false(turn_in_log(host, id.s, &record));
            turn_record_done(&record);
            send_turn_as(
                host, &(struct sending){.role = ROLE_reviewer, .plan = "approve", .key = "last"});
        }
    }
    for (int64_t end = mono_now().v + WAIT_MS;; usleep(3000)) {
        FILE *file = fopen(host->calls, "r");
        int lines = 0;
        for (int c; file != NULL && (c = fgetc(file)) != EOF;) {
            lines += c == '\n' ? 1 : 0;
        }
        if (file != NULL) {
            fclose(file);
        }
        if (lines == 2) {
            break;
        }
        assert_true(mono_now().v < end);
    }
    worker_stop(host, "w1");
}

static void test_not_before_is_waited_for(void **state)
{
    struct host *host = *state;
    const struct sending later = {
        .role = ROLE_reviewer, .plan = "approve", .not_before_ms = 400, .wait = true};
    int64_t start = mono_now().v;
    struct turn_id id = send_turn_as(host, &later);
    worker_drain(host, "w1");
    assert_true(mono_now().v - start >= 400);
    wait_for(host, id.s, TURN_completed, 1);
    assert_string_equal(outcomes_of(host, id.s), "claimed completed");
}

/* H-24, G2: garbage is rejected with its code and holds nothing back. */
static void test_garbage_is_rejected_and_holds_nothing_back(void **state)
{
    struct host *host = *state;
    char *long_key = (char *)"0123456789abcdef0123456789abcdef";
    send_value(host, TOPIC_handoff, long_key, "{\"no\":\"turn\"}", 13, false);
    struct turn_id id = send_turn(host, ROLE_reviewer, "approve");
    worker_drain(host, "w1");
    wait_for(host, id.s, TURN_completed, 1);
    assert_string_equal(letters_of(host, long_key), "invalid_envelope");
    assert_string_equal(outcomes_of(host, long_key), "");
}

/* The store's disk is full for a moment: nothing is lost, nothing runs twice, the worker lives. */
static void test_a_full_disk_is_waited_out(void **state)
{
#ifdef BATON_FAULTS
    struct host *host = *state;
    for (int n = 2; n < 14; n++) { /* while restoring, after a claim, after an end, ... */
        char fault[40];
        snprintf(fault, sizeof(fault), "store.commit:fail:%d", n);
        struct turn_id id = send_turn(host, ROLE_reviewer, "overloaded,approve");
        worker_start_as(host, "w1", fault, false);
        wait_for(host, id.s, TURN_completed, 2);
        worker_stop(host, "w1");
    }
#else
    (void)state;
    skip();
#endif
}

/* A clean stop ends what runs, counts it in no budget, and leaves no `cancelled` (I11). */
static void test_i11_a_stop_counts_in_no_budget(void **state)
{
    struct host *host = *state;
    struct turn_record record;
    struct turn_id id = send_turn(host, ROLE_reviewer, "hang,hang,approve");
    worker_start(host, "w1");
    wait_called(host, id.s, 1);
    char twice[2] = {WAKE_STOP, WAKE_STOP};
    assert_int_equal(write(host_worker(host, "w1")->wake, twice, 2), 2);
    worker_wait_ok(host, "w1");
    host_go(host);
    worker_start(host, "w1");
    wait_for(host, id.s, TURN_completed, 2);
    assert_true(turn_in_log(host, id.s, &record));
    assert_int_equal(record.losses, 0);
    assert_int_equal(record.failures, 0);
    turn_record_done(&record);
    assert_string_equal(attempts_of(host, id.s), "1:failed/killed/one 2:completed//one");
    worker_stop(host, "w1");
}

/* Whoever could have told us to stop is gone: that is one clean stop, not two. */
static void test_a_closed_pipe_is_a_clean_stop(void **state)
{
    struct host *host = *state;
    struct turn_id id = send_turn(host, ROLE_reviewer, "hang,approve");
    worker_start(host, "w1");
    wait_called(host, id.s, 1);
    close(host_worker(host, "w1")->wake);
    host_worker(host, "w1")->wake = dup(0);
    usleep(100000); /* it would have killed the attempt by now */
    host_go(host);
    worker_wait_ok(host, "w1");
    wait_for(host, id.s, TURN_completed, 1);
}

/* What the turn logs hold of `old` is as many days older than it was, of all others so many. */
static void age(struct host *host, const char *old, int days, int days_of_others)
{
    const int64_t day = 24LL * 3600 * 1000;
    sqlite3 *handle = NULL;
    char path[160];
    char *change = NULL;
    snprintf(path, sizeof(path), "%s/log.db", host->dir);
    assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
    assert_true(asprintf(&change,
                         "UPDATE record SET at = at - CASE CAST(key AS TEXT) WHEN '%s' THEN %lld "
                         "ELSE %lld END WHERE compact IS NOT NULL",
                         old, (long long)(days * day), (long long)(days_of_others * day)) > 0);
    assert_int_equal(sqlite3_exec(handle, change, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(handle);
    free(change);
}

static bool in_log(struct host *host, const char *id)
{
    struct turn_record record;
    const bool there = turn_in_log(host, id, &record);
    turn_record_done(&record);
    return there;
}

static void wait_forgotten(struct host *host, const char *id)
{
    for (int64_t end = mono_now().v + WAIT_MS; in_log(host, id); usleep(20000)) {
        assert_true(mono_now().v < end);
    }
}

/* Rule 30: what dates an end is the log, whatever the record says of itself. */
static void test_rule_30_a_closed_turn_leaves_by_the_dates_of_the_log(void **state)
{
    struct host *host = *state;
    worker_start(host, "w1");
    struct turn_id old = send_turn(host, ROLE_reviewer, "approve");
    struct turn_id recent = send_turn(host, ROLE_reviewer, "approve");
    wait_for(host, old.s, TURN_completed, 1);
    wait_for(host, recent.s, TURN_completed, 1);
    worker_stop(host, "w1");
    age(host, old.s, 14, 13);

    host->unchecked = true;   /* it was called, and nothing knows it */
    worker_start(host, "w2"); /* its store is empty: it has the dates from the log */
    wait_forgotten(host, old.s);
    assert_true(in_log(host, recent.s));
    struct turn_id last = send_turn(host, ROLE_reviewer, "approve");
    wait_for(host, last.s, TURN_completed, 1);
    worker_stop(host, "w2");
    assert_string_equal(store_text(host, "w2", "SELECT count(*) FROM turn"), "2");
}

/* Rule 30: while a handoff waits in its partition it stays, however old; copies of its own may lie
 * there. */
static void test_rule_30_a_closed_turn_stays_before_its_handoffs_are_read(void **state)
{
    struct host *host = *state;
    struct sending sending = {.role = ROLE_reviewer, .plan = "approve", .partition = 1};
    worker_start(host, "w1");
    struct turn_id stays = send_turn_as(host, &sending);
    sending.partition = 2;
    struct turn_id leaves = send_turn_as(host, &sending);
    wait_for(host, stays.s, TURN_completed, 1);
    wait_for(host, leaves.s, TURN_completed, 1);
    send_pause(host, CONTROL_pause, 0);
    wait_stored(host, "w1", "SELECT count(*) FROM note WHERE key = '~pause'", "1");
    worker_stop(host, "w1");
    sending.partition = 1;
    (void)send_turn_as(host, &sending);
    age(host, stays.s, 20, 20);

    host->unchecked = true;
    worker_start(host, "w2");
    wait_forgotten(host, leaves.s); /* in the same round, if both may be */
    assert_true(in_log(host, stays.s));
    worker_stop(host, "w2");
    send_pause(host, CONTROL_resume, 0);
    worker_start(host, "w2");
    wait_forgotten(host, stays.s);
    worker_stop(host, "w2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOST_TEST(test_a_turn_is_claimed_and_completed),
        HOST_TEST(test_r31_a_failed_attempt_is_followed_by_the_next),
        HOST_TEST(test_r33_rotation_is_another_attempt),
        HOST_TEST(test_r39_exhausted_is_parked_and_replayed),
        HOST_TEST(test_rule_29_a_replay_names_the_parked_attempt),
        HOST_TEST(test_the_budget_of_replays),
        HOST_TEST(test_rule_18_a_known_turn_is_a_duplicate),
        HOST_TEST(test_x9_a_contradicting_turn_is_rejected),
        HOST_TEST(test_cancel_of_a_running_turn),
        HOST_TEST(test_cancel_of_a_queued_and_of_a_parked_turn),
        HOST_TEST(test_rule_28_a_cancel_before_its_handoff),
        HOST_TEST(test_rule_28_a_cancel_together_with_its_handoff),
        HOST_TEST(test_rule_28_a_note_outlives_missing_outcomes),
        HOST_TEST(test_pause_holds_handoffs_and_outlives_a_restart),
        HOST_TEST(test_not_before_is_waited_for),
        HOST_TEST(test_garbage_is_rejected_and_holds_nothing_back),
        HOST_TEST(test_a_full_disk_is_waited_out),
        HOST_TEST(test_i11_a_stop_counts_in_no_budget),
        HOST_TEST(test_a_closed_pipe_is_a_clean_stop),
        HOST_TEST(test_rule_30_a_closed_turn_leaves_by_the_dates_of_the_log),
        HOST_TEST(test_rule_30_a_closed_turn_stays_before_its_handoffs_are_read),
    };
    return cmocka_run_group_tests_name("worker: a turn's life", tests, NULL, NULL);
}
