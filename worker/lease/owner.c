/*
 * The owner's side of a lease: attempts of its turns that other workers (or the last boot) hold.
 *
 * Without a renewal an attempt has a grace, with each renewal a lease from then, and neither if the
 * log knows that its worker died. Before one is declared lost the control topic is read to its high
 * watermark as it was when the time ran out (protocol rule 25).
 *
 * In: worker/restore.c, worker/operate.c, worker/round.c  Out: worker/settle.c
 */
#include "worker/lease/owner.h"

#include "common/base/array.h"
#include "common/base/check.h"
#include "common/base/diag.h"
#include "common/engine/engine.h"
#include "common/log/log.h"
#include "common/record/turn_record.h"
#include "common/store/store.h"
#include "topics/catalogue.h"
#include "worker/decision.h"
#include "worker/internal.h"
#include "worker/settle.h"

#include <stdlib.h>
#include <string.h>

static void foreign_add(struct worker *w, int32_t partition, const struct turn_record *record)
{
    const bool died = log_member_died(w->log, record->lease_boot.s);
    foreign_remove(w, record->id.s);
    w->foreign = array_grown(w->foreign, w->n_foreign, &w->cap_foreign, sizeof(*w->foreign));
    w->foreign[w->n_foreign++] = (struct foreign){
        .turn = record->id,
        .attempt = record->attempt,
        .boot = record->lease_boot,
        .partition = partition,
        .deadline = {mono_now().v + (died ? 0 : w->config->lease_grace_ms)},
        .seq = -1,
        .read_to = -1,
        .died = died,
    };
    diag_line(DIAG_info, "lease.watched", D_TURN(record), D_TEXT("holder", record->lease_worker.s));
}

static struct foreign *find(struct worker *w, const char *turn_id)
{
    for (size_t i = 0; i < w->n_foreign; i++) {
        if (strcmp(w->foreign[i].turn.s, turn_id) == 0) {
            return &w->foreign[i];
        }
    }
    return NULL;
}

void foreign_watch(struct worker *w, int32_t partition, const struct turn_record *record)
{
    const struct foreign *foreign = find(w, record->id.s);
    if (foreign == NULL || foreign->attempt != record->attempt ||
        strcmp(foreign->boot.s, record->lease_boot.s) != 0) {
        foreign_add(w, partition, record);
    }
}

void foreign_renewed(struct worker *w, const struct control *control)
{
    struct foreign *foreign = find(w, control->turn_id.s);
    if (foreign == NULL || foreign->attempt != control->attempt ||
        strcmp(foreign->boot.s, control->boot.s) != 0 || control->seq <= foreign->seq) {
        return; /* not current, or an old one sent again */
    }
    foreign->seq = control->seq;
    if (foreign->died) {
        return; /* it was sent before */
    }
    foreign->read_to = -1;
    foreign->deadline.v = mono_now().v + w->config->lease_ms;
}

void foreign_remove(struct worker *w, const char *turn_id)
{
    struct foreign *foreign = find(w, turn_id);
    if (foreign != NULL) {
        *foreign = w->foreign[--w->n_foreign];
    }
}

void foreign_drop_all(struct worker *w)
{
    w->n_foreign = 0;
}

bool foreign_next(const struct worker *w, struct mono_ms *ret_at)
{
    bool any = false;
    for (size_t i = 0; i < w->n_foreign; i++) {
        if (!any || w->foreign[i].deadline.v < ret_at->v) {
            *ret_at = w->foreign[i].deadline;
            any = true;
        }
    }
    return any;
}

static baton_code expire(struct worker *w, struct foreign *foreign, struct baton_error *err)
{
    struct turn_record record;
    int32_t partition = 0;
    bool found = false;

    baton_code rc =
        store_turn_get(w->store, foreign->turn.s, &found, &record, &partition, NULL, err);
    if (rc != BATON_OK || !found) {
        return rc;
    }
    if (record.state != TURN_running || record.attempt != foreign->attempt ||
        strcmp(record.lease_boot.s, foreign->boot.s) != 0) {
        turn_record_done(&record);
        return BATON_OK; /* settled meanwhile; the fold removes it from the list */
    }
    (void)settle_lost(w, partition, &record, true,
                      foreign->seq < 0 ? "its worker is gone: no renewal came"
                                       : "its worker stopped renewing the lease");
    return BATON_OK;
}

baton_code foreign_expire(struct worker *w, struct baton_error *err)
{
    const struct mono_ms now = mono_now();
    for (size_t i = 0; i < w->n_foreign; i++) {
        struct foreign *foreign = &w->foreign[i];
        int64_t low = 0;
        if (foreign->deadline.v > now.v || !engine_owns(w->engine, foreign->partition) ||
            decided(w, foreign->turn.s)) {
            continue;
        }
        if (foreign->read_to < 0) {
            baton_code rc = log_watermarks(w->log, w->names[TOPIC_control].s, foreign->partition,
                                           &low, &foreign->read_to, err);
            if (rc != BATON_OK) {
                foreign->read_to = -1;
                return baton_code_class(rc) == BATON_CLASS_retry ? BATON_OK : rc;
            }
        }
        if (engine_position(w->engine, ENGINE_CONTROL_INPUT, foreign->partition) <
            foreign->read_to) {
            continue; /* a renewal may lie in what is not read yet */
        }
        baton_code rc = expire(w, foreign, err);
        if (rc != BATON_OK) {
            return rc;
        }
    }
    return BATON_OK;
}
