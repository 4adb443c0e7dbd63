/* Closed words of workflow files. A number is never stored: the words are. */
#ifndef BATON_PRODUCER_WORKFLOW_TBL_WORDS_H
#define BATON_PRODUCER_WORKFLOW_TBL_WORDS_H

/* INVOKE(word, what it means) : may agents start a run? */
#define WORKFLOW_INVOKES(INVOKE)                                                                   \
    INVOKE(allow, "agents may start it as people may")                                             \
    INVOKE(ask, "an agent's start needs a person who confirms it")                                 \
    INVOKE(deny, "only people start it")

/* STATUS(word) : where the task stands; only a verdict moves it */
#define TASK_STATUSES(STATUS)                                                                      \
    STATUS(active)                                                                                 \
    STATUS(review_ready)                                                                           \
    STATUS(in_review)

/* END(word) : how an `ends` row ends the run; cancelled, expired and denied are not a verdict's */
#define WORKFLOW_ENDS(END)                                                                         \
    END(completed)                                                                                 \
    END(failed)

/* CLASS(word) : may the hook hold a handoff up? */
#define HOOK_CLASSES(CLASS)                                                                        \
    CLASS(validation)                                                                              \
    CLASS(side_effect)

/* RESERVED(key) : of prepared hand-offs and approvals, which have their own version of this file */
#define WORKFLOW_RESERVED(RESERVED)                                                                \
    RESERVED(approval)                                                                             \
    RESERVED(approvals)                                                                            \
    RESERVED(blueprint)                                                                            \
    RESERVED(collect)                                                                              \
    RESERVED(fan_out)                                                                              \
    RESERVED(gate)                                                                                 \
    RESERVED(items)                                                                                \
    RESERVED(report)

#endif
