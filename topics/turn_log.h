/*
 * What the turn logs say: the state of turns, as their owners wrote it.
 *
 * Readers believe the turn log's writer; nothing here is verified, since nothing here executes.
 * Read without a group and without a store. Called by producer/ for `turns` and `dlq`, and by
 * cmd_keys.c.
 */
#ifndef BATON_TOPICS_TURN_LOG_H
#define BATON_TOPICS_TURN_LOG_H

#include "baton/code.h"
#include "common/base/config.h"
#include "common/log/log.h"
#include "common/record/circuit_note.h"
#include "common/record/turn_record.h"
#include "topics/tail.h"

#include <stdbool.h>
#include <stddef.h>

/* Where a record was read. */
struct turn_place {
    const char *service; /* borrowed from the configuration */
    int32_t partition;
    int64_t offset;
};

/* What is asked for; zeroed members ask for everything. */
struct turn_filter {
    const char *service;
    unsigned states; /* bits 1 << enum turn_state */
    role_set roles;
    const char *task_id;
};

/* Gets each turn, valid during the call; false stops. */
typedef bool turn_fn(void *arg, const struct turn_place *place, const struct turn_record *record);

/*
 * Every turn of the configured services that the filter lets through, in the order of the log.
 * *ret_unreadable counts records that are no turn record (damaged, or of a newer program).
 * unknown_service: the filter names one that is not configured.
 */
baton_code turn_log_each(struct log *log, const struct config *config,
                         const struct turn_filter *filter, turn_fn *fn, void *arg,
                         size_t *ret_unreadable, struct baton_error *err);

/* Gets each turn of a page; true: it belongs there, and *ret_row (of tail_spec's row_size) is filled. */
typedef bool turn_row_fn(void *arg, const struct turn_place *place,
                         const struct turn_record *record, void *ret_row);
struct turn_tail {
    const struct turn_filter *filter;
    turn_row_fn *fn;
    void *arg;
    size_t unreadable; /* as of turn_log_each, of what was read */
};
/* Adds the turn logs that the filter asks for to a tail that is not read yet; *turns lives as long.
 * Newest means: changed last. unknown_service. */
baton_code turn_log_tail(struct tail *tail, const struct config *config, struct turn_tail *turns,
                         struct baton_error *err);

/* One turn over all services that had it. */
struct turn_life {
    struct turn_record
        now;             /* where it is now; delegated only if the next service has not taken it */
    const char *service; /* whose log `now` stands in; borrowed from the configuration */
    int32_t partition;
    struct attempt *attempts; /* of all services, in the order of their numbers; notes owned */
    size_t n_attempts;
    struct circuit_note circuit; /* of the worker there; closed: nothing keeps the turn waiting */
    bool found;
};

/*
 * Reads a turn by its id. *ret_life.found false: no turn log knows it. invalid_envelope: its record
 * cannot be read. turn_life_done in any case.
 */
baton_code turn_log_find(struct log *log, const struct config *config, const char *turn_id,
                         struct turn_life *ret_life, struct baton_error *err);
void turn_life_done(struct turn_life *life);

/*
 * The full id of a turn by its first hex digits (6 to 32). turn_not_found, invalid_request (several
 * turns begin so, or it is no id at all). A full id is returned without looking.
 */
baton_code turn_log_resolve(struct log *log, const struct config *config, const char *prefix,
                            struct turn_id *ret_id, struct baton_error *err);

/*
 * The handoff of a turn that no worker has taken in yet: *ret_service is the service whose topic
 * has it, NULL if none.
 */
baton_code turn_log_waiting(struct log *log, const struct config *config, const char *turn_id,
                            const char **ret_service, struct baton_error *err);

/* ---- following ---- */

/* Changes of one turn from now on, at every configured service. */
struct turn_watch;
baton_code turn_watch_open(struct log *log, const struct config *config, const char *turn_id,
                           struct turn_watch **ret_watch, struct baton_error *err);
void turn_watch_close(struct turn_watch *watch);
/* Waits at most timeout_ms for a new record of the turn: *ret_record (the caller's
 * turn_record_done) and *ret_service; *ret_service NULL: nothing came. */
baton_code turn_watch_next(struct turn_watch *watch, int64_t timeout_ms,
                           struct turn_record *ret_record, const char **ret_service,
                           struct baton_error *err);

#endif
