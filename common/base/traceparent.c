/* The one parser of traceparent. Called by common/record/headers.c and who makes spans. */
#include "common/base/traceparent.h"

#include "common/base/id.h"

#include <stdio.h>
#include <string.h>

static bool id_valid(const char *at, size_t len)
{
    static const char zeros[] = "00000000000000000000000000000000";
    return hex_valid(at, len, len) && memcmp(at, zeros, len) != 0;
}

bool traceparent_parse(const char *text, size_t text_len, struct traceparent *ret_parsed)
{
    if (text == NULL || text_len != TRACEPARENT_LEN || memcmp(text, "00-", 3) != 0 ||
        !id_valid(text + 3, 32) || text[35] != '-' || !id_valid(text + 36, 16) || text[52] != '-' ||
        !hex_valid(text + 53, 2, 2)) {
        return false;
    }
    if (ret_parsed != NULL) {
        struct traceparent parsed = {.trace = ""};
        memcpy(parsed.trace, text + 3, 32);
        memcpy(parsed.span, text + 36, 16);
        parsed.sampled = strchr("13579bdf", text[54]) != NULL; /* the lowest bit */
        *ret_parsed = parsed;
    }
    return true;
}

struct traceparent_text traceparent_text_of(const struct traceparent *traceparent)
{
    struct traceparent_text text;
    snprintf(text.s, sizeof(text.s), "00-%.32s-%.16s-%s", traceparent->trace, traceparent->span,
             traceparent->sampled ? "01" : "00");
    return text;
}
