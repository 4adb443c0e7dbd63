/*
 * States of a turn (at one service), of an attempt and of a circuit, with their legal moves.
 *
 * STATE(word, flags, moves): word is what SQL, JSON and people see. `none` is the state before the
 * first record; it has no row here, TURN_BIRTHS and ATTEMPT_BIRTHS say where a life may begin.
 */
#ifndef BATON_BASE_TBL_STATES_H
#define BATON_BASE_TBL_STATES_H

/* clang-format off */
#define TURN_STATES(STATE) \
    STATE(queued,    STATE_OPEN,   TO(TURN, running) | TO(TURN, delegated) | TO(TURN, parked) | TO(TURN, cancelled)) \
    STATE(running,   STATE_OPEN,   TO(TURN, queued) | TO(TURN, delegated) | TO(TURN, parked) | TO(TURN, completed) | TO(TURN, cancelled)) \
    STATE(parked,    STATE_OPEN,   TO(TURN, queued) | TO(TURN, delegated) | TO(TURN, cancelled)) \
    STATE(delegated, STATE_CLOSED, 0) \
    STATE(completed, STATE_CLOSED, 0) \
    STATE(cancelled, STATE_CLOSED, 0)
#define TURN_BIRTHS (TO(TURN, queued) | TO(TURN, running) | TO(TURN, parked) | TO(TURN, cancelled))

#define ATTEMPT_STATES(STATE) \
    STATE(queued,    STATE_OPEN,   TO(ATTEMPT, running) | TO(ATTEMPT, failed) | TO(ATTEMPT, delegated) | TO(ATTEMPT, cancelled)) \
    STATE(running,   STATE_OPEN,   TO(ATTEMPT, completed) | TO(ATTEMPT, failed) | TO(ATTEMPT, delegated) | TO(ATTEMPT, cancelled)) \
    STATE(completed, STATE_CLOSED, 0) \
    STATE(failed,    STATE_CLOSED, 0) \
    STATE(delegated, STATE_CLOSED, 0) \
    STATE(cancelled, STATE_CLOSED, 0)
#define ATTEMPT_BIRTHS (TO(ATTEMPT, queued) | TO(ATTEMPT, running) | TO(ATTEMPT, failed) | TO(ATTEMPT, cancelled))

/* A worker's circuit. Its life begins in closed; a worker that finds a note of an open one begins to
 * probe. A success closes it from anywhere; a probe that fails leaves it where it is. */
#define CIRCUIT_STATES(STATE) \
    STATE(closed,    TO(CIRCUIT, open) | TO(CIRCUIT, half_open)) \
    STATE(open,      TO(CIRCUIT, half_open) | TO(CIRCUIT, closed)) \
    STATE(half_open, TO(CIRCUIT, closed))
/* clang-format on */

#endif
