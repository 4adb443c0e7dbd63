/* Durations and sizes. Called by configuration and options. */
#include "common/base/quantity.h"

#include <stdio.h>
#include <string.h>

#define DURATION_MS_MAX (INT64_C(10000) * 86400000)

struct unit {
    const char *word;
    int64_t factor;
};

static const struct unit durations[] = {
    {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}, {NULL, 0},
};
static const struct unit sizes[] = {
    {"", 1}, {"K", 1024}, {"M", 1024 * 1024}, {"G", 1024 * 1024 * 1024}, {NULL, 0},
};

/* "012" is eight or ten or twelve, depending on who reads it. */
static bool leading_zero(const char *text, size_t n_digits)
{
    return n_digits > 1 && text[0] == '0';
}

/* Digits at the beginning of text; how many, or 0 if there are none or too many. */
static size_t digits(const char *text, size_t text_len, int64_t *ret_value)
{
    int64_t value = 0;
    size_t i = 0;
    while (i < text_len && text[i] >= '0' && text[i] <= '9') {
        if (value > (INT64_MAX - (text[i] - '0')) / 10) {
            return 0;
        }
        value = value * 10 + (text[i] - '0');
        i++;
    }
    *ret_value = value;
    return i;
}

static bool with_unit(const struct unit *units, const char *text, size_t text_len, int64_t max,
                      int64_t *ret_value)
{
    int64_t value;
    size_t n = digits(text, text_len, &value);
    if (n == 0 || leading_zero(text, n)) {
        return false;
    }
    for (; units->word != NULL; units++) {
        if (strlen(units->word) == text_len - n &&
            memcmp(units->word, text + n, text_len - n) == 0) {
            if (value > max / units->factor) {
                return false;
            }
            *ret_value = value * units->factor;
            return true;
        }
    }
    return false;
}

bool quantity_duration_parse(const char *text, size_t text_len, int64_t *ret_ms)
{
    return with_unit(durations, text, text_len, DURATION_MS_MAX, ret_ms);
}

bool quantity_seconds_parse(const char *text, size_t text_len, int64_t *ret_ms)
{
    static const struct unit seconds[] = {{"", 1000}, {NULL, 0}};
    return with_unit(seconds, text, text_len, DURATION_MS_MAX, ret_ms);
}

bool quantity_size_parse(const char *text, size_t text_len, int64_t *ret_bytes)
{
    return with_unit(sizes, text, text_len, INT64_MAX, ret_bytes);
}

bool quantity_int_parse(const char *text, size_t text_len, int64_t *ret_value)
{
    size_t sign = text_len > 0 && text[0] == '-' ? 1 : 0;
    int64_t value;
    size_t n = digits(text + sign, text_len - sign, &value);
    if (n == 0 || n != text_len - sign || leading_zero(text + sign, n)) {
        return false;
    }
    *ret_value = sign > 0 ? -value : value;
    return true;
}

bool quantity_real_parse(const char *text, size_t text_len, double *ret_value)
{
    int64_t whole;
    int64_t part = 0;
    size_t n = digits(text, text_len, &whole);
    size_t part_len = 0;
    if (n == 0 || n > 15 || leading_zero(text, n)) {
        return false;
    }
    if (n < text_len) {
        part_len = digits(text + n + 1, text_len - n - 1, &part);
        if (text[n] != '.' || part_len == 0 || part_len > 15 || n + 1 + part_len != text_len) {
            return false;
        }
    }
    double scale = 1;
    for (size_t i = 0; i < part_len; i++) {
        scale *= 10;
    }
    *ret_value = (double)whole + (double)part / scale;
    return true;
}

struct quantity_text quantity_duration_text(int64_t ms)
{
    struct quantity_text text;
    const struct unit *unit = &durations[1]; /* 0 is "0s" */
    if (ms != 0) {
        unit = &durations[0];
        for (const struct unit *at = durations; at->word != NULL; at++) {
            unit = ms % at->factor == 0 ? at : unit;
        }
    }
    snprintf(text.s, sizeof(text.s), "%lld%s", (long long)(ms / unit->factor), unit->word);
    return text;
}

struct quantity_text quantity_age_text(int64_t ms)
{
    const struct unit *unit = &durations[1];
    for (const struct unit *at = unit; at->word != NULL; at++) {
        unit = ms / at->factor >= 2 ? at : unit;
    }
    return quantity_duration_text(ms > 0 ? ms / unit->factor * unit->factor : 0);
}
