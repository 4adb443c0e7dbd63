/* A batch: memory used again, headers as bytes and back, damaged bytes refused. */
#include "common/base/buf.h"
#include "common/log/batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static void test_filled_again(void **state)
{
    struct log_batch batch = {0};
    bool damaged;
    char *big = calloc(1, 300000);
    (void)state;
    for (int round = 0; round < 3; round++) {
        assert_true(batch_begin(&batch, "topic", 3));
        for (int i = 0; i < 100; i++) {
            const void *value = i % 10 == 0 ? big : "small";
            assert_true(batch_add(&batch, i, (struct wall_ms){i}, "key", 3, value,
                                  i % 10 == 0 ? 300000 : 5, NULL, 0, &damaged));
        }
        assert_int_equal(batch.count, 100);
        assert_string_equal(batch.records[99].topic, "topic");
        assert_int_equal(batch.records[1].value_len, 5);
        assert_memory_equal(batch.records[1].value, "small", 5);
        assert_int_equal(batch.records[90].offset, 90);
    }
    free(big);
    log_batch_free(&batch);
    log_batch_free(&batch); /* an empty one may be freed */
    assert_null(batch.records);
}

static void test_headers_there_and_back(void **state)
{
    const struct log_header headers[] = {{"a", "1", 1}, {"", NULL, 0}, {"b", "", 0}};
    struct log_record measured = {.key_len = 2, .value_len = 3, .headers = headers, .n_headers = 3};
    struct log_batch batch = {0};
    struct buf buf = BUF_INIT;
    bool damaged;
    (void)state;
    headers_encode(&buf, headers, 3);
    assert_true(batch_begin(&batch, "t", 0));
    assert_true(
        batch_add(&batch, 0, (struct wall_ms){0}, NULL, 0, NULL, 0, buf.data, buf.len, &damaged));
    assert_int_equal(batch.records[0].n_headers, 3);
    assert_null(batch.records[0].headers[1].value);
    assert_non_null(batch.records[0].headers[2].value);
    assert_int_equal(record_bytes(&measured), 2 + 3 + 1 + 1 + 1);

    /* Cut anywhere: damaged, never read beyond. */
    for (size_t len = 1; len < buf.len; len++) {
        char *cut = malloc(len);
        memcpy(cut, buf.data, len);
        size_t count = batch.count;
        bool added =
            batch_add(&batch, 0, (struct wall_ms){0}, NULL, 0, NULL, 0, cut, len, &damaged);
        assert_true(added || (damaged && batch.count == count));
        free(cut);
    }
    buf_clear(&buf);
    for (int i = 0; i <= LOG_HEADERS_MAX; i++) {
        headers_encode(&buf, headers, 1);
    }
    /* More than a record may have are all there: whoever takes records in refuses them. */
    assert_true(
        batch_add(&batch, 0, (struct wall_ms){0}, NULL, 0, NULL, 0, buf.data, buf.len, &damaged));
    assert_int_equal(batch.records[batch.count - 1].n_headers, LOG_HEADERS_MAX + 1);
    assert_string_equal(batch.records[batch.count - 1].headers[LOG_HEADERS_MAX].name, "a");
    buf_done(&buf);
    log_batch_free(&batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filled_again),
        cmocka_unit_test(test_headers_there_and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
