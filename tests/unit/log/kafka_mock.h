/*
 * librdkafka's mock cluster with the topics of one group, and a member of it. It honours no
 * transaction (KAFKA.md section 1): it is there to answer with errors.
 */
#ifndef BATON_TESTS_UNIT_LOG_KAFKA_MOCK_H
#define BATON_TESTS_UNIT_LOG_KAFKA_MOCK_H

#include "common/base/config.h"
#include "common/log/kafka/state.h"
#include "common/log/log.h"

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum mock_request {
    MOCK_produce = 0,
    MOCK_list_offsets = 2,
    MOCK_offset_fetch = 9,
    MOCK_init_producer_id = 22,
    MOCK_add_partitions = 24,
    MOCK_add_offsets = 25,
    MOCK_end_txn = 26,
    MOCK_txn_offset_commit = 28,
};

struct mock {
    rd_kafka_t *rk;
    rd_kafka_mock_cluster_t *cluster;
    struct log *log;
    struct log_member *member;
    int64_t generation;
};

static const char *const mock_outputs[] = {"t.turns.a", "t.outcomes", "t.handoff.b"};

static inline void mock_check(baton_code rc, const struct baton_error *err)
{
    if (rc != BATON_OK) {
        fail_msg("%s: %s", baton_code_word(rc), err->text);
    }
}

/* The mock answers no question for settings: until when it is not asked for the size of a topic. */
static inline void mock_silent(struct mock *mock, int64_t until_ms)
{
    atomic_store(&((struct kafka_log *)mock->log)->silent_until, until_ms);
}

static inline void mock_start(struct mock *mock)
{
    char text[256];
    static const char *const topics[] = {"t.handoff.a", "t.control.a", "t.turns.a", "t.outcomes",
                                         "t.handoff.b"};
    memset(mock, 0, sizeof(*mock));
    mock->rk = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), text, sizeof(text));
    assert_non_null(mock->rk);
    mock->cluster = rd_kafka_mock_cluster_new(mock->rk, 1);
    assert_non_null(mock->cluster);
    for (size_t i = 0; i < sizeof(topics) / sizeof(topics[0]); i++) {
        assert_int_equal(rd_kafka_mock_topic_create(mock->cluster, topics[i], 2, 1), 0);
    }
    struct baton_error err = {0};
    struct config config = {.log = LOG_KIND_kafka, .partitions = 2};
    char *brokers = strdup(rd_kafka_mock_cluster_bootstraps(mock->cluster));
    config.kafka_brokers = brokers;
    mock_check(log_open(&config, &mock->log, &err), &err);
    mock_silent(mock, INT64_MAX); /* as after the first question, which takes three seconds */
    free(brokers);
}

/* A member of a group of its own: the mock is slow to let a second one into a group. */
static inline void mock_join(struct mock *mock, const char *group)
{
    struct baton_error err = {0};
    struct log_member_spec spec = {.group = group,
                                   .worker = "w1",
                                   .boot = boot_id_new(),
                                   .inputs = {"t.handoff.a", "t.control.a"},
                                   .outputs = mock_outputs,
                                   .n_outputs = 3,
                                   .session_ms = 6000,
                                   .heartbeat_ms = 200};
    mock_check(log_member_open(mock->log, &spec, &mock->member, &err), &err);
}

/* Polls until an event of that kind comes, at most 20 s. */
static inline struct log_event mock_await(struct mock *mock, enum log_event_kind kind)
{
    const int64_t end = mono_ns() + 20000000000;
    while (mono_ns() < end) {
        struct baton_error err = {0};
        struct log_event event;
        mock_check(log_member_poll(mock->member, &event, &err), &err);
        if (event.kind == kind) {
            return event;
        }
        struct pollfd fd = {.fd = log_member_fd(mock->member), .events = POLLIN};
        (void)poll(&fd, 1, event.kind == LOG_EVENT_none ? 100 : 0);
    }
    fail_msg("event %d did not come", (int)kind);
    return (struct log_event){.kind = kind};
}

static inline void mock_part(struct mock *mock)
{
    log_member_close(mock->member, false, 5000);
    mock->member = NULL;
}

static inline void mock_end(struct mock *mock)
{
    if (mock->member != NULL) {
        mock_part(mock);
    }
    log_close(mock->log);
    rd_kafka_mock_cluster_destroy(mock->cluster);
    rd_kafka_destroy(mock->rk);
}

#endif
