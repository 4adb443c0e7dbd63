/*
 * Credential profiles that rest, as a note in the turn log of each of this worker's partitions, so that
 * `services` shows which, why, and when each is tried again. Whoever owns the partition next, and this
 * worker after a restart, takes over which are refused (rest.c); what rests for a while is tried again.
 *
 * In: worker/operate.c (after a restore and a fold), worker/round.c
 * Out: worker/decision.c, common/record/rest_note.h
 */
#include "common/base/hash.h"
#include "common/engine/engine.h"
#include "common/log/log.h"
#include "common/record/rest_note.h"
#include "common/store/store.h"
#include "worker/decision.h"
#include "worker/internal.h"
#include "worker/rest.h"

#include <string.h>

/* 0 stands for no note. */
static uint64_t told_of(const struct buf *value)
{
    return value->len == 0 ? 0 : hash_bytes(HASH_START, value->data, value->len) | 1;
}

baton_code rest_restore(struct worker *w, int32_t partition, struct baton_error *err)
{
    struct buf value = BUF_INIT;
    bool found = false;
    baton_code rc = store_note_get(w->store, partition, REST_NOTE_KEY, &found, &value, err);
    if (rc == BATON_OK) {
        struct rest_note note;
        w->rest_told[partition] = found ? told_of(&value) : 0;
        if (found && rest_note_parse(value.data, value.len, &note) &&
            strcmp(note.boot.s, w->boot.s) != 0) {
            for (size_t i = 0; i < note.count; i++) {
                rest_adopt(w, &note.profiles[i]);
            }
        }
    }
    buf_done(&value);
    return rc;
}

void rest_tell(struct worker *w)
{
    const struct mono_ms now = mono_now();
    int32_t partitions[LOG_PARTITIONS_MAX];
    struct rest_note note = {.worker = w->id, .boot = w->boot};
    struct buf value = BUF_INIT;
    for (size_t i = 0; i < w->service->n_profiles; i++) {
        const struct rest *rest = &w->rests[i];
        if (rest->until.v > now.v) {
            note.profiles[note.count++] =
                (struct rest_profile){.name = w->service->profiles[i].name,
                                      .class = rest->class,
                                      .since = rest->since,
                                      .until = rest->until_wall,
                                      .mark = rest->mark};
        }
    }
    if (note.count > 0) {
        rest_note_encode(&note, &value);
    }
    const uint64_t mark = told_of(&value);
    const size_t n = engine_partitions(w->engine, partitions);
    for (size_t i = 0; buf_ok(&value) && i < n; i++) {
        if (w->rest_told[partitions[i]] == mark) {
            continue;
        }
        if (mark != 0) {
            decide_note(w, partitions[i], REST_NOTE_KEY, &value);
        } else {
            decide_note_gone(w, partitions[i], REST_NOTE_KEY);
        }
    }
    buf_done(&value);
}
