/* A local log in a folder of its own, for the unit tests of the local driver. */
#ifndef BATON_TESTS_UNIT_LOG_LOCAL_LOG_H
#define BATON_TESTS_UNIT_LOG_LOCAL_LOG_H

#include "common/base/config.h"
#include "common/log/local/internal.h"
#include "common/log/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct place {
    char dir[64];
    char path[80];
    struct config config;
    struct log *log;
};

#define OK(call)                                                                                   \
    do {                                                                                           \
        struct baton_error ok_err = {0};                                                           \
        struct baton_error *err = &ok_err;                                                         \
        baton_code ok_rc = (call);                                                                 \
        if (ok_rc != BATON_OK) {                                                                   \
            fail_msg("line %d: %s: %s: %s", __LINE__, #call, baton_code_word(ok_rc), ok_err.text); \
        }                                                                                          \
    } while (0)

static inline int place_remove_one(const char *path, const struct stat *st, int type,
                                   struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

/* An empty folder, no log yet. */
static inline int place_setup(void **state)
{
    struct place *place = calloc(1, sizeof(*place));
    assert_non_null(place);
    snprintf(place->dir, sizeof(place->dir), "/tmp/baton-unit-XXXXXX");
    assert_non_null(mkdtemp(place->dir));
    snprintf(place->path, sizeof(place->path), "%s/log.db", place->dir);
    place->config.log = LOG_KIND_local;
    place->config.local_path = place->path;
    *state = place;
    return 0;
}

static inline void place_topic(struct place *place, const char *name, enum log_cleanup cleanup,
                               int64_t retention_ms, int64_t tombstone_ms)
{
    struct log_topic topic = {.name = name,
                              .partitions = 2,
                              .cleanup = cleanup,
                              .retention_ms = retention_ms,
                              .tombstone_ms = tombstone_ms,
                              .record_bytes_max = 100000};
    OK(log_topics_create(place->log, &topic, 1, err));
}

/* The same with an open log and the topics of a service. */
static inline int log_setup(void **state)
{
    place_setup(state);
    struct place *place = *state;
    OK(log_create(&place->config, err));
    OK(log_open(&place->config, &place->log, err));
    place_topic(place, "handoff", LOG_CLEANUP_delete, -1, 0);
    place_topic(place, "control", LOG_CLEANUP_delete, -1, 0);
    place_topic(place, "turns", LOG_CLEANUP_compact, -1, 1000);
    place_topic(place, "outcomes", LOG_CLEANUP_delete, 1000, 0);
    return 0;
}

static inline int place_teardown(void **state)
{
    struct place *place = *state;
    log_close(place->log);
    nftw(place->dir, place_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(place);
    return 0;
}

static inline void place_publish(struct place *place, const char *topic, int32_t partition,
                                 const char *key, const char *value)
{
    struct log_publisher *publisher = NULL;
    struct log_record record = {.topic = topic,
                                .partition = partition,
                                .key = key,
                                .key_len = key != NULL ? strlen(key) : 0,
                                .value = value,
                                .value_len = value != NULL ? strlen(value) : 0};
    OK(log_publisher_open(place->log, &publisher, err));
    OK(log_publish(publisher, &record, 1, 5000, err));
    log_publisher_close(publisher);
}

static inline size_t place_count(struct place *place, const char *topic, int32_t partition)
{
    struct log_reader *reader = NULL;
    struct log_batch batch = {0};
    OK(log_reader_open(place->log, topic, partition, 0, LOG_READ_committed, &reader, err));
    OK(log_reader_next(reader, 100000, 0, &batch, err));
    size_t count = batch.count;
    log_reader_close(reader);
    log_batch_free(&batch);
    return count;
}

/* A member that was assigned both partitions and reads from their beginning. */
static inline struct local_member *place_member(struct place *place, const char *worker,
                                                struct log_event *ret_event)
{
    struct log_member_spec spec = {.group = "group",
                                   .worker = worker,
                                   .boot = boot_id_new(),
                                   .inputs = {"handoff", "control"},
                                   .session_ms = 600,
                                   .heartbeat_ms = 100};
    struct log_member *member = NULL;
    OK(log_member_open(place->log, &spec, &member, err));
    OK(log_member_poll(member, ret_event, err));
    assert_int_equal(ret_event->kind, LOG_EVENT_assigned);
    for (size_t i = 0; i < ret_event->count; i++) {
        for (int input = 0; input < LOG_INPUTS; input++) {
            OK(log_member_seek(member, input, ret_event->partitions[i], 0, err));
        }
    }
    return (struct local_member *)member;
}

#define PLACE_TEST(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)
#define LOG_TEST(name) cmocka_unit_test_setup_teardown(name, log_setup, place_teardown)

#endif
