/* This program again. Called by deploy/cmd_dev.c, before any thread. */
#include "common/process/self.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

bool self_start(const char *const *words, int log_fd, pid_t *ret_pid)
{
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        (void)setpgid(0, 0); /* a Ctrl-C is the parent's to pass on, once */
        if (getppid() == parent && dup2(log_fd, STDERR_FILENO) >= 0) {
            execv("/proc/self/exe", (char *const *)words);
        }
        _exit(127);
    }
    if (pid > 0) {
        *ret_pid = pid;
    }
    return pid > 0;
}
