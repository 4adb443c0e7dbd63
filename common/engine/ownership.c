/*
 * Ownership: what the group says, and the restore of every partition that comes (protocol rules 5
 * to 8).
 *
 *   waiting -> asked -> restoring -> read -> restored -> owned
 *
 * Order of a restore: stable committed offsets of both inputs in one call (the low watermark where
 * there are none), then the end of the state topic (its high watermark), then it is read up to
 * there, then the owner record is committed with unchanged offsets. Nothing is decided before.
 *
 * In: common/engine/engine.c  Out: common/log/log.h
 */
#include "common/engine/internal.h"

#include "common/base/check.h"
#include "common/base/fault.h"
#include "common/base/jsonw.h"
#include "common/base/word.h"
#include "common/record/json.h"
#include "common/record/turn_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMMITTED_TIMEOUT_MS 1000
#define RESTORE_RECORDS 4096 /* one transaction of the store: few big ones write least */
#define OWNER_RECORDS 4096   /* so far back an owner's note is looked for */
#define FENCE_TIMEOUT_MS 5000
#define OWNER_NOTE_MAX 1024
#define STALL_MS 2000 /* a transaction that is alive does not stay open so long */
#define DOUBT_MS 500  /* nor so long as a rule */

static void all_gone(struct engine *engine, bool lost, struct engine_event *ret_event)
{
    size_t n = 0;
    for (int32_t p = 0; p < LOG_PARTITIONS_MAX; p++) {
        if (engine->parts[p].state != PART_none) {
            engine->moved[n++] = p;
            part_clear(&engine->parts[p]);
        }
    }
    batch_clear(engine);
    engine->phase = PHASE_between;
    ret_event->kind = ENGINE_moved;
    ret_event->moved = engine->moved;
    ret_event->n_moved = n;
    ret_event->lost = lost;
}

/* Keeps the membership alive and takes in what the group says. */
baton_code ownership_poll(struct engine *engine, struct engine_event *ret_event, bool *ret_given,
                          struct baton_error *err)
{
    struct log_event event;
    *ret_given = false;
    baton_code rc = log_member_poll(engine->member, &event, err);
    if (rc != BATON_OK) {
        return rc;
    }
    atomic_store(&engine->polled_at, mono_now().v);
    switch (event.kind) {
    case LOG_EVENT_none:
        break;
    case LOG_EVENT_assigned:
        FAULT_POINT(restore_begin);
        engine->generation = event.generation;
        engine->joined = true;
        for (size_t i = 0; i < event.count; i++) {
            part_clear(&engine->parts[event.partitions[i]]);
            engine->parts[event.partitions[i]].state = PART_waiting;
        }
        diag_line(DIAG_info, "engine.assigned", D_TEXT("group", engine->spec.group),
                  D_INT("generation", event.generation), D_INT("partitions", (int64_t)event.count));
        break;
    case LOG_EVENT_revoked:
    case LOG_EVENT_lost:
        FAULT_POINT(revoke);
        engine->joined = false; /* what is ours is not known again before the next answer */
        all_gone(engine, event.kind == LOG_EVENT_lost, ret_event);
        diag_line(DIAG_info, "engine.moved", D_TEXT("group", engine->spec.group),
                  D_BOOL("lost", ret_event->lost),
                  D_INT("partitions", (int64_t)ret_event->n_moved));
        *ret_given = true;
        break;
    }
    return BATON_OK;
}

void ownership_start_over(struct engine *engine)
{
    for (size_t p = 0; p < LOG_PARTITIONS_MAX; p++) {
        if (engine->parts[p].state != PART_none) {
            part_clear(&engine->parts[p]);
            engine->parts[p].state = PART_waiting;
        }
    }
    engine->work = true;
}

static struct part *first_in(struct engine *engine, enum part_state state, int32_t *ret_number)
{
    for (int32_t p = 0; p < LOG_PARTITIONS_MAX; p++) {
        if (engine->parts[p].state == state) {
            *ret_number = p;
            return &engine->parts[p];
        }
    }
    return NULL;
}

/* ---- an open transaction of a dead owner blocks the restore ---- */

static bool is_owner_note(const struct log_record *record)
{
    return word_is(TURN_LOG_OWNER_KEY, record->key, record->key_len);
}

/* The worker that the newest owner record of a partition names, committed or not. */
static bool newest_owner(struct engine *engine, int32_t number, int64_t high, char *ret_worker,
                         size_t worker_size)
{
    struct log_reader *reader = NULL;
    struct log_batch batch = {0};
    bool found = false;
    int64_t from = high > OWNER_RECORDS ? high - OWNER_RECORDS : 0;

    if (log_reader_open(engine->spec.log, engine->spec.state, number, from, LOG_READ_uncommitted,
                        &reader, NULL) != BATON_OK) {
        return false;
    }
    do {
        if (log_reader_next(reader, OWNER_RECORDS, 0, &batch, NULL) != BATON_OK) {
            break;
        }
        for (size_t i = 0; i < batch.count; i++) {
            const struct log_record *record = &batch.records[i];
            struct json_doc *doc = NULL;
            if (!is_owner_note(record) || record->value == NULL ||
                json_parse(record->value, record->value_len, OWNER_NOTE_MAX, 4, &doc, NULL) !=
                    BATON_OK) {
                continue;
            }
            const struct json_value *worker = json_member(json_root(doc), "worker");
            if (worker != NULL && json_kind(worker) == JSON_text) {
                snprintf(ret_worker, worker_size, "%s", json_text(worker, NULL));
                found = true;
            }
            json_free(doc);
        }
    } while (!batch.at_end && batch.next_offset < high);
    log_batch_free(&batch);
    log_reader_close(reader);
    return found;
}

/* True: it is this worker itself, from before. */
static bool fence_owner(struct engine *engine, int32_t number)
{
    char worker[ID_MAX + 1] = "";
    int64_t low = 0;
    int64_t high = 0;
    struct baton_error err = {BATON_OK, ""};

    if (log_watermarks(engine->spec.log, engine->spec.state, number, &low, &high, &err) !=
            BATON_OK ||
        !newest_owner(engine, number, high, worker, sizeof(worker))) {
        return false;
    }
    if (strcmp(worker, engine->spec.worker) == 0) {
        return true;
    }
    baton_code rc =
        log_fence(engine->spec.log, engine->spec.group, worker,
                  (const char *const *)engine->written, engine->n_written, FENCE_TIMEOUT_MS, &err);
    diag_line(DIAG_warn, "engine.fenced", D_TEXT("worker", worker), D_INT("partition", number),
              D_CODE("code", rc), D_TEXT("error", err.text));
    return false;
}

/* ---- steps ---- */

/* Offsets of all that wait, in one call; then the ends of their state topics. */
static baton_code learn_offsets(struct engine *engine, struct baton_error *err)
{
    int32_t numbers[LOG_PARTITIONS_MAX];
    int64_t offsets[LOG_INPUTS][LOG_PARTITIONS_MAX];
    size_t n = 0;

    for (int32_t p = 0; p < LOG_PARTITIONS_MAX; p++) {
        if (engine->parts[p].state == PART_waiting) {
            numbers[n++] = p;
        }
    }
    baton_code rc =
        log_member_committed(engine->member, numbers, n, COMMITTED_TIMEOUT_MS, offsets, err);
    if (rc == BATON_E_timed_out) {
        (void)fence_owner(engine, numbers[0]);
    }
    for (size_t i = 0; rc == BATON_OK && i < n; i++) {
        struct part *part = &engine->parts[numbers[i]];
        if (engine->reread[numbers[i]]) {
            diag_line(DIAG_warn, "engine.reads_again", D_TEXT("group", engine->spec.group),
                      D_INT("partition", numbers[i]));
        }
        for (int input = 0; rc == BATON_OK && input < LOG_INPUTS; input++) {
            int64_t low = 0;
            int64_t high = 0;
            rc = log_watermarks(engine->spec.log, engine->spec.inputs[input].topic, numbers[i],
                                &low, &high, err);
            /* Where the group has no offset, the low watermark stands for it and is sent. Never
             * below what is there: trimmed records are gone. Nor behind the end: that offset is of
             * a topic that was made again since, and what was taken from it is known. */
            int64_t at = offsets[input][i];
            at = at < low || engine->reread[numbers[i]] ? low : at;
            if (rc == BATON_OK && at > high) {
                diag_line(DIAG_warn, "engine.topic_begins_anew",
                          D_TEXT("topic", engine->spec.inputs[input].topic),
                          D_INT("partition", numbers[i]), D_INT("offset", at), D_INT("end", high));
                at = low;
            }
            part->feeds[input].low = low;
            part->feeds[input].committed = at;
            part->feeds[input].taken = at;
            if (input == ENGINE_CONTROL_INPUT && rc == BATON_OK) {
                part->heard = at >= high; /* nothing was said meanwhile */
            }
        }
        if (rc == BATON_OK) {
            rc = log_watermarks(engine->spec.log, engine->spec.state, numbers[i], &part->low,
                                &part->high, err);
        }
    }
    for (size_t i = 0; rc == BATON_OK && i < n; i++) {
        engine->parts[numbers[i]].state = PART_asked;
        engine->parts[numbers[i]].from = LOG_OFFSET_NONE - 1; /* not answered */
    }
    return rc;
}

void engine_restore_from(struct engine *engine, int64_t next)
{
    struct part *part = &engine->parts[engine->event_part];
    BATON_PRE(part->state == PART_asked);
    BATON_PRE(next == LOG_OFFSET_NONE || (next >= part->low && next <= part->high));
    part->from = next == LOG_OFFSET_NONE ? part->low : next;
}

static baton_code open_reader(struct engine *engine, struct part *part, int32_t number,
                              struct baton_error *err)
{
    BATON_PRE(part->from >= 0); /* the caller must answer ENGINE_restoring */
    if (part->from >= part->high) {
        part->state = PART_read;
        return BATON_OK;
    }
    baton_code rc = log_reader_open(engine->spec.log, engine->spec.state, number, part->from,
                                    LOG_READ_committed, &part->reader, err);
    if (rc == BATON_OK) {
        part->state = PART_restoring;
        part->reached = part->from;
        part->moved_at = mono_now();
    }
    return rc;
}

/* The turn log is not read to its end: a transaction is open before it. One of a dead owner ends when
 * it is fenced, one that hangs from this worker's own past when it makes its producer anew. */
static void read_stalls(struct engine *engine, struct part *part, int32_t number)
{
    part->moved_at = mono_now();
    diag_line(DIAG_warn, "engine.restore_waits", D_TEXT("topic", engine->spec.state),
              D_INT("partition", number), D_INT("at", part->reached), D_INT("end", part->high));
    engine->renew = fence_owner(engine, number) || engine->renew;
    ownership_start_over(engine);
}

/*
 * Something has hidden the partition's records for long, or somebody has dropped what lay open there and
 * left a note, and no owner has read again since. A transaction may be committed elsewhere and not here
 * then, its offsets, too: what they passed over is read again. Of a turn that is known nothing happens
 * twice (rule 18).
 */
static void doubt_offsets(struct engine *engine, int32_t number)
{
    engine->reread[number] = true;
    ownership_start_over(engine);
}

static baton_code read_on(struct engine *engine, struct part *part, int32_t number,
                          struct engine_event *ret_event, bool *ret_given, struct baton_error *err)
{
    struct log_batch *batch = &engine->restore_batch;
    baton_code rc = log_reader_next(part->reader, RESTORE_RECORDS, 20, batch, err);
    if (rc != BATON_OK) {
        part->moved_at = mono_now(); /* the log is away: nothing is known of its transactions */
        part->hidden_at = 0;
        return rc;
    }
    if (batch->next_offset > part->reached) {
        const bool stood = part->hidden_at != 0 && mono_now().v - part->hidden_at >= DOUBT_MS;
        part->hidden_at = 0;
        part->reached = batch->next_offset;
        part->moved_at = mono_now();
        if (stood && !engine->reread[number]) {
            doubt_offsets(engine, number);
            return BATON_OK;
        }
    } else if (part->hidden_at == 0) {
        part->hidden_at = mono_now().v;
    }
    part->note_at = batch->noted > part->note_at ? batch->noted : part->note_at;
    for (size_t i = 0; i < batch->count; i++) {
        part->owner_at =
            is_owner_note(&batch->records[i]) ? batch->records[i].offset : part->owner_at;
    }
    if (batch->next_offset >= part->high && part->note_at > part->owner_at &&
        !engine->reread[number]) {
        doubt_offsets(engine, number);
        return BATON_OK;
    }
    if (batch->next_offset >= part->high) {
        log_reader_close(part->reader);
        part->reader = NULL;
        part->state = PART_read;
    } else if (batch->count == 0 && mono_now().v - part->moved_at.v >= STALL_MS) {
        read_stalls(engine, part, number);
        return BATON_OK;
    }
    if (batch->count > 0) {
        ret_event->kind = ENGINE_fold;
        ret_event->partition = number;
        ret_event->records = batch->records;
        ret_event->n_records = batch->count;
        ret_event->next = batch->next_offset;
        *ret_given = true;
    }
    return BATON_OK;
}

/* The owner's first transaction: who owns it now, with unchanged offsets. */
static baton_code commit_owner(struct engine *engine, struct baton_error *err)
{
    struct buf value = BUF_INIT;
    struct jsonw w = jsonw_to(&value);
    enum engine_result result = ENGINE_DROPPED;
    int64_t culprit = -1;

    FAULT_POINT(restore_end);
    jsonw_begin_object(&w);
    jsonw_key_int(&w, "version", 1);
    jsonw_key_text(&w, "worker", engine->spec.worker);
    jsonw_key_text(&w, "boot", engine->spec.boot.s);
    jsonw_key_text(&w, "at", wall_text(wall_now()).s);
    jsonw_end(&w);
    for (int32_t p = 0; p < LOG_PARTITIONS_MAX; p++) {
        if (engine->parts[p].state == PART_read) {
            struct log_record record = {
                .topic = engine->spec.state,
                .partition = p,
                .key = TURN_LOG_OWNER_KEY,
                .key_len = strlen(TURN_LOG_OWNER_KEY),
                .value = value.data,
                .value_len = value.len,
            };
            (void)engine_put(engine, &record);
        }
    }
    baton_code rc = batch_commit(engine, &result, &culprit, err);
    batch_clear(engine);
    buf_done(&value);
    if (rc == BATON_OK && result == ENGINE_COMMITTED) {
        for (size_t p = 0; p < LOG_PARTITIONS_MAX; p++) {
            if (engine->parts[p].state == PART_read) {
                engine->parts[p].state = PART_restored;
                engine->reread[p] = false;
            }
        }
    }
    return rc;
}

static baton_code give_assigned(struct engine *engine, struct part *part, int32_t number,
                                struct engine_event *ret_event, struct baton_error *err)
{
    for (int input = 0; input < LOG_INPUTS; input++) {
        baton_code rc =
            log_member_seek(engine->member, input, number, part->feeds[input].committed, err);
        if (rc != BATON_OK) {
            return rc;
        }
    }
    part->state = PART_owned;
    engine->event_part = number;
    engine->work = true;
    ret_event->kind = ENGINE_assigned;
    ret_event->partition = number;
    return BATON_OK;
}

/* One step of whatever is being restored. *ret_given: an event was filled in. */
baton_code ownership_restore(struct engine *engine, struct engine_event *ret_event, bool *ret_given,
                             struct baton_error *err)
{
    struct part *part;
    int32_t number = 0;

    *ret_given = false;
    if (engine->renew) {
        /* The member was polled just before: a twin would have shown itself there (rule 15). */
        baton_code rc = log_member_renew(engine->member, err);
        if (rc != BATON_OK) {
            return rc;
        }
        engine->renew = false;
    }
    if ((part = first_in(engine, PART_restored, &number)) != NULL) {
        baton_code rc = give_assigned(engine, part, number, ret_event, err);
        *ret_given = rc == BATON_OK;
        return rc;
    }
    if (first_in(engine, PART_waiting, &number) != NULL) {
        return learn_offsets(engine, err);
    }
    if ((part = first_in(engine, PART_asked, &number)) != NULL) {
        if (part->from >= 0) {
            return open_reader(engine, part, number, err);
        }
        engine->event_part = number;
        ret_event->kind = ENGINE_restoring;
        ret_event->partition = number;
        ret_event->low = part->low;
        ret_event->high = part->high;
        *ret_given = true;
        return BATON_OK;
    }
    if ((part = first_in(engine, PART_restoring, &number)) != NULL) {
        return read_on(engine, part, number, ret_event, ret_given, err);
    }
    if (first_in(engine, PART_read, &number) != NULL) {
        return commit_owner(engine, err);
    }
    return BATON_OK;
}
