/* A hash of bytes for tables in memory: FNV-1a. Not for anything that an attacker chooses, or that is
 * kept. Any thread. */
#ifndef BATON_BASE_HASH_H
#define BATON_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_START 14695981039346656037U

/* Goes on from what an earlier call gave, or from HASH_START. */
uint64_t hash_bytes(uint64_t from, const void *bytes, size_t len);

#endif
