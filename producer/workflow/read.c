/*
 * What every section of a workflow file is made of: names, lists of words and texts, rows.
 *
 * In: nodes.c, transitions.c, hooks.c  Out: common/base/yaml_read.c
 */
#include "producer/workflow/reading.h"

#include "common/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void workflow_where(char where[WORKFLOW_WHERE_MAX], const char *above, const char *key)
{
    snprintf(where, WORKFLOW_WHERE_MAX, "%.60s.%.60s", above, key);
}

void *workflow_array(struct workflow_reading *reading, size_t n, size_t size)
{
    void *array = n > 0 ? calloc(n, size) : NULL;
    reading->no_memory = reading->no_memory || (n > 0 && array == NULL);
    return array;
}

char *workflow_copy(struct workflow_reading *reading, const char *text)
{
    char *copy = strdup(text);
    reading->no_memory = reading->no_memory || copy == NULL;
    return copy;
}

static bool name_valid(const char *text)
{
    const size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_-");
    return len > 0 && len <= WORKFLOW_NAME_MAX && text[len] == '\0';
}

bool workflow_row_name(struct workflow_reading *reading, const struct yaml_node *row,
                       const char *kind, struct workflow_name *ret_name)
{
    if (!name_valid(row->key)) {
        yaml_found(&reading->findings, row, "'%s' is no name for a %s: [a-z0-9_-], at most %d",
                   text_quote_of(row->key).s, kind, WORKFLOW_NAME_MAX);
        return false;
    }
    snprintf(ret_name->s, sizeof(ret_name->s), "%s", row->key);
    return true;
}

bool workflow_filled(struct workflow_reading *reading, const struct yaml_node *node,
                     const char *where)
{
    if (node->count == 0 && (node->kind == YAML_KIND_map || node->empty)) {
        yaml_found(&reading->findings, node, "%s is empty", where);
        return false;
    }
    return yaml_is_map(&reading->findings, node, where);
}

unsigned workflow_words(struct workflow_reading *reading, const struct yaml_node *list,
                        const char *where, const char *const *words, size_t n_words)
{
    unsigned set = 0;
    if (!yaml_is_list(&reading->findings, list, where, n_words)) {
        return 0;
    }
    if (list->count == 0) {
        yaml_found(&reading->findings, list, "%s is empty; leave it out, or name one", where);
    }
    for (const struct yaml_node *node = list->first; node != NULL; node = node->next) {
        if (!yaml_is_text(&reading->findings, list, node, where)) {
            continue;
        }
        const int i = yaml_word(&reading->findings, node, where, words, n_words);
        if (i >= 0 && (set & (1u << i)) != 0) {
            yaml_found(&reading->findings, node, "%s names %s twice", where, words[i]);
        }
        set |= i >= 0 ? 1u << i : 0;
    }
    return set;
}

void workflow_texts(struct workflow_reading *reading, const struct yaml_node *list,
                    const char *where, size_t max, char ***ret_texts, size_t *ret_count)
{
    if (!yaml_is_list(&reading->findings, list, where, max)) {
        return;
    }
    char **texts = workflow_array(reading, list->count, sizeof(char *));
    size_t n = 0;
    for (const struct yaml_node *node = list->first; texts != NULL && node != NULL;
         node = node->next) {
        if (yaml_is_text(&reading->findings, list, node, where)) {
            texts[n++] = workflow_copy(reading, node->text);
        }
    }
    *ret_texts = texts;
    *ret_count = n;
}

size_t workflow_rows(struct workflow_reading *reading, const struct yaml_node *rows,
                     const char *where, const struct yaml_node ***ret_at)
{
    if (rows == NULL || rows->count == 0) {
        return 0;
    }
    if (rows->count > WORKFLOW_ROWS_MAX) {
        yaml_found(&reading->findings, rows, "%s has %zu rows; at most %d are allowed", where,
                   rows->count, WORKFLOW_ROWS_MAX);
        return 0;
    }
    *ret_at = workflow_array(reading, rows->count, sizeof(struct yaml_node *));
    return *ret_at != NULL ? rows->count : 0;
}
