/*
 * The validator in front of cJSON: decides whether bytes are strict JSON, before anything is built
 * from them. Reads by length, never recurses, and allocates only for objects with many keys.
 * Any thread.
 */
#ifndef BATON_RECORD_JSON_CHECK_H
#define BATON_RECORD_JSON_CHECK_H

#include "baton/code.h"
#include "common/record/json.h"

#include <stdbool.h>
#include <stddef.h>

#define JSON_DEPTH_MAX 64     /* what a caller may ask for; containers are bits of one word */
#define JSON_VALUES_MAX 65536 /* of a document: its tree stays below 10 MiB */

/* The raw bytes of the root object's members, in their order. */
struct json_members {
    struct json_span *spans;
    size_t count;
    size_t cap;
};

/*
 * Checks all that json_parse promises. With members (zeroed by the caller, who frees spans) the
 * values of a root object are noted there. Errors: invalid_envelope with line and column,
 * no_memory.
 */
baton_code json_check(const char *bytes, size_t len, int depth_max, struct json_members *members,
                      struct baton_error *err);

#endif
