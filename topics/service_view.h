/*
 * How a service stands: its workers, what nobody has taken yet, its turns by state. Read from
 * group, topics and turn log, for `baton services` and `baton doctor`.
 */
#ifndef BATON_TOPICS_SERVICE_VIEW_H
#define BATON_TOPICS_SERVICE_VIEW_H

#include "baton/code.h"
#include "common/base/config.h"
#include "common/base/role.h"
#include "common/base/state.h"
#include "common/log/log.h"
#include "common/record/blocked_note.h"
#include "common/record/circuit_note.h"
#include "common/record/rest_note.h"

#include <stdbool.h>
#include <stddef.h>

#define SERVICE_WAITING_LONG_MS 60000 /* a handoff that is older waits for long */
#define SERVICE_DATE_SLACK_MS 5000    /* a worker's clock and this one */

/* By whom, why and when turns of the service were told to wait. */
struct service_pause {
    struct plain_id by;
    char reason[256];
    struct wall_ms at;
};

/* A worker whose circuit is not closed, as the notes of its partitions say. */
struct service_circuit {
    struct circuit_note note;
    int32_t partitions[LOG_PARTITIONS_MAX];
    size_t count;
};

/* An open turn, by name. */
struct service_turn {
    struct turn_id id; /* "": none */
    enum role role;
    struct task_id task;
    enum turn_state state;
    int attempt;
    struct plain_id worker; /* running: who executes it, else "" */
    struct boot_id boot;    /* running: which boot of it began it, else "" */
    struct wall_ms since;   /* running: the start of its attempt, else its creation */
    struct wall_ms created_at;
};

struct service_view {
    const struct config_service *service; /* borrowed */
    struct log_group_member *workers;     /* freed by service_view_done */
    size_t n_workers;
    int32_t partitions;
    int64_t lag;            /* handoffs that nobody has taken in */
    int64_t oldest_ms;      /* age of the oldest of them; -1: none */
    struct turn_id waiting; /* the oldest of them, as its key says; "": none, or hidden */
    int64_t taken;          /* where the group stands, summed: grows with what is taken in */
    bool moves;             /* handoffs were taken in while all this was read */
    bool with_turns;
    int64_t turns[TURN_STATE_COUNT]; /* filled with turns only, as all that follows */
    size_t unreadable;
    struct service_turn oldest;   /* of those that were taken in and are open */
    struct service_turn *running; /* oldest attempt first; freed by service_view_done */
    size_t n_running;
    struct wall_ms written;     /* when the log dated the newest record that was read; 0: none */
    int32_t paused;             /* partitions whose owner keeps a pause */
    struct service_pause pause; /* of one of them */
    struct service_circuit *circuits; /* freed by service_view_done */
    size_t n_circuits;
    struct blocked_note *blocked; /* one of each worker; freed by service_view_done */
    size_t n_blocked;
    struct rest_note *rests; /* one of each worker; freed by service_view_done */
    size_t n_rests;
};

/* with_turns: reads the turn logs, too, which takes a moment for each 100,000 turns; where that says that
 * workers take nothing, the group is looked at again for a second. */
baton_code service_view_read(struct log *log, const struct config *config,
                             const struct config_service *service, bool with_turns,
                             struct service_view *ret_view, struct baton_error *err);
void service_view_done(struct service_view *view);
/* Partitions of a service with workers that none of them has: its group is dividing them anew, or
 * something keeps it from that. 0 where no worker lives. */
int32_t service_view_unowned(const struct service_view *view);
/* Is that worker in the service's group now? */
bool service_view_lives(const struct service_view *view, const char *worker);
/* When an attempt that runs is to be stopped at the latest. */
struct wall_ms service_view_stop(const struct service_view *view, const struct service_turn *turn);
/* Is that long past, and does its worker live? Where it is, and stays so, its worker cannot tell the end of it (a full disk, a turn log that may not be
 * written), or is stuck: the log alone does not say which, `doctor` on its host does. A worker that was away for
 * longer has only come back where it tells the end soon; it has its time where the log shows that it began
 * something else since. */
bool service_view_overdue(const struct service_view *view, const struct service_turn *turn);
/* Do handoffs wait for longer than a minute although workers live, run nothing and take in nothing, and nothing
 * that they have told keeps them? Workers that have just begun may do so soon. A worker that may not write its
 * turn log cannot tell that there. */
bool service_view_untaken(const struct service_view *view);
/* Either of both. */
bool service_view_stalled(const struct service_view *view);
/* Does any worker of the service live? (as its group says) */
baton_code service_has_worker(struct log *log, const char *prefix, const char *service,
                              bool *ret_any, struct baton_error *err);

#endif
