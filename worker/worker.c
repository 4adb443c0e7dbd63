/*
 * A worker's life: start, rounds, clean stop.
 * In: worker/cmd_worker.c, worker/bench/process.c, worker/worker_api.c
 * Out: worker/start.c, worker/restore.c, worker/round.c, worker/gauges.c, worker/stop.c
 */
#include "worker/worker.h"

#include "common/base/diag.h"
#include "common/base/mailbox.h"
#include "common/engine/engine.h"
#include "common/engine/verify.h"
#include "common/http/health.h"
#include "common/http/listen.h"
#include "common/log/log.h"
#include "common/record/signer.h"
#include "common/record/trust.h"
#include "common/store/store.h"
#include "common/trace/span.h"
#include "common/trace/tracer.h"
#include "worker/blocked.h"
#include "worker/circuit.h"
#include "worker/claim.h"
#include "worker/decision.h"
#include "worker/executor/executor.h"
#include "worker/gauges.h"
#include "worker/internal.h"
#include "worker/lease/lease.h"
#include "worker/lease/owner.h"
#include "worker/live.h"
#include "worker/operate.h"
#include "worker/profiles.h"
#include "worker/reload.h"
#include "worker/restore.h"
#include "worker/retention.h"
#include "worker/round.h"
#include "worker/start.h"
#include "worker/stop.h"
#include "worker/tell.h"
#include "worker/trust.h"

#include <stdlib.h>

#define IDLE_MS 60000
#define SOON_MS 10000
#define SPIN_MS 20 /* between two ticks that had nothing to do but something due */

static void done(struct worker *w)
{
    http_close(w->http);
    health_log(NULL);
    if (w->engine != NULL) {
        leases_watch(w->leases, NULL);
        engine_close(w->engine, w->leave, CLOSE_TIMEOUT_MS);
    }
    span_list_clear(&w->spans);
    tracer_close(w->tracer, TRACER_CLOSE_MS);
    leases_free(w->leases);
    executor_pool_free(w->pool);
    for (void *mail; w->mail != NULL && (mail = mailbox_take(w->mail)) != NULL;) {
        if (mail != w->leases) {
            executor_event_free(mail);
        }
    }
    mailbox_free(w->mail);
    store_close(w->store);
    log_close(w->log);
    lives_done(&w->lives);
    decisions_done(&w->batch);
    decisions_done(&w->committed);
    tell_clear(w);
    for (size_t i = 0; i < w->n_arrived; i++) {
        free(w->arrived[i].end.result);
    }
    profiles_free(w->envs, w->service != NULL ? w->service->n_profiles : 0);
    verify_free(w->signing);
    reloaded_free(w->reloaded);
    signer_free(w->signer);
    trust_free(w->trust);
    free(w->tellings);
    free(w->arrived);
    free(w->foreign);
    free(w->unstarted);
    free(w->targets);
    free(w);
}

static struct mono_ms next_time(const struct worker *w)
{
    struct mono_ms now = mono_now();
    struct mono_ms until = {now.v + IDLE_MS};
    struct mono_ms lease;
    struct mono_ms circuit;

    if (w->blocked) {
        return w->store_wait;
    }
    if (w->next_due.v < until.v) {
        until = w->next_due;
    }
    if (foreign_next(w, &lease) && lease.v < until.v) {
        until = lease;
    }
    if (circuit_next(w, now, &circuit) && circuit.v < until.v) {
        until = circuit;
    }
    const struct mono_ms envs = profiles_due(w);
    if (envs.v < until.v) {
        until = envs;
    }
    if (w->housekeeping.v < until.v) {
        until = w->housekeeping;
    }
    if (w->gauges_due.v < until.v) {
        until = w->gauges_due;
    }
    if (w->lives.changes != w->told_changes && w->told_at.v + TELL_LEASES_MS < until.v) {
        until.v = w->told_at.v + TELL_LEASES_MS;
    }
    if (w->stopping && now.v + 200 < until.v) {
        until.v = now.v + 200;
    }
    if (w->options->drain && now.v + 200 < until.v) {
        until.v = now.v + 200;
    }
    if (until.v <= now.v) {
        until.v = now.v + SPIN_MS;
    }
    return until;
}

/* A key that was revoked since is not believed a second later. */
static void watch_trust(struct worker *w)
{
    const struct mono_ms now = mono_now();
    if (w->trust != NULL && now.v - w->trust_seen.v >= TRUST_RELOAD_MS) {
        w->trust_seen = now;
        (void)worker_reload_trust(w, true);
    }
}

/* A restore that the store could not take is begun again, after a while. */
static baton_code restored(struct worker *w, baton_code rc, const struct baton_error *err)
{
    if (baton_code_class(rc) != BATON_CLASS_retry) {
        return rc;
    }
    round_drop(w);
    engine_restore_again(w->engine, rc, err);
    return BATON_OK;
}

static baton_code handle(struct worker *w, const struct engine_event *event,
                         struct baton_error *err)
{
    baton_code rc = BATON_OK;
    switch (event->kind) {
    case ENGINE_none:
        blocked_tell(w, false); /* what keeps it from being restored, too */
        break;
    case ENGINE_mail:
        round_mail(w, event->mail);
        break;
    case ENGINE_wake:
        stop_read_wake(w);
        break;
    case ENGINE_restoring:
        rc = restored(w, restore_begin(w, event, err), err);
        break;
    case ENGINE_fold:
        rc = restored(w, restore_fold(w, event, err), err);
        break;
    case ENGINE_assigned:
        rc = restored(w, restore_end(w, event->partition, err), err);
        /* What the last owner had taken is trimmed soon, and not before what waits. */
        w->housekeeping.v = mono_now().v + SOON_MS;
        break;
    case ENGINE_moved:
        round_moved(w, event);
        break;
    case ENGINE_tick:
        watch_trust(w);
        profiles_reread(w); /* before the round, which tells what has changed by it */
        rc = round_tick(w, err);
        if (rc == BATON_OK && !w->blocked) {
            rc = retention_tick(w, err);
        }
        round_tell_leases(w);
        gauges_tick(w);
        break;
    case ENGINE_control:
        if (!w->blocked) {
            rc = operate_record(w, event, err);
        }
        break;
    case ENGINE_record:
        if (!w->blocked) {
            rc = claim_record(w, event, err);
        }
        break;
    case ENGINE_round:
        rc = round_commit(w, err);
        break;
    }
    return rc;
}

static void tell_ready(struct worker *w, const struct engine_event *event)
{
    if (!w->ready_told && event->kind == ENGINE_tick) {
        w->ready_told = true;
        diag_line(DIAG_info, "worker.ready", D_TEXT("worker", w->id.s));
        if (w->options->ready != NULL) {
            w->options->ready(w->options->ready_arg, w->id.s);
        }
    }
}

static baton_code run(struct worker *w, struct baton_error *err)
{
    for (;;) {
        struct engine_event event;
        const struct mono_ms until = next_time(w);
        health_expect(until);
        baton_code rc = engine_next(w->engine, until, &event, err);
        health_expect(mono_now());
        if (rc == BATON_OK) {
            tell_ready(w, &event);
            rc = handle(w, &event, err);
        }
        if (rc != BATON_OK) {
            return rc;
        }
        if (event.kind != ENGINE_round && event.kind != ENGINE_none && event.kind != ENGINE_wake) {
            continue; /* a round is ended before anything else is looked at */
        }
        gauges_health(w);
        if (w->options->drain && stop_drained(w)) {
            w->stopping = true; /* leaves its group: others need not wait for its return */
            return BATON_OK;
        }
        if (w->stopping) {
            stop_end_what_runs(w);
            if (stop_settled(w)) {
                return BATON_OK;
            }
            if (stop_waited(w)) {
                return stop_as_holder(w, err);
            }
        }
    }
}

baton_code worker_run(const struct worker_options *options, struct baton_error *err)
{
    struct worker *w = calloc(1, sizeof(*w));
    struct baton_error local;

    if (w == NULL) {
        return baton_fail(err, BATON_E_no_memory, "out of memory");
    }
    err = err != NULL ? err : &local;
    w->config = options->config;
    w->options = options;
    w->next_due.v = INT64_MAX;
    baton_code rc = worker_start(w, err);
    if (rc == BATON_E_stopped && w->stopping) {
        rc = BATON_OK; /* before it had begun */
    } else if (rc == BATON_OK) {
        rc = run(w, err);
        if (rc == BATON_OK) {
            rc = stop_left_nothing(w, err);
        }
        w->leave = rc != BATON_E_twin;
        diag_line(rc == BATON_OK ? DIAG_info : DIAG_error, "worker.stopped",
                  D_TEXT("worker", w->id.s), D_CODE("code", rc),
                  D_TEXT("error", rc == BATON_OK ? NULL : err->text));
    }
    done(w);
    return rc;
}
