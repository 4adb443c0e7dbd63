/*
 * A turn's whole life as people and scripts see it: `turns show`, `turns wait`, `dlq show`.
 */
#ifndef BATON_PRODUCER_LIFE_H
#define BATON_PRODUCER_LIFE_H

#include "common/base/buf.h"
#include "common/record/turn_record.h"
#include "topics/turn_log.h"

#include <stddef.h>

/* One JSON object and a newline: identity, state, verdict, attempts, result. */
void life_print_json(const struct turn_life *life, struct buf *out);
/* The same for a terminal of so many columns (0: none). */
void life_print_text(const struct turn_life *life, size_t width, struct buf *out);

/* What a command that waited for this turn ends with: ok for completed, the code of a parked one,
 * turn_closed for a cancelled one. */
baton_code life_code(const struct turn_record *record);
/* The deadline that its publisher gave the turn, while it is open; 0: none. */
struct wall_ms life_deadline(const struct turn_record *record);
/* Nothing more comes without an operator: closed here for good, or parked. */
bool life_ended(const struct turn_record *record);

#endif
