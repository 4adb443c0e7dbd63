/*
 * One service of `baton services` for people: its row of numbers, and the lines below the table.
 * In: producer/cmd_services_list.c  Out: topics/service_view.h
 */
#include "producer/service_shown.h"

#include "common/base/command.h"
#include "common/base/quantity.h"
#include "common/base/text.h"
#include "producer/cmd_services.h"
#include "topics/service_view.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define RUNS_SHOWN 4 /* turns of one worker, by name */

static void roles_text(role_set roles, struct buf *out)
{
    bool first = true;
    for (int i = 0; i < ROLE_COUNT; i++) {
        if ((roles & ROLE_BIT(i)) != 0) {
            buf_printf(out, "%s%s", first ? "" : ",", role_word((enum role)i));
            first = false;
        }
    }
}

BATON_PRINTF(2, 3) static void line(struct buf *out, const char *format, ...)
{
    char text[1200];
    struct buf clean = BUF_INIT;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    text_add(&clean, text, strlen(text), 0);
    buf_add_char(&clean, '\0');
    if (buf_ok(&clean)) {
        text_wrap(out, clean.data, 2, 6, command_width());
    } else {
        out->broken = true;
    }
    buf_done(&clean);
}

/* "0-2,5" */
static void ranges_text(const struct log_group_member *worker, struct buf *out)
{
    for (size_t p = 0; p < worker->count;) {
        size_t last = p;
        while (last + 1 < worker->count &&
               worker->partitions[last + 1] == worker->partitions[last] + 1) {
            last++;
        }
        buf_printf(out, "%s%d", p == 0 ? "" : ",", (int)worker->partitions[p]);
        if (last > p) {
            buf_printf(out, "-%d", (int)worker->partitions[last]);
        }
        p = last + 1;
    }
}

/* What the turn log says that a worker executes. */
static void runs_text(const struct service_view *view, const char *worker, struct buf *out)
{
    size_t count = 0;
    for (size_t i = 0; i < view->n_running; i++) {
        const struct service_turn *turn = &view->running[i];
        if (strcmp(turn->worker.s, worker) == 0 && count++ < RUNS_SHOWN) {
            buf_printf(out, "%s%.12s (%s of %s) for %s", count == 1 ? "" : ", ", turn->id.s,
                       role_word(turn->role), turn->task.s,
                       quantity_age_text(wall_now().v - turn->since.v).s);
        }
    }
    if (count > RUNS_SHOWN) {
        buf_printf(out, " and %zu more", count - RUNS_SHOWN);
    }
    buf_add_char(out, '\0');
}

static void workers_text(const struct service_view *view, struct buf *out)
{
    for (size_t i = 0; i < view->n_workers; i++) {
        const struct log_group_member *worker = &view->workers[i];
        struct buf ranges = BUF_INIT;
        struct buf runs = BUF_INIT;
        ranges_text(worker, &ranges);
        buf_add_char(&ranges, '\0');
        runs_text(view, worker->worker, &runs);
        if (buf_ok(&ranges) && buf_ok(&runs)) {
            line(out, "%s has %s%s, %s%s", worker->worker,
                 worker->count == 0   ? "no partition"
                 : worker->count == 1 ? "partition "
                                      : "partitions ",
                 ranges.data, runs.data[0] != '\0' ? "runs " : "runs nothing", runs.data);
        }
        buf_done(&ranges);
        buf_done(&runs);
    }
    if (service_view_unowned(view) > 0) {
        line(out, "%d of %d partitions belong to none of them just now",
             (int)service_view_unowned(view), (int)view->partitions);
    }
    for (size_t i = 0; i < view->n_running; i++) {
        const struct service_turn *turn = &view->running[i];
        if (service_view_overdue(view, turn)) {
            line(out,
                 "%.12s should have been stopped by %s at %s: if that stays so, its disk may be "
                 "full, or its log closed to it; baton doctor on its host says which",
                 turn->id.s, turn->worker.s, command_time(service_view_stop(view, turn)).s);
        }
    }
    if (service_view_untaken(view)) {
        line(out,
             "handoffs wait for %s, and they run nothing: if that stays so, baton doctor on their "
             "hosts says why",
             quantity_age_text(view->oldest_ms).s);
    }
    if (view->n_workers == 0 && view->partitions > 0) {
        line(out, "no worker runs: baton worker --service %s", view->service->name.s);
    }
}

/* Turns that the log shows running at who is not in the group: it stops, or is gone. */
static void left_text(const struct service_view *view, struct buf *out)
{
    for (size_t i = 0; i < view->n_running; i++) {
        const struct service_turn *turn = &view->running[i];
        if (!service_view_lives(view, turn->worker.s)) {
            line(out, "%.12s (%s of %s) was begun by %s, which is not in its group", turn->id.s,
                 role_word(turn->role), turn->task.s, turn->worker.s);
        }
    }
}

static void profiles_text(const struct service_view *view, struct buf *out)
{
    const char *service = view->service->name.s;
    const struct wall_ms now = wall_now();
    char able[512] = "";
    size_t n = 0;
    for (size_t i = 0; i < view->service->n_profiles; i++) {
        const char *name = view->service->profiles[i].name.s;
        bool rests = false;
        for (size_t k = 0; k < view->n_rests; k++) {
            const struct rest_profile *rest = rest_note_find(&view->rests[k], name, now);
            const char *worker = view->rests[k].worker.s;
            rests = rests || rest != NULL;
            if (rest != NULL && rest_profile_refused(rest)) {
                line(out,
                     "profile %s of %s refused since %s (%s) until it is "
                     "cleared: " SERVICES_CLEAR_COMMAND,
                     name, worker, command_time(rest->since).s, failure_word(rest->class), service,
                     name);
            } else if (rest != NULL) {
                line(out, "profile %s of %s rests until %s (%s)", name, worker,
                     command_time(rest->until).s, failure_word(rest->class));
            }
        }
        if (!rests && n < sizeof(able)) {
            n += (size_t)snprintf(able + n, sizeof(able) - n, "%s%s", n > 0 ? ", " : "", name);
        }
    }
    if (n > 0) {
        line(out, "profiles that may be tried: %s", able);
    }
}

static void kept_text(const struct service_view *view, struct buf *out)
{
    if (view->paused > 0) {
        line(out, "paused by %s since %s: %s; baton services resume %s", view->pause.by.s,
             command_time(view->pause.at).s, view->pause.reason, view->service->name.s);
    }
    for (size_t i = 0; i < view->n_circuits; i++) {
        const struct circuit_note *note = &view->circuits[i].note;
        line(out, "circuit of %s %s since %s (%s)", note->worker.s,
             note->state == CIRCUIT_open ? "open" : "half open", command_time(note->since).s,
             failure_word(note->class));
    }
    for (size_t i = 0; i < view->n_blocked; i++) {
        const struct blocked_note *note = &view->blocked[i];
        for (size_t k = 0; k < note->count; k++) {
            line(out, "%s cannot write to %s (%s)", note->worker.s, note->targets[k].topic,
                 baton_code_word(note->targets[k].code));
        }
    }
}

/* In one word what matters most. */
static const char *now_word(const struct service_view *view, const struct baton_error *lacks)
{
    if (view->n_blocked > 0) {
        return "blocked";
    }
    if (lacks->code != BATON_OK) {
        return baton_code_word(lacks->code);
    }
    if (view->paused > 0) {
        return "paused";
    }
    if (view->n_workers == 0) {
        return "no worker";
    }
    if (view->n_circuits > 0) {
        return "circuit";
    }
    if (service_view_stalled(view)) {
        return "stalled";
    }
    const struct wall_ms now = wall_now();
    for (size_t i = 0; i < view->service->n_profiles; i++) {
        for (size_t k = 0; k < view->n_rests; k++) {
            if (rest_note_find(&view->rests[k], view->service->profiles[i].name.s, now) != NULL) {
                return "rests";
            }
        }
    }
    return "ok";
}

void service_row(const struct service_view *view, const struct baton_error *lacks,
                 struct table *table, struct buf *below)
{
    struct buf roles = BUF_INIT;
    table_text(table, view->service->name.s);
    table_int(table, (int64_t)view->n_workers);
    table_int(table, view->lag);
    table_whole(table, view->oldest_ms >= 0 ? quantity_age_text(view->oldest_ms).s : NULL);
    table_int(table, view->turns[TURN_queued]);
    table_int(table, view->turns[TURN_running]);
    table_int(table, view->turns[TURN_parked]);
    table_text(table, now_word(view, lacks));
    roles_text(view->service->roles, &roles);
    buf_printf(below, "\n%s: %.*s\n", view->service->name.s, (int)roles.len, roles.data);
    buf_done(&roles);
    workers_text(view, below);
    left_text(view, below);
    kept_text(view, below);
    profiles_text(view, below);
    if (lacks->code != BATON_OK) {
        line(below, "%s", lacks->text);
    }
}
