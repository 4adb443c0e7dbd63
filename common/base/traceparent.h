/*
 * W3C Trace Context, version 00: `00-<trace id>-<span id>-<flags>`, lower-case hex, neither id all zero.
 *
 * Information and never believed: nothing is decided by it. One that is malformed is none. Any thread.
 */
#ifndef BATON_BASE_TRACEPARENT_H
#define BATON_BASE_TRACEPARENT_H

#include <stdbool.h>
#include <stddef.h>

#define TRACEPARENT_LEN 55

struct traceparent {
    char trace[32 + 1];
    char span[16 + 1]; /* of whoever sent it: the parent of what is done about it */
    bool sampled;      /* false: whoever began the trace wants no spans of it */
};
struct traceparent_text {
    char s[TRACEPARENT_LEN + 1];
};

/* False: malformed, and nothing is set. ret_parsed may be NULL. */
bool traceparent_parse(const char *text, size_t text_len, struct traceparent *ret_parsed);
struct traceparent_text traceparent_text_of(const struct traceparent *traceparent);

#endif
