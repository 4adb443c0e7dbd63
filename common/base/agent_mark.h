/*
 * Whether an agent runs this process: agent programs mark their children, a worker marks its executors
 * and a coordinator its hooks. A courtesy, not a wall: whoever takes the marker out of the environment
 * is not found out, and only keys that agents cannot read keep them from acting as a person.
 *
 * In: producer/ask.c, common/record/passphrase.c  Out: (the environment). Any thread, while nobody changes it.
 */
#ifndef BATON_BASE_AGENT_MARK_H
#define BATON_BASE_AGENT_MARK_H

#include <stdbool.h>

#define AGENT_MARK_ATTEMPT "BATON_ATTEMPT" /* an attempt's, or a hook's, own processes */

/* The variable that says so, BATON_ATTEMPT before those of agent programs; NULL: no agent. */
const char *agent_mark(void);
/* Is this a process of an attempt or of a hook? */
bool agent_in_attempt(void);

#endif
