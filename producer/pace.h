/*
 * Much work of one command: not faster than asked, shown while it lasts, and stopped between two pieces by
 * Ctrl-C. On a terminal a bar with the time left, else a line now and then; nothing while it is short.
 *
 * In: cmd_dlq_replay.c; reading: cmd_dlq_list.c, cmd_turns.c. Main thread; one at a time.
 */
#ifndef BATON_PRODUCER_PACE_H
#define BATON_PRODUCER_PACE_H

#include "common/base/clock.h"
#include "common/base/command.h"

#include <stdbool.h>
#include <stddef.h>

struct pace {
    struct command *cmd;
    const char *verb; /* "replayed" */
    size_t total;
    size_t done;
    int64_t per_second; /* 0: no bound */
    struct mono_ms began;
    struct mono_ms shown;
    bool bar; /* one stands on the terminal */
};

/* Begins; from now on a first SIGINT or SIGTERM is noted, and a second one ends the program. */
struct pace pace_begin(struct command *cmd, const char *verb, size_t total, int64_t per_second);
/* Before each piece: waits for its turn. False: stop, somebody interrupted. */
bool pace_next(struct pace *pace);
/* The bar is gone, signals are as before. */
void pace_end(struct pace *pace);

/* How far a long reading is, on a terminal only; nothing with --json or --quiet, or while it is short. */
struct reading {
    struct command *cmd;
    struct mono_ms began;
    struct mono_ms shown;
    bool line; /* one stands on the terminal */
};
struct reading reading_begin(struct command *cmd);
/* Has the form of tail_spec's progress; arg: a struct reading. */
void reading_shows(void *arg, int64_t passed, int64_t all);
void reading_end(struct reading *reading);

#endif
