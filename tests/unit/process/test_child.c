/* Programs under baton-guard: ends, descriptors, trees (FIELD G01, G03, G07; RULES L-39, L-46). */
#include "common/base/clock.h"
#include "common/process/child.h"
#include "common/process/sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[64];
static const char *const plain_env[] = {"PATH=/usr/bin:/bin", NULL};

static int set_up(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/baton-child-XXXXXX");
    return mkdtemp(dir) != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    return system(command);
}

static struct child start(const char *const *argv, const char *const *env, int out)
{
    struct child child;
    struct baton_error err = {0};
    struct child_spec spec = {
        .guard = BATON_TEST_GUARD, .argv = argv, .env = env, .cwd = dir, .fds = {-1, out, -1, -1}};
    if (child_spawn(&spec, &child, &err) != BATON_OK) {
        fail_msg("%s", err.text);
    }
    return child;
}

static struct child_status finish(struct child *child, int64_t within_ms)
{
    struct child_status status = {0};
    struct pollfd fd = {child->pidfd, POLLIN, 0};
    assert_int_equal(poll(&fd, 1, (int)within_ms), 1);
    assert_true(child_reap(child, &status));
    child_done(child);
    return status;
}

static struct child_status run(const char *script)
{
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    struct child child = start(argv, plain_env, -1);
    return finish(&child, 20000);
}

/* Waits until the file has a whole line; its number. */
static long number_in(const char *name)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    for (int64_t until = mono_now().v + 20000; mono_now().v < until;) {
        FILE *file = fopen(path, "r");
        long number = 0;
        char newline = 0;
        bool whole = file != NULL && fscanf(file, "%ld%c", &number, &newline) == 2;
        if (file != NULL) {
            fclose(file);
        }
        if (whole) {
            return number;
        }
        usleep(1000);
    }
    fail_msg("%s did not come", path);
    return 0;
}

/* Gone, or a zombie that nobody has reaped yet. */
static bool alive(long pid)
{
    char path[64];
    char text[256] = "";
    snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return false;
    }
    size_t n = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[n] = '\0';
    const char *at = strrchr(text, ')');
    return at != NULL && at[2] != 'Z' && at[2] != 'X';
}

static void wait_gone(long pid, int64_t within_ms)
{
    for (int64_t until = mono_now().v + within_ms; alive(pid);) {
        assert_true(mono_now().v < until);
        usleep(1000);
    }
}

static void test_ends_are_told_apart(void **state)
{
    (void)state;
    struct child_status status = run("exit 0");
    assert_int_equal(status.end, CHILD_END_exited);
    assert_int_equal(status.value, 0);
    status = run("exit 137");
    assert_int_equal(status.end, CHILD_END_exited);
    assert_int_equal(status.value, 137);
    status = run("kill -9 $$");
    assert_int_equal(status.end, CHILD_END_signaled);
    assert_int_equal(status.value, SIGKILL);
    status = run("kill -SEGV $$");
    assert_int_equal(status.end, CHILD_END_signaled);
    assert_int_equal(status.value, SIGSEGV);
    assert_false(status.left);
}

static void test_exec_failure_is_told(void **state)
{
    (void)state;
    const char *const argv[] = {"/nonexistent/program", NULL};
    struct child child = start(argv, plain_env, -1);
    struct child_status status = finish(&child, 20000);
    assert_int_equal(status.end, CHILD_END_exec_failed);
    assert_int_equal(status.value, ENOENT);
}

/* A guard that begins when the file "go" is there, so that what is said to it is there before. */
static void write_waiting_guard(char path[128])
{
    snprintf(path, 128, "%s/guard", dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\nwhile [ ! -e go ]; do sleep 0.01; done\nexec %s \"$@\"\n",
            BATON_TEST_GUARD);
    fclose(file);
    assert_int_equal(chmod(path, 0755), 0);
}

static void say_end(struct child *child)
{
    shutdown(child->lifeline, SHUT_WR); /* as if the worker had died, but what is told is heard */
}

/* Told to end before or while the guard looks at the place, the program is not begun: nobody can begin
 * this one, and the guard would say so. */
static void test_E06_what_ends_before_it_begins_is_not_begun(void **state)
{
    (void)state;
    const char *const argv[] = {"/nonexistent/program", NULL};
    static void (*const says[])(struct child *) = {child_kill, say_end, child_term};
    char command[192];
    char guard[128];
    write_waiting_guard(guard);
    for (int i = 0; i < 6; i++) {
        struct baton_error err = {0};
        struct child child;
        struct child_spec spec = {.guard = guard,
                                  .argv = argv,
                                  .env = plain_env,
                                  .cwd = dir,
                                  .fds = {-1, -1, -1, -1},
                                  .look = i < 3};
        snprintf(command, sizeof(command), "rm -f %s/go && mkdir -p %s/a/b", dir, dir);
        assert_int_equal(system(command), 0);
        assert_int_equal(child_spawn(&spec, &child, &err), BATON_OK);
        says[i % 3](&child);
        snprintf(command, sizeof(command), "touch %s/go", dir);
        assert_int_equal(system(command), 0);
        struct child_status status = finish(&child, 20000);
        assert_int_equal(status.end, CHILD_END_signaled);
        assert_int_equal(status.value, i % 3 == 2 ? SIGTERM : SIGKILL);
    }
}

static void test_missing_directory_is_told(void **state)
{
    (void)state;
    const char *const argv[] = {"/bin/true", NULL};
    struct child child;
    struct baton_error err;
    struct child_spec spec = {.guard = BATON_TEST_GUARD,
                              .argv = argv,
                              .env = plain_env,
                              .cwd = "/nonexistent",
                              .fds = {-1, -1, -1, -1}};
    assert_int_equal(child_spawn(&spec, &child, &err), BATON_E_place_missing);
    assert_non_null(strstr(err.text, "/nonexistent"));
}

static void test_only_four_descriptors_and_own_session_G03(void **state)
{
    (void)state;
    int pipe_fds[2];
    char text[512] = "";
    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    int leaked = dup(pipe_fds[0]); /* a careless library's descriptor, without O_CLOEXEC */
    assert_true(leaked > 4);
    const char *const argv[] = {"/bin/sh", "-c",
                                "echo $(ls /proc/self/fd | tr '\\n' ' ') "
                                "$(cut -d' ' -f5,6 /proc/$$/stat) $$ "
                                "$(grep -E '^Sig(Blk|Ign)' /proc/$$/status | tr -d '\\n\\t')",
                                NULL};
    signal(SIGPIPE, SIG_IGN);
    struct child child = start(argv, plain_env, pipe_fds[1]);
    close(pipe_fds[1]);
    finish(&child, 20000);
    signal(SIGPIPE, SIG_DFL);
    assert_true(read(pipe_fds[0], text, sizeof(text) - 1) > 0);
    close(pipe_fds[0]);
    close(leaked);
    int fds[5];
    long group;
    long session;
    long pid;
    unsigned long blocked;
    unsigned long ignored;
    /* ls itself has its directory open as the fifth */
    assert_int_equal(sscanf(text, "%d %d %d %d %d %ld %ld %ld SigBlk:%lxSigIgn:%lx", &fds[0],
                            &fds[1], &fds[2], &fds[3], &fds[4], &group, &session, &pid, &blocked,
                            &ignored),
                     10);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(fds[i], i);
    }
    assert_int_equal(group, pid);
    assert_int_equal(session, pid);
    assert_int_not_equal(group, getpgrp());
    assert_int_equal(blocked, 0);
    assert_int_equal(ignored & ~(3ul << 31), 0); /* but glibc's own 32 and 33 */
}

/* A grandchild that left the session, and one that forked twice. */
#define TREE                                                                                       \
    "setsid sh -c 'echo $$ > a; exec sleep 1000' & "                                               \
    "(setsid sh -c 'trap \"\" TERM HUP INT; echo $$ > b; sleep 1000; sleep 1000' &) ; "

static void test_G01_tree_is_gone_after_kill(void **state)
{
    (void)state;
    const char *const argv[] = {"/bin/sh", "-c", TREE "echo $$ > c; wait; sleep 1000", NULL};
    struct child child = start(argv, plain_env, -1);
    long pids[] = {number_in("a"), number_in("b"), number_in("c")};
    child_kill(&child);
    struct child_status status = finish(&child, 20000);
    assert_int_equal(status.end, CHILD_END_signaled);
    assert_int_equal(status.value, SIGKILL);
    assert_false(status.left);
    for (int i = 0; i < 3; i++) {
        assert_false(alive(pids[i])); /* at once: the guard ends last */
    }
}

/* Processes that leave at once, again and again, each into a session of its own. */
static void test_X34_hopping_processes_are_caught(void **state)
{
    (void)state;
    char path[128];
    snprintf(path, sizeof(path), "%s/hop", dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("#!/bin/sh\necho $$ > now.$1.$$ && mv now.$1.$$ last.$1\nsetsid ./hop $1 &\nexit 0\n",
          file);
    fclose(file);
    assert_int_equal(chmod(path, 0700), 0);
    const char *const argv[] = {"/bin/sh", "-c", "./hop 1 & ./hop 2 & sleep 1000", NULL};
    struct child child = start(argv, plain_env, -1);
    long first = number_in("last.1");
    number_in("last.2");
    while (number_in("last.1") == first) {
        usleep(1000);
    }
    child_kill(&child);
    struct child_status status = finish(&child, 20000);
    assert_false(status.left);
    long last[] = {number_in("last.1"), number_in("last.2")};
    assert_false(alive(last[0]) || alive(last[1]));
    usleep(100000); /* the thing waited for is that nothing happens */
    assert_int_equal(number_in("last.1"), last[0]);
    assert_int_equal(number_in("last.2"), last[1]);
}

static void test_G01_tree_is_gone_after_exit(void **state)
{
    (void)state;
    const char *const argv[] = {
        "/bin/sh", "-c", TREE "while [ ! -s a ] || [ ! -s b ]; do sleep 0.01; done; exit 5", NULL};
    struct child child = start(argv, plain_env, -1);
    long pids[] = {number_in("a"), number_in("b")};
    struct child_status status = finish(&child, 20000);
    assert_int_equal(status.end, CHILD_END_exited);
    assert_int_equal(status.value, 5);
    assert_false(alive(pids[0]));
    assert_false(alive(pids[1]));
}

static void test_E06_term_reaches_the_group_and_may_be_ignored(void **state)
{
    (void)state;
    const char *const polite[] = {"/bin/sh", "-c",
                                  "trap 'exit 9' TERM; echo $$ > p; sleep 1000 & wait", NULL};
    const char *const deaf[] = {"/bin/sh", "-c",
                                "trap '' TERM; echo $$ > d; while :; do sleep 0.05; done", NULL};
    struct child child = start(polite, plain_env, -1);
    number_in("p");
    child_term(&child);
    assert_int_equal(finish(&child, 20000).value, 9);
    child = start(deaf, plain_env, -1);
    long pid = number_in("d");
    child_term(&child);
    struct child_status status;
    struct pollfd fd = {child.pidfd, POLLIN, 0};
    assert_int_equal(poll(&fd, 1, 200), 0);
    assert_false(child_reap(&child, &status));
    child_kill(&child);
    assert_int_equal(finish(&child, 20000).value, SIGKILL);
    assert_false(alive(pid));
}

static void test_G07_L_39_nothing_outlives_the_worker(void **state)
{
    (void)state;
    pid_t worker = fork();
    if (worker == 0) { /* stands for a worker that is killed */
        const char *const argv[] = {"/bin/sh", "-c", TREE "echo $$ > c; wait; sleep 1000", NULL};
        start(argv, plain_env, -1);
        pause();
        _exit(0);
    }
    long pids[] = {number_in("a"), number_in("b"), number_in("c")};
    kill(worker, SIGKILL);
    waitpid(worker, NULL, 0);
    int64_t until = mono_now().v + 1000;
    for (int i = 0; i < 3; i++) {
        wait_gone(pids[i], until - mono_now().v);
    }
}

static void test_lost_guard_takes_its_program_along(void **state)
{
    (void)state;
    const char *const env[] = {"PATH=/usr/bin:/bin", "BATON_SCRATCH=/tmp/lost-guard-test", NULL};
    const char *const argv[] = {"/bin/sh", "-c", TREE "echo $$ > c; wait; sleep 1000", NULL};
    struct child child = start(argv, env, -1);
    long pids[] = {number_in("a"), number_in("b"), number_in("c")};
    kill(child.pid, SIGKILL);
    struct child_status status = finish(&child, 20000);
    assert_int_equal(status.end, CHILD_END_guard_lost);
    assert_int_equal(status.value, SIGKILL);
    wait_gone(pids[2], 5000); /* the parent-death signal */
    assert_true(alive(pids[0]));
    assert_true(alive(pids[1]));
    sweep_kill(&(struct sweep_mark){.equals = "BATON_SCRATCH=/tmp/lost-guard-test"});
    wait_gone(pids[0], 5000);
    wait_gone(pids[1], 5000);
}

static long start_marked(const char *name, const char *worker, const char *boot,
                         const char *scratch)
{
    pid_t pid = fork();
    if (pid == 0) {
        char *env[] = {(char *)"A=1", (char *)worker, (char *)boot, (char *)scratch, NULL};
        char *argv[] = {(char *)"sleep", (char *)"1000", NULL};
        execve("/bin/sleep", argv, env);
        _exit(1);
    }
    /* until it has executed, it carries our environment */
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    for (char text[32] = ""; strncmp(text, "sleep", 5) != 0; usleep(500)) {
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        assert_non_null(fgets(text, sizeof(text), file));
        fclose(file);
    }
    (void)name;
    return pid;
}

static bool shows(pid_t pid, const char *entry)
{
    char path[64];
    char text[4096];
    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    FILE *file = fopen(path, "r");
    const size_t n = file != NULL ? fread(text, 1, sizeof(text), file) : 0;
    if (file != NULL) {
        fclose(file);
    }
    return memmem(text, n, entry, strlen(entry)) != NULL;
}

/* Whoever is just beginning a program shows no environment for a moment, and is not overlooked for it. */
static void test_L_46_sweep_sees_who_begins_a_program(void **state)
{
    (void)state;
    for (int i = 0; i < 40; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            char *env[] = {(char *)"BATON_WORKER=sweep-test/again", NULL};
            char *argv[] = {(char *)"sh", (char *)"-c", (char *)"exec sh -c \"$0\" \"$0\"",
                            (char *)"exec sh -c \"$0\" \"$0\"", NULL};
            execve("/bin/sh", argv, env);
            _exit(1);
        }
        while (!shows(pid, "BATON_WORKER=sweep-test/again")) {
            usleep(500);
        }
        usleep(137 * (useconds_t)i); /* anywhere in its round */
        int killed = sweep_kill(&(struct sweep_mark){.equals = "BATON_WORKER=sweep-test/again"});
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        assert_int_equal(killed, 1);
    }
}

static void test_L_46_sweep_kills_only_the_other_boot(void **state)
{
    (void)state;
    long old = start_marked("old", "BATON_WORKER=sweep-test/w1", "BATON_BOOT=1111",
                            "BATON_SCRATCH=/tmp/fleet-a/x");
    long ours = start_marked("ours", "BATON_WORKER=sweep-test/w1", "BATON_BOOT=2222",
                             "BATON_SCRATCH=/tmp/fleet-a/y");
    long other = start_marked("other", "BATON_WORKER=sweep-test/w10", "BATON_BOOT=1111",
                              "BATON_SCRATCH=/tmp/fleet-a/z");
    long fleet = start_marked("fleet", "BATON_WORKER=sweep-test/w1", "BATON_BOOT=3333",
                              "BATON_SCRATCH=/tmp/fleet-b/x");
    int killed = sweep_kill(&(struct sweep_mark){.equals = "BATON_WORKER=sweep-test/w1",
                                                 .begins = "BATON_SCRATCH=/tmp/fleet-a/",
                                                 .lacks = "BATON_BOOT=2222"});
    bool survived = alive(ours) && alive(other) && alive(fleet);
    bool gone = !alive(old);
    long pids[] = {old, ours, other, fleet};
    for (int i = 0; i < 4; i++) {
        kill((pid_t)pids[i], SIGKILL);
        waitpid((pid_t)pids[i], NULL, 0);
    }
    assert_int_equal(killed, 1);
    assert_true(gone);
    assert_true(survived);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_ends_are_told_apart, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_exec_failure_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_E06_what_ends_before_it_begins_is_not_begun, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_missing_directory_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_only_four_descriptors_and_own_session_G03, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_G01_tree_is_gone_after_kill, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_X34_hopping_processes_are_caught, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_G01_tree_is_gone_after_exit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_E06_term_reaches_the_group_and_may_be_ignored, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_G07_L_39_nothing_outlives_the_worker, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_lost_guard_takes_its_program_along, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_L_46_sweep_sees_who_begins_a_program, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_L_46_sweep_kills_only_the_other_boot, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
