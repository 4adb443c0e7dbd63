/* Records: publishing, partitions, reading, bytes kept, watermarks, trimming, compaction. */
#include "tests/conformance/actor.h"
#include "tests/conformance/suite.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void test_offsets_rise(void **state)
{
    struct fixture *f = *state;
    struct log_publisher *publisher = NULL;
    struct log_record records[3];
    struct log_batch batch = {0};
    struct wall_ms before = wall_now();

    for (int i = 0; i < 3; i++) {
        records[i] = record_of(f->outcomes, 1, "k", i == 0 ? "a" : i == 1 ? "b" : "c");
    }
    OK(log_publisher_open(f->log, &publisher, &err));
    OK(log_publish(publisher, records, 3, f->wait_ms, &err));
    log_publisher_close(publisher);
    assert_true(records[0].offset >= 0);
    assert_true(records[0].offset < records[1].offset && records[1].offset < records[2].offset);
    assert_int_equal(records[2].partition, 1);

    read_all(f, f->outcomes, 1, 0, &batch);
    assert_int_equal(batch.count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(batch.records[i].offset, records[i].offset);
        assert_string_equal(batch.records[i].topic, f->outcomes);
        assert_int_equal(batch.records[i].partition, 1);
        assert_true(batch.records[i].at.v >= before.v - 1 &&
                    batch.records[i].at.v <= wall_now().v + 1);
    }
    assert_true(value_is(&batch.records[0], "a") && value_is(&batch.records[2], "c"));
    assert_true(batch.next_offset > records[2].offset);
    read_all(f, f->outcomes, 1, records[1].offset, &batch);
    assert_int_equal(batch.count, 2);
    read_all(f, f->outcomes, 0, 0, &batch);
    assert_int_equal(batch.count, 0);
    log_batch_free(&batch);
}

static void test_partition_by_key(void **state)
{
    struct fixture *f = *state;
    struct log_publisher *publisher = NULL;
    static const char key[] = "a97714f129ea975fdcb2f1a8ed9d4087";
    struct log_record record = record_of(f->outcomes, LOG_PARTITION_BY_KEY, key, "v");
    OK(log_publisher_open(f->log, &publisher, &err));
    OK(log_publish(publisher, &record, 1, f->wait_ms, &err));
    log_publisher_close(publisher);
    assert_int_equal(record.partition, 1); /* of 4: the example of the record's specification */
    assert_int_equal(record.partition, log_partition_of(key, strlen(key), PARTITIONS));
}

/* FIELD C03: null and empty are two things, for keys, values and header values. */
static void test_C03_null_and_empty(void **state)
{
    struct fixture *f = *state;
    struct log_publisher *publisher = NULL;
    struct log_batch batch = {0};
    const struct log_header headers[] = {{"null", NULL, 0},
                                         {"empty", "", 0},
                                         {"bytes", "\0\xff", 2},
                                         {"bytes", "again", 5},
                                         {"Case", "x", 1}};
    struct log_record records[] = {
        {.topic = f->outcomes, .partition = 0, .key = NULL, .value = NULL},
        {.topic = f->outcomes, .partition = 0, .key = "", .value = ""},
        {.topic = f->outcomes,
         .partition = 0,
         .key = "\0k",
         .key_len = 2,
         .value = "v\0",
         .value_len = 2,
         .headers = headers,
         .n_headers = 5}};
    OK(log_publisher_open(f->log, &publisher, &err));
    OK(log_publish(publisher, records, 3, f->wait_ms, &err));
    log_publisher_close(publisher);

    read_all(f, f->outcomes, 0, 0, &batch);
    assert_int_equal(batch.count, 3);
    assert_null(batch.records[0].key);
    assert_null(batch.records[0].value);
    assert_int_equal(batch.records[0].n_headers, 0);
    assert_non_null(batch.records[1].key);
    assert_int_equal(batch.records[1].key_len, 0);
    assert_non_null(batch.records[1].value);
    assert_int_equal(batch.records[1].value_len, 0);
    const struct log_record *full = &batch.records[2];
    assert_int_equal(full->key_len, 2);
    assert_memory_equal(full->key, "\0k", 2);
    assert_memory_equal(full->value, "v\0", 2);
    assert_int_equal(full->n_headers, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(full->headers[i].name, headers[i].name);
        assert_int_equal(full->headers[i].value_len, headers[i].value_len);
        assert_true((full->headers[i].value == NULL) == (headers[i].value == NULL));
        if (headers[i].value_len > 0) {
            assert_memory_equal(full->headers[i].value, headers[i].value, headers[i].value_len);
        }
    }
    log_batch_free(&batch);
}

static void test_too_large_and_missing(void **state)
{
    struct fixture *f = *state;
    struct log_publisher *publisher = NULL;
    struct baton_error why = {0};
    char *big = calloc(1, f->record_bytes_max + 1000);
    struct log_record records[] = {record_of(f->outcomes, 0, "k", "v"),
                                   record_of(f->outcomes, 0, "k", NULL)};
    records[1].value = big;
    records[1].value_len = f->record_bytes_max + 1000;
    OK(log_publisher_open(f->log, &publisher, &err));
    assert_int_equal(log_publish(publisher, records, 2, f->wait_ms, &why),
                     BATON_E_record_too_large);
    assert_non_null(strstr(why.text, f->outcomes));

    struct log_record lost = record_of(f->missing, 0, "k", "v");
    assert_int_equal(log_publish(publisher, &lost, 1, f->wait_ms, &why), BATON_E_topic_missing);
    assert_non_null(strstr(why.text, f->missing));
    struct log_record nowhere = record_of(f->outcomes, PARTITIONS, "k", "v");
    assert_int_equal(log_publish(publisher, &nowhere, 1, f->wait_ms, &why), BATON_E_topic_missing);

    /* What fits fits, and the publisher goes on. */
    records[1].value_len = f->record_bytes_max - 1000;
    OK(log_publish(publisher, &records[1], 1, f->wait_ms, &err));
    log_publisher_close(publisher);
    free(big);
}

static void test_reader_waits(void **state)
{
    struct fixture *f = *state;
    struct log_reader *reader = NULL;
    struct log_batch batch = {0};
    OK(log_reader_open(f->log, f->outcomes, 2, 0, LOG_READ_committed, &reader, &err));
    OK(log_reader_next(reader, 10, 0, &batch, &err));
    assert_int_equal(batch.count, 0);
    assert_true(batch.at_end);
    OK(log_reader_next(reader, 10, 20, &batch, &err)); /* waits, and gives up */
    assert_int_equal(batch.count, 0);

    struct actor actor = actor_start_counting(f, "publisher", "p", 40); /* over all partitions */
    int64_t end_ns = mono_ns() + f->wait_ms * 1000000;
    OK(log_reader_next(reader, 1, f->wait_ms, &batch, &err));
    assert_true(mono_ns() < end_ns);
    assert_int_equal(batch.count, 1);
    assert_int_equal(actor_wait_end(&actor), 0);
    actor_done(&actor);
    OK(log_reader_next(reader, 1, 0, &batch, &err));
    assert_int_equal(batch.count, 1);
    assert_false(batch.at_end);
    OK(log_reader_next(reader, 1000, 0, &batch, &err));
    assert_true(batch.count > 0 && batch.at_end);
    log_reader_close(reader);
    log_batch_free(&batch);
}

/* However many are asked for: what comes at once fits into memory, and nothing is left out. */
static void test_reader_takes_so_many_bytes(void **state)
{
    enum { COUNT = 300, BYTES = 18000 };
    struct fixture *f = *state;
    struct log_publisher *publisher = NULL;
    struct log_reader *reader = NULL;
    struct log_batch batch = {0};
    size_t seen = 0;
    char *value = malloc(BYTES + 1);
    assert_non_null(value);
    memset(value, 'x', BYTES);
    value[BYTES] = '\0';
    OK(log_publisher_open(f->log, &publisher, &err));
    for (int i = 0; i < COUNT; i++) {
        struct log_record record = record_of(f->outcomes, 0, "k", value);
        OK(log_publish(publisher, &record, 1, f->wait_ms, &err));
    }
    log_publisher_close(publisher);

    OK(log_reader_open(f->log, f->outcomes, 0, 0, LOG_READ_committed, &reader, &err));
    do {
        OK(log_reader_next(reader, 10 * COUNT, f->wait_ms, &batch, &err));
        assert_true(batch.count > 0 && batch.count <= LOG_READ_BYTES / BYTES + 1);
        seen += batch.count;
    } while (!batch.at_end && seen < COUNT);
    assert_int_equal(seen, COUNT);
    log_reader_close(reader);
    log_batch_free(&batch);
    free(value);
}

static void test_reader_is_clamped(void **state)
{
    struct fixture *f = *state;
    struct log_batch batch = {0};
    publish_one(f, f->outcomes, 0, "k", "v");
    read_all(f, f->outcomes, 0, 1000000, &batch);
    assert_int_equal(batch.count, 0);
    assert_true(batch.next_offset < 1000000);
    log_batch_free(&batch);
}

static void test_reader_of_missing_topic(void **state)
{
    struct fixture *f = *state;
    struct log_reader *reader = NULL;
    struct baton_error why = {0};
    assert_int_equal(log_reader_open(f->log, f->missing, 0, 0, LOG_READ_committed, &reader, &why),
                     BATON_E_topic_missing);
    assert_int_equal(
        log_reader_open(f->log, f->outcomes, PARTITIONS, 0, LOG_READ_committed, &reader, &why),
        BATON_E_topic_missing);
    assert_null(reader);
}

static void test_watermarks_and_trim(void **state)
{
    struct fixture *f = *state;
    struct log_batch batch = {0};
    int64_t low = -1;
    int64_t high = -1;
    int64_t offsets[4];
    OK(log_watermarks(f->log, f->outcomes, 3, &low, &high, &err));
    assert_int_equal(low, 0);
    assert_int_equal(high, 0);
    for (int i = 0; i < 4; i++) {
        offsets[i] = publish_one(f, f->outcomes, 3, "k", i < 2 ? "old" : "new");
    }
    OK(log_trim(f->log, f->outcomes, 3, offsets[2], &err));
    OK(log_trim(f->log, f->outcomes, 3, offsets[1], &err)); /* below: does nothing */
    OK(log_watermarks(f->log, f->outcomes, 3, &low, &high, &err));
    assert_int_equal(low, offsets[2]);
    assert_true(high > offsets[3]);
    read_all(f, f->outcomes, 3, 0, &batch);
    assert_int_equal(batch.count, 2);
    assert_true(value_is(&batch.records[0], "new"));

    OK(log_trim(f->log, f->outcomes, 3, high, &err));
    read_all(f, f->outcomes, 3, 0, &batch);
    assert_int_equal(batch.count, 0);
    int64_t next = publish_one(f, f->outcomes, 3, "k", "v");
    assert_true(next >= high); /* an offset is never used again */
    log_batch_free(&batch);
}

static void test_trim_is_refused_on_compacted(void **state)
{
    struct fixture *f = *state;
    publish_one(f, f->turns, 0, "k", "v");
    assert_int_equal(log_trim(f->log, f->turns, 0, 1, NULL), BATON_E_invalid_request);
    assert_int_equal(count_all(f, f->turns), 1);
}

/* Older records of a key may go at any time; the newest of each stays, in the order of offsets. */
static void test_compaction_keeps_the_newest(void **state)
{
    struct fixture *f = *state;
    struct log_batch batch = {0};
    const char *last_a = NULL;
    const char *last_b = NULL;
    publish_one(f, f->turns, 0, "a", "1");
    publish_one(f, f->turns, 0, "b", "2");
    publish_one(f, f->turns, 0, "a", "3");
    publish_one(f, f->turns, 1, "a", "other partition");
    int64_t tombstone = publish_one(f, f->turns, 0, "b", NULL);
    read_all(f, f->turns, 0, 0, &batch);
    assert_true(batch.count >= 2);
    for (size_t i = 0; i < batch.count; i++) {
        assert_true(i == 0 || batch.records[i - 1].offset < batch.records[i].offset);
        if (key_is(&batch.records[i], "a")) {
            last_a = batch.records[i].value;
            assert_true(value_is(&batch.records[i], "3") || value_is(&batch.records[i], "1"));
        } else {
            last_b = batch.records[i].value;
        }
    }
    assert_non_null(last_a);
    assert_memory_equal(last_a, "3", 1);
    assert_null(last_b);
    assert_int_equal(batch.records[batch.count - 1].offset, tombstone);
    assert_true(batch.next_offset > tombstone);
    assert_true(!log_replaces_keys(f->log) || batch.count == 2);
    log_batch_free(&batch);
}

static void test_compacted_needs_a_key(void **state)
{
    struct fixture *f = *state;
    struct log_publisher *publisher = NULL;
    struct log_record record = record_of(f->turns, 0, NULL, "v");
    OK(log_publisher_open(f->log, &publisher, &err));
    assert_int_not_equal(log_publish(publisher, &record, 1, f->wait_ms, NULL), BATON_OK);
    log_publisher_close(publisher);
    assert_int_equal(count_all(f, f->turns), 0);
}

static void test_topics(void **state)
{
    struct fixture *f = *state;
    struct log_topic about = {0};
    char **names = NULL;
    size_t count = 0;
    OK(log_topic_describe(f->log, f->turns, &about, &err));
    assert_int_equal(about.partitions, PARTITIONS);
    assert_int_equal(about.cleanup, LOG_CLEANUP_compact);
    assert_int_equal(about.record_bytes_max, f->record_bytes_max);
    assert_int_equal(log_topic_describe(f->log, f->missing, &about, NULL), BATON_E_topic_missing);

    OK(log_topics_list(f->log, f->prefix, &names, &count, &err));
    assert_int_equal(count, 4);
    for (size_t i = 1; i < count; i++) {
        assert_true(strcmp(names[i - 1], names[i]) < 0);
    }
    log_names_free(names, count);

    /* There already: left alone; mended by alter; partitions are for ever. */
    about.retention_ms = 1234567;
    about.name = f->outcomes;
    about.cleanup = LOG_CLEANUP_delete;
    OK(log_topics_create(f->log, &about, 1, &err));
    OK(log_topic_describe(f->log, f->outcomes, &about, &err));
    assert_int_equal(about.retention_ms, -1);
    about.retention_ms = 1234567;
    OK(log_topic_alter(f->log, &about, &err));
    OK(log_topic_describe(f->log, f->outcomes, &about, &err));
    assert_int_equal(about.retention_ms, 1234567);
    about.partitions = PARTITIONS + 1;
    assert_int_equal(log_topic_alter(f->log, &about, NULL), BATON_E_invalid_request);
    about.name = f->missing;
    assert_int_equal(log_topic_alter(f->log, &about, NULL), BATON_E_topic_missing);
}

/* What may be written is found out without writing. */
static void test_may_write_writes_nothing(void **state)
{
    struct fixture *f = *state;
    const char *const topics[] = {f->outcomes, f->missing, f->turns, f->handoff};
    struct baton_error errs[4];
    int64_t low = 0;
    int64_t high = 0;
    OK(log_may_write(f->log, topics, 4, errs, &err));
    assert_int_equal(errs[0].code, BATON_OK);
    assert_int_equal(errs[1].code, BATON_E_topic_missing);
    assert_int_equal(errs[2].code, BATON_OK);
    assert_int_equal(errs[3].code, BATON_OK);
    for (size_t i = 0; i < 4; i++) {
        for (int32_t p = 0; i != 1 && p < PARTITIONS; p++) {
            OK(log_watermarks(f->log, topics[i], p, &low, &high, &err));
            assert_int_equal(high, 0);
        }
    }
}

/* What may be read is found out without a group, where there are records and where there are none. */
static void test_may_read_reads_nothing(void **state)
{
    struct fixture *f = *state;
    const char *const topics[] = {f->outcomes, f->missing, f->turns, f->handoff};
    struct log_record record = {
        .topic = f->handoff, .key = "k", .key_len = 1, .value = "v", .value_len = 1};
    struct log_publisher *publisher = NULL;
    struct baton_error errs[4];
    OK(log_publisher_open(f->log, &publisher, &err));
    OK(log_publish(publisher, &record, 1, f->wait_ms, &err));
    log_publisher_close(publisher);
    for (int again = 0; again < 2; again++) {
        OK(log_may_read(f->log, topics, 4, errs, &err));
        assert_int_equal(errs[0].code, BATON_OK);
        assert_int_equal(errs[1].code, BATON_E_topic_missing);
        assert_int_equal(errs[2].code, BATON_OK);
        assert_int_equal(errs[3].code, BATON_OK);
    }
}

static void test_cluster(void **state)
{
    struct fixture *f = *state;
    struct fixture *again = fixture_attach(f->place, f->prefix);
    assert_true(strlen(log_cluster(f->log)) > 0);
    assert_string_equal(log_cluster(f->log), log_cluster(again->log));
    log_close(again->log);
    free(again);
}

/* FIELD F01: many processes write at once; none is refused, no record is lost or doubled. */
static void test_F01_eight_publishers(void **state)
{
    struct fixture *f = *state;
    enum { PUBLISHERS = 8, EACH = 1250 };
    struct actor actors[PUBLISHERS];
    struct log_batch batch = {0};
    bool *seen = calloc(PUBLISHERS * EACH, sizeof(*seen));
    size_t count = 0;
    for (int i = 0; i < PUBLISHERS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%d", i);
        actors[i] = actor_start_counting(f, "publisher", name, EACH);
    }
    for (int i = 0; i < PUBLISHERS; i++) {
        assert_int_equal(actor_wait_end(&actors[i]), 0);
        actor_done(&actors[i]);
    }
    for (int32_t p = 0; p < PARTITIONS; p++) {
        read_all(f, f->outcomes, p, 0, &batch);
        for (size_t i = 0; i < batch.count; i++) {
            char text[64] = "";
            int who = -1;
            int number = -1;
            memcpy(text, batch.records[i].value, batch.records[i].value_len);
            assert_int_equal(sscanf(text, "%d-%d", &who, &number), 2);
            assert_int_equal(log_partition_of(text, strlen(text), PARTITIONS), p);
            assert_false(seen[who * EACH + number]);
            seen[who * EACH + number] = true;
            count++;
        }
    }
    assert_int_equal(count, PUBLISHERS * EACH);
    log_batch_free(&batch);
    free(seen);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int run_records(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_offsets_rise),
        TEST(test_partition_by_key),
        TEST(test_C03_null_and_empty),
        TEST(test_too_large_and_missing),
        TEST(test_reader_waits),
        TEST(test_reader_takes_so_many_bytes),
        TEST(test_reader_is_clamped),
        TEST(test_reader_of_missing_topic),
        TEST(test_watermarks_and_trim),
        TEST(test_trim_is_refused_on_compacted),
        TEST(test_compaction_keeps_the_newest),
        TEST(test_compacted_needs_a_key),
        TEST(test_topics),
        TEST(test_may_write_writes_nothing),
        TEST(test_may_read_reads_nothing),
        TEST(test_cluster),
        TEST(test_F01_eight_publishers),
    };
    return cmocka_run_group_tests_name("records", tests, NULL, NULL);
}
