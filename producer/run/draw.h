/*
 * A run's path as a small graph of plain text, within 80 columns: its turns in their order, by which
 * transition each came, what it said, and what may follow. Any thread.
 */
#ifndef BATON_PRODUCER_RUN_DRAW_H
#define BATON_PRODUCER_RUN_DRAW_H

#include "producer/run/run.h"

#define RUN_DRAW_WIDTH 80

void run_draw(const struct run *run, struct wall_ms now, struct buf *out);
/* What a person can do, or what is looked at: a line each. */
void run_draw_next(const struct run *run, struct buf *out);
/* Who is at turn, since when and why, and what may come next: lines for people, with run_draw's words. */
void run_draw_now(const struct run *run, struct wall_ms now, struct buf *out);

#endif
