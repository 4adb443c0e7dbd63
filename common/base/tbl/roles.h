/* Roles and the verdicts that end a turn of each. A workflow may narrow them. */
#ifndef BATON_BASE_TBL_ROLES_H
#define BATON_BASE_TBL_ROLES_H

/* ROLE(word, "verdicts in words") */
#define ROLES(ROLE)                                                                                \
    ROLE(owner, "done done_with_concerns blocked needs_context")                                   \
    ROLE(reviewer, "approve changes blocked needs_context escalate")                               \
    ROLE(arbiter, "proceed revise reset escalate")

/* VERDICT(word) : every verdict of any role */
#define VERDICTS(VERDICT)                                                                          \
    VERDICT(done)                                                                                  \
    VERDICT(done_with_concerns)                                                                    \
    VERDICT(blocked)                                                                               \
    VERDICT(needs_context)                                                                         \
    VERDICT(approve)                                                                               \
    VERDICT(changes)                                                                               \
    VERDICT(escalate)                                                                              \
    VERDICT(proceed)                                                                               \
    VERDICT(revise)                                                                                \
    VERDICT(reset)

#endif
