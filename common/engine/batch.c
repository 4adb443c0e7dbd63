/*
 * The batch: records that follow from decisions, made one transaction of the log.
 *
 * It carries an offset of every partition number whose state it writes, unchanged if nothing
 * advanced: that offset is what fences a stale owner (protocol rule 12).
 *
 * In: the engine's caller, ownership.c  Out: common/log/log.h
 */
#include "common/engine/internal.h"

#include "common/base/array.h"
#include "common/base/check.h"
#include "common/base/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMMIT_TIMEOUT_MS 10000 /* then it is said that the log does not answer, and tried again */
#define UNKNOWN_TRIES 3

void batch_clear(struct engine *engine)
{
    for (size_t i = 0; i < engine->n_puts; i++) {
        free(engine->puts[i].memory);
    }
    engine->n_puts = 0;
}

static size_t record_size(const struct log_record *record)
{
    size_t size = strlen(record->topic) + 1 + record->key_len + record->value_len +
                  record->n_headers * sizeof(struct log_header) + 16;
    for (size_t i = 0; i < record->n_headers; i++) {
        size += strlen(record->headers[i].name) + 1 + record->headers[i].value_len;
    }
    return size;
}

static char *append(char **at, const void *bytes, size_t len)
{
    char *start = *at;
    if (len > 0) {
        memcpy(start, bytes, len);
    }
    *at += len;
    return start;
}

/* A copy of the record in one allocation. */
static struct put copy_record(const struct log_record *record)
{
    struct put put = {*record, malloc(record_size(record))};
    if (put.memory == NULL) {
        /* A decision that cannot be written down cannot be skipped either: stop, the log has all.
         */
        check_failed("allocation", "a record of a batch", __FILE__, __LINE__);
    }
    struct log_header *headers = put.memory;
    char *at = (char *)(headers + record->n_headers);
    put.record.topic = append(&at, record->topic, strlen(record->topic) + 1);
    put.record.key = record->key != NULL ? append(&at, record->key, record->key_len) : NULL;
    put.record.value = record->value != NULL ? append(&at, record->value, record->value_len) : NULL;
    for (size_t i = 0; i < record->n_headers; i++) {
        const struct log_header *from = &record->headers[i];
        headers[i].name = append(&at, from->name, strlen(from->name) + 1);
        headers[i].value = from->value != NULL ? append(&at, from->value, from->value_len) : NULL;
        headers[i].value_len = from->value_len;
    }
    put.record.headers = headers;
    return put;
}

size_t engine_put(struct engine *engine, const struct log_record *record)
{
    engine->committed = false;
    engine->puts =
        array_grown(engine->puts, engine->n_puts, &engine->cap_puts, sizeof(*engine->puts));
    if (strcmp(record->topic, engine->spec.state) == 0) {
        BATON_PRE(record->partition >= 0 && record->partition < engine->spec.receiver.partitions);
        BATON_PRE(engine->parts[record->partition].state >= PART_read); /* rules 5 and 10 */
        engine->parts[record->partition].in_batch = true;
    }
    engine->puts[engine->n_puts] = copy_record(record);
    return engine->n_puts++;
}

size_t engine_batch_count(const struct engine *engine)
{
    return engine->n_puts;
}

int64_t engine_offset(const struct engine *engine, size_t index)
{
    BATON_PRE(engine->committed && index < engine->n_places);
    return engine->places[index].offset;
}

struct wall_ms engine_appended(const struct engine *engine, size_t index)
{
    BATON_PRE(engine->committed && index < engine->n_places);
    return engine->places[index].at;
}

static void note_unavailable(struct engine *engine, const char *topic, baton_code code,
                             const struct baton_error *err)
{
    struct unavailable *slot = &engine->unavailable[0];
    for (size_t i = 0; i < UNAVAILABLE_MAX; i++) {
        struct unavailable *at = &engine->unavailable[i];
        if (strcmp(at->topic, topic) == 0) {
            slot = at;
            break;
        }
        if (at->until.v < slot->until.v) {
            slot = at;
        }
    }
    if (slot->told.v <= mono_now().v || strcmp(slot->topic, topic) != 0 || slot->code != code) {
        slot->since = wall_now();
        snprintf(slot->cause, sizeof(slot->cause), "%s", err->text);
    }
    snprintf(slot->topic, sizeof(slot->topic), "%s", topic);
    slot->until.v = mono_now().v + UNAVAILABLE_MS;
    slot->told.v = slot->until.v + UNAVAILABLE_MS;
    slot->code = code;
}

/* What has just been written is blocked no longer. */
static void note_written(struct engine *engine, const struct log_record *records)
{
    for (size_t i = 0; i < UNAVAILABLE_MAX; i++) {
        struct unavailable *at = &engine->unavailable[i];
        for (size_t k = 0; at->told.v != 0 && k < engine->n_puts; k++) {
            if (strcmp(records[k].topic, at->topic) == 0) {
                at->told.v = 0;
            }
        }
    }
}

size_t engine_blocked(const struct engine *engine, struct engine_target *ret_targets)
{
    size_t n = 0;
    for (size_t i = 0; i < UNAVAILABLE_MAX; i++) {
        const struct unavailable *at = &engine->unavailable[i];
        if (at->told.v > mono_now().v) {
            ret_targets[n++] = (struct engine_target){at->topic, at->cause, at->code, at->since};
        }
    }
    return n;
}

bool engine_unavailable(const struct engine *engine, const char *topic, baton_code *ret_code)
{
    for (size_t i = 0; i < UNAVAILABLE_MAX; i++) {
        const struct unavailable *at = &engine->unavailable[i];
        if (strcmp(at->topic, topic) == 0 && at->until.v > mono_now().v) {
            *ret_code = at->code;
            return true;
        }
    }
    return false;
}

bool batch_target_returned(struct engine *engine)
{
    bool any = false;
    const struct mono_ms now = mono_now();
    for (size_t i = 0; i < UNAVAILABLE_MAX; i++) {
        struct unavailable *at = &engine->unavailable[i];
        if (at->until.v != 0 && at->until.v <= now.v) {
            at->until.v = 0;
            any = true;
        }
    }
    return any;
}

bool batch_any(const struct engine *engine)
{
    bool any = engine->n_puts > 0;
    for (size_t p = 0; p < LOG_PARTITIONS_MAX && !any; p++) {
        any = engine->parts[p].in_batch;
    }
    return any;
}

static size_t list_offsets(const struct engine *engine, struct log_offset *offsets)
{
    size_t n = 0;
    for (int32_t p = 0; p < engine->spec.receiver.partitions; p++) {
        const struct part *part = &engine->parts[p];
        if (!part->in_batch || part->state == PART_none) {
            continue;
        }
        for (int input = 0; input < LOG_INPUTS; input++) {
            offsets[n++] = (struct log_offset){input, p, part->feeds[input].taken};
        }
    }
    return n;
}

/* Remembers where the records of the batch are in the log, and since when. */
static void keep_places(struct engine *engine, const struct log_record *records)
{
    if (engine->n_places < engine->n_puts) {
        struct place *places = realloc(engine->places, engine->n_puts * sizeof(*places));
        if (places == NULL) {
            check_failed("allocation", "the places of a batch", __FILE__, __LINE__);
        }
        engine->places = places;
    }
    engine->n_places = engine->n_puts;
    for (size_t i = 0; i < engine->n_puts; i++) {
        engine->places[i] = (struct place){records[i].offset, records[i].at};
    }
    engine->committed = true;
}

static enum engine_result start_over(struct engine *engine)
{
    metric_add(METRIC_log_commits_aborted, 1);
    intake_rewind(engine);
    ownership_start_over(engine);
    engine->renew = true;
    return ENGINE_START_OVER;
}

/* A producer that is fenced again and again has a twin that the group does not tell of: one of them
 * must go. */
static bool fenced_too_often(struct engine *engine)
{
    const struct mono_ms now = mono_now();
    engine->fenced_at[engine->n_fenced++ % FENCES_MAX] = now;
    /* The next slot of the ring holds the oldest of the last five. */
    const struct mono_ms oldest = engine->fenced_at[engine->n_fenced % FENCES_MAX];
    return engine->n_fenced >= FENCES_MAX && now.v - oldest.v < FENCES_WITHIN_MS;
}

/* What a verdict of the log means (protocol rules 13 to 15). */
static enum engine_result judge_commit(struct engine *engine, const struct log_record *records,
                                       const struct log_commit_result *result, int64_t *ret_culprit,
                                       struct baton_error *err)
{
    switch (result->verdict) {
    case LOG_VERDICT_committed:
        keep_places(engine, records);
        note_written(engine, records);
        intake_committed(engine);
        engine->gap_until_ns = mono_ns() + log_commit_gap_ms(engine->spec.log) * 1000000;
        engine->pause_ms = 0;
        metric_add(METRIC_log_commits, 1);
        return ENGINE_COMMITTED;
    case LOG_VERDICT_aborted:
        metric_add(METRIC_log_commits_aborted, 1);
        intake_rewind(engine);
        *ret_culprit = result->culprit;
        engine->work = true; /* decided again, without that target */
        if (result->culprit >= 0) {
            note_unavailable(engine, records[result->culprit].topic, result->code, err);
        }
        if (result->culprit >= 0 &&
            strcmp(records[result->culprit].topic, engine->spec.state) == 0) {
            engine_pause(engine, result->code, err, "commit"); /* no decision goes without it */
        } else if (result->culprit >= 0) {
            diag_line(DIAG_warn, "engine.target_unavailable",
                      D_TEXT("topic", records[result->culprit].topic), D_CODE("code", result->code),
                      D_TEXT("error", err->text));
        } else {
            engine_pause(engine, result->code, err, "commit");
        }
        return ENGINE_DROPPED;
    case LOG_VERDICT_lost:
        /* Nothing of this assignment is ours any more; the next poll says so, too (rule 14). */
        metric_add(METRIC_log_commits_aborted, 1);
        intake_rewind(engine);
        return ENGINE_DROPPED;
    case LOG_VERDICT_fenced:
    case LOG_VERDICT_unknown:
        return start_over(engine);
    }
    check_failed("verdict", "of a commit", __FILE__, __LINE__);
}

/* What helpers judged meanwhile is judged to its end. */
static void judged_ahead(struct engine *engine, bool ahead)
{
    if (ahead) {
        verify_end(engine->verify);
    }
}

baton_code batch_commit(struct engine *engine, enum engine_result *ret_result, int64_t *ret_culprit,
                        struct baton_error *err)
{
    struct log_offset offsets[LOG_PARTITIONS_MAX * LOG_INPUTS];
    struct log_commit_result result = {LOG_VERDICT_unknown, BATON_E_unexpected, -1};
    struct baton_error local;
    struct baton_error *why = err != NULL ? err : &local;
    baton_code rc = BATON_OK;

    *ret_culprit = -1;
    why->text[0] = '\0';
    struct judging judging;
    const bool ahead = batch_any(engine) && intake_ahead(engine, &judging);
    const size_t n_offsets = list_offsets(engine, offsets); /* an end may have been found ahead */
    if (engine->n_puts == 0 && n_offsets == 0) {
        judged_ahead(engine, ahead);
        engine->committed = true;
        engine->n_places = 0;
        *ret_result = ENGINE_COMMITTED;
        return BATON_OK;
    }
    struct log_record *records = malloc((engine->n_puts + 1) * sizeof(*records));
    if (records == NULL) {
        judged_ahead(engine, ahead);
        return baton_fail(err, BATON_E_no_memory, "out of memory for a batch");
    }
    for (size_t i = 0; i < engine->n_puts; i++) {
        records[i] = engine->puts[i].record;
    }
    struct log_txn txn = {engine->generation, records, engine->n_puts, offsets, n_offsets};
    bool doubt = false;
    const struct mono_ms began = mono_now();
    for (int tries = 0; tries < UNKNOWN_TRIES; tries++) {
        rc = log_commit(engine->member, &txn, COMMIT_TIMEOUT_MS, &result, why);
        if (rc != BATON_OK || result.verdict != LOG_VERDICT_unknown) {
            break; /* an unknown outcome is asked again by the same call */
        }
        doubt = true;
    }
    metric_observe(METRIC_log_commit, mono_now().v - began.v);
    if (doubt && baton_code_class(rc) == BATON_CLASS_retry) {
        /* The repetition did not come to its turn; what it repeats may have happened. */
        result = (struct log_commit_result){LOG_VERDICT_unknown, rc, -1};
        rc = BATON_OK;
    }
    judged_ahead(engine, ahead);
    if (rc == BATON_OK && result.verdict == LOG_VERDICT_fenced && fenced_too_often(engine)) {
        rc = baton_fail(err, BATON_E_twin,
                        "worker %s of group %s was fenced %d times within a minute: another "
                        "process writes under "
                        "its id; stop one of them, or give it another --id",
                        engine->spec.worker, engine->spec.group, FENCES_MAX);
    } else if (rc == BATON_OK) {
        *ret_result = judge_commit(engine, records, &result, ret_culprit, why);
    } else if (baton_code_class(rc) == BATON_CLASS_retry) {
        intake_rewind(engine);
        engine_pause(engine, rc, why, "commit");
        *ret_result = ENGINE_DROPPED;
        rc = BATON_OK;
    }
    free(records);
    return rc;
}

baton_code engine_commit(struct engine *engine, enum engine_result *ret_result,
                         int64_t *ret_culprit, struct baton_error *err)
{
    BATON_PRE(engine->phase == PHASE_between);
    baton_code rc = batch_commit(engine, ret_result, ret_culprit, err);
    batch_clear(engine);
    return rc;
}
