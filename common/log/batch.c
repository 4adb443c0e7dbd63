/* Memory of a batch, and headers as bytes. Called by drivers that copy records (local). */
#include "common/log/batch.h"

#include "common/base/buf.h"
#include "common/log/driver.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES (32 * 1024)   /* a tick's worth of small records */
#define CHUNKS_KEPT (1024 * 1024) /* bytes that an emptied batch keeps for its next filling */
#define HEADER_NULL 0xffffffffu

struct chunk {
    struct chunk *next;
    size_t used;
    size_t size;
    _Alignas(16) char bytes[];
};

struct batch_memory {
    struct log_batch_memory base;
    struct chunk *chunks; /* the first is being filled */
    size_t n_records_max;
    char *topic;
    int32_t partition;
};

static void chunks_free(struct chunk *chunk)
{
    while (chunk != NULL) {
        struct chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
}

static void memory_free(struct log_batch_memory *base)
{
    struct batch_memory *memory = (struct batch_memory *)base;
    chunks_free(memory->chunks);
    free(memory);
}

void log_batch_free(struct log_batch *batch)
{
    if (batch->memory != NULL) {
        struct log_batch_memory *memory = batch->memory;
        memory->free(memory);
    }
    free(batch->records);
    *batch = (struct log_batch){0};
}

/* len bytes that live until the batch is filled again; never NULL but when out of memory. */
static void *memory_take(struct batch_memory *memory, size_t len)
{
    size_t need = (len + 15) & ~(size_t)15;
    struct chunk *chunk = memory->chunks;
    if (chunk == NULL || chunk->size - chunk->used < need) {
        size_t size = need > CHUNK_BYTES ? need : CHUNK_BYTES;
        if (need < len || (chunk = malloc(sizeof(*chunk) + size)) == NULL) {
            return NULL;
        }
        chunk->size = size;
        chunk->used = 0;
        chunk->next = memory->chunks;
        memory->chunks = chunk;
    }
    void *at = chunk->bytes + chunk->used;
    chunk->used += need;
    return at;
}

/* Empties the chunks; only the biggest stays, if it is not too big. */
static void memory_reset(struct batch_memory *memory)
{
    struct chunk *kept = NULL;
    struct chunk *chunk = memory->chunks;
    while (chunk != NULL) {
        struct chunk *next = chunk->next;
        if (chunk->size <= CHUNKS_KEPT && (kept == NULL || chunk->size > kept->size)) {
            free(kept);
            kept = chunk;
        } else {
            free(chunk);
        }
        chunk = next;
    }
    if (kept != NULL) {
        kept->used = 0;
        kept->next = NULL;
    }
    memory->chunks = kept;
}

bool batch_begin(struct log_batch *batch, const char *topic, int32_t partition)
{
    struct batch_memory *memory = batch->memory;
    if (memory != NULL && memory->base.free != memory_free) {
        log_batch_free(batch); /* filled by another driver before */
        memory = NULL;
    }
    if (memory == NULL) {
        memory = calloc(1, sizeof(*memory));
        if (memory == NULL) {
            return false;
        }
        memory->base.free = memory_free;
        batch->memory = memory;
    }
    memory_reset(memory);
    batch->noted = 0;
    batch->count = 0;
    batch->next_offset = 0;
    batch->at_end = false;
    size_t len = strlen(topic) + 1;
    memory->partition = partition;
    memory->topic = memory_take(memory, len);
    if (memory->topic == NULL) {
        return false;
    }
    memcpy(memory->topic, topic, len);
    return true;
}

static bool copy(struct batch_memory *memory, const void *bytes, size_t len, const void **ret_copy)
{
    *ret_copy = NULL;
    if (bytes == NULL) {
        return true;
    }
    void *to = memory_take(memory, len > 0 ? len : 1);
    if (to == NULL) {
        return false;
    }
    if (len > 0) {
        memcpy(to, bytes, len);
    }
    *ret_copy = to;
    return true;
}

/* Reads one header; false: not well formed. The name is not yet NUL-terminated. */
static bool header_next(const uint8_t **at, const uint8_t *end, const char **ret_name,
                        size_t *ret_name_len, struct log_header *ret_header)
{
    if (end - *at < 2) {
        return false;
    }
    size_t name_len = (size_t)((*at)[0] << 8 | (*at)[1]);
    *at += 2;
    if ((size_t)(end - *at) < name_len + 4) {
        return false;
    }
    *ret_name = (const char *)*at;
    *ret_name_len = name_len;
    *at += name_len;
    uint32_t value_len = (uint32_t)(*at)[0] << 24 | (uint32_t)(*at)[1] << 16 |
                         (uint32_t)(*at)[2] << 8 | (uint32_t)(*at)[3];
    *at += 4;
    if (value_len == HEADER_NULL) {
        ret_header->value = NULL;
        ret_header->value_len = 0;
        return true;
    }
    if ((size_t)(end - *at) < value_len) {
        return false;
    }
    ret_header->value = *at;
    ret_header->value_len = value_len;
    *at += value_len;
    return true;
}

/* How many there are; false: not well formed. */
static bool headers_count(const uint8_t *bytes, size_t len, size_t *ret_count)
{
    const uint8_t *at = bytes;
    *ret_count = 0;
    while (at < bytes + len) {
        struct log_header header;
        const char *name;
        size_t name_len;
        if (!header_next(&at, bytes + len, &name, &name_len, &header)) {
            return false;
        }
        (*ret_count)++;
    }
    return true;
}

/* All of them, also more than a record should have: who reads judges. */
static bool headers_decode(struct batch_memory *memory, const uint8_t *bytes, size_t len,
                           struct log_record *record, bool *ret_damaged)
{
    const uint8_t *at = bytes;
    size_t count;
    if (!headers_count(bytes, len, &count)) {
        *ret_damaged = true;
        return false;
    }
    struct log_header *headers = memory_take(memory, (count + 1) * sizeof(*headers));
    if (headers == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const char *name = "";
        size_t name_len = 0;
        (void)header_next(&at, bytes + len, &name, &name_len, &headers[i]);
        char *name_copy = memory_take(memory, name_len + 1);
        if (name_copy == NULL ||
            !copy(memory, headers[i].value, headers[i].value_len, &headers[i].value)) {
            return false;
        }
        memcpy(name_copy, name, name_len);
        name_copy[name_len] = '\0';
        headers[i].name = name_copy;
    }
    record->headers = headers;
    record->n_headers = count;
    return true;
}

bool batch_add(struct log_batch *batch, int64_t offset, struct wall_ms at, const void *key,
               size_t key_len, const void *value, size_t value_len, const void *headers,
               size_t headers_len, bool *ret_damaged)
{
    struct batch_memory *memory = batch->memory;
    *ret_damaged = false;
    if (batch->count == memory->n_records_max || batch->records == NULL) {
        size_t max = memory->n_records_max == 0 ? 16 : 2 * memory->n_records_max;
        struct log_record *records = realloc(batch->records, max * sizeof(*records));
        if (records == NULL) {
            return false;
        }
        batch->records = records;
        memory->n_records_max = max;
    }
    struct log_record record = {.topic = memory->topic,
                                .partition = memory->partition,
                                .offset = offset,
                                .at = at,
                                .key_len = key_len,
                                .value_len = value_len};
    if (!copy(memory, key, key_len, &record.key) ||
        !copy(memory, value, value_len, &record.value) ||
        (headers != NULL && !headers_decode(memory, headers, headers_len, &record, ret_damaged))) {
        return false;
    }
    batch->records[batch->count++] = record;
    return true;
}

static void add_number(struct buf *buf, uint32_t value, size_t bytes)
{
    for (size_t i = bytes; i > 0; i--) {
        buf_add_char(buf, (char)(value >> (8 * (i - 1))));
    }
}

void headers_encode(struct buf *buf, const struct log_header *headers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t name_len = strlen(headers[i].name);
        add_number(buf, (uint32_t)name_len, 2);
        buf_add(buf, headers[i].name, name_len);
        if (headers[i].value == NULL) {
            add_number(buf, HEADER_NULL, 4);
        } else {
            add_number(buf, (uint32_t)headers[i].value_len, 4);
            buf_add(buf, headers[i].value, headers[i].value_len);
        }
    }
}

size_t record_bytes(const struct log_record *record)
{
    size_t bytes = record->key_len + record->value_len;
    for (size_t i = 0; i < record->n_headers; i++) {
        bytes += strlen(record->headers[i].name) + record->headers[i].value_len;
    }
    return bytes;
}
