/* A growing array whose owner cannot go on without room: decisions, ends, records of a batch. Any
 * thread, one at a time for each array. */
#ifndef BATON_BASE_ARRAY_H
#define BATON_BASE_ARRAY_H

#include <stddef.h>

/*
 * The list with room for one more of count items of item_size bytes; *cap (items) doubles when it
 * must grow. Without memory the program stops: what it knew stands in the log, and half of it must
 * not be decided.
 */
void *array_grown(void *list, size_t count, size_t *cap, size_t item_size);

#endif
