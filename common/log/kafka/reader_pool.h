/*
 * Handles that readers share: a client costs threads and connections, a partition of it next to
 * nothing. A handle reads a partition once at a time; who wants it twice gets another handle.
 * One that nobody has used for a while is closed: an idle client still asks and is asked.
 * Called by reader.c. Any thread.
 */
#ifndef BATON_COMMON_LOG_KAFKA_READER_POOL_H
#define BATON_COMMON_LOG_KAFKA_READER_POOL_H

#include "common/log/kafka/internal.h"

struct reader_place {
    struct reader_place *next;
    int32_t partition;
    char topic[];
};

struct reader_kind {
    enum log_isolation isolation;
    bool waits; /* its fetches wait at the broker */
};

struct reader_handle {
    struct reader_handle *next;
    struct kafka_client client;
    struct reader_kind kind;
    rd_kafka_t *rk;
    struct reader_place *places; /* what is being read */
    int64_t given_at;            /* by the last reader (monotonic ms) */
};

/* A handle of that kind in which nobody reads the partition; it is taken there. */
baton_code reader_pool_take(struct kafka_log *log, struct reader_kind kind, const char *topic,
                            int32_t partition, struct reader_handle **ret_handle,
                            struct baton_error *err);
void reader_pool_give(struct reader_handle *handle, const char *topic, int32_t partition);

#endif
