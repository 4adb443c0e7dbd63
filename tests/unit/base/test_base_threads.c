/* What threads and log lines share: the mailbox (T3), the sink, its limits, counters, fault points.
 */
#include "base_test.h"

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/diag.h"
#include "common/base/fault.h"
#include "common/base/mailbox.h"
#include "common/base/failure.h"
#include "common/base/metrics.h"

#include <cjson/cJSON.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- mailbox ---- */

static bool readable(const struct mailbox *mailbox)
{
    struct pollfd fd = {.fd = mailbox_fd(mailbox), .events = POLLIN};
    return poll(&fd, 1, 0) == 1;
}

static void mailbox_is_bounded_and_in_order(void **state)
{
    (void)state;
    int m[4];
    struct mailbox *mailbox = mailbox_new(3);
    for (int round = 0; round < 5; round++) {
        assert_null(mailbox_take(mailbox));
        assert_false(readable(mailbox));
        assert_true(mailbox_post(mailbox, &m[0]));
        assert_true(readable(mailbox));
        assert_true(mailbox_post(mailbox, &m[1]));
        assert_true(mailbox_post(mailbox, &m[2]));
        assert_false(mailbox_post(mailbox, &m[3])); /* full: the caller keeps it */
        assert_int_equal(mailbox_count(mailbox), 3);
        assert_ptr_equal(mailbox_take(mailbox), &m[0]);
        assert_true(mailbox_post(mailbox, &m[3]));
        assert_ptr_equal(mailbox_take(mailbox), &m[1]);
        assert_ptr_equal(mailbox_take(mailbox), &m[2]);
        assert_true(readable(mailbox));
        assert_ptr_equal(mailbox_take(mailbox), &m[3]);
    }
    mailbox_free(mailbox);
    mailbox_free(NULL);
}

static void mailbox_closes(void **state)
{
    (void)state;
    int m;
    struct mailbox *mailbox = mailbox_new(2);
    assert_true(mailbox_post(mailbox, &m));
    mailbox_close(mailbox);
    mailbox_close(mailbox);
    assert_true(mailbox_closed(mailbox));
    assert_false(mailbox_post(mailbox, &m));
    assert_true(mailbox_wait(mailbox, -1));
    assert_ptr_equal(mailbox_take(mailbox), &m);
    assert_true(readable(mailbox)); /* so that a poll loop sees the end */
    assert_false(mailbox_wait(mailbox, -1));
    assert_null(mailbox_take(mailbox));
    mailbox_free(mailbox);
}

static void mailbox_wait_times_out(void **state)
{
    (void)state;
    struct mailbox *mailbox = mailbox_new(1);
    int64_t begin = mono_ns();
    assert_false(mailbox_wait(mailbox, 20));
    assert_true(mono_ns() - begin >= 19000000);
    assert_false(mailbox_wait(mailbox, 0));
    mailbox_free(mailbox);
}

#define POSTERS 4
#define EACH 5000
struct poster {
    struct mailbox *mailbox;
    int values[EACH]; /* value: number of the message, in order */
    int whose;
};

static void *post_all(void *arg)
{
    struct poster *poster = arg;
    for (int i = 0; i < EACH; i++) {
        poster->values[i] = poster->whose * EACH + i;
        while (!mailbox_post(poster->mailbox, &poster->values[i])) {
            sched_yield();
        }
    }
    return NULL;
}

static void t3_many_post_one_takes(void **state)
{
    (void)state;
    static struct poster posters[POSTERS];
    pthread_t threads[POSTERS];
    int next[POSTERS] = {0};
    struct mailbox *mailbox = mailbox_new(16);
    for (int i = 0; i < POSTERS; i++) {
        posters[i].mailbox = mailbox;
        posters[i].whose = i;
        assert_int_equal(pthread_create(&threads[i], NULL, post_all, &posters[i]), 0);
    }
    for (int taken = 0; taken < POSTERS * EACH;) {
        assert_true(mailbox_wait(mailbox, 30000));
        for (int *value; (value = mailbox_take(mailbox)) != NULL; taken++) {
            int whose = *value / EACH;
            assert_int_equal(*value % EACH, next[whose]); /* each poster's order is kept */
            next[whose]++;
        }
    }
    for (int i = 0; i < POSTERS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_null(mailbox_take(mailbox));
    assert_false(readable(mailbox));
    mailbox_free(mailbox);
}

static void *close_it(void *arg)
{
    mailbox_close(arg);
    return NULL;
}

static void closing_wakes_the_taker(void **state)
{
    (void)state;
    struct mailbox *mailbox = mailbox_new(1);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, close_it, mailbox), 0);
    assert_false(mailbox_wait(mailbox, -1));
    assert_true(mailbox_closed(mailbox));
    pthread_join(thread, NULL);
    mailbox_free(mailbox);
}

/* ---- log lines ---- */

struct sunk {
    struct buf text;
    int lines;
};

static void sink(void *arg, enum diag_level level, const char *line, size_t line_len)
{
    struct sunk *sunk = arg;
    (void)level;
    assert_int_equal(line[line_len - 1], '\n');
    buf_add(&sunk->text, line, line_len);
    sunk->lines++;
}

static void diag_is_silent_without_a_sink(void **state)
{
    (void)state;
    diag_set(NULL, NULL, DIAG_debug, DIAG_FORM_auto);
    assert_false(diag_wants(DIAG_error));
    diag_line(DIAG_error, "nobody.listens");
}

static void g1_json_lines(void **state)
{
    (void)state;
    struct sunk sunk = {0};
    diag_set(sink, &sunk, DIAG_info, DIAG_FORM_json);
    clock_test_set((struct wall_ms){1000}, (struct mono_ms){1});
    diag_line(DIAG_info, "turn.moved", D_TEXT("from", "queued"), D_INT("attempt", -3),
              D_BOOL("late", true), D_TEXT("absent", NULL), D_BYTES("raw", "a\x1b\xff", 3),
              D_CODE("code", BATON_E_timed_out));
    diag_line(DIAG_debug, "not.wanted");
    diag_line(DIAG_warn, "bare.event");
    clock_test_set((struct wall_ms){0}, (struct mono_ms){0});
    diag_set(NULL, NULL, DIAG_error, DIAG_FORM_auto);
    assert_string_equal(text_in(&sunk.text),
                        "{\"ts\":\"1970-01-01T00:00:01.000Z\",\"level\":\"info\",\"event\":"
                        "\"turn.moved\",\"from\":\"queued\",\"attempt\":-3,\"late\":true,\"raw\":"
                        "\"a\\u001b\xEF\xBF\xBD\",\"code\":\"timed_out\"}\n"
                        "{\"ts\":\"1970-01-01T00:00:01.000Z\",\"level\":\"warn\",\"event\":"
                        "\"bare.event\"}\n");
    buf_done(&sunk.text);
}

static void g1_readable_lines(void **state)
{
    (void)state;
    struct sunk sunk = {0};
    diag_set(sink, &sunk, DIAG_debug, DIAG_FORM_readable);
    clock_test_set((struct wall_ms){43123}, (struct mono_ms){1});
    diag_line(DIAG_debug, "turn.moved", D_TEXT("from", "queued"), D_TEXT("why", "two words\x1b"),
              D_INT("n", 4), D_BOOL("late", false), D_TEXT("empty", ""));
    clock_test_set((struct wall_ms){0}, (struct mono_ms){0});
    diag_set(NULL, NULL, DIAG_error, DIAG_FORM_auto);
    assert_string_equal(text_in(&sunk.text), "00:00:43.123 debug turn.moved from=queued "
                                             "why=\"two words\\x1b\" n=4 late=false empty=\"\"\n");
    buf_done(&sunk.text);
}

static void g3_foreign_text_is_cut_at_200_bytes(void **state)
{
    (void)state;
    struct sunk sunk = {0};
    char text[400];
    memset(text, 'x', sizeof(text));
    memcpy(text + 195, "\xE2\x82\xAC\xE2\x82\xAC", 6); /* not cut inside */
    for (int form = DIAG_FORM_json; form <= DIAG_FORM_readable; form++) {
        diag_set(sink, &sunk, DIAG_debug, (enum diag_form)form);
        diag_line(DIAG_info, "a.b", D_BYTES("k", text, sizeof(text)));
        diag_line(DIAG_info, "a.b", D_BYTES("k", text, 190));
    }
    diag_set(NULL, NULL, DIAG_error, DIAG_FORM_auto);
    const char *at = text_in(&sunk.text);
    for (int i = 0; i < 4; i++) {
        size_t n = strcspn(at, "\n");
        assert_true(n < 290);
        bool cut = memmem(at, n, "...\"", 4) != NULL;
        assert_int_equal(cut, i % 2 == 0);
        assert_null(memmem(at, n, "\\x", 2));
        assert_null(memmem(at, n, "\xEF\xBF\xBD", 3));
        at += n + 1;
    }
    buf_done(&sunk.text);
}

static void g4_repeating_events_are_counted(void **state)
{
    (void)state;
    struct sunk sunk = {0};
    struct diag_limit limit = DIAG_LIMIT(1000);
    diag_set(sink, &sunk, DIAG_info, DIAG_FORM_json);
    clock_test_set((struct wall_ms){1}, (struct mono_ms){5000});
    for (int i = 0; i < 10; i++) {
        diag_limited(&limit, DIAG_warn, "log.retried", D_INT("i", i));
    }
    assert_int_equal(sunk.lines, 1);
    clock_test_set((struct wall_ms){1}, (struct mono_ms){6000});
    diag_limited(&limit, DIAG_warn, "log.retried");
    assert_int_equal(sunk.lines, 2);
    assert_non_null(strstr(text_in(&sunk.text), "\"event\":\"log.retried\",\"repeated\":9}\n"));
    clock_test_set((struct wall_ms){1}, (struct mono_ms){7000});
    diag_limited(&limit, DIAG_warn, "log.retried");
    assert_int_equal(sunk.lines, 3);
    assert_string_equal(text_in(&sunk.text) + sunk.text.len - 3, "\"}\n"); /* nothing left out */
    clock_test_set((struct wall_ms){0}, (struct mono_ms){0});
    diag_set(NULL, NULL, DIAG_error, DIAG_FORM_auto);
    buf_done(&sunk.text);
}

static void g4_a_burst_is_written_before_the_rest_is_counted(void **state)
{
    (void)state;
    struct sunk sunk = {0};
    struct diag_limit limit = DIAG_LIMIT_BURST(1000, 3);
    diag_set(sink, &sunk, DIAG_info, DIAG_FORM_json);
    clock_test_set((struct wall_ms){1}, (struct mono_ms){5000});
    for (int i = 0; i < 10; i++) {
        diag_limited(&limit, DIAG_warn, "record.rejected", D_INT("i", i));
    }
    assert_int_equal(sunk.lines, 3);
    clock_test_set((struct wall_ms){1}, (struct mono_ms){6000});
    for (int i = 0; i < 10; i++) {
        diag_limited(&limit, DIAG_warn, "record.rejected");
    }
    assert_int_equal(sunk.lines, 6);
    assert_non_null(strstr(text_in(&sunk.text), "\"event\":\"record.rejected\",\"repeated\":7}\n"));
    clock_test_set((struct wall_ms){0}, (struct mono_ms){0});
    diag_set(NULL, NULL, DIAG_error, DIAG_FORM_auto);
    buf_done(&sunk.text);
}

static void *log_much(void *arg)
{
    for (int i = 0; i < 500; i++) {
        diag_line(DIAG_info, "thread.spoke", D_INT("i", i), D_TEXT("text", "some words"));
        diag_limited(arg, DIAG_info, "thread.repeats");
        metric_add(METRIC_log_commits, 1);
        metric_observe(METRIC_start_delay, i % 30);
    }
    return NULL;
}

static void lines_of_threads_are_whole(void **state)
{
    (void)state;
    struct sunk sunk = {0};
    struct diag_limit limit = DIAG_LIMIT(3600000);
    pthread_t threads[4];
    metrics_test_reset();
    diag_set(sink, &sunk, DIAG_info, DIAG_FORM_json);
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, log_much, &limit), 0);
    }
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        pthread_join(threads[i], NULL);
    }
    diag_set(NULL, NULL, DIAG_error, DIAG_FORM_auto);
    assert_int_equal(sunk.lines, 4 * 500 + 1);
    assert_int_equal(limit.left_out, 4 * 500 - 1);
    assert_int_equal(metric_get(METRIC_log_commits), 2000);
    assert_int_equal(metric_get(METRIC_start_delay), 2000);
    for (const char *at = text_in(&sunk.text); *at != '\0'; at = strchr(at, '\n') + 1) {
        const char *end = NULL;
        cJSON *line = cJSON_ParseWithOpts(at, &end, false);
        assert_non_null(line);
        assert_int_equal(*end, '\n');
        cJSON_Delete(line);
    }
    buf_done(&sunk.text);
}

/* ---- metrics ---- */

static void g5_exposition(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    metrics_test_reset();
    metric_add(METRIC_turns_completed, 2);
    metric_add(METRIC_turns_completed, 3);
    metric_set(METRIC_proof_off, 1);
    metric_add(METRIC_attempts_running, 2);
    metric_add(METRIC_attempts_running, -1);
    metric_observe(METRIC_start_delay, 0);
    metric_observe(METRIC_start_delay, 7);
    metric_observe(METRIC_start_delay, 99999999);
    metrics_text(&out);
    assert_non_null(strstr(text_in(&out), "# TYPE baton_turns_completed_total counter\n"
                                          "baton_turns_completed_total 5\n"));
    assert_non_null(strstr(out.data, "# TYPE baton_proof_off gauge\nbaton_proof_off 1\n"));
    assert_non_null(strstr(out.data, "baton_attempts_running 1\n"));
    assert_non_null(strstr(out.data, "baton_start_delay_seconds_bucket{le=\"0.001\"} 1\n"));
    assert_non_null(strstr(out.data, "baton_start_delay_seconds_bucket{le=\"0.01\"} 2\n"));
    assert_non_null(strstr(out.data, "baton_start_delay_seconds_bucket{le=\"3600\"} 2\n"));
    assert_non_null(strstr(out.data, "baton_start_delay_seconds_bucket{le=\"+Inf\"} 3\n"));
    assert_non_null(strstr(out.data, "baton_start_delay_seconds_sum 100000.006\n"));
    assert_non_null(strstr(out.data, "baton_start_delay_seconds_count 3\n"));
    int helps = 0;
    for (const char *at = out.data; (at = strstr(at, "# HELP ")) != NULL; at++) {
        helps++;
    }
    assert_int_equal(helps, METRIC_COUNT + 1); /* and baton_build_info */
    metrics_test_reset();
    buf_done(&out);
}

static void g5_labels_are_closed_lists(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    metrics_test_reset();
    metrics_of("claude", "worker", "w-1");
    metric_add_of(METRIC_attempts_failed, FAILURE_auth, 2);
    metric_add_of(METRIC_attempts_failed, FAILURE_lost, 1);
    assert_int_equal(metric_get(METRIC_attempts_failed), 3);
    metric_observe(METRIC_execution, 7);
    metrics_text(&out);
    int classes = 0;
    for (const char *at = text_in(&out); (at = strstr(at, "baton_attempts_failed_total{")) != NULL;
         at++) {
        classes++;
    }
    assert_int_equal(classes, FAILURE_COUNT);
    assert_non_null(strstr(
        out.data,
        "baton_attempts_failed_total{service=\"claude\",worker=\"w-1\",class=\"auth\"} 2\n"));
    assert_non_null(
        strstr(out.data, "baton_turns_parked_total{service=\"claude\",worker=\"w-1\"} 0\n"));
    assert_non_null(strstr(out.data,
                           "baton_execution_seconds_bucket{service=\"claude\",worker=\"w-1\","
                           "le=\"0.01\"} 1\n"));
    metrics_test_reset();
    buf_done(&out);
}

/* ---- fault points ---- */

#ifdef BATON_FAULTS

static void u5_specs_are_judged(void **state)
{
    (void)state;
    static const char *const wrong[] = {"nowhere:kill",
                                        "store.after_commit",
                                        "store.after_commit:explode",
                                        "store.after_commit:kill:0",
                                        "store.after_commit:kill:x",
                                        "store.after_commit:kill:",
                                        "store.after_commit:",
                                        ":",
                                        "revoke:kill,nowhere:kill",
                                        "store.after_commit:kill:1:2"};
    char text[512];
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        text[0] = '\0';
        if (fault_set(wrong[i], text, sizeof(text))) {
            fail_msg("taken: %s", wrong[i]);
        }
        assert_true(text[0] != '\0');
    }
    fault_set("store.after_comit:kill", text, sizeof(text));
    assert_non_null(strstr(text, "did you mean 'store.after_commit'"));
    assert_true(fault_set(NULL, text, sizeof(text)));
    assert_true(fault_set("", text, sizeof(text)));
}

static void u5_fail_happens_once_at_the_nth_passing(void **state)
{
    (void)state;
    char text[512];
    assert_false(FAULT_FAILS(revoke)); /* reads the environment, where nothing is set */
    assert_true(fault_set("revoke:fail:3,log.before_commit:fail", text, sizeof(text)));
    assert_false(FAULT_FAILS(revoke));
    assert_true(FAULT_FAILS(log_before_commit));
    assert_false(FAULT_FAILS(log_before_commit));
    assert_false(FAULT_FAILS(revoke));
    assert_true(FAULT_FAILS(revoke));
    assert_false(FAULT_FAILS(revoke));
    assert_false(FAULT_FAILS(store_before_commit));
    assert_true(fault_set(NULL, text, sizeof(text)));
}

static int child_passes(const char *spec)
{
    pid_t pid = fork();
    if (pid == 0) {
        char text[512];
        if (!fault_set(spec, text, sizeof(text))) {
            _exit(99);
        }
        FAULT_POINT(store_after_commit);
        FAULT_POINT(store_after_commit);
        _exit(7);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    if (WIFSTOPPED(status)) {
        kill(pid, SIGCONT);
        int end = 0;
        waitpid(pid, &end, 0);
        assert_true(WIFEXITED(end) && WEXITSTATUS(end) == 7);
    }
    return status;
}

static void u5_kill_and_stop_act_on_the_process(void **state)
{
    (void)state;
    int killed = child_passes("store.after_commit:kill:2");
    assert_true(WIFSIGNALED(killed) && WTERMSIG(killed) == SIGKILL);
    int stopped = child_passes("store.after_commit:stop");
    assert_true(WIFSTOPPED(stopped) && WSTOPSIG(stopped) == SIGSTOP);
    int never = child_passes("store.after_commit:kill:3");
    assert_true(WIFEXITED(never) && WEXITSTATUS(never) == 7);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mailbox_is_bounded_and_in_order),
        cmocka_unit_test(mailbox_closes),
        cmocka_unit_test(mailbox_wait_times_out),
        cmocka_unit_test(t3_many_post_one_takes),
        cmocka_unit_test(closing_wakes_the_taker),
        cmocka_unit_test(diag_is_silent_without_a_sink),
        cmocka_unit_test(g1_json_lines),
        cmocka_unit_test(g1_readable_lines),
        cmocka_unit_test(g3_foreign_text_is_cut_at_200_bytes),
        cmocka_unit_test(g4_repeating_events_are_counted),
        cmocka_unit_test(g4_a_burst_is_written_before_the_rest_is_counted),
        cmocka_unit_test(lines_of_threads_are_whole),
        cmocka_unit_test(g5_exposition),
        cmocka_unit_test(g5_labels_are_closed_lists),
#ifdef BATON_FAULTS
        cmocka_unit_test(u5_specs_are_judged),
        cmocka_unit_test(u5_fail_happens_once_at_the_nth_passing),
        cmocka_unit_test(u5_kill_and_stop_act_on_the_process),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
