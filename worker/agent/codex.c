/*
 * Codex CLI: `codex exec --json`. Observed with 0.171.0.
 *
 * Each line of its output is one event. turn.failed is a failure; an item of type error may be a mere
 * warning in a turn that succeeds, and an error event may come before a try that works. The HTTP status
 * stands in the text only, and for some statuses nowhere. The verdict is the text of the last message.
 * Costs are not told; tokens are those of the whole session.
 * In: agent.c (agent_codex). Out: worker/agent/loose.c
 */
#include "worker/agent/agent.h"

#include <string.h>

#define OPENAI_URL "https://api.openai.com/v1"

static const char *mode_of(enum agent_access access)
{
    switch (access) {
    case AGENT_ACCESS_read:
        return "read-only";
    case AGENT_ACCESS_write:
        return "workspace-write";
    case AGENT_ACCESS_full:
        return "danger-full-access";
    }
    return "read-only";
}

/* Can stand in a TOML string as it is? */
static bool plain(const char *text)
{
    return text[strcspn(text, "\"\\\n\r\t")] == '\0';
}

/* The provider that ships with it takes a key only after a login, and retries by itself. So where a key
 * is declared it gets one that takes the key from the environment and leaves retrying to the worker. */
static void add_provider(const struct agent_request *request, struct agent_setup *setup)
{
    struct agent_words *argv = &setup->argv;
    const char *url = request->declared(request->declared_arg, "OPENAI_BASE_URL");
    if (request->declared(request->declared_arg, "OPENAI_API_KEY") == NULL) {
        return;
    }
    if (url != NULL && request->secret != NULL &&
        request->secret(request->declared_arg, "OPENAI_BASE_URL")) {
        setup->refused =
            "OPENAI_BASE_URL of codex stands in its argv, for everybody on this host to "
            "see: declare it as a value, not by file or from";
        return;
    }
    agent_words_add(argv, "-c");
    agent_words_add(argv, "model_provider=\"baton\"");
    agent_words_add(argv, "-c");
    agent_words_add(argv,
                    "model_providers.baton={name=\"OpenAI\",base_url=\"%s\",env_key="
                    "\"OPENAI_API_KEY\",wire_api=\"responses\",request_max_retries=0,"
                    "stream_max_retries=0}",
                    url != NULL && plain(url) ? url : OPENAI_URL);
}

static void setup(const struct agent_request *request, struct agent_setup *ret_setup)
{
    struct agent_words *argv = &ret_setup->argv;
    const char *const fixed[] = {"exec", "--json", "--skip-git-repo-check", "--output-schema"};
    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
        agent_words_add(argv, "%s", fixed[i]);
    }
    agent_words_add(argv, "%s/%s", request->scratch, AGENT_SCHEMA_FILE);
    agent_words_add(argv, "-s");
    agent_words_add(argv, "%s", mode_of(request->access));
    add_provider(request, ret_setup);
    if (request->model != NULL) {
        agent_words_add(argv, "-m");
        agent_words_add(argv, "%s", request->model);
    }
    if (!request->keep_session) {
        agent_words_add(argv, "--ephemeral");
    } else if (request->session != NULL) {
        agent_words_add(argv, "resume");
        agent_words_add(argv, "%s", request->session);
    }
    agent_words_add(argv, "-"); /* the prompt is on standard input */
    agent_words_add(&ret_setup->env, "NO_COLOR=1");
}

static void take_item(struct agent_reading *reading, struct loose item, struct buf *said,
                      struct buf *doing)
{
    struct loose type = loose_member(item, "type");
    if (loose_is(type, "agent_message")) {
        agent_take_text(loose_member(item, "text"), AGENT_TEXT_MAX, &reading->last);
        buf_add(said, reading->last.data, reading->last.len);
    } else if (loose_is(type, "command_execution")) {
        buf_add_text(doing, "runs ");
        loose_text(loose_member(item, "command"), AGENT_MESSAGE_MAX, doing);
    } else if (loose_is(type, "error")) {
        buf_add_text(doing, "warns: ");
        loose_text(loose_member(item, "message"), AGENT_MESSAGE_MAX, doing);
    }
}

static void take_end(struct agent_reading *reading, struct loose event)
{
    struct loose tokens = loose_member(event, "usage");
    struct loose verdict;
    int64_t all = -1;
    agent_take_number(loose_member(tokens, "input_tokens"), 1, &all);
    agent_take_number(loose_member(tokens, "cached_input_tokens"), 1,
                      &reading->usage.cached_tokens);
    agent_take_number(loose_member(tokens, "output_tokens"), 1, &reading->usage.output_tokens);
    if (all >= 0) { /* cached ones count among them */
        int64_t cached = reading->usage.cached_tokens > 0 ? reading->usage.cached_tokens : 0;
        reading->usage.input_tokens = all > cached ? all - cached : 0;
    }
    buf_clear(&reading->verdict);
    if (loose_parse(reading->last.data, reading->last.len, &verdict) &&
        loose_kind(verdict) == LOOSE_object) {
        buf_add(&reading->verdict, verdict.at, verdict.len);
    }
}

static void event(struct agent_reading *reading, struct loose event, struct buf *said,
                  struct buf *doing)
{
    struct loose type = loose_member(event, "type");
    if (loose_is(type, "thread.started")) {
        agent_take_name(loose_member(event, "thread_id"), reading->usage.session);
    } else if (loose_is(type, "item.started") || loose_is(type, "item.completed")) {
        take_item(reading, loose_member(event, "item"), said, doing);
    } else if (loose_is(type, "error")) {
        reading->status = 0;
        agent_take_error(reading, loose_member(event, "message"));
    } else if (loose_is(type, "turn.failed")) {
        reading->done = reading->failed = true;
        reading->status = 0;
        agent_take_error(reading, loose_at(event, "error.message"));
    } else if (loose_is(type, "turn.completed")) {
        reading->done = true;
        reading->failed = false;
        take_end(reading, event);
    }
}

const struct agent_program agent_codex = {
    .word = "codex",
    .command = "codex",
    .credentials = "OPENAI_API_KEY CODEX_API_KEY",
    .login = ".codex/auth.json",
    .schema = true,
    .cumulative = true,
    .gone = "no rollout found for thread id",
    .setup = setup,
    .event = event,
};
