/*
 * One service of `baton services --json`: an object with what its workers have and run, and what keeps its turns.
 * In: producer/cmd_services_list.c  Out: topics/service_view.h
 */
#include "producer/service_shown.h"

#include "common/base/jsonw.h"
#include "producer/cmd_services.h"
#include "topics/service_view.h"

#include <stdio.h>
#include <string.h>

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
    const struct wall_ms now = wall_now();
    for (size_t i = 0; i < view->service->n_profiles; i++) {
        const char *name = view->service->profiles[i].name.s;
        jsonw_begin_object(w);
        jsonw_key_text(w, "profile", name);
        jsonw_key(w, "rests");
        jsonw_begin_array(w);
        for (size_t k = 0; k < view->n_rests; k++) {
            const struct rest_profile *rest = rest_note_find(&view->rests[k], name, now);
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

void service_json(const struct service_view *view, const struct baton_error *lacks, struct buf *out)
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
    jsonw_key_bool(&w, "stalled", service_view_stalled(view));
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
