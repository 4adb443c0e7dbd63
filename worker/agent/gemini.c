/*
 * Gemini CLI: `gemini -p "" --output-format stream-json`. Observed with 0.61.0.
 *
 * Each line of its output is one event; result tells the end. It has no schema: the verdict is one JSON
 * object at the end of its text. Exit statuses of refused requests are the HTTP status modulo 256. With
 * the model left to it, it may go on trying by itself until the deadline. Costs are not told.
 * In: agent.c (agent_gemini). Out: worker/agent/loose.c
 */
#include "worker/agent/agent.h"

#include "common/base/check.h"

#include <string.h>

static const char *mode_of(enum agent_access access)
{
    switch (access) {
    case AGENT_ACCESS_read:
        return "plan";
    case AGENT_ACCESS_write:
        return "auto_edit";
    case AGENT_ACCESS_full:
        return "yolo";
    }
    return "plan";
}

/* In a scratch HOME it knows no way to sign in: with a key it is told, and not to retry by itself (which
 * it does without an end while it may choose the model by its plan). */
static const char settings[] =
    "{\"security\":{\"auth\":{\"selectedType\":\"gemini-api-key\"}},"
    "\"general\":{\"maxAttempts\":1,\"plan\":{\"modelRouting\":false},\"disableAutoUpdate\":true,"
    "\"enableAutoUpdate\":false},"
    "\"privacy\":{\"usageStatisticsEnabled\":false},\"telemetry\":{\"enabled\":false}}\n";

/* It takes the variables of an .env file in the place that are not set already: these would let the place
 * name another server, which gets the key, and let that one prove nothing. And settings of a place that the
 * HOME trusts name programs to start: they are read as those of a stranger (--skip-trust comes later, and
 * only lets it work there at all). Declared ones win. */
static const char *const environment[] = {
    "GEMINI_CLI_TRUST_WORKSPACE=false",
    "GOOGLE_GEMINI_BASE_URL=https://generativelanguage.googleapis.com/",
    "CODE_ASSIST_ENDPOINT=https://cloudcode-pa.googleapis.com",
    "NODE_TLS_REJECT_UNAUTHORIZED=1",
    "NO_COLOR=1",
};

static void setup(const struct agent_request *request, struct agent_setup *ret_setup)
{
    struct agent_words *argv = &ret_setup->argv;
    const char *const fixed[] = {"--skip-trust",    "-p",          "",
                                 "--output-format", "stream-json", "--approval-mode"};
    agent_words_add_all(argv, fixed, COUNT_OF(fixed));
    agent_words_add(argv, "%s", mode_of(request->access));
    agent_words_option(argv, "--resume", request->keep_session ? request->session : NULL);
    if (request->place != NULL) { /* a payload that is no text lies there */
        agent_words_option(argv, "--include-directories", request->scratch);
    }
    agent_words_option(argv, "-m", request->model);
    agent_words_add_all(&ret_setup->env, environment, COUNT_OF(environment));
    if (request->home == NULL &&
        request->declared(request->declared_arg, "GEMINI_API_KEY") != NULL) {
        agent_words_add(&ret_setup->files, ".gemini/settings.json");
        agent_words_add(&ret_setup->files, "%s", settings);
    }
}

/* Pieces of one message come one after the other; something else in between ends it. */
static void take_message(struct agent_reading *reading, struct loose event, struct buf *said)
{
    struct loose content = loose_member(event, "content");
    size_t room = AGENT_TEXT_MAX;
    if (!loose_true(loose_member(event, "delta"))) {
        buf_clear(&reading->last);
    }
    reading->piece = loose_true(loose_member(event, "delta"));
    if (reading->last.len > AGENT_TEXT_MAX / 2) { /* its end is what matters */
        size_t keep = AGENT_TEXT_MAX / 2;
        memmove(reading->last.data, reading->last.data + reading->last.len - keep, keep);
        reading->last.len = keep;
    }
    room -= reading->last.len;
    loose_text(content, room, &reading->last);
    loose_text(content, AGENT_TEXT_MAX, said);
}

/* Its output tokens are those of the answer. What it thought is charged as output, too, and stands in no
 * number but that of all. */
static void take_output(struct loose stats, int64_t *output)
{
    int64_t all = -1;
    int64_t prompt = -1;
    agent_take_number(loose_member(stats, "output_tokens"), 1, output);
    agent_take_number(loose_member(stats, "total_tokens"), 1, &all);
    agent_take_number(loose_member(stats, "input_tokens"), 1, &prompt);
    if (*output >= 0 && prompt >= 0 && all - prompt > *output) {
        *output = all - prompt;
    }
}

static void take_result(struct agent_reading *reading, struct loose event)
{
    struct loose stats = loose_member(event, "stats");
    struct loose models = loose_member(stats, "models");
    struct loose model = LOOSE_NONE;
    struct loose numbers;
    size_t at = 0;
    reading->done = true;
    reading->failed = !loose_is(loose_member(event, "status"), "success");
    agent_take_number(loose_member(stats, "input"), 1, &reading->usage.input_tokens);
    agent_take_number(loose_member(stats, "cached"), 1, &reading->usage.cached_tokens);
    take_output(stats, &reading->usage.output_tokens);
    agent_take_number(loose_member(stats, "duration_ms"), 1, &reading->usage.duration_ms);
    if (loose_next(models, &at, &model, &numbers)) {
        agent_take_name(model, reading->usage.model); /* "auto" before it had chosen */
    }
    if (reading->failed) {
        agent_take_error(reading, loose_at(event, "error.message"));
    }
}

static void event(struct agent_reading *reading, struct loose event, struct buf *said,
                  struct buf *doing)
{
    struct loose type = loose_member(event, "type");
    if (loose_is(type, "init")) {
        agent_take_name(loose_member(event, "session_id"), reading->usage.session);
        agent_take_name(loose_member(event, "model"), reading->usage.model);
    } else if (loose_is(type, "message") && loose_is(loose_member(event, "role"), "assistant")) {
        take_message(reading, event, said);
    } else if (loose_is(type, "tool_use")) {
        buf_clear(&reading->last);
        buf_add_text(doing, "uses ");
        loose_text(loose_member(event, "tool_name"), AGENT_NAME_MAX, doing);
    } else if (loose_is(type, "result")) {
        take_result(reading, event);
    }
}

static const struct agent_exit exits[] = {
    {41, FAILURE_auth, "it could not sign in"},
    {42, FAILURE_bad_request, "it refused its input"},
    {53, FAILURE_no_verdict, "it reached its own bound of steps"},
    {145, FAILURE_auth, "the provider answered 401"},
    {147, FAILURE_access_denied, "the provider answered 403"},
    {173, FAILURE_rate_limited, "the provider answered 429"},
    {244, FAILURE_unavailable, "the provider answered 500"},
    {247, FAILURE_overloaded, "the provider answered 503"},
    {0, FAILURE_crash, NULL},
};

const struct agent_program agent_gemini = {
    .word = "gemini",
    .command = "gemini",
    .credentials = "GEMINI_API_KEY", /* GOOGLE_API_KEY is that of another way to sign in */
    .login = ".gemini/oauth_creds.json",
    .schema = false,
    .gone = "error resuming session",
    .setup = setup,
    .event = event,
    .exits = exits,
};
