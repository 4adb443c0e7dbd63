/*
 * What a running attempt said last, as a file beside its worker's store: for `turns watch` on the same host.
 * It is no part of the log: nothing is decided by it, nobody waits for it, and a lost one is no loss.
 *
 * Worker: writes, removes, clears (its engine thread). Commands: read.
 */
#ifndef BATON_TOPICS_PROGRESS_H
#define BATON_TOPICS_PROGRESS_H

#include "common/base/clock.h"
#include "common/base/config.h"
#include "common/base/id.h"

#include <stdbool.h>

#define PROGRESS_FOLDER "progress" /* in <state_dir>/<service>/<worker> */
#define PROGRESS_TEXT_MAX 4096

struct progress {
    int attempt;
    struct service_id service;
    struct plain_id worker;
    struct wall_ms at;
    char text[PROGRESS_TEXT_MAX + 1]; /* masked, UTF-8; print it escaped */
};

/* Makes the folder in dir, or empties it: what an older boot left there is over. */
void progress_clear(const char *dir);
/* Replaces what the turn's attempt said before. Failures are of no account. */
void progress_write(const char *dir, const char *turn_id, const struct progress *progress);
void progress_remove(const char *dir, const char *turn_id);

/* The newest of the turn that any worker of this host has; false: none, or it may not be read. */
bool progress_read(const struct config *config, const char *turn_id, struct progress *ret_progress);

#endif
