/*
 * The handoff operation: may ownership pass from one slot of a run to others, and to which. One
 * function for the coordinator's own transitions, for what an executor's result asks for, and for
 * what people ask for.
 *
 * In: producer/coordinator/advance.c  Out: producer/coordinator/send.c
 *
 * Pure: it decides on what it is given, changes nothing, publishes nothing and never fails but by
 * its result (H-24). What follows from a taken handoff (the count, the turns) is committed by who
 * called it, in one transaction of the log; so nothing is reserved and nothing refunded. Any thread.
 */
#ifndef BATON_PRODUCER_HANDOFF_HANDOFF_H
#define BATON_PRODUCER_HANDOFF_HANDOFF_H

#include "baton/code.h"
#include "producer/handoff/tbl/stages.h"
#include "producer/run/run.h"

#define STAGE_ENUM(word, status, asks) HANDOFF_STAGE_##word,
enum handoff_stage { HANDOFF_STAGES(STAGE_ENUM) HANDOFF_STAGE_COUNT };
#undef STAGE_ENUM
#define STATUS_ENUM(word) HANDOFF_##word,
enum handoff_status { HANDOFF_STATUSES(STATUS_ENUM) HANDOFF_STATUS_COUNT };
#undef STATUS_ENUM

const char *handoff_stage_word(enum handoff_stage stage);
const char *handoff_status_word(enum handoff_status status);

/* Who asks: decides what policy lets pass. */
enum handoff_actor {
    HANDOFF_ACTOR_workflow, /* the coordinator: a verdict took a transition */
    HANDOFF_ACTOR_agent,    /* an executor's result, or a program's request */
    HANDOFF_ACTOR_person,
};

/* What is known of the hook of the transition; NULL where it has not run. */
struct handoff_hook_end {
    baton_code
        code; /* ok: it lets pass; hook_blocked, hook_retry, hook_unavailable, patch_invalid */
    int64_t retry_after_ms;
    char text[256]; /* its reason */
};

/* Which targets can be written to just now; NULL: all. False: not this slot's service. */
typedef bool handoff_reachable(void *arg, size_t slot, baton_code *ret_code);

struct handoff_ask {
    enum handoff_actor actor;
    const char *from; /* NODE or NODE.SLOT */
    bool has_verdict; /* of the sender's turn: chooses among its transitions */
    enum verdict verdict;
    const char *target;  /* as asked for: NODE, NODE.SLOT or *; NULL: whatever the verdict takes */
    const char *summary; /* for the next turn */
    const char *const *data; /* keys of data that were given */
    size_t n_data;
    const char *facts;           /* all of its data, a raw JSON object of texts; NULL: none */
    const struct run_turn *turn; /* the sender's; NULL where a person asks without one */
    const struct handoff_hook_end *hook;
    handoff_reachable *reachable;
    void *reachable_arg;
};

struct handoff_result {
    enum handoff_status status; /* queued: to be taken; delivered is for who heard of a claim */
    enum handoff_stage stage;   /* where it stopped; publish where it did not */
    baton_code code;
    char text[512];                               /* what was refused and why, one line */
    const struct workflow_transition *transition; /* once it is known */
    slot_set targets;                             /* each gets a turn */
    slot_set unreached;     /* each would have, and cannot be written to (H-23) */
    int64_t retry_after_ms; /* hook_retry */
    bool deduped;    /* queued: it is there already and still open, so nothing was sent (H-15) */
    bool wants_hook; /* it stopped before the hook, which must run first: not refused */
};

/* What data (a raw JSON object of texts, or NULL) says the handoff is about, where the transition's hook
 * has a `subject`; false: nothing. Longer than RUN_SUBJECT_MAX is cut there, and so no run's subject. */
bool handoff_subject(const struct workflow_transition *transition, const char *data,
                     char ret_subject[RUN_SUBJECT_MAX + 2]);

/* Every stage in its order, up to the first that refuses. Rules H-01 to H-10, H-14, H-22 to
 * H-27, H-30, H-37, H-40, H-45, H-61. */
void handoff_decide(const struct run *run, const struct handoff_ask *ask,
                    struct handoff_result *ret_result);

#endif
