/* The fixture of the conformance tests; the only file that knows a driver by name. */
#include "tests/conformance/fixture.h"

#include "common/base/config.h"

#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void fixture_ok(baton_code rc, const struct baton_error *err, const char *what, int line)
{
    if (rc != BATON_OK) {
        fail_msg("line %d: %s: %s: %s", line, what, baton_code_word(rc), err->text);
    }
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

/* Which log: a folder of the local one, or `kafka:` and the broker's address. */
#define ON_KAFKA "kafka:"

static bool on_kafka(const char *place)
{
    return strncmp(place, ON_KAFKA, strlen(ON_KAFKA)) == 0;
}

/* Names and times: the same in every process of a test. */
static struct fixture *fixture_new(const char *place, const char *prefix)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    if (fixture == NULL) {
        abort();
    }
    snprintf(fixture->place, sizeof(fixture->place), "%s", place);
    snprintf(fixture->prefix, sizeof(fixture->prefix), "%s", prefix);
    snprintf(fixture->group, sizeof(fixture->group), "%s.worker.a", prefix);
    snprintf(fixture->handoff, sizeof(fixture->handoff), "%s.handoff.a", prefix);
    snprintf(fixture->control, sizeof(fixture->control), "%s.control.a", prefix);
    snprintf(fixture->turns, sizeof(fixture->turns), "%s.turns.a", prefix);
    snprintf(fixture->outcomes, sizeof(fixture->outcomes), "%s.outcomes", prefix);
    snprintf(fixture->missing, sizeof(fixture->missing), "%s.missing", prefix);
    fixture->session_ms = on_kafka(place) ? 1500 : 800;
    fixture->heartbeat_ms = on_kafka(place) ? 300 : 100;
    fixture->wait_ms = on_kafka(place) ? 30000 : 20000; /* sanitizers on a busy machine */
    fixture->takeover_ms = fixture->wait_ms;
    fixture->record_bytes_max = 20000;
    return fixture;
}

static baton_code open_log(struct fixture *fixture, bool make, struct baton_error *err)
{
    static char plaintext[] = "plaintext";
    static char none[] = "";
    char path[sizeof(fixture->place) + 8];
    struct config config = {.log = LOG_KIND_local,
                            .partitions = PARTITIONS,
                            .local_path = path,
                            .session_ms = fixture->session_ms,
                            .heartbeat_ms = fixture->heartbeat_ms};
    snprintf(path, sizeof(path), "%s/log.db", fixture->place);
    snprintf(config.prefix.s, sizeof(config.prefix.s), "%s", fixture->prefix);
    if (on_kafka(fixture->place)) {
        config.log = LOG_KIND_kafka;
        config.local_path = NULL;
        config.kafka_brokers = fixture->place + strlen(ON_KAFKA);
        config.kafka.security = plaintext;
        config.kafka.sasl_mechanism = none;
        config.kafka.sasl_username = none;
    }
    baton_code rc = make ? log_create(&config, err) : BATON_OK;
    return rc == BATON_OK ? log_open(&config, &fixture->log, err) : rc;
}

void fixture_topic(const struct fixture *fixture, const char *name, int32_t partitions,
                   enum log_cleanup cleanup)
{
    struct log_topic topic = {.name = name,
                              .partitions = partitions,
                              .cleanup = cleanup,
                              .retention_ms = -1,
                              .tombstone_ms = 86400000,
                              .record_bytes_max = fixture->record_bytes_max};
    OK(log_topics_create(fixture->log, &topic, 1, &err));
}

int fixture_setup(void **state)
{
    const char *broker = getenv(FIXTURE_BROKER);
    char place[128] = "/tmp/baton-log-XXXXXX";
    char prefix[9 + 1] = "t";
    random_hex(prefix + 1, 8);
    if (broker != NULL) {
        snprintf(place, sizeof(place), ON_KAFKA "%s", broker);
    } else {
        assert_non_null(mkdtemp(place));
    }
    struct fixture *fixture = fixture_new(place, prefix);
    OK(open_log(fixture, true, &err));
    fixture_topic(fixture, fixture->handoff, PARTITIONS, LOG_CLEANUP_delete);
    fixture_topic(fixture, fixture->control, PARTITIONS, LOG_CLEANUP_delete);
    fixture_topic(fixture, fixture->turns, PARTITIONS, LOG_CLEANUP_compact);
    fixture_topic(fixture, fixture->outcomes, PARTITIONS, LOG_CLEANUP_delete);
    *state = fixture;
    return 0;
}

int fixture_teardown(void **state)
{
    struct fixture *fixture = *state;
    log_close(fixture->log);
    if (!on_kafka(fixture->place)) { /* the broker's topics go with the broker */
        nftw(fixture->place, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    }
    free(fixture);
    return 0;
}

struct fixture *fixture_attach(const char *place, const char *prefix)
{
    struct baton_error err = {0};
    struct fixture *fixture = fixture_new(place, prefix);
    if (open_log(fixture, false, &err) != BATON_OK) {
        fprintf(stderr, "log_open: %s\n", err.text);
        _exit(1);
    }
    return fixture;
}

struct log_member_spec fixture_spec(const struct fixture *fixture, const char *worker)
{
    static const char *outputs[3];
    outputs[0] = fixture->turns;
    outputs[1] = fixture->outcomes;
    outputs[2] = fixture->handoff;
    return (struct log_member_spec){.group = fixture->group,
                                    .worker = worker,
                                    .boot = boot_id_new(),
                                    .inputs = {fixture->handoff, fixture->control},
                                    .outputs = outputs,
                                    .n_outputs = 3,
                                    .session_ms = fixture->session_ms,
                                    .heartbeat_ms = fixture->heartbeat_ms};
}

struct log_record record_of(const char *topic, int32_t partition, const char *key,
                            const char *value)
{
    return (struct log_record){.topic = topic,
                               .partition = partition,
                               .key = key,
                               .key_len = key != NULL ? strlen(key) : 0,
                               .value = value,
                               .value_len = value != NULL ? strlen(value) : 0};
}

int64_t publish_one(const struct fixture *fixture, const char *topic, int32_t partition,
                    const char *key, const char *value)
{
    struct log_publisher *publisher = NULL;
    struct log_record record = record_of(topic, partition, key, value);
    OK(log_publisher_open(fixture->log, &publisher, &err));
    OK(log_publish(publisher, &record, 1, fixture->wait_ms, &err));
    log_publisher_close(publisher);
    return record.offset;
}

/* A commit is answered before its markers stand in the partitions, and committed reading ends before
 * what has none: tens of milliseconds on a Kafka broker that has just begun. */
void read_all(const struct fixture *fixture, const char *topic, int32_t partition, int64_t from,
              struct log_batch *ret_batch)
{
    int64_t end_ns = mono_ns() + fixture->wait_ms * 1000000;
    int64_t low = 0;
    int64_t high = 0;
    OK(log_watermarks(fixture->log, topic, partition, &low, &high, &err));
    for (;;) {
        struct log_reader *reader = NULL;
        OK(log_reader_open(fixture->log, topic, partition, from, LOG_READ_committed, &reader,
                           &err));
        OK(log_reader_next(reader, 1000000, 0, ret_batch, &err));
        assert_true(ret_batch->at_end);
        log_reader_close(reader);
        if (ret_batch->next_offset >= high) {
            return;
        }
        if (mono_ns() > end_ns) {
            fail_msg("%s, partition %d: a transaction stays open", topic, partition);
        }
        usleep(5000);
    }
}

size_t count_all(const struct fixture *fixture, const char *topic)
{
    struct log_topic about;
    struct log_batch batch = {0};
    size_t count = 0;
    OK(log_topic_describe(fixture->log, topic, &about, &err));
    for (int32_t p = 0; p < about.partitions; p++) {
        read_all(fixture, topic, p, 0, &batch);
        count += batch.count;
    }
    log_batch_free(&batch);
    return count;
}

static bool bytes_are(const void *bytes, size_t len, const char *text)
{
    return bytes != NULL && len == strlen(text) && memcmp(bytes, text, len) == 0;
}

bool value_is(const struct log_record *record, const char *text)
{
    return bytes_are(record->value, record->value_len, text);
}

bool key_is(const struct log_record *record, const char *text)
{
    return bytes_are(record->key, record->key_len, text);
}

/* Waits until the member may have something, at most a heartbeat. */
static void wait_member(const struct fixture *fixture, struct log_member *member)
{
    struct pollfd waited = {.fd = log_member_fd(member), .events = POLLIN};
    poll(&waited, 1, (int)fixture->heartbeat_ms);
}

struct log_event await_event(const struct fixture *fixture, struct log_member *member,
                             enum log_event_kind kind)
{
    int64_t end_ns = mono_ns() + fixture->wait_ms * 1000000;
    struct log_event event = {0};
    while (mono_ns() < end_ns) {
        OK(log_member_poll(member, &event, &err));
        if (event.kind == kind) {
            return event;
        }
        if (event.kind == LOG_EVENT_none) {
            wait_member(fixture, member);
        }
    }
    fail_msg("event %d did not come", (int)kind);
    return event;
}

void seek_all(struct log_member *member, const struct log_event *event, int64_t offset)
{
    for (size_t i = 0; i < event->count; i++) {
        for (int input = 0; input < LOG_INPUTS; input++) {
            OK(log_member_seek(member, input, event->partitions[i], offset, &err));
        }
    }
}

struct log_member *join(const struct fixture *fixture, const char *worker,
                        struct log_event *ret_event)
{
    struct log_member_spec spec = fixture_spec(fixture, worker);
    struct log_member *member = NULL;
    OK(log_member_open(fixture->log, &spec, &member, &err));
    *ret_event = await_event(fixture, member, LOG_EVENT_assigned);
    seek_all(member, ret_event, 0);
    return member;
}

void fetch_some(const struct fixture *fixture, struct log_member *member, int input,
                int32_t partition, size_t n, struct log_batch *batch)
{
    int64_t end_ns = mono_ns() + fixture->wait_ms * 1000000;
    struct log_event event;
    for (;;) {
        OK(log_member_poll(member, &event, &err));
        OK(log_member_fetch(member, input, partition, n, SIZE_MAX, batch, &err));
        if (batch->count >= n) {
            return;
        }
        assert_int_equal(batch->count, 0); /* tests publish before they fetch */
        if (mono_ns() > end_ns) {
            fail_msg("%zu records did not come", n);
        }
        wait_member(fixture, member);
    }
}

struct log_commit_result commit_one(const struct fixture *fixture, struct log_member *member,
                                    int64_t generation, int32_t partition, const char *key,
                                    const char *value, int64_t next)
{
    struct log_record record = record_of(fixture->turns, partition, key, value);
    struct log_offset offset = {.input = 0, .partition = partition, .next = next};
    struct log_txn txn = {.generation = generation,
                          .records = &record,
                          .n_records = 1,
                          .offsets = &offset,
                          .n_offsets = 1};
    struct log_commit_result result = {0};
    OK(log_commit(member, &txn, fixture->wait_ms, &result, &err));
    return result;
}
