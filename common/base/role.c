/* Roles and verdicts from their one table. Called from record, engine, worker and commands. */
#include "common/base/role.h"

#include "common/base/check.h"
#include "common/base/word.h"

#include <string.h>

#define ROLE_WORD(word, verdicts) #word,
static const char *const role_words[] = {ROLES(ROLE_WORD)};
#undef ROLE_WORD
#define ROLE_VERDICTS(word, verdicts) verdicts,
static const char *const role_verdicts[] = {ROLES(ROLE_VERDICTS)};
#undef ROLE_VERDICTS
#define VERDICT_WORD(word) #word,
static const char *const verdict_words[] = {VERDICTS(VERDICT_WORD)};
#undef VERDICT_WORD

bool role_parse(const char *text, size_t text_len, enum role *ret_role)
{
    int i = word_find(role_words, COUNT_OF(role_words), text, text_len);
    if (i >= 0) {
        *ret_role = (enum role)i;
    }
    return i >= 0;
}

const char *role_word(enum role role)
{
    BATON_PRE((unsigned)role < ROLE_COUNT);
    return role_words[role];
}

const char *role_list(void)
{
#define ROLE_LISTED(word, verdicts) ", " #word
    static const char list[] = ROLES(ROLE_LISTED);
#undef ROLE_LISTED
    return list + strlen(", ");
}

bool verdict_parse(const char *text, size_t text_len, enum verdict *ret_verdict)
{
    int i = word_find(verdict_words, COUNT_OF(verdict_words), text, text_len);
    if (i >= 0) {
        *ret_verdict = (enum verdict)i;
    }
    return i >= 0;
}

const char *verdict_word(enum verdict verdict)
{
    BATON_PRE((unsigned)verdict < VERDICT_COUNT);
    return verdict_words[verdict];
}

bool verdict_legal(enum role role, enum verdict verdict)
{
    BATON_PRE((unsigned)role < ROLE_COUNT && (unsigned)verdict < VERDICT_COUNT);
    return word_in_list(role_verdicts[role], verdict_words[verdict]);
}

verdict_set verdicts_of(enum role role)
{
    verdict_set set = 0;
    for (unsigned i = 0; i < VERDICT_COUNT; i++) {
        set |= verdict_legal(role, (enum verdict)i) ? VERDICT_BIT(i) : 0;
    }
    return set;
}
