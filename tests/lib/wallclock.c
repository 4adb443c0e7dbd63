/*
 * A wall clock that is wrong: preloaded into a program, adds the seconds that stand in the file
 * WALL_OFFSET (a 64-bit integer, read at every call) to CLOCK_REALTIME, and leaves the other clocks
 * alone. Waits until a time of that clock go by it, as the kernel's do: they end early when it jumps
 * ahead, and late when it jumps back. Built and used by tests/lib/wallclock.py.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define SEEN __attribute__((visibility("default")))

static const volatile int64_t *offset;
static const int64_t none;
static int (*real_wait)(cnd_t *, mtx_t *, const struct timespec *);

#define SLICE_NS 50000000
#define SECOND_NS 1000000000

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("WALL_OFFSET");
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *at = fd >= 0 ? mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    offset = at != MAP_FAILED ? at : &none;
    *(void **)&real_wait = dlsym(RTLD_NEXT, "cnd_timedwait");
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

SEEN int timespec_get(struct timespec *ret_at, int base)
{
    return base == TIME_UTC && clock_gettime(CLOCK_REALTIME, ret_at) == 0 ? base : 0;
}

static int64_t ns_until(const struct timespec *until)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)(until->tv_sec - now.tv_sec) * SECOND_NS + (until->tv_nsec - now.tv_nsec);
}

/* In slices: the clock may jump meanwhile. */
SEEN int cnd_timedwait(cnd_t *restrict cond, mtx_t *restrict lock,
                       const struct timespec *restrict until)
{
    for (;;) {
        struct timespec slice;
        int64_t left = ns_until(until);
        left = left < 0 ? 0 : left;
        (void)syscall(SYS_clock_gettime, CLOCK_REALTIME, &slice);
        slice.tv_nsec += left < SLICE_NS ? left : SLICE_NS;
        slice.tv_sec += slice.tv_nsec / SECOND_NS;
        slice.tv_nsec %= SECOND_NS;
        const int rc = real_wait(cond, lock, &slice);
        if (rc != thrd_timedout || left == 0) {
            return rc;
        }
    }
}
