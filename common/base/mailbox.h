/*
 * The one way in which threads talk: a bounded queue of pointers.
 *
 * Many threads post, one takes. What is posted belongs to the taker from then on; what nobody took
 * stays the owner's concern: drain with mailbox_take before mailbox_free. The descriptor is
 * readable while something is queued or the mailbox is closed, so it stands in a poll set beside
 * others.
 */
#ifndef BATON_BASE_MAILBOX_H
#define BATON_BASE_MAILBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mailbox;

/* NULL when memory or descriptors are out. capacity at least 1. */
struct mailbox *mailbox_new(size_t capacity);
/* Any thread. False when it is full or closed: the caller keeps the message. Never blocks. */
bool mailbox_post(struct mailbox *mailbox, void *take_message);
/* Takes the oldest message, or NULL when there is none. Never blocks. Messages of a closed mailbox
 * can still be taken. */
void *mailbox_take(struct mailbox *mailbox);
/* For poll (POLLIN); never read it. Valid until mailbox_free. */
int mailbox_fd(const struct mailbox *mailbox);
/* Waits until something can be taken (true), or until closed and empty, or timeout_ms passed
 * (false). timeout_ms < 0: without limit. */
bool mailbox_wait(struct mailbox *mailbox, int timeout_ms);
/* Any thread: nothing is taken in from now on, the taker is woken. */
void mailbox_close(struct mailbox *mailbox);
bool mailbox_closed(struct mailbox *mailbox);
size_t mailbox_count(struct mailbox *mailbox);
void mailbox_free(struct mailbox *mailbox);

#endif
