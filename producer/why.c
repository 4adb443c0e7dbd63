/*
 * Why a turn stands where it stands: decides which sentences are said of it, and who must act.
 * In: producer/why_print.c  Out: topics/service_view.h, producer/life.h
 */
#include "producer/why_said.h"

#include "common/base/array.h"
#include "common/base/check.h"
#include "common/base/quantity.h"
#include "producer/cmd_services.h"
#include "producer/life.h"
#include "topics/outcomes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct step *add(struct steps *steps)
{
    steps->list = array_grown(steps->list, steps->count, &steps->cap, sizeof(*steps->list));
    struct step *step = &steps->list[steps->count++];
    *step = (struct step){0};
    return step;
}

BATON_PRINTF(1, 0) static char *sentence(const char *format, va_list args)
{
    char *text = NULL;
    if (vasprintf(&text, format, args) < 0) {
        check_failed("allocation", "a sentence", __FILE__, __LINE__);
    }
    return text;
}

BATON_PRINTF(3, 4) static void say(struct steps *steps, struct wall_ms at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct step *step = add(steps);
    step->text = sentence(format, args);
    step->at = at;
    va_end(args);
}

#define NO_TIME ((struct wall_ms){0})

BATON_PRINTF(3, 4) static void may(struct why *why, const char *effect, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct step *step = add(&why->commands);
    step->command = sentence(format, args);
    va_end(args);
    step->text = strdup(effect);
    if (step->text == NULL) {
        check_failed("allocation", "a sentence", __FILE__, __LINE__);
    }
}

static void steps_done(struct steps *steps)
{
    for (size_t i = 0; i < steps->count; i++) {
        free(steps->list[i].text);
        free(steps->list[i].command);
    }
    free(steps->list);
}

void why_done(struct why *why)
{
    steps_done(&why->happened);
    steps_done(&why->now);
    steps_done(&why->commands);
}

/* ---- what happened ---- */

static void attempt_happened(struct why *why, const struct attempt *attempt)
{
    char took[64] = "";
    char who[ID_MAX * 2 + 32];
    if (attempt->started_at.v != 0 && attempt->ended_at.v > attempt->started_at.v) {
        snprintf(took, sizeof(took), " after %s",
                 quantity_duration_text(attempt->ended_at.v - attempt->started_at.v).s);
    }
    snprintf(who, sizeof(who), "%s%s%s%s", attempt->worker.s[0] != '\0' ? " by worker " : "",
             attempt->worker.s, attempt->profile.s[0] != '\0' ? ", profile " : "",
             attempt->profile.s);
    const struct wall_ms at = attempt->ended_at.v != 0 ? attempt->ended_at : attempt->started_at;
    const char *class = attempt->has_class ? failure_word(attempt->class) : "it was not tried";
    const char *meaning = attempt->has_class ? failure_text(attempt->class) : NULL;
    switch (attempt->state) {
    case ATTEMPT_queued:
        say(&why->happened, at, "attempt %d at %s waits", attempt->no, attempt->service.s);
        break;
    case ATTEMPT_running:
        say(&why->happened, at, "attempt %d at %s was started%s", attempt->no, attempt->service.s,
            who);
        break;
    case ATTEMPT_completed:
        say(&why->happened, at, "attempt %d at %s%s was done%s", attempt->no, attempt->service.s,
            who, took);
        break;
    case ATTEMPT_cancelled:
        say(&why->happened, at, "attempt %d at %s%s was cancelled%s", attempt->no,
            attempt->service.s, who, took);
        break;
    case ATTEMPT_failed:
    case ATTEMPT_delegated:
        say(&why->happened, at, "attempt %d at %s%s failed%s: %s%s%s%s%s%s", attempt->no,
            attempt->service.s, who, took, class, meaning != NULL ? ", " : "",
            meaning != NULL ? meaning : "", attempt->note != NULL ? " (" : "",
            attempt->note != NULL ? attempt->note : "", attempt->note != NULL ? ")" : "");
        if (attempt->state == ATTEMPT_delegated) {
            say(&why->happened, at, "%s passed it on", attempt->service.s);
        }
        break;
    case ATTEMPT_STATE_COUNT:
        break;
    }
}

static void look_at_past(struct why *why, const struct why_sources *from)
{
    const struct turn_record *now = &from->life->now;
    say(&why->happened, now->created_at, "published by %s as %s of task %s, for %s", now->origin.s,
        role_word(now->role), now->task_id.s, now->service.s);
    for (size_t i = 0; i < from->life->n_attempts; i++) {
        attempt_happened(why, &from->life->attempts[i]);
    }
    if (now->replays > 0) {
        say(&why->happened, NO_TIME, "operators replayed it %d time%s", now->replays,
            now->replays == 1 ? "" : "s");
    }
}

/* ---- what keeps a service from taking or trying turns ---- */

static void look_at_pause(struct why *why, const struct service_view *view, const char *service)
{
    if (view->paused == 0) {
        return;
    }
    const struct service_pause *pause = &view->pause;
    why->who = WHO_operator;
    say(&why->now, pause->at, "service %s is paused%s%s%s%s", service,
        pause->by.s[0] != '\0' ? " by " : "", pause->by.s, pause->reason[0] != '\0' ? ": " : "",
        pause->reason);
    may(why, "its turns start again", "baton services resume %s --reason TEXT", service);
}

static void look_at_workers(struct why *why, const struct service_view *view, const char *service)
{
    if (view->n_workers == 0) {
        why->who = WHO_operator;
        say(&why->now, NO_TIME, "no worker of %s runs", service);
        may(why, "on the service's host: takes it and goes on", "baton worker --service %s",
            service);
    }
}

static void look_at_circuits(struct why *why, const struct service_view *view,
                             const struct circuit_note *own)
{
    for (size_t i = 0; i < view->n_circuits; i++) {
        const struct circuit_note *note = &view->circuits[i].note;
        if (note->state == CIRCUIT_closed ||
            (own != NULL && strcmp(own->worker.s, note->worker.s) != 0)) {
            continue;
        }
        why->who = why->who == WHO_nobody ? WHO_provider : why->who;
        say(&why->now, note->since,
            "the circuit of worker %s is %s: %s (%s); one turn at a time is tried until one "
            "succeeds",
            note->worker.s, circuit_state_word(note->state), failure_word(note->class),
            failure_text(note->class));
    }
}

/* Is there a credential profile that no worker lets rest? Then the others keep no turn. */
static bool any_profile(const struct service_view *view, struct wall_ms now)
{
    for (size_t i = 0; i < view->service->n_profiles; i++) {
        bool rests = false;
        for (size_t k = 0; k < view->n_rests; k++) {
            rests = rests ||
                    rest_note_find(&view->rests[k], view->service->profiles[i].name.s, now) != NULL;
        }
        if (!rests) {
            return true;
        }
    }
    return false;
}

static void look_at_profiles(struct why *why, const struct service_view *view, const char *service,
                             struct wall_ms now)
{
    const bool another = any_profile(view, now);
    for (size_t i = 0; i < view->n_rests; i++) {
        for (size_t k = 0; k < view->rests[i].count; k++) {
            const struct rest_profile *profile = &view->rests[i].profiles[k];
            if (!rest_profile_rests(profile, now)) {
                continue;
            }
            if (rest_profile_refused(profile) && another) {
                say(&why->now, profile->since,
                    "credential profile %s was refused (%s); another one is taken", profile->name.s,
                    failure_word(profile->class));
            } else if (rest_profile_refused(profile)) {
                why->who = WHO_operator;
                say(&why->now, profile->since, "credential profile %s was refused (%s)",
                    profile->name.s, failure_word(profile->class));
                may(why, "once the credential is mended: it is tried again", SERVICES_CLEAR_COMMAND,
                    service, profile->name.s);
            } else {
                say(&why->now, profile->since, "credential profile %s rests until %s (%s)",
                    profile->name.s, wall_text(profile->until).s, failure_word(profile->class));
            }
        }
    }
}

static void look_at_topics(struct why *why, const struct service_view *view)
{
    for (size_t i = 0; i < view->n_blocked; i++) {
        for (size_t k = 0; k < view->blocked[i].count; k++) {
            const struct blocked_target *target = &view->blocked[i].targets[k];
            why->who = WHO_operator;
            say(&why->now, target->since, "worker %s cannot write to %s: %s",
                view->blocked[i].worker.s, target->topic,
                target->cause[0] != '\0' ? target->cause : baton_code_text(target->code));
            may(why, "says what is missing of topics and rights", "baton topics plan");
        }
    }
}

static void look_at_service(struct why *why, const struct why_sources *from, const char *service,
                            const struct circuit_note *own)
{
    if (from->view == NULL) {
        return;
    }
    look_at_pause(why, from->view, service);
    look_at_workers(why, from->view, service);
    look_at_circuits(why, from->view, own);
    look_at_profiles(why, from->view, service, from->now);
    look_at_topics(why, from->view);
}

/* ---- what it waits for, by its state ---- */

static void may_cancel(struct why *why, const char *turn_id)
{
    may(why, "it ends, and what runs is stopped", "baton turns cancel %.12s --reason TEXT",
        turn_id);
}

static void waits_in_topic(struct why *why, const struct why_sources *from)
{
    say(&why->now, NO_TIME, "its handoff stands in the topic of %s, and no worker has taken it in",
        from->waits_at);
    look_at_service(why, from, from->waits_at, NULL);
    if (from->view != NULL && from->view->lag > 1) {
        say(&why->now, NO_TIME, "%lld handoffs wait there", (long long)from->view->lag);
    }
    if (why->now.count == 1) {
        say(&why->now, NO_TIME,
            "its workers take as many as they have room for (parallel); it is taken in turn");
    }
    may_cancel(why, from->turn_id);
}

/* What its publisher allowed it. True: no attempt starts any more. */
static bool deadline_passes(struct why *why, const struct why_sources *from)
{
    const struct turn_record *now = &from->life->now;
    const struct wall_ms deadline = life_deadline(now);
    if (deadline.v == 0) {
        return false;
    }
    if (deadline.v > from->now.v && deadline.v > now->not_before.v) {
        say(&why->now, NO_TIME, "it is parked if it has not ended by its deadline, %s",
            wall_text(deadline).s);
        return false;
    }
    if (deadline.v > from->now.v) {
        why->next_at = deadline;
        say(&why->now, NO_TIME,
            "it is parked at its deadline, %s, before attempt %d could start at %s",
            wall_text(deadline).s, now->attempt, wall_text(now->not_before).s);
    } else {
        say(&why->now, NO_TIME,
            "its deadline, %s, has passed: a worker of %s parks it as soon as it looks at it",
            wall_text(deadline).s, from->life->service);
    }
    return true;
}

static void is_queued(struct why *why, const struct why_sources *from)
{
    const struct turn_record *now = &from->life->now;
    const bool over = deadline_passes(why, from);
    if (!over && now->not_before.v > from->now.v) {
        why->next_at = now->not_before;
        say(&why->now, NO_TIME, "attempt %d starts at %s, in %s", now->attempt,
            wall_text(now->not_before).s,
            quantity_duration_text((now->not_before.v - from->now.v + 999) / 1000 * 1000).s);
    }
    look_at_service(why, from, from->life->service,
                    from->life->circuit.state != CIRCUIT_closed ? &from->life->circuit : NULL);
    if (why->now.count == (life_deadline(now).v != 0 && !over ? 1 : 0)) {
        say(&why->now, NO_TIME, "attempt %d starts as soon as a worker of %s has room for it",
            now->attempt, from->life->service);
    }
    may_cancel(why, from->turn_id);
}

/* Its worker is gone, or stops: who has the turn next. */
static void worker_is_gone(struct why *why, const struct why_sources *from)
{
    const bool another = from->view->n_workers > 0;
    say(&why->now, NO_TIME,
        "that worker is not in its group now: it stops, or is gone; then its lease runs out %s "
        "after its last sign of life, and %s",
        quantity_duration_text(from->config->session_ms + from->config->lease_grace_ms).s,
        another ? "another takes the turn over, or it goes on itself when it is back under its id"
                : "the next worker that is started takes the turn over");
    look_at_workers(why, from->view, from->life->service);
}

/* The end that its attempt is given, by its service or its publisher, whichever comes first. */
static void look_at_deadline(struct why *why, const struct why_sources *from,
                             const struct config_service *service, struct wall_ms started_at,
                             bool alive)
{
    const struct wall_ms own = life_deadline(&from->life->now);
    const int64_t after = started_at.v + service->deadline_ms;
    const struct wall_ms stop = {own.v != 0 && own.v < after ? own.v : after};
    if (alive ? from->now.v <= stop.v + service->grace_ms + SERVICE_DATE_SLACK_MS
              : from->now.v <= stop.v) {
        why->next_at = stop;
        say(&why->now, NO_TIME, "it is stopped at its deadline, %s", wall_text(stop).s);
    } else if (alive) {
        why->who = WHO_operator;
        say(&why->now, NO_TIME,
            "its deadline was %s, and its worker has told no end: it cannot (a full disk, a "
            "right or a topic that is missing), or hangs itself",
            wall_text(stop).s);
    }
}

static void is_running(struct why *why, const struct why_sources *from)
{
    const struct turn_record *now = &from->life->now;
    const struct attempt *last =
        from->life->n_attempts > 0 ? &from->life->attempts[from->life->n_attempts - 1] : NULL;
    const struct config_service *service = config_service_find(from->config, from->life->service);
    const bool alive = from->view == NULL || service_view_lives(from->view, now->lease_worker.s);
    say(&why->now, last != NULL ? last->started_at : NO_TIME, "worker %s %s attempt %d",
        now->lease_worker.s, alive ? "executes" : "has begun", now->attempt);
    if (!alive) {
        worker_is_gone(why, from);
    }
    if (service != NULL && last != NULL && last->started_at.v != 0) {
        look_at_deadline(why, from, service, last->started_at, alive);
    }
    if (from->view != NULL) {
        look_at_topics(why, from->view);
    }
    if (alive) {
        may(why, "what it says while it runs", "baton turns watch %.12s", from->turn_id);
    }
    may(why, "on the worker's host: does it hang, what keeps its end, and what mends that",
        "baton doctor");
    may_cancel(why, from->turn_id);
}

/* One of its role's chain that has not had it: to those `keys apply` lets it be passed. NULL: there is none. */
static const char *another_service(const struct why_sources *from)
{
    const struct config_role *role = &from->config->roles[from->life->now.role];
    for (size_t i = 0; i < role->n_chain; i++) {
        const struct config_service *service = config_service_find(from->config, role->chain[i].s);
        bool fits = service != NULL && (service->roles & ROLE_BIT(from->life->now.role)) != 0 &&
                    strcmp(service->name.s, from->life->service) != 0;
        for (size_t k = 0; fits && k < from->life->n_attempts; k++) {
            fits = strcmp(from->life->attempts[k].service.s, service->name.s) != 0;
        }
        if (fits) {
            return service->name.s;
        }
    }
    return NULL;
}

static void is_parked(struct why *why, const struct why_sources *from)
{
    const struct turn_record *now = &from->life->now;
    why->who = WHO_operator;
    say(&why->now, now->updated_at, "it is parked with a dead letter: %s, %s",
        baton_code_word(now->code), baton_code_text(now->code));
    if (now->replays >= (int)from->config->budget.replays) {
        say(&why->now, NO_TIME,
            "its budget of %d replays is used up: --again lifts that once, on purpose",
            (int)from->config->budget.replays);
    }
    const struct wall_ms deadline = life_deadline(now);
    const bool over = deadline.v != 0 && deadline.v <= from->now.v;
    if (over) {
        say(&why->now, NO_TIME,
            "its deadline, %s, has passed, and is part of what was signed: a replay is parked "
            "again at once; publish the work anew, as another turn",
            wall_text(deadline).s);
    }
    look_at_service(why, from, from->life->service, NULL);
    why->who = WHO_operator;
    may(why, "the dead letter, with the record as it came", "baton dlq show %.12s", from->turn_id);
    const char *again = now->replays >= (int)from->config->budget.replays ? " --again" : "";
    const char *other = another_service(from);
    if (!over) {
        may(why, "its next attempt, in the same role; failures and losses are counted on",
            "baton dlq replay %.12s%s", from->turn_id, again);
    }
    if (!over && other != NULL) {
        may(why, "the same at another service that serves the role and has not had it",
            "baton dlq replay %.12s --to %s%s", from->turn_id, other, again);
    }
    may_cancel(why, from->turn_id);
}

static void has_ended(struct why *why, const struct why_sources *from)
{
    const struct turn_record *now = &from->life->now;
    struct verdict_text verdict = result_verdict(now->result, now->result_len);
    why->who = WHO_done;
    if (now->state == TURN_cancelled) {
        say(&why->now, now->ended_at, "it was cancelled by %s%s%s", now->cancel_by.s,
            now->cancel_reason != NULL ? ": " : "",
            now->cancel_reason != NULL ? now->cancel_reason : "");
    } else {
        say(&why->now, now->ended_at, "it ended with verdict %s", verdict.s);
    }
    may(why, "its result", "baton turns show %.12s", from->turn_id);
}

static void is_passed_on(struct why *why, const struct why_sources *from)
{
    const struct turn_record *now = &from->life->now;
    say(&why->now, now->updated_at, "%s passed it on to %s, where no worker has taken it in yet",
        from->life->service, now->to_service.s);
    look_at_service(why, from, now->to_service.s, NULL);
    may_cancel(why, from->turn_id);
}

static void look_at_run(struct why *why, const struct why_sources *from)
{
    const struct run *run = from->run;
    if (run == NULL) {
        return;
    }
    say(&why->now, NO_TIME, "it belongs to run %s, which is %s%s%s", run->id.s,
        run_state_word(run->state), run->why[0] != '\0' ? ": " : "", run->why);
    if (run_state_open(run->state) && from->still == RUN_STILL_yes) {
        why->who = WHO_operator;
        say(&why->now, NO_TIME, "no coordinator runs: until one does, its run does not move");
        may(why, "on its host: runs go on, and requests are answered", "baton coordinator");
    } else if (run->state == RUN_waiting) {
        why->who = why->who == WHO_operator ? WHO_operator : WHO_person;
    }
    may(why, "the run: its path, who is at turn, what comes next", "baton runs show %s", run->id.s);
}

struct why why_look_at(const struct why_sources *from)
{
    struct why why = {.who = WHO_nobody};
    if (!from->life->found) {
        waits_in_topic(&why, from);
        return why;
    }
    look_at_past(&why, from);
    switch (from->life->now.state) {
    case TURN_queued:
        is_queued(&why, from);
        break;
    case TURN_running:
        is_running(&why, from);
        break;
    case TURN_parked:
        is_parked(&why, from);
        break;
    case TURN_delegated:
        is_passed_on(&why, from);
        break;
    case TURN_completed:
    case TURN_cancelled:
        has_ended(&why, from);
        break;
    case TURN_STATE_COUNT:
        break;
    }
    look_at_run(&why, from);
    return why;
}
