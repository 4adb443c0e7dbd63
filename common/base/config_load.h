/*
 * Inside of the configuration: what its files share while one is being read. Included by config*.c.
 *
 * config.c reads scalars, config_sections.c services, roles and lists; config_check.c,
 * config_lists.c, config_kafka.c and config_traces.c judge what they mean together. All of them add findings and go
 * on, so that every mistake is told at once.
 */
#ifndef BATON_BASE_CONFIG_LOAD_H
#define BATON_BASE_CONFIG_LOAD_H

#include "common/base/config.h"
#include "common/base/tbl/config_keys.h"
#include "common/base/yaml_tree.h"

enum config_type {
    CONFIG_TYPE_WORD,
    CONFIG_TYPE_BOOL,
    CONFIG_TYPE_INT,
    CONFIG_TYPE_COUNT,
    CONFIG_TYPE_REAL,
    CONFIG_TYPE_DURATION,
    CONFIG_TYPE_ID,
    CONFIG_TYPE_PREFIX,
    CONFIG_TYPE_TEXT,
    CONFIG_TYPE_PATH,
    CONFIG_TYPE_LISTEN,
};

struct config_key {
    const char *key;
    enum config_type type;
    const char *fallback;
    int64_t min;
    int64_t max;
    const char *words;
    const char *help;
};

/* A row of a table as a struct config_key. */
#define CONFIG_ROW(id, key, type, fallback, min, max, unit, words, help)                           \
    {key, CONFIG_TYPE_##type, fallback, min, max, words, help},

/* Words of CONFIG_TYPE_WORD tables in the order of the enums of config.h. */
struct config_value {
    int64_t number; /* INT, COUNT (auto: 0), DURATION in ms, BOOL, WORD (its index; -1: none) */
    double real;
    const char *text; /* as written; "" when not set */
};

struct config_loading {
    struct config *config;
    struct yaml_tree *tree;
    struct yaml_findings findings;
    bool no_memory;
};

/* Reads one value at node (NULL: its default) and keeps it for `config show` as path. */
void config_read(struct config_loading *loading, const struct config_key *key,
                 const struct yaml_node *node, const char *path, struct config_value *ret_value);
/* Remembers a key for `config show`. */
void config_setting(struct config_loading *loading, const char *path, const char *value,
                    const struct yaml_node *node);
/* A copy that the configuration owns; NULL marks no_memory. */
char *config_copy(struct config_loading *loading, const char *text);
/* The same as an absolute path, relative ones from the file's folder; "" gives NULL. */
char *config_path(struct config_loading *loading, const char *text);
/* Zeroed memory for n members; NULL marks no_memory (n 0: NULL without it). */
void *config_array(struct config_loading *loading, size_t n, size_t size);

/* config_sections.c: fills roles, services, on_failure, workflows, brokers, client. */
void config_read_sections(struct config_loading *loading);
/* config_prices.c: reads those of an executor (map NULL: none); and what they mean with the rest. */
void config_read_prices(struct config_loading *loading, const struct yaml_node *map,
                        const char *path, struct config_executor *executor);
void config_check_prices(struct config_loading *loading, const struct yaml_node *executor_node,
                         const struct config_service *service);
/* config_check.c: what the values mean together. */
void config_check(struct config_loading *loading);
/* config_lists.c: the same for on_failure and chains; and delegations that are never possible. */
void config_check_lists(struct config_loading *loading);
size_t config_warnings_lists(const struct config *config, struct buf *lines);
/* config_kafka.c: the same for the kafka section; and what is not wrong there, but not good. */
void config_check_kafka(struct config_loading *loading);
size_t config_warnings_kafka(const struct config *config, struct buf *lines);
/* config_traces.c: the same for the traces section. */
void config_check_traces(struct config_loading *loading);
size_t config_warnings_traces(const struct config *config, struct buf *lines);

/* The node at a dotted path of the file, or NULL. */
const struct yaml_node *config_node(const struct config_loading *loading, const char *path);

#endif
