/*
 * The owner's note about credential profiles that rest, `~rest` in the turn log: there while other turns do
 * not begin with one, since its provider has refused it. Written by worker/rest_note.c, which reads those of
 * the owners before it; read by topics/service_view.c for `services` and `doctor`.
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

/* Of a credential: enough of a keyed digest to see that it has changed, too little to tell what it is. */
#define REST_MARK_LEN 4
struct rest_mark {
    char s[REST_MARK_LEN + 1]; /* hex digits; "": not known */
};

struct rest_profile {
    struct plain_id name;
    enum failure class;    /* why */
    struct wall_ms since;  /* when it was refused */
    struct wall_ms until;  /* when it is tried again; 0: it is refused, and waits to be cleared */
    struct rest_mark mark; /* refused: of its credential */
};

struct rest_note {
    struct plain_id worker;
    struct boot_id boot;
    struct rest_profile profiles[LIMIT_PROFILES];
    size_t count;
};

bool rest_note_is_key(const void *key, size_t key_len);
/* Does it wait to be cleared? */
bool rest_profile_refused(const struct rest_profile *profile);
/* Does it rest now? */
bool rest_profile_rests(const struct rest_profile *profile, struct wall_ms now);
/* What it says of that profile now, borrowed from the note; NULL: the profile does not rest. */
const struct rest_profile *rest_note_find(const struct rest_note *note, const char *profile,
                                          struct wall_ms now);
/* Appends the value. */
void rest_note_encode(const struct rest_note *note, struct buf *value);
/* False: no owner has written it so, or NULL; *ret_note is empty then. */
bool rest_note_parse(const void *bytes, size_t len, struct rest_note *ret_note);

#endif
