/*
 * `baton services [list] | pause | resume | clear`.
 * In: deploy/baton.c
 * Out: topics/service_view.c, producer/operate.c
 */
#include "producer/cmd_services.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "common/base/quantity.h"
#include "common/base/text.h"
#include "producer/operate.h"
#include "topics/service_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- list ---- */

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

static void rests_text(const struct service_view *view, struct buf *out)
{
    for (size_t i = 0; i < view->service->n_profiles; i++) {
        const char *name = view->service->profiles[i].name.s;
        for (size_t k = 0; k < view->n_rests; k++) {
            const struct rest_profile *rest = rest_of(&view->rests[k], name);
            if (rest == NULL) {
                continue;
            }
            buf_printf(out, "%sprofile %s of %s ", out->len > 0 ? ", " : "", name,
                       view->rests[k].worker.s);
            if (rest_profile_refused(rest)) {
                buf_printf(out, "refused since %s (%s) until it is cleared: ",
                           command_time(rest->since).s, failure_word(rest->class));
                buf_printf(out, SERVICES_CLEAR_COMMAND, view->service->name.s, name);
            } else {
                buf_printf(out, "rests until %s (%s)", command_time(rest->until).s,
                           failure_word(rest->class));
            }
        }
    }
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

static void partitions_text(const struct log_group_member *worker, struct buf *out)
{
    text_add(out, worker->worker, strlen(worker->worker), 0);
    buf_add_text(out, " (");
    for (size_t p = 0; p < worker->count; p++) {
        buf_printf(out, "%s%d", p == 0 ? "" : ",", (int)worker->partitions[p]);
    }
    buf_add_text(out, worker->count == 0 ? "none)" : ")");
}

static void view_row(struct table *table, const struct service_view *view,
                     const struct baton_error *lacks)
{
    struct buf text = BUF_INIT;
    roles_text(view->service->roles, &text);
    table_text(table, view->service->name.s);
    table_bytes(table, text.data, text.len);
    buf_clear(&text);
    for (size_t i = 0; i < view->n_workers; i++) {
        buf_add_text(&text, i == 0 ? "" : " ");
        partitions_text(&view->workers[i], &text);
    }
    if (view->paused > 0) {
        buf_add_text(&text, text.len > 0 ? ", paused" : "paused");
    }
    for (size_t i = 0; i < view->n_circuits; i++) {
        const struct circuit_note *note = &view->circuits[i].note;
        buf_printf(&text, "%scircuit of %s %s (%s)", text.len > 0 ? ", " : "", note->worker.s,
                   note->state == CIRCUIT_open ? "open" : "half open", failure_word(note->class));
    }
    for (size_t i = 0; i < view->n_blocked; i++) {
        const struct blocked_note *note = &view->blocked[i];
        for (size_t k = 0; k < note->count; k++) {
            buf_printf(&text, "%s%s cannot write to ", text.len > 0 ? ", " : "", note->worker.s);
            text_add(&text, note->targets[k].topic, strlen(note->targets[k].topic), 0);
            buf_printf(&text, " (%s)", baton_code_word(note->targets[k].code));
        }
    }
    rests_text(view, &text);
    if (lacks->code != BATON_OK) {
        buf_add_text(&text, text.len > 0 ? ", " : "");
        text_add(&text, lacks->text, strlen(lacks->text), 0);
    }
    if (text.len > 0) {
        table_bytes(table, text.data, text.len);
    } else {
        table_text(table, NULL);
    }
    buf_done(&text);
    table_int(table, view->lag);
    table_text(table, view->oldest_ms >= 0 ? quantity_duration_text(view->oldest_ms / 1000 * 1000).s
                                           : NULL);
    table_int(table, view->turns[TURN_queued]);
    table_int(table, view->turns[TURN_running]);
    table_int(table, view->turns[TURN_parked]);
}

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
            view_row(table, &view, &lacks);
        }
        service_view_done(&view);
    }
    return rc;
}

static int run_list(struct command *cmd)
{
    static const char *const titles[] = {"SERVICE", "ROLES",  "WORKERS", "WAITING",
                                         "OLDEST",  "QUEUED", "RUNNING", "PARKED"};
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
        command_table(cmd, table);
    }
    table_free(table);
    buf_done(&out);
    session_done(&session);
    return status;
}

#define LIST_TEXT                                                                                  \
    "WORKERS are those that live, with their partitions. WAITING are handoffs that no worker has " \
    "taken in yet, and OLDEST the age of the oldest of "                                           \
    "them: the numbers to scale on. QUEUED, RUNNING and PARKED are turns that were taken in. A "   \
    "circuit that is open means that a worker's provider is down: turns wait for it, or go on "    \
    "at a fallback, and the worker tries by itself when it is back. A worker that cannot write "   \
    "to a "                                                                                        \
    "topic says which and why: its turns wait, and go on by themselves when that is mended. A "    \
    "credential profile whose credential was refused is taken by no other turn until it is "       \
    "cleared: by `baton services clear`, by a probe of `baton doctor --probe` that succeeds, by "  \
    "another credential in its place, or by an attempt with it that succeeds; they take another "  \
    "one, or go on elsewhere. One whose quota is spent rests until the time that is shown, or "    \
    "until its worker is started again. A service "                                                \
    "whose own topic is missing, or closed to you, says so, and shows what can be seen of it."

static const struct baton_command cmd_list = {
    .name = "list",
    .summary = "list services with workers, what waits, and turns by state",
    .usage = "[--json]",
    .description = LIST_TEXT,
    .examples = "baton services list\n",
    .run = run_list,
};

/* ---- pause, resume, clear ---- */

static const char *done_word(enum control_kind kind)
{
    return kind == CONTROL_pause ? "paused" : kind == CONTROL_resume ? "resumed" : "cleared";
}

static void switched(struct command *cmd, enum control_kind kind, const char *service,
                     const struct operated *operated)
{
    struct buf out = BUF_INIT;
    const char *status = operated->answered ? done_word(kind) : "queued";
    if (cmd->json) {
        struct jsonw w = jsonw_to(&out);
        jsonw_begin_object(&w);
        jsonw_key_text(&w, "service", service);
        jsonw_key_text(&w, "status", status);
        jsonw_end(&w);
        buf_add_char(&out, '\n');
    } else {
        buf_printf(&out, "%s  %s%s\n", status, service,
                   operated->answered ? "" : ": not every partition's worker has answered yet");
    }
    command_print(cmd, &out);
    buf_done(&out);
}

/* The one that is named; NULL: every one. */
static baton_code check_profile(const struct config_service *service, const char *profile,
                                struct control *control, struct baton_error *err)
{
    bool known = profile == NULL;
    for (size_t i = 0; i < service->n_profiles; i++) {
        known = known || strcmp(service->profiles[i].name.s, profile) == 0;
    }
    if (!known) {
        return baton_fail(err, BATON_E_invalid_request, "service %s has no profile '%s'",
                          service->name.s, text_quote_of(profile).s);
    }
    control->profile = plain_id_of(profile != NULL ? profile : "");
    return BATON_OK;
}

static int run_switch(struct command *cmd, enum control_kind kind)
{
    struct session session = {0};
    struct baton_error err = {BATON_OK, ""};
    struct control control = {.kind = kind};
    struct operated operated;
    const char *service = cmd->args[0];
    const char *given = command_text(cmd, "reason");
    const char *profile = kind == CONTROL_clear ? command_text(cmd, "profile") : NULL;
    char reason[LIMIT_REASON + 1] = "";
    const struct config_service *configured = NULL;
    int status = 0;
    if (profile != NULL && !plain_id_valid(profile, strlen(profile))) {
        return command_usage(cmd, "%s is no profile's name", text_quote_of(profile).s);
    }
    if (given != NULL && (given[0] == '\0' || strlen(given) > LIMIT_REASON)) {
        return command_usage(cmd, "a reason has 1 to %d bytes", LIMIT_REASON);
    }
    if (given != NULL) {
        snprintf(reason, sizeof(reason), "%s", given);
        control.reason = reason;
    }
    baton_code rc = session_open_signing(cmd, &session, &err);
    if (rc == BATON_OK &&
        (rc = config_service_get(session.config, service, &configured, &err)) == BATON_OK &&
        (rc = check_profile(configured, profile, &control, &err)) == BATON_OK &&
        (rc = identity_may_operate(&session.identity, service, &err)) == BATON_OK &&
        (rc = operate_service(&session, &control, service, command_int(cmd, "timeout"), &operated,
                              &err)) == BATON_OK &&
        operated.answered && operated.code != BATON_OK) {
        rc = baton_fail(&err, operated.code, "%s: %s", service, baton_code_text(operated.code));
    }
    if (rc == BATON_OK) {
        switched(cmd, kind, service, &operated);
    } else {
        status = command_fail(cmd, rc, &err);
    }
    session_done(&session);
    return status;
}

static int run_pause(struct command *cmd)
{
    return run_switch(cmd, CONTROL_pause);
}

static int run_resume(struct command *cmd)
{
    return run_switch(cmd, CONTROL_resume);
}

static int run_clear(struct command *cmd)
{
    return run_switch(cmd, CONTROL_clear);
}

#define TIMEOUT_OPTION                                                                             \
    {                                                                                              \
        .name = "timeout", .argument = "DURATION", .kind = OPTION_duration,                        \
        .fallback = OPERATE_TIMEOUT,                                                               \
        .help = "How long to wait for the answers; not at all where no worker lives."              \
    }

/* clang-format off */
static const struct command_option pause_options[] = {
    {.name = "reason", .argument = "TEXT", .kind = OPTION_text, .required = true,
     .help = "Why, kept with the pause."},
    TIMEOUT_OPTION,
};
/* clang-format on */

/* clang-format off */
static const struct command_option resume_options[] = {
    {.name = "reason", .argument = "TEXT", .kind = OPTION_text, .help = "Why."},
    TIMEOUT_OPTION,
};
/* clang-format on */

static const struct baton_command cmd_pause = {
    .name = "pause",
    .summary = "let a service take no further handoffs",
    .usage = "SERVICE --reason TEXT [--json]",
    .description =
        "Workers of the service take no further handoffs until it is resumed, also after a "
        "restart. What was taken in goes on; cancel and replay go on, too. Who may operate "
        "the service may do this.",
    .options = pause_options,
    .n_options = COUNT_OF(pause_options),
    .examples = "baton services pause example --reason \"provider maintenance\"\n",
    .args_min = 1,
    .args_max = 1,
    .run = run_pause,
};

static const struct baton_command cmd_resume = {
    .name = "resume",
    .summary = "let a paused service take handoffs again",
    .usage = "SERVICE [--reason TEXT] [--json]",
    .description = "Ends a pause.",
    .options = resume_options,
    .n_options = COUNT_OF(resume_options),
    .examples = "baton services resume example\n",
    .args_min = 1,
    .args_max = 1,
    .run = run_resume,
};

/* clang-format off */
static const struct command_option clear_options[] = {
    {.name = "profile", .argument = "NAME", .kind = OPTION_text, .help = "That credential profile only."},
    {.name = "reason", .argument = "TEXT", .kind = OPTION_text, .help = "Why."},
    TIMEOUT_OPTION,
};
/* clang-format on */

static const struct baton_command cmd_clear = {
    .name = "clear",
    .summary = "let credential profiles that were refused be tried again",
    .usage = "SERVICE [--profile NAME] [--json]",
    .description =
        "A credential profile whose credential its provider refused rests until somebody says that "
        "it is mended. This says so to every worker of the service, also to one that starts "
        "later. Who may operate the service may do this.",
    .options = clear_options,
    .n_options = COUNT_OF(clear_options),
    .examples = "baton services clear example\nbaton services clear example --profile default\n",
    .args_min = 1,
    .args_max = 1,
    .run = run_clear,
};

static const struct baton_command *const subcommands[] = {&cmd_list, &cmd_pause, &cmd_resume,
                                                          &cmd_clear};

const struct baton_command cmd_services = {
    .name = "services",
    .summary = "list services with their workers; pause and resume them, clear refused profiles",
    .usage = "[list] [--json]\npause|resume|clear SERVICE",
    .description = "Without a word: the same as `baton services list`. " LIST_TEXT,
    .subcommands = subcommands,
    .n_subcommands = COUNT_OF(subcommands),
    .examples = "baton services\nbaton services pause example --reason maintenance\n"
                "baton services clear example\n",
    .run = run_list,
};
