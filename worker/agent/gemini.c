/*
 * Gemini CLI: `gemini -p "" --output-format stream-json`. Observed with 0.61.0.
 *
 * Each line of its output is one event; result tells the end. It has no schema: the verdict is one JSON
 * object at the end of its text. Exit statuses of refused requests are the HTTP status modulo 256. With
 * the model left to it, it may go on trying by itself until the deadline. Costs are not told.
 * In: agent.c (agent_gemini). Out: worker/agent/foreign.c
 */
#include "worker/agent/agent.h"

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

static void setup(const struct agent_request *request, struct agent_setup *ret_setup)
{
    struct agent_words *argv = &ret_setup->argv;
    const char *const fixed[] = {"--skip-trust",    "-p",          "",
                                 "--output-format", "stream-json", "--approval-mode"};
    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
        agent_words_add(argv, "%s", fixed[i]);
    }
    agent_words_add(argv, "%s", mode_of(request->access));
    if (request->model != NULL) {
        agent_words_add(argv, "-m");
        agent_words_add(argv, "%s", request->model);
    }
    agent_words_add(&ret_setup->env, "NO_COLOR=1");
    if (!request->own_home && request->declared(request->declared_arg, "GEMINI_API_KEY") != NULL) {
        agent_words_add(&ret_setup->files, ".gemini/settings.json");
        agent_words_add(&ret_setup->files, "%s", settings);
    }
}

/* Pieces of one message come one after the other; something else in between ends it. */
static void take_message(struct agent_reading *reading, struct foreign event, struct buf *said)
{
    struct foreign content = foreign_member(event, "content");
    size_t room = AGENT_TEXT_MAX;
    if (!foreign_true(foreign_member(event, "delta"))) {
        buf_clear(&reading->last);
    }
    if (reading->last.len > AGENT_TEXT_MAX / 2) { /* its end is what matters */
        size_t keep = AGENT_TEXT_MAX / 2;
        memmove(reading->last.data, reading->last.data + reading->last.len - keep, keep);
        reading->last.len = keep;
    }
    room -= reading->last.len;
    foreign_text(content, room, &reading->last);
    foreign_text(content, AGENT_TEXT_MAX, said);
}

static void take_result(struct agent_reading *reading, struct foreign event)
{
    struct foreign stats = foreign_member(event, "stats");
    struct foreign models = foreign_member(stats, "models");
    struct foreign model = FOREIGN_NONE;
    struct foreign numbers;
    size_t at = 0;
    reading->done = true;
    reading->failed = !foreign_is(foreign_member(event, "status"), "success");
    agent_take_number(foreign_member(stats, "input"), 1, &reading->usage.input_tokens);
    agent_take_number(foreign_member(stats, "cached"), 1, &reading->usage.cached_tokens);
    agent_take_number(foreign_member(stats, "output_tokens"), 1, &reading->usage.output_tokens);
    agent_take_number(foreign_member(stats, "duration_ms"), 1, &reading->usage.duration_ms);
    if (foreign_next(models, &at, &model, &numbers)) {
        agent_take_name(model, reading->usage.model); /* "auto" before it had chosen */
    }
    if (reading->failed) {
        agent_take_error(reading, foreign_at(event, "error.message"));
    }
}

static void event(struct agent_reading *reading, struct foreign event, struct buf *said,
                  struct buf *doing)
{
    struct foreign type = foreign_member(event, "type");
    if (foreign_is(type, "init")) {
        agent_take_name(foreign_member(event, "session_id"), reading->usage.session);
        agent_take_name(foreign_member(event, "model"), reading->usage.model);
    } else if (foreign_is(type, "message") &&
               foreign_is(foreign_member(event, "role"), "assistant")) {
        take_message(reading, event, said);
    } else if (foreign_is(type, "tool_use")) {
        buf_clear(&reading->last);
        buf_add_text(doing, "uses ");
        foreign_text(foreign_member(event, "tool_name"), AGENT_NAME_MAX, doing);
    } else if (foreign_is(type, "result")) {
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
    .credentials = "GEMINI_API_KEY GOOGLE_API_KEY",
    .schema = false,
    .setup = setup,
    .event = event,
    .exits = exits,
};
