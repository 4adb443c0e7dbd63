/*
 * What the configuration's values mean together. Called by config.c once all of them are read; it
 * adds findings and changes nothing.
 */
#include "common/base/check.h"
#include "common/base/config_load.h"
#include "common/base/quantity.h"
#include "common/base/text.h"
#include "common/base/word.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void check_chain_member(struct config_loading *loading, const struct yaml_node *chain,
                               const struct yaml_node *node, enum role role)
{
    const struct config *config = loading->config;
    const char *words[256];
    size_t n_words = 0;
    const struct config_service *service = config_service_find(config, node->text);
    if (service == NULL) {
        for (size_t i = 0; i < config->n_services && n_words < COUNT_OF(words); i++) {
            words[n_words++] = config->services[i].name.s;
        }
        const char *near = word_nearest(words, n_words, node->text);
        yaml_found(&loading->findings, node,
                   "roles.%s.chain names '%s', which is no service here%s%s%s", role_word(role),
                   text_quote_of(node->text).s, near != NULL ? "; did you mean '" : "",
                   near != NULL ? near : "", near != NULL ? "'?" : "");
        return;
    }
    if (service->roles != 0 && (service->roles & ROLE_BIT(role)) == 0) {
        yaml_found(&loading->findings, node,
                   "roles.%s.chain names %s, which does not serve %s; add it to services.%s.roles",
                   role_word(role), service->name.s, role_word(role), service->name.s);
    }
    for (const struct yaml_node *before = chain->first; before != node; before = before->next) {
        if (before->kind == YAML_KIND_text && strcmp(before->text, node->text) == 0) {
            yaml_found(&loading->findings, node,
                       "roles.%s.chain names %s twice; a service gets a "
                       "turn once",
                       role_word(role), service->name.s);
            break;
        }
    }
}

static void check_chains(struct config_loading *loading)
{
    for (unsigned i = 0; i < ROLE_COUNT; i++) {
        char path[64];
        snprintf(path, sizeof(path), "roles.%s.chain", role_word((enum role)i));
        const struct yaml_node *chain = config_node(loading, path);
        if (chain == NULL || chain->kind != YAML_KIND_list) {
            continue;
        }
        for (const struct yaml_node *node = chain->first; node != NULL; node = node->next) {
            if (node->kind == YAML_KIND_text && node->text_len > 0) {
                check_chain_member(loading, chain, node, (enum role)i);
            }
        }
    }
}

/* Each list ends with park, and only there, so that whatever happens something is possible. */
static void check_actions(struct config_loading *loading)
{
    for (unsigned i = 0; i < FAILURE_COUNT; i++) {
        const struct config_actions *actions = &loading->config->on_failure[i];
        const char *word = failure_word((enum failure)i);
        char path[64];
        unsigned seen = 0;
        snprintf(path, sizeof(path), "on_failure.%s", word);
        const struct yaml_node *list = config_node(loading, path);
        if (list == NULL || list->kind != YAML_KIND_list || list->count != actions->count) {
            continue; /* the default, or wrong already */
        }
        if (actions->count == 0 || actions->list[actions->count - 1] != ACTION_park) {
            yaml_found(&loading->findings, list, "%s must end with park", path);
        }
        for (size_t a = 0; a < actions->count; a++) {
            if ((seen & (1u << actions->list[a])) != 0) {
                yaml_found(&loading->findings, list, "%s names %s twice", path,
                           action_word(actions->list[a]));
            }
            if (actions->list[a] == ACTION_park && a + 1 < actions->count) {
                yaml_found(&loading->findings, list, "%s: nothing after park is ever done", path);
            }
            seen |= 1u << actions->list[a];
        }
    }
}

static void check_executor(struct config_loading *loading, const struct config_service *service)
{
    const struct config_executor *executor = &service->executor;
    const struct yaml_node *services = config_node(loading, "services");
    const struct yaml_node *node = yaml_member(yaml_member(services, service->name.s), "executor");
    if (node == NULL || node->kind != YAML_KIND_map || yaml_member(node, "kind") == NULL) {
        return;
    }
    bool runs = executor->kind == EXECUTOR_KIND_exec || executor->kind == EXECUTOR_KIND_child;
    bool agent = executor->kind == EXECUTOR_KIND_agent;
    const struct yaml_node *command = yaml_member(node, "command");
    if (runs && (command == NULL || (command->kind == YAML_KIND_list && command->count == 0))) {
        yaml_found(&loading->findings, command != NULL ? command : node,
                   "services.%s.executor needs a command, [program, argument, ...]",
                   service->name.s);
    }
    if (!runs && command != NULL) {
        yaml_found(&loading->findings, command,
                   "services.%s.executor.command is for kind exec and child only", service->name.s);
    }
    if (agent && yaml_member(node, "agent") == NULL) {
        yaml_found(&loading->findings, node,
                   "services.%s.executor needs agent: claude, codex or gemini", service->name.s);
    }
    static const char *const agents_only[] = {"agent", "model"};
    for (size_t i = 0; i < COUNT_OF(agents_only); i++) {
        if (!agent && yaml_member(node, agents_only[i]) != NULL) {
            yaml_found(&loading->findings, yaml_member(node, agents_only[i]),
                       "services.%s.executor.%s is for kind agent only", service->name.s,
                       agents_only[i]);
        }
    }
}

/* A finding about two keys stands at the one that is written. */
static const struct yaml_node *either(const struct config_loading *loading, const char *a,
                                      const char *b)
{
    const struct yaml_node *node = config_node(loading, a);
    return node != NULL ? node : config_node(loading, b);
}

struct timing {
    const char *longer;
    int64_t longer_ms;
    int64_t times;
    const char *shorter;
    int64_t shorter_ms;
    const char *why;
};

static void check_timing(struct config_loading *loading)
{
    const struct config *c = loading->config;
    bool kafka = c->log == LOG_KIND_kafka;
    const char *session = kafka ? "kafka.session" : "local.session";
    const char *heartbeat = kafka ? "kafka.heartbeat" : "local.heartbeat";
    const struct timing rows[] = {
        {session, c->session_ms, 3, heartbeat, c->heartbeat_ms,
         "one late heartbeat must not cost a worker its partitions"},
        {"lease_grace", c->lease_grace_ms, 2, heartbeat, c->heartbeat_ms,
         "a renewal must arrive within the grace"},
        {"lease", c->lease_ms, 2, "lease_grace", c->lease_grace_ms,
         "a holder stops before its lease is over, an owner waits the grace"},
        {"retry.max", c->retry.max_ms, 1, "retry.first", c->retry.first_ms,
         "the first delay is the shortest"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct timing *row = &rows[i];
        char times[32] = "";
        if (row->times > 1) {
            snprintf(times, sizeof(times), "%lld times ", (long long)row->times);
        }
        if (row->longer_ms < row->times * row->shorter_ms) {
            yaml_found(&loading->findings, either(loading, row->longer, row->shorter),
                       "%s (%s) must be at least %s%s (%s): %s", row->longer,
                       quantity_duration_text(row->longer_ms).s, times, row->shorter,
                       quantity_duration_text(row->shorter_ms).s, row->why);
        }
    }
}

void config_check(struct config_loading *loading)
{
    check_chains(loading);
    check_actions(loading);
    for (size_t i = 0; i < loading->config->n_services; i++) {
        check_executor(loading, &loading->config->services[i]);
    }
    check_timing(loading);
    config_check_kafka(loading);
}

/* ---- warnings ---- */

static bool runnable(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* As the worker resolves it: a path as it is, a name along PATH. */
static bool resolves(const char *program)
{
    if (strchr(program, '/') != NULL) {
        return runnable(program);
    }
    const char *path = getenv("PATH");
    for (const char *at = path != NULL ? path : "/usr/local/bin:/usr/bin:/bin"; *at != '\0';) {
        size_t n = strcspn(at, ":");
        char whole[4096];
        int len = snprintf(whole, sizeof(whole), "%.*s/%s", (int)n, at, program);
        if (n > 0 && len > 0 && (size_t)len < sizeof(whole) && runnable(whole)) {
            return true;
        }
        at += n + (at[n] == ':' ? 1 : 0);
    }
    return false;
}

size_t config_warnings(const struct config *config, struct buf *lines)
{
    size_t n = config_warnings_kafka(config, lines);
    for (size_t i = 0; i < config->n_services; i++) {
        const struct config_service *service = &config->services[i];
        const char *program = service->executor.kind == EXECUTOR_KIND_agent
                                  ? service->executor.agent
                              : service->executor.n_command > 0 ? service->executor.command[0]
                                                                : NULL;
        if (program != NULL && !resolves(program)) {
            buf_printf(lines,
                       "%s:%d: services.%s: the program '%s' is not to be had on this host\n",
                       text_quote_of(config->path).s, service->line, service->name.s,
                       text_quote_of(program).s);
            n++;
        }
    }
    return n;
}
