/*
 * What `baton doctor` says of services: their groups, what waits, what hangs, what is parked, what keeps their
 * turns from going on.
 * In: deploy/cmd_doctor.c. Out: topics/service_view.h, topics/progress.h, producer/run_log.h, common/process/sweep.h
 */
#include "deploy/doctor.h"

#include "common/base/quantity.h"
#include "common/process/sweep.h"
#include "topics/progress.h"
#include "producer/run_log.h"
#include "topics/service_view.h"

#include <stdio.h>
#include <string.h>

#define ROLE_OF(turn) role_word((turn)->role)

/* ---- its group ---- */

static void check_group(struct doctor *d, const struct service_view *view)
{
    const char *name = view->service->name.s;
    const int32_t unowned = service_view_unowned(view);
    char start[128];
    snprintf(start, sizeof(start), "baton worker --service %s", name);
    if (view->n_workers == 0 && view->oldest_ms > SERVICE_WAITING_LONG_MS) {
        doctor_found(d, LEVEL_warn, BATON_OK, MEND_COMMAND(start), NULL,
                     "%s: %lld handoffs wait, the oldest (turn %.12s) for %s, and no worker runs",
                     name, (long long)view->lag,
                     view->waiting.s[0] != '\0' ? view->waiting.s : "not to be seen",
                     quantity_age_text(view->oldest_ms).s);
    } else if (view->n_workers == 0 && view->oldest.id.s[0] != '\0' &&
               view->oldest.state != TURN_parked) {
        doctor_found(d, LEVEL_warn, BATON_OK, MEND_COMMAND(start),
                     "turns that were begun go on only with a worker",
                     "%s: no worker runs, and turn %.12s (%s of %s) is %s since %s", name,
                     view->oldest.id.s, ROLE_OF(&view->oldest), view->oldest.task.s,
                     turn_state_word(view->oldest.state), wall_text(view->oldest.since).s);
    } else if (service_view_untaken(view)) {
        doctor_found(
            d, LEVEL_warn, BATON_OK,
            MEND_HINT("if that stays so: `baton doctor` on the hosts of its workers, and "
                      "their logs"),
            "a worker that may not write its turn log cannot tell that to anybody elsewhere",
            "%s: %lld handoffs wait, the oldest (turn %.12s) for %s, and its %zu workers "
            "run nothing",
            name, (long long)view->lag,
            view->waiting.s[0] != '\0' ? view->waiting.s : "not to be seen",
            quantity_age_text(view->oldest_ms).s, view->n_workers);
    } else if (unowned > 0) {
        doctor_found(d, LEVEL_warn, BATON_OK,
                     MEND_HINT("look again in a few seconds: a group is divided anew within a "
                               "session; a worker's log says what keeps it"),
                     "what waits there is taken by nobody meanwhile",
                     "%s: %d of %d partitions belong to none of its %zu workers", name,
                     (int)unowned, (int)view->partitions, view->n_workers);
    } else {
        doctor_found(d, LEVEL_ok, BATON_OK, MEND_NONE, NULL, "%s: %zu workers, %lld handoffs wait",
                     name, view->n_workers, (long long)view->lag);
    }
}

/* ---- its turns ---- */

/* The oldest that is not finished, by name. */
static void check_oldest(struct doctor *d, const struct service_view *view)
{
    const struct service_turn *oldest = &view->oldest;
    char mend[64];
    if (oldest->id.s[0] == '\0') {
        return;
    }
    snprintf(mend, sizeof(mend), "baton turns why %.12s", oldest->id.s);
    doctor_found(d, LEVEL_ok, BATON_OK, MEND_COMMAND(mend), NULL,
                 "%s: its oldest unfinished turn is %.12s, %s of %s, %s, %s old",
                 view->service->name.s, oldest->id.s, ROLE_OF(oldest), oldest->task.s,
                 turn_state_word(oldest->state),
                 quantity_age_text(wall_now().v - oldest->created_at.v).s);
}

static void check_parked(struct doctor *d, const struct service_view *view)
{
    const int64_t parked = view->turns[TURN_parked];
    char mend[128];
    snprintf(mend, sizeof(mend), "baton dlq list --service %s", view->service->name.s);
    if (parked > 0) {
        doctor_found(d, LEVEL_warn, BATON_OK,
                     (struct mend){mend, "then mend its cause, and `baton dlq replay`"},
                     "a parked turn goes on only when an operator replays it",
                     "%s: %lld turn%s parked", view->service->name.s, (long long)parked,
                     parked == 1 ? " is" : "s are");
    }
}

/* ---- executors that hang ---- */

/* The executor's process on this host, 0 if it is on another, or a long-lived one. */
static pid_t program_of(const struct service_turn *turn)
{
    char mark[64];
    snprintf(mark, sizeof(mark), "BATON_TURN_ID=%s", turn->id.s);
    return sweep_program(&(struct sweep_mark){.equals = mark, .begins = "BATON_WORKER="});
}

/* Silent for half of its time. What it said last is known on its worker's host only; elsewhere nothing is
 * said before its time is over. */
static void found_silent(struct doctor *d, const struct service_view *view,
                         const struct service_turn *turn, pid_t program, int64_t silent_ms,
                         struct wall_ms stop)
{
    char command[64];
    char hint[160];
    if (program > 0) {
        snprintf(command, sizeof(command), "kill -KILL %d", (int)program);
    } else {
        snprintf(command, sizeof(command), "baton turns watch %.12s", turn->id.s);
    }
    snprintf(hint, sizeof(hint), "%sit is stopped at its deadline, %s",
             program > 0 ? "its turn is tried again at once; else " : "", wall_text(stop).s);
    doctor_found(d, LEVEL_warn, BATON_OK, (struct mend){command, hint},
                 "its turn waits for an executor that may never answer, and keeps a place",
                 "%s: attempt %d of turn %.12s (%s of %s) at worker %s shows no progress for %s",
                 view->service->name.s, turn->attempt, turn->id.s, ROLE_OF(turn), turn->task.s,
                 turn->worker.s, quantity_age_text(silent_ms).s);
}

static void check_running(struct doctor *d, const struct service_view *view,
                          const struct service_turn *turn)
{
    const struct config_service *service = view->service;
    const struct wall_ms now = wall_now();
    const struct wall_ms stop = service_view_stop(view, turn);
    const pid_t program = program_of(turn);
    struct progress progress;
    int64_t last = turn->since.v;
    const bool here =
        progress_read(d->config, turn->id.s, &progress) && progress.attempt == turn->attempt;
    if (here && progress.at.v > last) {
        last = progress.at.v;
    }
    if (!service_view_lives(view, turn->worker.s)) {
        return; /* it stops, or is taken over: that goes by itself, or no worker runs, which is told */
    }
    if (service_view_overdue(view, turn)) {
        char mend[256];
        snprintf(mend, sizeof(mend),
                 "if that stays so: mend what else is found here (disk, rights, topics), then it "
                 "goes on by itself; if there is nothing, end that worker and start it again: "
                 "baton worker --service %s",
                 service->name.s);
        doctor_found(
            d, LEVEL_error, BATON_E_deadline_exceeded, MEND_HINT(mend),
            "its worker cannot tell the end of it, is stuck itself, or was away and is just back",
            "%s: attempt %d of turn %.12s (%s of %s) at worker %s should have been stopped "
            "at %s",
            service->name.s, turn->attempt, turn->id.s, ROLE_OF(turn), turn->task.s, turn->worker.s,
            wall_text(stop).s);
    } else if ((here || program > 0) && now.v - last > service->deadline_ms / 2) {
        found_silent(d, view, turn, program, now.v - last, stop);
    }
}

/* ---- what keeps them ---- */

void doctor_found_blocked(struct doctor *d, const char *service, const struct blocked_note *note)
{
    for (size_t k = 0; k < note->count; k++) {
        const struct blocked_target *target = &note->targets[k];
        doctor_found(d, LEVEL_error, target->code,
                     target->code == BATON_E_not_permitted ? MEND_RIGHTS
                                                           : MEND_COMMAND("baton topics apply"),
                     "its turns wait, and go on by themselves once it can be written",
                     "%s: worker %s cannot write to %s since %s: %s", service, note->worker.s,
                     target->topic, wall_text(target->since).s,
                     target->cause[0] != '\0' ? target->cause : baton_code_text(target->code));
    }
}

static void check_pause(struct doctor *d, const struct service_view *view)
{
    const struct service_pause *pause = &view->pause;
    char mend[128];
    snprintf(mend, sizeof(mend), "baton services resume %s", view->service->name.s);
    if (view->paused > 0) {
        doctor_found(d, LEVEL_warn, BATON_OK, MEND_COMMAND(mend),
                     "nothing new is begun until it is resumed", "%s: paused by %s since %s: %s",
                     view->service->name.s, pause->by.s[0] != '\0' ? pause->by.s : "somebody",
                     wall_text(pause->at).s, pause->reason);
    }
}

static void check_circuits(struct doctor *d, const struct service_view *view)
{
    for (size_t i = 0; i < view->n_circuits; i++) {
        const struct circuit_note *note = &view->circuits[i].note;
        if (note->state != CIRCUIT_closed) {
            doctor_found(d, LEVEL_warn, BATON_OK,
                         MEND_HINT("nothing, or give the role a service to go on at: "
                                   "roles.ROLE.chain in the configuration"),
                         "turns wait while the provider is down, and go on by themselves",
                         "%s: the circuit of worker %s is %s since %s (%s: %s)",
                         view->service->name.s, note->worker.s, circuit_state_word(note->state),
                         wall_text(note->since).s, failure_word(note->class),
                         failure_text(note->class));
        }
    }
}

static void check_service(struct doctor *d, const struct service_view *view)
{
    check_group(d, view);
    check_oldest(d, view);
    for (size_t i = 0; i < view->n_running; i++) {
        check_running(d, view, &view->running[i]);
    }
    check_parked(d, view);
    check_pause(d, view);
    check_circuits(d, view);
    for (size_t k = 0; k < view->n_blocked; k++) {
        doctor_found_blocked(d, view->service->name.s, &view->blocked[k]);
    }
    doctor_profiles(d->config, d->log, view, &d->probed, doctor_found_agent, d);
}

/* ---- runs ---- */

static bool count_open(void *arg, const struct run *run)
{
    *(size_t *)arg += run_state_open(run->state) ? 1 : 0;
    return true;
}

/* Where no coordinator runs, open runs stand still, and nothing else tells. The run log is read only then: it
 * may be long. */
static void check_runs(struct doctor *d)
{
    size_t open = 0;
    if (run_log_still(d->log, d->config, LOG_GROUP_MS) == RUN_STILL_yes &&
        run_log_each(d->log, d->config, count_open, &open, NULL) == BATON_OK && open > 0) {
        doctor_found(d, LEVEL_warn, BATON_OK, MEND_COMMAND("baton coordinator"),
                     "no run moves, and no request is answered",
                     "%zu run%s %s open, and no coordinator runs", open, open == 1 ? "" : "s",
                     open == 1 ? "is" : "are");
    }
}

void doctor_check_services(struct doctor *d)
{
    for (size_t i = 0; d->log != NULL && i < d->config->n_services; i++) {
        const struct config_service *service = &d->config->services[i];
        struct baton_error err = {BATON_OK, ""};
        struct service_view view;
        baton_code rc = service_view_read(d->log, d->config, service, true, &view, &err);
        if (rc != BATON_OK) { /* its turn log may be closed to this principal, or missing */
            rc = service_view_read(d->log, d->config, service, false, &view, &err);
        }
        if (rc == BATON_OK) {
            d->written = view.written.v > d->written.v ? view.written : d->written;
            check_service(d, &view);
            service_view_done(&view);
        } else if (rc != BATON_E_topic_missing) {      /* told with the topics */
            bool hidden = rc == BATON_E_not_permitted; /* ordinary under a service's own rights */
            doctor_found(d, hidden ? LEVEL_warn : LEVEL_error, hidden ? BATON_OK : rc,
                         hidden ? MEND_RIGHTS : MEND_SAID, "how it stands cannot be seen from here",
                         "%s: %s", service->name.s, err.text);
        }
    }
    if (d->log != NULL) {
        check_runs(d);
    }
}
