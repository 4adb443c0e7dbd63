/*
 * What an agent's tokens cost: `prices` of an executor. Agents that tell no costs are bound by budget.max_cost through
 * them, so a bound that would be none is told where it is written.
 * Called by config_sections.c (reading) and config_check.c (what it means with the rest).
 */
#include "common/base/check.h"
#include "common/base/config_load.h"

#include <stdio.h>
#include <string.h>

#define CONFIG_ENUM(id, key, type, fallback, min, max, unit, words, help) PRICE_KEY_##id,
enum price_key { CONFIG_PRICE_KEYS(CONFIG_ENUM) PRICE_KEY_COUNT };
#undef CONFIG_ENUM
static const struct config_key price_keys[] = {CONFIG_PRICE_KEYS(CONFIG_ROW)};
#define KEY_WORD(id, key, type, fallback, min, max, unit, words, help) key,
static const char *const price_words[] = {CONFIG_PRICE_KEYS(KEY_WORD)};
#undef KEY_WORD

static const struct {
    const char *word;
    bool tells_costs;
} agents[] = {
#define AGENT_ROW(word, tells_costs) {#word, tells_costs},
    AGENTS(AGENT_ROW)
#undef AGENT_ROW
};

void config_read_prices(struct config_loading *loading, const struct yaml_node *map,
                        const char *path, struct config_executor *executor)
{
    struct config_value values[PRICE_KEY_COUNT];
    if (map == NULL) {
        return;
    }
    if (map->kind != YAML_KIND_map) {
        yaml_found(&loading->findings, map, "%s must be a section of keys, {input, cached, output}",
                   path);
        return;
    }
    yaml_only_keys(&loading->findings, map, path, price_words, COUNT_OF(price_words));
    for (size_t i = 0; i < COUNT_OF(price_keys); i++) {
        char below[256];
        snprintf(below, sizeof(below), "%.200s.%s", path, price_keys[i].key);
        config_read(loading, &price_keys[i], yaml_member(map, price_keys[i].key), below,
                    &values[i]);
    }
    executor->prices.known = true;
    executor->prices.input = values[PRICE_KEY_input].number;
    executor->prices.output = values[PRICE_KEY_output].number;
    executor->prices.cached = values[PRICE_KEY_cached].number >= 0 ? values[PRICE_KEY_cached].number
                                                                   : executor->prices.input;
}

bool config_agent_tells_costs(const char *agent)
{
    for (size_t i = 0; i < COUNT_OF(agents); i++) {
        if (strcmp(agents[i].word, agent) == 0) {
            return agents[i].tells_costs;
        }
    }
    return true; /* no agent: a finding already */
}

void config_check_prices(struct config_loading *loading, const struct yaml_node *executor_node,
                         const struct config_service *service)
{
    const struct config_executor *executor = &service->executor;
    const struct yaml_node *prices = yaml_member(executor_node, "prices");
    if (executor->kind != EXECUTOR_KIND_agent || executor->agent == NULL) {
        return;
    }
    if (prices != NULL && config_agent_tells_costs(executor->agent)) {
        yaml_found(
            &loading->findings, prices,
            "services.%s.executor.prices is for agents that tell no costs, and %s tells its own",
            service->name.s, executor->agent);
    } else if (prices != NULL && executor->model == NULL) {
        yaml_found(&loading->findings, prices,
                   "services.%s.executor.prices are those of a model: name it, model: NAME",
                   service->name.s);
    } else if (prices == NULL && !config_agent_tells_costs(executor->agent) &&
               loading->config->budget.max_cost_micros > 0) {
        yaml_found(
            &loading->findings, yaml_member(executor_node, "agent"),
            "budget.max_cost cannot bind services.%s: %s tells tokens and no costs; name model "
            "and prices of its executor, prices: {input: N, cached: N, output: N}, in millionths "
            "of a US dollar for a million tokens (0 where nothing is charged)",
            service->name.s, executor->agent);
    }
}
