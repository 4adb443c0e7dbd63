/*
 * Why a turn stands where it stands: what happened, what it waits for, who must act, what comes next, and
 * which command changes that. Told from topics alone: no worker has to answer. `baton turns why`.
 */
#ifndef BATON_PRODUCER_WHY_H
#define BATON_PRODUCER_WHY_H

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/config.h"
#include "producer/run/run.h"
#include "producer/run_log.h"
#include "topics/service_view.h"
#include "topics/turn_log.h"

/* Who must act before it goes on. WHY_WHO(word, text) */
#define WHY_WHO(WHO)                                                                               \
    WHO(nobody, "nobody: it goes on by itself")                                                    \
    WHO(provider, "the provider: it goes on by itself once that is back")                          \
    WHO(operator, "an operator")                                                                   \
    WHO(person, "a person of its run")                                                             \
    WHO(done, "nobody: it has ended")

/* What is known. */
struct why_sources {
    const struct config *config;
    const char *turn_id;
    const struct turn_life *life;    /* found false: no turn log knows it */
    const char *waits_at;            /* then: the service whose topic has its handoff */
    const struct service_view *view; /* of the service where it is; with its notes */
    const struct run *run;           /* NULL: it has none, or none is known */
    enum run_still still; /* whether no coordinator runs, so that its run does not move */
    struct wall_ms now;
};

/* For a terminal of so many columns (0: none). */
void why_print_text(const struct why_sources *sources, size_t width, struct buf *out);
/* One JSON object and a newline. */
void why_print_json(const struct why_sources *sources, struct buf *out);

#endif
