/*
 * What people hand to a command: files, KEY=VALUE, times. Every refusal is invalid_request, or
 * record_too_large, and says what was given. Main thread.
 */
#ifndef BATON_PRODUCER_INPUT_H
#define BATON_PRODUCER_INPUT_H

#include "baton/code.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/command.h"

#include <stdbool.h>

/* A file, or standard input for "-"; at most what a turn can hold. */
baton_code input_read(const char *path, struct buf *out, struct baton_error *err);
/* KEY=VALUE, any number of times, as a JSON object of texts. */
baton_code input_data(const char *const *list, size_t count, struct buf *out,
                      struct baton_error *err);
/* RFC 3339 in UTC, milliseconds may be left out. */
bool input_time_parse(const char *text, struct wall_ms *ret_at);
/* The time of an option, RFC 3339 in UTC, milliseconds may be left out; untouched where none is given. */
baton_code input_time(struct command *cmd, const char *option, struct wall_ms *ret_at,
                      struct baton_error *err);

#endif
