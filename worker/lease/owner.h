/*
 * The owner's side of a lease: attempts of its turns that other workers hold (owner.c, report.c).
 *
 * Included by worker/worker.c, worker/round.c, worker/restore.c and worker/operate.c. Engine's thread.
 */
#ifndef BATON_WORKER_LEASE_OWNER_H
#define BATON_WORKER_LEASE_OWNER_H

#include "baton/code.h"
#include "common/base/clock.h"
#include "common/base/id.h"

#include <stdbool.h>
#include <stdint.h>

struct control;
struct engine_event;
struct turn_record;
struct worker;

/* An attempt that somebody else runs under a lease, seen by the owner of its partition. */
struct foreign {
    struct turn_id turn;
    int attempt;
    struct boot_id boot;
    int32_t partition;
    struct mono_ms deadline;
    int64_t seq;     /* of the newest renewal */
    int64_t read_to; /* control topic's end when the deadline passed; -1: it has not */
    bool died;       /* its worker, as the log knows: a renewal that is read now was sent before */
};
/* Starts the lease timer of such an attempt from now, unless it runs already. */
void foreign_watch(struct worker *w, int32_t partition, const struct turn_record *record);
void foreign_renewed(struct worker *w, const struct control *control);
/* Its holder says how it has ended; takes the record. False, and nothing is decided: what follows from
 * the end cannot be written now (report.c). */
bool foreign_reported(struct worker *w, const struct engine_event *event,
                      struct turn_record *take_record);
void foreign_remove(struct worker *w, const char *turn_id);
void foreign_drop_all(struct worker *w);
/* Declares lost what was not renewed in time, and the control topic is read to its end (rule 25).
 */
baton_code foreign_expire(struct worker *w, struct baton_error *err);
bool foreign_next(const struct worker *w, struct mono_ms *ret_at);

#endif
