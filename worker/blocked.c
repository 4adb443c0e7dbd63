/*
 * Topics that this worker cannot write to, as a note in the turn log of each of its partitions: what
 * its turns wait for is then seen without its log. The note goes when a record has come through, or
 * when nothing was meant for that topic for a while. While the turn log itself cannot be written the
 * note is a file beside the store: only `doctor` on this host sees it.
 *
 * In: worker/operate.c (after a restore and a fold), worker/round.c
 * Out: worker/decision.c, common/record/blocked_note.h
 */
#include "worker/blocked.h"

#include "common/base/diag.h"
#include "common/base/hash.h"
#include "common/base/safe_file.h"
#include "common/engine/engine.h"
#include "common/log/log.h"
#include "common/record/blocked_note.h"
#include "common/store/store.h"
#include "topics/catalogue.h"
#include "worker/decision.h"
#include "worker/internal.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

static bool write_note(const char *path, const struct buf *value)
{
    struct baton_error err = {BATON_OK, ""};
    if (safe_write(path, value->data, value->len, 0600, true, &err) != BATON_OK) {
        diag_line(DIAG_warn, "blocked.file", D_TEXT("error", err.text));
        return false;
    }
    return true;
}

/* Beside the store, or no more. What an older boot left there goes by the first call. */
static void tell_file(struct worker *w, const struct buf *value)
{
    char path[sizeof(w->state_dir) + sizeof(BLOCKED_NOTE_FILE) + 1];
    const uint64_t mark = mark_of(value->data, value->len);
    if (w->blocked_file == mark) {
        return;
    }
    snprintf(path, sizeof(path), "%s/%s", w->state_dir, BLOCKED_NOTE_FILE);
    if (mark == 0) {
        (void)unlink(path);
    } else if (!write_note(path, value)) {
        return; /* the disk may be full: the next round tries again */
    }
    w->blocked_file = mark;
}

static void tell_log(struct worker *w, const struct buf *value)
{
    int32_t partitions[LOG_PARTITIONS_MAX];
    const size_t n = engine_partitions(w->engine, partitions);
    const uint64_t mark = mark_of(value->data, value->len);
    for (size_t i = 0; i < n; i++) {
        if (w->blocked_told[partitions[i]] == mark) {
            continue;
        }
        if (mark != 0) {
            decide_note(w, partitions[i], BLOCKED_NOTE_KEY, value);
        } else {
            decide_note_gone(w, partitions[i], BLOCKED_NOTE_KEY);
        }
    }
}

/* *ret_log_itself: the turn log is one of them. Appends the note, if there is anything to say. */
static void make_note(struct worker *w, struct buf *value, bool *ret_log_itself)
{
    struct engine_target targets[ENGINE_TARGETS_MAX];
    const size_t count = engine_blocked(w->engine, targets);

    *ret_log_itself = false;
    if (count == 0) {
        return;
    }
    struct blocked_note note = {.worker = w->id, .boot = w->boot, .count = count};
    for (size_t i = 0; i < count; i++) {
        struct blocked_target *target = &note.targets[i];
        *ret_log_itself = *ret_log_itself || strcmp(targets[i].topic, w->names[TOPIC_turns].s) == 0;
        snprintf(target->topic, sizeof(target->topic), "%s", targets[i].topic);
        snprintf(target->cause, sizeof(target->cause), "%s", targets[i].cause);
        target->code = targets[i].code;
        target->since = targets[i].since;
    }
    blocked_note_encode(&note, value);
}

void blocked_tell(struct worker *w, bool decides)
{
    struct buf value = BUF_INIT;
    const struct buf none = BUF_INIT;
    bool log_itself;

    make_note(w, &value, &log_itself);
    tell_file(w, log_itself ? &value : &none);
    if (decides && !log_itself) {
        tell_log(w, &value);
    }
    buf_done(&value);
}
