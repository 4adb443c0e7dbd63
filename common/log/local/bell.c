/*
 * Bells: how processes wake each other. One file for each topic and group, written to after a
 * commit and watched by inotify. Called by append, group, member and read.
 *
 * A write to the bell file and not the write-ahead log's own change, because that changes before
 * the commit is visible. Whoever waits watches first, then reads, then waits; so nothing is missed.
 * A ring is lost only with a process that dies between its commit and the ring: a slow timer is the
 * net.
 */
#include "common/log/local/internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

static const char kind_letters[] = {[BELL_topic] = 't', [BELL_group] = 'g'};

static int bell_file(const struct local_log *log, enum bell_kind kind, const char *name, int flags)
{
    char path[4096];
    int n = snprintf(path, sizeof(path), "%s/bells/%c.%s", log->side, kind_letters[kind], name);
    if (n < 0 || (size_t)n >= sizeof(path)) {
        return -1;
    }
    return open(path, flags | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

void bell_ring(const struct local_log *log, enum bell_kind kind, const char *name)
{
    int fd = bell_file(log, kind, name, O_WRONLY);
    if (fd >= 0) {
        /* A ring that fails (full disk) is ignored: the commit holds, and who waits has a timer. */
        ssize_t n = pwrite(fd, "!", 1, 0);
        (void)n;
        close(fd);
    }
}

int bell_open(void)
{
    return inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
}

int bell_watch(const struct local_log *log, int fd, enum bell_kind kind, const char *name)
{
    char path[4096];
    int file = bell_file(log, kind, name, O_RDONLY);
    if (file < 0) {
        return -1;
    }
    close(file);
    snprintf(path, sizeof(path), "%s/bells/%c.%s", log->side, kind_letters[kind], name);
    return inotify_add_watch(fd, path, IN_MODIFY);
}

bool bell_heard(int fd, int *ret_watch, bool *ret_gone)
{
    /* Bells are files, not folders: their events carry no name, so each read gives whole ones. */
    struct inotify_event event;
    ssize_t n = read(fd, &event, sizeof(event));
    if (n != (ssize_t)sizeof(event)) {
        return false;
    }
    *ret_watch = event.wd;
    *ret_gone = (event.mask & (IN_IGNORED | IN_UNMOUNT)) != 0;
    return true;
}
