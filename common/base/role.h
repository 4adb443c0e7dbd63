/*
 * Roles and verdicts: closed words.
 *
 * A role is an attribute of a turn, read from its signed bytes. No function here or elsewhere takes
 * a role and returns another. Any thread.
 */
#ifndef BATON_BASE_ROLE_H
#define BATON_BASE_ROLE_H

#include "common/base/tbl/roles.h"

#include <stdbool.h>
#include <stddef.h>

#define ROLE_ENUM(word, verdicts) ROLE_##word,
enum role { ROLES(ROLE_ENUM) ROLE_COUNT };
#undef ROLE_ENUM

#define VERDICT_ENUM(word) VERDICT_##word,
enum verdict { VERDICTS(VERDICT_ENUM) VERDICT_COUNT };
#undef VERDICT_ENUM

/* Exact words only: no case folding, no trimming. text need not end with NUL. */
bool role_parse(const char *text, size_t text_len, enum role *ret_role);
const char *role_word(enum role role);
/* All words with commas between, for messages. */
const char *role_list(void);

bool verdict_parse(const char *text, size_t text_len, enum verdict *ret_verdict);
const char *verdict_word(enum verdict verdict);
/* May a turn of this role end with this verdict? (the default; see tbl/roles.h) */
bool verdict_legal(enum role role, enum verdict verdict);

/* A set of verdicts: bit 1 << verdict. */
typedef unsigned verdict_set;
#define VERDICT_BIT(verdict) (1u << (unsigned)(verdict))
/* All that are legal for the role. */
verdict_set verdicts_of(enum role role);

/* A set of roles: bit 1 << role. */
typedef unsigned role_set;
#define ROLE_BIT(role) (1u << (unsigned)(role))
#define ROLE_SET_ALL ((1u << ROLE_COUNT) - 1u)

#endif
