/* Legal moves of turns, attempts and circuits, from the one table. Called by the movers in worker/. */
#include "common/base/state.h"

#include "common/base/check.h"
#include "common/base/word.h"

struct state_row {
    unsigned flags;
    unsigned moves;
};

#define WORD(word, flags, moves) #word,
#define ROW(word, flags, moves) {flags, moves},
static const char *const turn_words[] = {TURN_STATES(WORD)};
static const struct state_row turn_rows[] = {TURN_STATES(ROW)};
static const char *const attempt_words[] = {ATTEMPT_STATES(WORD)};
static const struct state_row attempt_rows[] = {ATTEMPT_STATES(ROW)};
#undef WORD
#undef ROW
#define WORD(word, moves) #word,
#define MOVES(word, moves) moves,
static const char *const circuit_words[] = {CIRCUIT_STATES(WORD)};
static const unsigned circuit_moves[] = {CIRCUIT_STATES(MOVES)};
#undef WORD
#undef MOVES

const char *turn_state_word(enum turn_state state)
{
    BATON_PRE((unsigned)state < TURN_STATE_COUNT);
    return turn_words[state];
}

bool turn_state_parse(const char *text, size_t text_len, enum turn_state *ret_state)
{
    int i = word_find(turn_words, COUNT_OF(turn_words), text, text_len);
    if (i >= 0) {
        *ret_state = (enum turn_state)i;
    }
    return i >= 0;
}

bool turn_state_open(enum turn_state state)
{
    BATON_PRE((unsigned)state < TURN_STATE_COUNT);
    return (turn_rows[state].flags & STATE_OPEN) != 0;
}

bool turn_state_may_begin(enum turn_state to)
{
    return (TURN_BIRTHS & (1u << to)) != 0;
}

bool turn_state_may_move(enum turn_state from, enum turn_state to)
{
    BATON_PRE((unsigned)from < TURN_STATE_COUNT && (unsigned)to < TURN_STATE_COUNT);
    return (turn_rows[from].moves & (1u << to)) != 0;
}

const char *attempt_state_word(enum attempt_state state)
{
    BATON_PRE((unsigned)state < ATTEMPT_STATE_COUNT);
    return attempt_words[state];
}

bool attempt_state_parse(const char *text, size_t text_len, enum attempt_state *ret_state)
{
    int i = word_find(attempt_words, COUNT_OF(attempt_words), text, text_len);
    if (i >= 0) {
        *ret_state = (enum attempt_state)i;
    }
    return i >= 0;
}

bool attempt_state_live(enum attempt_state state)
{
    BATON_PRE((unsigned)state < ATTEMPT_STATE_COUNT);
    return (attempt_rows[state].flags & STATE_OPEN) != 0;
}

bool attempt_state_may_begin(enum attempt_state to)
{
    return (ATTEMPT_BIRTHS & (1u << to)) != 0;
}

bool attempt_state_may_move(enum attempt_state from, enum attempt_state to)
{
    BATON_PRE((unsigned)from < ATTEMPT_STATE_COUNT && (unsigned)to < ATTEMPT_STATE_COUNT);
    return (attempt_rows[from].moves & (1u << to)) != 0;
}

const char *circuit_state_word(enum circuit_state state)
{
    BATON_PRE((unsigned)state < CIRCUIT_STATE_COUNT);
    return circuit_words[state];
}

bool circuit_state_parse(const char *text, size_t text_len, enum circuit_state *ret_state)
{
    int i = word_find(circuit_words, COUNT_OF(circuit_words), text, text_len);
    if (i >= 0) {
        *ret_state = (enum circuit_state)i;
    }
    return i >= 0;
}

bool circuit_state_may_move(enum circuit_state from, enum circuit_state to)
{
    BATON_PRE((unsigned)from < CIRCUIT_STATE_COUNT && (unsigned)to < CIRCUIT_STATE_COUNT);
    return (circuit_moves[from] & (1u << to)) != 0;
}
