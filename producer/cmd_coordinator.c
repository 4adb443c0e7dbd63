/*
 * `baton coordinator`: moves runs until it is told to stop.
 * In: deploy/baton.c  Out: producer/coordinator/coordinator.c
 */
#include "producer/cmd_coordinator.h"

#include "common/base/check.h"
#include "common/base/diag.h"
#include "common/base/wake.h"
#include "producer/coordinator/coordinator.h"

static int run(struct command *cmd)
{
    struct config *config = NULL;
    struct baton_error err = {BATON_OK, ""};
    struct coordinator_options options = {
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
    baton_code rc = command_config(cmd, &config, &err);
    if (rc != BATON_OK) {
        return command_fail(cmd, rc, &err);
    }
    options.config = config;
    options.sets = cmd->sets;
    options.n_sets = cmd->n_sets;
    rc = coordinator_run(&options, &err);
    config_free(config);
    return rc == BATON_OK ? 0 : command_fail(cmd, rc, &err);
}

static const struct command_option options[] = {
    {.name = "id",
     .argument = "ID",
     .kind = OPTION_text,
     .help = "Its id among the coordinators, kept over restarts: one that comes back under its id "
             "goes on at once. Default: <host>-<pid>."},
    {.name = "drain",
     .kind = OPTION_flag,
     .help = "Exit with 0 when no request waits and no run is open."},
    {.name = "verify-threads",
     .argument = "N",
     .kind = OPTION_int,
     .fallback = "1",
     .min = 0,
     .max = 8,
     .help = "Threads that verify beside the engine."},
};

const struct baton_command cmd_coordinator = {
    .name = "coordinator",
    .summary = "move runs along their workflows",
    .usage = "[--id ID] [--drain]",
    .description =
        "Takes what is asked of runs (`baton runs start`) and what became of their turns, and "
        "publishes the turns that follow, each with the role of its slot. All of a step is one "
        "transaction of the log: whatever dies, the next turn exists once. Several coordinators "
        "share the work and take over from each other. Runs until SIGTERM or SIGINT; SIGHUP reads "
        "again trust, its key, and the list of `workflows:`, so that a new one needs no restart; "
        "what does "
        "need one is named in the log, and what does not load changes nothing.\n\n"
        "Signs with the key of the principal `coordinator`.",
    .options = options,
    .n_options = COUNT_OF(options),
    .examples = "baton coordinator\nbaton coordinator --drain\n",
    .run = run,
};
