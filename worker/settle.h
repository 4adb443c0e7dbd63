/*
 * Settling: what follows from an attempt that has ended (settle.c).
 *
 * Included by round.c, restore.c, and by what parks or loses an attempt. Engine's thread.
 */
#ifndef BATON_WORKER_SETTLE_H
#define BATON_WORKER_SETTLE_H

#include "baton/code.h"

#include <stdbool.h>
#include <stdint.h>

struct log_record;
struct recorded_end;
struct turn_record;
struct worker;

/*
 * Decides what follows from a recorded end; takes record (running, under the end's token). False,
 * and nothing is decided: a topic that it must write to is known to fail now.
 */
bool settle_end(struct worker *w, int32_t partition, struct turn_record *take_record,
                const struct recorded_end *end);
/* Decides about every attempt that has ended here and is not settled. */
void settle_ended(struct worker *w);
/* The attempt is lost: its worker is gone. counted: it may have started. */
bool settle_lost(struct worker *w, int32_t partition, struct turn_record *take_record, bool counted,
                 const char *note);
/* Parks a turn whose next attempt must not start, or that must not run here. attempt: its newest,
 * live or new. */
void settle_park(struct worker *w, int32_t partition, struct turn_record *take_record, bool birth,
                 baton_code code, const char *note, const struct log_record *source);

#endif
