/*
 * Filling a log_batch: records and their bytes in memory that the batch keeps and uses again.
 *
 * Called by drivers that copy records. The batch belongs to one thread at a time.
 */
#ifndef BATON_COMMON_LOG_BATCH_H
#define BATON_COMMON_LOG_BATCH_H

#include "common/log/log.h"

/* Empties the batch; what it handed out before is gone. false: out of memory. */
bool batch_begin(struct log_batch *batch, const char *topic, int32_t partition);
/*
 * Appends a record with copies of its bytes; topic and partition are those of batch_begin. Headers
 * are those of headers_encode (NULL: none). false: out of memory, or headers that are not well
 * formed (*ret_damaged true).
 */
bool batch_add(struct log_batch *batch, int64_t offset, struct wall_ms at, const void *key,
               size_t key_len, const void *value, size_t value_len, const void *headers,
               size_t headers_len, bool *ret_damaged);

struct buf;
/* Appends count headers: 2 bytes length and name, 4 bytes length (0xffffffff: null) and value. */
void headers_encode(struct buf *buf, const struct log_header *headers, size_t count);
/* Bytes that a record takes of the topic's record_bytes_max: key, value, header names and values.
 */
size_t record_bytes(const struct log_record *record);

#endif
