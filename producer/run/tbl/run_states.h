/*
 * States of a run with their legal moves (rule S4), and how a verdict moves the task's status.
 *
 * STATE(word, flags, moves): word is what JSON and people see. A closed state is left only by a
 * person's reopening, which raises the epoch.
 */
#ifndef BATON_PRODUCER_RUN_TBL_RUN_STATES_H
#define BATON_PRODUCER_RUN_TBL_RUN_STATES_H

/* clang-format off */
#define RUN_STATES(STATE) \
    STATE(active,    STATE_OPEN,   TO(RUN, waiting) | TO(RUN, completed) | TO(RUN, failed) | TO(RUN, expired) | TO(RUN, cancelled)) \
    STATE(waiting,   STATE_OPEN,   TO(RUN, active) | TO(RUN, completed) | TO(RUN, failed) | TO(RUN, expired) | TO(RUN, cancelled)) \
    STATE(completed, STATE_CLOSED, TO(RUN, active)) \
    STATE(failed,    STATE_CLOSED, TO(RUN, active)) \
    STATE(expired,   STATE_CLOSED, TO(RUN, active)) \
    STATE(cancelled, STATE_CLOSED, TO(RUN, active))

/* STATUS_MOVE(role, verdict, status of the task afterwards, does its revision rise)  */
#define STATUS_MOVES(STATUS_MOVE) \
    STATUS_MOVE(owner,    done,               review_ready, true) \
    STATUS_MOVE(owner,    done_with_concerns, review_ready, true) \
    STATUS_MOVE(reviewer, approve,            review_ready, false) \
    STATUS_MOVE(reviewer, changes,            active,       false) \
    STATUS_MOVE(reviewer, escalate,           in_review,    false) \
    STATUS_MOVE(arbiter,  proceed,            review_ready, false) \
    STATUS_MOVE(arbiter,  revise,             active,       false) \
    STATUS_MOVE(arbiter,  reset,              active,       false)
/* clang-format on */

#endif
