/* A worker in a program of one's own, seen through the public headers only (baton/worker.h,
 * baton/publish.h). */
#include "baton/publish.h"
#include "baton/worker.h"
#include "topics/provision.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WAIT_MS 20000

#define OK(call)                                                                                   \
    do {                                                                                           \
        struct baton_error ok_err = {BATON_E_ok, ""};                                              \
        struct baton_error *err = &ok_err;                                                         \
        baton_code ok_rc = (call);                                                                 \
        if (ok_rc != BATON_E_ok) {                                                                 \
            fail_msg("line %d: %s: %s: %s", __LINE__, #call, baton_code_word(ok_rc), ok_err.text); \
        }                                                                                          \
    } while (0)

struct place {
    char dir[64];
    char config[96];
    atomic_int calls;
    atomic_bool hold; /* a call waits until it is false, or until it is told to stop */
    atomic_bool told; /* to stop */
    char role[16];
};

static int do_turn(const struct baton_attempt *attempt, struct baton_result *result, void *arg)
{
    struct place *place = arg;
    snprintf(place->role, sizeof(place->role), "%s", baton_attempt_role(attempt));
    atomic_fetch_add(&place->calls, 1);
    while (atomic_load(&place->hold)) {
        if (baton_attempt_stopped(attempt)) {
            atomic_store(&place->told, true);
            return 75;
        }
        (void)poll(NULL, 0, 2);
    }
    baton_result_verdict(result, "approve", "seen");
    return 0;
}

static void write_config(const struct place *place)
{
    FILE *file = fopen(place->config, "w");
    assert_non_null(file);
    fprintf(file, "version: 1\nlog: local\nlocal: {path: log.db, partitions: 2}\nstate_dir: "
                  "data\nidentity: tester\nproof: off\n"
                  "services:\n  lint: {roles: [reviewer], parallel: 2, deadline: 30s, grace: 10s, "
                  "executor: {kind: callback}}\n");
    assert_int_equal(fclose(file), 0);
}

static int setup(void **state)
{
    struct place *place = calloc(1, sizeof(*place));
    assert_non_null(place);
    snprintf(place->dir, sizeof(place->dir), "/tmp/baton-embed-XXXXXX");
    assert_non_null(mkdtemp(place->dir));
    snprintf(place->config, sizeof(place->config), "%s/baton.yaml", place->dir);
    write_config(place);
    *state = place;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static int teardown(void **state)
{
    struct place *place = *state;
    baton_log_to(NULL, NULL, BATON_LOG_ERROR);
    nftw(place->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(place);
    return 0;
}

static void make_topics(const struct place *place)
{
    struct config *config = NULL;
    OK(config_load(place->config, NULL, 0, &config, NULL, err));
    OK(provision_all(config, NULL, err));
    config_free(config);
}

static void publish(const struct place *place, const char *task)
{
    struct baton_publisher *publisher = NULL;
    struct baton_published *published = NULL;
    struct baton_turn turn = BATON_TURN_INIT;
    turn.service = "lint";
    turn.role = "reviewer";
    turn.task_id = task;
    OK(baton_publisher_open(place->config, &publisher, err));
    OK(baton_publish(publisher, &turn, &published, err));
    baton_published_free(published);
    baton_publisher_close(publisher);
}

static struct baton_worker *open_worker(struct place *place, bool drain)
{
    struct baton_worker *worker = NULL;
    struct baton_worker_options options = BATON_WORKER_OPTIONS_INIT;
    options.config_path = place->config;
    options.service = "lint";
    options.id = "embedded";
    options.drain = drain;
    OK(baton_worker_open(&options, do_turn, place, &worker, err));
    return worker;
}

static void wait_calls(struct place *place, int count)
{
    for (int i = 0; i < WAIT_MS / 2 && atomic_load(&place->calls) < count; i++) {
        (void)poll(NULL, 0, 2);
    }
    assert_int_equal(atomic_load(&place->calls), count);
}

static void test_what_cannot_be_opened_is_refused(void **state)
{
    struct place *place = *state;
    struct baton_worker *worker = NULL;
    struct baton_error err;
    struct baton_worker_options options = BATON_WORKER_OPTIONS_INIT;
    options.config_path = place->config;
    assert_int_equal(baton_worker_open(&options, do_turn, place, &worker, &err), BATON_E_usage);
    options.service = "Lint";
    assert_int_equal(baton_worker_open(&options, do_turn, place, &worker, &err),
                     BATON_E_bad_service);
    options.service = "nobody";
    assert_int_equal(baton_worker_open(&options, do_turn, place, &worker, &err),
                     BATON_E_unknown_service);
    assert_non_null(strstr(err.text, "nobody"));
    options.service = "lint";
    assert_int_equal(baton_worker_open(&options, NULL, place, &worker, &err), BATON_E_usage);
    options.size--;
    assert_int_equal(baton_worker_open(&options, do_turn, place, &worker, &err), BATON_E_usage);
    options.size++;
    options.config_path = "/nonexistent/baton.yaml";
    assert_int_equal(baton_worker_open(&options, do_turn, place, &worker, NULL),
                     BATON_E_bad_config);
    assert_null(worker);
    baton_worker_free(NULL);
    baton_worker_stop(NULL);
}

static void test_a_worker_drains_in_the_callers_thread(void **state)
{
    struct place *place = *state;
    make_topics(place);
    publish(place, "t-1");
    publish(place, "t-2");
    struct baton_worker *worker = open_worker(place, true);
    OK(baton_worker_run(worker, err));
    assert_int_equal(atomic_load(&place->calls), 2);
    assert_string_equal(place->role, "reviewer");
    assert_int_equal(baton_worker_run(worker, NULL), BATON_E_usage);
    assert_int_equal(baton_worker_wait(worker, 0, NULL), BATON_E_usage);
    baton_worker_free(worker);
}

static void test_a_worker_runs_in_its_own_thread_until_it_is_stopped(void **state)
{
    struct place *place = *state;
    make_topics(place);
    struct baton_worker *worker = open_worker(place, false);
    OK(baton_worker_start(worker, err));
    assert_int_equal(baton_worker_wait(worker, 0, NULL), BATON_E_timed_out);
    publish(place, "t-1");
    wait_calls(place, 1);
    baton_worker_stop(worker);
    OK(baton_worker_wait(worker, WAIT_MS, err));
    OK(baton_worker_wait(worker, -1, err));
    baton_worker_free(worker);
}

static void test_a_start_says_what_kept_it(void **state)
{
    struct place *place = *state;
    struct baton_error err;
    struct baton_worker *worker = open_worker(place, false);
    baton_code rc = baton_worker_start(worker, &err);
    assert_true(rc == BATON_E_service_unavailable || rc == BATON_E_topic_missing);
    assert_true(err.text[0] != '\0');
    assert_int_equal(baton_worker_wait(worker, -1, NULL), rc);
    baton_worker_free(worker);
}

static void test_a_stop_before_the_start_ends_it_at_once(void **state)
{
    struct place *place = *state;
    make_topics(place);
    publish(place, "t-1");
    struct baton_worker *worker = open_worker(place, false);
    baton_worker_stop(worker);
    OK(baton_worker_run(worker, err));
    baton_worker_free(worker);
}

static void wait_told(struct place *place)
{
    for (int64_t end = mono_now().v + WAIT_MS; !atomic_load(&place->told);) {
        assert_true(mono_now().v < end);
        usleep(1000);
    }
}

static void test_freeing_is_a_clean_stop_and_a_second_stop_kills(void **state)
{
    struct place *place = *state;
    make_topics(place);
    atomic_store(&place->hold, true);
    publish(place, "t-1");
    struct baton_worker *worker = open_worker(place, false);
    OK(baton_worker_start(worker, err));
    wait_calls(place, 1);
    baton_worker_stop(worker);
    assert_int_equal(baton_worker_wait(worker, 100, NULL), BATON_E_timed_out);
    assert_false(atomic_load(&place->told)); /* the grace lasts */
    baton_worker_stop(worker);
    OK(baton_worker_wait(worker, WAIT_MS, err));
    wait_told(place); /* a callback cannot be killed: it hears of it in its own time */
    baton_worker_free(worker);

    /* The turn is queued again under its role; it may end within the grace now. */
    worker = open_worker(place, false);
    OK(baton_worker_start(worker, err));
    wait_calls(place, 2);
    atomic_store(&place->told, false);
    atomic_store(&place->hold, false);
    baton_worker_free(worker);
    assert_false(atomic_load(&place->told));
}

static void count_lines(void *arg, int level, const char *line, size_t line_len)
{
    assert_true(level <= BATON_LOG_INFO);
    assert_int_equal(line[line_len - 1], '\n');
    atomic_fetch_add((atomic_int *)arg, 1);
}

static void test_lines_go_where_they_are_asked_for(void **state)
{
    struct place *place = *state;
    atomic_int lines = 0;
    make_topics(place);
    baton_log_to(count_lines, &lines, BATON_LOG_INFO);
    struct baton_worker *worker = open_worker(place, true);
    OK(baton_worker_run(worker, err));
    baton_worker_free(worker);
    assert_true(atomic_load(&lines) > 0);
    baton_log_to(NULL, NULL, BATON_LOG_ERROR);
    int before = atomic_load(&lines);
    worker = open_worker(place, true);
    OK(baton_worker_run(worker, err));
    baton_worker_free(worker);
    assert_int_equal(atomic_load(&lines), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_cannot_be_opened_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_worker_drains_in_the_callers_thread, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_worker_runs_in_its_own_thread_until_it_is_stopped,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_start_says_what_kept_it, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_stop_before_the_start_ends_it_at_once, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_freeing_is_a_clean_stop_and_a_second_stop_kills, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_lines_go_where_they_are_asked_for, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
