/*
 * What a hook's answer means. One JSON object: allow, block, retryable_block or patch; whatever else is
 * no answer, and refuses.
 *
 * In: run.c  Out: common/record/json.c
 */
#include "common/base/check.h"
#include "common/base/diag.h"
#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/base/word.h"
#include "common/record/json.h"
#include "producer/hook/hook.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RETRY_AFTER_MAX_MS 86400000 /* a day: who has to wait for longer asks a person */

enum answer { ANSWER_allow, ANSWER_block, ANSWER_retryable_block, ANSWER_patch };
static const char *const answer_words[] = {"allow", "block", "retryable_block", "patch"};
/* The members that go with each verdict, beside it: one that says more was meant otherwise. */
static const char *const answer_members[][2] = {
    {NULL, NULL}, {"reason", NULL}, {"reason", "retry_after_ms"}, {"patch", NULL}};
/* What the operation itself puts into a turn's data (H-46). */
static const char *const own_keys[] = {"task", "from", "verdict"};

void hook_end_done(struct hook_end *end)
{
    free(end->summary);
    free(end->data);
    *end = (struct hook_end){.summary = NULL};
}

BATON_PRINTF(3, 4)
static void say(struct hook_end *end, baton_code code, const char *format, ...)
{
    va_list args;
    free(end->summary);
    free(end->data);
    end->summary = NULL;
    end->data = NULL;
    end->decision.code = code;
    va_start(args, format);
    vsnprintf(end->decision.text, sizeof(end->decision.text), format, args);
    va_end(args);
}

/* ---- patches ---- */

static void stripped(const struct workflow_hook *hook, const char *where, const char *name)
{
    diag_line(DIAG_warn, "hook.patch_stripped", D_TEXT("hook", hook->name.s),
              D_TEXT("within", where), D_TEXT("member", name));
}

static bool blank(const char *text, size_t len)
{
    return strspn(text, " \t\r\n") == len;
}

static bool patch_summary(const struct json_value *value, struct hook_end *end)
{
    size_t len = 0;
    const char *text = json_kind(value) == JSON_text ? json_text(value, &len) : NULL;
    if (text == NULL || blank(text, len) || len > LIMIT_SUMMARY) {
        say(end, BATON_E_patch_invalid,
            "its patch's summary is no text of 1 to %d bytes that says something", LIMIT_SUMMARY);
        return false;
    }
    end->summary = strdup(text);
    BATON_INVARIANT(end->summary != NULL);
    return true;
}

static bool declared(const struct workflow_hook *hook, const char *key)
{
    for (size_t i = 0; i < hook->n_data; i++) {
        if (strcmp(hook->data[i], key) == 0) {
            return true;
        }
    }
    return false;
}

/* Each member of the patch's data that may be taken, by the rules for a sender's (H-36, H-37). */
static bool check_data(const struct workflow_hook *hook, const struct json_value *patch,
                       struct hook_end *end)
{
    if (json_kind(patch) != JSON_object) {
        say(end, BATON_E_patch_invalid, "its patch's data is no object");
        return false;
    }
    for (const struct json_value *one = json_first(patch); one != NULL; one = json_next(one)) {
        size_t len = 0;
        const char *name = json_name(one);
        if (word_find(own_keys, COUNT_OF(own_keys), name, strlen(name)) >= 0) {
            stripped(hook, "data", name);
        } else if (!declared(hook, name)) {
            say(end, BATON_E_patch_invalid, "its patch has data '%s', which it does not declare",
                text_quote_of(name).s);
            return false;
        } else if (json_kind(one) != JSON_text || (json_text(one, &len), len > LIMIT_DATA_VALUE)) {
            say(end, BATON_E_patch_invalid, "its patch's data '%s' is no text of at most %d bytes",
                name, LIMIT_DATA_VALUE);
            return false;
        }
    }
    return true;
}

/* Writes the texts of an object that are not in `over`; how many. */
static size_t write_texts(struct jsonw *w, const struct json_value *object,
                          const struct json_value *over)
{
    size_t n = 0;
    for (const struct json_value *one = json_first(object); one != NULL; one = json_next(one)) {
        const char *name = json_name(one);
        const bool own = word_find(own_keys, COUNT_OF(own_keys), name, strlen(name)) >= 0;
        if (json_kind(one) == JSON_text && !own &&
            (over == NULL || json_member(over, name) == NULL)) {
            size_t len;
            const char *text = json_text(one, &len);
            jsonw_key_any(w, name, strlen(name));
            jsonw_plain(w, text, len);
            n++;
        }
    }
    return n;
}

/* The sender's data with the patch over it; keys that the patch does not name stay (H-34). */
static bool patch_data(const struct workflow_hook *hook, const struct json_value *patch,
                       const char *data, struct hook_end *end)
{
    struct json_doc *doc = NULL;
    struct buf out = BUF_INIT;
    struct jsonw w = jsonw_to(&out);
    size_t n = 0;
    if (!check_data(hook, patch, end)) {
        return false;
    }
    jsonw_begin_object(&w);
    if (data != NULL &&
        json_parse(data, strlen(data), LIMIT_VALUE, LIMIT_JSON_DEPTH, &doc, NULL) == BATON_OK &&
        json_kind(json_root(doc)) == JSON_object) {
        n = write_texts(&w, json_root(doc), patch);
    }
    json_free(doc);
    n += write_texts(&w, patch, NULL);
    jsonw_end(&w);
    if (n + COUNT_OF(own_keys) > LIMIT_DATA_KEYS) {
        buf_done(&out);
        say(end, BATON_E_patch_invalid, "with its patch the data has %zu keys; a turn takes %zu", n,
            LIMIT_DATA_KEYS - COUNT_OF(own_keys));
        return false;
    }
    end->data = buf_take(&out, NULL);
    BATON_INVARIANT(end->data != NULL);
    return true;
}

static void take_patch(const struct workflow_hook *hook, const struct json_value *patch,
                       const char *data, struct hook_end *end)
{
    if (patch == NULL || json_kind(patch) != JSON_object) {
        say(end, BATON_E_hook_unavailable, "its answer is a patch without an object `patch`");
        return;
    }
    bool ok = true;
    for (const struct json_value *one = json_first(patch); ok && one != NULL;
         one = json_next(one)) {
        if (strcmp(json_name(one), "summary") == 0) {
            ok = patch_summary(one, end);
        } else if (strcmp(json_name(one), "data") == 0) {
            ok = patch_data(hook, one, data, end);
        } else { /* H-35: never target, role, service or turn */
            stripped(hook, "patch", json_name(one));
        }
    }
}

/* ---- answers ---- */

static const char *reason_of(const struct json_value *root)
{
    size_t len;
    const char *reason = json_member_text(root, "reason", &len);
    return blank(reason, len) ? "it gave no reason" : reason;
}

static void take_answer(const struct workflow_hook *hook, const struct json_value *root,
                        const char *data, struct hook_end *end)
{
    size_t len;
    const char *word = json_member_text(root, "verdict", &len);
    const int answer = word_find(answer_words, COUNT_OF(answer_words), word, len);
    if (answer < 0) {
        say(end, BATON_E_hook_unavailable,
            "its verdict '%s' is none of allow, block, retryable_block, patch",
            text_quote_of(word).s);
        return;
    }
    for (const struct json_value *one = json_first(root); one != NULL; one = json_next(one)) {
        const char *const *known = answer_members[answer];
        const char *name = json_name(one);
        if (strcmp(name, "verdict") != 0 && (known[0] == NULL || strcmp(name, known[0]) != 0) &&
            (known[1] == NULL || strcmp(name, known[1]) != 0)) {
            say(end, BATON_E_hook_unavailable, "its answer `%s` has a member '%s', which it cannot",
                answer_words[answer], text_quote_of(name).s);
            return;
        }
    }
    const struct json_value *after = json_member(root, "retry_after_ms");
    switch ((enum answer)answer) {
    case ANSWER_allow:
        break;
    case ANSWER_block:
        say(end, BATON_E_hook_blocked, "%s", reason_of(root));
        break;
    case ANSWER_retryable_block:
        if (after == NULL || json_kind(after) != JSON_int || json_int(after) < 0 ||
            json_int(after) > RETRY_AFTER_MAX_MS) {
            say(end, BATON_E_hook_unavailable, "its `retry_after_ms` is no number from 0 to %d",
                RETRY_AFTER_MAX_MS);
            break;
        }
        say(end, BATON_E_hook_retry, "%s", reason_of(root));
        end->decision.retry_after_ms = json_int(after);
        break;
    case ANSWER_patch:
        take_patch(hook, json_member(root, "patch"), data, end);
        break;
    }
}

/* Did its program come to an end that lets an answer count? */
static bool ended_well(const struct workflow_hook *hook, const struct hook_said *said,
                       struct hook_end *end)
{
    const struct child_status *status = &said->status;
    if (said->timed_out) {
        say(end, BATON_E_hook_unavailable, "it gave no answer within %lld ms",
            (long long)hook->timeout_ms);
        return false;
    }
    switch (status->end) {
    case CHILD_END_exited:
        if (status->value != 0) {
            say(end, BATON_E_hook_unavailable, "it ended with exit status %d", status->value);
        }
        return status->value == 0;
    case CHILD_END_signaled:
        say(end, BATON_E_hook_unavailable, "it was ended by signal %d", status->value);
        return false;
    case CHILD_END_exec_failed:
        say(end, BATON_E_hook_unavailable, "its program cannot be executed: %s",
            strerror(status->value));
        return false;
    case CHILD_END_guard_lost:
        say(end, BATON_E_hook_unavailable, "its baton-guard was ended by signal %d", status->value);
        return false;
    }
    return false;
}

void hook_judge(const struct workflow_hook *hook, const struct hook_said *said, const char *data,
                struct hook_end *ret_end)
{
    struct json_doc *doc = NULL;
    struct baton_error err = {BATON_OK, ""};
    *ret_end = (struct hook_end){.decision = {.code = BATON_OK}};
    if (!ended_well(hook, said, ret_end)) {
        return;
    }
    if (said->overflow) {
        say(ret_end, BATON_E_hook_unavailable, "its answer is longer than %d bytes", LIMIT_RESULT);
    } else if (said->len == 0) {
        say(ret_end, BATON_E_hook_unavailable, "it gave no answer on descriptor 3");
    } else if (json_parse(said->bytes, said->len, LIMIT_RESULT, LIMIT_JSON_DEPTH, &doc, &err) !=
               BATON_OK) {
        say(ret_end, BATON_E_hook_unavailable, "its answer is no JSON: %.180s", err.text);
    } else if (json_kind(json_root(doc)) != JSON_object) {
        say(ret_end, BATON_E_hook_unavailable, "its answer is no JSON object");
    } else {
        take_answer(hook, json_root(doc), data, ret_end);
    }
    json_free(doc);
}
