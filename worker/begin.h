/*
 * How the next attempt begins while credential profiles rest or the circuit is open (begin.c).
 *
 * Included by claim.c. Engine's thread.
 */
#ifndef BATON_WORKER_BEGIN_H
#define BATON_WORKER_BEGIN_H

#include "common/base/failure.h"
#include "worker/failure_table.h"

#include <stdbool.h>
#include <stdint.h>

struct turn_record;
struct worker;

/* How the next attempt begins: start (with which profile), retry (wait first), hold (the circuit is
 * open) or delegate, with its pass, for a refusal of *ret_class; the caller frees it. birth: the turn
 * has no record yet. */
struct next_step begin_next(struct worker *w, const struct turn_record *record, bool birth,
                            enum failure *ret_class, char **ret_pass);
/* Every profile rests, or the circuit is open, and the turn goes on at another service: its attempt
 * never starts here. */
void begin_elsewhere(struct worker *w, int32_t partition, struct turn_record *take_record,
                     bool birth, const char *to, enum failure class, char *take_pass);

#endif
