/* Failure classes and actions from their one table. Called by configuration, executors and settle.
 */
#include "common/base/failure.h"

#include "common/base/check.h"
#include "common/base/word.h"

#include <string.h>

struct failure_row {
    enum failure_counter counter;
    enum provider_sign provider;
    const char *actions;
    const char *text;
};

#define WORD(word, counter, provider, actions, text) #word,
#define ROW(word, counter, provider, actions, text)                                                \
    {COUNTER_##counter, PROVIDER_##provider, actions, text},
#define ACTION_WORD(word, text) #word,
static const char *const failure_words[] = {FAILURES(WORD)};
static const struct failure_row failure_rows[] = {FAILURES(ROW)};
static const char *const action_words[] = {ACTIONS(ACTION_WORD)};
#undef WORD
#undef ROW
#undef ACTION_WORD

const char *failure_word(enum failure failure)
{
    BATON_PRE((unsigned)failure < FAILURE_COUNT);
    return failure_words[failure];
}

const char *failure_list(void)
{
#define FAILURE_LISTED(word, counter, provider, actions, text) ", " #word
    static const char list[] = FAILURES(FAILURE_LISTED);
#undef FAILURE_LISTED
    return list + strlen(", ");
}

const char *failure_text(enum failure failure)
{
    BATON_PRE((unsigned)failure < FAILURE_COUNT);
    return failure_rows[failure].text;
}

bool failure_parse(const char *text, size_t text_len, enum failure *ret_failure)
{
    int i = word_find(failure_words, COUNT_OF(failure_words), text, text_len);
    if (i >= 0) {
        *ret_failure = (enum failure)i;
    }
    return i >= 0;
}

enum failure_counter failure_counts_in(enum failure failure)
{
    BATON_PRE((unsigned)failure < FAILURE_COUNT);
    return failure_rows[failure].counter;
}

enum provider_sign failure_says(enum failure failure)
{
    BATON_PRE((unsigned)failure < FAILURE_COUNT);
    return failure_rows[failure].provider;
}

const char *failure_default_actions(enum failure failure)
{
    BATON_PRE((unsigned)failure < FAILURE_COUNT);
    return failure_rows[failure].actions;
}

const char *action_word(enum action action)
{
    BATON_PRE((unsigned)action < ACTION_COUNT);
    return action_words[action];
}

bool action_parse(const char *text, size_t text_len, enum action *ret_action)
{
    int i = word_find(action_words, COUNT_OF(action_words), text, text_len);
    if (i >= 0) {
        *ret_action = (enum action)i;
    }
    return i >= 0;
}
