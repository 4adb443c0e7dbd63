/*
 * What the configuration's values mean together. Called by config.c once all of them are read; it
 * adds findings and changes nothing.
 */
#include "common/base/check.h"
#include "common/base/config_load.h"
#include "common/base/quantity.h"
#include "common/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    if (executor->kind == EXECUTOR_KIND_callback && command != NULL) {
        yaml_found(&loading->findings, command,
                   "services.%s.executor.command is not for kind callback", service->name.s);
    }
    if (executor->kind == EXECUTOR_KIND_callback && service->heartbeat_ms > 0) {
        yaml_found(
            &loading->findings, yaml_member(yaml_member(services, service->name.s), "heartbeat"),
            "services.%s.heartbeat is not for kind callback: nothing can end one", service->name.s);
    }
    if (agent && yaml_member(node, "agent") == NULL) {
        yaml_found(&loading->findings, node,
                   "services.%s.executor needs an agent, one of:" AGENT_LIST, service->name.s);
    }
    if (agent && executor->resume && executor->home == NULL) {
        yaml_found(
            &loading->findings, yaml_member(node, "resume"),
            "services.%s.executor.resume needs home: sessions are kept there, and an empty one "
            "for each attempt has none",
            service->name.s);
    }
    config_check_prices(loading, node, service);
    static const char *const agents_only[] = {"agent", "model",  "access", "prompts",
                                              "home",  "resume", "prices"};
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
    config_check_lists(loading);
    for (size_t i = 0; i < loading->config->n_services; i++) {
        check_executor(loading, &loading->config->services[i]);
    }
    check_timing(loading);
    config_check_kafka(loading);
    config_check_traces(loading);
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
    size_t n = config_warnings_kafka(config, lines) + config_warnings_lists(config, lines) +
               config_warnings_traces(config, lines);
    for (size_t i = 0; i < config->n_services; i++) {
        const struct config_service *service = &config->services[i];
        const char *program = service->executor.n_command > 0 ? service->executor.command[0]
                              : service->executor.kind == EXECUTOR_KIND_agent
                                  ? service->executor.agent
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
