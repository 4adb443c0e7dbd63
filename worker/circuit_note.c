/*
 * The circuit in the turn log: a note in each partition of this worker while it is not closed, so
 * that the command line can show it, and so that whoever owns the partition next begins with a probe
 * instead of as many failures again.
 *
 * In: worker/operate.c (after a restore and a fold), worker/circuit.c  Out: worker/decision.c,
 * common/record/circuit_note.h
 */
#include "common/record/circuit_note.h"
#include "common/store/store.h"
#include "worker/circuit.h"
#include "worker/decision.h"
#include "worker/internal.h"

#include <string.h>

baton_code circuit_restore(struct worker *w, int32_t partition, struct baton_error *err)
{
    struct circuit_told *told = &w->circuit_told[partition];
    struct circuit_note note;
    struct buf value = BUF_INIT;
    bool found = false;

    baton_code rc = store_note_get(w->store, partition, CIRCUIT_NOTE_KEY, &found, &value, err);
    if (rc == BATON_OK) {
        const bool read = circuit_note_parse(found ? value.data : NULL, value.len, &note);
        told->state = note.state;
        told->mine = read && strcmp(note.boot.s, w->boot.s) == 0;
        if (read && !told->mine) {
            circuit_adopt(&w->circuit, w->service->name.s, note.class, note.since, mono_now());
        } else if (found && !read) {
            told->state = CIRCUIT_open; /* whatever it is, it is not ours: it is written again */
        }
    }
    buf_done(&value);
    return rc;
}

static void put_note(struct worker *w, int32_t partition)
{
    const struct circuit_note note = {
        .state = w->circuit.state,
        .class = w->circuit.class,
        .worker = w->id,
        .boot = w->boot,
        .since = w->circuit.since,
    };
    struct buf value = BUF_INIT;
    circuit_note_encode(&note, &value);
    decide_note(w, partition, CIRCUIT_NOTE_KEY, &value);
    buf_done(&value);
}

void circuit_tell(struct worker *w, const int32_t *partitions, size_t n)
{
    const enum circuit_state state = w->circuit.state;

    for (size_t i = 0; i < n; i++) {
        const struct circuit_told *told = &w->circuit_told[partitions[i]];
        if (state == CIRCUIT_closed) {
            if (told->state != CIRCUIT_closed) {
                decide_note_gone(w, partitions[i], CIRCUIT_NOTE_KEY);
            }
        } else if (told->state != state || !told->mine) {
            put_note(w, partitions[i]);
        }
    }
}
