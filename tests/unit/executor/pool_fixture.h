/* A pool in its own directory, jobs for it, and waiting for what comes: for tests of executors. */
#ifndef BATON_TESTS_UNIT_EXECUTOR_POOL_FIXTURE_H
#define BATON_TESTS_UNIT_EXECUTOR_POOL_FIXTURE_H

#include "common/base/mailbox.h"
#include "worker/executor/executor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define TURN "0123456789abcdef0123456789abcdef"
#define TRACE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
#define BOOT "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define WAIT_MS 60000

struct fixture {
    char dir[64];
    struct mailbox *events;
    struct executor_pool *pool;
    struct executor_settings set;
    struct executor_job job;
    char progress[4096]; /* all progress texts, each with a newline */
};

__attribute__((unused)) static void fixture_new(struct fixture *f, enum executor_kind kind)
{
    memset(f, 0, sizeof(*f));
    strcpy(f->dir, "/tmp/baton-executor-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    f->events = mailbox_new(256);
    f->set = (struct executor_settings){.kind = kind,
                                        .service = service_id_of("lint"),
                                        .worker = plain_id_of("host-1"),
                                        .boot = {BOOT},
                                        .parallel = 4,
                                        .state_dir = f->dir,
                                        .guard_path = BATON_TEST_GUARD,
                                        .grace_ms = 300};
    f->job = (struct executor_job){.turn = turn_id_of(TURN),
                                   .attempt = 1,
                                   .boot = {BOOT},
                                   .role = ROLE_reviewer,
                                   .task = task_id_of("T-41/a#1"),
                                   .task_rev = 7,
                                   .run = plain_id_of("r-9"),
                                   .intent = plain_id_of("review"),
                                   .profile = plain_id_of("default"),
                                   .traceparent = TRACE,
                                   .json = "{\"version\":1,\n\"summary\":\"Review\"}",
                                   .deadline_ms = WAIT_MS};
    f->job.json_len = strlen(f->job.json);
}

__attribute__((unused)) static void fixture_open(struct fixture *f, const char *const *command)
{
    struct baton_error err = {0};
    f->set.command = command;
    for (f->set.n_command = 0; command != NULL && command[f->set.n_command] != NULL;) {
        f->set.n_command++;
    }
    if (executor_pool_new(&f->set, f->events, &f->pool, &err) != BATON_OK) {
        fail_msg("%s", err.text);
    }
}

/* A pool over `sh -c script`. */
__attribute__((unused)) static void fixture_open_script(struct fixture *f, const char *script)
{
    const char *const command[] = {"sh", "-c", script, NULL};
    fixture_open(f, command);
}

__attribute__((unused)) static void fixture_done(struct fixture *f)
{
    char command[256];
    executor_pool_free(f->pool);
    for (struct executor_event *event; (event = mailbox_take(f->events)) != NULL;) {
        executor_event_free(event);
    }
    mailbox_free(f->events);
    snprintf(command, sizeof(command), "chmod -R u+rwx %s && rm -rf %s", f->dir, f->dir);
    assert_int_equal(system(command), 0);
}

__attribute__((unused)) static void fixture_start(struct fixture *f)
{
    struct baton_error err = {0};
    if (executor_start(f->pool, &f->job, &err) != BATON_OK) {
        fail_msg("%s", err.text);
    }
}

/* The next event of a kind; progress that comes meanwhile is noted. */
__attribute__((unused)) static struct executor_event *fixture_next(struct fixture *f,
                                                                   enum executor_event_kind kind)
{
    for (;;) {
        if (!mailbox_wait(f->events, WAIT_MS)) {
            fail_msg("no event came");
        }
        struct executor_event *event = mailbox_take(f->events);
        if (event->kind == EXECUTOR_EVENT_progress) {
            size_t have = strlen(f->progress);
            snprintf(f->progress + have, sizeof(f->progress) - have, "%s\n", event->text);
        }
        if (event->kind == kind) {
            assert_string_equal(event->boot.s, BOOT);
            return event;
        }
        executor_event_free(event);
    }
}

/* The end of one attempt that was started now. */
__attribute__((unused)) static struct executor_event *fixture_run(struct fixture *f)
{
    fixture_start(f);
    return fixture_next(f, EXECUTOR_EVENT_end);
}

__attribute__((unused)) static void expect_ok(struct executor_event *event, enum verdict verdict,
                                              const char *result)
{
    if (!event->end.ok) {
        fail_msg("failed %s: %s\n%s", failure_word(event->end.failure), event->end.message,
                 event->end.output);
    }
    assert_int_equal(event->end.verdict, verdict);
    assert_string_equal(event->end.result, result);
    executor_event_free(event);
}

__attribute__((unused)) static void expect_failure(struct executor_event *event,
                                                   enum failure failure, const char *message_part)
{
    assert_false(event->end.ok);
    assert_string_equal(failure_word(event->end.failure), failure_word(failure));
    if (strstr(event->end.message, message_part) == NULL) {
        fail_msg("'%s' lacks '%s'", event->end.message, message_part);
    }
    assert_null(event->end.result);
    executor_event_free(event);
}

/* Waits until a file in the fixture's directory has a whole line; its number. */
__attribute__((unused)) static long fixture_number(struct fixture *f, const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    for (int64_t until = mono_now().v + WAIT_MS; mono_now().v < until; usleep(1000)) {
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
    }
    fail_msg("%s did not come", path);
    return 0;
}

__attribute__((unused)) static bool process_alive(long pid)
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

__attribute__((unused)) static void wait_process_gone(long pid, int64_t within_ms)
{
    for (int64_t until = mono_now().v + within_ms; process_alive(pid); usleep(1000)) {
        assert_true(mono_now().v < until);
    }
}

/* How many entries the pool's scratch folder has. */
__attribute__((unused)) static int fixture_scratch_count(const struct fixture *f)
{
    char command[256];
    int n = -1;
    snprintf(command, sizeof(command), "ls -A %s/scratch/lint.host-1 | wc -l", f->dir);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_int_equal(fscanf(pipe, "%d", &n), 1);
    pclose(pipe);
    return n;
}

__attribute__((unused)) static void wait_scratch_empty(const struct fixture *f)
{
    for (int64_t until = mono_now().v + WAIT_MS; fixture_scratch_count(f) != 0; usleep(2000)) {
        assert_true(mono_now().v < until);
    }
}

#endif
