/*
 * A member of a group: a consumer, its partitions' own queues, and the transactional producer.
 *
 * All of it belongs to the thread that opened the member; librdkafka calls back only inside
 * rd_kafka_consumer_poll and rd_kafka_flush, that is inside kafka_member_poll and kafka_commit.
 */
#ifndef BATON_COMMON_LOG_KAFKA_MEMBER_H
#define BATON_COMMON_LOG_KAFKA_MEMBER_H

#include "common/log/kafka/internal.h"

#include "common/base/diag.h"

/* What the member knows of its place. */
enum place {
    PLACE_none,     /* nothing is assigned */
    PLACE_assigned, /* told: assigned */
    PLACE_leaving,  /* told: revoked or lost; let go by the next poll */
    PLACE_lost,     /* a commit found out that it is over, and the group has not said so yet */
};

enum txn_state {
    TXN_none,
    TXN_open,
    TXN_committing, /* the outcome is not known: the same call again */
    TXN_aborting,   /* the same */
    TXN_unseen,     /* committed, and not shown to readers yet: the same */
    TXN_broken,     /* the producer is of no use any more: renew */
};

/* A partition of an input: taken off the consumer's main queue. */
struct kafka_queue {
    rd_kafka_queue_t *queue; /* NULL: not assigned */
    int64_t next;            /* what the caller reads next; LOG_OFFSET_NONE: not sought yet */
    int64_t started;         /* where the client began, if nothing was taken since; else NONE */
    bool going; /* `next` or its end has come once: what the client held is behind us */
    bool at_end;
};

/* What became of a record that was produced. */
struct delivery {
    rd_kafka_resp_err_t cause; /* _NOENT: not known yet */
    int32_t partition;
    int64_t offset;
    struct wall_ms at; /* 0: not said */
};

/* Of a member's producer: `<group>.<worker>` (TOPICS.md). */
struct transactional_id {
    char s[512];
};

enum hang_end { HANG_abort, HANG_commit };

/* The last record of each partition that a transaction wrote (confirm.c). */
struct kafka_written {
    enum hang_end how;                     /* it ended */
    rd_kafka_topic_partition_list_t *list; /* NULL: none */
    int64_t since;                         /* the newest of it (monotonic ms) */
    int64_t missing_since;                 /* the first answer without all of it; 0: none yet */
    bool brought_out;
};

#define MEMBER_EVENTS 4

struct kafka_member {
    struct log_member base;
    struct kafka_log *log;
    struct log_member_spec spec; /* names are the member's own copies */
    struct transactional_id transactional_id;

    /* consumer: member.c, rebalance.c, queue.c */
    struct kafka_client consumer_client;
    rd_kafka_t *consumer;
    rd_kafka_queue_t *main_queue;
    rd_kafka_topic_t *inputs[LOG_INPUTS]; /* of the consumer, for seeking */
    int fd;                               /* an eventfd that the queues write to */
    enum place place;
    int64_t generation;
    bool owned[LOG_PARTITIONS_MAX];
    rd_kafka_consumer_group_metadata_t *metadata; /* kept from the assign callback (rule 13) */
    struct kafka_queue queues[LOG_INPUTS][LOG_PARTITIONS_MAX];
    struct log_event events[MEMBER_EVENTS]; /* told by callbacks, not taken yet */
    size_t n_events;
    int64_t lost_at;     /* PLACE_lost since (monotonic ms) */
    int64_t clock_ahead; /* wall minus monotonic at the last poll (ms); 0: there was none */
    bool parting;        /* leaves: what the group gives is not taken */
    bool parted;         /* it has given us nothing more */
    bool misplaced;      /* the group gave it what an earlier process left with: ask anew */
    bool abandoned;      /* a consumer of before does not end: it may still call back */
    struct diag_limit limit;

    /* producer: producer.c, commit.c, deliveries.c */
    struct kafka_client producer_client;
    rd_kafka_t *producer;
    enum txn_state txn;
    uint32_t txn_no;             /* tells the deliveries of this transaction from older ones */
    struct delivery *deliveries; /* one for each record of the transaction */
    size_t n_deliveries;
    size_t cap_deliveries;
    struct log_commit_result settled; /* TXN_aborting: the verdict when it has been aborted */
    struct baton_error why;           /* and why */

    struct kafka_written own;      /* ended, in partitions of ours alone, and not seen yet */
    struct kafka_written shared;   /* the same, where others write, too */
    struct kafka_written unknown;  /* of the last transaction without an answer */
    bool begun;                    /* another transaction, since those */
    const struct log_txn *current; /* of the call; NULL: a question of our own */
    int64_t confirm_at;            /* when a poll looks again (monotonic ms) */
};

/* ---- member.c ---- */
/* The caller does not want to wait any longer, and has waited for a second. */
bool member_hurried(const struct kafka_member *member, int64_t since_ms);

/* When the time of a call is over. */
struct deadline {
    int64_t at; /* monotonic ms */
    int64_t begun;
};
static inline struct deadline deadline_in(int64_t ms)
{
    const int64_t now = mono_now().v;
    return (struct deadline){now + ms, now};
}
/* At least 1, which librdkafka takes for a time. */
static inline int deadline_left_ms(struct deadline deadline)
{
    const int64_t left = deadline.at - mono_now().v;
    return left > 1 ? (int)left : 1;
}
static inline bool member_over(const struct kafka_member *member, struct deadline deadline)
{
    return mono_now().v >= deadline.at || member_hurried(member, deadline.begun);
}

/* ---- rebalance.c ---- */
void member_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t kind,
                      rd_kafka_topic_partition_list_t *partitions, void *opaque);
/* Lets go of what was revoked or lost: the second half, by the poll after the event. */
void member_let_go(struct kafka_member *member);
/* A commit was told that its assignment is over: the next poll says lost. */
void member_found_lost(struct kafka_member *member);
void member_tell(struct kafka_member *member, enum log_event_kind kind);
/* Makes the descriptor readable. */
void member_ring(struct kafka_member *member);

/* ---- queue.c ---- */
/* Takes the partition's queue off the main one; before rd_kafka_assign. */
void queue_open(struct kafka_member *member, int input, int32_t partition);
void queues_close(struct kafka_member *member);

/* ---- deliveries.c ---- */
/* Room for n records, none of them sent; deliveries of before are not counted any more. False: no
 * memory. */
bool deliveries_begin(struct kafka_member *member, size_t n);
/* Hands record number index to the producer. */
rd_kafka_resp_err_t deliveries_send(struct kafka_member *member, const struct log_record *record,
                                    size_t index);
/* Waits until every record is acknowledged, or one has failed: returns what failed. */
rd_kafka_resp_err_t deliveries_await(struct kafka_member *member, struct deadline deadline);
/* Why a record failed with `failed`: if the transaction had failed before it, for the reason of that. */
rd_kafka_resp_err_t deliveries_why(struct kafka_member *member, rd_kafka_resp_err_t failed);
/* The record that the delivery reports blame, and why; -1: none. */
int64_t deliveries_blamed(const struct kafka_member *member, const struct log_txn *txn,
                          rd_kafka_resp_err_t *ret_cause);
/* Delivery callback of the member's producer. */
void deliveries_note(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque);

/* ---- producer.c ---- */
struct transactional_id transactional_id_of(const char *group, const char *worker);
/*
 * Makes the producer and takes its transactional id over, which ends what an earlier process with
 * that id left open. service_unavailable when the brokers do not answer in time.
 */
baton_code producer_open(struct kafka_member *member, int64_t timeout_ms, struct baton_error *err);
void producer_close(struct kafka_member *member, int64_t timeout_ms);
/*
 * Ends offsets of this producer that hang: sent to brokers that were going down, and kept there after
 * their transaction had ended. The end of any later transaction of the same producer takes them away,
 * so one is begun for the group's offsets and aborted. Between transactions.
 */
void producer_unhang(struct kafka_member *member);

/* ---- hang.c ---- */
/* Where the partitions of the list end, as this handle's isolation sees it. */
bool hang_ask_ends(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *list, int timeout_ms);
/* Writes a note that nobody is given to each partition of the list (which it sorts) and ends that
 * so, topic by topic: one that may not be written does not keep the others. Between transactions.
 * False: the producer is of no use any more. */
bool hang_write(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *list, enum hang_end how);
/*
 * Right after init_transactions, outside of a transaction: ends what lies open of this transactional
 * id in any partition of these topics though the coordinator knows nothing of it; the same for the
 * committed offsets of a group. False: the producer is of no use any more.
 */
bool hang_end_records(struct kafka_log *log, rd_kafka_t *rk, const char *const *topics,
                      size_t n_topics, enum hang_end how);
bool hang_end_offsets(rd_kafka_t *rk, const char *group, const char *topic);

/* ---- confirm.c ---- */
void confirm_begun(struct kafka_member *member);
/* The coordinator of transactions took none of it: what lies open is that of the one before, and ends as that did. */
void confirm_never_begun(struct kafka_member *member);
/* The transaction was acknowledged as ended so; it broke without an answer. Its deliveries are still
 * known. */
void confirm_ended(struct kafka_member *member, const struct log_txn *txn, enum hang_end how);
void confirm_unknown(struct kafka_member *member, const struct log_txn *txn);
void confirm_forget(struct kafka_member *member);
/* Waits until readers have passed what the last transaction wrote, and brings it out where it does not
 * come by itself. An error passes: call it again. TXN_broken after it: the producer is of no use. */
baton_code confirm_wait(struct kafka_member *member, struct deadline deadline,
                        struct baton_error *err);
/* The same between transactions, now and then. */
void confirm_idle(struct kafka_member *member);
/* What lies open when the producer has been made anew: was it committed? */
enum hang_end confirm_judge(struct kafka_member *member);

/* ---- set_back.c ---- */
/* Of every poll: wakes the consumer's threads when the wall clock was set back since the last one. */
void member_clock(struct kafka_member *member);

#endif
