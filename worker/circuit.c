/*
 * The circuit's state machine, and what it means for the turns of this worker.
 *
 *   closed     every attempt starts. `circuit.after` failures in a row that say the provider is down,
 *              each followed by retry or park, open it
 *   open       nothing starts for `circuit.for`
 *   half_open  one turn each `circuit.probe`, one at a time, until one succeeds. A probe that fails
 *              counts in no budget, and its turn waits behind the others: handoffs that were not
 *              tried yet go first, then whoever has waited longest
 *
 * Nothing is parked while it is not closed and the provider is why.
 *
 * In: worker/begin.c, worker/claim.c, worker/round.c, worker/settle.c  Out: common/base/state.h,
 * worker/delegate.c
 */
#include "worker/circuit.h"

#include "common/base/check.h"
#include "common/base/diag.h"
#include "common/base/metrics.h"
#include "common/engine/engine.h"
#include "common/log/log.h"
#include "common/store/store.h"
#include "worker/decision.h"
#include "worker/delegate.h"
#include "worker/failure_table.h"
#include "worker/internal.h"
#include "worker/live.h"
#include "worker/restore.h"

#include <string.h>

#define BEHIND_MAX_MS 1000
#define SOONEST_MS 100

/* ---- the state machine ---- */

/* The one place where the state changes. */
static void move(struct circuit *circuit, const char *service, enum circuit_state to)
{
    BATON_PRE(circuit_state_may_move(circuit->state, to));
    diag_line(to == CIRCUIT_open ? DIAG_warn : DIAG_info, "circuit.moved",
              D_TEXT("service", service), D_TEXT("from", circuit_state_word(circuit->state)),
              D_TEXT("to", circuit_state_word(to)), D_TEXT("class", failure_word(circuit->class)),
              D_INT("failures", circuit->row));
    if (circuit->state == CIRCUIT_closed) {
        circuit->since = wall_now();
    }
    if (to == CIRCUIT_open) {
        metric_add(METRIC_circuit_opened, 1);
    }
    circuit->state = to;
    circuit->row = 0;
    circuit->probe.s[0] = '\0';
    metric_set(METRIC_circuit_open, to == CIRCUIT_closed ? 0 : 1);
}

void circuit_success(struct circuit *circuit, const char *service)
{
    circuit->heard = true;
    circuit->row = 0;
    if (circuit->state != CIRCUIT_closed) {
        move(circuit, service, CIRCUIT_closed);
    }
}

void circuit_failure(struct circuit *circuit, const struct config *config, const char *service,
                     enum failure class, struct mono_ms now)
{
    circuit->heard = true;
    switch (failure_says(class)) {
    case PROVIDER_nothing:
        return;
    case PROVIDER_up:
        circuit->row = 0; /* not in a row; but only a success says that it works again */
        return;
    case PROVIDER_down:
        break;
    }
    circuit->class = class;
    if (circuit->state == CIRCUIT_closed && ++circuit->row >= config->circuit.after) {
        move(circuit, service, CIRCUIT_open);
        circuit->next.v = now.v + config->circuit.for_ms;
    }
}

void circuit_time(struct circuit *circuit, const char *service, struct mono_ms now)
{
    if (circuit->state == CIRCUIT_open && now.v >= circuit->next.v) {
        move(circuit, service, CIRCUIT_half_open);
    }
}

void circuit_adopt(struct circuit *circuit, const char *service, enum failure class,
                   struct wall_ms since, struct mono_ms now)
{
    if (circuit->state == CIRCUIT_closed && !circuit->heard) {
        circuit->class = class;
        move(circuit, service, CIRCUIT_half_open);
        circuit->since = since;
        circuit->next = now;
    }
}

bool circuit_due(const struct circuit *circuit, struct mono_ms now)
{
    return circuit->state == CIRCUIT_closed ||
           (circuit->state == CIRCUIT_half_open && now.v >= circuit->next.v);
}

void circuit_probe(struct circuit *circuit, const struct config *config, const char *turn_id,
                   struct mono_ms now)
{
    BATON_PRE(circuit->state == CIRCUIT_half_open && circuit_due(circuit, now));
    circuit->probe = turn_id_of(turn_id);
    circuit->next.v = now.v + config->circuit.probe_ms;
    metric_add(METRIC_circuit_probes, 1);
}

/* ---- of this worker ---- */

/* When a turn that has been tried may be the probe. */
static struct mono_ms again_at(const struct worker *w)
{
    const int64_t tenth = w->config->circuit.probe_ms / 10;
    return (struct mono_ms){w->circuit.next.v + (tenth < BEHIND_MAX_MS ? tenth : BEHIND_MAX_MS)};
}

bool circuit_lets(const struct worker *w, bool first)
{
    const struct circuit *circuit = &w->circuit;
    const struct mono_ms now = mono_now();
    if (circuit->state == CIRCUIT_closed) {
        return true;
    }
    /* Decided in this round, running, or ended and not settled: that is the one at a time. */
    return circuit_due(circuit, now) && (first || now.v >= again_at(w).v) &&
           (circuit->probe.s[0] == '\0' ||
            (!decided(w, circuit->probe.s) && lives_find(&w->lives, circuit->probe.s) == NULL));
}

size_t circuit_room(const struct worker *w, size_t room, bool first)
{
    if (w->circuit.state == CIRCUIT_closed || room == 0 || delegate_any(w)) {
        return room;
    }
    return circuit_lets(w, first) ? 1 : 0;
}

bool circuit_next(const struct worker *w, struct mono_ms now, struct mono_ms *ret_at)
{
    *ret_at = w->circuit.next.v > now.v ? w->circuit.next : again_at(w);
    return w->circuit.state != CIRCUIT_closed && ret_at->v > now.v;
}

/* The store keeps when turns are due in memory only, so nothing is lost if it cannot be written now:
 * they are looked at again. */
static baton_code passable(baton_code rc)
{
    return baton_code_class(rc) == BATON_CLASS_retry ? BATON_OK : rc;
}

baton_code circuit_hold(struct worker *w, const struct store_due *due, size_t count,
                        struct baton_error *err)
{
    struct mono_ms at = again_at(w);
    const struct mono_ms soonest = {mono_now().v + SOONEST_MS};
    if (at.v < soonest.v) {
        at = soonest; /* a probe runs now, and nobody knows how long */
    }
    w->circuit.held = true;
    baton_code rc = store_begin(w->store, __func__, err);
    if (rc != BATON_OK) {
        return passable(rc);
    }
    for (size_t i = 0; rc == BATON_OK && i < count; i++) {
        rc = store_due_set(w->store, due[i].id.s, at, err);
    }
    if (rc != BATON_OK) {
        store_rollback(w->store);
        return passable(rc);
    }
    return passable(store_commit(w->store, err));
}

baton_code circuit_tick(struct worker *w, struct baton_error *err)
{
    int32_t partitions[LOG_PARTITIONS_MAX];
    const size_t n = engine_partitions(w->engine, partitions);
    baton_code rc = BATON_OK;

    circuit_time(&w->circuit, w->service->name.s, mono_now());
    circuit_tell(w, partitions, n);
    if (w->circuit.state == CIRCUIT_closed && w->circuit.held) {
        w->circuit.held = false;
        for (size_t i = 0; rc == BATON_OK && i < n; i++) {
            rc = passable(restore_dues(w, partitions[i], w->paused[partitions[i]], err));
        }
    }
    return rc;
}

bool circuit_uncounted(const struct attempt *attempt, enum failure class)
{
    return attempt->probe && failure_says(class) == PROVIDER_down;
}

void circuit_settle(struct worker *w, const struct turn_record *record,
                    const struct recorded_end *end, struct next_step *step)
{
    struct live *live = lives_find(&w->lives, record->id.s);
    const bool kept = step->kind == NEXT_retry || step->kind == NEXT_park;
    if (live != NULL && live->record.attempt == end->attempt && !live->heard && kept) {
        live->heard = true; /* once, though a dropped batch is decided again */
        circuit_failure(&w->circuit, w->config, w->service->name.s, end->class, mono_now());
    }
    if (w->circuit.state != CIRCUIT_closed && failure_says(end->class) == PROVIDER_down &&
        step->kind == NEXT_park) {
        step->kind = NEXT_retry; /* waits for nothing but the circuit */
        step->delay_ms = 0;
        step->code = BATON_OK;
    }
}
