/*
 * `baton services [list] | pause | resume | clear`.
 * In: deploy/baton.c
 * Out: producer/cmd_services_list.c, producer/operate.c
 */
#include "producer/cmd_services.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "producer/operate.h"

#include <stdio.h>
#include <string.h>

/* ---- list ---- */

#define LIST_TEXT                                                                                  \
    "The table has the numbers to scale on: WORKERS live, WAITING are handoffs that no worker "    \
    "has "                                                                                         \
    "taken in yet, and OLDEST is the age of the oldest of them. QUEUED, RUNNING and PARKED are "   \
    "turns that were taken in. NOW is what matters most: ok, no worker, paused, circuit, rests, "  \
    "blocked, or why it cannot be seen. Below it stands each service with its roles: what each "   \
    "worker has and runs, and what keeps its turns. A "                                            \
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
    .summary = "show services: their workers, what waits, what runs, what keeps it",
    .usage = "[--json]",
    .description = LIST_TEXT,
    .examples = "baton services list\n",
    .run = services_list,
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
                   operated->answered ? ""
                   : operated->nobody ? ": no worker runs; it holds as soon as one does"
                                      : ": not every partition's worker has answered yet");
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
    .run = services_list,
};
