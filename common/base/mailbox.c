/* The bounded queue between threads. Called by engine, executors and callbacks. */
#include "common/base/mailbox.h"

#include "common/base/check.h"
#include "common/base/clock.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* The event counter is 1 exactly while something is queued or the mailbox is closed. */
struct mailbox {
    pthread_mutex_t lock;
    int fd;
    bool closed;
    size_t capacity;
    size_t first;
    size_t count;
    void *slots[];
};

struct mailbox *mailbox_new(size_t capacity)
{
    BATON_PRE(capacity > 0 && capacity < SIZE_MAX / sizeof(void *) / 2);
    struct mailbox *mailbox = calloc(1, sizeof(*mailbox) + capacity * sizeof(void *));
    if (mailbox == NULL) {
        return NULL;
    }
    mailbox->capacity = capacity;
    mailbox->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (mailbox->fd < 0 || pthread_mutex_init(&mailbox->lock, NULL) != 0) {
        if (mailbox->fd >= 0) {
            close(mailbox->fd);
        }
        free(mailbox);
        return NULL;
    }
    return mailbox;
}

/* An eventfd below its maximum takes and gives without blocking; anything else is a closed fd. */
static void bell_ring(struct mailbox *mailbox)
{
    uint64_t one = 1;
    BATON_INVARIANT(write(mailbox->fd, &one, sizeof(one)) == (ssize_t)sizeof(one));
}

static void bell_quiet(struct mailbox *mailbox)
{
    uint64_t count;
    BATON_INVARIANT(read(mailbox->fd, &count, sizeof(count)) == (ssize_t)sizeof(count));
}

bool mailbox_post(struct mailbox *mailbox, void *take_message)
{
    BATON_PRE(take_message != NULL);
    pthread_mutex_lock(&mailbox->lock);
    bool taken = !mailbox->closed && mailbox->count < mailbox->capacity;
    if (taken) {
        mailbox->slots[(mailbox->first + mailbox->count) % mailbox->capacity] = take_message;
        mailbox->count++;
        if (mailbox->count == 1) {
            bell_ring(mailbox);
        }
    }
    pthread_mutex_unlock(&mailbox->lock);
    return taken;
}

void *mailbox_take(struct mailbox *mailbox)
{
    void *message = NULL;
    pthread_mutex_lock(&mailbox->lock);
    if (mailbox->count > 0) {
        message = mailbox->slots[mailbox->first];
        mailbox->first = (mailbox->first + 1) % mailbox->capacity;
        mailbox->count--;
        if (mailbox->count == 0 && !mailbox->closed) {
            bell_quiet(mailbox);
        }
    }
    pthread_mutex_unlock(&mailbox->lock);
    return message;
}

int mailbox_fd(const struct mailbox *mailbox)
{
    return mailbox->fd;
}

bool mailbox_wait(struct mailbox *mailbox, int timeout_ms)
{
    int64_t end_ns = mono_ns() + (int64_t)timeout_ms * 1000000;
    struct pollfd waited = {.fd = mailbox->fd, .events = POLLIN};
    int left_ms = timeout_ms;
    while (poll(&waited, 1, left_ms) < 0 && errno == EINTR) {
        if (timeout_ms >= 0) {
            int64_t left_ns = end_ns - mono_ns();
            left_ms = left_ns > 0 ? (int)((left_ns + 999999) / 1000000) : 0;
        }
    }
    return mailbox_count(mailbox) > 0;
}

void mailbox_close(struct mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    if (!mailbox->closed) {
        mailbox->closed = true;
        if (mailbox->count == 0) {
            bell_ring(mailbox);
        }
    }
    pthread_mutex_unlock(&mailbox->lock);
}

bool mailbox_closed(struct mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    bool closed = mailbox->closed;
    pthread_mutex_unlock(&mailbox->lock);
    return closed;
}

size_t mailbox_count(struct mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    size_t count = mailbox->count;
    pthread_mutex_unlock(&mailbox->lock);
    return count;
}

void mailbox_free(struct mailbox *mailbox)
{
    if (mailbox != NULL) {
        close(mailbox->fd);
        pthread_mutex_destroy(&mailbox->lock);
        free(mailbox);
    }
}
