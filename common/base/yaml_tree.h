/*
 * A file of YAML as a tree of texts, for what people write: configuration, trust, workflows.
 *
 * libyaml's events, no implicit types: a scalar is its text, whoever reads it types it. Refused
 * with line and column: anchors, aliases, tags, a second document, duplicate and merge keys, keys
 * that are no plain scalars, more than 16 levels, 1 MiB or 65536 nodes, NUL, invalid UTF-8, other
 * encodings. An empty file is an empty map. The tree owns everything in it and is const after
 * parsing, but for yaml_tree_put. Not shared between threads while it is changed.
 */
#ifndef BATON_BASE_YAML_TREE_H
#define BATON_BASE_YAML_TREE_H

#include "baton/code.h"
#include "common/base/buf.h"

#include <stdbool.h>
#include <stddef.h>

enum yaml_kind { YAML_KIND_text, YAML_KIND_map, YAML_KIND_list };

struct yaml_node {
    enum yaml_kind kind;
    int line; /* from 1; of a map's member: its key's */
    int column;
    const char *origin; /* NULL: the file; else the option it came from, `--set key=value` */
    const char *key;    /* in a map, else NULL; no NUL inside */
    const char *text;   /* of a text; ends with NUL, none inside */
    size_t text_len;
    bool empty; /* a text that was not written at all: `key:` */
    struct yaml_node *parent;
    struct yaml_node *first; /* members of a map or list, in the order of the file */
    struct yaml_node *last;
    struct yaml_node *next;
    size_t count;
};

struct yaml_tree;

/*
 * Mistakes, collected: each a line `name:line:column: text`. What stands in them from the file is
 * escaped. Not more than LIMIT_YAML_FINDINGS lines are kept.
 */
struct yaml_findings {
    const char *name;  /* of the file, as people know it */
    struct buf *lines; /* may be NULL */
    size_t count;
    struct baton_error first; /* code: the one of yaml_findings_init */
};
void yaml_findings_init(struct yaml_findings *findings, const char *name, baton_code code,
                        struct buf *lines);
/* node NULL: the file as a whole. */
void yaml_found(struct yaml_findings *findings, const struct yaml_node *node, const char *format,
                ...) BATON_PRINTF(3, 4);

/* Syntax ends at the first mistake: it is in findings, and its code is returned; no_memory
 * otherwise. */
baton_code yaml_tree_parse(const char *text, size_t text_len, struct yaml_findings *findings,
                           struct yaml_tree **ret_tree);
void yaml_tree_free(struct yaml_tree *tree);
struct yaml_node *yaml_tree_root(const struct yaml_tree *tree);

/* The member of a map, or NULL. */
const struct yaml_node *yaml_member(const struct yaml_node *map, const char *key);
/*
 * Puts a text at a dotted path of at most depth_max keys, the last of which may have dots itself,
 * making maps on the way and replacing what is there; origin is kept (not copied). False when memory
 * is out or the path leads through a text or a list.
 */
bool yaml_tree_put(struct yaml_tree *tree, const char *path, size_t depth_max, const char *text,
                   const char *origin);

/* Members of map that are none of keys are mistakes, told with the nearest of keys. */
void yaml_only_keys(struct yaml_findings *findings, const struct yaml_node *map, const char *where,
                    const char *const *keys, size_t n_keys);

#endif
