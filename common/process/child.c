/*
 * Starts programs under baton-guard and learns how they ended.
 * In: worker/executor (exec, child). Out: common/process/guard/main.c.
 */
#include "common/process/child.h"

#include "common/base/check.h"
#include "common/process/guard/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FD_FLOOR                                                                                   \
    10 /* ours stay above the numbers that a child gets, so that no dup2 hits another */

#ifndef BATON_LIBEXECDIR
#define BATON_LIBEXECDIR "/usr/libexec/baton"
#endif

static bool executable(const char *path)
{
    return access(path, X_OK) == 0;
}

baton_code child_guard_find(const char *given, char **ret_path, struct baton_error *err)
{
    char self[4096];
    char *path = NULL;
    if (given != NULL) {
        if (given[0] != '/' || !executable(given)) {
            return baton_fail(err, BATON_E_bad_config, "%s is not an executable baton-guard",
                              given);
        }
        path = strdup(given);
        if (path == NULL) {
            return baton_fail(err, BATON_E_no_memory, "no memory for the path of baton-guard");
        }
        *ret_path = path;
        return BATON_OK;
    }
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash != NULL) {
        *slash = '\0';
    }
    static const char *const places[] = {"%s/baton-guard", "%s/../libexec/baton/baton-guard"};
    for (size_t i = 0; slash != NULL && i < COUNT_OF(places); i++) {
        if (asprintf(&path, i == 0 ? "%s/baton-guard" : "%s/../libexec/baton/baton-guard", self) <
            0) {
            return baton_fail(err, BATON_E_no_memory, "no memory for the path of baton-guard");
        }
        if (executable(path)) {
            *ret_path = path;
            return BATON_OK;
        }
        free(path);
    }
    if (executable(BATON_LIBEXECDIR "/baton-guard")) {
        path = strdup(BATON_LIBEXECDIR "/baton-guard");
        if (path != NULL) {
            *ret_path = path;
            return BATON_OK;
        }
    }
    return baton_fail(err, BATON_E_bad_config,
                      "baton-guard is neither in %s nor in " BATON_LIBEXECDIR
                      ": install it beside this program",
                      self);
}

/* The same file under a number above the floor; closes fd. -1 on failure. */
static int lift(int fd)
{
    if (fd < 0 || fd >= FD_FLOOR) {
        return fd;
    }
    int high = fcntl(fd, F_DUPFD_CLOEXEC, FD_FLOOR);
    close(fd);
    return high;
}

bool child_pipe(bool to_child, int *ret_ours, int *ret_childs)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return false;
    }
    fds[0] = lift(fds[0]);
    fds[1] = lift(fds[1]);
    int ours = to_child ? fds[1] : fds[0];
    int childs = to_child ? fds[0] : fds[1];
    if (ours < 0 || childs < 0 || fcntl(ours, F_SETFL, O_NONBLOCK) != 0) {
        if (ours >= 0) {
            close(ours);
        }
        if (childs >= 0) {
            close(childs);
        }
        return false;
    }
    *ret_ours = ours;
    *ret_childs = childs;
    return true;
}

int child_bytes(const void *bytes, size_t len)
{
    char path[64];
    int fd = memfd_create("baton-turn", MFD_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    const char *at = bytes;
    while (len > 0) {
        ssize_t n = write(fd, at, len);
        if (n <= 0) {
            close(fd);
            return -1;
        }
        at += n;
        len -= (size_t)n;
    }
    fchmod(fd, 0444); /* also for an executor of another uid that opens /dev/stdin */
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int read_only = lift(open(path, O_RDONLY | O_CLOEXEC));
    close(fd);
    return read_only;
}

static int prepare_actions(posix_spawn_file_actions_t *actions, const struct child_spec *spec,
                           int lifeline)
{
    int rc = 0;
    for (int i = 0; i < 4 && rc == 0; i++) {
        rc = spec->fds[i] >= 0 ? posix_spawn_file_actions_adddup2(actions, spec->fds[i], i)
                               : posix_spawn_file_actions_addopen(actions, i, "/dev/null",
                                                                  i == 0 ? O_RDONLY : O_WRONLY, 0);
    }
    if (rc == 0) {
        rc = posix_spawn_file_actions_adddup2(actions, lifeline, GUARD_FD);
    }
    if (rc == 0) {
        rc = posix_spawn_file_actions_addclosefrom_np(actions, GUARD_FD + 1);
    }
    return rc != 0 ? rc : posix_spawn_file_actions_addchdir_np(actions, spec->cwd);
}

static int prepare_attributes(posix_spawnattr_t *attr)
{
    sigset_t all;
    sigset_t none;
    sigfillset(&all);
    sigdelset(&all, SIGKILL);
    sigdelset(&all, SIGSTOP);
    sigemptyset(&none);
    int rc = posix_spawnattr_setsigdefault(attr, &all);
    rc = rc != 0 ? rc : posix_spawnattr_setsigmask(attr, &none);
    rc = rc != 0 ? rc : posix_spawnattr_setpgroup(attr, 0);
    return rc != 0 ? rc
                   : posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
                                                        POSIX_SPAWN_SETPGROUP);
}

static int spawn_guard(const struct child_spec *spec, int lifeline, pid_t *ret_pid)
{
    size_t n = 0;
    while (spec->argv[n] != NULL) {
        n++;
    }
    char **argv = calloc(n + 4, sizeof(*argv));
    if (argv == NULL) {
        return ENOMEM;
    }
    size_t at = 0;
    argv[at++] = (char *)"baton-guard";
    if (spec->keep_capabilities) {
        argv[at++] = (char *)GUARD_KEEP;
    }
    if (spec->look) {
        argv[at++] = (char *)GUARD_LOOK;
    }
    memcpy(argv + at, spec->argv, n * sizeof(*argv));
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attr);
    int rc = prepare_actions(&actions, spec, lifeline);
    rc = rc != 0 ? rc : prepare_attributes(&attr);
    rc =
        rc != 0 ? rc : posix_spawn(ret_pid, spec->guard, &actions, &attr, argv, (char **)spec->env);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    free(argv);
    return rc;
}

baton_code child_spawn(const struct child_spec *spec, struct child *ret_child,
                       struct baton_error *err)
{
    BATON_PRE(spec->argv[0] != NULL && spec->argv[0][0] == '/');
    int pair[2];
    int dir = open(spec->cwd, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || faccessat(dir, "", X_OK, AT_EMPTY_PATH | AT_EACCESS) != 0) {
        int why = errno;
        if (dir >= 0) {
            close(dir);
        }
        return baton_fail(err, BATON_E_place_missing, "cannot enter the directory %s: %s",
                          spec->cwd, strerror(why));
    }
    close(dir);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return baton_fail(err, BATON_E_service_unavailable, "no lifeline for %s: %s", spec->argv[0],
                          strerror(errno));
    }
    int ours = lift(pair[0]);
    int guards = lift(pair[1]);
    pid_t pid = -1;
    int rc = ours < 0 || guards < 0 ? EMFILE : spawn_guard(spec, guards, &pid);
    int pidfd = rc == 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1; /* ours to reap: not reused */
    if (rc == 0 && pidfd < 0) {
        rc = errno;
        kill(pid, SIGTERM); /* the guard kills its tree and ends */
        waitpid(pid, NULL, 0);
    }
    if (guards >= 0) {
        close(guards);
    }
    if (rc != 0) {
        if (ours >= 0) {
            close(ours);
        }
        return baton_fail(err, BATON_E_service_unavailable, "cannot start %s for %s: %s",
                          spec->guard, spec->argv[0], strerror(rc));
    }
    *ret_child = (struct child){pid, pidfd, ours};
    return BATON_OK;
}

static void tell(struct child *child, char word)
{
    if (child->lifeline >= 0) {
        /* A full or broken lifeline: the guard has ended, or a word of the same kind waits there.
         */
        (void)!send(child->lifeline, &word, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}

void child_term(struct child *child)
{
    tell(child, GUARD_TERM);
}

void child_kill(struct child *child)
{
    tell(child, GUARD_KILL);
}

bool child_reap(struct child *child, struct child_status *ret_status)
{
    siginfo_t info = {.si_pid = 0};
    int rc;
    while ((rc = waitid(P_PIDFD, (id_t)child->pidfd, &info, WEXITED | WNOHANG)) != 0 &&
           errno == EINTR) {
    }
    if (rc == 0 && info.si_pid == 0) {
        return false;
    }
    struct guard_report report;
    /* Words that the guard did not read any more show as one ECONNRESET before its report. */
    ssize_t n = recv(child->lifeline, &report, sizeof(report), MSG_DONTWAIT);
    if (n < 0 && errno == ECONNRESET) {
        n = recv(child->lifeline, &report, sizeof(report), MSG_DONTWAIT);
    }
    child->pid = -1;
    if (n != (ssize_t)sizeof(report)) {
        *ret_status = (struct child_status){CHILD_END_guard_lost, rc == 0 ? info.si_status : 0,
                                            true, CHILD_LOOK_unlooked};
        return true;
    }
    enum child_end end = report.end == GUARD_END_exited     ? CHILD_END_exited
                         : report.end == GUARD_END_signaled ? CHILD_END_signaled
                                                            : CHILD_END_exec_failed;
    enum child_look look = report.look == GUARD_LOOK_same      ? CHILD_LOOK_same
                           : report.look == GUARD_LOOK_changed ? CHILD_LOOK_changed
                                                               : CHILD_LOOK_unlooked;
    *ret_status = (struct child_status){end, report.value, report.left != 0, look};
    return true;
}

void child_done(struct child *child)
{
    if (child->lifeline >= 0) {
        close(child->lifeline);
    }
    if (child->pidfd >= 0) {
        close(child->pidfd);
    }
    *child = CHILD_NONE;
}
