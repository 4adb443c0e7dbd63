/*
 * Dead letters of records that were rejected, and of turns that are parked (dead_letter.c).
 *
 * Included by what rejects, parks and passes on. Engine's thread.
 */
#ifndef BATON_WORKER_DEAD_LETTER_H
#define BATON_WORKER_DEAD_LETTER_H

#include "baton/code.h"

#include <stdbool.h>

struct buf;
struct log_record;
struct turn_record;
struct worker;

/* The dead letter of a record that was rejected: as it came, with code and note. */
void dead_letter_rejected(struct worker *w, const struct log_record *record, baton_code code,
                          const char *note);
/* The dead letter of a turn that is parked. source: its handoff record, or NULL if it was taken in
 * before. */
void dead_letter_parked(struct worker *w, const struct turn_record *record,
                        const struct log_record *source);
/* The newest attempts as JSON: at most 16 of them, and 8 KiB. */
void attempts_write(const struct turn_record *record, struct buf *out);
/* Can dead letters be written, as far as is known? What needs one waits otherwise, the rest goes on. */
bool can_bury(const struct worker *w);

#endif
