/*
 * The local log's own time: the host's monotonic clock, and how far the wall clock was ahead of it
 * when it was least so. Called by publish.c and commit.c (dates of records), keep.c and open.c
 * (log_time).
 *
 * PATH.d/clock is mapped by every process that has the log open. Whoever dates a record lowers the
 * number that stands there to its own, so the log's time is never ahead of a date by more than has
 * passed since, and a wall clock that jumps ahead, or one process's that differs, makes nothing old.
 * Where the host has started anew the number is made anew: nothing says what its clock did meanwhile.
 */
#include "common/log/local/internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CLOCK_MAGIC 0x42746331u

struct clock_page {
    uint32_t magic;
    char host_boot[36 + 1];
    _Atomic int64_t ahead_ms; /* the wall clock of the monotonic one; the least that was seen */
};

static bool read_host_boot(char ret_boot[36 + 1])
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    const bool found = file != NULL && fread(ret_boot, 1, 36, file) == 36;
    ret_boot[36] = '\0';
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

static int64_t ahead_now(struct wall_ms now)
{
    return now.v - mono_now().v;
}

static struct clock_page *map_page(int fd)
{
    void *page =
        ftruncate(fd, sizeof(struct clock_page)) == 0
            ? mmap(NULL, sizeof(struct clock_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
            : MAP_FAILED;
    return page != MAP_FAILED ? page : NULL;
}

struct clock_page *clock_open(const char *side)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct clock_page *page = NULL;
    char boot[36 + 1] = "";
    char path[4096];
    const int n = snprintf(path, sizeof(path), "%s/clock", side);

    if (n < 0 || (size_t)n >= sizeof(path) || !read_host_boot(boot)) {
        return NULL;
    }
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return NULL;
    }
    if (fcntl(fd, F_OFD_SETLKW, &lock) == 0 && (page = map_page(fd)) != NULL &&
        (page->magic != CLOCK_MAGIC ||
         memcmp(page->host_boot, boot, sizeof(page->host_boot)) != 0)) {
        atomic_store(&page->ahead_ms, ahead_now(wall_now()));
        memcpy(page->host_boot, boot, sizeof(page->host_boot));
        page->magic = CLOCK_MAGIC;
    }
    lock.l_type = F_UNLCK; /* closing leaves the mapping, and with it the lock */
    (void)fcntl(fd, F_OFD_SETLK, &lock);
    close(fd);
    return page;
}

void clock_close(struct clock_page *page)
{
    if (page != NULL) {
        munmap(page, sizeof(*page));
    }
}

struct wall_ms clock_date(struct clock_page *page)
{
    const struct wall_ms now = wall_now();
    if (page != NULL) {
        const int64_t mine = ahead_now(now);
        int64_t least = atomic_load(&page->ahead_ms);
        while (mine < least && !atomic_compare_exchange_weak(&page->ahead_ms, &least, mine)) {
        }
    }
    return now;
}

bool clock_time(struct clock_page *page, struct wall_ms *ret_now)
{
    if (page == NULL) {
        return false;
    }
    (void)clock_date(page); /* this one's, too, may have been set back */
    ret_now->v = mono_now().v + atomic_load(&page->ahead_ms);
    return true;
}
