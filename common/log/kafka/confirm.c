/*
 * What was acknowledged is there before more is written.
 *
 * A coordinator whose broker is going down, or has just come up, can call a transaction complete though
 * its markers have reached no partition: one without a leader at that moment is taken for deleted, and
 * passed over (4.3.0; one clean stop in a dozen, under load). The client is told that it is committed,
 * readers do not see it, and the next transaction of the same id that is aborted takes it along.
 *
 * So the partitions that a committed transaction wrote are kept until they show it, and no other one
 * begins while a partition that is ours alone does not. Where it stays invisible, a note that nobody is
 * given (message.c) is committed there: its marker ends both. Of a transaction whose outcome was never
 * heard, what one partition shows is true for all.
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
#define MISSING_MS 2000    /* asked for, and not shown for so long: it will not come by itself */
#define MISSING_SHARED_MS 60000 /* others' open transactions may hide it for a while */
#define STEP_NS 1000000

static rd_kafka_topic_partition_list_t *list_of(rd_kafka_topic_partition_list_t **list)
{
    if (*list == NULL) {
        *list = rd_kafka_topic_partition_list_new(8);
    }
    return *list;
}

static void note(rd_kafka_topic_partition_list_t *list, const char *topic, int32_t partition,
                 int64_t offset, bool own)
{
    rd_kafka_topic_partition_t *at = rd_kafka_topic_partition_list_find(list, topic, partition);
    if (at == NULL) {
        at = rd_kafka_topic_partition_list_add(list, topic, partition);
        at->offset = offset;
        at->opaque = NULL;
    }
    at->offset = at->offset < offset ? offset : at->offset;
    at->opaque = own ? list : NULL; /* written by us alone */
}

static void note_all(const struct kafka_member *member, const struct log_txn *txn,
                     rd_kafka_topic_partition_list_t *list)
{
    for (size_t i = 0; i < txn->n_records && i < member->n_deliveries; i++) {
        const struct delivery *delivery = &member->deliveries[i];
        if (delivery->cause == RD_KAFKA_RESP_ERR_NO_ERROR) {
            note(list, txn->records[i].topic, delivery->partition, delivery->offset,
                 txn->records[i].partition != LOG_PARTITION_BY_KEY);
        }
    }
}

void confirm_committed(struct kafka_member *member, const struct log_txn *txn)
{
    note_all(member, txn, list_of(&member->unconfirmed));
    member->unconfirmed_at = mono_now().v;
    member->confirm_looked_at = member->unconfirmed_at;
    member->missing_since = 0;
}

void confirm_unknown(struct kafka_member *member, const struct log_txn *txn)
{
    if (member->unknown != NULL) {
        rd_kafka_topic_partition_list_destroy(member->unknown);
        member->unknown = NULL;
    }
    note_all(member, txn, list_of(&member->unknown));
}

void confirm_forget(struct kafka_member *member)
{
    rd_kafka_topic_partition_list_t **lists[] = {&member->unconfirmed, &member->unknown};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        if (*lists[i] != NULL) {
            rd_kafka_topic_partition_list_destroy(*lists[i]);
            *lists[i] = NULL;
        }
    }
}

static bool owed(const struct kafka_member *member)
{
    return member->unconfirmed != NULL && member->unconfirmed->cnt > 0;
}

static bool owed_own(const struct kafka_member *member)
{
    for (int i = 0; owed(member) && i < member->unconfirmed->cnt; i++) {
        if (member->unconfirmed->elems[i].opaque != NULL) {
            return true;
        }
    }
    return false;
}

/* Asks where readers at committed stop, and forgets what they see. False: nobody answered. */
static bool look(struct kafka_member *member, int timeout_ms)
{
    rd_kafka_topic_partition_list_t *ends = rd_kafka_topic_partition_list_copy(member->unconfirmed);
    member->confirm_looked_at = mono_now().v;
    bool answered = hang_ask_ends(member->producer, ends, timeout_ms);
    for (int i = answered ? ends->cnt - 1 : -1; i >= 0; i--) {
        const rd_kafka_topic_partition_t *end = &ends->elems[i];
        answered = answered && end->err == RD_KAFKA_RESP_ERR_NO_ERROR;
        const rd_kafka_topic_partition_t *at =
            rd_kafka_topic_partition_list_find(member->unconfirmed, end->topic, end->partition);
        if (end->err == RD_KAFKA_RESP_ERR_NO_ERROR && at != NULL && end->offset > at->offset) {
            rd_kafka_topic_partition_list_del(member->unconfirmed, end->topic, end->partition);
        }
    }
    rd_kafka_topic_partition_list_destroy(ends);
    if (!answered) {
        member->missing_since = 0; /* leaders that move show it when they are there */
    } else if (member->missing_since == 0) {
        member->missing_since = mono_now().v;
    }
    return answered;
}

/* The note: false when the producer is of no use any more. */
static bool bring_out(struct kafka_member *member)
{
    diag_line(DIAG_warn, "kafka.commit_hangs", D_TEXT("id", member->transactional_id.s),
              D_TEXT("topic", member->unconfirmed->elems[0].topic),
              D_INT("partition", member->unconfirmed->elems[0].partition),
              D_INT("partitions", member->unconfirmed->cnt),
              D_TEXT("meaning", "the brokers called a transaction committed and do not show it; a "
                                "note is committed behind it, which brings it out"));
    if (!hang_write(member->producer, member->unconfirmed, HANG_commit)) {
        member->txn = TXN_broken;
        return false;
    }
    member->unconfirmed_at = mono_now().v;
    member->missing_since = 0;
    return true;
}

static bool missing(const struct kafka_member *member)
{
    return member->missing_since != 0 && mono_now().v - member->missing_since >=
                                             (owed_own(member) ? MISSING_MS : MISSING_SHARED_MS);
}

baton_code confirm_before(struct kafka_member *member, struct deadline deadline,
                          struct baton_error *err)
{
    bool answered = true;
    while (owed_own(member)) {
        const int left = deadline_left_ms(deadline);
        answered = look(member, left < ASK_MS ? left : ASK_MS);
        if (!owed_own(member)) {
            break;
        }
        if (answered && missing(member) && !bring_out(member)) {
            return BATON_OK; /* broken: the transaction says so */
        }
        if (member_over(member, deadline)) {
            return kafka_fail_client(err, &member->producer_client,
                                     answered ? RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT
                                              : RD_KAFKA_RESP_ERR__TRANSPORT,
                                     KAFKA_TRIED_commit, member->transactional_id.s);
        }
        nanosleep(&(struct timespec){0, STEP_NS}, NULL);
    }
    return BATON_OK;
}

void confirm_idle(struct kafka_member *member)
{
    const int64_t now = mono_now().v;
    if (!owed(member) || member->txn != TXN_none || now - member->unconfirmed_at < IDLE_AFTER_MS ||
        (member->confirm_looked_at > member->unconfirmed_at &&
         now - member->confirm_looked_at < IDLE_PAUSE_MS)) {
        return;
    }
    if (look(member, IDLE_ASK_MS) && owed(member) && missing(member)) {
        (void)bring_out(member);
    }
}

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
    if (owed(member)) {
        return HANG_commit; /* nothing was begun behind it */
    }
    for (int i = 0; member->unknown != NULL && i < member->unknown->cnt; i++) {
        if (shows(member, &member->unknown->elems[i])) {
            return HANG_commit;
        }
    }
    return HANG_abort;
}
