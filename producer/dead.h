/*
 * Dead letters as operators see them: parked turns and rejected records in one list.
 *
 * In: cmd_dlq_list.c, cmd_dlq_choose.c  Out: topics/turn_log.c, topics/letters.c
 */
#ifndef BATON_PRODUCER_DEAD_H
#define BATON_PRODUCER_DEAD_H

#include "baton/code.h"
#include "common/base/failure.h"
#include "common/base/role.h"
#include "producer/session.h"
#include "topics/letters.h"
#include "topics/tail.h"

#include <stdbool.h>

struct dead {
    char id[LETTER_ID_MAX]; /* a turn id, or that of a rejected record */
    bool parked;            /* else rejected */
    char turn_id[33];       /* "" if unknown */
    char service[SERVICE_MAX + 1];
    char role[16]; /* "" if unknown; of a rejected record: as it claims */
    char task_id[ID_MAX + 1];
    char run_id[ID_MAX +
                1]; /* of a rejected request: as it claims; its service is LETTERS_OF_RUNS */
    char origin[ID_MAX + 1]; /* parked: who published the turn; else "" */
    char kind[16];
    baton_code code;
    bool has_class;
    enum failure class;
    int attempt;   /* parked: the attempt that a replay names */
    int replays;   /* parked: how often it was replayed */
    bool repeated; /* parked: after its last replay it failed in the same way as before */
    struct wall_ms at;
    char message[256]; /* one line, foreign */
    /* The original record, valid during the call; headers: of a rejected one. */
    const void *value; /* NULL: null */
    size_t value_len;
    const struct log_header *headers;
    size_t n_headers;
};

/* What is asked for; zeroed members ask for everything. */
struct dead_filter {
    const char *service;
    bool by_role;
    enum role role;
    bool by_class;
    enum failure class;
    bool by_code;
    baton_code code;
    const char *run_id;
    const char *origin;
    struct wall_ms before; /* dead since before that time; 0: not asked */
    struct wall_ms after;  /* and after that one */
};

typedef bool dead_fn(void *arg, const struct dead *dead);

/* Parked turns first, then rejected records, each in the order of the log. unknown_service. */
baton_code dead_each(struct session *session, const struct dead_filter *filter, dead_fn *fn,
                     void *arg, struct baton_error *err);

/* Gets each of a page; without value and headers. position: where it stands, for `before` of the next one. */
typedef bool dead_page_fn(void *arg, const struct dead *dead, const char *position);
/*
 * The newest `max` of both kinds together, read from the ends of the logs. Of *spec only max, before and
 * progress count. *ret_more: there may be older ones. unknown_service; invalid_request: no position.
 */
baton_code dead_page(struct session *session, const struct dead_filter *filter,
                     const struct tail_spec *spec, dead_page_fn *fn, void *arg, bool *ret_more,
                     struct baton_error *err);

#endif
