/*
 * Kills, or finds, what carries a mark in its environment.
 * In: worker/executor (start of a pool, lost guards), deploy/doctor_services.c. Out: the kernel.
 */
#include "common/process/sweep.h"

#include "common/base/buf.h"
#include "common/base/check.h"
#include "common/base/clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ENVIRON_MAX (2 * 1024 * 1024) /* the kernel's own limit of arguments and environment */
#define PASSES_MAX 20 /* who forks faster than this is met at its next start again */
#define GONE_MS 2000
#define DOUBTS_MAX 64 /* processes that show no environment and are looked at again */
#define LOOKS_MAX 30
#define LOOK_MS 2

static bool read_environment(pid_t pid, struct buf *text)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    buf_clear(text);
    while (text->len < ENVIRON_MAX) {
        char *at = buf_reserve(text, 16384);
        ssize_t n = at != NULL ? read(fd, at, 16384) : -1;
        if (n <= 0) {
            break;
        }
        text->len += (size_t)n;
    }
    close(fd);
    return text->len > 0 && buf_ok(text);
}

static bool carries(const struct buf *environment, const struct sweep_mark *mark)
{
    bool equals = mark->equals == NULL;
    bool begins = mark->begins == NULL;
    size_t begins_len = begins ? 0 : strlen(mark->begins);
    const char *end = environment->data + environment->len;
    for (const char *at = environment->data; at < end;) {
        size_t n = strnlen(at, (size_t)(end - at));
        size_t want = mark->equals != NULL ? strlen(mark->equals) : 0;
        equals = equals || (n == want && memcmp(at, mark->equals, n) == 0);
        begins = begins || (n >= begins_len && memcmp(at, mark->begins, begins_len) == 0);
        if (mark->lacks != NULL && n == strlen(mark->lacks) && memcmp(at, mark->lacks, n) == 0) {
            return false;
        }
        at += n + 1;
    }
    return equals && begins;
}

static pid_t parent_of(pid_t pid)
{
    char path[64];
    char text[512];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    text[n > 0 ? n : 0] = '\0';
    const char *at = strrchr(text, ')');
    return at != NULL && strlen(at) > 4 ? (pid_t)strtol(at + 4, NULL, 10) : 0;
}

/* This process or one above it: a worker may run inside an executor of another worker. */
static bool is_ours(pid_t pid)
{
    pid_t at = getpid();
    for (int i = 0; i < 4096 && at > 1; i++) {
        if (at == pid) {
            return true;
        }
        at = parent_of(at);
    }
    return false;
}

/* Neither one of the kernel's nor dead: it shows no environment because it is just beginning a program
 * (between the old memory and the new), or has none. */
static bool begins_a_program(pid_t pid)
{
    char path[64];
    char program[2];
    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    return readlink(path, program, sizeof(program)) > 0;
}

/* *ret_doubt is set if it cannot be told yet. */
static bool kill_one(pid_t pid, const struct sweep_mark *mark, struct buf *text, int64_t until_ms,
                     bool *ret_doubt)
{
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0) {
        return false;
    }
    const bool shown = read_environment(pid, text);
    bool meant = shown && carries(text, mark) && !is_ours(pid);
    *ret_doubt = *ret_doubt || (!shown && begins_a_program(pid));
    bool killed = meant && syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) == 0;
    int64_t left = until_ms - mono_ns() / 1000000;
    if (killed && left > 0) {
        struct pollfd fd = {pidfd, POLLIN, 0};
        poll(&fd, 1, (int)left);
    }
    close(pidfd);
    return killed;
}

struct sweep {
    const struct sweep_mark *mark;
    DIR *proc;
    struct buf text;
    int64_t until_ms;
    pid_t doubts[DOUBTS_MAX];
    int n_doubts;
};

/* Looks at all processes. How many were killed; those in doubt are noted. */
static int look_at_all(struct sweep *sweep)
{
    int killed = 0;
    sweep->n_doubts = 0;
    rewinddir(sweep->proc);
    for (struct dirent *entry; (entry = readdir(sweep->proc)) != NULL;) {
        bool doubt = false;
        char *end;
        const long pid = strtol(entry->d_name, &end, 10);
        if (*end != '\0' || pid <= 1) {
            continue;
        }
        killed += kill_one((pid_t)pid, sweep->mark, &sweep->text, sweep->until_ms, &doubt);
        if (doubt && sweep->n_doubts < DOUBTS_MAX) {
            sweep->doubts[sweep->n_doubts++] = (pid_t)pid;
        }
    }
    return killed;
}

/* The same for those in doubt, until they show what they are. */
static int look_at_doubts(struct sweep *sweep)
{
    int killed = 0;
    for (int look = 0; look < LOOKS_MAX && sweep->n_doubts > 0; look++) {
        const int n = sweep->n_doubts;
        sweep->n_doubts = 0;
        poll(NULL, 0, LOOK_MS);
        for (int i = 0; i < n; i++) {
            bool doubt = false;
            const pid_t pid = sweep->doubts[i];
            killed += kill_one(pid, sweep->mark, &sweep->text, sweep->until_ms, &doubt);
            if (doubt) {
                sweep->doubts[sweep->n_doubts++] = pid;
            }
        }
    }
    return killed;
}

int sweep_kill(const struct sweep_mark *mark)
{
    BATON_PRE(mark->equals != NULL || mark->begins != NULL);
    struct sweep sweep = {.mark = mark,
                          .proc = opendir("/proc"),
                          .text = BUF_INIT,
                          .until_ms = mono_ns() / 1000000 + GONE_MS};
    int killed = 0;
    int found = 1;

    if (sweep.proc == NULL) {
        return 0;
    }
    for (int pass = 0; pass < PASSES_MAX && found > 0; pass++) {
        found = look_at_all(&sweep);
        found += found == 0 ? look_at_doubts(&sweep) : 0;
        killed += found;
    }
    closedir(sweep.proc);
    if (sweep.text.data != NULL) {
        explicit_bzero(sweep.text.data, sweep.text.cap); /* environments hold secrets */
    }
    buf_done(&sweep.text);
    return killed;
}

pid_t sweep_program(const struct sweep_mark *mark)
{
    struct buf text = BUF_INIT;
    DIR *proc = opendir("/proc");
    pid_t found = 0;
    for (struct dirent *entry; proc != NULL && found == 0 && (entry = readdir(proc)) != NULL;) {
        char *end;
        const pid_t pid = (pid_t)strtol(entry->d_name, &end, 10);
        if (*end != '\0' || pid <= 1 || !read_environment(pid, &text) || !carries(&text, mark)) {
            continue;
        }
        const pid_t guard = parent_of(pid);
        const bool guarded = read_environment(guard, &text) && carries(&text, mark);
        const bool above =
            guarded && read_environment(parent_of(guard), &text) && carries(&text, mark);
        found = guarded && !above ? pid : 0;
    }
    if (proc != NULL) {
        closedir(proc);
    }
    buf_done(&text);
    return found;
}
