/*
 * One service as `baton services` shows it: to scripts (service_json.c), and to people (service_text.c).
 * lacks: what of it could not be read, and so is empty here; BATON_OK: nothing.
 *
 * Included by cmd_services_list.c. Main thread.
 */
#ifndef BATON_PRODUCER_SERVICE_SHOWN_H
#define BATON_PRODUCER_SERVICE_SHOWN_H

#include "baton/code.h"

struct buf;
struct service_view;
struct table;

/* Appends its object, as one line. */
void service_json(const struct service_view *view, const struct baton_error *lacks,
                  struct buf *out);
/* Adds its row, and appends the lines that stand below the table. */
void service_row(const struct service_view *view, const struct baton_error *lacks,
                 struct table *table, struct buf *below);

#endif
