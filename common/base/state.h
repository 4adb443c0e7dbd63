/*
 * The state machines as tables: turn (at one service), attempt, and a worker's circuit.
 *
 *            +--------------------------------------------------------------+
 *            v                                                              |
 *   (none) queued ----> running ----> completed        (retry, rotate: running -> queued, n+1)
 *      |     | |           | |                         (replay:        parked  -> queued, n+1)
 *      |     | +---------- | +------> parked (open: waits for an operator)
 *      |     +-----------> | -------> delegated (closed here, goes on at another service)
 *      +-----------------> cancelled  (also from queued, running, parked)
 *
 *   circuit: closed ----> open ----> half_open ----> closed   (a success closes it from open, too)
 *
 * Only these functions say what may follow what; turn_move (worker) asks them before every log
 * transaction, and SQL CHECK words are compared with the table by a test. Any thread.
 */
#ifndef BATON_BASE_STATE_H
#define BATON_BASE_STATE_H

#include "common/base/tbl/states.h"

#include <stdbool.h>
#include <stddef.h>

#define STATE_OPEN 1u
#define STATE_CLOSED 2u
#define TO(machine, word) (1u << machine##_##word)

#define TURN_ENUM(word, flags, moves) TURN_##word,
enum turn_state { TURN_STATES(TURN_ENUM) TURN_STATE_COUNT };
#undef TURN_ENUM

#define ATTEMPT_ENUM(word, flags, moves) ATTEMPT_##word,
enum attempt_state { ATTEMPT_STATES(ATTEMPT_ENUM) ATTEMPT_STATE_COUNT };
#undef ATTEMPT_ENUM

#define CIRCUIT_ENUM(word, moves) CIRCUIT_##word,
enum circuit_state { CIRCUIT_STATES(CIRCUIT_ENUM) CIRCUIT_STATE_COUNT };
#undef CIRCUIT_ENUM

const char *turn_state_word(enum turn_state state);
bool turn_state_parse(const char *text, size_t text_len, enum turn_state *ret_state);
/* Open: queued, running, parked. Closed: no exit. */
bool turn_state_open(enum turn_state state);
bool turn_state_may_begin(enum turn_state to);
bool turn_state_may_move(enum turn_state from, enum turn_state to);

const char *attempt_state_word(enum attempt_state state);
bool attempt_state_parse(const char *text, size_t text_len, enum attempt_state *ret_state);
/* Live: queued, running. At most one for each turn. */
bool attempt_state_live(enum attempt_state state);
bool attempt_state_may_begin(enum attempt_state to);
bool attempt_state_may_move(enum attempt_state from, enum attempt_state to);

const char *circuit_state_word(enum circuit_state state);
bool circuit_state_parse(const char *text, size_t text_len, enum circuit_state *ret_state);
bool circuit_state_may_move(enum circuit_state from, enum circuit_state to);

#endif
