/* The partition of a key: murmur2 as Kafka's Java client has it. Called by publishers and drivers.
 */
#include "common/base/check.h"
#include "common/log/log.h"

static uint32_t murmur2(const uint8_t *bytes, size_t len)
{
    const uint32_t m = 0x5bd1e995;
    uint32_t h = 0x9747b28c ^ (uint32_t)len;
    size_t i = 0;
    for (; i + 4 <= len; i += 4) {
        uint32_t k = (uint32_t)bytes[i] | (uint32_t)bytes[i + 1] << 8 |
                     (uint32_t)bytes[i + 2] << 16 | (uint32_t)bytes[i + 3] << 24;
        k *= m;
        k ^= k >> 24;
        k *= m;
        h *= m;
        h ^= k;
    }
    if (i < len) {
        for (size_t rest = len - i; rest > 0; rest--) {
            h ^= (uint32_t)bytes[i + rest - 1] << (8 * (rest - 1));
        }
        h *= m;
    }
    h ^= h >> 13;
    h *= m;
    h ^= h >> 15;
    return h;
}

int32_t log_partition_of(const void *key, size_t key_len, int32_t n)
{
    BATON_PRE(n > 0 && (key != NULL || key_len == 0));
    return (int32_t)((murmur2(key, key_len) & 0x7fffffff) % (uint32_t)n);
}
