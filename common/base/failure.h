/* Failure classes of attempts and the actions that may follow: closed words. */
#ifndef BATON_BASE_FAILURE_H
#define BATON_BASE_FAILURE_H

#include "common/base/tbl/failures.h"

#include <stdbool.h>
#include <stddef.h>

#define FAILURE_ENUM(word, counter, provider, actions, text) FAILURE_##word,
enum failure { FAILURES(FAILURE_ENUM) FAILURE_COUNT };
#undef FAILURE_ENUM

#define ACTION_ENUM(word, text) ACTION_##word,
enum action { ACTIONS(ACTION_ENUM) ACTION_COUNT };
#undef ACTION_ENUM

/* Which of the turn's two counters a class raises. */
enum failure_counter { COUNTER_failures, COUNTER_losses };
/* What a class says of the provider (for the circuit). */
enum provider_sign { PROVIDER_nothing, PROVIDER_down, PROVIDER_up };

const char *failure_word(enum failure failure);
/* All words with commas between, for messages. */
const char *failure_list(void);
const char *failure_text(enum failure failure);
bool failure_parse(const char *text, size_t text_len, enum failure *ret_failure);
enum failure_counter failure_counts_in(enum failure failure);
enum provider_sign failure_says(enum failure failure);
/* The default on_failure list, words with single spaces. */
const char *failure_default_actions(enum failure failure);

const char *action_word(enum action action);
bool action_parse(const char *text, size_t text_len, enum action *ret_action);

#endif
