/*
 * `baton coordinator`: moves runs until it is told to stop.
 * In: deploy/baton.c  Out: producer/coordinator/coordinator.c
 */
#include "producer/cmd_coordinator.h"

#include "common/base/check.h"
#include "common/base/diag.h"
#include "producer/coordinator/coordinator.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

/* Writing end of the wake pipe; signal handlers may only write. */
static int wake_write = -1;

static void on_signal(int number)
{
    int saved = errno;
    char byte = number == SIGHUP ? COORDINATOR_WAKE_RELOAD : COORDINATOR_WAKE_STOP;
    ssize_t n = write(wake_write, &byte, 1); /* a full pipe has woken it already */
    (void)n;
    errno = saved;
}

static bool watch_signals(int *ret_read)
{
    int fds[2];
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0) {
        return false;
    }
    *ret_read = fds[0];
    wake_write = fds[1];
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    return true;
}

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
    if (!watch_signals(&options.wake_fd)) {
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
        "the trust folder again.\n\n"
        "Signs with the key of the principal `coordinator`.",
    .options = options,
    .n_options = COUNT_OF(options),
    .examples = "baton coordinator\nbaton coordinator --drain\n",
    .run = run,
};
