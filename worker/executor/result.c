/*
 * Judges results of executors.
 *
 * In: run_exec, run_child, run_callback.  Out: common/record/json.h.
 */
#include "worker/executor/result.h"

#include "common/base/check.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/base/word.h"
#include "common/record/json.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum part { PART_verdict, PART_failure };

/* The members of a result, closed; max: bytes of a text, entries of a list or object, a number. */
static const struct member_rule {
    const char *name;
    enum json_kind kind;
    enum part part;
    int64_t max;
} members[] = {
    {"verdict", JSON_text, PART_verdict, 64},
    {"summary", JSON_text, PART_verdict, LIMIT_SUMMARY},
    {"data", JSON_object, PART_verdict, LIMIT_DATA_KEYS},
    {"handoff", JSON_object, PART_verdict, LIMIT_ITEMS},
    {"items", JSON_array, PART_verdict, LIMIT_ITEMS},
    {"artifacts", JSON_array, PART_verdict, LIMIT_ITEMS},
    {"cost", JSON_object, PART_verdict, LIMIT_DATA_KEYS},
    {"class", JSON_text, PART_failure, 64},
    {"message", JSON_text, PART_failure, LIMIT_RESULT},
    {"retry_after_ms", JSON_int, PART_failure, EXECUTOR_RETRY_AFTER_MAX_MS},
};

static const struct exit_rule {
    int status;
    enum failure failure;
    const char *text;
} exits[] = {
#define EXIT_ROW(status, word, text) {status, FAILURE_##word, text},
    EXECUTOR_EXITS(EXIT_ROW)
#undef EXIT_ROW
};

__attribute__((format(printf, 3, 4))) static void
fail(struct executor_outcome *outcome, enum failure failure, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(outcome->message, sizeof(outcome->message), format, args);
    va_end(args);
    outcome->ok = false;
    outcome->failure = failure;
}

/* What the end alone means, when no result says more. */
static void judge_exit(const struct executor_exit *exit, struct executor_outcome *outcome)
{
    outcome->by_exit = true;
    if (exit->signaled) {
        fail(outcome, exit->value == SIGKILL ? FAILURE_killed : FAILURE_crash,
             "the executor was ended by signal %d (%s)", exit->value,
             sigdescr_np(exit->value) != NULL ? sigdescr_np(exit->value) : "unknown");
        return;
    }
    for (size_t i = 0; i < COUNT_OF(exits) && !exit->agents; i++) {
        if (exits[i].status == exit->value) {
            fail(outcome, exits[i].failure, "the executor %s (exit status %d)", exits[i].text,
                 exit->value);
            return;
        }
    }
    fail(outcome, FAILURE_crash, "the executor failed with exit status %d", exit->value);
}

static const struct member_rule *rule_of(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        if (strcmp(members[i].name, name) == 0) {
            return &members[i];
        }
    }
    return NULL;
}

static bool within(const struct json_value *value, const struct member_rule *rule)
{
    size_t len = 0;
    switch (rule->kind) {
    case JSON_text:
        json_text(value, &len);
        return (int64_t)len <= rule->max;
    case JSON_int:
        return json_int(value) >= 0 && json_int(value) <= rule->max;
    case JSON_array:
    case JSON_object:
        return (int64_t)json_count(value) <= rule->max;
    case JSON_bool:
    case JSON_null:
        return true;
    }
    return false;
}

/* Shape only: known members of the right kind and size, of one part. */
static bool shape_ok(const struct json_value *root, struct executor_outcome *outcome)
{
    bool parts[2] = {false, false};
    for (const struct json_value *at = json_first(root); at != NULL; at = json_next(at)) {
        const struct member_rule *rule = rule_of(json_name(at));
        if (rule == NULL) {
            fail(outcome, FAILURE_invalid_output,
                 "the result has the member '%s', which is not known",
                 text_quote_of(json_name(at)).s);
            return false;
        }
        if (json_kind(at) != rule->kind || !within(at, rule)) {
            fail(outcome, FAILURE_invalid_output,
                 "the member '%s' of the result is of another kind or too large", rule->name);
            return false;
        }
        parts[rule->part] = true;
    }
    if (parts[PART_verdict] && parts[PART_failure]) {
        fail(outcome, FAILURE_invalid_output,
             "the result has members of a verdict and of a failure at once");
        return false;
    }
    return true;
}

/* True: the object names a failure, and that is the outcome (or it is invalid). */
static bool judge_class(const struct json_value *root, struct executor_outcome *outcome)
{
    const struct json_value *class_value = json_member(root, "class");
    const struct json_value *message = json_member(root, "message");
    const struct json_value *retry_after = json_member(root, "retry_after_ms");
    if (class_value == NULL) {
        if (message != NULL || retry_after != NULL) {
            fail(outcome, FAILURE_invalid_output,
                 "the result has a message or retry_after_ms, and no class");
            return true;
        }
        return false;
    }
    size_t len;
    const char *word = json_text(class_value, &len);
    enum failure failure;
    if (!failure_parse(word, len, &failure) || word_in_list(EXECUTOR_CLASSES_RESERVED, word)) {
        fail(outcome, FAILURE_invalid_output,
             "the class '%s' of the result is none that an executor can name",
             text_quote(word, len).s);
        return true;
    }
    if (message != NULL && json_text(message, &len)[0] != '\0') {
        fail(outcome, failure, "%s", json_text(message, NULL));
    } else {
        fail(outcome, failure, "%s", failure_text(failure));
    }
    outcome->retry_after_ms = retry_after != NULL ? json_int(retry_after) : 0;
    return true;
}

static void judge_verdict(enum role role, verdict_set verdicts, const struct json_value *root,
                          const struct executor_exit *exit, struct executor_outcome *outcome)
{
    const struct json_value *value = json_member(root, "verdict");
    enum verdict verdict;
    size_t len;
    if (exit->signaled || exit->value != 0) {
        judge_exit(exit, outcome);
        return;
    }
    if (value == NULL) {
        fail(outcome, FAILURE_no_verdict, "the result has no verdict");
        return;
    }
    const char *word = json_text(value, &len);
    if (!verdict_parse(word, len, &verdict) || !verdict_legal(role, verdict)) {
        fail(outcome, FAILURE_no_verdict, "the verdict '%s' is none of the role %s",
             text_quote(word, len).s, role_word(role));
        return;
    }
    if ((verdicts & VERDICT_BIT(verdict)) == 0) {
        fail(outcome, FAILURE_no_verdict, "the verdict '%s' is none that the workflow leaves to %s",
             text_quote(word, len).s, role_word(role));
        return;
    }
    outcome->ok = true;
    outcome->verdict = verdict;
}

static bool white(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

void executor_result_check(enum role role, verdict_set verdicts, const char *bytes, size_t len,
                           bool overflow, const struct executor_exit *exit,
                           struct executor_outcome *ret_outcome)
{
    struct executor_outcome *outcome = ret_outcome;
    struct json_doc *doc = NULL;
    struct baton_error err;
    memset(outcome, 0, sizeof(*outcome));
    size_t from = 0;
    while (from < len && white(bytes[from])) {
        from++;
    }
    while (len > from && white(bytes[len - 1])) {
        len--;
    }
    if (from == len && !overflow) {
        judge_exit(exit, outcome);
        return;
    }
    baton_code rc =
        overflow ? BATON_E_record_too_large
                 : json_parse(bytes + from, len - from, LIMIT_RESULT, LIMIT_JSON_DEPTH, &doc, &err);
    if (exit->signaled && rc != BATON_OK) { /* cut off in the middle: how it ended says more */
        judge_exit(exit, outcome);
    } else if (rc == BATON_E_record_too_large) {
        fail(outcome, FAILURE_invalid_output, "the result is larger than %d bytes", LIMIT_RESULT);
    } else if (rc != BATON_OK) {
        fail(outcome, FAILURE_invalid_output, "the result is not one JSON object: %s", err.text);
    } else if (json_kind(json_root(doc)) != JSON_object) {
        fail(outcome, FAILURE_invalid_output, "the result is JSON, but no object");
    } else if (shape_ok(json_root(doc), outcome) && !judge_class(json_root(doc), outcome)) {
        judge_verdict(role, verdicts, json_root(doc), exit, outcome);
        outcome->object_at = from;
        outcome->object_len = len - from;
    }
    json_free(doc);
}
