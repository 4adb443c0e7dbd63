/*
 * A round: fold, start, decide, commit; and partitions that go (round.c).
 *
 * Included by worker.c, stop.c, restore.c and claim.c. Engine's thread.
 */
#ifndef BATON_WORKER_ROUND_H
#define BATON_WORKER_ROUND_H

#include "baton/code.h"
#include "common/store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine_event;
struct worker;

#define TELL_LEASES_MS 200

/* An end that has arrived and is not in the store yet. */
struct arrived {
    struct recorded_end end;
    bool forget; /* not an end: the fact of this token is not needed any more */
};

baton_code round_tick(struct worker *w, struct baton_error *err);
/* Folds what the log has taken and records the ends that have arrived; starts the claims if asked.
 */
baton_code round_fold(struct worker *w, bool start, struct baton_error *err);
baton_code round_commit(struct worker *w, struct baton_error *err);
void round_mail(struct worker *w, void *mail);
/* An end to be recorded as a fact in the next tick; takes what it owns. */
void round_arrived(struct worker *w, const struct recorded_end *take_end);
/* The fact of a token is forgotten in the next tick. */
void round_forget(struct worker *w, const char *turn_id, int attempt, const char *boot);
/* Drops what was decided and is not in the log. */
void round_drop(struct worker *w);
/* Tells the leases what runs here, a few times a second at most. */
void round_tell_leases(struct worker *w);
/* Hands what runs or has ended in these partitions to the leases. */
void round_hold(struct worker *w, const int32_t *partitions, size_t count, bool lost);
void round_moved(struct worker *w, const struct engine_event *event);

#endif
