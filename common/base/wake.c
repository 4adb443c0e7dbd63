/* Signals as bytes of a pipe. Called by worker/cmd_worker.c and producer/cmd_coordinator.c. */
#include "common/base/wake.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

/* Signal handlers may only write. */
static int wake_write = -1;

static void on_signal(int number)
{
    int saved = errno;
    char byte = number == SIGHUP ? WAKE_RELOAD : WAKE_STOP;
    ssize_t n = write(wake_write, &byte, 1); /* ignored: a full pipe has woken it already */
    (void)n;
    errno = saved;
}

bool wake_open(int *ret_read)
{
    int fds[2];
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0) {
        return false;
    }
    *ret_read = fds[0];
    wake_write = fds[1];
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    return true;
}
