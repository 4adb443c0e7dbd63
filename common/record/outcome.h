/*
 * Outcomes: what happened to a turn, told to everyone; signed by the service.
 * Record key: the run id, or the turn id outside a run.
 */
#ifndef BATON_RECORD_OUTCOME_H
#define BATON_RECORD_OUTCOME_H

#include "baton/code.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/failure.h"
#include "common/base/id.h"
#include "common/base/role.h"
#include "common/base/state.h"

#include <stdbool.h>

#define OUTCOME_EVENTS(EVENT)                                                                      \
    EVENT(claimed)                                                                                 \
    EVENT(duplicate)                                                                               \
    EVENT(completed)                                                                               \
    EVENT(parked)                                                                                  \
    EVENT(cancelled)                                                                               \
    EVENT(delegated)                                                                               \
    EVENT(run_ended)                                                                               \
    EVENT(answer)

#define OUTCOME_COORDINATOR "coordinator" /* `service` where who coordinates speaks, of a run */

#define OUTCOME_ENUM(word) OUTCOME_##word,
enum outcome_event { OUTCOME_EVENTS(OUTCOME_ENUM) OUTCOME_EVENT_COUNT };
#undef OUTCOME_ENUM

struct turn_record; /* common/record/turn_record.h */

struct outcome {
    enum outcome_event event;
    /* identity; for an answer about an unknown turn only turn_id is set, the rest "" and 0 */
    struct turn_id turn_id;
    struct plain_id origin;
    struct service_id born; /* the turn's first service */
    bool has_role;
    enum role role;
    struct task_id task_id;
    int32_t task_rev;
    struct plain_id run_id;
    int32_t epoch;
    struct plain_id intent;
    struct digest content;
    int attempt;
    struct service_id service; /* who speaks: a service, or OUTCOME_COORDINATOR */
    bool has_state;
    enum turn_state state;
    bool has_class;
    enum failure class;
    baton_code code; /* parked, answer: why; ok otherwise */
    struct wall_ms at;
    struct service_id to; /* delegated: where it goes on */
    int64_t cost_micros; /* what the turn's attempts cost so far, as far as they told; 0: nothing */
    char *result;        /* raw JSON object, or NULL */
    size_t result_len;
    struct plain_id answers_id; /* answer: the id of the control record or request; else "" */
    char answers_kind[16];      /* a kind of control record or request */
};

const char *outcome_word(enum outcome_event event);
/* Fills identity, attempt, state, class, code, result (borrowed) from a turn's record. */
void outcome_of(const struct turn_record *record, enum outcome_event event, const char *service,
                struct wall_ms at, struct outcome *ret_outcome);
void outcome_encode(const struct outcome *outcome, struct buf *value);
/* invalid_envelope, schema_unsupported, no_memory. The result is owned: outcome_free. */
baton_code outcome_parse(const void *bytes, size_t len, struct outcome **ret_outcome,
                         struct baton_error *err);
void outcome_free(struct outcome *outcome);

#endif
