/*
 * How long to wait before try n: exponential, capped, with jitter, never before a floor.
 *
 * Jitter keeps a fleet from coming back at one moment; the floor is a provider's retry-after, which
 * nothing may shorten. Any thread.
 */
#ifndef BATON_BASE_BACKOFF_H
#define BATON_BASE_BACKOFF_H

#include <stdint.h>

struct backoff {
    int64_t first_ms; /* before the second try */
    double factor;    /* at least 1 */
    int64_t max_ms;   /* of the delay before jitter */
    double jitter;    /* 0..1: a fraction to either side */
};

/* The delay after n failures (n >= 1): first * factor^(n-1), at most max, +- jitter, at least
 * floor_ms. */
int64_t backoff_delay_ms(const struct backoff *backoff, int n, int64_t floor_ms);
/* The same with the draw given: 0 is the shortest, 1 the longest delay. For tests and plans. */
int64_t backoff_delay_drawn_ms(const struct backoff *backoff, int n, int64_t floor_ms, double draw);

#endif
