/*
 * `baton services [list]`: the fleet's front page. A table of numbers, and below it each service: what its
 * workers have and run, and what keeps its turns.
 * In: producer/cmd_services.c
 * Out: topics/service_view.c, producer/session.c
 */
#include "producer/cmd_services.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/quantity.h"
#include "common/base/text.h"
#include "producer/session.h"
#include "topics/service_view.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define RUNS_SHOWN 4 /* turns of one worker, by name */

/* ---- for scripts ---- */

static void circuits_json(struct jsonw *w, const struct service_view *view)
{
    jsonw_key(w, "circuits");
    jsonw_begin_array(w);
    for (size_t i = 0; i < view->n_circuits; i++) {
        const struct service_circuit *circuit = &view->circuits[i];
        jsonw_begin_object(w);
        jsonw_key_text(w, "worker", circuit->note.worker.s);
        jsonw_key_text(w, "state", circuit_state_word(circuit->note.state));
        jsonw_key_text(w, "class", failure_word(circuit->note.class));
        jsonw_key_text(w, "since", wall_text(circuit->note.since).s);
        jsonw_key(w, "partitions");
        jsonw_begin_array(w);
        for (size_t p = 0; p < circuit->count; p++) {
            jsonw_int(w, circuit->partitions[p]);
        }
        jsonw_end(w);
        jsonw_end(w);
    }
    jsonw_end(w);
}

static void blocked_json(struct jsonw *w, const struct service_view *view)
{
    jsonw_key(w, "blocked");
    jsonw_begin_array(w);
    for (size_t i = 0; i < view->n_blocked; i++) {
        for (size_t k = 0; k < view->blocked[i].count; k++) {
            const struct blocked_target *target = &view->blocked[i].targets[k];
            jsonw_begin_object(w);
            jsonw_key_text(w, "worker", view->blocked[i].worker.s);
            jsonw_key_text(w, "topic", target->topic);
            jsonw_key_text(w, "code", baton_code_word(target->code));
            jsonw_key_text(w, "cause", target->cause);
            jsonw_key_text(w, "since", wall_text(target->since).s);
            jsonw_end(w);
        }
    }
    jsonw_end(w);
}

/* What a worker's note says of a profile now; NULL: it may be tried. */
static const struct rest_profile *rest_of(const struct rest_note *note, const char *profile)
{
    const struct wall_ms now = wall_now();
    for (size_t i = 0; i < note->count; i++) {
        if (strcmp(note->profiles[i].name.s, profile) == 0 &&
            rest_profile_rests(&note->profiles[i], now)) {
            return &note->profiles[i];
        }
    }
    return NULL;
}

/* One that is refused is tried again once somebody has said so. */
static void next_try_json(struct jsonw *w, const char *service, const struct rest_profile *rest)
{
    char command[2 * SERVICE_MAX + ID_MAX];
    jsonw_key_text(w, "state", rest_profile_refused(rest) ? "refused" : "rests");
    jsonw_key(w, "next_try");
    if (rest_profile_refused(rest)) {
        jsonw_null(w);
        snprintf(command, sizeof(command), SERVICES_CLEAR_COMMAND, service, rest->name.s);
        jsonw_key_text(w, "cleared_by", command);
    } else {
        jsonw_text(w, wall_text(rest->until).s);
    }
}

/* Each credential profile, and at which workers it rests. */
static void profiles_json(struct jsonw *w, const struct service_view *view)
{
    jsonw_key(w, "profiles");
    jsonw_begin_array(w);
    for (size_t i = 0; i < view->service->n_profiles; i++) {
        const char *name = view->service->profiles[i].name.s;
        jsonw_begin_object(w);
        jsonw_key_text(w, "profile", name);
        jsonw_key(w, "rests");
        jsonw_begin_array(w);
        for (size_t k = 0; k < view->n_rests; k++) {
            const struct rest_profile *rest = rest_of(&view->rests[k], name);
            if (rest != NULL) {
                jsonw_begin_object(w);
                jsonw_key_text(w, "worker", view->rests[k].worker.s);
                jsonw_key_text(w, "class", failure_word(rest->class));
                jsonw_key_text(w, "since", wall_text(rest->since).s);
                next_try_json(w, view->service->name.s, rest);
                jsonw_end(w);
            }
        }
        jsonw_end(w);
        jsonw_end(w);
    }
    jsonw_end(w);
}

static void turn_json(struct jsonw *w, const struct service_turn *turn)
{
    jsonw_begin_object(w);
    jsonw_key_text(w, "turn_id", turn->id.s);
    jsonw_key_text(w, "role", role_word(turn->role));
    jsonw_key_text(w, "task_id", turn->task.s);
    jsonw_key_text(w, "state", turn_state_word(turn->state));
    jsonw_key_int(w, "attempt", turn->attempt);
    jsonw_key_text(w, "since", wall_text(turn->since).s);
    jsonw_end(w);
}

/* lacks: what of it could not be read, and so is empty here; BATON_OK: nothing. */
static void view_json(const struct service_view *view, const struct baton_error *lacks,
                      struct buf *out)
{
    struct jsonw w = jsonw_to(out);
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "service", view->service->name.s);
    jsonw_key(&w, "roles");
    jsonw_begin_array(&w);
    for (int i = 0; i < ROLE_COUNT; i++) {
        if ((view->service->roles & ROLE_BIT(i)) != 0) {
            jsonw_text(&w, role_word((enum role)i));
        }
    }
    jsonw_end(&w);
    jsonw_key(&w, "workers");
    jsonw_begin_array(&w);
    for (size_t i = 0; i < view->n_workers; i++) {
        jsonw_begin_object(&w);
        jsonw_key_text(&w, "worker", view->workers[i].worker);
        jsonw_key(&w, "partitions");
        jsonw_begin_array(&w);
        for (size_t p = 0; p < view->workers[i].count; p++) {
            jsonw_int(&w, view->workers[i].partitions[p]);
        }
        jsonw_end(&w);
        jsonw_key(&w, "running");
        jsonw_begin_array(&w);
        for (size_t k = 0; k < view->n_running; k++) {
            if (strcmp(view->running[k].worker.s, view->workers[i].worker) == 0) {
                turn_json(&w, &view->running[k]);
            }
        }
        jsonw_end(&w);
        jsonw_end(&w);
    }
    jsonw_end(&w);
    jsonw_key_int(&w, "partitions", view->partitions);
    jsonw_key_bool(&w, "paused", view->paused > 0);
    circuits_json(&w, view);
    blocked_json(&w, view);
    profiles_json(&w, view);
    jsonw_key_int(&w, "lag", view->lag);
    jsonw_key(&w, "oldest_ms");
    if (view->oldest_ms >= 0) {
        jsonw_int(&w, view->oldest_ms);
    } else {
        jsonw_null(&w);
    }
    jsonw_key_text(&w, "oldest_turn", view->waiting.s[0] != '\0' ? view->waiting.s : NULL);
    jsonw_key(&w, "oldest_open");
    if (view->oldest.id.s[0] != '\0') {
        turn_json(&w, &view->oldest);
    } else {
        jsonw_null(&w);
    }
    for (int i = 0; i < TURN_STATE_COUNT; i++) {
        if (turn_state_open((enum turn_state)i)) {
            jsonw_key_int(&w, turn_state_word((enum turn_state)i), view->turns[i]);
        }
    }
    if (lacks->code != BATON_OK) {
        jsonw_key_text(&w, "code", baton_code_word(lacks->code));
        jsonw_key_text(&w, "error", lacks->text);
    }
    jsonw_end(&w);
    buf_add_char(out, '\n');
}

/* ---- for people ---- */

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
    if (view->n_workers == 0 && view->partitions > 0) {
        line(out, "no worker runs: baton worker --service %s", view->service->name.s);
    }
}

/* Turns that the log shows running at who is not in the group: it stops, or is gone. */
static void left_text(const struct service_view *view, struct buf *out)
{
    for (size_t i = 0; i < view->n_running; i++) {
        const struct service_turn *turn = &view->running[i];
        bool lives = false;
        for (size_t k = 0; k < view->n_workers; k++) {
            lives = lives || strcmp(view->workers[k].worker, turn->worker.s) == 0;
        }
        if (!lives) {
            line(out, "%.12s (%s of %s) was begun by %s, which is not in its group", turn->id.s,
                 role_word(turn->role), turn->task.s, turn->worker.s);
        }
    }
}

static void profiles_text(const struct service_view *view, struct buf *out)
{
    const char *service = view->service->name.s;
    char able[512] = "";
    size_t n = 0;
    for (size_t i = 0; i < view->service->n_profiles; i++) {
        const char *name = view->service->profiles[i].name.s;
        bool rests = false;
        for (size_t k = 0; k < view->n_rests; k++) {
            const struct rest_profile *rest = rest_of(&view->rests[k], name);
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
    for (size_t i = 0; i < view->service->n_profiles; i++) {
        for (size_t k = 0; k < view->n_rests; k++) {
            if (rest_of(&view->rests[k], view->service->profiles[i].name.s) != NULL) {
                return "rests";
            }
        }
    }
    return "ok";
}

static void view_row(struct table *table, struct buf *below, const struct service_view *view,
                     const struct baton_error *lacks)
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

/* ---- reading ---- */

/* A topic of one service that is missing, or closed to this principal, hides no other service. */
static bool of_one_service(baton_code rc)
{
    return rc == BATON_E_topic_missing || rc == BATON_E_not_permitted;
}

/* As much of it as there is; *ret_none: nothing at all. */
static baton_code read_view(struct session *session, const struct config_service *service,
                            struct service_view *ret_view, struct baton_error *ret_lacks,
                            bool *ret_none, struct baton_error *err)
{
    struct baton_error more = {BATON_OK, ""};
    baton_code rc =
        service_view_read(session->log, session->config, service, true, ret_view, ret_lacks);
    if (of_one_service(rc)) {
        rc = service_view_read(session->log, session->config, service, false, ret_view, &more);
        if (of_one_service(rc)) {
            *ret_view = (struct service_view){.service = service, .oldest_ms = -1};
            *ret_none = true;
            rc = BATON_OK;
        }
    } else if (rc == BATON_OK) {
        ret_lacks->code = BATON_OK;
    } else {
        more = *ret_lacks;
    }
    if (rc != BATON_OK) {
        *err = more;
    }
    return rc;
}

static baton_code list_services(struct command *cmd, struct session *session, struct table *table,
                                struct buf *out, struct baton_error *err)
{
    baton_code rc = BATON_OK;
    size_t empty = 0;
    for (size_t i = 0; rc == BATON_OK && i < session->config->n_services; i++) {
        struct baton_error lacks = {BATON_OK, ""};
        struct service_view view;
        bool none = false;
        rc = read_view(session, &session->config->services[i], &view, &lacks, &none, err);
        if (rc != BATON_OK) {
            break;
        }
        empty += none;
        if (empty == session->config->n_services) {
            *err = lacks; /* another prefix, other brokers: it is not about one service */
            rc = lacks.code;
        }
        if (cmd->json) {
            view_json(&view, &lacks, out);
        } else {
            view_row(table, out, &view, &lacks);
        }
        service_view_done(&view);
    }
    return rc;
}

int services_list(struct command *cmd)
{
    static const char *const titles[] = {"SERVICE", "WORKERS", "WAITING", "OLDEST",
                                         "QUEUED",  "RUNNING", "PARKED",  "NOW"};
    struct session session = {0};
    struct baton_error err = {BATON_OK, ""};
    struct table *table = NULL;
    struct buf out = BUF_INIT;
    int status = 0;
    baton_code rc = session_open(cmd, &session, &err);
    if (rc == BATON_OK && (table = table_new(titles, COUNT_OF(titles))) == NULL) {
        rc = baton_fail(&err, BATON_E_no_memory, "no memory for a table");
    }
    if (rc == BATON_OK) {
        rc = list_services(cmd, &session, table, &out, &err);
    }
    if (rc != BATON_OK) {
        status = command_fail(cmd, rc, &err);
    } else if (cmd->json) {
        command_print(cmd, &out);
    } else if (session.config->n_services == 0) {
        command_note(cmd, "no service is configured");
    } else {
        if (command_table(cmd, table)) {
            command_print(cmd, &out);
        }
    }
    table_free(table);
    buf_done(&out);
    session_done(&session);
    return status;
}
