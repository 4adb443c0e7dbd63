/* Reading a compacted topic of a log that keeps older records of a key for a while. */
#include "tests/unit/producer/host.h"

#include "common/log/batch.h"
#include "common/log/driver.h"
#include "topics/scan.h"

/* A driver that has one partition of five records in memory, two of them at a time. */
static const struct {
    const char *key;
    const char *value;
} stored[] = {{"a", "1"}, {"b", "1"}, {"a", "2"}, {"c", "1"}, {"b", NULL}};
enum { STORED = sizeof(stored) / sizeof(stored[0]) };

struct fake_reader {
    struct log_reader base;
    size_t at;
};

static const struct log_driver_ops fake_ops;

static baton_code watermarks(struct log *log, const char *topic, int32_t partition,
                             int64_t *ret_low, int64_t *ret_high, struct baton_error *err)
{
    (void)log;
    (void)topic;
    (void)partition;
    (void)err;
    *ret_low = 0;
    *ret_high = STORED;
    return BATON_OK;
}

static baton_code reader_open(struct log *log, const char *topic, int32_t partition, int64_t from,
                              enum log_isolation isolation, struct log_reader **ret_reader,
                              struct baton_error *err)
{
    struct fake_reader *reader = calloc(1, sizeof(*reader));
    (void)log;
    (void)topic;
    (void)partition;
    (void)isolation;
    (void)err;
    reader->base.ops = &fake_ops;
    reader->at = (size_t)from;
    *ret_reader = &reader->base;
    return BATON_OK;
}

static void reader_close(struct log_reader *reader)
{
    free(reader);
}

static baton_code reader_next(struct log_reader *base, size_t max, int64_t timeout_ms,
                              struct log_batch *batch, struct baton_error *err)
{
    struct fake_reader *reader = (struct fake_reader *)base;
    (void)max;
    (void)timeout_ms;
    (void)err;
    assert_true(batch_begin(batch, "t", 0));
    for (int n = 0; n < 2 && reader->at < STORED; n++, reader->at++) {
        const char *value = stored[reader->at].value;
        bool damaged = false;
        assert_true(batch_add(batch, (int64_t)reader->at, (struct wall_ms){1},
                              stored[reader->at].key, 1, value, value != NULL ? 1 : 0, NULL, 0,
                              &damaged));
    }
    batch->next_offset = (int64_t)reader->at;
    batch->at_end = reader->at == STORED;
    return BATON_OK;
}

static const struct log_driver_ops fake_ops = {
    .name = "fake",
    .watermarks = watermarks,
    .reader_open = reader_open,
    .reader_close = reader_close,
    .reader_next = reader_next,
};

struct seen {
    char text[64];
    size_t stop_after;
    size_t count;
};

static bool note(void *arg, const struct log_record *record)
{
    struct seen *seen = arg;
    size_t len = strlen(seen->text);
    snprintf(seen->text + len, sizeof(seen->text) - len, "%.1s%.1s ", (const char *)record->key,
             record->value != NULL ? (const char *)record->value : "-");
    return ++seen->count != seen->stop_after;
}

static void test_newest_of_each_key_without_tombstones(void **state)
{
    (void)state;
    struct log log = {.ops = &fake_ops};
    struct seen seen = {.text = ""};
    bool stopped = true;
    assert_int_equal(scan_newest(&log, "t", 0, note, &seen, &stopped, NULL), BATON_OK);
    assert_string_equal(seen.text, "a2 c1 ");
    assert_false(stopped);
}

static void test_everything_from_an_offset(void **state)
{
    (void)state;
    struct log log = {.ops = &fake_ops};
    struct seen seen = {.text = ""};
    assert_int_equal(scan_partition(&log, "t", 0, 2, note, &seen, NULL, NULL), BATON_OK);
    assert_string_equal(seen.text, "a2 c1 b- ");
}

static void test_reading_stops_when_told(void **state)
{
    (void)state;
    struct log log = {.ops = &fake_ops};
    struct seen seen = {.text = "", .stop_after = 1};
    bool stopped = false;
    assert_int_equal(scan_partition(&log, "t", 0, 0, note, &seen, &stopped, NULL), BATON_OK);
    assert_true(stopped);
    assert_string_equal(seen.text, "a1 ");
}

/* More keys than the first table of the map holds. */
static void test_many_keys_on_a_real_log(void **state)
{
    (void)state;
    struct host host;
    struct seen seen = {.text = ""};
    struct log_publisher *publisher = NULL;
    const struct log_topic topic = {.name = "many",
                                    .partitions = 1,
                                    .cleanup = LOG_CLEANUP_compact,
                                    .retention_ms = -1,
                                    .record_bytes_max = 1000};
    host_open(&host, HOST_SERVICES);
    host_log(&host);
    assert_int_equal(log_topics_create(host.log, &topic, 1, NULL), BATON_OK);
    assert_int_equal(log_publisher_open(host.log, &publisher, NULL), BATON_OK);
    for (int round = 0; round < 2; round++) {
        static struct log_record records[3000];
        static char keys[3000][16];
        for (int i = 0; i < 3000; i++) {
            snprintf(keys[i], sizeof(keys[i]), "%d", i);
            records[i] = (struct log_record){.topic = "many",
                                             .key = keys[i],
                                             .key_len = strlen(keys[i]),
                                             .value = "v",
                                             .value_len = 1};
        }
        assert_int_equal(log_publish(publisher, records, 3000, 10000, NULL), BATON_OK);
    }
    seen.stop_after = 0;
    assert_int_equal(scan_newest(host.log, "many", 0, note, &seen, NULL, NULL), BATON_OK);
    assert_int_equal(seen.count, 3000);
    log_publisher_close(publisher);
    host_close(&host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_newest_of_each_key_without_tombstones),
        cmocka_unit_test(test_everything_from_an_offset),
        cmocka_unit_test(test_reading_stops_when_told),
        cmocka_unit_test(test_many_keys_on_a_real_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
