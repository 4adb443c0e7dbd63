/*
 * `baton turns cancel`.
 * In: producer/cmd_turns.c
 * Out: producer/operate.c
 */
#include "producer/cmd_turns.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "producer/operate.h"

#include <string.h>

/* The turn's origin, or who operates the service of its birth or the one that has it. */
static baton_code may_cancel(const struct session *session, const struct turn_life *life,
                             const char *service, struct baton_error *err)
{
    if (life->found && strcmp(life->now.origin.s, session->identity.name) == 0) {
        return BATON_OK;
    }
    if (life->found &&
        identity_may_operate(&session->identity, life->now.service.s, NULL) == BATON_OK) {
        return BATON_OK;
    }
    /* Of a turn that the log does not know the origin is not known either: its owner judges. */
    return life->found ? identity_may_operate(&session->identity, service, err) : BATON_OK;
}

struct cancelling {
    struct turn_id id;
    struct turn_life life;
    const char *service; /* whose workers own it */
};

static baton_code target_of(struct command *cmd, struct session *session, struct cancelling *c,
                            struct baton_error *err)
{
    const char *waits_at = NULL;
    const char *given = command_text(cmd, "service");
    baton_code rc = turns_find(session, cmd->args[0], &c->id, &c->life, &waits_at, err);
    if (rc == BATON_OK) {
        c->service = c->life.service;
        const struct turn_record *now = &c->life.now;
        if (!turn_state_open(now->state) && now->state != TURN_delegated) {
            return baton_fail(err, BATON_E_turn_closed, "turn %s is %s already", now->id.s,
                              turn_state_word(now->state));
        }
        return BATON_OK;
    }
    c->service = waits_at != NULL ? waits_at : given;
    bool id_is_whole = waits_at != NULL || strlen(cmd->args[0]) == 32;
    if (rc != BATON_E_turn_not_found || c->service == NULL || !id_is_whole) {
        return rc;
    }
    /* It is kept by the owner until the handoff comes. */
    return config_service_get(session->config, c->service, NULL, err);
}

static void print(struct command *cmd, const struct cancelling *c, const char *status,
                  const char *note)
{
    struct buf out = BUF_INIT;
    if (cmd->json) {
        struct jsonw w = jsonw_to(&out);
        jsonw_begin_object(&w);
        jsonw_key_text(&w, "turn_id", c->id.s);
        jsonw_key_text(&w, "status", status);
        jsonw_key_text(&w, "service", c->service);
        jsonw_key_text(&w, "role", c->life.found ? role_word(c->life.now.role) : NULL);
        jsonw_key_text(&w, "note", note);
        jsonw_end(&w);
        buf_add_char(&out, '\n');
    } else {
        buf_printf(&out, "%s  %s at %s%s%s\n", status, c->id.s, c->service,
                   note != NULL ? ": " : "", note != NULL ? note : "");
    }
    command_print(cmd, &out);
    buf_done(&out);
}

static baton_code cancel(struct command *cmd, struct session *session, struct cancelling *c,
                         struct baton_error *err)
{
    struct control control = {.kind = CONTROL_cancel, .turn_id = c->id};
    struct operated operated;
    char reason[LIMIT_REASON + 1];
    size_t len = strlen(command_text(cmd, "reason"));
    if (len == 0 || len > LIMIT_REASON) {
        return baton_fail(err, BATON_E_invalid_request, "a reason has 1 to %d bytes", LIMIT_REASON);
    }
    memcpy(reason, command_text(cmd, "reason"), len + 1);
    control.reason = reason;
    baton_code rc = may_cancel(session, &c->life, c->service, err);
    if (rc == BATON_OK) {
        rc = operate_turn(session, &control, c->service, c->life.found ? c->life.now.run_id.s : "",
                          command_int(cmd, "timeout"), &operated, err);
    }
    if (rc != BATON_OK) {
        return rc;
    }
    if (operated.to.s[0] != '\0') {
        const struct config_service *to = config_service_find(session->config, operated.to.s);
        c->service = to != NULL ? to->name.s : c->service; /* it was sent after the turn */
    }
    if (!operated.answered) {
        print(cmd, c, "queued", "no worker has answered yet; the cancel is in the log");
    } else if (operated.code == BATON_OK) {
        print(cmd, c, "cancelled", NULL);
    } else if (operated.code == BATON_E_turn_not_found) {
        print(cmd, c, "queued", "it is settled when its handoff is taken in");
    } else {
        return baton_fail(err, operated.code, "turn %s at %s: %s", c->id.s, c->service,
                          baton_code_text(operated.code));
    }
    return BATON_OK;
}

static int run(struct command *cmd)
{
    struct session session = {0};
    struct baton_error err = {BATON_OK, ""};
    struct cancelling c = {.service = NULL};
    int status = 0;
    baton_code rc;
    if (command_text(cmd, "reason")[0] == '\0') {
        return command_usage(cmd, "--reason is empty: say why, for who reads it later");
    }
    if ((rc = session_open_signing(cmd, &session, &err)) == BATON_OK &&
        (rc = target_of(cmd, &session, &c, &err)) == BATON_OK) {
        rc = cancel(cmd, &session, &c, &err);
    }
    if (rc != BATON_OK) {
        status = command_fail(cmd, rc, &err);
    }
    turn_life_done(&c.life);
    session_done(&session);
    return status;
}

/* clang-format off */
static const struct command_option options[] = {
    {.name = "reason", .argument = "TEXT", .kind = OPTION_text, .required = true,
     .help = "Why, kept with the turn."},
    {.name = "service", .letter = 's', .argument = "S", .kind = OPTION_text,
     .help = "Where the turn is to be expected, if no log knows it yet."},
    {.name = "timeout", .argument = "DURATION", .kind = OPTION_duration, .fallback = OPERATE_TIMEOUT,
     .help = "How long to wait for the owner's answer; not at all where no worker lives."},
};
/* clang-format on */

const struct baton_command cmd_turns_cancel = {
    .name = "cancel",
    .summary = "cancel a turn, for good",
    .usage = "ID --reason TEXT [--timeout DURATION] [--json]",
    .description =
        "Sends a signed cancel to the service that has the turn. Its executor is killed "
        "first, then the turn is cancelled. Of a turn that was not taken in yet the cancel "
        "is kept, and settles it when it comes. Who published the turn or operates the "
        "service may do this.",
    .options = options,
    .n_options = COUNT_OF(options),
    .examples = "baton turns cancel 7f3a90 --reason \"wrong branch\"\n",
    .exits = "0 cancelled, or queued where no worker answered; 6 the turn has ended.\n",
    .args_min = 1,
    .args_max = 1,
    .run = run,
};
