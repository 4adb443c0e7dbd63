/* The partitioner against what Kafka's Java client gives. */
#include "common/log/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

/* The vectors of the Java client's own test (UtilsTest.testMurmur2). */
static void test_murmur2_of_java(void **state)
{
    static const struct {
        const char *key;
        int32_t hash;
    } vectors[] = {
        {"21", -973932308},
        {"foobar", -790332482},
        {"a-little-bit-long-string", -985981536},
        {"a-little-bit-longer-string", -1486304829},
        {"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971},
        {"abc", 479470107},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        uint32_t positive = (uint32_t)vectors[i].hash & 0x7fffffff;
        for (int32_t n = 1; n <= 64; n++) {
            assert_int_equal(log_partition_of(vectors[i].key, strlen(vectors[i].key), n),
                             positive % (uint32_t)n);
        }
        assert_int_equal(log_partition_of(vectors[i].key, strlen(vectors[i].key), INT32_MAX),
                         positive % INT32_MAX);
    }
}

static void test_example_of_the_record(void **state)
{
    (void)state;
    assert_int_equal(log_partition_of("a97714f129ea975fdcb2f1a8ed9d4087", 32, 4), 1);
}

static void test_all_bytes_and_lengths(void **state)
{
    char bytes[9];
    (void)state;
    memset(bytes, 0xff, sizeof(bytes));
    for (size_t len = 0; len <= sizeof(bytes); len++) {
        int32_t partition = log_partition_of(bytes, len, 7);
        assert_true(partition >= 0 && partition < 7);
        assert_int_equal(partition, log_partition_of(bytes, len, 7));
    }
    assert_int_equal(log_partition_of(NULL, 0, 7), log_partition_of("", 0, 7));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_murmur2_of_java),
        cmocka_unit_test(test_example_of_the_record),
        cmocka_unit_test(test_all_bytes_and_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
