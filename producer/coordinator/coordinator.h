/*
 * The coordinator: moves runs along their workflows. It consumes requests and outcomes, keeps the run
 * log, and publishes the next turns, all in one transaction of the log with its offsets
 * (common/engine/ENGINE.md). Several of them share the partitions and take over from each other; each
 * holds its runs in memory and reads them from the run log when it gets a partition.
 *
 * In: producer/cmd_coordinator.c  Out: common/engine/engine.h
 */
#ifndef BATON_PRODUCER_COORDINATOR_COORDINATOR_H
#define BATON_PRODUCER_COORDINATOR_COORDINATOR_H

#include "baton/code.h"
#include "common/base/config.h"
#include "common/base/wake.h"

#define COORDINATOR_PRINCIPAL "coordinator"

struct coordinator_options {
    const struct config *config; /* borrowed */
    const char *const *sets;     /* `KEY=VALUE` with which it was loaded: SIGHUP loads it again */
    size_t n_sets;
    const char *id; /* NULL: <host>-<pid> */
    int wake_fd;    /* bytes WAKE_*; -1: none */
    int verify_threads;
    bool drain; /* ends when nothing is left to be taken and no run is active */
};

/* Runs until it is told to stop. Errors: those that end it (twin, bad_config, topic_missing, ...). */
baton_code coordinator_run(const struct coordinator_options *options, struct baton_error *err);

#endif
