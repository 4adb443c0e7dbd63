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

#include "common/base/check.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

/* Does a line in front of the first table of config.toml set this key? */
static bool has_key(const char *text, const char *key)
{
    for (const char *at = text; *at != '\0';) {
        at += strspn(at, " \t\r\n");
        if (*at == '[') {
            return false;
        }
        if (strncmp(at, key, strlen(key)) == 0 &&
            at[strlen(key) + strspn(at + strlen(key), " \t")] == '=') {
            return true;
        }
        at += strcspn(at, "\n");
    }
    return false;
}

/* Somebody's HOME may name a provider: then that one is meant, with its own bounds of retrying. */
static bool names_provider(const struct agent_request *request)
{
    const char *home = request->declared(request->declared_arg, "CODEX_HOME");
    char path[4096];
    char text[16384];
    size_t len = 0;
    if (home == NULL && request->home == NULL) {
        return false;
    }
    snprintf(path, sizeof(path), "%s%s/config.toml", home != NULL ? home : request->home,
             home != NULL ? "" : "/.codex");
    /* The agent may write there: a FIFO must hold nobody up. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    for (ssize_t n = 1; fd >= 0 && n > 0 && len < sizeof(text) - 1;) {
        n = read(fd, text + len, sizeof(text) - 1 - len);
        len += n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0) {
        close(fd);
    }
    text[len] = '\0';
    return has_key(text, "model_provider");
}

/* The provider that ships with it takes a key of the environment only after a login, and retries by
 * itself, also where that is configured otherwise. So it gets one that leaves retrying to the worker, and
 * takes a declared key, or else what it has signed in with (then its address depends on the login). */
static void add_provider(const struct agent_request *request, struct agent_setup *setup)
{
    struct agent_words *argv = &setup->argv;
    const char *url = request->declared(request->declared_arg, "OPENAI_BASE_URL");
    bool key = request->declared(request->declared_arg, "OPENAI_API_KEY") != NULL;
    if (!key && names_provider(request)) {
        return;
    }
    url = url != NULL && plain(url) ? url : key ? OPENAI_URL : NULL;
    if (url != NULL && request->secret != NULL &&
        request->secret(request->declared_arg, "OPENAI_BASE_URL")) {
        setup->refused =
            "OPENAI_BASE_URL of codex stands in its argv, for everybody on this host to "
            "see: declare it as a value, not by file or from";
        return;
    }
    agent_words_option(argv, "-c", "model_provider=\"baton\"");
    agent_words_add(argv, "-c");
    agent_words_add(argv,
                    "model_providers.baton={name=\"OpenAI\",%s%s%s%s,wire_api=\"responses\","
                    "request_max_retries=0,stream_max_retries=0}",
                    url != NULL ? "base_url=\"" : "", url != NULL ? url : "",
                    url != NULL ? "\"," : "",
                    key ? "env_key=\"OPENAI_API_KEY\"" : "requires_openai_auth=true");
}

/* A place that somebody's HOME trusts could name programs to start (.codex/config.toml). All that is
 * trusted is replaced by this one word, which goes before that of a folder above. */
static void add_distrust(const struct agent_request *request, struct agent_setup *setup)
{
    if (request->place == NULL || request->home == NULL) {
        return; /* in a new HOME nothing is trusted */
    }
    if (!plain(request->place)) {
        setup->refused = "the place of a codex that has a home must be without quotes, backslashes "
                         "and line ends in its path";
        return;
    }
    agent_words_add(&setup->argv, "-c");
    agent_words_add(&setup->argv, "projects={\"%s\"={trust_level=\"untrusted\"}}", request->place);
}

/* What it would do by itself, whoever the provider is. */
static const char *const quiet[] = {
    "features.unbounded_connection_retries=false", /* wait for a network, without an end */
    "analytics.enabled=false",                     /* tell its maker what it does */
    "features.plugins=false", /* look for some at its maker's and at GitHub; a home may have its own */
};

static void setup(const struct agent_request *request, struct agent_setup *ret_setup)
{
    struct agent_words *argv = &ret_setup->argv;
    const char *const fixed[] = {"exec", "--json", "--skip-git-repo-check", "--output-schema"};
    agent_words_add_all(argv, fixed, COUNT_OF(fixed));
    agent_words_add(argv, "%s/%s", request->scratch, AGENT_SCHEMA_FILE);
    agent_words_option(argv, "-s", mode_of(request->access));
    for (size_t i = 0; i < sizeof(quiet) / sizeof(quiet[0]) - (request->home != NULL ? 1 : 0);
         i++) {
        agent_words_option(argv, "-c", quiet[i]);
    }
    add_provider(request, ret_setup);
    add_distrust(request, ret_setup);
    agent_words_option(argv, "-m", request->model);
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
