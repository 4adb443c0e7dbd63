/*
 * A worker's clean stop: it takes nothing more and settles what ends; what
 * still runs after a session goes on under its lease, while others take over, until the grace is
 * over.
 *
 * In: worker/worker.c  Out: worker/round.c, worker/lease/lease.c
 */
#include "worker/stop.h"

#include "common/base/diag.h"
#include "common/base/mailbox.h"
#include "common/base/metrics.h"
#include "common/base/wake.h"
#include "common/engine/engine.h"
#include "common/log/log.h"
#include "common/store/store.h"
#include "worker/executor/executor.h"
#include "worker/internal.h"
#include "worker/lease/lease.h"
#include "worker/live.h"
#include "worker/round.h"
#include "worker/trust.h"

#include <stdlib.h>
#include <unistd.h>

#define KILLED_ENDS_MS 2000

static void ask_stop(struct worker *w)
{
    if (w->stopping) {
        if (!w->kill_now) {
            w->kill_now = true;
            w->kill_asked = mono_now();
        }
        return;
    }
    w->stopping = true;
    w->stop_asked = mono_now();
    if (w->engine != NULL) {
        engine_stop_taking(w->engine);
        engine_again(w->engine);
    }
    /* Before the log was there it has no id yet, unless it was given one. */
    const char *id = w->id.s[0] != '\0' ? w->id.s : w->options->id;
    diag_line(DIAG_info, "worker.stopping", D_TEXT("service", w->service->name.s),
              D_TEXT("worker", id), D_INT("running", (int64_t)w->lives.running),
              D_INT("grace_ms", w->service->grace_ms));
}

void stop_read_wake(struct worker *w)
{
    char bytes[64];
    ssize_t n = read(w->options->wake_fd, bytes, sizeof(bytes));
    for (ssize_t i = 0; i < n; i++) {
        if (bytes[i] == WAKE_STOP) {
            ask_stop(w);
        } else if (bytes[i] == WAKE_RELOAD) {
            if (!worker_reload_trust(w, false)) {
                metric_add(METRIC_reloads_failed, 1);
            }
            w->reload_asked = true; /* the rest between two rounds: reload.c */
            if (w->engine != NULL) {
                engine_again(w->engine);
            }
        }
    }
    if (n == 0 && w->engine != NULL) {
        engine_ignore_wake(w->engine); /* it stays readable for ever */
    }
    if (n == 0 && !w->stopping) {
        ask_stop(w); /* whoever could have told us is gone */
    }
}

static void stop_one(struct live *live, void *arg)
{
    struct worker *w = arg;
    if (live->phase != LIVE_running) {
        return;
    }
    if (w->kill_now) {
        executor_kill(w->pool, &live->record.id, live->record.attempt);
    } else {
        executor_stop(w->pool, &live->record.id, live->record.attempt, EXECUTOR_STOP_stop);
    }
}

/* The grace is over, or somebody asked twice: what still runs is told to end. */
void stop_end_what_runs(struct worker *w)
{
    bool over = mono_now().v - w->stop_asked.v >= w->service->grace_ms;
    if (w->kill_now || (over && !w->killed)) {
        w->killed = true;
        lives_each(&w->lives, stop_one, w);
    }
}

bool stop_waited(const struct worker *w)
{
    const struct mono_ms now = mono_now();
    /* What was killed ends within moments and is settled here, where the log knows that it was a
     * stop: in no budget. */
    return now.v - w->stop_asked.v >= w->config->session_ms ||
           (w->kill_now && now.v - w->kill_asked.v >= KILLED_ENDS_MS);
}

bool stop_settled(struct worker *w)
{
    return w->lives.count == 0 && w->n_arrived == 0 && w->committed.count == 0 &&
           w->committed.n_notes == 0 && engine_batch_count(w->engine) == 0;
}

/* Is nothing left to do at all? (--drain) */
bool stop_drained(struct worker *w)
{
    bool any = false;
    struct mono_ms at;
    return stop_settled(w) && !w->reopen && !w->facts_due && leases_count(w->leases) == 0 &&
           w->n_foreign == 0 && engine_drained(w->engine) &&
           store_next_due(w->store, &any, &at, NULL) == BATON_OK && !any;
}

/* Has the log taken every end? One that could not be reached has not: the stop is not a clean one,
 * though nothing is lost. */
baton_code stop_left_nothing(struct worker *w, struct baton_error *err)
{
    struct recorded_end end = {0};
    size_t count = 0;
    struct baton_error local;

    if (!leases_unanswered(w->leases) ||
        store_ends(w->store, 0, &end, 1, &count, &local) != BATON_OK || count == 0) {
        return BATON_OK;
    }
    free(end.result);
    return baton_fail(
        err, BATON_E_service_unavailable,
        "stopped, and the log has not taken the end of turn %s, attempt %d (and perhaps "
        "of others): it is recorded here, and the next start of worker %s settles it",
        end.turn.s, end.attempt, w->id.s);
}

/* The consumer is closed, so that others take over; what runs goes on under its lease until the
 * grace is over. Ends that nobody takes are facts for the next start. */
baton_code stop_as_holder(struct worker *w, struct baton_error *err)
{
    int32_t partitions[LOG_PARTITIONS_MAX];
    size_t n = engine_partitions(w->engine, partitions);
    baton_code rc = round_fold(w, true, err);

    round_drop(w);
    if (rc == BATON_OK) {
        round_hold(w, partitions, n, false);
    }
    leases_watch(w->leases, NULL);
    engine_close(w->engine, true, CLOSE_TIMEOUT_MS);
    w->engine = NULL;
    diag_line(DIAG_info, "worker.holds", D_TEXT("worker", w->id.s),
              D_INT("running", (int64_t)w->lives.running));
    while (rc == BATON_OK && (w->lives.running > 0 || w->n_arrived > 0)) {
        void *mail;
        (void)mailbox_wait(w->mail, 200);
        while ((mail = mailbox_take(w->mail)) != NULL) {
            round_mail(w, mail);
        }
        if (w->options->wake_fd >= 0) {
            stop_read_wake(w);
        }
        stop_end_what_runs(w);
        rc = round_fold(w, false, err);
        if (w->blocked && w->lives.running == 0) {
            diag_line(
                DIAG_error, "worker.ends_not_recorded", D_INT("ends", (int64_t)w->n_arrived),
                D_TEXT("meaning", "the store cannot be written; these attempts will be lost"));
            break;
        }
    }
    /* Reports that are on their way get a moment; then they are facts for the next start. */
    struct mono_ms until = {mono_now().v + w->config->lease_grace_ms};
    while (rc == BATON_OK && leases_count(w->leases) > 0 && mono_now().v < until.v &&
           !w->kill_now) {
        void *mail;
        (void)mailbox_wait(w->mail, 100);
        while ((mail = mailbox_take(w->mail)) != NULL) {
            round_mail(w, mail);
        }
        rc = round_fold(w, false, err);
    }
    return rc;
}
