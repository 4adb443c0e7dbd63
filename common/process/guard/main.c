/*
 * baton-guard: owns the processes of one executor, so that none of them outlives its worker.
 *
 *   baton-guard [-k] [-l] PROGRAM ARGUMENT...      (started by common/process/child.c only)
 *
 * It is the subreaper of all descendants, also of those that left the session or forked twice. When
 * the program ends, when the worker says so, or when the lifeline on descriptor 4 ends because the
 * worker died, it kills every descendant and exits with the program's status (128 + n for signal
 * n); the exact end goes over the lifeline (wire.h). It has no library of Baton and is linked
 * statically: the less it is, the less can end it before its executor.
 *
 * Where the program must leave its working directory as it is (-l), the guard looks at the tree before
 * and after, and says whether it has changed: here it holds up nobody else, and dies with the attempt.
 *
 * Killing is free of races with reused pids: a pidfd is taken first, then the ancestry is checked.
 */
#include "common/process/guard/look.h"
#include "common/process/guard/wire.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ANCESTRY_MAX                                                                               \
    4096 /* a longer chain of parents than this is a process table that changes                    \
          */

extern char **environ;

static pid_t program = -1;
static struct guard_report report;

static int64_t now_ms(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * 1000 + at.tv_nsec / 1000000;
}

/* The parent of a process as /proc shows it now; 0 if it is gone. Sets *ret_dead for a zombie. */
static pid_t parent_of(pid_t pid, bool *ret_dead)
{
    char path[64];
    char text[512];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    if (n <= 0) {
        return 0;
    }
    text[n] = '\0';
    /* The command's name stands in parentheses and may hold anything: look from the last one on. */
    const char *at = strrchr(text, ')');
    if (at == NULL || strlen(at) < 5) {
        return 0;
    }
    if (ret_dead != NULL) {
        *ret_dead = at[2] == 'Z' || at[2] == 'X';
    }
    return (pid_t)strtol(at + 4, NULL, 10);
}

static bool is_descendant(pid_t pid, bool *ret_dead)
{
    pid_t self = getpid();
    pid_t at = parent_of(pid, ret_dead);
    for (int i = 0; i < ANCESTRY_MAX && at > 1; i++) {
        if (at == self) {
            return true;
        }
        at = parent_of(at, NULL);
    }
    return false;
}

/* Takes every dead child; remembers the program's end. False when no child is left. */
static bool reap(void)
{
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG | __WALL);
        if (pid == 0) {
            return true;
        }
        if (pid < 0) {
            if (errno == EINTR) {
                continue;
            }
            return false;
        }
        if (pid == program) {
            program = -1;
            report.end = WIFEXITED(status) ? GUARD_END_exited : GUARD_END_signaled;
            report.value = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
        }
    }
}

/* One pass over /proc: SIGKILL to every living descendant. */
static void kill_seen(DIR *proc)
{
    rewinddir(proc);
    for (struct dirent *entry; (entry = readdir(proc)) != NULL;) {
        char *end;
        long pid = strtol(entry->d_name, &end, 10);
        if (*end != '\0' || pid <= 1 || pid == getpid()) {
            continue;
        }
        int pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
        if (pidfd < 0) {
            continue;
        }
        bool dead = false;
        if (is_descendant((pid_t)pid, &dead) && !dead) {
            syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
        }
        close(pidfd);
    }
}

/*
 * Kills until no child is left. The children of a killed process become ours (subreaper), so
 * waitpid saying "no child" means that nobody is left, not even one that was born during a pass.
 */
static void kill_all(void)
{
    if (!reap()) {
        return;
    }
    DIR *proc = opendir("/proc");
    int64_t give_up = now_ms() + GUARD_GIVE_UP_MS;
    while (reap()) {
        if (proc != NULL) {
            kill_seen(proc);
        }
        if (program > 0) {
            kill(program, SIGKILL);
        }
        if (now_ms() > give_up) {
            report.left = 1;
            break;
        }
        struct timespec pause = {0, 500000};
        nanosleep(&pause, NULL);
    }
    if (proc != NULL) {
        closedir(proc);
    }
}

/* In the child: own session, death with the guard, no capabilities, default signals. */
static void run_program(char **argv, bool keep_capabilities, pid_t guard, int failed_fd)
{
    sigset_t none;
    sigemptyset(&none);
    signal(SIGPIPE, SIG_DFL);
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!keep_capabilities) {
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    }
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (getppid() == guard) {
        execve(argv[0], argv, environ);
    }
    int why = errno;
    if (write(failed_fd, &why, sizeof(why)) < 0) {
        _exit(126);
    }
    _exit(127);
}

static bool start_program(char **argv, bool keep_capabilities)
{
    int failed[2];
    pid_t guard = getpid();
    if (pipe2(failed, O_CLOEXEC) != 0 || (program = fork()) < 0) {
        report = (struct guard_report){GUARD_END_exec_failed, errno, 0, 0};
        return false;
    }
    if (program == 0) {
        run_program(argv, keep_capabilities, guard, failed[1]);
    }
    close(failed[1]);
    for (int fd = 0; fd < GUARD_FD; fd++) {
        close(fd); /* the pipes must end when the program's processes do, not when the guard does */
    }
    int why;
    ssize_t n;
    while ((n = read(failed[0], &why, sizeof(why))) < 0 && errno == EINTR) {
    }
    close(failed[0]);
    if (n == (ssize_t)sizeof(why)) {
        kill_all();
        report = (struct guard_report){GUARD_END_exec_failed, why, 0, 0};
        return false;
    }
    return true;
}

/* Waits until the program has ended or everything shall be killed; true: it has ended. */
static bool watch(int signals)
{
    struct pollfd fds[2] = {{signals, POLLIN, 0}, {GUARD_FD, POLLIN, 0}};
    while (program > 0) {
        if (poll(fds, 2, -1) < 0 && errno != EINTR) {
            return false;
        }
        if (fds[0].revents != 0) {
            struct signalfd_siginfo info;
            if (read(signals, &info, sizeof(info)) == (ssize_t)sizeof(info) &&
                info.ssi_signo != SIGCHLD && info.ssi_signo != SIGHUP) {
                /* SIGTERM: the thread that started us is gone, or an operator wants it. SIGHUP is the
                 * worker's: it reads its configuration again, and what runs goes on. */
                return false;
            }
            reap();
        }
        if (fds[1].revents != 0 && program > 0) {
            char word;
            ssize_t n = recv(GUARD_FD, &word, 1, MSG_DONTWAIT);
            if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
                continue;
            }
            if (n != 1 || word != GUARD_TERM) {
                return false;
            }
            kill(-program, SIGTERM);
            kill(-program, SIGCONT);
        }
    }
    return true;
}

/* The worker has said something, or is gone: whatever it is, looking on is not wanted. The word stays
 * there for watch(). */
static bool spoken_to(void)
{
    struct pollfd fd = {GUARD_FD, POLLIN, 0};
    return poll(&fd, 1, 0) > 0;
}

/* After the program: only the kill, or a worker that is gone, ends the last look. A TERM comes too late for
 * the program, and what it has said in time still counts. */
static bool killed(void)
{
    char word;
    ssize_t n;
    do {
        n = recv(GUARD_FD, &word, 1, MSG_DONTWAIT);
    } while ((n < 0 && errno == EINTR) || (n == 1 && word == GUARD_TERM));
    return n >= 0 || errno != EAGAIN;
}

static enum guard_look look_again(const struct look *before, bool ended)
{
    struct look after;
    if (!ended || !look_at_tree(&after, killed) || killed()) {
        return GUARD_LOOK_unlooked;
    }
    return look_same(before, &after) ? GUARD_LOOK_same : GUARD_LOOK_changed;
}

/* Before the program begins: it has not begun then, and is not to. False: nobody wants it to end. */
static bool ended_before(void)
{
    char word;
    ssize_t n;
    while ((n = recv(GUARD_FD, &word, 1, MSG_PEEK | MSG_DONTWAIT)) < 0 && errno == EINTR) {
    }
    if (n < 0 && errno == EAGAIN) {
        return false;
    }
    report.end = GUARD_END_signaled;
    report.value = n == 1 && word == GUARD_TERM ? SIGTERM : SIGKILL;
    return true;
}

int main(int argc, char **argv)
{
    struct look before;
    bool keep = argc > 1 && strcmp(argv[1], GUARD_KEEP) == 0;
    int words = keep ? 1 : 0;
    bool look = argc > 1 + words && strcmp(argv[1 + words], GUARD_LOOK) == 0;
    words += look ? 1 : 0;
    char **program_argv = argv + 1 + words;
    pid_t worker = getppid();
    if (argc < 2 + words || fcntl(GUARD_FD, F_SETFD, FD_CLOEXEC) != 0) {
        static const char text[] =
            "baton-guard: started by Baton only, to own an executor's processes\n";
        return write(2, text, sizeof(text) - 1) < 0 ? 1 : 2;
    }
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    int signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* second to the lifeline */
    if (signals < 0 || getppid() != worker) {
        return 1;
    }
    bool seen = !look || look_at_tree(&before, spoken_to);
    if (ended_before()) {
        /* said already */
    } else if (!seen) {
        report = (struct guard_report){GUARD_END_exec_failed, ENOMEM, 0, 0};
    } else if (start_program(program_argv, keep)) {
        bool ended = watch(signals);
        kill_all();
        if (look) {
            report.look = look_again(&before, ended);
        }
        if (report.end == 0) { /* the program itself could not be killed */
            report.end = GUARD_END_signaled;
            report.value = SIGKILL;
        }
    }
    send(GUARD_FD, &report, sizeof(report), MSG_NOSIGNAL | MSG_DONTWAIT);
    return report.end == GUARD_END_exited        ? report.value
           : report.end == GUARD_END_exec_failed ? 127
                                                 : 128 + report.value;
}
