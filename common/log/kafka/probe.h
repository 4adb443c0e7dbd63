/*
 * Which topics may be written (probe_write.c) or read (probe_read.c), found out without doing either: what both
 * have in common. Included by these and probe.c.
 */
#ifndef BATON_LOG_KAFKA_PROBE_H
#define BATON_LOG_KAFKA_PROBE_H

#include "common/log/kafka/state.h"

#define PROBE_ANSWER_MS 10000

/* Of one topic. */
struct probe {
    rd_kafka_topic_t *topic;   /* NULL: not asked */
    rd_kafka_resp_err_t cause; /* what was answered */
    bool waits;                /* for an answer */
};

/* One kind of question. */
struct probe_question {
    enum kafka_use use;
    /* Changes what a client of that use is configured with; NULL: nothing. */
    baton_code (*configure)(rd_kafka_conf_t *conf, struct baton_error *err);
    /* Asks for all, and puts what came of each into its error. */
    void (*ask)(struct kafka_log *log, struct kafka_client *client, rd_kafka_t *rk,
                const char *const *topics, size_t count, struct probe *probes,
                struct baton_error *errs);
};

bool probes_wait(const struct probe *probes, size_t count);
/* Asks with a client of its own, which is closed afterwards. Errors: that it cannot be made. */
baton_code probe_topics(struct kafka_log *log, const struct probe_question *question,
                        const char *const *topics, size_t count, struct baton_error *ret_errs,
                        struct baton_error *err);

#endif
