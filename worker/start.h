/*
 * A worker's start (start.c).
 *
 * Included by worker.c. Engine's thread.
 */
#ifndef BATON_WORKER_START_H
#define BATON_WORKER_START_H

#include "baton/code.h"

struct worker;

baton_code worker_start(struct worker *w, struct baton_error *err);

#endif
