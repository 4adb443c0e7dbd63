/*
 * The collector: one HTTP POST after the other, by libcurl. One thread, but for collector_wake.
 *
 * The address comes from the configuration alone: no proxy of the environment, no redirection, no other protocol.
 */
#ifndef BATON_COMMON_TRACE_COLLECTOR_H
#define BATON_COMMON_TRACE_COLLECTOR_H

#include "baton/code.h"
#include "common/base/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct collector;

/*
 * Loads libcurl and looks at what the configuration names; speaks to nobody yet. config outlives it.
 * Errors: bad_config (no libcurl; no URL; headers or certificates cannot be used), key_unsafe,
 * service_unavailable, no_memory.
 */
baton_code collector_open(const struct config *config, struct collector **ret_collector,
                          struct baton_error *err);
void collector_close(struct collector *collector);

enum collector_said {
    COLLECTOR_took,    /* 2xx */
    COLLECTOR_later,   /* it is away, or says that it cannot take it now: once more */
    COLLECTOR_refused, /* it will never take this */
    COLLECTOR_stopped, /* given_up() */
};

struct collector_answer {
    enum collector_said said;
    int64_t wait_ms; /* later: what it asks for, 0 if nothing */
    char why[200];   /* one line, for the log; foreign texts are not in it */
};

/* Sends, for as long as the configuration allows; asks given_up now and then, and after each wake. */
struct collector_answer collector_send(struct collector *collector, const void *bytes, size_t len,
                                       bool (*given_up)(void *arg), void *arg);
/* Any thread: collector_send looks up. */
void collector_wake(struct collector *collector);

#endif
