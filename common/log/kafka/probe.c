/*
 * Asks whether topics may be written or read, with a client that is there for that alone.
 * In: probe_write.c, probe_read.c  Out: handle.c
 */
#include "common/log/kafka/probe.h"

#include <stdlib.h>

#define CLOSE_MS 2000

bool probes_wait(const struct probe *probes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (probes[i].waits) {
            return true;
        }
    }
    return false;
}

baton_code probe_topics(struct kafka_log *log, const struct probe_question *question,
                        const char *const *topics, size_t count, struct baton_error *ret_errs,
                        struct baton_error *err)
{
    struct probe *probes = calloc(count + 1, sizeof(*probes));
    struct kafka_client *client = calloc(1, sizeof(*client));
    rd_kafka_t *rk = NULL;
    rd_kafka_conf_t *conf = NULL;
    baton_code rc = BATON_E_no_memory;
    if (probes == NULL || client == NULL) {
        baton_fail(err, rc, "%zu topics: out of memory", count);
    } else if ((conf = kafka_conf_new(log, client, question->use, err)) == NULL) {
        rc = BATON_E_bad_config;
    } else if (question->configure != NULL && (rc = question->configure(conf, err)) != BATON_OK) {
        rd_kafka_conf_destroy(conf);
    } else if ((rc = kafka_handle_new(client, conf, &rk, err)) == BATON_OK) {
        question->ask(log, client, rk, topics, count, probes, ret_errs);
    }
    if (rk == NULL || kafka_destroy_bounded(rk, CLOSE_MS)) {
        free(client);
        free(probes);
    } /* else a late answer may still look for them */
    return rc;
}
