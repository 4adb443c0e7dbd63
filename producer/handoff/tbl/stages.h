/*
 * The stages of a handoff, in their order (rule H-01). The operation stops at the first
 * that refuses and names it.
 *
 * STAGE(word, status where it refuses, what it asks)
 *   blocked: what was asked for is not allowed; failed: something here is broken (H-04)
 */
#ifndef BATON_PRODUCER_HANDOFF_TBL_STAGES_H
#define BATON_PRODUCER_HANDOFF_TBL_STAGES_H

/* clang-format off */
#define HANDOFF_STAGES(STAGE) \
    STAGE(policy,             blocked, "may who asks hand off here") \
    STAGE(resolve_run,        blocked, "is the run open, and the sender's turn of this epoch and revision") \
    STAGE(resolve_source,     failed,  "is the sender a slot of the workflow") \
    STAGE(resolve_transition, blocked, "does exactly one transition of the sender fit") \
    STAGE(resolve_target,     blocked, "whom does its target mean") \
    STAGE(authorize_topology, blocked, "does a channel permit each of them") \
    STAGE(cycle_limit,        blocked, "may the transition be taken once more") \
    STAGE(hook,               blocked, "does its hook let it pass") \
    STAGE(recheck,            blocked, "run, topology and cap once more, after the hook") \
    STAGE(publish,            failed,  "can a turn be sent to a target")

/* STATUS(word) : the result; delivered wins over queued, queued over failed (H-22) */
#define HANDOFF_STATUSES(STATUS) \
    STATUS(delivered) \
    STATUS(queued) \
    STATUS(blocked) \
    STATUS(failed)
/* clang-format on */

#endif
