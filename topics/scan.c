/* Reads partitions. Called by the readers of this folder, and by producer/ for control and run records. */
#include "topics/scan.h"

#include "common/base/hash.h"

#include <stdlib.h>
#include <string.h>

#define SCAN_RECORDS 64 /* of a batch: with records of the largest size it stays below 64 MiB */
#define SCAN_WAIT_MS                                                                               \
    10000 /* a log that gives nothing for so long below its end is not to be had                   \
           */

baton_code scan_partitions(struct log *log, const char *topic, int32_t *ret_partitions,
                           struct baton_error *err)
{
    struct log_topic found;
    baton_code rc = log_topic_describe(log, topic, &found, err);
    if (rc == BATON_OK) {
        *ret_partitions = found.partitions;
    }
    return rc;
}

baton_code scan_partitions_or_none(struct log *log, const char *topic, bool none_is_fine,
                                   int32_t *ret_partitions, struct baton_error *err)
{
    struct baton_error why = {BATON_OK, ""};
    baton_code rc = scan_partitions(log, topic, ret_partitions, &why);
    if (rc == BATON_E_topic_missing && none_is_fine) {
        *ret_partitions = 0;
        return BATON_OK;
    }
    return rc == BATON_OK ? BATON_OK : baton_fail(err, rc, "%s", why.text);
}

baton_code scan_range(struct log *log, const char *topic, int32_t partition, int64_t from,
                      int64_t end, scan_fn *fn, void *arg, bool *ret_stopped,
                      struct baton_error *err)
{
    struct log_reader *reader = NULL;
    struct log_batch batch = {0};
    bool stopped = false;
    int64_t at = from;
    baton_code rc = log_reader_open(log, topic, partition, from, LOG_READ_committed, &reader, err);
    while (rc == BATON_OK && !stopped && at < end) {
        if ((rc = log_reader_next(reader, SCAN_RECORDS, SCAN_WAIT_MS, &batch, err)) != BATON_OK) {
            break;
        }
        for (size_t i = 0; i < batch.count && !stopped && batch.records[i].offset < end; i++) {
            stopped = !fn(arg, &batch.records[i]);
        }
        if (batch.next_offset <= at && batch.count == 0) {
            if (batch.at_end) {
                break; /* what is left up to the end is not committed */
            }
            rc = baton_fail(err, BATON_E_service_unavailable,
                            "topic %s, partition %d: nothing came from offset %lld for %d s", topic,
                            (int)partition, (long long)at, SCAN_WAIT_MS / 1000);
        }
        at = batch.next_offset;
    }
    log_batch_free(&batch);
    if (reader != NULL) {
        log_reader_close(reader);
    }
    if (ret_stopped != NULL) {
        *ret_stopped = stopped;
    }
    return rc;
}

baton_code scan_partition(struct log *log, const char *topic, int32_t partition, int64_t from,
                          scan_fn *fn, void *arg, bool *ret_stopped, struct baton_error *err)
{
    int64_t low = 0;
    int64_t high = 0;
    baton_code rc = log_watermarks(log, topic, partition, &low, &high, err);
    if (rc != BATON_OK) {
        return rc;
    }
    return scan_range(log, topic, partition, from < low ? low : from, high, fn, arg, ret_stopped,
                      err);
}

/* ---- the newest of each key ---- */

/* Open addressing, keyed by a 64-bit hash of the record's key; offset + 1, so that 0 is free. */
struct newest {
    uint64_t *hashes;
    int64_t *offsets;
    size_t cap;
    size_t count;
    bool no_memory;
};

struct newest_scan {
    struct newest map;
    scan_fn *fn;
    void *arg;
};

static size_t slot_of(const struct newest *map, uint64_t hash)
{
    size_t slot = (size_t)(hash ^ hash >> 32) & (map->cap - 1);
    while (map->offsets[slot] != 0 && map->hashes[slot] != hash) {
        slot = (slot + 1) & (map->cap - 1);
    }
    return slot;
}

static bool grow(struct newest *map)
{
    struct newest larger = {.cap = map->cap == 0 ? 1024 : map->cap * 2, .count = map->count};
    larger.hashes = calloc(larger.cap, sizeof(*larger.hashes));
    larger.offsets = calloc(larger.cap, sizeof(*larger.offsets));
    if (larger.hashes == NULL || larger.offsets == NULL) {
        free(larger.hashes);
        free(larger.offsets);
        map->no_memory = true;
        return false;
    }
    for (size_t i = 0; i < map->cap; i++) {
        if (map->offsets[i] != 0) {
            size_t slot = slot_of(&larger, map->hashes[i]);
            larger.hashes[slot] = map->hashes[i];
            larger.offsets[slot] = map->offsets[i];
        }
    }
    free(map->hashes);
    free(map->offsets);
    *map = larger;
    return true;
}

static bool note_newest(void *arg, const struct log_record *record)
{
    struct newest *map = &((struct newest_scan *)arg)->map;
    if (map->count * 10 >= map->cap * 7 && !grow(map)) {
        return false;
    }
    uint64_t hash = hash_bytes(HASH_START, record->key, record->key_len);
    size_t slot = slot_of(map, hash);
    map->count += map->offsets[slot] == 0 ? 1 : 0;
    map->hashes[slot] = hash;
    map->offsets[slot] = record->offset + 1;
    return true;
}

static bool give_newest(void *arg, const struct log_record *record)
{
    struct newest_scan *scan = arg;
    if (record->value == NULL) {
        return true;
    }
    if (scan->map.cap > 0) {
        size_t slot = slot_of(&scan->map, hash_bytes(HASH_START, record->key, record->key_len));
        if (scan->map.offsets[slot] != record->offset + 1) {
            return true;
        }
    }
    return scan->fn(scan->arg, record);
}

baton_code scan_newest(struct log *log, const char *topic, int32_t partition, scan_fn *fn,
                       void *arg, bool *ret_stopped, struct baton_error *err)
{
    struct newest_scan scan = {.fn = fn, .arg = arg};
    int64_t low = 0;
    int64_t high = 0;
    baton_code rc = log_watermarks(log, topic, partition, &low, &high, err);
    if (rc == BATON_OK && !log_replaces_keys(log)) {
        rc = scan_range(log, topic, partition, low, high, note_newest, &scan, NULL, err);
        if (rc == BATON_OK && scan.map.no_memory) {
            rc = baton_fail(err, BATON_E_no_memory, "no memory for the keys of topic %s", topic);
        }
    }
    if (rc == BATON_OK) {
        rc = scan_range(log, topic, partition, low, high, give_newest, &scan, ret_stopped, err);
    }
    free(scan.map.hashes);
    free(scan.map.offsets);
    return rc;
}

baton_code scan_pass_hidden(struct scan_hidden *hidden, baton_code rc,
                            const struct baton_error *why, struct baton_error *err)
{
    if (rc == BATON_OK) {
        hidden->seen++;
        return BATON_OK;
    }
    if (rc != BATON_E_not_permitted && rc != BATON_E_topic_missing) {
        return baton_fail(err, rc, "%s", why->text);
    }
    struct baton_error *kept = rc == BATON_E_topic_missing ? &hidden->missing : &hidden->first;
    if (kept->code == BATON_OK) {
        baton_fail(kept, rc, "%s", why->text);
    }
    return BATON_OK;
}

baton_code scan_hidden_end(const struct scan_hidden *hidden, bool enough, struct baton_error *err)
{
    const struct baton_error *why = hidden->first.code != BATON_OK ? &hidden->first
                                    : hidden->seen == 0            ? &hidden->missing
                                                                   : NULL;
    if (enough || why == NULL || why->code == BATON_OK) {
        return BATON_OK;
    }
    return baton_fail(err, why->code, "%s", why->text);
}
