/* Small facts of turns and requests. Called by turn.c and request.c. */
#include "common/record/data.h"

#include "common/base/id.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/record/json_check.h"

#include <stdlib.h>
#include <string.h>

baton_code data_check(const char *what, const struct json_value *data, struct json_span raw,
                      bool only_texts, struct baton_error *err)
{
    struct json_members members = {0};
    size_t i = 0;
    baton_code rc = json_check(raw.at, raw.len, LIMIT_JSON_DEPTH, &members, err);
    for (const struct json_value *v = json_first(data); rc == BATON_OK && v != NULL;
         v = json_next(v), i++) {
        size_t name_len = strlen(json_name(v));
        if (name_len == 0 || name_len > ID_MAX) {
            rc =
                baton_fail(err, BATON_E_invalid_envelope,
                           "%s: a name in data has 1 to %d bytes, not %zu", what, ID_MAX, name_len);
        } else if (members.spans[i].len > LIMIT_DATA_VALUE) {
            rc = baton_fail(err, BATON_E_invalid_envelope,
                            "%s: data '%s' has %zu bytes, at most %d are taken; refer to a file",
                            what, text_quote_of(json_name(v)).s, members.spans[i].len,
                            LIMIT_DATA_VALUE);
        } else if (only_texts && json_kind(v) != JSON_text) {
            rc = baton_fail(err, BATON_E_invalid_envelope, "%s: data '%s' is not a text", what,
                            text_quote_of(json_name(v)).s);
        }
    }
    free(members.spans);
    return rc;
}

baton_code summary_check(const char *what, const char *name, const char *text,
                         struct baton_error *err)
{
    if (text[strspn(text, " \t\n\v\f\r")] == '\0') {
        return baton_fail(err, BATON_E_invalid_envelope, "%s: the %s is empty", what, name);
    }
    return BATON_OK;
}
