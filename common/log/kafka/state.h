/*
 * What an open log of this driver holds, for the files that keep something in it: open.c,
 * settings.c, topic_cache.c, reader_pool.c. Any thread; `lock` guards what says so.
 */
#ifndef BATON_COMMON_LOG_KAFKA_STATE_H
#define BATON_COMMON_LOG_KAFKA_STATE_H

#include "common/log/kafka/internal.h"

#include "common/base/diag.h"

#include <pthread.h>

struct kafka_pair {
    char *name;
    char *value;
};

#define KAFKA_LIMITS 8

struct kafka_log {
    struct log base;
    rd_kafka_conf_t *conf; /* what every handle has: brokers, security, password */
    struct kafka_pair *pairs;
    size_t n_pairs;
    char *brokers;   /* for messages */
    char *principal; /* for messages */
    bool old_scram;  /* a login by SCRAM that brokers of Kafka 4 refuse: told beside refusals */
    char *cluster;
    atomic_bool reached;      /* the cluster has answered once */
    atomic_llong away_ms;     /* monotonic: when none of its brokers answered last; 0: never */
    _Atomic int64_t ahead_ms; /* brokers' time of the monotonic clock, the least of it; MAX: none */
    _Atomic int64_t dated_ms; /* the same as it was last told: a clock that was wrong is mended */

    struct kafka_client client; /* of admin */
    rd_kafka_t *admin;
    rd_kafka_t *groups; /* asks for the offsets of groups; made at the first question (groups.c) */

    pthread_mutex_t lock; /* topics, pool, groups, said */
    struct topic_entry *topics;
    struct reader_handle *pool;
    atomic_bool left_behind; /* a handle of it that was closed while idle may still call back */
    _Atomic int64_t silent_until;           /* no answer about the sizes of topics */
    atomic_uint turn;                       /* where a record without key goes next */
    struct diag_limit limits[KAFKA_LIMITS]; /* of the clients' own log lines */
};

extern const struct log_driver_ops kafka_ops; /* open.c */

/* topic_cache.c */
void kafka_topics_forget_all(struct kafka_log *log);
/* reader_pool.c */
/* Closes one handle that nobody has read with for a while, if there is any. */
void kafka_pool_tidy(struct kafka_log *log);
/* False: a handle did not end in time, the log must stay in memory. */
bool kafka_pool_close(struct kafka_log *log, int64_t timeout_ms);

#endif
