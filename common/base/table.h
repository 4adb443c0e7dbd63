/*
 * A table for people: aligned columns, two spaces between, no tabs, no trailing blanks.
 *
 * On a terminal the rows fit its width where they can: the widest cells are cut with "...", but
 * never the first column, numbers, and what is added whole. Elsewhere nothing is cut.
 * Cells are foreign text and are escaped here. Not shared between threads.
 */
#ifndef BATON_BASE_TABLE_H
#define BATON_BASE_TABLE_H

#include "common/base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct table;

/* titles: literals, n_columns of 1..16. NULL when memory is out. */
struct table *table_new(const char *const *titles, size_t n_columns);
/* The next cell, row by row; NULL is "-". A number stands to the right. */
void table_text(struct table *table, const char *text);
void table_bytes(struct table *table, const void *bytes, size_t len);
/* The same, but never cut: a time, a short word. */
void table_whole(struct table *table, const char *text);
void table_int(struct table *table, int64_t value);
size_t table_rows(const struct table *table);
/* Prints titles and rows; width 0: as wide as needed. False when memory was out at any cell. */
bool table_print(const struct table *table, size_t width, struct buf *out);
void table_free(struct table *table);

#endif
