/*
 * Many control records at once: sent together, their answers awaited together, so that each does not cost a
 * commit of its own. What operate.h says of one holds for each; cancels, which may be forwarded, go one by one.
 *
 * In: producer/replay.c, producer/cmd_dlq_replay.c  Out: common/log/log.c, topics/outcomes.c. Main thread.
 */
#ifndef BATON_PRODUCER_OPERATE_MANY_H
#define BATON_PRODUCER_OPERATE_MANY_H

#include "producer/operate.h"

#define OPERATE_BATCH 64

struct operates;
/* Watches outcomes from now on. */
baton_code operates_open(struct session *session, struct operates **ret_operates,
                         struct baton_error *err);
void operates_close(struct operates *operates);

struct operate_one {
    struct control control; /* kind, turn_id and what belongs to the kind; id and at are set */
    const char *run_id;     /* "" outside a run */
    struct operated operated;
};
/*
 * Sends at most OPERATE_BATCH to the owners of their turns at one service and waits at most timeout_ms for all
 * answers; not at all where no worker of the service lives. An error holds for all of them, and any of them may be in
 * the log. unknown_service: its control topic is missing.
 */
baton_code operates_send(struct operates *operates, const char *service, struct operate_one *all,
                         size_t count, int64_t timeout_ms, struct baton_error *err);

#endif
