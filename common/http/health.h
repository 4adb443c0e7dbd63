/*
 * Is this process alive, and can it do its work? Set by the main thread, read by the listener.
 *
 * One set for the process, like the metrics. Any thread.
 */
#ifndef BATON_COMMON_HTTP_HEALTH_H
#define BATON_COMMON_HTTP_HEALTH_H

#include "common/base/clock.h"

#include <stdbool.h>

/* The main thread comes round again by then; HEALTH_LATE_MS later it is taken to hang. */
#define HEALTH_LATE_MS 120000

void health_expect(struct mono_ms by);
/* It can do its work (reason NULL), or why not: a text that lives as long as the process. */
void health_ready(const char *reason);
/* What is asked by whoever looks, beside that: true while the log is away. On any thread; NULL: nothing, to
 * be said before what arg points to goes. */
void health_ask_away(bool (*away)(const void *arg), const void *arg);

struct health {
    bool alive;
    int64_t late_ms;    /* since it should have come round; 0: it is not late */
    const char *reason; /* NULL: ready */
};
struct health health_look(void);

#endif
