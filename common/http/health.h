/*
 * Is this process alive, and can it do its work? Set by the main thread, read by the listener.
 *
 * One set for the process, like the metrics. Any thread.
 */
#ifndef BATON_COMMON_HTTP_HEALTH_H
#define BATON_COMMON_HTTP_HEALTH_H

#include "common/base/clock.h"

#include <stdbool.h>
#include <stdint.h>

struct log;

/* The main thread comes round again by then; HEALTH_LATE_MS later it is taken to hang. */
#define HEALTH_LATE_MS 120000

void health_expect(struct mono_ms by);
/* It can do its work (reason NULL), or why not: a text that lives as long as the process. */
void health_ready(const char *reason);
/* The log whose brokers may be away: whoever looks asks it, on any thread. NULL: none, to be said before
 * it is closed. */
void health_log(const struct log *log);

struct health {
    bool alive;
    int64_t late_ms;    /* since it should have come round; 0: it is not late */
    const char *reason; /* NULL: ready */
};
struct health health_look(void);

#endif
