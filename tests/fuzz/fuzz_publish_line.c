/*
 * Any bytes as a line of `baton publish --lines`: neither a crash nor a leak, and what is taken is a
 * request that names what a turn cannot be without.
 * Parts: producer
 */
#include "producer/publish_line.h"

#include <stdlib.h>
#include <string.h>

static void insist(bool holds)
{
    if (!holds) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct publish_request nothing = {.service = NULL};
    const struct publish_request fallback = {.service = "alpha", .role = "owner", .life_ms = 1000};
    struct baton_error err;
    struct publish_line line;
    const bool alone = size > 0 && (data[0] & 1) != 0; /* a line that begins with '{' */
    const baton_code rc =
        publish_line_read((const char *)data, size, alone ? &nothing : &fallback, &line, &err);
    if (rc != BATON_OK) {
        insist(rc == BATON_E_invalid_request || rc == BATON_E_record_too_large);
        insist(strlen(err.text) > 0 && line.doc == NULL);
        return 0;
    }
    const struct publish_request *request = &line.request;
    insist(request->service != NULL && request->role != NULL && request->task_id != NULL);
    insist(request->key != NULL && request->key[0] != '\0');
    insist(request->task_rev >= 0 && request->life_ms >= 0 && request->life_ms <= TURN_LIFE_MAX_MS);
    insist(request->payload_json == NULL || request->payload_json[0] == '{');
    insist(request->data == NULL || request->data[0] == '{');
    publish_line_done(&line);
    return 0;
}
