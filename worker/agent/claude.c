/*
 * Claude Code: `claude -p --output-format stream-json`. Observed with 2.1.197.
 *
 * Each line of its output is one event; the last one, of type result, tells the end whatever happened.
 * Its `subtype` is "success" for refused requests, too: is_error says what it was. retry-after is not
 * told.
 * In: agent.c (agent_claude). Out: worker/agent/loose.c
 */
#include "worker/agent/agent.h"

#include "common/base/check.h"

#include <string.h>

/* Declared variables win; its own retries are off, since retrying is the worker's business. */
static const char *const environment[] = {
    "DISABLE_TELEMETRY=1",       "DISABLE_ERROR_REPORTING=1",
    "DISABLE_AUTOUPDATER=1",     "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
    "CLAUDE_CODE_MAX_RETRIES=0", "NO_COLOR=1",
};

static const char *mode_of(enum agent_access access)
{
    switch (access) {
    case AGENT_ACCESS_read:
        return "plan";
    case AGENT_ACCESS_write:
        return "acceptEdits";
    case AGENT_ACCESS_full:
        return "bypassPermissions";
    }
    return "plan";
}

static void setup(const struct agent_request *request, struct agent_setup *ret_setup)
{
    struct agent_words *argv = &ret_setup->argv;
    /* Settings that lie in the place are not its own: they would name another server, which gets the
     * key, and programs that it starts. */
    const char *const fixed[] = {"-p",           "--output-format",   "stream-json",
                                 "--verbose",    "--setting-sources", "user",
                                 "--json-schema"};
    agent_words_add_all(argv, fixed, COUNT_OF(fixed));
    agent_words_add(argv, "%s", request->schema);
    agent_words_option(argv, "--permission-mode", mode_of(request->access));
    if (!request->keep_session) {
        agent_words_add(argv, "--no-session-persistence");
    } else {
        agent_words_option(argv, "--resume", request->session);
    }
    if (request->max_cost_micros > 0) {
        agent_words_add(argv, "--max-budget-usd");
        agent_words_add(argv, "%lld.%06lld", (long long)(request->max_cost_micros / 1000000),
                        (long long)(request->max_cost_micros % 1000000));
    }
    if (request->place != NULL) { /* a payload that is no text lies there */
        agent_words_option(argv, "--add-dir", request->scratch);
    }
    agent_words_option(argv, "--model", request->model);
    agent_words_add_all(&ret_setup->env, environment, COUNT_OF(environment));
}

static void take_content(struct loose content, struct buf *said, struct buf *doing)
{
    struct loose item;
    for (size_t at = 0; loose_next(content, &at, NULL, &item);) {
        if (loose_is(loose_member(item, "type"), "text")) {
            loose_text(loose_member(item, "text"), AGENT_TEXT_MAX, said);
        } else if (loose_is(loose_member(item, "type"), "tool_use") &&
                   !loose_is(loose_member(item, "name"), "StructuredOutput")) {
            buf_add_text(doing, "uses ");
            loose_text(loose_member(item, "name"), AGENT_NAME_MAX, doing);
        }
    }
}

/* "error_max_turns: Reached maximum number of turns (3)". */
static void name_bound(struct agent_reading *reading, struct loose subtype)
{
    struct buf named = BUF_INIT;
    loose_text(subtype, AGENT_NAME_MAX, &named);
    buf_add_text(&named, ": ");
    buf_add(&named, reading->message.data, reading->message.len);
    buf_done(&reading->message);
    reading->message = named;
}

static void take_result(struct agent_reading *reading, struct loose event)
{
    struct usage *usage = &reading->usage;
    struct loose subtype = loose_member(event, "subtype");
    struct loose structured = loose_member(event, "structured_output");
    struct loose tokens = loose_member(event, "usage");
    int64_t status = 0;
    bool own = loose_kind(subtype) == LOOSE_text && subtype.len > 7 &&
               strncmp(subtype.at, "\"error_", 7) == 0; /* a bound of its own was reached */
    reading->done = true;
    reading->failed = loose_true(loose_member(event, "is_error")) || own;
    agent_take_number(loose_member(tokens, "input_tokens"), 1, &usage->input_tokens);
    agent_take_number(loose_member(tokens, "cache_read_input_tokens"), 1, &usage->cached_tokens);
    agent_take_number(loose_member(tokens, "output_tokens"), 1, &usage->output_tokens);
    agent_take_number(loose_member(event, "total_cost_usd"), 1000000, &usage->cost_micros);
    agent_take_number(loose_member(event, "duration_ms"), 1, &usage->duration_ms);
    agent_take_name(loose_member(event, "session_id"), usage->session);
    agent_take_text(loose_member(event, "result"), AGENT_TEXT_MAX, &reading->last);
    buf_clear(&reading->verdict);
    if (loose_kind(structured) == LOOSE_object) {
        buf_add(&reading->verdict, structured.at, structured.len);
    }
    if (reading->failed) {
        agent_take_number(loose_member(event, "api_error_status"), 1, &status);
        reading->status = status >= 400 && status <= 599 ? (int)status : 0;
        /* One that could not begin tells why in a list of errors. */
        struct loose first = LOOSE_NONE;
        size_t at = 0;
        if (!loose_next(loose_member(event, "errors"), &at, NULL, &first) || first.len == 0) {
            first = own ? subtype : loose_member(event, "result");
        }
        agent_take_error(reading, first);
        if (own && first.at != subtype.at) { /* told in prose: the subtype is what has a class */
            name_bound(reading, subtype);
        }
    }
}

static void event(struct agent_reading *reading, struct loose event, struct buf *said,
                  struct buf *doing)
{
    struct loose type = loose_member(event, "type");
    if (loose_is(type, "system")) {
        agent_take_name(loose_member(event, "model"), reading->usage.model);
        agent_take_name(loose_member(event, "session_id"), reading->usage.session);
    } else if (loose_is(type, "assistant")) {
        take_content(loose_at(event, "message.content"), said, doing);
    } else if (loose_is(type, "result")) {
        take_result(reading, event);
    }
}

const struct agent_program agent_claude = {
    .word = "claude",
    .command = "claude",
    .credentials = "ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN CLAUDE_CODE_OAUTH_TOKEN",
    .login = ".claude/.credentials.json",
    .schema = true,
    .gone = "no conversation found with session id",
    .setup = setup,
    .event = event,
};
