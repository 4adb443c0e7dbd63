/*
 * What a worker shows of itself over HTTP: what waits here, and whether it is ready (gauges.c).
 *
 * Included by internal.h and worker.c. Engine's thread.
 */
#ifndef BATON_WORKER_GAUGES_H
#define BATON_WORKER_GAUGES_H

#include <stdint.h>

struct worker;

/* Which record is first in line in an input, and since when this process has seen it there. */
struct first {
    int64_t position;
    int64_t since_ms; /* monotonic */
};

/* Whether this worker can do its work, for /readyz. */
void gauges_health(const struct worker *w);
/* Looks at what waits here, when it is time; w->gauges_due. */
void gauges_tick(struct worker *w);

#endif
