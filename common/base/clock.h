/*
 * Two clocks that cannot be mixed: wall time is shown and written, monotonic time is waited on.
 *
 * Any thread. Tests may set both (clock_test_set); programs never do. Milliseconds everywhere.
 */
#ifndef BATON_BASE_CLOCK_H
#define BATON_BASE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wall_ms {
    int64_t v; /* since 1970-01-01T00:00:00Z */
};
struct mono_ms {
    int64_t v; /* CLOCK_BOOTTIME of this host: also counts while it sleeps */
};

struct wall_ms wall_now(void);
struct mono_ms mono_now(void);
/* Nanoseconds of the monotonic clock, for measuring. */
int64_t mono_ns(void);

/* RFC 3339 UTC with milliseconds: 2026-11-29T14:20:43.120Z */
#define TIME_TEXT_LEN 24
struct time_text {
    char s[TIME_TEXT_LEN + 1];
};
struct time_text wall_text(struct wall_ms at);
/* Exactly that form, a real date, years 1970 to 9999. */
bool wall_parse(const char *text, size_t text_len, struct wall_ms *ret_at);

/* For tests only: fixes both clocks until called with {0}, {0}. */
void clock_test_set(struct wall_ms wall, struct mono_ms mono);

#endif
