/*
 * The configuration: finding and reading it, its keys. Called by commands and workers.
 */
#include "common/base/config.h"

#include "common/base/check.h"
#include "common/base/config_load.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/base/word.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONFIG_ENUM(id, key, type, fallback, min, max, unit, words, help) KEY_##id,
enum key { CONFIG_KEYS(CONFIG_ENUM) KEY_COUNT };
#undef CONFIG_ENUM
static const struct config_key keys[] = {CONFIG_KEYS(CONFIG_ROW)};

#define SECTION_KEY(key, shape, help) key,
static const char *const sections[] = {CONFIG_SECTIONS(SECTION_KEY)};
#undef SECTION_KEY

const struct yaml_node *config_node(const struct config_loading *loading, const char *path)
{
    const struct yaml_node *node = yaml_tree_root(loading->tree);
    while (node != NULL) {
        char key[64];
        size_t n = strcspn(path, ".");
        BATON_PRE(n < sizeof(key));
        memcpy(key, path, n);
        key[n] = '\0';
        node = yaml_member(node, key);
        if (path[n] == '\0') {
            break;
        }
        path += n + 1;
    }
    return node;
}

static bool below(const char *key, const char *path)
{
    size_t n = strlen(path);
    return strncmp(key, path, n) == 0 && key[n] == '.';
}

enum place { PLACE_unknown, PLACE_value, PLACE_above };

/* Is path a key or section, or on the way to one? */
static enum place place_of(const char *path)
{
    enum place place = PLACE_unknown;
    for (size_t i = 0; i < COUNT_OF(keys) + COUNT_OF(sections); i++) {
        const char *key = i < COUNT_OF(keys) ? keys[i].key : sections[i - COUNT_OF(keys)];
        if (strcmp(key, path) == 0) {
            return PLACE_value;
        }
        place = below(key, path) ? PLACE_above : place;
    }
    return place;
}

/* The full key nearest to path: by whole names, so that `budget.failure` and a key that lost its
 * section (`session`) are both helped. */
static const char *key_nearest(const char *path)
{
    const char *names[COUNT_OF(keys) + COUNT_OF(sections)];
    size_t n = 0;
    for (size_t i = 0; i < COUNT_OF(keys) + COUNT_OF(sections); i++) {
        names[n++] = i < COUNT_OF(keys) ? keys[i].key : sections[i - COUNT_OF(keys)];
    }
    for (size_t i = 0; i < n; i++) {
        const char *dot = strrchr(names[i], '.');
        if (dot != NULL && strcmp(dot + 1, path) == 0) {
            return names[i];
        }
    }
    return word_nearest(names, n, path);
}

static void path_of(const struct yaml_node *node, char *path, size_t size)
{
    const struct yaml_node *line[LIMIT_YAML_DEPTH + 1];
    size_t n = 0;
    for (; node->key != NULL && n < COUNT_OF(line); node = node->parent) {
        line[n++] = node;
    }
    size_t len = 0;
    path[0] = '\0';
    while (n > 0 && len < size) {
        n--;
        len += (size_t)snprintf(path + len, size - len, "%s%s", len > 0 ? "." : "", line[n]->key);
    }
}

/* Judges one key of the file; true: look below it. */
static bool key_known(struct config_loading *loading, const struct yaml_node *node)
{
    char path[256];
    path_of(node, path, sizeof(path));
    enum place place = strchr(node->key, '.') == NULL ? place_of(path) : PLACE_unknown;
    if (strcmp(path, "kafka.sasl.password") == 0 && node->kind != YAML_KIND_map) {
        yaml_found(&loading->findings, node,
                   "no password stands in the configuration; kafka.sasl.password: {file: PATH}");
    } else if (place == PLACE_above && node->kind != YAML_KIND_map && !node->empty) {
        yaml_found(&loading->findings, node, "%s is a section: its keys stand below it, indented",
                   path);
    } else if (place == PLACE_unknown) {
        const char *near = key_nearest(path);
        yaml_found(&loading->findings, node, "unknown key '%s'%s%s%s", text_quote_of(path).s,
                   near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                   near != NULL ? "'?" : "");
    }
    return place == PLACE_above;
}

static void read_keys(struct config_loading *loading)
{
    const struct yaml_node *root = yaml_tree_root(loading->tree);
    if (root->kind != YAML_KIND_map) {
        yaml_found(&loading->findings, root, "the file must be a map of keys, `key: value`");
        return;
    }
    const struct yaml_node *node = root->first;
    while (node != NULL) {
        bool down = key_known(loading, node) && node->first != NULL && node->kind == YAML_KIND_map;
        const struct yaml_node *next = down ? node->first : node->next;
        while (next == NULL && node->parent != root) {
            node = node->parent;
            next = node->next;
        }
        node = next;
    }
}

/* Puts the scalar values where programs look for them. */
static void fill(struct config_loading *loading, const struct config_value *v)
{
    struct config *c = loading->config;
    bool kafka = v[KEY_log].number == LOG_KIND_kafka;
    c->prefix = plain_id_of(v[KEY_prefix].text);
    c->log = kafka ? LOG_KIND_kafka : LOG_KIND_local;
    c->local_path = config_path(loading, v[KEY_local_path].text);
    c->partitions = (int32_t)v[kafka ? KEY_kafka_partitions : KEY_local_partitions].number;
    c->session_ms = v[kafka ? KEY_kafka_session : KEY_local_session].number;
    c->heartbeat_ms = v[kafka ? KEY_kafka_heartbeat : KEY_local_heartbeat].number;
    c->replication = (int)v[KEY_kafka_replication].number;
    c->kafka.security = config_copy(loading, v[KEY_kafka_security].text);
    c->kafka.sasl_mechanism = config_copy(loading, v[KEY_kafka_sasl_mechanism].text);
    c->kafka.sasl_username = config_copy(loading, v[KEY_kafka_sasl_username].text);
    c->kafka.sasl_password_file = config_path(loading, v[KEY_kafka_sasl_password].text);
    c->kafka.ca = config_path(loading, v[KEY_kafka_ca].text);
    c->kafka.certificate = config_path(loading, v[KEY_kafka_certificate].text);
    c->kafka.key = config_path(loading, v[KEY_kafka_key].text);
    c->lease_ms = v[KEY_lease].number;
    c->lease_grace_ms = v[KEY_lease_grace].number;
    c->state_dir = config_path(loading, v[KEY_state_dir].text);
    c->identity = plain_id_of(v[KEY_identity].text);
    c->keys = config_path(loading, v[KEY_keys].text);
    c->trust = config_path(loading, v[KEY_trust].text);
    c->proof_required = v[KEY_proof].number == 0;
    c->budget.failures = (int)v[KEY_budget_failures].number;
    c->budget.losses = (int)v[KEY_budget_losses].number;
    c->budget.replays = (int)v[KEY_budget_replays].number;
    c->budget.attempts = (int)v[KEY_budget_attempts].number;
    c->budget.max_cost_micros = (int64_t)(v[KEY_budget_max_cost].real * 1000000 + 0.5);
    c->retry.first_ms = v[KEY_retry_first].number;
    c->retry.factor = v[KEY_retry_factor].real;
    c->retry.max_ms = v[KEY_retry_max].number;
    c->retry.jitter = v[KEY_retry_jitter].real;
    c->retry.each_service = (int)v[KEY_retry_each_service].number;
    c->retry.max_wait_ms = v[KEY_retry_max_wait].number;
    c->retry.rest_ms = v[KEY_retry_rest].number;
    c->circuit.after = (int)v[KEY_circuit_after].number;
    c->circuit.for_ms = v[KEY_circuit_for].number;
    c->circuit.probe_ms = v[KEY_circuit_probe].number;
    if (v[KEY_http_listen].text[0] != '\0') {
        c->http_listen = config_copy(loading, v[KEY_http_listen].text);
    }
    if (v[KEY_traces_endpoint].text[0] != '\0') {
        c->traces.endpoint = config_copy(loading, v[KEY_traces_endpoint].text);
    }
    c->traces.headers_file = config_path(loading, v[KEY_traces_headers].text);
    c->traces.ca = config_path(loading, v[KEY_traces_ca].text);
    c->traces.timeout_ms = v[KEY_traces_timeout].number;
    c->traces.queue = (int)v[KEY_traces_queue].number;
}

static void read_tree(struct config_loading *loading)
{
    struct config_value values[KEY_COUNT];
    read_keys(loading);
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        config_read(loading, &keys[i], config_node(loading, keys[i].key), keys[i].key, &values[i]);
    }
    fill(loading, values);
    config_read_sections(loading);
    if (!loading->no_memory) {
        config_check(loading);
    }
}

static char *absolute(const char *path)
{
    char here[PATH_MAX];
    struct buf whole = BUF_INIT;
    if (path[0] != '/') {
        buf_printf(&whole, "%s/", getcwd(here, sizeof(here)) != NULL ? here : "");
    }
    buf_add_text(&whole, strncmp(path, "./", 2) == 0 ? path + 2 : path);
    return buf_take(&whole, NULL);
}

/* Puts the --set values over the file's. origins: one text for each, which the tree refers to. */
static bool put_sets(struct config_loading *loading, const char *const *sets, size_t n_sets,
                     char **origins)
{
    for (size_t i = 0; i < n_sets; i++) {
        const char *equals = strchr(sets[i], '=');
        struct buf origin = BUF_INIT;
        /* Who types a password here is refused; at least it is not printed again. */
        buf_printf(&origin, "--set %s",
                   strncmp(sets[i], "kafka.sasl.password=", 20) == 0 ? "kafka.sasl.password=..."
                                                                     : sets[i]);
        origins[i] = buf_take(&origin, NULL);
        if (origins[i] == NULL) {
            return false;
        }
        struct yaml_node here = {.origin = origins[i]};
        if (equals == NULL || equals == sets[i]) {
            yaml_found(&loading->findings, &here,
                       "must be KEY=VALUE, for example --set retry.first=1s");
            continue;
        }
        if (!text_utf8_valid(sets[i], strlen(sets[i]))) {
            yaml_found(&loading->findings, &here, "not valid UTF-8");
            continue;
        }
        char *key = strndup(sets[i], (size_t)(equals - sets[i]));
        if (key == NULL) {
            return false;
        }
        /* Names of librdkafka's settings have dots of their own. */
        size_t depth_max = strncmp(key, "kafka.client.", 13) == 0 ? 3 : LIMIT_YAML_DEPTH;
        if (!yaml_tree_put(loading->tree, key, depth_max, equals + 1, origins[i])) {
            yaml_found(&loading->findings, &here, "this key does not lead to one value");
        }
        free(key);
    }
    return true;
}

baton_code config_parse(const char *name, const char *text, size_t text_len,
                        const char *const *sets, size_t n_sets, struct config **ret_config,
                        struct buf *findings, struct baton_error *err)
{
    struct config_loading loading = {0};
    char **origins = NULL;
    baton_code rc = BATON_E_no_memory;

    yaml_findings_init(&loading.findings, name, BATON_E_bad_config, findings);
    loading.config = calloc(1, sizeof(*loading.config));
    origins = calloc(n_sets + 1, sizeof(*origins));
    if (loading.config == NULL || origins == NULL) {
        goto out;
    }
    loading.config->path = absolute(name);
    loading.config->dir = loading.config->path != NULL ? strdup(loading.config->path) : NULL;
    if (loading.config->dir == NULL) {
        goto out;
    }
    char *slash = strrchr(loading.config->dir, '/');
    slash[slash == loading.config->dir ? 1 : 0] = '\0';
    if ((rc = yaml_tree_parse(text, text_len, &loading.findings, &loading.tree)) != BATON_OK) {
        goto out;
    }
    loading.no_memory = !put_sets(&loading, sets, n_sets, origins);
    if (!loading.no_memory) {
        read_tree(&loading);
    }
    rc = loading.no_memory            ? BATON_E_no_memory
         : loading.findings.count > 0 ? BATON_E_bad_config
                                      : BATON_OK;
    if (rc == BATON_OK) {
        *ret_config = loading.config;
        loading.config = NULL;
    }
out:
    if (rc == BATON_E_bad_config) {
        baton_fail(err, rc, "%s", loading.findings.first.text);
    } else if (rc != BATON_OK) {
        baton_fail(err, rc, "out of memory while reading %s", text_quote_of(name).s);
    }
    for (size_t i = 0; origins != NULL && i < n_sets; i++) {
        free(origins[i]);
    }
    free(origins);
    yaml_tree_free(loading.tree);
    config_free(loading.config);
    return rc;
}

/* ---- files ---- */

baton_code config_find(const char *explicit_path, char **ret_path, struct baton_error *err)
{
    const char *from_environment = getenv("BATON_CONFIG");
    const char *path = explicit_path;
    if (path == NULL && from_environment != NULL && from_environment[0] != '\0') {
        path = from_environment;
    }
    if (path == NULL) {
        path = access("baton.yaml", F_OK) == 0              ? "baton.yaml"
               : access("/etc/baton/baton.yaml", F_OK) == 0 ? "/etc/baton/baton.yaml"
                                                            : NULL;
    }
    if (path == NULL) {
        return baton_fail(err, BATON_E_bad_config,
                          "no configuration: neither --config, $BATON_CONFIG, ./baton.yaml nor "
                          "/etc/baton/baton.yaml; `baton init` writes one");
    }
    char *copy = strdup(path);
    if (copy == NULL) {
        return baton_fail(err, BATON_E_no_memory, "out of memory");
    }
    *ret_path = copy;
    return BATON_OK;
}

/* Reads one byte more than is allowed, so that a larger file is seen. */
static baton_code read_file(const char *path, struct buf *text, struct baton_error *err)
{
    baton_code rc = BATON_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return baton_fail(err, BATON_E_bad_config, "cannot open the configuration %s: %s%s",
                          text_quote_of(path).s, strerror(errno),
                          errno == ENOENT ? "; `baton init` writes one" : "");
    }
    while (rc == BATON_OK && text->len <= LIMIT_YAML) {
        char *at = buf_reserve(text, 16384);
        ssize_t n = at != NULL ? read(fd, at, 16384) : -1;
        if (at == NULL) {
            rc = baton_fail(err, BATON_E_no_memory, "out of memory");
        } else if (n < 0 && errno != EINTR) {
            rc = baton_fail(err, BATON_E_bad_config, "cannot read the configuration %s: %s",
                            text_quote_of(path).s, strerror(errno));
        } else if (n == 0) {
            break;
        } else {
            text->len += n > 0 ? (size_t)n : 0;
        }
    }
    close(fd);
    return rc;
}

baton_code config_load(const char *path, const char *const *sets, size_t n_sets,
                       struct config **ret_config, struct buf *findings, struct baton_error *err)
{
    struct buf text = BUF_INIT;
    struct baton_error own;
    err = err != NULL ? err : &own;
    baton_code rc = read_file(path, &text, err);
    if (rc == BATON_OK) {
        rc = config_parse(path, text.data, text.len, sets, n_sets, ret_config, findings, err);
    } else if (rc == BATON_E_bad_config && findings != NULL) {
        buf_printf(findings, "%s\n", err->text);
    }
    buf_done(&text);
    return rc;
}

const struct config_service *config_service_find(const struct config *config, const char *name)
{
    for (size_t i = 0; i < config->n_services; i++) {
        if (strcmp(config->services[i].name.s, name) == 0) {
            return &config->services[i];
        }
    }
    return NULL;
}

baton_code config_service_get(const struct config *config, const char *name,
                              const struct config_service **ret_service, struct baton_error *err)
{
    const struct config_service *service = config_service_find(config, name);
    if (service == NULL) {
        struct buf known = BUF_INIT;
        for (size_t i = 0; i < config->n_services; i++) {
            buf_printf(&known, "%s%s", i > 0 ? ", " : "", config->services[i].name.s);
        }
        buf_add_text(&known, config->n_services == 0 ? "none" : "");
        baton_code rc = baton_fail(err, BATON_E_unknown_service,
                                   "there is no service '%s' in %.150s; configured are: %.200s",
                                   text_quote_of(name).s, config->path,
                                   buf_ok(&known) && known.data != NULL ? known.data : "");
        buf_done(&known);
        return rc;
    }
    if (ret_service != NULL) {
        *ret_service = service;
    }
    return BATON_OK;
}
