/*
 * Topics that this worker cannot write to, as a note in the turn log of each of its partitions: what
 * its turns wait for is then seen without its log. The note goes when a record has come through, or
 * when nothing was meant for that topic for a while.
 *
 * In: worker/operate.c (after a restore and a fold), worker/round.c
 * Out: worker/decision.c, common/record/blocked_note.h
 */
#include "worker/internal.h"

#include "common/base/hash.h"
#include "common/record/blocked_note.h"

#include <stdio.h>
#include <string.h>

/* 0 stands for no note. */
static uint64_t mark_of(const char *bytes, size_t len)
{
    return len == 0 ? 0 : hash_bytes(HASH_START, bytes, len) | 1;
}

baton_code blocked_restore(struct worker *w, int32_t partition, struct baton_error *err)
{
    struct buf value = BUF_INIT;
    bool found = false;
    baton_code rc = store_note_get(w->store, partition, BLOCKED_NOTE_KEY, &found, &value, err);
    if (rc == BATON_OK) {
        w->blocked_told[partition] = found ? mark_of(value.data, value.len) : 0;
    }
    buf_done(&value);
    return rc;
}

void blocked_tell(struct worker *w)
{
    int32_t partitions[LOG_PARTITIONS_MAX];
    struct engine_target targets[ENGINE_TARGETS_MAX];
    struct blocked_note note = {.worker = w->id, .boot = w->boot};
    struct buf value = BUF_INIT;
    const size_t n = engine_partitions(w->engine, partitions);

    note.count = engine_blocked(w->engine, targets);
    for (size_t i = 0; i < note.count; i++) {
        if (strcmp(targets[i].topic, w->names[TOPIC_turns].s) == 0) {
            return; /* the notes themselves cannot be written */
        }
        snprintf(note.targets[i].topic, sizeof(note.targets[i].topic), "%s", targets[i].topic);
        note.targets[i].code = targets[i].code;
        note.targets[i].since = targets[i].since;
    }
    if (note.count > 0) {
        blocked_note_encode(&note, &value);
    }
    const uint64_t mark = mark_of(value.data, value.len);
    for (size_t i = 0; i < n; i++) {
        if (w->blocked_told[partitions[i]] == mark) {
            continue;
        }
        if (note.count > 0) {
            decide_note(w, partitions[i], BLOCKED_NOTE_KEY, &value);
        } else {
            decide_note_gone(w, partitions[i], BLOCKED_NOTE_KEY);
        }
    }
    buf_done(&value);
}
