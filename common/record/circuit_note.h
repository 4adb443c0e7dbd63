/*
 * The owner's note about its circuit, `~circuit` in the turn log: there while the circuit is not
 * closed. Written by worker/circuit_note.c, which reads it again at the next start; read by topics/
 * for `services` and `turns show`.
 */
#ifndef BATON_RECORD_CIRCUIT_NOTE_H
#define BATON_RECORD_CIRCUIT_NOTE_H

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/failure.h"
#include "common/base/id.h"
#include "common/base/state.h"

#include <stdbool.h>
#include <stddef.h>

#define CIRCUIT_NOTE_KEY "~circuit"

struct circuit_note {
    enum circuit_state state; /* closed: there is no note */
    enum failure class;       /* why */
    struct plain_id worker;
    struct boot_id boot;
    struct wall_ms since; /* when it was opened */
};

bool circuit_note_is_key(const void *key, size_t key_len);
/* Appends the value. */
void circuit_note_encode(const struct circuit_note *note, struct buf *value);
/* False: no owner has written it so; *ret_note then says closed, as for NULL. */
bool circuit_note_parse(const void *bytes, size_t len, struct circuit_note *ret_note);

#endif
