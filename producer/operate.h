/*
 * Operating: signed control records, and the answers of who owns the turns.
 *
 * In: cmd_turns_operate.c, cmd_services.c, replay.c  Out: common/record/control.c, common/log/log.c
 *
 * Rights are checked here before anything is sent, and again by the owner. Main thread.
 */
#ifndef BATON_PRODUCER_OPERATE_H
#define BATON_PRODUCER_OPERATE_H

#include "baton/code.h"
#include "common/record/control.h"
#include "producer/session.h"

#include <stdbool.h>

#define OPERATE_TIMEOUT "10s" /* how long commands wait for an answer unless told otherwise */

/* What came of a control record that is in the log. */
struct operated {
    struct plain_id id;   /* of the record */
    bool answered;        /* false: no worker answered in time; it will be taken in */
    bool nobody;          /* not answered, since no worker of the service runs */
    baton_code code;      /* the answer: ok, or why it has no effect */
    struct service_id to; /* a cancel: where its owner forwarded it, "" if it did not */
};

/*
 * Sends control (kind, turn_id and what belongs to the kind; id and at are set here) to the owner
 * of its turn at service, and waits at most timeout_ms for the answer; not at all where no worker
 * of the service lives. A cancel that is forwarded is answered where it arrives. run_id: of the
 * turn, "" outside a run or if the turn is unknown. unknown_service: its control topic is missing.
 */
baton_code operate_turn(struct session *session, struct control *control, const char *service,
                        const char *run_id, int64_t timeout_ms, struct operated *ret_operated,
                        struct baton_error *err);
/* The same for pause, resume and clear: one record to each partition; answered once all of them answered.
 */
baton_code operate_service(struct session *session, struct control *control, const char *service,
                           int64_t timeout_ms, struct operated *ret_operated,
                           struct baton_error *err);

#endif
