/*
 * An engine that does not come round (protocol rule 26): while it is silent no callback tells of a
 * loss, so what runs is renewed from here.
 *
 * In: worker/lease/lease.c  Out: common/engine/engine.h
 */
#include "worker/lease/internal.h"

#include "common/engine/engine.h"

static void end_silence(struct leases *leases)
{
    leases->silence_told = false;
    for (size_t i = leases->n_items; i > 0; i--) {
        if (leases->items[i - 1].silent) {
            lease_remove(leases, &leases->items[i - 1]);
        }
    }
}

void lease_watch_engine(struct leases *leases)
{
    const struct mono_ms now = mono_now();
    const int64_t silent_ms = leases->engine != NULL ? now.v - engine_polled(leases->engine).v : 0;

    if (silent_ms < leases->spec.interval_ms + leases->spec.interval_ms / 2) {
        end_silence(leases);
        return;
    }
    for (size_t i = 0; i < leases->n_running; i++) {
        const struct held *running = &leases->running[i];
        if (lease_find(leases, running->turn.s) == NULL) {
            struct lease_item *item = lease_add(leases);
            item->turn = running->turn;
            item->attempt = running->attempt;
            item->partition = running->partition;
            item->lease_from = now;
            item->lease_ms = leases->spec.lease_ms;
            item->silent = true;
        }
    }
    if (silent_ms >= leases->spec.session_ms - leases->spec.interval_ms && !leases->silence_told) {
        leases->silence_told = true;
        diag_line(DIAG_warn, "lease.engine_silent", D_INT("ms", silent_ms),
                  D_INT("attempts", (int64_t)leases->n_items));
        for (size_t i = 0; i < leases->n_items; i++) {
            /* Lost, as far as anybody here can know: the lease is spent. */
            if (leases->items[i].silent) {
                leases->items[i].lease_from = now;
                leases->items[i].lease_ms = leases->spec.grace_ms;
            }
        }
    }
}
