/*
 * The holder's side of leases: attempts that run here while their partition is another worker's, or
 * the engine does not come round. It has a thread of its own, which renews, follows the turn log and
 * kills what is no longer current (protocol rules 23 to 27).
 *
 * Called by the engine's thread: worker/round.c, worker/start.c, worker/stop.c, worker/restore.c.
 */
#ifndef BATON_WORKER_LEASE_LEASE_H
#define BATON_WORKER_LEASE_LEASE_H

#include "baton/code.h"
#include "common/base/id.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine;        /* common/engine/engine.h */
struct executor_pool; /* worker/executor/executor.h */
struct log;
struct mailbox;
struct recorded_end; /* common/store/store.h */
struct signer;

struct leases;
struct leases_spec {
    struct log *log;
    const char *control; /* topic */
    const char *turns;   /* topic */
    const char *fleet;
    const char *worker;
    const struct signer *signer; /* NULL with proof: off */
    struct boot_id boot;
    int64_t lease_ms;
    int64_t grace_ms;
    int64_t session_ms;
    int64_t
        interval_ms; /* between renewals; the configuration keeps two of them within the grace */
    bool keep;       /* cut_off: keep */
    struct executor_pool *pool;
    struct mailbox *mail; /* gets the leases' own address when leases_take has something */
};
baton_code leases_new(const struct leases_spec *spec, struct leases **ret_leases,
                      struct baton_error *err);
void leases_free(struct leases *leases);
struct held {
    struct turn_id turn;
    int attempt;
    int32_t partition;
    int64_t followed_from; /* the turn log of the partition is followed from here */
};
/* From the revoke on: renews at once (waits at most a second for the first answers), then every
 * second. */
void leases_hold(struct leases *leases, const struct held *held, size_t count, bool lost);
/* Whose thread is watched from now on (NULL: nobody's): for one that has not come round for an
 * interval, the attempts that run are renewed; after a session less an interval their partitions
 * count as lost. */
void leases_watch(struct leases *leases, const struct engine *engine);
/* Renewals and reports are signed with this one from now on; none is with the one before when this
 * returns. Borrowed. */
void leases_sign(struct leases *leases, const struct signer *signer);
/* What runs here now, of partitions that are ours. */
void leases_running(struct leases *leases, const struct held *running, size_t count);
/* The attempt has ended: reports until the turn log shows another state. boot: of the end's token.
 */
void leases_report(struct leases *leases, const struct recorded_end *end);
/* The partition is ours again, or the attempt is settled. */
void leases_drop(struct leases *leases, const char *turn_id);
/* The next attempt whose token is no longer current; false if there is none. */
bool leases_take(struct leases *leases, struct turn_id *ret_turn, int *ret_attempt,
                 struct boot_id *ret_boot);
size_t leases_count(struct leases *leases);
/* The log did not take the newest renewals and reports. */
bool leases_unanswered(struct leases *leases);

#endif
