/*
 * What the files of the holder's side share; nobody else includes it. All of it is under the lock,
 * but for what is marked as the thread's own.
 */
#ifndef BATON_WORKER_LEASE_INTERNAL_H
#define BATON_WORKER_LEASE_INTERNAL_H

#include "common/base/clock.h"
#include "common/base/diag.h"
#include "common/base/failure.h"
#include "common/base/id.h"
#include "common/log/log.h"
#include "worker/lease/lease.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine;

struct lease_item {
    struct turn_id turn;
    int attempt;
    struct boot_id boot;
    int32_t partition;
    struct mono_ms lease_from; /* start of the last answered renewal */
    int64_t lease_ms;          /* what is left of it: the lease, or the grace of a lost one */
    bool ended;                /* reports instead of renewing */
    bool silent; /* its partition has not moved: the engine does not come round, and this thread
                    renews for it */
    bool killed; /* its lease ran out */
    bool failed;
    enum failure class;
    char *result;
    char *usage;
};

struct follow {
    int32_t partition;
    struct log_reader *reader;
    int64_t from;
};

struct settled {
    struct turn_id turn;
    int attempt;
    struct boot_id boot;
};

struct leases {
    struct leases_spec spec;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_cond_t done;
    bool stop;
    bool asked;          /* a round is wanted now */
    unsigned long begun; /* rounds that have begun */
    unsigned long round; /* number of the newest one that has ended */

    struct lease_item *items;
    size_t n_items;
    size_t cap_items;
    const struct engine *engine; /* whose thread is watched, or NULL */
    struct held *running;        /* what runs in partitions that are ours */
    size_t n_running;
    bool unanswered;   /* the log did not take the newest renewals and reports */
    bool silence_told; /* the silence has lasted for so long that the partitions count as lost */
    int64_t seq;       /* of the newest renewal: it rises over items that go and come back */
    struct settled *settled;
    size_t n_settled;
    size_t cap_settled;

    /* the thread's own */
    struct log_publisher *publisher;
    struct follow follows[LOG_PARTITIONS_MAX];
    struct diag_limit limit;
};

/* lease.c: what is held. A pointer lives until the next add or remove. */
struct lease_item *lease_find(struct leases *leases, const char *turn_id);
struct lease_item *lease_add(struct leases *leases);
void lease_remove(struct leases *leases, struct lease_item *item);

/* send.c: renewals and reports, one publish; lets go of the lock meanwhile. */
void lease_send_all(struct leases *leases);
/* When this one is killed unless it is renewed: lease minus margin, monotonic; INT64_MAX: never. */
int64_t lease_kill_at(const struct leases *leases, const struct lease_item *item);
/* When the first lease must be killed unless it is renewed, monotonic; INT64_MAX: none. */
int64_t lease_first_kill(const struct leases *leases);

/* follow.c: what the turn logs of the moved partitions say; lets go of the lock meanwhile. */
void lease_follow_all(struct leases *leases);

/* silence.c: an engine that does not come round. */
void lease_watch_engine(struct leases *leases);

#endif
