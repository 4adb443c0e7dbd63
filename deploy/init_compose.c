/*
 * The configuration that `baton init` writes, made of templates. In: cmd_init.c. Out: templates/
 */
#include "deploy/init_compose.h"

#include "common/base/check.h"
#include "common/base/config.h"
#include "deploy/embedded.h"
#include "producer/identity.h"

#include <stdio.h>
#include <string.h>

#define NAMELESS "operator" /* where the login name is no id */

/* Appends text with each place of the mark replaced; it has one at least. */
static void fill(struct buf *out, const char *text, size_t len, const char *mark, const char *with,
                 size_t with_len)
{
    const char *end = text + len;
    const char *at = memmem(text, len, mark, strlen(mark));
    BATON_INVARIANT(at != NULL);
    for (; at != NULL; at = memmem(text, (size_t)(end - text), mark, strlen(mark))) {
        buf_add(out, text, (size_t)(at - text));
        buf_add(out, with, with_len);
        text = at + strlen(mark);
    }
    buf_add(out, text, (size_t)(end - text));
}

/* The same for the text of a buffer, which it replaces. */
static void refill(struct buf *text, const char *mark, const char *with, size_t with_len)
{
    struct buf out = BUF_INIT;
    if (buf_ok(text)) {
        fill(&out, text->data, text->len, mark, with, with_len);
        buf_done(text);
        *text = out;
    }
}

/* For agents that tell no costs: budget.max_cost binds them by these. */
static const char prices[] =
    "      # prices: {input: 1250000, cached: 125000, output: 10000000}   # of that model, which "
    "tells no\n"
    "      #                            # costs: millionths of a US dollar for a million tokens\n";

/* A service for each agent, in the order of the chain. */
static void add_agents(const struct agent_program *const *agents, size_t n, struct buf *text)
{
    struct buf chain = BUF_INIT;
    struct buf services = BUF_INIT;
    for (size_t i = 0; i < n; i++) {
        const struct agent_program *agent = agents[i];
        struct buf service = BUF_INIT;
        buf_printf(&chain, "%s%s", i > 0 ? ", " : "", agent->word);
        buf_add(&service, embedded_agent_service_yaml, embedded_agent_service_yaml_len);
        refill(&service, "@AGENT@", agent->word, strlen(agent->word));
        refill(&service, "@PRICES@", prices,
               config_agent_tells_costs(agent->word) ? 0 : sizeof(prices) - 1);
        refill(&service, "@VARIABLE@", agent->credentials, strcspn(agent->credentials, " "));
        buf_add(&services, service.data, service.len);
        services.broken = services.broken || !buf_ok(&service);
        buf_done(&service);
    }
    buf_add(text, embedded_agents_yaml, embedded_agents_yaml_len);
    refill(text, "@CHAIN@", chain.data, chain.len);
    refill(text, "@SERVICES@", services.data, services.len);
    text->broken = text->broken || !buf_ok(&chain) || !buf_ok(&services);
    buf_done(&chain);
    buf_done(&services);
}

/* `a:1,b:2` as members of a YAML list. */
static void add_brokers(struct buf *out, const char *brokers)
{
    for (const char *at = brokers; *at != '\0';) {
        size_t n = strcspn(at, ",");
        const char *quote = at[0] == '[' ? "\"" : ""; /* an address of IPv6 */
        buf_printf(out, "%s%s%.*s%s", at != brokers ? ", " : "", quote, (int)n, at, quote);
        at += n + (at[n] == ',' ? 1 : 0);
    }
}

baton_code init_compose(const char *brokers, const struct agent_program *const *agents,
                        size_t n_agents, struct buf *text, struct baton_error *err)
{
    const struct config none = {.identity = {""}};
    char identity[ID_MAX + 1];
    struct buf listed = BUF_INIT;
    struct buf log = BUF_INIT;
    struct config *config = NULL;
    baton_code rc = BATON_OK;
    if (identity_name(&none, identity, NULL) != BATON_OK) {
        snprintf(identity, sizeof(identity), "%s", NAMELESS);
    }
    if (brokers != NULL) {
        add_brokers(&listed, brokers);
        fill(&log, (const char *)embedded_log_kafka_yaml, embedded_log_kafka_yaml_len, "@BROKERS@",
             listed.data, listed.len);
    } else {
        buf_add(&log, embedded_log_local_yaml, embedded_log_local_yaml_len);
    }
    if (n_agents > 0) {
        add_agents(agents, n_agents, text);
    } else {
        buf_add(text, embedded_baton_yaml, embedded_baton_yaml_len);
    }
    if (!buf_ok(&listed) || !buf_ok(&log) || !buf_ok(text)) {
        rc = baton_fail(err, BATON_E_no_memory, "no memory for a file");
    } else {
        refill(text, "@LOG@", log.data, log.len);
        refill(text, "@IDENTITY@", identity, strlen(identity));
        rc = buf_ok(text)
                 ? config_parse("baton.yaml", text->data, text->len, NULL, 0, &config, NULL, err)
                 : baton_fail(err, BATON_E_no_memory, "no memory for a file");
    }
    config_free(config);
    buf_done(&listed);
    buf_done(&log);
    return rc;
}
