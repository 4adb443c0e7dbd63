/*
 * The owner's note about credential profiles that rest, `~rest` in the turn log: there while the provider's
 * refusal of one is so fresh that other turns do not try it. Written by worker/rest_note.c; read by
 * topics/service_view.c for `services`.
 */
#ifndef BATON_RECORD_REST_NOTE_H
#define BATON_RECORD_REST_NOTE_H

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/failure.h"
#include "common/base/id.h"
#include "common/base/limits.h"

#include <stdbool.h>
#include <stddef.h>

#define REST_NOTE_KEY "~rest"

struct rest_profile {
    struct plain_id name;
    enum failure class;   /* why */
    struct wall_ms since; /* when it was refused */
    struct wall_ms until; /* when it is tried again */
};

struct rest_note {
    struct plain_id worker;
    struct boot_id boot;
    struct rest_profile profiles[LIMIT_PROFILES];
    size_t count;
};

bool rest_note_is_key(const void *key, size_t key_len);
/* Appends the value. */
void rest_note_encode(const struct rest_note *note, struct buf *value);
/* False: no owner has written it so, or NULL; *ret_note is empty then. */
bool rest_note_parse(const void *bytes, size_t len, struct rest_note *ret_note);

#endif
