/*
 * The owner's note about topics that it cannot write to, `~blocked` in the turn log: there while a
 * topic is missing, closed to it or too small, and turns wait for that. Written by worker/blocked.c;
 * read by topics/service_view.c for `services` and `doctor`. Where the turn log itself cannot be
 * written it is a file beside the worker's store, which `doctor` reads on that host.
 */
#ifndef BATON_RECORD_BLOCKED_NOTE_H
#define BATON_RECORD_BLOCKED_NOTE_H

#include "baton/code.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/id.h"

#include <stdbool.h>
#include <stddef.h>

#define BLOCKED_NOTE_KEY "~blocked"
#define BLOCKED_NOTE_FILE "blocked"
#define BLOCKED_TARGETS_MAX 16
#define BLOCKED_NOTE_BYTES_MAX 65536

struct blocked_target {
    char topic[256];
    char cause[512]; /* why, in words; "": not said */
    baton_code code;
    struct wall_ms since;
};

struct blocked_note {
    struct plain_id worker;
    struct boot_id boot;
    struct blocked_target targets[BLOCKED_TARGETS_MAX];
    size_t count;
};

bool blocked_note_is_key(const void *key, size_t key_len);
/* Appends the value. */
void blocked_note_encode(const struct blocked_note *note, struct buf *value);
/* False: no owner has written it so, or NULL; *ret_note is empty then. */
bool blocked_note_parse(const void *bytes, size_t len, struct blocked_note *ret_note);

#endif
