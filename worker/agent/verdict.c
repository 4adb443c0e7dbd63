/*
 * What is asked of an agent as its verdict, and the last resort of finding one in its text.
 * In: agent.c, worker/executor/run_agent.c. Out: common/base/role.c
 */
#include "worker/agent/agent.h"

#include "common/base/jsonw.h"

#include <string.h>

#define LOOKED_AT (64 * 1024) /* of the end of a text */

static void text_property(struct jsonw *w, const char *name, const char *description)
{
    jsonw_key(w, name);
    jsonw_begin_object(w);
    jsonw_key_text(w, "type", "string");
    jsonw_key_text(w, "description", description);
}

void agent_schema(verdict_set verdicts, struct buf *out)
{
    struct jsonw w = jsonw_to(out);
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "type", "object");
    jsonw_key_bool(&w, "additionalProperties", false);
    jsonw_key(&w, "required");
    jsonw_begin_array(&w);
    jsonw_text(&w, "verdict");
    jsonw_text(&w, "summary");
    jsonw_end(&w);
    jsonw_key(&w, "properties");
    jsonw_begin_object(&w);
    text_property(&w, "verdict", "How this turn ends.");
    jsonw_key(&w, "enum");
    jsonw_begin_array(&w);
    for (unsigned i = 0; i < VERDICT_COUNT; i++) {
        if ((verdicts & VERDICT_BIT(i)) != 0) {
            jsonw_text(&w, verdict_word((enum verdict)i));
        }
    }
    jsonw_end(&w);
    jsonw_end(&w);
    text_property(&w, "summary", "What was found or done, for people, in a few sentences.");
    jsonw_end(&w);
    jsonw_end(&w);
    jsonw_end(&w);
}

static size_t without_white(const char *text, size_t len)
{
    while (len > 0 && strchr(" \t\r\n", text[len - 1]) != NULL) {
        len--;
    }
    return len;
}

bool agent_verdict_at_end(const char *text, size_t len, struct loose *ret_object)
{
    if (text == NULL) {
        return false;
    }
    len = without_white(text, len);
    if (len >= 3 && memcmp(text + len - 3, "```", 3) == 0) {
        len = without_white(text, len - 3);
    }
    const char *at = text + (len > LOOKED_AT ? len - LOOKED_AT : 0);
    const char *end = text + len;
    /* The outermost object that ends exactly there. One that opens and does not close is given up at
     * once, or 64 levels deep, so this stays linear. */
    while (at < end && (at = memchr(at, '{', (size_t)(end - at))) != NULL) {
        struct loose object;
        if (loose_parse_prefix(at, (size_t)(end - at), &object) && object.at + object.len == end) {
            if (loose_kind(loose_member(object, "verdict")) != LOOSE_text) {
                return false;
            }
            *ret_object = object;
            return true;
        }
        at++;
    }
    return false;
}
