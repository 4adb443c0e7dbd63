/*
 * `baton turns why`: what a turn waits for, who must act, and which command changes that.
 * In: producer/cmd_turns.c  Out: producer/why_print.c, topics/service_view.h
 */
#include "producer/cmd_turns.h"

#include "common/base/check.h"
#include "producer/run_log.h"
#include "producer/why.h"

#include <string.h>

/* Where the turn is: its notes say what keeps it there. */
static const struct config_service *service_of(const struct session *session,
                                               const struct why_sources *sources)
{
    const struct turn_life *life = sources->life;
    const char *name = !life->found                        ? sources->waits_at
                       : life->now.state == TURN_delegated ? life->now.to_service.s
                                                           : life->service;
    return config_service_find(session->config, name);
}

/* What cannot be read is not said: the rest is worth knowing. */
static void read_around(struct command *cmd, struct session *session, struct why_sources *sources,
                        struct service_view *view, struct run **ret_run)
{
    struct baton_error err = {BATON_OK, ""};
    const struct config_service *service = service_of(session, sources);
    const char *run_id = sources->life->found ? sources->life->now.run_id.s : "";
    if (service != NULL &&
        service_view_read(session->log, session->config, service, true, view, &err) == BATON_OK) {
        sources->view = view;
    } else if (service != NULL) {
        command_note(cmd, "how service %s stands cannot be read: %s", service->name.s, err.text);
    }
    if (run_id[0] != '\0' &&
        run_log_find(session->log, session->config, run_id, ret_run, &err) == BATON_OK) {
        sources->run = *ret_run;
        sources->still = run_log_still(session->log, session->config, LOG_GROUP_MS);
    } else if (run_id[0] != '\0') {
        command_note(cmd, "its run %s cannot be read: %s", run_id, err.text);
    }
}

static void explain(struct command *cmd, struct session *session, struct why_sources *sources)
{
    struct service_view view = {0};
    struct run *run = NULL;
    struct buf out = BUF_INIT;
    read_around(cmd, session, sources, &view, &run);
    if (cmd->json) {
        why_print_json(sources, &out);
    } else {
        why_print_text(sources, command_width(), &out);
    }
    command_print(cmd, &out);
    buf_done(&out);
    run_free(run);
    service_view_done(&view);
}

static int run_why(struct command *cmd)
{
    struct session session = {0};
    struct baton_error err = {BATON_OK, ""};
    struct turn_life life = {.found = false};
    struct turn_id id;
    const char *waits_at = NULL;
    int status = 0;
    baton_code rc = session_open(cmd, &session, &err);
    if (rc == BATON_OK) {
        rc = turns_find(&session, cmd->args[0], &id, &life, &waits_at, &err);
    }
    if (rc == BATON_OK || (rc == BATON_E_turn_not_found && waits_at != NULL)) {
        struct why_sources sources = {.config = session.config,
                                      .turn_id = id.s,
                                      .life = &life,
                                      .waits_at = waits_at,
                                      .now = wall_now()};
        explain(cmd, &session, &sources);
    } else {
        status = command_fail(cmd, rc, &err);
    }
    turn_life_done(&life);
    session_done(&session);
    return status;
}

const struct baton_command cmd_turns_why = {
    .name = "why",
    .summary = "explain what a turn waits for and who must act",
    .usage = "ID [--json]",
    .description =
        "In sentences: what happened, attempt by attempt, over all services that had the turn; "
        "what "
        "it waits for now, and until when; who must act; and the commands that change that. Reads "
        "topics alone, so it answers when the worker's host is gone. ID is a turn id, or its first "
        "digits (at least 6). Times are UTC.\n\n"
        "With --json `who` is one of nobody, provider, operator, person, done; `now` and "
        "`happened` "
        "are sentences for people.",
    .examples = "baton turns why 7f3a90\nbaton turns why 7f3a90 --json\n",
    .args_min = 1,
    .args_max = 1,
    .run = run_why,
};
