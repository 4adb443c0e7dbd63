/*
 * baton worker: executes the turns of one service until it is told to stop.
 * In: deploy/baton.c  Out: worker/worker.c
 */
#include "common/base/command.h"
#include "common/base/diag.h"
#include "common/base/wake.h"
#include "worker/worker.h"

#include <string.h>

extern const struct baton_command cmd_worker;

static int run(struct command *cmd)
{
    struct config *config = NULL;
    struct baton_error err;
    struct worker_options options = {
        .service = command_text(cmd, "service"),
        .id = command_text(cmd, "id"),
        .drain = command_flag(cmd, "drain"),
        .verify_threads = (int)command_int(cmd, "verify-threads"),
        .wake_fd = -1,
    };

    if (!wake_open(&options.wake_fd)) {
        baton_fail(&err, BATON_E_unexpected, "a pipe for signals cannot be made: %m");
        return command_fail(cmd, err.code, &err);
    }
    diag_open_stderr(cmd->verbose ? DIAG_debug
                     : cmd->quiet ? DIAG_warn
                                  : DIAG_info,
                     DIAG_FORM_auto);
    if (!service_id_valid(options.service, strlen(options.service))) {
        baton_fail(
            &err, BATON_E_bad_service,
            "a worker serves exactly one service, named as in the configuration ([a-z0-9-]{1,48})");
        return command_fail(cmd, err.code, &err);
    }
    baton_code rc = command_config(cmd, &config, &err);
    if (rc != BATON_OK) {
        return command_fail(cmd, rc, &err);
    }
    options.config = config;
    options.sets = cmd->sets;
    options.n_sets = cmd->n_sets;
    rc = worker_run(&options, &err);
    config_free(config);
    return rc == BATON_OK ? 0 : command_fail(cmd, rc, &err);
}

static const struct command_option options[] = {
    {.name = "service",
     .letter = 's',
     .argument = "NAME",
     .kind = OPTION_text,
     .required = true,
     .help = "The service whose turns this worker executes; one worker serves one service."},
    {.name = "id",
     .argument = "ID",
     .kind = OPTION_text,
     .help =
         "The worker's id, unique within the service, kept over restarts: a worker that comes back "
         "under its id goes on at once. Default: <host>-<first free number>."},
    {.name = "drain",
     .kind = OPTION_flag,
     .help =
         "Exit with 0 when nothing is left: no handoff, no running attempt, no retry that waits."},
    {.name = "verify-threads",
     .argument = "N",
     .kind = OPTION_int,
     .fallback = "1",
     .min = 0,
     .max = 8,
     .help = "Threads that verify and sign beside the engine."},
};

const struct baton_command cmd_worker = {
    .name = "worker",
    .summary = "execute the turns of one service",
    .usage = "--service NAME [--id ID] [--drain]",
    .description =
        "Takes the handoffs of its service's topic, executes each turn under the role that its "
        "origin "
        "signed, and settles what became of it: completed, another attempt of the same turn, or "
        "parked "
        "with a dead letter. Runs until SIGTERM or SIGINT.\n\n"
        "A stop takes nothing more and lets running attempts end for as long as the service's "
        "`grace`; "
        "others take over meanwhile. A second signal kills what still runs; the turns go on under "
        "their role when a worker has them again. SIGHUP reads again "
        "trust, the service's key, and of the configuration budgets, retry, circuit, on_failure "
        "and the "
        "service's profiles, environment, deadline, heartbeat, grace and place; an attempt keeps "
        "what it "
        "started with. What needs a restart is named in the log; what does not load changes "
        "nothing.",
    .options = options,
    .n_options = sizeof(options) / sizeof(options[0]),
    .examples = "# run the worker of a service\n"
                "baton worker --service example\n"
                "# execute what is there, then exit\n"
                "baton worker --service example --drain\n",
    .run = run,
};
