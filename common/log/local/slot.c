/*
 * Slots: members/<n>, one for each living member. Called by member.c and group.c.
 *
 * Its lock says that the process lives (the kernel drops it with the process, kill -9 included);
 * the page says who it is and when its engine was last heard. A lock of an open file description,
 * so that two members of one process are two, and another descriptor can ask without taking it.
 */
#include "common/log/local/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SLOT_MAGIC 0x42746d31u
#define SLOTS_MAX 4096 /* members of one host at the same time */

static int slot_open(const struct local_log *log, int number, int flags)
{
    char path[4096];
    int n = snprintf(path, sizeof(path), "%s/members/%d", log->side, number);
    if (n < 0 || (size_t)n >= sizeof(path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static struct flock whole(short type)
{
    return (struct flock){.l_type = type, .l_whence = SEEK_SET};
}

static struct slot_page *slot_map(int fd, int protection)
{
    void *page = mmap(NULL, sizeof(struct slot_page), protection, MAP_SHARED, fd, 0);
    return page == MAP_FAILED ? NULL : page;
}

/* Takes slot n if nobody has it; false with errno 0: somebody has. */
static bool slot_try(const struct local_log *log, int number, struct slot *slot)
{
    struct flock lock = whole(F_WRLCK);
    slot->number = number;
    slot->fd = slot_open(log, number, O_RDWR | O_CREAT);
    if (slot->fd < 0) {
        return false;
    }
    if (fcntl(slot->fd, F_OFD_SETLK, &lock) != 0) {
        int why = errno == EAGAIN || errno == EACCES ? 0 : errno;
        close(slot->fd);
        errno = why;
        return false;
    }
    if (ftruncate(slot->fd, sizeof(struct slot_page)) != 0 ||
        (slot->page = slot_map(slot->fd, PROT_READ | PROT_WRITE)) == NULL) {
        int why = errno;
        close(slot->fd);
        errno = why;
        return false;
    }
    return true;
}

baton_code slot_take(const struct local_log *log, const struct boot_id *boot, int64_t session_ms,
                     struct slot *ret_slot, struct baton_error *err)
{
    struct slot slot = {.fd = -1};
    for (int number = 0; number < SLOTS_MAX; number++) {
        errno = 0;
        if (slot_try(log, number, &slot)) {
            slot.page->pid = getpid();
            atomic_store(&slot.page->session_ms, session_ms);
            memcpy(slot.page->boot, boot->s, sizeof(slot.page->boot));
            slot.page->magic = SLOT_MAGIC;
            slot_beat(&slot);
            *ret_slot = slot;
            return BATON_OK;
        }
        if (errno != 0) {
            return baton_fail(err,
                              errno == ENOSPC ? BATON_E_disk_full : BATON_E_service_unavailable,
                              "%s/members/%d: cannot be taken: %m", log->side, number);
        }
    }
    return baton_fail(err, BATON_E_service_unavailable, "%s/members: all %d places are taken",
                      log->side, SLOTS_MAX);
}

static bool there(const struct local_log *log, const struct slot *slot)
{
    struct stat held;
    struct stat named;
    int fd = slot_open(log, slot->number, O_RDWR);
    bool same = fd >= 0 && fstat(slot->fd, &held) == 0 && fstat(fd, &named) == 0 &&
                held.st_dev == named.st_dev && held.st_ino == named.st_ino;
    if (fd >= 0) {
        close(fd);
    }
    return same;
}

baton_code slot_keep(const struct local_log *log, const struct boot_id *boot, int64_t session_ms,
                     struct slot *slot, struct baton_error *err)
{
    struct slot other;
    if (there(log, slot)) {
        return BATON_OK;
    }
    (void)local_make_side(log->side); /* if it cannot be made, the slot says so */
    baton_code rc = slot_take(log, boot, session_ms, &other, err);
    if (rc == BATON_OK) {
        slot_free(slot);
        *slot = other;
    }
    return rc;
}

void slot_free(struct slot *slot)
{
    if (slot->fd >= 0) {
        slot->page->magic = 0; /* left, not dead */
        /* Said, not left to close: a child that was forked meanwhile has the descriptor too. */
        struct flock lock = whole(F_UNLCK);
        munmap(slot->page, sizeof(*slot->page));
        fcntl(slot->fd, F_OFD_SETLK, &lock);
        close(slot->fd);
        slot->fd = -1;
    }
}

void slot_beat(struct slot *slot)
{
    atomic_store(&slot->page->beat_ms, mono_now().v);
}

static bool locked(int fd)
{
    struct flock lock = whole(F_WRLCK);
    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

enum slot_state slot_look(const struct local_log *log, int number, const char *boot,
                          int32_t *ret_pid)
{
    enum slot_state state = SLOT_dead;
    struct slot_page *page = NULL;
    int fd = slot_open(log, number, O_RDWR);
    if (ret_pid != NULL) {
        *ret_pid = 0;
    }
    if (fd < 0) {
        return SLOT_dead;
    }
    if (locked(fd) && lseek(fd, 0, SEEK_END) >= (off_t)sizeof(*page) &&
        (page = slot_map(fd, PROT_READ)) != NULL) {
        if (page->magic == SLOT_MAGIC && memcmp(page->boot, boot, sizeof(page->boot)) == 0) {
            int64_t silence_ms = mono_now().v - atomic_load(&page->beat_ms);
            state = silence_ms < atomic_load(&page->session_ms) ? SLOT_alive : SLOT_silent;
            if (ret_pid != NULL) {
                *ret_pid = page->pid;
            }
        }
        munmap(page, sizeof(*page));
    }
    close(fd);
    return state;
}

bool slot_died_in(const struct local_log *log, const char *boot)
{
    bool found = false;
    bool died = false;
    for (int number = 0; !found && number < SLOTS_MAX; number++) {
        struct slot_page page = {0};
        int fd = slot_open(log, number, O_RDWR);
        if (fd < 0) {
            break;
        }
        /* The lock first: who takes the slot meanwhile writes his own boot into it. */
        died = !locked(fd);
        found = pread(fd, &page, sizeof(page), 0) == (ssize_t)sizeof(page) &&
                page.magic == SLOT_MAGIC && memcmp(page.boot, boot, sizeof(page.boot)) == 0;
        close(fd);
    }
    return found && died;
}
