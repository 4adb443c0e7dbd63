/*
 * Durations and sizes as people write them: 500ms 2s 20m 6h 7d; 64K 10M 1G. Whole numbers, one
 * unit, no sign, no blanks, no leading zero. Any thread.
 */
#ifndef BATON_BASE_QUANTITY_H
#define BATON_BASE_QUANTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Milliseconds; the unit must be there. At most 10000 days. */
bool quantity_duration_parse(const char *text, size_t text_len, int64_t *ret_ms);
/* The same of a plain number of seconds. */
bool quantity_seconds_parse(const char *text, size_t text_len, int64_t *ret_ms);
/* Bytes; K, M, G are powers of 1024; a plain number is bytes. */
bool quantity_size_parse(const char *text, size_t text_len, int64_t *ret_bytes);
/* A decimal number with an optional '-', nothing else. */
bool quantity_int_parse(const char *text, size_t text_len, int64_t *ret_value);
/* Digits with an optional point and more digits; no sign, no exponent. */
bool quantity_real_parse(const char *text, size_t text_len, double *ret_value);

/* The largest unit that gives a whole number: "20m", "1500ms". */
struct quantity_text {
    char s[32];
};
struct quantity_text quantity_duration_text(int64_t ms);
/* An age for people, rounded down to the largest unit of which it has two: "90s", "61m", "3h", "2d". */
struct quantity_text quantity_age_text(int64_t ms);

#endif
