/*
 * What was decided in this round: records in the batch, and what to fold once the log has them.
 * In: worker/claim.c, worker/settle.c, worker/operate.c  Out: worker/round.c,
 * common/engine/engine.h
 */
#include "worker/decision.h"

#include "common/base/array.h"
#include "common/base/check.h"
#include "common/engine/engine.h"
#include "common/log/log.h"
#include "common/record/turn.h"
#include "common/record/turn_record.h"
#include "topics/catalogue.h"
#include "worker/internal.h"
#include "worker/live.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void decision_done(struct decision *decision)
{
    turn_record_done(&decision->record);
    buf_done(&decision->bytes);
    turn_free(decision->turn);
}

void decisions_clear(struct decisions *decisions)
{
    for (size_t i = 0; i < decisions->count; i++) {
        decision_done(&decisions->list[i]);
    }
    for (size_t i = 0; i < decisions->n_notes; i++) {
        buf_done(&decisions->notes[i].value);
    }
    if (decisions->count > 0) {
        memset(decisions->slots, 0, sizeof(decisions->slots));
    }
    decisions->count = 0;
    decisions->n_notes = 0;
}

void decisions_done(struct decisions *decisions)
{
    decisions_clear(decisions);
    free(decisions->list);
    free(decisions->notes);
    *decisions = (struct decisions){0};
}

char *decision_text(const char *text)
{
    if (text == NULL) {
        return NULL;
    }
    char *copy = strdup(text);
    BATON_INVARIANT(copy != NULL);
    return copy;
}

bool decided(const struct worker *w, const char *turn_id)
{
    const struct decisions *batch = &w->batch;
    for (size_t at = batch->slots[turn_hash(turn_id) % DECISION_SLOTS]; at != 0;
         at = batch->list[at - 1].slot_next) {
        if (strcmp(batch->list[at - 1].record.id.s, turn_id) == 0) {
            return true;
        }
    }
    return false;
}

static struct decision *add(struct worker *w, int32_t partition)
{
    struct decisions *batch = &w->batch;
    batch->list = array_grown(batch->list, batch->count, &batch->cap, sizeof(*batch->list));
    struct decision *decision = &batch->list[batch->count++];
    memset(decision, 0, sizeof(*decision));
    turn_record_init(&decision->record);
    decision->partition = partition;
    return decision;
}

/* The newest decision of the batch is found by its turn from now on. */
static void enter(struct decisions *batch)
{
    struct decision *decision = &batch->list[batch->count - 1];
    uint32_t *slot = &batch->slots[turn_hash(decision->record.id.s) % DECISION_SLOTS];
    decision->slot_next = *slot;
    *slot = (uint32_t)batch->count;
}

static size_t put_state(struct worker *w, int32_t partition, const char *key, const void *value,
                        size_t len)
{
    const struct log_record record = {
        .topic = w->names[TOPIC_turns].s,
        .partition = partition,
        .key = key,
        .key_len = strlen(key),
        .value = value,
        .value_len = len,
    };
    return engine_put(w->engine, &record);
}

struct decision *decide(struct worker *w, int32_t partition, struct turn_record *take_record,
                        struct turn *take_turn)
{
    BATON_PRE(!decided(w, take_record->id.s));
    struct decision *decision = add(w, partition);
    decision->record = *take_record;
    turn_record_init(take_record);
    enter(&w->batch);
    decision->turn = take_turn;
    turn_record_encode(&decision->record, &decision->bytes);
    BATON_INVARIANT(buf_ok(&decision->bytes));
    decision->put =
        put_state(w, partition, decision->record.id.s, decision->bytes.data, decision->bytes.len);
    return decision;
}

/* value NULL: the note goes. */
static void change_note(struct worker *w, int32_t partition, const char *key, const void *value,
                        size_t len)
{
    struct decisions *batch = &w->batch;
    batch->notes =
        array_grown(batch->notes, batch->n_notes, &batch->cap_notes, sizeof(*batch->notes));
    struct note_change *note = &batch->notes[batch->n_notes++];
    *note = (struct note_change){.partition = partition, .value = BUF_INIT, .drop = value == NULL};
    snprintf(note->key, sizeof(note->key), "%s", key);
    if (value != NULL) {
        buf_add(&note->value, value, len);
    }
    note->put = put_state(w, partition, key, value, len);
}

void decide_note(struct worker *w, int32_t partition, const char *key, const struct buf *value)
{
    BATON_INVARIANT(buf_ok(value) &&
                    value->len > 0); /* a note without memory would be a dropped one */
    change_note(w, partition, key, value->data, value->len);
}

void decide_note_gone(struct worker *w, int32_t partition, const char *key)
{
    change_note(w, partition, key, NULL, 0);
}

void decide_tombstone(struct worker *w, int32_t partition, const char *turn_id)
{
    struct decision *decision = add(w, partition);
    decision->record.id = turn_id_of(turn_id);
    enter(&w->batch);
    decision->tombstone = true;
    decision->put = put_state(w, partition, turn_id, NULL, 0);
}
