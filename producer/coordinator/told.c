/*
 * What a next turn is told beside its summary and the run's payload: the task, the sender and its
 * verdict, and what the sender gave.
 *
 * In: advance.c  Out: -
 */
#include "producer/coordinator/internal.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "common/record/json.h"

#include <string.h>

/* The members of a raw JSON object of texts, added to the one that is being written. */
static void add_members(struct jsonw *w, const char *data)
{
    struct json_doc *doc = NULL;
    size_t len;
    if (data == NULL ||
        json_parse(data, strlen(data), LIMIT_VALUE, LIMIT_JSON_DEPTH, &doc, NULL) != BATON_OK) {
        return;
    }
    const struct json_value *root = json_root(doc);
    for (const struct json_value *one = json_kind(root) == JSON_object ? json_first(root) : NULL;
         one != NULL; one = json_next(one)) {
        const char *name = json_name(one);
        const bool ours =
            strcmp(name, "task") == 0 || strcmp(name, "from") == 0 || strcmp(name, "verdict") == 0;
        if (json_kind(one) == JSON_text && !ours) {
            const char *text = json_text(one, &len);
            jsonw_key_any(w, name, strlen(name));
            jsonw_plain(w, text, len);
        }
    }
    json_free(doc);
}

/* How much of the task fits a value of data as it is written: escapes count, and no character is cut. */
static size_t task_len(const char *summary)
{
    size_t len = strnlen(summary, LIMIT_DATA_VALUE / 2);
    for (;;) {
        struct buf out = BUF_INIT;
        struct jsonw w = jsonw_to(&out);
        while (len > 0 && ((unsigned char)summary[len] & 0xC0) == 0x80) {
            len--;
        }
        jsonw_plain(&w, summary, len);
        BATON_INVARIANT(buf_ok(&out));
        const bool fits = out.len <= LIMIT_DATA_VALUE;
        buf_done(&out);
        if (fits) {
            return len;
        }
        len /= 2;
    }
}

void told_data(const struct run *run, const char *from, const struct run_turn *turn,
               const struct workflow_transition *transition, const char *data, struct buf *out)
{
    struct jsonw w = jsonw_to(out);
    char subject[RUN_SUBJECT_MAX + 2];
    jsonw_begin_object(&w);
    jsonw_key_plain(&w, "task", run->summary, task_len(run->summary));
    jsonw_key_text(&w, "from", from);
    if (turn != NULL && turn->has_verdict) {
        jsonw_key_text(&w, "verdict", verdict_word(turn->verdict));
    }
    add_members(&w, data);
    if (transition->hook != NULL && transition->hook->subject != NULL && run->subject != NULL &&
        !handoff_subject(transition, data,
                         subject)) { /* stamped: who is next knows it, too (H-40) */
        jsonw_key_any(&w, transition->hook->subject, strlen(transition->hook->subject));
        jsonw_plain(&w, run->subject, strlen(run->subject));
    }
    jsonw_end(&w);
    BATON_INVARIANT(buf_ok(out));
}

size_t told_names(const char *data, const char **names, struct json_doc **ret_doc)
{
    size_t n = 0;
    *ret_doc = NULL;
    if (data == NULL ||
        json_parse(data, strlen(data), LIMIT_VALUE, LIMIT_JSON_DEPTH, ret_doc, NULL) != BATON_OK) {
        return 0;
    }
    const struct json_value *root = json_root(*ret_doc);
    for (const struct json_value *one = json_kind(root) == JSON_object ? json_first(root) : NULL;
         one != NULL && n < LIMIT_DATA_KEYS; one = json_next(one)) {
        names[n++] = json_name(one);
    }
    return n;
}
