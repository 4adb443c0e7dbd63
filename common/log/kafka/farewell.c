/*
 * The end of a client, bounded: destroying it can hang while brokers are away, so it
 * is done by a thread of its own, which is left behind when the time is over.
 *
 * In: every file here that has a handle
 */
#include "common/log/kafka/internal.h"

#include "common/base/clock.h"
#include "common/base/diag.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct farewell {
    pthread_mutex_t lock;
    pthread_cond_t done;
    rd_kafka_t *rk;
    bool gone;
    bool abandoned;
};

static void *destroy_thread(void *arg)
{
    struct farewell *farewell = arg;
    rd_kafka_destroy_flags(farewell->rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    pthread_mutex_lock(&farewell->lock);
    farewell->gone = true;
    const bool last = farewell->abandoned;
    pthread_cond_signal(&farewell->done);
    pthread_mutex_unlock(&farewell->lock);
    if (last) {
        free(farewell);
    }
    return NULL;
}

bool kafka_destroy_bounded(rd_kafka_t *rk, int64_t timeout_ms)
{
    struct farewell *farewell = calloc(1, sizeof(*farewell));
    pthread_condattr_t attr;
    pthread_t thread;
    struct timespec end;

    if (farewell == NULL) {
        rd_kafka_destroy_flags(rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
        return true;
    }
    farewell->rk = rk;
    pthread_mutex_init(&farewell->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&farewell->done, &attr);
    pthread_condattr_destroy(&attr);
    if (pthread_create(&thread, NULL, destroy_thread, farewell) != 0) {
        rd_kafka_destroy_flags(rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
        free(farewell);
        return true;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    const int64_t ns = end.tv_nsec + (timeout_ms > 0 ? timeout_ms : 0) % 1000 * 1000000;
    end.tv_sec += (timeout_ms > 0 ? timeout_ms : 0) / 1000 + ns / 1000000000;
    end.tv_nsec = ns % 1000000000;
    pthread_mutex_lock(&farewell->lock);
    while (!farewell->gone && pthread_cond_timedwait(&farewell->done, &farewell->lock, &end) == 0) {
    }
    const bool gone = farewell->gone;
    farewell->abandoned = !gone;
    pthread_mutex_unlock(&farewell->lock);
    if (gone) {
        pthread_join(thread, NULL);
        free(farewell);
    } else {
        pthread_detach(thread);
        diag_line(DIAG_warn, "kafka.close_hangs", D_INT("ms", timeout_ms));
    }
    return gone;
}
