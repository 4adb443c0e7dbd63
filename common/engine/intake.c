/*
 * Intake: what the inputs hold, from bytes to judged records, and how far it was taken.
 *
 * A chunk of a partition is fetched when the one before it is wholly in committed batches, so that
 * a dropped batch only means giving the same records again. What is not fetched stays in the log.
 *
 * In: common/engine/engine.c  Out: common/record/receipt.h
 */
#include "common/engine/internal.h"

#include "common/base/check.h"

#include <stdlib.h>
#include <string.h>

static void judge(void *arg, size_t index)
{
    struct judging *judging = arg;
    struct receipt *receipt = &judging->feed->receipts[index];
    const struct log_record *record = &judging->feed->batch.records[index];
    switch (judging->records) {
    case ENGINE_HANDOFFS:
        (void)receipt_handoff(judging->receiver, record, receipt);
        break;
    case ENGINE_CONTROLS:
        (void)receipt_control(judging->receiver, record, receipt);
        break;
    case ENGINE_REQUESTS:
        (void)receipt_request(judging->receiver, record, receipt);
        break;
    case ENGINE_OUTCOMES:
        (void)receipt_outcome(judging->receiver, record, receipt);
        break;
    }
}

static struct judging judging_of(const struct engine *engine, struct feed *feed, int input)
{
    return (struct judging){&engine->spec.receiver, feed, engine->spec.inputs[input].records};
}

static void drop_receipts(struct feed *feed, size_t from)
{
    for (size_t i = from; feed->receipts != NULL && i < feed->batch.count; i++) {
        receipt_done(&feed->receipts[i]);
    }
}

static void feed_empty(struct feed *feed)
{
    drop_receipts(feed, 0);
    free(feed->receipts);
    feed->receipts = NULL;
    feed->batch.count = 0;
    feed->at = 0;
    feed->safe = 0;
}

/* Reads what is there; nothing of it is judged. */
static baton_code read_feed(struct engine *engine, int32_t number, int input, size_t max,
                            struct baton_error *err)
{
    struct feed *feed = &engine->parts[number].feeds[input];

    feed_empty(feed);
    baton_code rc =
        log_member_fetch(engine->member, input, number, max, FETCH_BYTES_MAX, &feed->batch, err);
    if (rc != BATON_OK) {
        feed->batch.count = 0;
        return rc;
    }
    feed->at_end = feed->batch.at_end;
    if (feed->batch.count == 0) {
        /* An end that lies behind what was taken (markers, trimmed records) is committed, too; one
         * before it is that of a topic that was made again. */
        if (feed->batch.next_offset > feed->taken ||
            (feed->at_end && feed->batch.next_offset < feed->taken)) {
            feed->taken = feed->batch.next_offset;
            engine->parts[number].in_batch = true;
            if (engine->eof_since.v == 0) {
                engine->eof_since = mono_now();
            }
        }
        return BATON_OK;
    }
    feed->receipts = calloc(feed->batch.count, sizeof(*feed->receipts));
    if (feed->receipts == NULL) {
        feed->batch.count = 0;
        return baton_fail(err, BATON_E_no_memory, "out of memory for %zu records", max);
    }
    return BATON_OK;
}

/* The topic was made again: all that is in it is read. */
baton_code intake_begin_anew(struct engine *engine, int32_t number, int input, int64_t low,
                             struct baton_error *err)
{
    struct feed *feed = &engine->parts[number].feeds[input];
    baton_code rc = log_member_seek(engine->member, input, number, low, err);
    if (rc == BATON_OK) {
        feed_empty(feed);
        feed->low = low;
        feed->committed = low;
        feed->taken = low;
        feed->at_end = false;
        engine->parts[number].in_batch = true; /* what the group has is of the topic before */
        engine->eof_since = mono_now();
    }
    return rc;
}

static baton_code fetch_feed(struct engine *engine, int32_t number, int input, size_t max,
                             struct baton_error *err)
{
    struct feed *feed = &engine->parts[number].feeds[input];
    struct judging judging = judging_of(engine, feed, input);
    baton_code rc = read_feed(engine, number, input, max, err);
    if (rc == BATON_OK) {
        verify_run(engine->verify, feed->batch.count, judge, &judging);
    }
    return rc;
}

static bool feed_fetchable(const struct feed *feed)
{
    return feed->at == feed->batch.count && feed->safe == feed->batch.count;
}

/* What was said while nobody listened (a pause, a cancel) comes before what waits to be done. On
 * Kafka either topic may arrive first. */
static bool held_back(struct part *part, int input)
{
    const struct feed *control = &part->feeds[ENGINE_CONTROL_INPUT];
    part->heard = part->heard || (control->at_end && control->at == control->batch.count);
    return input == ENGINE_INPUT && (part->held || !part->heard);
}

/* Fetches at most `wanted` records of an input, from the partitions in turn. */
baton_code intake_fetch(struct engine *engine, int input, size_t wanted, bool *ret_any,
                        struct baton_error *err)
{
    int32_t partitions = engine->spec.receiver.partitions;
    *ret_any = false;
    for (int32_t i = 0; i < partitions && wanted > 0; i++) {
        int32_t number = (engine->next_part + i) % partitions;
        struct part *part = &engine->parts[number];
        struct feed *feed = &part->feeds[input];
        if (part->state != PART_owned || held_back(part, input)) {
            continue;
        }
        if (feed_fetchable(feed)) {
            size_t max = wanted < FETCH_RECORDS_MAX ? wanted : FETCH_RECORDS_MAX;
            baton_code rc = fetch_feed(engine, number, input, max, err);
            if (rc != BATON_OK) {
                return rc;
            }
        }
        size_t waiting = feed->batch.count - feed->at;
        if (waiting > 0) {
            *ret_any = true;
            wanted -= waiting < wanted ? waiting : wanted;
        }
    }
    return BATON_OK;
}

/*
 * While a transaction waits for the log, helpers judge the chunk that the next round begins with. Only
 * of a backlog: where a partition was last read to its end, what comes meanwhile is better read later
 * and taken at once. False: nothing was begun.
 */
bool intake_ahead(struct engine *engine, struct judging *ret_judging)
{
    const int32_t partitions = engine->spec.receiver.partitions;
    if (!verify_helped(engine->verify) || engine->stopping || engine->capacity == 0) {
        return false;
    }
    for (int32_t i = 0; i < partitions; i++) {
        const int32_t number = (engine->next_part + i) % partitions;
        struct part *part = &engine->parts[number];
        struct feed *feed = &part->feeds[ENGINE_INPUT];
        if (part->state != PART_owned || held_back(part, ENGINE_INPUT) || feed->at_end ||
            !feed_fetchable(feed)) {
            continue;
        }
        const size_t max =
            engine->capacity < FETCH_RECORDS_MAX ? engine->capacity : FETCH_RECORDS_MAX;
        /* What cannot be read now is said by the next round. */
        if (read_feed(engine, number, ENGINE_INPUT, max, NULL) != BATON_OK) {
            return false;
        }
        *ret_judging = judging_of(engine, feed, ENGINE_INPUT);
        return feed->batch.count > 0 &&
               verify_begin(engine->verify, feed->batch.count, judge, ret_judging);
    }
    return false;
}

/* Gives the next buffered record of an input as an event; false if there is none for this round. */
bool intake_give(struct engine *engine, int input, struct engine_event *ret_event)
{
    int32_t partitions = engine->spec.receiver.partitions;
    for (int32_t i = 0; i < partitions; i++) {
        int32_t number = (engine->next_part + i) % partitions;
        struct part *part = &engine->parts[number];
        struct feed *feed = &part->feeds[input];
        if (part->state != PART_owned || feed->postponed || feed->at >= feed->batch.count ||
            held_back(part, input)) {
            continue;
        }
        engine->event_part = number;
        engine->event_input = input;
        engine->event_taken = false;
        ret_event->kind = input == ENGINE_INPUT ? ENGINE_record : ENGINE_control;
        ret_event->partition = number;
        ret_event->record = &feed->batch.records[feed->at];
        ret_event->receipt = &feed->receipts[feed->at];
        return true;
    }
    return false;
}

/* The caller is done with the present record: taken, or postponed to the next round. */
void intake_settle_event(struct engine *engine)
{
    if (engine->event_input < 0) {
        return;
    }
    struct part *part = &engine->parts[engine->event_part];
    struct feed *feed = &part->feeds[engine->event_input];
    if (engine->event_taken) {
        feed->at++;
        feed->taken = feed->at < feed->batch.count ? feed->batch.records[feed->at - 1].offset + 1
                                                   : feed->batch.next_offset;
        part->in_batch = true;
    } else {
        feed->postponed = true;
        engine->postponed = true;
    }
    engine->event_input = -1;
}

void engine_take(struct engine *engine)
{
    BATON_PRE(engine->event_input >= 0);
    engine->event_taken = true;
}

/* The batch is in the log: what it took is done. */
void intake_committed(struct engine *engine)
{
    for (size_t p = 0; p < LOG_PARTITIONS_MAX; p++) {
        for (int input = 0; input < LOG_INPUTS; input++) {
            struct feed *feed = &engine->parts[p].feeds[input];
            feed->committed = feed->taken;
            feed->safe = feed->at;
        }
        engine->parts[p].in_batch = false;
    }
    engine->eof_since.v = 0;
}

static void judge_again(struct engine *engine, struct feed *feed, int input, size_t from, size_t to)
{
    struct judging judging = judging_of(engine, feed, input);
    for (size_t i = from; i < to; i++) {
        receipt_done(&feed->receipts[i]);
        memset(&feed->receipts[i], 0, sizeof(feed->receipts[i]));
        judge(&judging, i);
    }
}

/* The batch was dropped: what it took is given again, judged again (the caller may have taken the
 * turns out of its receipts). */
void intake_rewind(struct engine *engine)
{
    for (size_t p = 0; p < LOG_PARTITIONS_MAX; p++) {
        for (int input = 0; input < LOG_INPUTS; input++) {
            struct feed *feed = &engine->parts[p].feeds[input];
            judge_again(engine, feed, input, feed->safe, feed->at);
            feed->taken = feed->committed;
            feed->at = feed->safe;
        }
        engine->parts[p].in_batch = false;
    }
    /* An end that was reached is found again by the next fetch. */
    engine->eof_since.v = 0;
}

void part_clear(struct part *part)
{
    for (int input = 0; input < LOG_INPUTS; input++) {
        feed_empty(&part->feeds[input]);
        log_batch_free(&part->feeds[input].batch);
        part->feeds[input] = (struct feed){0};
    }
    log_reader_close(part->reader);
    *part = (struct part){.state = PART_none};
}

void engine_trust(struct engine *engine, const struct trust *trust)
{
    engine->spec.receiver.trust = trust;
    for (size_t p = 0; p < LOG_PARTITIONS_MAX; p++) {
        for (int input = 0; input < LOG_INPUTS; input++) {
            struct feed *feed = &engine->parts[p].feeds[input];
            judge_again(engine, feed, input, feed->at, feed->batch.count);
        }
    }
}
