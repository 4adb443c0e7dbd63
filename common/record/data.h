/*
 * Small facts that people and programs read: the object `data` and the text `summary` of a turn, and
 * of a request that is to become one. Any thread.
 */
#ifndef BATON_RECORD_DATA_H
#define BATON_RECORD_DATA_H

#include "baton/code.h"
#include "common/record/json.h"

#include <stdbool.h>

/* Names of 1 to ID_MAX bytes, each value at most LIMIT_DATA_VALUE bytes as it is written in raw; with
 * only_texts each value is a text. what names the record in errors. invalid_envelope, no_memory. */
baton_code data_check(const char *what, const struct json_value *data, struct json_span raw,
                      bool only_texts, struct baton_error *err);
/* A text that is not only blanks. invalid_envelope. */
baton_code summary_check(const char *what, const char *name, const char *text,
                         struct baton_error *err);

#endif
