/* Follows one turn through the turn logs of all services. See turn_log.h for who calls it. */
#include "topics/turn_log.h"

#include "common/base/clock.h"
#include "topics/catalogue.h"
#include "topics/scan.h"

#include <stdlib.h>
#include <string.h>

#define WATCH_SLICE_MS 200 /* several services are looked at in turns */

struct turn_watch_at {
    struct log_reader *reader;
    const char *service;
};

struct turn_watch {
    struct turn_id id;
    struct turn_watch_at *at; /* one for each service */
    size_t count;
    size_t next;
    struct log_batch batch;
    size_t pos; /* of the batch: what comes next */
    const char *batch_service;
};

static baton_code watch_at(struct turn_watch *watch, struct log *log, const struct config *config,
                           const char *service, struct baton_error *err)
{
    struct topic_name topic = topic_name(TOPIC_turns, config->prefix.s, service);
    int32_t partitions = 0;
    int64_t low;
    int64_t high;
    baton_code rc = scan_partitions_or_none(log, topic.s, true, &partitions, err);
    if (rc != BATON_OK || partitions == 0) {
        return rc;
    }
    int32_t partition = log_partition_of(watch->id.s, 32, partitions);
    if ((rc = log_watermarks(log, topic.s, partition, &low, &high, err)) == BATON_OK &&
        (rc = log_reader_open(log, topic.s, partition, high, LOG_READ_committed,
                              &watch->at[watch->count].reader, err)) == BATON_OK) {
        watch->at[watch->count++].service = service;
    }
    return rc;
}

baton_code turn_watch_open(struct log *log, const struct config *config, const char *turn_id,
                           struct turn_watch **ret_watch, struct baton_error *err)
{
    struct turn_watch *watch = calloc(1, sizeof(*watch));
    struct scan_hidden hidden = {0};
    baton_code rc = BATON_OK;
    if (watch == NULL || (watch->at = calloc(config->n_services + 1, sizeof(*watch->at))) == NULL) {
        free(watch);
        return baton_fail(err, BATON_E_no_memory, "no memory to follow a turn");
    }
    watch->id = turn_id_of(turn_id);
    for (size_t s = 0; rc == BATON_OK && s < config->n_services; s++) {
        struct baton_error why = {BATON_OK, ""};
        rc = watch_at(watch, log, config, config->services[s].name.s, &why);
        rc = scan_pass_hidden(&hidden, rc, &why, err);
    }
    rc = rc == BATON_OK ? scan_hidden_end(&hidden, watch->count > 0, err) : rc;
    if (rc != BATON_OK) {
        turn_watch_close(watch);
        return rc;
    }
    *ret_watch = watch;
    return BATON_OK;
}

void turn_watch_close(struct turn_watch *watch)
{
    if (watch != NULL) {
        log_batch_free(&watch->batch);
        for (size_t i = 0; i < watch->count; i++) {
            log_reader_close(watch->at[i].reader);
        }
        free(watch->at);
        free(watch);
    }
}

/* The next record of the turn in the batch that was read; false: none left. */
static bool from_batch(struct turn_watch *watch, struct turn_record *ret_record, baton_code *ret_rc,
                       struct baton_error *err)
{
    while (watch->pos < watch->batch.count) {
        const struct log_record *record = &watch->batch.records[watch->pos++];
        if (record->value == NULL || record->key_len != 32 ||
            memcmp(record->key, watch->id.s, 32) != 0) {
            continue;
        }
        turn_record_init(ret_record);
        *ret_rc = turn_record_parse(record->value, record->value_len, ret_record, err);
        if (*ret_rc != BATON_OK) {
            turn_record_done(ret_record);
        }
        return true;
    }
    return false;
}

baton_code turn_watch_next(struct turn_watch *watch, int64_t timeout_ms,
                           struct turn_record *ret_record, const char **ret_service,
                           struct baton_error *err)
{
    int64_t until = mono_now().v + timeout_ms;
    baton_code rc = BATON_OK;
    *ret_service = NULL;
    for (;;) {
        if (from_batch(watch, ret_record, &rc, err)) {
            *ret_service = rc == BATON_OK ? watch->batch_service : NULL;
            return rc;
        }
        int64_t rest = until - mono_now().v;
        if (watch->count == 0 || rest <= 0) {
            return BATON_OK;
        }
        struct turn_watch_at *at = &watch->at[watch->next++ % watch->count];
        int64_t slice = watch->count == 1 ? rest : WATCH_SLICE_MS / (int64_t)watch->count + 1;
        watch->pos = 0;
        watch->batch_service = at->service;
        rc = log_reader_next(at->reader, 64, slice < rest ? slice : rest, &watch->batch, err);
        if (rc != BATON_OK) {
            watch->batch.count = 0;
            return rc;
        }
    }
}
