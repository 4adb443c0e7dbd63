/*
 * The worker that is measured, in a process of its own, the coordinator beside it, and the child that
 * does turns. All are this program again (`baton bench do-work`, `do-runs`, `do-turns`), so that
 * their memory is not a copy of the measuring one's.
 *
 * In: drain.c, latency.c, idle.c, restart.c, crash.c, restore.c, runs.c,
 * worker/cmd_bench.c  Out: worker/worker.c, producer/coordinator/coordinator.c
 */
#include "worker/bench/bench.h"

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/diag.h"
#include "common/base/metrics.h"
#include "producer/coordinator/coordinator.h"
#include "worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WAKE_FD 3 /* of the worker: its pipe to us */
#define WAIT_MS 120000
#define LOOK_MS 2
#define HOLD_MS 100
#define LINE_MAX_BYTES (1024 * 1024)

extern char **environ;

/* ---- from outside ---- */

static baton_code start(char *const *argv, struct bench_worker *ret_worker, struct baton_error *err)
{
    int fds[2];
    posix_spawn_file_actions_t actions;

    if (pipe2(fds, O_CLOEXEC) != 0) {
        return baton_fail(err, BATON_E_unexpected, "no pipe for the worker: %m");
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds[0], WAKE_FD);
    posix_spawn_file_actions_addclosefrom_np(&actions, WAKE_FD + 1);
    ret_worker->spawned_ns = mono_ns();
    int rc = posix_spawn(&ret_worker->pid, "/proc/self/exe", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(fds[0]);
    if (rc != 0) {
        close(fds[1]);
        return baton_fail(err, BATON_E_unexpected, "the worker cannot be started: %s",
                          strerror(rc));
    }
    ret_worker->wake_fd = fds[1];
    return BATON_OK;
}

baton_code bench_worker_start(const struct bench_set *set, const char *id,
                              struct bench_worker *ret_worker, struct baton_error *err)
{
    char *const argv[] = {(char *)"baton",
                          (char *)"bench",
                          (char *)"do-work",
                          (char *)set->dir,
                          (char *)bench_kind_word(set->kind),
                          (char *)id,
                          NULL};
    return start(argv, ret_worker, err);
}

baton_code bench_coordinator_start(const struct bench_set *set, const char *id,
                                   struct bench_worker *ret_coordinator, struct baton_error *err)
{
    char *const argv[] = {(char *)"baton",  (char *)"bench", (char *)"do-runs",
                          (char *)set->dir, (char *)id,      NULL};
    return start(argv, ret_coordinator, err);
}

struct bench_use bench_worker_use(const struct bench_worker *worker)
{
    struct bench_use use = {0};
    char path[64];
    char line[256];
    clockid_t clock;
    struct timespec at;

    if (clock_getcpuclockid(worker->pid, &clock) == 0 && clock_gettime(clock, &at) == 0) {
        use.cpu_s = (double)at.tv_sec + (double)at.tv_nsec / 1e9;
    }
    snprintf(path, sizeof(path), "/proc/%d/status", worker->pid);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "VmRSS:", 6) == 0) {
            use.rss_kib = strtoll(line + 6, NULL, 10);
        } else if (strncmp(line, "VmHWM:", 6) == 0) {
            use.peak_kib = strtoll(line + 6, NULL, 10);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return use;
}

bool bench_worker_runs(const struct bench_worker *worker)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)worker->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
}

void bench_worker_kill(struct bench_worker *worker)
{
    (void)kill(worker->pid, SIGKILL);
    close(worker->wake_fd);
    while (waitpid(worker->pid, NULL, 0) < 0 && errno == EINTR) {
    }
}

baton_code bench_worker_stop(struct bench_worker *worker, struct bench_use *ret_use,
                             struct baton_error *err)
{
    int status = 0;
    struct rusage usage;
    struct bench_use use = bench_worker_use(worker);

    close(worker->wake_fd);
    while (wait4(worker->pid, &status, 0, &usage) < 0) {
        if (errno != EINTR) {
            return baton_fail(err, BATON_E_unexpected, "the worker's end was not told: %m");
        }
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        return baton_fail(err, BATON_E_unexpected, "the measured worker ended with status %d",
                          WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
    use.cpu_s = (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
                (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    if (ret_use != NULL) {
        *ret_use = use;
    }
    return BATON_OK;
}

baton_code bench_wait(const struct bench_worker *worker, const _Atomic int64_t *value,
                      int64_t at_least, struct baton_error *err)
{
    const int64_t until_ns = mono_ns() + (int64_t)WAIT_MS * 1000000;
    while (atomic_load(value) < at_least) {
        if (!bench_worker_runs(worker)) {
            return baton_fail(err, BATON_E_unexpected, "the measured worker has ended too early");
        }
        if (mono_ns() > until_ns) {
            return baton_fail(err, BATON_E_timed_out,
                              "the measured worker did not get on within %d s", WAIT_MS / 1000);
        }
        (void)poll(NULL, 0, LOOK_MS);
    }
    return BATON_OK;
}

/* ---- the worker ---- */

/* True: the attempt is to run until its worker dies. */
static bool note_start(struct bench_page *page, const char *number)
{
    const int64_t now_ns = mono_ns();
    char *end;
    long long at = strtoll(number, &end, 10);
    int64_t none = 0;
    BATON_PRE(end != number && at >= 0 && at < BENCH_TURNS_MAX);
    const bool first = atomic_exchange(&page->start_ns[at], now_ns) == 0;
    const bool held = at < atomic_load(&page->held);
    atomic_compare_exchange_strong(&page->first_ns, &none, now_ns);
    atomic_fetch_add(held && !first ? &page->again : &page->started, 1);
    return held && first;
}

static int do_turn(const struct baton_attempt *attempt, struct baton_result *result, void *arg)
{
    struct bench_page *page = arg;
    const char *number = baton_attempt_task_id(attempt) + strlen(BENCH_TASK);
    if (page->runs > 0) {
        baton_result_verdict(result, bench_do_run_turn(page, number, baton_attempt_role(attempt)),
                             NULL);
        return 0;
    }
    const bool holds = note_start(page, number);
    while (holds && !baton_attempt_stopped(attempt)) {
        (void)poll(NULL, 0, HOLD_MS);
    }
    baton_result_verdict(result, BENCH_VERDICT, NULL);
    return 0;
}

static void note_ready(void *arg, const char *worker_id)
{
    struct bench_page *page = arg;
    (void)worker_id;
    atomic_store(&page->ready_ns, mono_ns());
}

/* The configuration of a measurement's folder, for a process that lives as long as its pipe; NULL: it
 * was said why there is none. */
static struct config *come_in(const char *dir)
{
    char path[600];
    struct config *config = NULL;
    struct baton_error err = {BATON_OK, ""};

    snprintf(path, sizeof(path), "%s/baton.yaml", dir);
    baton_code rc = config_load(path, NULL, 0, &config, NULL, &err);
    if (rc != BATON_OK || fcntl(WAKE_FD, F_SETFL, O_NONBLOCK) != 0) {
        fprintf(stderr, "baton bench: %s is no folder of a measurement: %s\n", dir, err.text);
        config_free(config);
        return NULL;
    }
    fcntl(WAKE_FD, F_SETFD, FD_CLOEXEC);
    signal(SIGPIPE, SIG_IGN);
    diag_open_stderr(DIAG_error,
                     DIAG_FORM_auto); /* a library writes no lines; who reads a table wants none */
    return config;
}

static int ended(baton_code rc, const struct baton_error *err)
{
    if (rc != BATON_OK) {
        fprintf(stderr, "baton bench: %s\n", err->text);
    }
    return rc == BATON_OK ? 0 : 1;
}

static int be_coordinator(const char *dir, const char *id)
{
    struct baton_error err = {BATON_OK, ""};
    struct config *config = come_in(dir);
    if (config == NULL) {
        return 1;
    }
    const struct coordinator_options options = {
        .config = config, .id = id, .wake_fd = WAKE_FD, .verify_threads = 1};
    const int status = ended(coordinator_run(&options, &err), &err);
    config_free(config);
    return status;
}

static int be_worker(const char *dir, const char *kind, const char *id)
{
    struct baton_error err = {BATON_OK, ""};
    struct bench_page *page = bench_page_map(dir, 0);
    struct config *config = page != NULL ? come_in(dir) : NULL;
    if (config == NULL) {
        return 1;
    }
    const struct worker_options options = {
        .config = config,
        .service = BENCH_SERVICE,
        .id = id,
        .wake_fd = WAKE_FD,
        .verify_threads = 1,
        .callback = strcmp(kind, bench_kind_word(BENCH_callback)) == 0 ? do_turn : NULL,
        .callback_arg = page,
        .callback_threads = (int)atomic_load(&page->threads),
        .ready = note_ready,
        .ready_arg = page,
    };
    const int status = ended(worker_run(&options, &err), &err);
    atomic_store(&page->commits, metric_get(METRIC_log_commits));
    config_free(config);
    return status;
}

/* ---- the child (worker/EXECUTOR.md): answers every line at once ---- */

/* Copies the text of a member that lies outside of the turn (the worker writes it in front). */
static bool member(const char *line, const char *name, char *ret_text, size_t size)
{
    const char *at = strstr(line, name);
    const char *end = at != NULL ? strchr(at + strlen(name), '"') : NULL;
    if (end == NULL || (size_t)(end - at) - strlen(name) >= size) {
        return false;
    }
    memcpy(ret_text, at + strlen(name), (size_t)(end - at) - strlen(name));
    ret_text[(size_t)(end - at) - strlen(name)] = '\0';
    return true;
}

static int be_child(const char *dir)
{
    char id[128];
    char task[128];
    struct bench_page *page = bench_page_map(dir, 0);
    char *line = malloc(LINE_MAX_BYTES);

    if (page == NULL || line == NULL) {
        return 1;
    }
    while (fgets(line, LINE_MAX_BYTES, stdin) != NULL) {
        if (strncmp(line, "{\"type\":\"hello\"", 15) == 0) {
            printf("{\"type\":\"hello\",\"protocol\":1,\"name\":\"bench\",\"parallel\":1000}\n");
        } else if (strncmp(line, "{\"type\":\"turn\"", 14) == 0 &&
                   member(line, "\"id\":\"", id, sizeof(id)) &&
                   member(line, "\"task_id\":\"", task, sizeof(task))) {
            if (!note_start(page, task + strlen(BENCH_TASK))) {
                printf("{\"type\":\"result\",\"id\":\"%s\",\"result\":{\"verdict\":\"" BENCH_VERDICT
                       "\"}}\n",
                       id);
            }
        }
        fflush(stdout);
    }
    free(line);
    return 0;
}

int bench_be(const char *const *args, size_t n_args)
{
    if (n_args == 4 && strcmp(args[0], "do-work") == 0) {
        return be_worker(args[1], args[2], args[3]);
    }
    if (n_args == 3 && strcmp(args[0], "do-runs") == 0) {
        return be_coordinator(args[1], args[2]);
    }
    if (n_args == 2 && strcmp(args[0], "do-turns") == 0) {
        return be_child(args[1]);
    }
    if (n_args == 2 && strcmp(args[0], "do-clean") == 0) {
        return bench_be_cleaner(args[1]);
    }
    return -1;
}
