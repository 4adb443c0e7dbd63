/* The catalogue: every name and setting of a topic, as the design has them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/quantity.h"
#include "topics/catalogue.h"

static const struct golden {
    enum topic_kind kind;
    const char *name;
    enum log_cleanup cleanup;
    int64_t retention_ms;
    int64_t tombstone_ms;
    size_t bytes;
} golden[] = {
    {TOPIC_handoff, "baton.handoff.codex-review", LOG_CLEANUP_delete, -1, 0, 524288},
    {TOPIC_control, "baton.control.codex-review", LOG_CLEANUP_delete, -1, 0, 524288},
    {TOPIC_turns, "baton.turns.codex-review", LOG_CLEANUP_compact, -1, 1209600000, 1048576},
    {TOPIC_dlq, "dlq.baton.handoff.codex-review", LOG_CLEANUP_delete, 2592000000, 0, 1048576},
    {TOPIC_requests, "baton.requests", LOG_CLEANUP_delete, -1, 0, 524288},
    {TOPIC_dlq_requests, "dlq.baton.requests", LOG_CLEANUP_delete, 2592000000, 0, 1048576},
    {TOPIC_outcomes, "baton.outcomes", LOG_CLEANUP_delete, 2592000000, 0, 1048576},
    {TOPIC_runs, "baton.runs", LOG_CLEANUP_compact, -1, 1209600000, 1048576},
};

static void test_golden_names_and_settings(void **state)
{
    (void)state;
    assert_int_equal(sizeof(golden) / sizeof(golden[0]), TOPIC_COUNT);
    for (size_t i = 0; i < sizeof(golden) / sizeof(golden[0]); i++) {
        const struct golden *row = &golden[i];
        const char *service = topic_kind_of_service(row->kind) ? "codex-review" : NULL;
        struct topic_name name = topic_name(row->kind, "baton", service);
        struct log_topic topic;
        assert_string_equal(name.s, row->name);
        topic_settings(row->kind, name.s, 4, &topic);
        assert_ptr_equal(topic.name, name.s);
        assert_int_equal(topic.partitions, 4);
        assert_int_equal(topic.cleanup, row->cleanup);
        assert_int_equal(topic.retention_ms, row->retention_ms);
        assert_int_equal(topic.tombstone_ms, row->tombstone_ms);
        assert_int_equal(topic.record_bytes_max, row->bytes);
        assert_true(strlen(topic_kind_text(row->kind)) > 0);
    }
    assert_string_equal(group_of_workers("baton", "lint").s, "baton.worker.lint");
    assert_string_equal(topic_name(TOPIC_dlq, "t7", "a").s, "dlq.t7.handoff.a");
    assert_string_equal(topic_name_begin(TOPIC_dlq, "t7").s, "dlq.t7.handoff.");
    assert_string_equal(group_of_workers_begin("t7").s, "t7.worker.");
    assert_string_equal(group_of_coordinators("t7").s, "t7.coordinator");
    assert_string_equal(transactional_begin("t7.worker.a").s, "t7.worker.a.");
}

/* D14: two services never share a topic's name, the longest name fits. */
static void test_d14_the_longest_name_fits(void **state)
{
    (void)state;
    char prefix[ID_MAX + 1];
    char service[SERVICE_MAX + 1];
    memset(prefix, 'p', ID_MAX);
    memset(service, 's', SERVICE_MAX);
    prefix[ID_MAX] = service[SERVICE_MAX] = '\0';
    struct topic_name name = topic_name(TOPIC_dlq, prefix, service);
    assert_int_equal(strlen(name.s), strlen("dlq..handoff.") + ID_MAX + SERVICE_MAX);
    assert_true(strlen(name.s) <= 249); /* Kafka's limit */
}

/* TOPICS.md has a row for each kind, with the name, cleanup, times, size and text of the list. */
static void test_the_document_is_the_list(void **state)
{
    (void)state;
    char path[1024];
    char page[16384];
    snprintf(path, sizeof(path), "%.*s/../../../topics/TOPICS.md",
             (int)(strrchr(__FILE__, '/') - __FILE__), __FILE__);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t len = fread(page, 1, sizeof(page) - 1, file);
    fclose(file);
    page[len] = '\0';
    for (int kind = 0; kind < TOPIC_COUNT; kind++) {
        char row[512];
        struct log_topic topic;
        const char *service = topic_kind_of_service((enum topic_kind)kind) ? "<service>" : NULL;
        struct topic_name name = topic_name((enum topic_kind)kind, "<prefix>", service);
        topic_settings((enum topic_kind)kind, name.s, 4, &topic);
        snprintf(row, sizeof(row), "| `%s` | %s | %s | %s | %zu KiB | %s |", name.s,
                 topic_kind_word((enum topic_kind)kind),
                 topic.cleanup == LOG_CLEANUP_compact ? "compact" : "delete",
                 topic.cleanup == LOG_CLEANUP_compact ? "newest of each key"
                 : topic.retention_ms < 0             ? "no limit"
                                          : quantity_duration_text(topic.retention_ms).s,
                 topic.record_bytes_max / 1024, topic_kind_text((enum topic_kind)kind));
        if (strstr(page, row) == NULL) {
            fail_msg("topics/TOPICS.md has not the row\n%s", row);
        }
    }
}

static void test_what_differs_is_said(void **state)
{
    (void)state;
    struct log_topic wanted;
    char text[320];
    topic_settings(TOPIC_turns, "baton.turns.a", 4, &wanted);
    struct log_topic found = wanted;
    assert_true(topic_check(&wanted, &found, text, sizeof(text)));
    found.partitions = 8;
    assert_false(topic_check(&wanted, &found, text, sizeof(text)));
    assert_non_null(strstr(text, "8 partitions"));
    found = wanted;
    found.cleanup = LOG_CLEANUP_delete;
    assert_false(topic_check(&wanted, &found, text, sizeof(text)));
    assert_non_null(strstr(text, "baton topics apply"));
    found = wanted;
    found.tombstone_ms--;
    assert_false(topic_check(&wanted, &found, text, sizeof(text)));
    found = wanted;
    found.record_bytes_max--;
    assert_false(topic_check(&wanted, &found, text, sizeof(text)));
    found.record_bytes_max += 2; /* more is no harm */
    assert_true(topic_check(&wanted, &found, text, sizeof(text)));
    topic_settings(TOPIC_handoff, "baton.handoff.a", 4, &wanted);
    found = wanted;
    found.retention_ms = 604800000; /* a handoff that nobody took would vanish after a week */
    assert_false(topic_check(&wanted, &found, text, sizeof(text)));
    assert_string_equal(text, "topic baton.handoff.a: retention is 7d, not no limit; "
                              "`baton topics apply` mends it");
    /* What only the driver knows counts as well. */
    found = wanted;
    snprintf(found.differs, sizeof(found.differs),
             "message.timestamp.type is CreateTime, not LogAppendTime");
    assert_false(topic_check(&wanted, &found, text, sizeof(text)));
    assert_non_null(strstr(text, "message.timestamp.type is CreateTime"));
    found = wanted;
    found.copies = 1; /* nothing is lost by it, and nothing mends it */
    wanted.copies = 3;
    assert_true(topic_check(&wanted, &found, text, sizeof(text)));
}

static void test_all_that_changes_is_told_from_and_to(void **state)
{
    (void)state;
    struct log_topic wanted;
    struct topic_change changes[TOPIC_CHANGES_MAX];
    topic_settings(TOPIC_turns, "baton.turns.a", 4, &wanted);
    struct log_topic found = wanted;
    assert_int_equal(topic_changes(&wanted, &found, changes), 0);
    found.cleanup = LOG_CLEANUP_delete;
    found.tombstone_ms = 86400000;
    found.record_bytes_max = 1000;
    assert_int_equal(topic_changes(&wanted, &found, changes), 3);
    assert_string_equal(changes[0].setting, "cleanup");
    assert_string_equal(changes[0].from, "delete");
    assert_string_equal(changes[0].to, "compact");
    assert_string_equal(changes[1].setting, "tombstones");
    assert_string_equal(changes[1].from, "1d");
    assert_string_equal(changes[1].to, "14d");
    assert_string_equal(changes[2].setting, "record bytes");
    assert_string_equal(changes[2].from, "1000");
    assert_string_equal(changes[2].to, "1048576");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_names_and_settings),
        cmocka_unit_test(test_d14_the_longest_name_fits),
        cmocka_unit_test(test_the_document_is_the_list),
        cmocka_unit_test(test_what_differs_is_said),
        cmocka_unit_test(test_all_that_changes_is_told_from_and_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
