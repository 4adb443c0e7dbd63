/*
 * A wall clock that is wrong: preloaded into a program, adds the seconds that stand in the file
 * WALL_OFFSET (a 64-bit integer, read at every call) to CLOCK_REALTIME, and leaves the other clocks
 * alone. Built and used by tests/lib/wallclock.py.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SEEN __attribute__((visibility("default")))

static const volatile int64_t *offset;
static const int64_t none;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("WALL_OFFSET");
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *at = fd >= 0 ? mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    offset = at != MAP_FAILED ? at : &none;
    if (fd >= 0) {
        close(fd);
    }
}

SEEN int clock_gettime(clockid_t id, struct timespec *ret_at)
{
    int rc = (int)syscall(SYS_clock_gettime, id, ret_at);
    if (rc == 0 && id == CLOCK_REALTIME && offset != NULL) {
        ret_at->tv_sec += *offset;
    }
    return rc;
}

SEEN time_t time(time_t *ret_at)
{
    struct timespec at;
    (void)clock_gettime(CLOCK_REALTIME, &at);
    if (ret_at != NULL) {
        *ret_at = at.tv_sec;
    }
    return at.tv_sec;
}

SEEN int gettimeofday(struct timeval *restrict ret_at, void *restrict zone)
{
    struct timespec at;
    (void)zone;
    (void)clock_gettime(CLOCK_REALTIME, &at);
    ret_at->tv_sec = at.tv_sec;
    ret_at->tv_usec = at.tv_nsec / 1000;
    return 0;
}
