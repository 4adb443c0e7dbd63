/*
 * The turn-log record: the whole state of a turn at a service. The log's newest
 * record of a turn is the truth about it; the store holds an image of it.
 *
 * Owned strings; not shared between threads.
 */
#ifndef BATON_RECORD_TURN_RECORD_H
#define BATON_RECORD_TURN_RECORD_H

#include "baton/code.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/failure.h"
#include "common/base/id.h"
#include "common/base/limits.h"
#include "common/base/role.h"
#include "common/base/state.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TURN_ATTEMPTS_MAX LIMIT_ATTEMPTS_KEPT /* kept in the record: the newest */
#define TURN_TRIED_MAX LIMIT_PROFILES

/* One try, as people see it. */
struct attempt {
    int no;
    struct service_id service;
    struct plain_id worker; /* "" before it was claimed */
    struct plain_id profile;
    enum attempt_state state;
    bool has_class;
    enum failure class;
    struct wall_ms started_at; /* 0: never started */
    struct wall_ms ended_at;   /* 0: live */
    char *note;                /* one line, or NULL */
    bool late;                 /* a result came after the end; kept, never applied */
    bool probe;                /* it tried for others whether the provider is back */
    char *usage;               /* what it took: common/record/usage.h, as JSON; NULL: not told */
};

struct turn_record {
    /* identity: never changes */
    struct turn_id id;
    struct plain_id origin;
    struct service_id service; /* of the turn's birth */
    enum role role;
    struct task_id task_id;
    int32_t task_rev;
    struct plain_id run_id;
    int32_t epoch;
    struct plain_id intent;
    struct digest digest;
    struct digest content;
    struct wall_ms created_at;

    /* state */
    enum turn_state state;
    int attempt; /* the newest attempt's number */
    int failures;
    int losses;
    int replays;
    int since;  /* first attempt of the present series at this service: tries count from it */
    int probes; /* attempts here that found the provider still down: they count in no budget */
    struct plain_id tried[TURN_TRIED_MAX]; /* profiles that were given up in this series */
    size_t n_tried;
    struct wall_ms not_before;    /* queued: when it may start; 0: at once */
    int64_t delay_ms;             /* the wait that its writer decided on */
    struct plain_id lease_worker; /* running: who holds it, else "" */
    struct boot_id lease_boot;
    struct attempt *attempts; /* oldest first, at most TURN_ATTEMPTS_MAX */
    size_t n_attempts;
    int64_t
        cost_before; /* of attempts here that are too old to be kept; millionths of a US dollar */
    char *result;    /* completed: raw JSON object, else NULL */
    size_t result_len;
    baton_code code;              /* parked: why; else ok */
    struct service_id to_service; /* delegated: where it goes on, else "" */
    int to_attempt;
    struct plain_id cancel_by; /* cancelled: the signer, else "" */
    char *cancel_reason;       /* cancelled; NULL otherwise */
    bool wait;                 /* the publisher asked to hear of the claim */
    struct wall_ms updated_at;
    struct wall_ms ended_at; /* closed: when; 0 while open */

    /* only while open */
    char *handoff; /* the exact bytes of the value */
    size_t handoff_len;
    char *signature; /* value of baton-sig; NULL where unsigned */
    char **passes;
    size_t n_passes;
    char *traceparent; /* or NULL */
};

void turn_record_init(struct turn_record *record);
void turn_record_done(struct turn_record *record);
baton_code turn_record_copy(const struct turn_record *from, struct turn_record *ret_to);

/* Frees what an attempt owns. */
void attempt_done(struct attempt *attempt);
/* A copy that owns its texts; false: no memory, and nothing is owned. */
bool attempt_copy(const struct attempt *from, struct attempt *ret_to);

/* What all of its attempts cost, as far as they told, in millionths of a US dollar, at most JSON_INT_MAX: those of
 * the services before this one as the last pass tells (0 where there are no passes: of a closed turn they are
 * not known), and those here. */
int64_t turn_record_cost(const struct turn_record *record);
/* The attempt with that number, or NULL. */
struct attempt *turn_record_attempt(struct turn_record *record, int no);
/* Appends a zeroed attempt, dropping the oldest one at the limit; NULL without memory. */
struct attempt *turn_record_add_attempt(struct turn_record *record);

/*
 * Appends what a history (a header's JSON) tells of attempts before the record's present one, at the
 * services named. For people: nothing in it is believed, what does not fit is left out.
 */
void turn_record_add_history(struct turn_record *record, const char *history, size_t len,
                             const char *const *services, size_t n_services);

/* Appends the JSON value; drops the four fields of open turns when the state is closed. */
void turn_record_encode(const struct turn_record *record, struct buf *value);
/* Strict: a record that its owner would not have written is invalid_envelope. */
baton_code turn_record_parse(const void *bytes, size_t len, struct turn_record *ret_record,
                             struct baton_error *err);

/* An owner's note: a key that begins with '~', no turn. */
#define TURN_LOG_OWNER_KEY "~owner"

#endif
