/* What the main thread last said of itself. Called by worker and coordinator; read by listen.c. */
#include "common/http/health.h"

#include "common/log/log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_llong expected_ms;
static _Atomic(const char *) not_ready = "it starts";

/* Held while it is asked, so that what it asks is there. */
static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;
static const struct log *asked;

void health_expect(struct mono_ms by)
{
    atomic_store_explicit(&expected_ms, by.v, memory_order_relaxed);
}

void health_ready(const char *reason)
{
    atomic_store_explicit(&not_ready, reason, memory_order_relaxed);
}

void health_log(const struct log *log)
{
    pthread_mutex_lock(&asking);
    asked = log;
    pthread_mutex_unlock(&asking);
}

static bool is_away(void)
{
    pthread_mutex_lock(&asking);
    const bool away = asked != NULL && log_away(asked);
    pthread_mutex_unlock(&asking);
    return away;
}

struct health health_look(void)
{
    const int64_t by_ms = atomic_load_explicit(&expected_ms, memory_order_relaxed);
    const int64_t late_ms = by_ms == 0 ? 0 : mono_now().v - by_ms;
    struct health health = {
        .late_ms = late_ms > 0 ? late_ms : 0,
        .reason = atomic_load_explicit(&not_ready, memory_order_relaxed),
    };
    health.alive = health.late_ms < HEALTH_LATE_MS;
    if (health.reason == NULL && is_away()) {
        health.reason = "no broker of the log answers"; /* the main thread may be waiting for it */
    }
    if (!health.alive && health.reason == NULL) {
        health.reason = "its main thread hangs";
    }
    return health;
}
