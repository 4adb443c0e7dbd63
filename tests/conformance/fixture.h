/*
 * A log for one conformance test, whichever driver runs: topics under a fresh prefix, and times
 * that the driver can keep. Called by the tests of this folder, which see nothing but log.h and
 * this; only fixture.c knows a driver by name.
 */
#ifndef BATON_TESTS_CONFORMANCE_FIXTURE_H
#define BATON_TESTS_CONFORMANCE_FIXTURE_H

#include "common/log/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define PARTITIONS 4
/* Environment: host:port of a broker that the tests may fill. Not set: the local log. */
#define FIXTURE_BROKER "BATON_CONFORMANCE_BROKER"

struct fixture {
    struct log *log;
    char place[128]; /* what a driver needs to find this log again: a folder, a broker */
    char prefix[32];
    char group[64];
    char handoff[64]; /* the group's inputs */
    char control[64];
    char turns[64];    /* its state topic, compacted */
    char outcomes[64]; /* another output, delete */
    char missing[64];  /* a topic that is not there */
    /* What the driver can keep. */
    int64_t session_ms;
    int64_t heartbeat_ms;
    int64_t wait_ms;         /* longest wait for a thing that must come */
    int64_t takeover_ms;     /* longest wait for the partitions of who was killed or went silent */
    size_t record_bytes_max; /* of `outcomes` */
};

/* cmocka set-up and tear-down: *state is the fixture, its four topics are made. */
int fixture_setup(void **state);
int fixture_teardown(void **state);

/* In another process: the log of that fixture, opened there; ends the process if it cannot. */
struct fixture *fixture_attach(const char *place, const char *prefix);
void fixture_topic(const struct fixture *fixture, const char *name, int32_t partitions,
                   enum log_cleanup cleanup);

/* The specification of a member of the fixture's group. */
struct log_member_spec fixture_spec(const struct fixture *fixture, const char *worker);

/* Fails the test with the error's text unless rc is BATON_OK. */
void fixture_ok(baton_code rc, const struct baton_error *err, const char *what, int line);
#define OK(call)                                                                                   \
    do {                                                                                           \
        struct baton_error err = {0};                                                              \
        fixture_ok((call), &err, #call, __LINE__);                                                 \
    } while (0)

/* ---- short forms ---- */

struct log_record record_of(const char *topic, int32_t partition, const char *key,
                            const char *value);
/* Publishes one record and gives its offset. */
int64_t publish_one(const struct fixture *fixture, const char *topic, int32_t partition,
                    const char *key, const char *value);
/* All records of a partition, as read_committed, when no transaction is open any more of what it
 * holds at the call; fails after wait_ms. *ret_batch is the caller's. */
void read_all(const struct fixture *fixture, const char *topic, int32_t partition, int64_t from,
              struct log_batch *ret_batch);
size_t count_all(const struct fixture *fixture, const char *topic);
bool value_is(const struct log_record *record, const char *text);
bool key_is(const struct log_record *record, const char *text);

/* Polls a member of this process until an event of that kind comes; fails after wait_ms. */
struct log_event await_event(const struct fixture *fixture, struct log_member *member,
                             enum log_event_kind kind);
/* A member that was assigned something, all partitions sought to their beginning. */
struct log_member *join(const struct fixture *fixture, const char *worker,
                        struct log_event *ret_event);
void seek_all(struct log_member *member, const struct log_event *event, int64_t offset);
/* Polls and fetches until at least n records came; fails after wait_ms. */
void fetch_some(const struct fixture *fixture, struct log_member *member, int input,
                int32_t partition, size_t n, struct log_batch *batch);
/* Commits one record to the state topic and one offset of handoff, both of that partition. */
struct log_commit_result commit_one(const struct fixture *fixture, struct log_member *member,
                                    int64_t generation, int32_t partition, const char *key,
                                    const char *value, int64_t next);

#endif
