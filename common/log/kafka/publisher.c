/*
 * Publishing outside of transactions: an idempotent producer, every record acknowledged or failed
 * when the call returns. In: common/log/log.c. Out: topic_cache.c, which judges records first.
 *
 * A record whose time is over must not be sent later (a renewal of a lease, say): what waits is
 * purged, and the producer is not used again.
 */
#include "common/log/kafka/state.h"

#include "common/base/clock.h"
#include "common/log/batch.h"

#include <stdlib.h>
#include <string.h>

#define CLOSE_TIMEOUT_MS 2000
#define TOPIC_TIMEOUT_MS 5000
#define POLL_SLICE_MS 200
#define PURGE_TIMEOUT_MS 1000
#define BATCH_BYTES (512 * 1024) /* no batch of ours is larger: see batch.size in settings.c */

/* Of one producer; outlives its handle if that does not end. */
struct producer {
    struct kafka_client client;
    rd_kafka_t *rk;
    rd_kafka_topic_t **topics; /* opened: the client knows their partitions */
    size_t n_topics;
};

struct kafka_publisher {
    struct log_publisher base;
    struct kafka_log *log;
    struct producer *producer; /* NULL: made by the next publish */
};

struct flight {
    size_t waiting;
    size_t bytes; /* of what waits */
};

struct landing {
    struct flight *flight;
    bool sent;
    rd_kafka_resp_err_t cause;
    int64_t offset;
    int64_t at_ms;
    size_t bytes;
};

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
    struct landing *landing = message->_private;
    (void)rk;
    (void)opaque;
    /* A success without an offset is what the client infers from a later batch's success. It is wrong
     * when this producer was new to the partition, and its broker became the leader between the two:
     * then the first was refused and the second taken. */
    landing->cause = message->err == RD_KAFKA_RESP_ERR_NO_ERROR && message->offset < 0
                         ? RD_KAFKA_RESP_ERR__MSG_TIMED_OUT
                         : message->err;
    landing->offset = message->offset;
    landing->at_ms = rd_kafka_message_timestamp(message, NULL);
    landing->flight->waiting--;
    landing->flight->bytes -= landing->bytes;
}

/* ---- the producer ---- */

static void producer_discard(struct kafka_publisher *publisher)
{
    struct producer *producer = publisher->producer;
    publisher->producer = NULL;
    if (producer == NULL) {
        return;
    }
    for (size_t i = 0; i < producer->n_topics; i++) {
        rd_kafka_topic_destroy(producer->topics[i]);
    }
    free(producer->topics);
    if (producer->rk == NULL || kafka_destroy_bounded(producer->rk, CLOSE_TIMEOUT_MS)) {
        free(producer);
    }
}

static baton_code producer_make(struct kafka_publisher *publisher, struct baton_error *err)
{
    struct producer *producer = calloc(1, sizeof(*producer));
    if (producer == NULL) {
        return baton_fail(err, BATON_E_no_memory, "a publisher: out of memory");
    }
    rd_kafka_conf_t *conf =
        kafka_conf_new(publisher->log, &producer->client, KAFKA_USE_publisher, err);
    if (conf == NULL) {
        free(producer);
        return BATON_E_bad_config;
    }
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    baton_code rc = kafka_handle_new(&producer->client, conf, &producer->rk, err);
    if (rc != BATON_OK) {
        free(producer);
        return rc;
    }
    publisher->producer = producer;
    return BATON_OK;
}

baton_code kafka_publisher_open(struct log *base, struct log_publisher **ret_publisher,
                                struct baton_error *err)
{
    struct kafka_publisher *publisher = calloc(1, sizeof(*publisher));
    if (publisher == NULL) {
        return baton_fail(err, BATON_E_no_memory, "a publisher: out of memory");
    }
    publisher->base.ops = base->ops;
    publisher->log = (struct kafka_log *)base;
    baton_code rc = producer_make(publisher, err); /* connects while the caller prepares */
    if (rc != BATON_OK) {
        free(publisher);
        return rc;
    }
    *ret_publisher = &publisher->base;
    return BATON_OK;
}

void kafka_publisher_close(struct log_publisher *base)
{
    struct kafka_publisher *publisher = (struct kafka_publisher *)base;
    producer_discard(publisher);
    free(publisher);
}

/* The first record of a topic that the client does not know waits for up to a second: so the topic
 * is asked for before. Whatever comes of it, the record's own fate is what counts. */
static baton_code open_topic(struct producer *producer, const char *name, int64_t timeout_ms,
                             struct baton_error *err)
{
    const struct rd_kafka_metadata *metadata = NULL;
    for (size_t i = 0; i < producer->n_topics; i++) {
        if (strcmp(rd_kafka_topic_name(producer->topics[i]), name) == 0) {
            return BATON_OK;
        }
    }
    rd_kafka_topic_t **topics =
        realloc(producer->topics, (producer->n_topics + 1) * sizeof(*topics));
    if (topics == NULL) {
        return baton_fail(err, BATON_E_no_memory, "topic %s: out of memory", name);
    }
    producer->topics = topics;
    rd_kafka_topic_t *topic = rd_kafka_topic_new(producer->rk, name, NULL);
    if (topic == NULL) {
        return kafka_fail(err, producer->client.log, rd_kafka_last_error(), KAFKA_TRIED_write,
                          name);
    }
    producer->topics[producer->n_topics++] = topic;
    timeout_ms = timeout_ms < TOPIC_TIMEOUT_MS ? timeout_ms : TOPIC_TIMEOUT_MS;
    if (rd_kafka_metadata(producer->rk, 0, topic, &metadata,
                          (int)(timeout_ms > 1 ? timeout_ms : 1)) == RD_KAFKA_RESP_ERR_NO_ERROR) {
        rd_kafka_metadata_destroy(metadata);
    }
    return BATON_OK;
}

/* ---- publishing ---- */

static void poll_until(struct producer *producer, const struct flight *flight, size_t waiting,
                       int64_t end_ms)
{
    while (flight->waiting > waiting) {
        int64_t rest_ms = end_ms - mono_now().v;
        if (rest_ms <= 0) {
            break;
        }
        rd_kafka_poll(producer->rk, (int)(rest_ms < POLL_SLICE_MS ? rest_ms : POLL_SLICE_MS));
    }
}

/* A batch must not be larger than its topic takes; those of usual topics never are. */
static bool must_wait(struct kafka_log *log, const struct log_record *record,
                      const struct flight *flight, size_t bytes)
{
    struct kafka_topic topic;
    return flight->waiting > 0 && kafka_topic_of(log, record->topic, 1, &topic, NULL) == BATON_OK &&
           topic.record_bytes_max > 0 && topic.record_bytes_max < BATCH_BYTES &&
           flight->bytes + bytes > topic.record_bytes_max;
}

static rd_kafka_resp_err_t produce(struct producer *producer, const struct log_record *record,
                                   struct landing *landing, int64_t end_ms)
{
    rd_kafka_resp_err_t cause;
    for (;;) {
        cause = kafka_produce(producer->rk, record, landing);
        if (cause != RD_KAFKA_RESP_ERR__QUEUE_FULL || mono_now().v >= end_ms) {
            return cause;
        }
        rd_kafka_poll(producer->rk, 10);
    }
}

/* Sends in order until one is refused or time is over, and waits for what was sent. */
static void send_all(struct kafka_publisher *publisher, const struct log_record *records,
                     size_t count, struct landing *landings, struct flight *flight, int64_t end_ms)
{
    struct producer *producer = publisher->producer;
    for (size_t i = 0; i < count; i++) {
        struct landing *landing = &landings[i];
        size_t bytes = record_bytes(&records[i]) + 100;
        if (must_wait(publisher->log, &records[i], flight, bytes)) {
            poll_until(producer, flight, 0, end_ms);
            if (flight->waiting > 0) {
                break;
            }
        }
        landing->bytes = bytes;
        rd_kafka_resp_err_t cause = produce(producer, &records[i], landing, end_ms);
        if (cause != RD_KAFKA_RESP_ERR_NO_ERROR) {
            landing->cause = cause;
            break;
        }
        landing->sent = true;
        flight->waiting++;
        flight->bytes += bytes;
    }
    poll_until(producer, flight, 0, end_ms);
    rd_kafka_poll(producer->rk, 0);
    if (flight->waiting > 0) {
        rd_kafka_purge(producer->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
        poll_until(producer, flight, 0, mono_now().v + PURGE_TIMEOUT_MS);
    }
}

/* What the landings say; the first record that did not land is the reason. */
static baton_code judge(struct kafka_publisher *publisher, struct log_record *records, size_t count,
                        const struct landing *landings, struct baton_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const struct landing *landing = &landings[i];
        if (landing->cause != RD_KAFKA_RESP_ERR_NO_ERROR) {
            baton_code rc = kafka_fail_client(err, &publisher->producer->client, landing->cause,
                                              KAFKA_TRIED_write, records[i].topic);
            if (rc == BATON_E_topic_missing) {
                kafka_topic_forget(publisher->log, records[i].topic);
            }
            return rc;
        }
        records[i].offset = landing->offset;
        records[i].at = (struct wall_ms){landing->at_ms};
    }
    return BATON_OK;
}

/* After these the client keeps something that must not be met again: records that wait, or a topic
 * that it holds to be refused or gone until it asks for it again, in minutes. */
static bool spoils(baton_code rc)
{
    return rc == BATON_E_timed_out || rc == BATON_E_not_permitted || rc == BATON_E_topic_missing;
}

static baton_code publish_checked(struct kafka_publisher *publisher, struct log_record *records,
                                  size_t count, int64_t end_ms, struct baton_error *err)
{
    struct landing *landings = calloc(count, sizeof(*landings));
    struct flight flight = {0};
    if (landings == NULL) {
        return baton_fail(err, BATON_E_no_memory, "%zu records: out of memory", count);
    }
    for (size_t i = 0; i < count; i++) { /* what is never sent was not sent in time */
        landings[i] = (struct landing){.flight = &flight, .cause = RD_KAFKA_RESP_ERR__PURGE_QUEUE};
    }
    send_all(publisher, records, count, landings, &flight, end_ms);
    baton_code rc = judge(publisher, records, count, landings, err);
    if (rc != BATON_OK && flight.waiting > 0) {
        producer_discard(publisher); /* calls nothing back any more */
    }
    char text[8];
    if (publisher->producer != NULL &&
        (spoils(rc) || rd_kafka_fatal_error(publisher->producer->rk, text, sizeof(text)) !=
                           RD_KAFKA_RESP_ERR_NO_ERROR)) {
        producer_discard(publisher);
    }
    free(landings);
    return rc;
}

baton_code kafka_publish(struct log_publisher *base, struct log_record *records, size_t count,
                         int64_t timeout_ms, struct baton_error *err)
{
    struct kafka_publisher *publisher = (struct kafka_publisher *)base;
    const int64_t end_ms = mono_now().v + timeout_ms;
    baton_code rc = BATON_OK;
    if (publisher->producer == NULL) {
        rc = producer_make(publisher, err);
    }
    for (size_t i = 0; rc == BATON_OK && i < count; i++) {
        rc = kafka_record_check(publisher->log, &records[i], end_ms - mono_now().v, err);
        if (rc == BATON_OK) {
            rc = open_topic(publisher->producer, records[i].topic, end_ms - mono_now().v, err);
        }
    }
    return rc == BATON_OK ? publish_checked(publisher, records, count, end_ms, err) : rc;
}
