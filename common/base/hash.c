/* A hash of bytes. See hash.h. Called by topics/scan.c, worker/live.c, worker/blocked.c. */
#include "common/base/hash.h"

uint64_t hash_bytes(uint64_t from, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < len; i++) {
        from = (from ^ at[i]) * 1099511628211U;
    }
    return from;
}
