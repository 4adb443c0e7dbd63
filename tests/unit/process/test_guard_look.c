/* What baton-guard says of a place that must stay as it is, when it is spoken to while it looks (L-36). */
#include "common/base/clock.h"
#include "common/process/child.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[64];
static char place[80];

static int set_up(void **state)
{
    char command[128];
    (void)state;
    strcpy(dir, "/tmp/baton-look-XXXXXX");
    if (mkdtemp(dir) == NULL) {
        return -1;
    }
    snprintf(place, sizeof(place), "%s/place", dir);
    snprintf(command, sizeof(command), "mkdir -p %s/sub/deeper", place);
    return system(command);
}

static int tear_down(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    return system(command);
}

/* Waits until the program has written its pid, and is a zombie: its guard is stopped. */
static void wait_program_ended(void)
{
    char path[128];
    long pid = 0;
    int64_t until = mono_now().v + 60000;
    snprintf(path, sizeof(path), "%s/pid", dir);
    for (bool ended = false; !ended; usleep(1000)) {
        char state = 0;
        char newline = 0;
        FILE *file = fopen(path, "r");
        bool told = file != NULL && fscanf(file, "%ld%c", &pid, &newline) == 2;
        if (file != NULL) {
            fclose(file);
        }
        if (told) {
            char stat[64];
            snprintf(stat, sizeof(stat), "/proc/%ld/stat", pid);
            file = fopen(stat, "r");
            assert_non_null(file);
            ended = fscanf(file, "%*d (%*[^)]) %c", &state) == 1 && state == 'Z';
            fclose(file);
        }
        assert_true(mono_now().v < until);
    }
}

/* The program stops its guard and ends; what is said to the guard then comes before its last look. */
static struct child_status look_spoken_to(const char *does, void (*say)(struct child *))
{
    static const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
    char script[256];
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    struct baton_error err = {0};
    struct child child;
    struct child_status status = {0};
    struct child_spec spec = {.guard = BATON_TEST_GUARD,
                              .argv = argv,
                              .env = env,
                              .cwd = place,
                              .fds = {-1, -1, -1, -1},
                              .look = true};
    snprintf(script, sizeof(script), "%s; kill -STOP $PPID; echo $$ >../pid; exit 0", does);
    assert_int_equal(child_spawn(&spec, &child, &err), BATON_OK);
    wait_program_ended();
    say(&child);
    kill(child.pid, SIGCONT);
    struct pollfd fd = {child.pidfd, POLLIN, 0};
    assert_int_equal(poll(&fd, 1, 60000), 1);
    assert_true(child_reap(&child, &status));
    child_done(&child);
    assert_int_equal(status.end, CHILD_END_exited);
    assert_int_equal(status.value, 0);
    return status;
}

/* A TERM is too late for a program that has ended: the look goes on. */
static void test_L_36_a_term_does_not_end_the_last_look(void **state)
{
    (void)state;
    assert_int_equal(look_spoken_to("echo x >x", child_term).look, CHILD_LOOK_changed);
}

static void test_L_36_what_is_as_it_was_is_so_after_a_term(void **state)
{
    (void)state;
    assert_int_equal(look_spoken_to("true", child_term).look, CHILD_LOOK_same);
}

/* A look that the kill ended has not seen that all is as it was. */
static void test_L_36_a_look_that_was_ended_says_so(void **state)
{
    (void)state;
    assert_int_equal(look_spoken_to("echo x >x", child_kill).look, CHILD_LOOK_unlooked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_L_36_a_term_does_not_end_the_last_look, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_L_36_what_is_as_it_was_is_so_after_a_term, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_L_36_a_look_that_was_ended_says_so, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
