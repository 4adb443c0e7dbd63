/* The handles that readers share. In: reader.c, member.c, open.c. */
#include "common/log/kafka/reader_pool.h"
#include "common/log/kafka/state.h"

#include "common/base/clock.h"

#include <stdlib.h>
#include <string.h>

/* Data wakes a fetch that waits; a reader that begins beside one is heard when it returns. */
#define FETCH_WAIT_MS 50
#define IDLE_MS 20000
#define IDLE_CLOSE_MS 1000

static struct reader_place **place_of(struct reader_handle *handle, const char *topic,
                                      int32_t partition)
{
    struct reader_place **at = &handle->places;
    while (*at != NULL && ((*at)->partition != partition || strcmp((*at)->topic, topic) != 0)) {
        at = &(*at)->next;
    }
    return at;
}

/* What a kind of handle has beside the settings of all readers. */
static baton_code set_kind(rd_kafka_conf_t *conf, struct reader_kind kind, struct baton_error *err)
{
    baton_code rc = BATON_OK;
    if (kind.isolation == LOG_READ_uncommitted) {
        rc = kafka_set(conf, "isolation.level", "read_uncommitted", err);
    }
    if (rc == BATON_OK && kind.waits) {
        rc = kafka_set_int(conf, "fetch.wait.max.ms", FETCH_WAIT_MS, err);
    }
    return rc;
}

static struct reader_handle *handle_new(struct kafka_log *log, struct reader_kind kind,
                                        struct baton_error *err)
{
    struct reader_handle *handle = calloc(1, sizeof(*handle));
    rd_kafka_conf_t *conf = NULL;
    if (handle == NULL) {
        baton_fail(err, BATON_E_no_memory, "a reader: out of memory");
        return NULL;
    }
    handle->kind = kind;
    conf = kafka_conf_new(log, &handle->client, KAFKA_USE_reader, err);
    if (conf != NULL && set_kind(conf, kind, err) != BATON_OK) {
        rd_kafka_conf_destroy(conf);
        conf = NULL;
    }
    if (conf == NULL || kafka_handle_new(&handle->client, conf, &handle->rk, err) != BATON_OK) {
        free(handle);
        return NULL;
    }
    return handle;
}

baton_code reader_pool_take(struct kafka_log *log, struct reader_kind kind, const char *topic,
                            int32_t partition, struct reader_handle **ret_handle,
                            struct baton_error *err)
{
    struct baton_error why = {BATON_E_no_memory, "a reader: out of memory"};
    const size_t len = strlen(topic) + 1;
    struct reader_place *place = malloc(sizeof(*place) + len);
    if (place == NULL) {
        return baton_fail(err, BATON_E_no_memory, "a reader: out of memory");
    }
    place->partition = partition;
    memcpy(place->topic, topic, len);
    pthread_mutex_lock(&log->lock);
    struct reader_handle *handle = log->pool;
    while (handle != NULL &&
           (handle->kind.isolation != kind.isolation || handle->kind.waits != kind.waits ||
            *place_of(handle, topic, partition) != NULL)) {
        handle = handle->next;
    }
    if (handle == NULL && (handle = handle_new(log, kind, &why)) != NULL) {
        handle->next = log->pool;
        log->pool = handle;
    }
    if (handle != NULL) {
        place->next = handle->places;
        handle->places = place;
    }
    pthread_mutex_unlock(&log->lock);
    if (handle == NULL) {
        free(place);
        return baton_fail(err, why.code, "%s", why.text);
    }
    *ret_handle = handle;
    return BATON_OK;
}

void reader_pool_give(struct reader_handle *handle, const char *topic, int32_t partition)
{
    struct kafka_log *log = handle->client.log;
    pthread_mutex_lock(&log->lock);
    struct reader_place **at = place_of(handle, topic, partition);
    struct reader_place *place = *at;
    if (place != NULL) {
        *at = place->next;
    }
    handle->given_at = mono_now().v;
    pthread_mutex_unlock(&log->lock);
    free(place);
}

void kafka_pool_tidy(struct kafka_log *log)
{
    pthread_mutex_lock(&log->lock);
    struct reader_handle **at = &log->pool;
    while (*at != NULL && ((*at)->places != NULL || mono_now().v - (*at)->given_at < IDLE_MS)) {
        at = &(*at)->next;
    }
    struct reader_handle *idle = *at;
    if (idle != NULL) {
        *at = idle->next;
    }
    pthread_mutex_unlock(&log->lock);
    if (idle == NULL) {
        return;
    }
    if (kafka_destroy_bounded(idle->rk, IDLE_CLOSE_MS)) {
        free(idle);
    } else {
        atomic_store(&log->left_behind, true);
    }
}

bool kafka_pool_close(struct kafka_log *log, int64_t timeout_ms)
{
    const int64_t end_ms = mono_now().v + timeout_ms;
    bool ended = !atomic_load(&log->left_behind);
    while (log->pool != NULL) {
        struct reader_handle *handle = log->pool;
        int64_t rest_ms = end_ms - mono_now().v;
        log->pool = handle->next;
        if (kafka_destroy_bounded(handle->rk, rest_ms > 100 ? rest_ms : 100)) {
            free(handle);
        } else {
            ended = false;
        }
    }
    return ended;
}
