/*
 * What has ended is seen to have ended, before it is acted on and before more is written.
 *
 * A coordinator whose broker is going down, or has just come up, can call a transaction complete though
 * its markers have reached no partition: one without a leader at that moment is taken for deleted, and
 * passed over (4.3.0; one clean stop in a dozen, under load). The client is told that it is committed,
 * readers do not see it, and the next transaction of the same id takes it along: to be undone with it if
 * that is aborted, or to happen after all if this was aborted.
 *
 * So the partitions that a transaction wrote are kept until readers have passed its records. A commit is
 * none before a partition that is ours alone shows it, and nothing is begun before an abort is seen there;
 * one that others write, too, whose end their open transactions hold back, is waited for where brokers
 * were heard to go. Where it does not come, a note that nobody is given (message.c) is written there and
 * ended in the same way: its marker ends both. Of a transaction whose outcome was never heard, what one
 * partition shows is true for all. tests/model/hang.pml has the rules and what breaks without each.
 *
 * In: commit.c, member.c, producer.c  Out: hang.c
 */
#include "common/log/kafka/member.h"
#include "common/log/kafka/state.h"

#include "common/log/batch.h"

#include <string.h>
#include <time.h>

#define ASK_MS 1000
#define IDLE_AFTER_MS 20   /* markers have come by then, as a rule */
#define IDLE_ASK_MS 100    /* of a poll, which must not wait long */
#define IDLE_PAUSE_MS 1000 /* after a look that did not see all */
#define STEP_NS 500000
/* Asked for, and not shown for so long: it will not come by itself. Of partitions that others write,
 * too, their open transactions may hide it for a while. */
#define MISSING_MS 2000
#define MISSING_SHARED_MS 60000
#define TROUBLE_MS 5000  /* a broker that went so long before a commit may have passed it over */
#define FOLLOWED_MS 8000 /* of partitions that others write, too: then it is let go */

/* ---- what a transaction wrote ---- */

static void note(struct kafka_written *written, const char *topic, int32_t partition,
                 int64_t offset)
{
    if (written->list == NULL) {
        written->list = rd_kafka_topic_partition_list_new(8);
    }
    rd_kafka_topic_partition_t *at =
        rd_kafka_topic_partition_list_find(written->list, topic, partition);
    if (at == NULL) {
        at = rd_kafka_topic_partition_list_add(written->list, topic, partition);
        at->offset = offset;
    }
    at->offset = at->offset < offset ? offset : at->offset;
    written->since = mono_now().v;
    written->missing_since = 0;
    written->brought_out = false;
}

static void forget(struct kafka_written *written)
{
    if (written->list != NULL) {
        rd_kafka_topic_partition_list_destroy(written->list);
    }
    *written = (struct kafka_written){.how = written->how};
}

static void note_all(struct kafka_member *member, const struct log_txn *txn, enum hang_end how,
                     struct kafka_written *own, struct kafka_written *shared)
{
    own->how = shared->how = how;
    for (size_t i = 0; i < txn->n_records && i < member->n_deliveries; i++) {
        const struct delivery *delivery = &member->deliveries[i];
        const bool by_key = txn->records[i].partition == LOG_PARTITION_BY_KEY;
        if (delivery->cause == RD_KAFKA_RESP_ERR_NO_ERROR) {
            note(by_key ? shared : own, txn->records[i].topic, delivery->partition,
                 delivery->offset);
        }
    }
}

void confirm_begun(struct kafka_member *member)
{
    forget(&member->unknown);
    member->begun = true;
}

void confirm_never_begun(struct kafka_member *member)
{
    member->begun = false;
}

void confirm_ended(struct kafka_member *member, const struct log_txn *txn, enum hang_end how)
{
    note_all(member, txn, how, &member->own, &member->shared);
    member->begun = false;
    member->confirm_at = mono_now().v + IDLE_AFTER_MS;
}

void confirm_unknown(struct kafka_member *member, const struct log_txn *txn)
{
    forget(&member->unknown);
    note_all(member, txn, HANG_abort, &member->unknown, &member->unknown);
}

void confirm_forget(struct kafka_member *member)
{
    forget(&member->own);
    forget(&member->shared);
    forget(&member->unknown);
}

static bool owed(const struct kafka_written *written)
{
    return written->list != NULL && written->list->cnt > 0;
}

/* ---- is it there? ---- */

/* Asks where readers at committed stop, and forgets what they see. False: not all of it was
 * answered. */
static bool look(struct kafka_member *member, struct kafka_written *written, int timeout_ms)
{
    rd_kafka_topic_partition_list_t *ends = rd_kafka_topic_partition_list_copy(written->list);
    bool answered = hang_ask_ends(member->producer, ends, timeout_ms);
    for (int i = answered ? ends->cnt - 1 : -1; i >= 0; i--) {
        const rd_kafka_topic_partition_t *end = &ends->elems[i];
        const rd_kafka_topic_partition_t *at =
            rd_kafka_topic_partition_list_find(written->list, end->topic, end->partition);
        if (end->err != RD_KAFKA_RESP_ERR_NO_ERROR || at == NULL) {
            answered = false;
        } else if (end->offset > at->offset) {
            rd_kafka_topic_partition_list_del(written->list, end->topic, end->partition);
        }
    }
    rd_kafka_topic_partition_list_destroy(ends);
    if (!answered) {
        written->missing_since = 0; /* leaders that move show it when they are there */
    } else if (written->missing_since == 0) {
        written->missing_since = mono_now().v;
    }
    return answered;
}

static void tell(const struct kafka_member *member, const struct kafka_written *written,
                 const char *event, const char *meaning)
{
    diag_line(DIAG_warn, event, D_TEXT("id", member->transactional_id.s),
              D_TEXT("topic", written->list->elems[0].topic),
              D_INT("partition", written->list->elems[0].partition),
              D_INT("partitions", written->list->cnt), D_TEXT("meaning", meaning));
}

/* It does not come by itself: behind a note that is committed it does, once; what is hidden even so
 * stands behind another producer's open transaction, and comes when that has ended. */
static void bring_out(struct kafka_member *member, struct kafka_written *written)
{
    if (written->brought_out) {
        tell(member, written, "kafka.commit_hidden",
             "a transaction that has ended is not shown yet: somebody else has one open before it");
        forget(written);
        return;
    }
    tell(member, written, "kafka.commit_hangs",
         "the brokers called a transaction ended and do not show it; a note behind it brings it "
         "out");
    if (!hang_write(member->producer, written->list, written->how)) {
        member->txn = TXN_broken;
    }
    written->missing_since = 0;
    written->brought_out = true;
}

static bool missing(const struct kafka_written *written, int64_t for_ms)
{
    return written->missing_since != 0 && mono_now().v - written->missing_since >= for_ms;
}

/* Is there something that must be seen before more is written? */
static struct kafka_written *awaited(struct kafka_member *member)
{
    struct kafka_written *shared = &member->shared;
    if (owed(&member->own)) {
        return &member->own;
    }
    if (!owed(shared) ||
        !kafka_client_troubled(&member->producer_client, shared->since - TROUBLE_MS)) {
        return NULL;
    }
    if (mono_now().v - shared->since >= FOLLOWED_MS) {
        forget(shared); /* deleted, perhaps */
        return NULL;
    }
    return shared;
}

baton_code confirm_wait(struct kafka_member *member, struct deadline deadline,
                        struct baton_error *err)
{
    struct kafka_written *written;
    while (member->txn != TXN_broken && (written = awaited(member)) != NULL) {
        const int left = deadline_left_ms(deadline);
        const bool answered = look(member, written, left < ASK_MS ? left : ASK_MS);
        if (!owed(written)) {
            continue;
        }
        if (answered && missing(written, MISSING_MS)) {
            bring_out(member, written);
        } else if (member_over(member, deadline)) {
            return kafka_fail_client(err, &member->producer_client,
                                     answered ? RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT
                                              : RD_KAFKA_RESP_ERR__TRANSPORT,
                                     KAFKA_TRIED_commit, member->transactional_id.s);
        } else {
            nanosleep(&(struct timespec){0, STEP_NS}, NULL);
        }
    }
    return BATON_OK;
}

void confirm_idle(struct kafka_member *member)
{
    if (mono_now().v < member->confirm_at) {
        return;
    }
    member->confirm_at = mono_now().v + IDLE_PAUSE_MS;
    if (owed(&member->own) && member->txn == TXN_none && look(member, &member->own, IDLE_ASK_MS) &&
        owed(&member->own) && missing(&member->own, MISSING_MS)) {
        bring_out(member, &member->own);
    }
    if (owed(&member->shared) && member->txn == TXN_none &&
        look(member, &member->shared, IDLE_ASK_MS) && owed(&member->shared) &&
        missing(&member->shared, MISSING_SHARED_MS)) {
        bring_out(member, &member->shared);
    }
}

/* ---- what lies open after a producer was made anew ---- */

/* Is the record at this offset given to readers at committed? */
static bool shows(struct kafka_member *member, const rd_kafka_topic_partition_t *at)
{
    struct log_reader *reader = NULL;
    struct log_batch batch = {0};
    if (kafka_reader_open(&member->log->base, at->topic, at->partition, at->offset,
                          LOG_READ_committed, &reader, NULL) != BATON_OK) {
        return false;
    }
    const bool yes = kafka_reader_next(reader, 1, 0, &batch, NULL) == BATON_OK && batch.count > 0 &&
                     batch.records[0].offset == at->offset;
    log_batch_free(&batch);
    kafka_reader_close(reader);
    return yes;
}

enum hang_end confirm_judge(struct kafka_member *member)
{
    if (!member->begun && (owed(&member->own) || owed(&member->shared))) {
        return member->own.how; /* nothing was begun behind it */
    }
    for (int i = 0; owed(&member->unknown) && i < member->unknown.list->cnt; i++) {
        if (shows(member, &member->unknown.list->elems[i])) {
            return HANG_commit;
        }
    }
    return HANG_abort;
}
