/*
 * The writers' queue: one process at a time writes to the file. Called by conn.c.
 *
 * SQLite's own lock is not waited for: its busy handler sleeps for longer and longer, and whoever
 * has just written takes it again before a sleeper wakes. Here two bytes of `write.lock` are locked
 * one after the other: the gate, then the pen; the gate is held until the pen is there. So exactly
 * one waits for the pen, and who lays it down finds the gate shut and stands in line like the
 * others. They are locks of open file descriptions: the kernel drops them with the process. Nobody
 * blocks in the kernel, because every wait here has an end (a writer may be stopped with the pen in
 * his hand).
 */
#include "common/base/clock.h"
#include "common/log/local/internal.h"

#include <fcntl.h>
#include <time.h>

enum { BYTE_gate, BYTE_pen };

#define NAP_NS 100000       /* a transaction takes milliseconds, a look at the lock a microsecond */
#define NAP_LONG_NS 1000000 /* after NAPS_SHORT naps somebody is slow: do not burn a processor */
#define NAPS_SHORT 200
#define WAIT_MS_MAX 86400000 /* who waits for longer than a day waits for a day */

static bool lock(int fd, int byte, short type)
{
    struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    return fcntl(fd, F_OFD_SETLK, &range) == 0;
}

static bool wait_for(int fd, int byte, int64_t end_ns)
{
    for (int naps = 0; !lock(fd, byte, F_WRLCK); naps++) {
        if (mono_ns() >= end_ns) {
            return false;
        }
        struct timespec nap = {0, naps < NAPS_SHORT ? NAP_NS : NAP_LONG_NS};
        nanosleep(&nap, NULL);
    }
    return true;
}

int64_t local_end_ns(int64_t timeout_ms)
{
    int64_t bounded_ms = timeout_ms < 0 ? 0 : timeout_ms > WAIT_MS_MAX ? WAIT_MS_MAX : timeout_ms;
    return mono_ns() + bounded_ms * 1000000;
}

bool queue_enter(int fd, int64_t timeout_ms)
{
    int64_t end_ns = local_end_ns(timeout_ms);
    if (!wait_for(fd, BYTE_gate, end_ns)) {
        return false;
    }
    bool entered = wait_for(fd, BYTE_pen, end_ns);
    lock(fd, BYTE_gate, F_UNLCK);
    return entered;
}

void queue_leave(int fd)
{
    lock(fd, BYTE_pen, F_UNLCK);
}
