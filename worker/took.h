/*
 * What the attempts of a turn took, for its next one: the budget of costs that is left, and the agent
 * session to go on in (took.c).
 *
 * Included by claim.c. Engine's thread.
 */
#ifndef BATON_WORKER_TOOK_H
#define BATON_WORKER_TOOK_H

#include <stdbool.h>
#include <stdint.h>

struct receipt;
struct turn_record;
struct usage;
struct worker;

/* What is left of the turn's budget of costs; all of it where an operator has it tried beyond. 0: no
 * bound. */
int64_t took_cost_left(const struct worker *w, const struct turn_record *record);
/* Have the services before this one spent all that the turn may cost here, and no operator has had it
 * replayed since? It is not tried here, then: bounds may differ between hosts, and a service may ignore its own. */
bool took_all_before(const struct worker *w, const struct receipt *receipt);
/* The session of the newest attempt here that told one, and what attempts in it took; NULL: none, or the
 * configuration does not want it. Borrowed from ret_usage. */
const char *took_session(const struct worker *w, const struct turn_record *record,
                         struct usage *ret_usage);

#endif
