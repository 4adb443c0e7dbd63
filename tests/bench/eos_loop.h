/*
 * What eos_loop.c and eos_handles.c share: the program is in eos_loop.c, its client handles and
 * topics are in eos_handles.c.
 */
#ifndef BATON_TESTS_BENCH_EOS_LOOP_H
#define BATON_TESTS_BENCH_EOS_LOOP_H

#include <librdkafka/rdkafka.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEY_LEN 32
#define PARTITIONS_MAX 64
#define ADMIN_MS 30000
#define RECORD_MAX 4096

/* What a transaction consists of. */
enum step { STEP_produce, STEP_flush, STEP_offsets, STEP_commit, STEPS };

enum topic { HANDOFF, TURNS, OUTCOMES, TOPICS };

struct options {
    const char *brokers;
    int turns;
    int batch;
    int transactions;
    int partitions;
    int rate;
    int seconds;
    int gather_ms;
    size_t handoff_bytes; /* what Baton writes for a turn of 500 bytes with proofs */
    size_t claim_bytes;
    size_t end_bytes;
    size_t outcome_bytes;
    bool json;
};

struct taken {
    char key[KEY_LEN];
    int32_t partition;
    int number;
};

struct loop {
    const struct options *options;
    char group[64];
    char names[TOPICS][80];
    char filler[RECORD_MAX];
    rd_kafka_t *publisher;
    rd_kafka_t *producer;
    rd_kafka_t *consumer;
    rd_kafka_queue_t *queue;
    rd_kafka_consumer_group_metadata_t *metadata;
    int64_t next[PARTITIONS_MAX];
    bool written[PARTITIONS_MAX];
    struct taken *claims;
    struct taken *ends;
    int n_claims;
    int n_ends;
    int64_t transactions;
    int64_t spent_ns[STEPS]; /* of all transactions */
    atomic_int failed;
    int64_t *due_ns;
    int64_t *claimed_ns;
    int64_t *ended_ns;
};

/* eos_handles.c; each ends the program with a line when it cannot do what it says. */

_Noreturn void die(const char *what, const char *why);
void must(rd_kafka_error_t *error, const char *what);
int64_t now_ns(void);

void open_publisher(struct loop *loop);
/* The transactional producer, and the consumer, which joins its group by being polled. */
void open_loop(struct loop *loop);
void close_loop(struct loop *loop);
void create_topics(struct loop *loop);
void delete_topics(struct loop *loop);

#endif
