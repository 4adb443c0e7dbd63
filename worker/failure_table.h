/*
 * What follows a failure, and how a first attempt begins while credential profiles rest
 * (failure_table.c). Pure: no clock, no store, no log.
 *
 * Included by what ends and begins attempts. Any thread.
 */
#ifndef BATON_WORKER_FAILURE_TABLE_H
#define BATON_WORKER_FAILURE_TABLE_H

#include "baton/code.h"
#include "common/base/config.h"
#include "common/base/failure.h"

#include <stdbool.h>
#include <stdint.h>

struct turn_record;

enum next_kind { NEXT_start, NEXT_retry, NEXT_rotate, NEXT_delegate, NEXT_park, NEXT_hold };
struct next_step {
    enum next_kind kind;
    int64_t delay_ms;    /* retry */
    const char *profile; /* start, retry, rotate: of the next attempt */
    const char *to;      /* delegate: the service; the caller's */
    baton_code code;     /* park: why */
};
/* What can be had beside what record and configuration say: whoever decides has looked. */
struct chances {
    const char *delegate_to; /* where the turn could go on now; NULL: nowhere */
    unsigned resting;        /* bit i: profile i of the service rests */
};
/* What follows a failure: the first possible action of the class's list. Pure. */
struct next_step failure_next(const struct config *config, const struct config_service *service,
                              const struct turn_record *record, enum failure class,
                              int64_t retry_after_ms, const struct chances *chances, double draw);
/*
 * What follows an attempt that counts in no budget but the attempts': a clean stop ended it, or it
 * provably never started. The same again; ever later, while nothing starts. Pure.
 */
struct next_step uncounted_next(const struct config *config, const struct turn_record *record,
                                enum failure class, double draw);
/* Why and for how long all profiles of a service rest. */
struct all_rest {
    enum failure class;  /* of the one that is up first */
    int64_t wait_ms;     /* until then */
    bool named;          /* the provider named that time */
    const char *profile; /* that one */
};
/*
 * How the first attempt of a series begins: with the first profile that does not rest. While all of
 * them rest: what the list of the class says, but where it comes to park a try costs nothing more.
 * waited: it has waited already, and is not made to wait again. Pure.
 */
struct next_step first_next(const struct config *config, const struct config_service *service,
                            const struct chances *chances, const struct all_rest *rest,
                            bool waited);

#endif
