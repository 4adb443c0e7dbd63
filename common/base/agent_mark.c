/* The variables that agent programs set for what they start (AGENT CLIs of 2026); called as its header says. */
#include "common/base/agent_mark.h"

#include <stddef.h>
#include <stdlib.h>

static const char *const marks[] = {AGENT_MARK_ATTEMPT, "CLAUDECODE", "GEMINI_CLI",
                                    "CODEX_SANDBOX"};

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0';
}

const char *agent_mark(void)
{
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        if (is_set(marks[i])) {
            return marks[i];
        }
    }
    return NULL;
}

bool agent_in_attempt(void)
{
    return is_set(AGENT_MARK_ATTEMPT);
}
