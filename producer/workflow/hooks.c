/*
 * The section `hooks` of a workflow: programs that look at a handoff before it is taken. Their paths
 * come from the file on disk only, never from a record (RECORD.md section 5).
 *
 * In: parse.c, transitions.c  Out: read.c
 */
#include "producer/workflow/reading.h"

#include "common/base/check.h"
#include "common/base/limits.h"
#include "common/base/quantity.h"
#include "common/base/text.h"
#include "common/base/word.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOOK_TIMEOUT_MS 60000
#define HOOK_TIMEOUT_MAX_MS 600000

#define HOOK_WORD(word) #word,
static const char *const classes[] = {HOOK_CLASSES(HOOK_WORD)};
#undef HOOK_WORD
static const char *const hook_keys[] = {"command", "class",   "env",         "data",
                                        "timeout", "enabled", "people_only", "subject"};
static const char *const booleans[] = {"false", "true"};

const char *hook_class_word(enum hook_class class)
{
    return classes[class];
}

/* Variables that a hook may see: names, never values. */
static void check_variables(struct workflow_reading *reading, const struct yaml_node *list,
                            const struct workflow_hook *hook, const char *where)
{
    for (size_t i = 0; i < hook->n_env; i++) {
        const char *name = hook->env[i];
        const size_t n =
            name != NULL
                ? strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")
                : 0;
        if (name != NULL &&
            (n == 0 || n > ID_MAX || name[n] != '\0' || (name[0] >= '0' && name[0] <= '9') ||
             strncmp(name, "BATON_", 6) == 0)) {
            yaml_found(&reading->findings, list,
                       "%s: '%s' is no variable that can be handed on: [A-Za-z_][A-Za-z0-9_]*, and "
                       "BATON_ is Baton's own",
                       where, text_quote_of(name).s);
        }
    }
}

/* Keys of data as a turn's record has them. */
static void check_data(struct workflow_reading *reading, const struct yaml_node *list,
                       const struct workflow_hook *hook, const char *where)
{
    for (size_t i = 0; i < hook->n_data; i++) {
        const char *key = hook->data[i];
        if (key != NULL && !plain_id_valid(key, strlen(key))) {
            yaml_found(&reading->findings, list,
                       "%s: '%s' is no key of data: [a-z0-9._-], at most %d", where,
                       text_quote_of(key).s, ID_MAX);
        }
    }
}

/* One of the keys of data. */
static void read_subject(struct workflow_reading *reading, const struct yaml_node *node,
                         const char *where, struct workflow_hook *hook)
{
    if (!yaml_is_text(&reading->findings, NULL, node, where)) {
        return;
    }
    for (size_t i = 0; i < hook->n_data; i++) {
        if (hook->data[i] != NULL && strcmp(hook->data[i], node->text) == 0) {
            hook->subject = hook->data[i];
        }
    }
    /* Those that every turn is told anyway are no sender's. */
    if (hook->subject == NULL || strcmp(node->text, "task") == 0 ||
        strcmp(node->text, "from") == 0 || strcmp(node->text, "verdict") == 0) {
        yaml_found(&reading->findings, node, "%s: '%s' is none of the keys of its `data`", where,
                   text_quote_of(node->text).s);
    }
}

/* A program by its path is relative to the workflow's file; a plain name is looked for in PATH. */
static void resolve_command(struct workflow_reading *reading, struct workflow_hook *hook)
{
    char *program = hook->n_command > 0 ? hook->command[0] : NULL;
    const char *slash = strrchr(reading->path, '/');
    struct buf path = BUF_INIT;
    if (program == NULL || program[0] == '/' || strchr(program, '/') == NULL) {
        return;
    }
    if (slash != NULL) {
        buf_add(&path, reading->path, (size_t)(slash - reading->path) + 1);
    }
    buf_add_text(&path, strncmp(program, "./", 2) == 0 ? program + 2 : program);
    char *whole = buf_take(&path, NULL);
    if (whole == NULL) {
        reading->no_memory = true;
        return;
    }
    free(program);
    hook->command[0] = whole;
}

static bool read_bool(struct workflow_reading *reading, const struct yaml_node *row,
                      const char *above, const char *key, bool fallback)
{
    char where[WORKFLOW_WHERE_MAX];
    const struct yaml_node *node = yaml_member(row, key);
    workflow_where(where, above, key);
    if (!yaml_is_text(&reading->findings, NULL, node, where)) {
        return fallback;
    }
    return yaml_word(&reading->findings, node, where, booleans, COUNT_OF(booleans)) == 1;
}

static void read_hook(struct workflow_reading *reading, const struct yaml_node *row,
                      const char *where, struct workflow_hook *hook)
{
    char below[WORKFLOW_WHERE_MAX];
    yaml_only_keys(&reading->findings, row, where, hook_keys, COUNT_OF(hook_keys));

    workflow_where(below, where, "command");
    workflow_texts(reading, yaml_member(row, "command"), below, LIMIT_ARGV, &hook->command,
                   &hook->n_command);
    if (hook->n_command == 0) {
        yaml_found(&reading->findings, row, "%s is missing: a list, [program, argument]", below);
    }
    resolve_command(reading, hook);

    const struct yaml_node *class = yaml_member(row, "class");
    workflow_where(below, where, "class");
    if (yaml_is_text(&reading->findings, NULL, class, below)) {
        const int word = yaml_word(&reading->findings, class, below, classes, COUNT_OF(classes));
        hook->class = word >= 0 ? (enum hook_class)word : HOOK_CLASS_validation;
    }
    workflow_where(below, where, "env");
    workflow_texts(reading, yaml_member(row, "env"), below, LIMIT_ENV, &hook->env, &hook->n_env);
    check_variables(reading, yaml_member(row, "env"), hook, below);
    workflow_where(below, where, "data");
    workflow_texts(reading, yaml_member(row, "data"), below, LIMIT_DATA_KEYS, &hook->data,
                   &hook->n_data);
    check_data(reading, yaml_member(row, "data"), hook, below);
    workflow_where(below, where, "subject");
    read_subject(reading, yaml_member(row, "subject"), below, hook);

    const struct yaml_node *timeout = yaml_member(row, "timeout");
    workflow_where(below, where, "timeout");
    hook->timeout_ms = HOOK_TIMEOUT_MS;
    if (yaml_is_text(&reading->findings, NULL, timeout, below) &&
        (!quantity_duration_parse(timeout->text, timeout->text_len, &hook->timeout_ms) ||
         hook->timeout_ms < 100 || hook->timeout_ms > HOOK_TIMEOUT_MAX_MS)) {
        yaml_found(&reading->findings, timeout, "%s: '%s' is no duration from 100ms to 10m", below,
                   text_quote_of(timeout->text).s);
    }
    hook->enabled = read_bool(reading, row, where, "enabled", true);
    hook->people_only = read_bool(reading, row, where, "people_only", false);
}

void workflow_read_hooks(struct workflow_reading *reading, const struct yaml_node *map)
{
    struct workflow *workflow = reading->workflow;
    if (!yaml_is_map(&reading->findings, map, "hooks")) {
        return;
    }
    const size_t n = workflow_rows(reading, map, "hooks", &reading->hooks_at);
    workflow->hooks = workflow_array(reading, n, sizeof(workflow->hooks[0]));
    for (const struct yaml_node *row = map->first; workflow->hooks != NULL && row != NULL;
         row = row->next) {
        struct workflow_hook *one = &workflow->hooks[workflow->n_hooks];
        char where[WORKFLOW_WHERE_MAX];
        if (!workflow_row_name(reading, row, "hook", &one->name)) {
            continue;
        }
        workflow_where(where, "hooks", one->name.s);
        if (workflow_filled(reading, row, where)) {
            reading->hooks_at[workflow->n_hooks++] = row;
            read_hook(reading, row, where, one);
        }
    }
}

const struct workflow_hook *workflow_find_hook(struct workflow_reading *reading,
                                               const struct yaml_node *node, const char *where)
{
    const struct workflow *workflow = reading->workflow;
    const char *words[WORKFLOW_ROWS_MAX];
    if (!yaml_is_text(&reading->findings, NULL, node, where)) {
        return NULL;
    }
    for (size_t i = 0; i < workflow->n_hooks; i++) {
        words[i] = workflow->hooks[i].name.s;
    }
    const int i = word_find(words, workflow->n_hooks, node->text, node->text_len);
    if (i < 0) {
        const char *near = word_nearest(words, workflow->n_hooks, node->text);
        yaml_found(&reading->findings, node, "%s names '%s', which is no hook here%s%s%s", where,
                   text_quote_of(node->text).s, near != NULL ? "; did you mean '" : "",
                   near != NULL ? near : "", near != NULL ? "'?" : "");
        return NULL;
    }
    return &workflow->hooks[i];
}
