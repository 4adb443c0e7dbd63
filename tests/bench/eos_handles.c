/*
 * Client handles and topics of the bare loop. In: eos_loop.c
 */
#include "eos_loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

_Noreturn void die(const char *what, const char *why)
{
    fprintf(stderr, "eos_loop: %s: %s\n", what, why);
    exit(1);
}

void must(rd_kafka_error_t *error, const char *what)
{
    if (error != NULL) {
        die(what, rd_kafka_error_string(error));
    }
}

int64_t now_ns(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

/* ---- handles ---- */

static void delivered(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
    struct loop *loop = opaque;
    (void)rk;
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        atomic_store(&loop->failed, message->err);
    }
}

static void rebalanced(rd_kafka_t *rk, rd_kafka_resp_err_t what,
                       rd_kafka_topic_partition_list_t *partitions, void *opaque)
{
    struct loop *loop = opaque;
    if (what == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        rd_kafka_assign(rk, partitions);
        loop->metadata = rd_kafka_consumer_group_metadata(rk);
    } else {
        rd_kafka_assign(rk, NULL);
        rd_kafka_consumer_group_metadata_destroy(loop->metadata);
        loop->metadata = NULL;
    }
}

static rd_kafka_t *handle(struct loop *loop, rd_kafka_type_t type, const char *const (*pairs)[2])
{
    static const char *const common[][2] = {{"socket.nagle.disable", "true"},
                                            {"socket.keepalive.enable", "true"},
                                            {"allow.auto.create.topics", "false"},
                                            {"client.id", "eos-loop"},
                                            {NULL, NULL}};
    char text[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", loop->options->brokers, NULL, 0);
    for (int i = 0; common[i][0] != NULL; i++) {
        rd_kafka_conf_set(conf, common[i][0], common[i][1], NULL, 0);
    }
    for (; (*pairs)[0] != NULL; pairs++) {
        if (rd_kafka_conf_set(conf, (*pairs)[0], (*pairs)[1], text, sizeof(text)) !=
            RD_KAFKA_CONF_OK) {
            die((*pairs)[0], text);
        }
    }
    rd_kafka_conf_set_opaque(conf, loop);
    if (type == RD_KAFKA_PRODUCER) {
        rd_kafka_conf_set_dr_msg_cb(conf, delivered);
    } else {
        rd_kafka_conf_set_rebalance_cb(conf, rebalanced);
    }
    rd_kafka_t *rk = rd_kafka_new(type, conf, text, sizeof(text));
    if (rk == NULL) {
        die("no handle", text);
    }
    return rk;
}

void open_publisher(struct loop *loop)
{
    static const char *const pairs[][2] = {{"enable.idempotence", "true"},
                                           {"linger.ms", "0"},
                                           {"compression.codec", "zstd"},
                                           {"partitioner", "murmur2"},
                                           {"retry.backoff.ms", "10"},
                                           {"max.in.flight", "1"},
                                           {NULL, NULL}};
    loop->publisher = handle(loop, RD_KAFKA_PRODUCER, pairs);
}

void open_loop(struct loop *loop)
{
    const char *const consumer[][2] = {{"group.id", loop->group},
                                       {"group.instance.id", "loop"},
                                       {"session.timeout.ms", "6000"},
                                       {"heartbeat.interval.ms", "1000"},
                                       {"enable.auto.commit", "false"},
                                       {"enable.auto.offset.store", "false"},
                                       {"auto.offset.reset", "earliest"},
                                       {"isolation.level", "read_committed"},
                                       {"partition.assignment.strategy", "range"},
                                       {"queued.max.messages.kbytes", "65536"},
                                       {"fetch.wait.max.ms", "500"},
                                       {NULL, NULL}};
    const char *const producer[][2] = {{"transactional.id", loop->group},
                                       {"transaction.timeout.ms", "6000"},
                                       {"linger.ms", "0"},
                                       {"retry.backoff.ms", "10"},
                                       {"compression.codec", "zstd"},
                                       {"partitioner", "murmur2"},
                                       {"batch.size", "409600"},
                                       {NULL, NULL}};
    loop->producer = handle(loop, RD_KAFKA_PRODUCER, producer);
    for (int i = 0; i < TOPICS; i++) { /* else the first record of each waits for up to a second */
        rd_kafka_topic_destroy(rd_kafka_topic_new(loop->producer, loop->names[i], NULL));
    }
    must(rd_kafka_init_transactions(loop->producer, ADMIN_MS), "init_transactions");
    loop->consumer = handle(loop, RD_KAFKA_CONSUMER, consumer);
    rd_kafka_poll_set_consumer(loop->consumer);
    loop->queue = rd_kafka_queue_get_consumer(loop->consumer);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, loop->names[HANDOFF], RD_KAFKA_PARTITION_UA);
    rd_kafka_subscribe(loop->consumer, list);
    rd_kafka_topic_partition_list_destroy(list);
}

void close_loop(struct loop *loop)
{
    rd_kafka_consumer_close(loop->consumer);
    rd_kafka_queue_destroy(loop->queue);
    rd_kafka_destroy(loop->consumer);
    rd_kafka_destroy(loop->producer);
}

/* ---- topics ---- */

void create_topics(struct loop *loop)
{
    char text[512];
    rd_kafka_NewTopic_t *topics[TOPICS];
    rd_kafka_queue_t *queue = rd_kafka_queue_new(loop->publisher);
    for (int i = 0; i < TOPICS; i++) {
        topics[i] = rd_kafka_NewTopic_new(loop->names[i], loop->options->partitions, -1, text,
                                          sizeof(text));
        rd_kafka_NewTopic_set_config(topics[i], "message.timestamp.type", "LogAppendTime");
        rd_kafka_NewTopic_set_config(topics[i], "cleanup.policy",
                                     i == TURNS ? "compact" : "delete");
    }
    rd_kafka_CreateTopics(loop->publisher, topics, TOPICS, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, ADMIN_MS);
    if (event == NULL || rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR_NO_ERROR) {
        die("topics", event == NULL ? "no answer" : rd_kafka_event_error_string(event));
    }
    rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(queue);
    rd_kafka_NewTopic_destroy_array(topics, TOPICS);
    for (int i = 0; i < TOPICS; i++) { /* the answer comes before the broker knows them itself */
        const int64_t until = now_ns() + (int64_t)ADMIN_MS * 1000000;
        bool there = false;
        rd_kafka_topic_t *topic = rd_kafka_topic_new(loop->publisher, loop->names[i], NULL);
        while (!there && now_ns() < until) {
            const struct rd_kafka_metadata *metadata = NULL;
            if (rd_kafka_metadata(loop->publisher, 0, topic, &metadata, ADMIN_MS) ==
                RD_KAFKA_RESP_ERR_NO_ERROR) {
                there = metadata->topics[0].partition_cnt == loop->options->partitions;
                rd_kafka_metadata_destroy(metadata);
            }
        }
        rd_kafka_topic_destroy(topic);
        if (!there) {
            die(loop->names[i], "was made and is not there");
        }
    }
}

void delete_topics(struct loop *loop)
{
    rd_kafka_DeleteTopic_t *topics[TOPICS];
    rd_kafka_queue_t *queue = rd_kafka_queue_new(loop->publisher);
    for (int i = 0; i < TOPICS; i++) {
        topics[i] = rd_kafka_DeleteTopic_new(loop->names[i]);
    }
    rd_kafka_DeleteTopics(loop->publisher, topics, TOPICS, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, ADMIN_MS);
    if (event != NULL) {
        rd_kafka_event_destroy(event);
    }
    rd_kafka_queue_destroy(queue);
    rd_kafka_DeleteTopic_destroy_array(topics, TOPICS);
}
