/*
 * `on_failure` lists and the roles' chains: that each ends, and that what they ask for can be had.
 * Called by config_check.c once everything is read; it adds findings and warnings, and changes
 * nothing.
 */
#include "common/base/check.h"
#include "common/base/config_load.h"
#include "common/base/text.h"
#include "common/base/word.h"

#include <stdio.h>
#include <string.h>

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
            struct buf wanted = BUF_INIT;
            for (size_t a = 0; a < actions->count; a++) {
                buf_printf(&wanted, "%s, ", action_word(actions->list[a]));
            }
            yaml_found(&loading->findings, list, "%s must end with park: `%s: [%spark]`", path,
                       word, wanted.data != NULL ? wanted.data : "");
            loading->no_memory = loading->no_memory || !buf_ok(&wanted);
            buf_done(&wanted);
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

void config_check_lists(struct config_loading *loading)
{
    check_chains(loading);
    check_actions(loading);
}

/* ---- warnings: delegations that are asked for and never possible ---- */

/* The classes whose list asks for a delegation, with commas. */
static void delegating_classes(const struct config *config, struct buf *out)
{
    for (int i = 0; i < FAILURE_COUNT; i++) {
        const struct config_actions *actions = &config->on_failure[i];
        for (size_t a = 0; a < actions->count; a++) {
            if (actions->list[a] == ACTION_delegate) {
                buf_printf(out, "%s%s", out->len > 0 ? ", " : "", failure_word((enum failure)i));
                break;
            }
        }
    }
}

static bool in_chain(const struct config_role *role, const char *service)
{
    for (size_t i = 0; i < role->n_chain; i++) {
        if (strcmp(role->chain[i].s, service) == 0) {
            return true;
        }
    }
    return false;
}

/* Could a turn of this role go on somewhere when this service fails? */
static bool has_way_out(const struct config_role *role, const char *service)
{
    return role->n_chain > 1 || (role->n_chain == 1 && !in_chain(role, service));
}

/* Services that serve the role and whose turns stay there whatever happens; how many serve it. */
static size_t stuck(const struct config *config, enum role role, struct buf *out)
{
    size_t n_serving = 0;
    for (size_t i = 0; i < config->n_services; i++) {
        const struct config_service *service = &config->services[i];
        if ((service->roles & ROLE_BIT(role)) == 0) {
            continue;
        }
        n_serving++;
        if (!has_way_out(&config->roles[role], service->name.s)) {
            buf_printf(out, "%s%s", out->len > 0 ? ", " : "", service->name.s);
        }
    }
    return n_serving;
}

/* The chain as it is, then every other service that serves the role. */
static void chain_wanted(const struct config *config, enum role role, struct buf *out)
{
    const struct config_role *ours = &config->roles[role];
    for (size_t i = 0; i < ours->n_chain; i++) {
        buf_printf(out, "%s%s", out->len > 0 ? ", " : "", ours->chain[i].s);
    }
    for (size_t i = 0; i < config->n_services; i++) {
        const struct config_service *service = &config->services[i];
        if ((service->roles & ROLE_BIT(role)) != 0 && !in_chain(ours, service->name.s)) {
            buf_printf(out, "%s%s", out->len > 0 ? ", " : "", service->name.s);
        }
    }
}

static size_t warn_role(const struct config *config, enum role role, const char *classes,
                        struct buf *lines)
{
    struct buf where = BUF_INIT;
    struct buf chain = BUF_INIT;
    const char *word = role_word(role);
    size_t n_serving = stuck(config, role, &where);
    const bool asked = config->roles[role].n_chain > 0; /* nobody needs a fallback for every role */
    size_t n = 0;
    if (where.len > 0 && (n_serving > 1 || asked) && config->n_services > 1) {
        chain_wanted(config, role, &chain);
        buf_printf(lines,
                   "%s: turns of role %s at %s are never delegated, though on_failure asks for it "
                   "(%s): ",
                   text_quote_of(config->path).s, word, where.data, classes);
        if (n_serving > 1) {
            buf_printf(lines, "below roles: put `%s: {chain: [%s]}`\n", word, chain.data);
        } else {
            buf_printf(
                lines,
                "no other service serves %s; add it to the roles of one, and below roles: put "
                "`%s: {chain: [%s, THAT]}`\n",
                word, word, chain.data);
        }
        n = 1;
    }
    lines->broken = lines->broken || !buf_ok(&where) || !buf_ok(&chain);
    buf_done(&where);
    buf_done(&chain);
    return n;
}

size_t config_warnings_lists(const struct config *config, struct buf *lines)
{
    struct buf classes = BUF_INIT;
    size_t n = 0;
    delegating_classes(config, &classes);
    for (int role = 0; classes.len > 0 && role < ROLE_COUNT; role++) {
        n += warn_role(config, (enum role)role, classes.data, lines);
    }
    lines->broken = lines->broken || !buf_ok(&classes);
    buf_done(&classes);
    return n;
}
