/*
 * The parts of the configuration with names and lists of the user's choice: services, roles,
 * failure lists, brokers. Called by config.c once the scalars are read.
 */
#include "common/base/check.h"
#include "common/base/config_load.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/base/word.h"
#include "common/base/yaml_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONFIG_ENUM(id, key, type, fallback, min, max, unit, words, help) SERVICE_KEY_##id,
enum service_key { CONFIG_SERVICE_KEYS(CONFIG_ENUM) SERVICE_KEY_COUNT };
#undef CONFIG_ENUM
#define CONFIG_ENUM(id, key, type, fallback, min, max, unit, words, help) EXECUTOR_KEY_##id,
enum executor_key { CONFIG_EXECUTOR_KEYS(CONFIG_ENUM) EXECUTOR_KEY_COUNT };
#undef CONFIG_ENUM
static const struct config_key service_keys[] = {CONFIG_SERVICE_KEYS(CONFIG_ROW)};
static const struct config_key executor_keys[] = {CONFIG_EXECUTOR_KEYS(CONFIG_ROW)};
static const struct config_key role_keys[] = {CONFIG_ROLE_KEYS(CONFIG_ROW)};

/* What may stand in each map: its table's keys and the lists beside them. */
#define KEY_WORD(id, key, type, fallback, min, max, unit, words, help) key,
static const char *const service_words[] = {CONFIG_SERVICE_KEYS(KEY_WORD) "roles", "executor",
                                            "profiles"};
static const char *const executor_words[] = {CONFIG_EXECUTOR_KEYS(KEY_WORD) "command", "prefix",
                                             "prices", "env"};
static const char *const role_words[] = {CONFIG_ROLE_KEYS(KEY_WORD) "chain"};
#undef KEY_WORD
static const char *const profile_words[] = {"name", "env"};
static const char *const env_words[] = {"value", "file", "from"}; /* as enum env_source */

#define PATH_SIZE 256

/* Writes above.key, for findings and `config show`. */
static void dotted(char path[PATH_SIZE], const char *above, const char *key)
{
    snprintf(path, PATH_SIZE, "%.120s.%.120s", above, key);
}

/* Keeps the text for `config show` and frees it. */
static void show(struct config_loading *loading, const char *path, struct buf *text,
                 const struct yaml_node *node)
{
    if (buf_ok(text)) {
        config_setting(loading, path, text->data, node);
    } else {
        loading->no_memory = true;
    }
    buf_done(text);
}

static void show_list(struct config_loading *loading, const char *path,
                      const struct yaml_node *list)
{
    struct buf text = BUF_INIT;
    buf_add_char(&text, '[');
    for (const struct yaml_node *node = list->first; node != NULL; node = node->next) {
        buf_printf(&text, "%s%s", node != list->first ? ", " : "",
                   node->kind == YAML_KIND_text ? node->text : "");
    }
    buf_add_char(&text, ']');
    show(loading, path, &text, list);
}

/* A list of texts, copied. */
static void read_texts(struct config_loading *loading, const struct yaml_node *list,
                       const char *path, size_t max, char ***ret_texts, size_t *ret_count)
{
    if (!yaml_is_list(&loading->findings, list, path, max)) {
        return;
    }
    char **texts = config_array(loading, list->count + 1, sizeof(char *));
    size_t n = 0;
    if (texts == NULL) {
        return;
    }
    for (const struct yaml_node *node = list->first; node != NULL; node = node->next) {
        if (yaml_is_text(&loading->findings, NULL, node, path)) {
            texts[n++] = config_copy(loading, node->text);
        }
    }
    *ret_texts = texts;
    *ret_count = n;
    show_list(loading, path, list);
}

/* ---- environments ---- */

static bool variable_valid(const char *name)
{
    size_t n = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
    return n > 0 && n <= ID_MAX && name[n] == '\0' && (name[0] < '0' || name[0] > '9');
}

static void read_variable(struct config_loading *loading, const struct yaml_node *node,
                          const char *path, struct config_env *env)
{
    if (!variable_valid(node->key) || strncmp(node->key, "BATON_", 6) == 0) {
        yaml_found(&loading->findings, node,
                   "'%s' cannot be set here: a variable is [A-Za-z_][A-Za-z0-9_]*, and BATON_ is "
                   "Baton's own",
                   text_quote_of(node->key).s);
    }
    if (node->kind != YAML_KIND_map || node->count != 1) {
        yaml_found(&loading->findings, node,
                   "%s must say where its value comes from: {value: TEXT}, {file: PATH} or {from: "
                   "VARIABLE}",
                   path);
        return;
    }
    const struct yaml_node *source = node->first;
    int i = word_find(env_words, COUNT_OF(env_words), source->key, strlen(source->key));
    if (i < 0) {
        yaml_only_keys(&loading->findings, node, path, env_words, COUNT_OF(env_words));
        return;
    }
    bool may_be_empty = i == ENV_SOURCE_value && source->kind == YAML_KIND_text && !source->empty;
    if (!may_be_empty && !yaml_is_text(&loading->findings, NULL, source, path)) {
        return;
    }
    if (i == ENV_SOURCE_from && !variable_valid(source->text)) {
        yaml_found(&loading->findings, source, "%s: '%s' is not the name of a variable", path,
                   text_quote_of(source->text).s);
    }
    env->source = (enum env_source)i;
    env->text = i == ENV_SOURCE_file ? config_path(loading, source->text)
                                     : config_copy(loading, source->text);
    struct buf shown = BUF_INIT;
    buf_printf(&shown, "%s %s", env_words[i], env->text != NULL ? env->text : "");
    show(loading, path, &shown, source);
}

static void read_env(struct config_loading *loading, const struct yaml_node *map, const char *path,
                     struct config_env **ret_env, size_t *ret_count)
{
    if (!yaml_is_map(&loading->findings, map, path)) {
        return;
    }
    if (map->count > LIMIT_ENV) {
        yaml_found(&loading->findings, map, "%s has %zu variables; at most %d are allowed", path,
                   map->count, LIMIT_ENV);
        return;
    }
    struct config_env *env = config_array(loading, map->count, sizeof(*env));
    if (env == NULL) {
        return;
    }
    *ret_env = env;
    for (const struct yaml_node *node = map->first; node != NULL; node = node->next) {
        char below[PATH_SIZE];
        dotted(below, path, text_quote_of(node->key).s);
        struct config_env *one = &env[(*ret_count)++];
        one->name = config_copy(loading, node->key);
        read_variable(loading, node, below, one);
    }
}

/* ---- services ---- */

static void read_executor(struct config_loading *loading, const struct yaml_node *map,
                          const char *path, struct config_executor *executor)
{
    struct config_value values[EXECUTOR_KEY_COUNT];
    char below[PATH_SIZE];
    for (size_t i = 0; i < COUNT_OF(executor_keys); i++) {
        dotted(below, path, executor_keys[i].key);
        config_read(loading, &executor_keys[i], yaml_member(map, executor_keys[i].key), below,
                    &values[i]);
    }
    yaml_only_keys(&loading->findings, map, path, executor_words, COUNT_OF(executor_words));
    int64_t kind = values[EXECUTOR_KEY_kind].number;
    executor->kind = kind >= 0 ? (enum executor_kind)kind : EXECUTOR_KIND_callback;
    if (values[EXECUTOR_KEY_agent].text[0] != '\0') {
        executor->agent = config_copy(loading, values[EXECUTOR_KEY_agent].text);
    }
    if (values[EXECUTOR_KEY_model].text[0] != '\0' &&
        strcmp(values[EXECUTOR_KEY_model].text, "default") != 0) {
        executor->model = config_copy(loading, values[EXECUTOR_KEY_model].text);
    }
    executor->prompts = config_path(loading, values[EXECUTOR_KEY_prompts].text);
    executor->home = config_path(loading, values[EXECUTOR_KEY_home].text);
    executor->resume = values[EXECUTOR_KEY_resume].number == 1;
    if (values[EXECUTOR_KEY_access].number >= 0) {
        executor->access = (enum executor_access)values[EXECUTOR_KEY_access].number;
    }
    dotted(below, path, "command");
    read_texts(loading, yaml_member(map, "command"), below, LIMIT_ARGV, &executor->command,
               &executor->n_command);
    if (executor->n_command > 0 && executor->command[0] != NULL &&
        strchr(executor->command[0], '/') != NULL) {
        char *absolute = config_path(loading, executor->command[0]);
        free(executor->command[0]);
        executor->command[0] = absolute;
    }
    dotted(below, path, "prefix");
    read_texts(loading, yaml_member(map, "prefix"), below, LIMIT_ARGV, &executor->prefix,
               &executor->n_prefix);
    dotted(below, path, "prices");
    config_read_prices(loading, yaml_member(map, "prices"), below, executor);
    dotted(below, path, "env");
    read_env(loading, yaml_member(map, "env"), below, &executor->env, &executor->n_env);
}

static void read_profile(struct config_loading *loading, const struct yaml_node *map,
                         const char *path, struct config_service *service)
{
    char below[PATH_SIZE];
    char named[PATH_SIZE];
    if (!yaml_is_map(&loading->findings, map, path)) {
        return;
    }
    yaml_only_keys(&loading->findings, map, path, profile_words, COUNT_OF(profile_words));
    const struct yaml_node *name = yaml_member(map, "name");
    if (name == NULL || name->kind != YAML_KIND_text ||
        !plain_id_valid(name->text, name->text_len)) {
        yaml_found(&loading->findings, name != NULL ? name : map,
                   "a profile needs a name of [a-z0-9._-], at most 64 characters");
        return;
    }
    for (size_t i = 0; i < service->n_profiles; i++) {
        if (strcmp(service->profiles[i].name.s, name->text) == 0) {
            yaml_found(&loading->findings, name, "the profile '%s' stands here twice", name->text);
            return;
        }
    }
    struct config_profile *profile = &service->profiles[service->n_profiles++];
    profile->name = plain_id_of(name->text);
    dotted(named, path, name->text);
    dotted(below, named, "env");
    read_env(loading, yaml_member(map, "env"), below, &profile->env, &profile->n_env);
}

static void read_profiles(struct config_loading *loading, const struct yaml_node *list,
                          const char *path, struct config_service *service)
{
    bool listed = yaml_is_list(&loading->findings, list, path, LIMIT_PROFILES) && list->count > 0;
    service->profiles =
        config_array(loading, listed ? list->count : 1, sizeof(struct config_profile));
    if (service->profiles == NULL) {
        return;
    }
    for (const struct yaml_node *node = listed ? list->first : NULL; node != NULL;
         node = node->next) {
        read_profile(loading, node, path, service);
    }
    if (service->n_profiles == 0) {
        service->profiles[service->n_profiles++].name = plain_id_of("default");
    }
    struct buf names = BUF_INIT;
    for (size_t i = 0; i < service->n_profiles; i++) {
        buf_printf(&names, "%s%s", i == 0 ? "[" : ", ", service->profiles[i].name.s);
    }
    buf_add_char(&names, ']');
    show(loading, path, &names, list);
}

static void read_roles_served(struct config_loading *loading, const struct yaml_node *list,
                              const struct yaml_node *service_node, const char *path,
                              struct config_service *service)
{
    if (list == NULL || (list->kind == YAML_KIND_list && list->count == 0)) {
        yaml_found(&loading->findings, list != NULL ? list : service_node,
                   "%s must name at least one role: owner, reviewer or arbiter", path);
        return;
    }
    if (!yaml_is_list(&loading->findings, list, path, ROLE_COUNT)) {
        return;
    }
    for (const struct yaml_node *node = list->first; node != NULL; node = node->next) {
        enum role role;
        if (node->kind != YAML_KIND_text || !role_parse(node->text, node->text_len, &role)) {
            yaml_found(&loading->findings, node, "%s: '%s' is no role; roles are: %s", path,
                       node->kind == YAML_KIND_text ? text_quote_of(node->text).s
                                                    : yaml_kind_text(node),
                       role_list());
        } else if ((service->roles & ROLE_BIT(role)) != 0) {
            yaml_found(&loading->findings, node, "%s names %s twice", path, role_word(role));
        } else {
            service->roles |= ROLE_BIT(role);
        }
    }
    show_list(loading, path, list);
}

static void read_service(struct config_loading *loading, const struct yaml_node *map)
{
    char path[PATH_SIZE];
    char below[PATH_SIZE];
    struct config_value values[SERVICE_KEY_COUNT];
    if (!service_id_valid(map->key, strlen(map->key))) {
        yaml_found(
            &loading->findings, map,
            "'%s' is no name for a service: [a-z0-9-], at most 48 characters, not coordinator",
            text_quote_of(map->key).s);
        return;
    }
    dotted(path, "services", map->key);
    struct config_service *service = &loading->config->services[loading->config->n_services++];
    service->name = service_id_of(map->key);
    service->line = map->line;
    if (map->kind != YAML_KIND_map) {
        yaml_found(&loading->findings, map, "%s must be a section of keys, with roles and executor",
                   path);
        return;
    }
    yaml_only_keys(&loading->findings, map, path, service_words, COUNT_OF(service_words));
    dotted(below, path, "roles");
    read_roles_served(loading, yaml_member(map, "roles"), map, below, service);
    for (size_t i = 0; i < COUNT_OF(service_keys); i++) {
        struct config_key key = service_keys[i];
        if (i == SERVICE_KEY_grace) { /* stands after the deadline, which is its default */
            key.fallback = values[SERVICE_KEY_deadline].text;
        }
        dotted(below, path, key.key);
        config_read(loading, &key, yaml_member(map, key.key), below, &values[i]);
    }
    service->parallel = (int)values[SERVICE_KEY_parallel].number;
    service->deadline_ms = values[SERVICE_KEY_deadline].number;
    service->heartbeat_ms = values[SERVICE_KEY_heartbeat].number;
    service->grace_ms = values[SERVICE_KEY_grace].number;
    service->cut_off = (enum cut_off)values[SERVICE_KEY_cut_off].number;
    service->place = config_path(loading, values[SERVICE_KEY_place].text);
    dotted(below, path, "executor");
    const struct yaml_node *executor = yaml_member(map, "executor");
    if (executor == NULL) {
        yaml_found(&loading->findings, map, "%s is missing: what does this service's turns?",
                   below);
    } else if (yaml_is_map(&loading->findings, executor, below)) {
        read_executor(loading, executor, below, &service->executor);
    }
    dotted(below, path, "profiles");
    read_profiles(loading, yaml_member(map, "profiles"), below, service);
}

static void read_services(struct config_loading *loading, const struct yaml_node *map)
{
    if (!yaml_is_map(&loading->findings, map, "services")) {
        return;
    }
    if (map->count > LIMIT_SERVICES) {
        yaml_found(&loading->findings, map, "services has %zu members; at most %d are allowed",
                   map->count, LIMIT_SERVICES);
        return;
    }
    loading->config->services = config_array(loading, map->count, sizeof(struct config_service));
    for (const struct yaml_node *node = map->first;
         loading->config->services != NULL && node != NULL; node = node->next) {
        read_service(loading, node);
    }
}

/* ---- roles, failure lists, Kafka's own ---- */

static void read_role(struct config_loading *loading, const struct yaml_node *map, enum role role)
{
    char path[PATH_SIZE];
    char below[PATH_SIZE];
    struct config_role *ours = &loading->config->roles[role];
    struct config_value value;
    dotted(path, "roles", role_word(role));
    if (!yaml_is_map(&loading->findings, map, path)) {
        map = NULL;
    } else {
        yaml_only_keys(&loading->findings, map, path, role_words, COUNT_OF(role_words));
    }
    dotted(below, path, "read_only");
    config_read(loading, &role_keys[0], map != NULL ? yaml_member(map, "read_only") : NULL, below,
                &value);
    ours->read_only = value.number == 1;
    dotted(below, path, "chain");
    const struct yaml_node *chain = map != NULL ? yaml_member(map, "chain") : NULL;
    if (!yaml_is_list(&loading->findings, chain, below, LIMIT_CHAIN)) {
        return;
    }
    ours->chain = config_array(loading, chain->count, sizeof(struct service_id));
    for (const struct yaml_node *node = chain->first; ours->chain != NULL && node != NULL;
         node = node->next) {
        if (yaml_is_text(&loading->findings, NULL, node, below) &&
            service_id_valid(node->text, node->text_len)) {
            ours->chain[ours->n_chain++] = service_id_of(node->text);
        }
    }
    show_list(loading, below, chain);
}

static void read_roles(struct config_loading *loading, const struct yaml_node *map)
{
    const char *words[ROLE_COUNT];
    bool there = yaml_is_map(&loading->findings, map, "roles");
    for (unsigned i = 0; i < ROLE_COUNT; i++) {
        words[i] = role_word((enum role)i);
        read_role(loading, there ? yaml_member(map, words[i]) : NULL, (enum role)i);
    }
    if (there) {
        yaml_only_keys(&loading->findings, map, "roles", words, ROLE_COUNT);
    }
}

static void actions_default(struct config_actions *actions, enum failure failure)
{
    for (const char *at = failure_default_actions(failure); *at != '\0';) {
        size_t n = strcspn(at, " ");
        BATON_INVARIANT(actions->count < COUNT_OF(actions->list) &&
                        action_parse(at, n, &actions->list[actions->count]));
        actions->count++;
        at += n + strspn(at + n, " ");
    }
}

static void read_actions(struct config_loading *loading, const struct yaml_node *list,
                         enum failure failure)
{
    char path[PATH_SIZE];
    struct config_actions *actions = &loading->config->on_failure[failure];
    dotted(path, "on_failure", failure_word(failure));
    if (list == NULL) {
        struct buf shown = BUF_INIT;
        actions_default(actions, failure);
        for (size_t i = 0; i < actions->count; i++) {
            buf_printf(&shown, "%s%s", i == 0 ? "[" : ", ", action_word(actions->list[i]));
        }
        buf_add_char(&shown, ']');
        show(loading, path, &shown, NULL);
        return;
    }
    if (!yaml_is_list(&loading->findings, list, path, COUNT_OF(actions->list))) {
        return;
    }
    for (const struct yaml_node *node = list->first; node != NULL; node = node->next) {
        if (node->kind != YAML_KIND_text ||
            !action_parse(node->text, node->text_len, &actions->list[actions->count])) {
            yaml_found(
                &loading->findings, node,
                "%s: '%s' is no action; the actions are retry, rotate, delegate and park", path,
                node->kind == YAML_KIND_text ? text_quote_of(node->text).s : yaml_kind_text(node));
        } else {
            actions->count++;
        }
    }
    show_list(loading, path, list);
}

static void read_failures(struct config_loading *loading, const struct yaml_node *map)
{
    const char *words[FAILURE_COUNT];
    bool there = yaml_is_map(&loading->findings, map, "on_failure");
    for (unsigned i = 0; i < FAILURE_COUNT; i++) {
        words[i] = failure_word((enum failure)i);
        read_actions(loading, there ? yaml_member(map, words[i]) : NULL, (enum failure)i);
    }
    if (there) {
        yaml_only_keys(&loading->findings, map, "on_failure", words, FAILURE_COUNT);
    }
}

static void read_brokers(struct config_loading *loading, const struct yaml_node *list)
{
    struct buf joined = BUF_INIT;
    if (!yaml_is_list(&loading->findings, list, "kafka.brokers", LIMIT_ITEMS)) {
        return;
    }
    for (const struct yaml_node *node = list->first; node != NULL; node = node->next) {
        if (yaml_is_text(&loading->findings, NULL, node, "kafka.brokers")) {
            buf_printf(&joined, "%s%s", joined.len > 0 ? "," : "", node->text);
        }
    }
    show_list(loading, "kafka.brokers", list);
    if (joined.len > 0) {
        loading->config->kafka_brokers = buf_take(&joined, NULL);
    }
    loading->no_memory = loading->no_memory || !buf_ok(&joined);
    buf_done(&joined);
}

/* Where a node stands, for findings of others: `file:line:column`, or its option. */
static char *where(struct config_loading *loading, const struct yaml_node *node)
{
    struct buf text = BUF_INIT;
    if (node->origin != NULL) {
        buf_add_text(&text, text_quote_of(node->origin).s);
    } else {
        buf_printf(&text, "%s:%d:%d", text_quote_of(loading->findings.name).s, node->line,
                   node->column);
    }
    char *taken = buf_take(&text, NULL);
    loading->no_memory = loading->no_memory || taken == NULL;
    return taken;
}

static void read_client(struct config_loading *loading, const struct yaml_node *map)
{
    struct config *config = loading->config;
    if (!yaml_is_map(&loading->findings, map, "kafka.client") || map->count == 0) {
        return;
    }
    config->kafka.client = config_array(loading, map->count, sizeof(struct config_pair));
    for (const struct yaml_node *node = map->first; config->kafka.client != NULL && node != NULL;
         node = node->next) {
        char path[PATH_SIZE];
        dotted(path, "kafka.client", text_quote_of(node->key).s);
        if (yaml_is_text(&loading->findings, NULL, node, path)) {
            config->kafka.client[config->kafka.n_client++] =
                (struct config_pair){config_copy(loading, node->key),
                                     config_copy(loading, node->text), where(loading, node)};
            config_setting(loading, path, node->text, node);
        }
    }
}

void config_read_sections(struct config_loading *loading)
{
    read_brokers(loading, config_node(loading, "kafka.brokers"));
    read_client(loading, config_node(loading, "kafka.client"));
    read_services(loading, config_node(loading, "services"));
    read_roles(loading, config_node(loading, "roles"));
    read_failures(loading, config_node(loading, "on_failure"));
    read_texts(loading, config_node(loading, "workflows"), "workflows", LIMIT_ITEMS,
               &loading->config->workflows, &loading->config->n_workflows);
    for (size_t i = 0; i < loading->config->n_workflows; i++) {
        char *written = loading->config->workflows[i];
        loading->config->workflows[i] = written != NULL ? config_path(loading, written) : NULL;
        free(written);
    }
}
