/*
 * YAML by libyaml's events. Called by configuration, trust and workflows; the only file with
 * libyaml.
 */
#include "common/base/yaml_tree.h"

#include "common/base/check.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/base/word.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#define CHUNK (32 * 1024)

struct chunk {
    struct chunk *next;
    size_t used;
    size_t size;
    _Alignas(max_align_t) char bytes[];
};

struct yaml_tree {
    struct chunk *chunks; /* the newest first; all nodes and texts lie in them */
    struct yaml_node *root;
    size_t n_nodes;
};

/* ---- findings ---- */

void yaml_findings_init(struct yaml_findings *findings, const char *name, baton_code code,
                        struct buf *lines)
{
    *findings = (struct yaml_findings){.name = name, .lines = lines, .first = {.code = code}};
}

static void found(struct yaml_findings *findings, const char *origin, int line, int column,
                  const char *format, va_list args) BATON_PRINTF(5, 0);

static void found(struct yaml_findings *findings, const char *origin, int line, int column,
                  const char *format, va_list args)
{
    char text[512];
    char place[TEXT_QUOTE_MAX + 32];
    vsnprintf(text, sizeof(text), format, args);
    if (origin != NULL) {
        snprintf(place, sizeof(place), "%s", text_quote_of(origin).s);
    } else if (line > 0) {
        snprintf(place, sizeof(place), "%s:%d:%d", text_quote_of(findings->name).s, line, column);
    } else {
        snprintf(place, sizeof(place), "%s", text_quote_of(findings->name).s);
    }
    if (findings->count == 0) {
        baton_fail(&findings->first, findings->first.code, "%s: %s", place, text);
    }
    findings->count++;
    if (findings->lines != NULL && findings->count <= LIMIT_YAML_FINDINGS) {
        buf_printf(findings->lines, "%s: %s\n", place, text);
    }
}

void yaml_found(struct yaml_findings *findings, const struct yaml_node *node, const char *format,
                ...)
{
    va_list args;
    va_start(args, format);
    found(findings, node != NULL ? node->origin : NULL, node != NULL ? node->line : 0,
          node != NULL ? node->column : 0, format, args);
    va_end(args);
}

BATON_PRINTF(4, 5)
static void found_at(struct yaml_findings *findings, int line, int column, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    found(findings, NULL, line, column, format, args);
    va_end(args);
}

static void found_at_offset(struct yaml_findings *findings, const char *text, size_t offset,
                            const char *what)
{
    int line = 1;
    int column = 1;
    for (size_t i = 0; i < offset; i++) {
        line += text[i] == '\n' ? 1 : 0;
        column = text[i] == '\n' ? 1 : column + (((unsigned char)text[i] & 0xC0) != 0x80 ? 1 : 0);
    }
    found_at(findings, line, column, "%s", what);
}

/* ---- the tree ---- */

static void *tree_alloc(struct yaml_tree *tree, size_t size)
{
    size = (size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    if (tree->chunks == NULL || tree->chunks->size - tree->chunks->used < size) {
        size_t room = size > CHUNK ? size : CHUNK;
        struct chunk *chunk = malloc(sizeof(*chunk) + room);
        if (chunk == NULL) {
            return NULL;
        }
        *chunk = (struct chunk){.next = tree->chunks, .size = room};
        tree->chunks = chunk;
    }
    void *at = tree->chunks->bytes + tree->chunks->used;
    tree->chunks->used += size;
    return at;
}

static const char *tree_copy(struct yaml_tree *tree, const void *bytes, size_t len)
{
    char *copy = tree_alloc(tree, len + 1);
    if (copy != NULL) {
        memcpy(copy, bytes, len);
        copy[len] = '\0';
    }
    return copy;
}

static struct yaml_node *node_new(struct yaml_tree *tree, struct yaml_node *parent,
                                  enum yaml_kind kind, const char *key)
{
    struct yaml_node *node = tree_alloc(tree, sizeof(*node));
    if (node == NULL) {
        return NULL;
    }
    *node = (struct yaml_node){.kind = kind, .key = key, .parent = parent};
    if (parent == NULL) {
        tree->root = node;
    } else {
        if (parent->last != NULL) {
            parent->last->next = node;
        } else {
            parent->first = node;
        }
        parent->last = node;
        parent->count++;
    }
    tree->n_nodes++;
    return node;
}

void yaml_tree_free(struct yaml_tree *tree)
{
    if (tree != NULL) {
        for (struct chunk *chunk = tree->chunks; chunk != NULL;) {
            struct chunk *next = chunk->next;
            free(chunk);
            chunk = next;
        }
        free(tree);
    }
}

struct yaml_node *yaml_tree_root(const struct yaml_tree *tree)
{
    return tree->root;
}

static struct yaml_node *member(const struct yaml_node *map, const char *key, size_t key_len)
{
    if (map->kind != YAML_KIND_map) {
        return NULL;
    }
    for (struct yaml_node *node = map->first; node != NULL; node = node->next) {
        if (strlen(node->key) == key_len && memcmp(node->key, key, key_len) == 0) {
            return node;
        }
    }
    return NULL;
}

const struct yaml_node *yaml_member(const struct yaml_node *map, const char *key)
{
    return member(map, key, strlen(key));
}

bool yaml_tree_put(struct yaml_tree *tree, const char *path, size_t depth_max, const char *text,
                   const char *origin)
{
    struct yaml_node *at = tree->root;
    for (size_t depth = 1;; depth++) {
        size_t n = depth < depth_max ? strcspn(path, ".") : strlen(path);
        bool end = path[n] == '\0';
        if (at->kind == YAML_KIND_text && at->empty) {
            at->kind = YAML_KIND_map; /* `section:` with nothing below */
        }
        if (at->kind != YAML_KIND_map) {
            return false;
        }
        struct yaml_node *next = member(at, path, n);
        if (next == NULL) {
            const char *key = tree_copy(tree, path, n);
            next = key != NULL ? node_new(tree, at, YAML_KIND_map, key) : NULL;
            if (next == NULL) {
                return false;
            }
            next->origin = origin;
        }
        at = next;
        if (end) {
            break;
        }
        path += n + 1;
    }
    if (at->kind == YAML_KIND_list) {
        return false;
    }
    *at = (struct yaml_node){.kind = YAML_KIND_text,
                             .origin = origin,
                             .key = at->key,
                             .text = tree_copy(tree, text, strlen(text)),
                             .text_len = strlen(text),
                             .parent = at->parent,
                             .next = at->next};
    return at->text != NULL;
}

void yaml_only_keys(struct yaml_findings *findings, const struct yaml_node *map, const char *where,
                    const char *const *keys, size_t n_keys)
{
    for (const struct yaml_node *node = map->first; node != NULL; node = node->next) {
        if (word_find(keys, n_keys, node->key, strlen(node->key)) >= 0) {
            continue;
        }
        const char *near = word_nearest(keys, n_keys, node->key);
        yaml_found(findings, node, "unknown key '%s' in %s%s%s%s", text_quote_of(node->key).s,
                   where, near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                   near != NULL ? "'?" : "");
    }
}

/* ---- parsing ---- */

struct reading {
    struct yaml_tree *tree;
    struct yaml_findings *findings;
    struct yaml_node *open; /* the map or list being filled; NULL: outside of the document */
    const char *key;        /* of the map's next value, or NULL */
    yaml_mark_t key_mark;
    int depth;
    int documents;
    bool done;
    bool no_memory;
};

static bool refuse(struct reading *reading, yaml_mark_t mark, const char *what)
{
    found_at(reading->findings, (int)mark.line + 1, (int)mark.column + 1, "%s", what);
    return false;
}

static bool out_of_memory(struct reading *reading)
{
    reading->no_memory = true;
    return false;
}

static bool marked(struct reading *reading, const yaml_event_t *event, const yaml_char_t *anchor,
                   const yaml_char_t *tag)
{
    if (anchor != NULL) {
        refuse(reading, event->start_mark,
               "anchors (&name) are not allowed; write the value again");
    } else if (tag != NULL) {
        refuse(reading, event->start_mark, "tags (!name) are not allowed; every value is a text");
    }
    return anchor != NULL || tag != NULL;
}

/* A new node where the reading stands, with the place of its key if it has one. */
static struct yaml_node *attach(struct reading *reading, enum yaml_kind kind, yaml_mark_t mark)
{
    if (reading->tree->n_nodes >= LIMIT_YAML_NODES) {
        refuse(reading, mark, "the file holds too many values");
        return NULL;
    }
    struct yaml_node *node = node_new(reading->tree, reading->open, kind, reading->key);
    if (node == NULL) {
        out_of_memory(reading);
        return NULL;
    }
    yaml_mark_t place = reading->key != NULL ? reading->key_mark : mark;
    node->line = (int)place.line + 1;
    node->column = (int)place.column + 1;
    reading->key = NULL;
    return node;
}

static bool key_due(const struct reading *reading)
{
    return reading->open != NULL && reading->open->kind == YAML_KIND_map && reading->key == NULL;
}

static bool on_scalar(struct reading *reading, const yaml_event_t *event)
{
    const char *value = (const char *)event->data.scalar.value;
    size_t len = event->data.scalar.length;
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (marked(reading, event, event->data.scalar.anchor, event->data.scalar.tag)) {
        return false;
    }
    if (memchr(value, '\0', len) != NULL) {
        return refuse(reading, event->start_mark, "a text holds a NUL character");
    }
    if (key_due(reading)) {
        if (plain && len == 2 && memcmp(value, "<<", 2) == 0) {
            return refuse(reading, event->start_mark, "merge keys (<<) are not allowed");
        }
        reading->key = tree_copy(reading->tree, value, len);
        reading->key_mark = event->start_mark;
        return reading->key != NULL || out_of_memory(reading);
    }
    struct yaml_node *node = attach(reading, YAML_KIND_text, event->start_mark);
    if (node == NULL) {
        return false;
    }
    node->text = tree_copy(reading->tree, value, len);
    node->text_len = len;
    node->empty = plain && len == 0;
    return node->text != NULL || out_of_memory(reading);
}

static bool on_begin(struct reading *reading, const yaml_event_t *event, enum yaml_kind kind,
                     const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (marked(reading, event, anchor, tag)) {
        return false;
    }
    if (key_due(reading)) {
        return refuse(reading, event->start_mark, "a key must be a plain text");
    }
    if (reading->depth == LIMIT_YAML_DEPTH) {
        return refuse(reading, event->start_mark, "nested too deep (16 levels)");
    }
    struct yaml_node *node = attach(reading, kind, event->start_mark);
    if (node == NULL) {
        return false;
    }
    reading->depth++;
    reading->open = node;
    return true;
}

static int by_key(const void *a, const void *b)
{
    const struct yaml_node *x = *(const struct yaml_node *const *)a;
    const struct yaml_node *y = *(const struct yaml_node *const *)b;
    int order = strcmp(x->key, y->key);
    if (order != 0) {
        return order;
    }
    return x->line != y->line ? (x->line < y->line ? -1 : 1) : x->column - y->column;
}

static bool keys_differ(struct reading *reading, const struct yaml_node *map)
{
    const struct yaml_node **members;
    size_t n = 0;
    if (map->count < 2) {
        return true;
    }
    members = calloc(map->count, sizeof(struct yaml_node *));
    if (members == NULL) {
        return out_of_memory(reading);
    }
    for (const struct yaml_node *node = map->first; node != NULL; node = node->next) {
        members[n++] = node;
    }
    qsort(members, n, sizeof(struct yaml_node *), by_key);
    const struct yaml_node *twin = NULL;
    for (size_t i = 1; i < n && twin == NULL; i++) {
        if (strcmp(members[i - 1]->key, members[i]->key) == 0) {
            twin = members[i];
            yaml_found(reading->findings, twin, "the key '%s' stands here twice, first on line %d",
                       text_quote_of(twin->key).s, members[i - 1]->line);
        }
    }
    free(members);
    return twin == NULL;
}

static bool on_end(struct reading *reading)
{
    struct yaml_node *closed = reading->open;
    if (closed->kind == YAML_KIND_map && !keys_differ(reading, closed)) {
        return false;
    }
    reading->depth--;
    reading->open = closed->parent;
    return true;
}

static bool on_event(struct reading *reading, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        return true;
    case YAML_STREAM_END_EVENT:
        reading->done = true;
        return true;
    case YAML_DOCUMENT_START_EVENT:
        if (event->data.document_start.version_directive != NULL ||
            event->data.document_start.tag_directives.start !=
                event->data.document_start.tag_directives.end) {
            return refuse(reading, event->start_mark, "directives (%) are not allowed");
        }
        if (reading->documents++ > 0) {
            return refuse(reading, event->start_mark, "a second document (---) is not allowed");
        }
        return true;
    case YAML_ALIAS_EVENT:
        return refuse(reading, event->start_mark,
                      "aliases (*name) are not allowed; write the value again");
    case YAML_SCALAR_EVENT:
        return on_scalar(reading, event);
    case YAML_SEQUENCE_START_EVENT:
        return on_begin(reading, event, YAML_KIND_list, event->data.sequence_start.anchor,
                        event->data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
        return on_begin(reading, event, YAML_KIND_map, event->data.mapping_start.anchor,
                        event->data.mapping_start.tag);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return on_end(reading);
    }
    return false;
}

static bool syntax_error(struct reading *reading, const yaml_parser_t *parser, const char *text)
{
    char what[256];
    if (parser->error == YAML_MEMORY_ERROR) {
        return out_of_memory(reading);
    }
    snprintf(what, sizeof(what), "not well-formed YAML: %s%s%s",
             parser->problem != NULL ? parser->problem : "cannot be read",
             parser->context != NULL ? ", " : "", parser->context != NULL ? parser->context : "");
    if (parser->error == YAML_READER_ERROR) {
        found_at_offset(reading->findings, text, parser->problem_offset, what);
        return false;
    }
    return refuse(reading, parser->problem_mark, what);
}

static bool read_events(struct reading *reading, const char *text, size_t text_len)
{
    yaml_parser_t parser;
    bool going = true;
    if (yaml_parser_initialize(&parser) == 0) {
        return out_of_memory(reading);
    }
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, text_len);
    while (going && !reading->done) {
        yaml_event_t event;
        if (yaml_parser_parse(&parser, &event) == 0) {
            going = syntax_error(reading, &parser, text);
            break;
        }
        going = on_event(reading, &event);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return going;
}

static bool bytes_fit(const char *text, size_t text_len, struct yaml_findings *findings)
{
    if (text_len > LIMIT_YAML) {
        yaml_found(findings, NULL, "the file is larger than 1 MiB");
        return false;
    }
    if (text_len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
        found_at(findings, 1, 1, "begins with a byte order mark; save the file as plain UTF-8");
        return false;
    }
    for (size_t i = 0; i < text_len;) {
        uint32_t point;
        size_t n = text_utf8_next(text + i, text_len - i, &point);
        if (n == 0 || point == 0) {
            found_at_offset(findings, text, i,
                            n == 0 ? "not valid UTF-8; save the file as plain UTF-8"
                                   : "a NUL byte; save the file as plain UTF-8");
            return false;
        }
        i += n;
    }
    return true;
}

baton_code yaml_tree_parse(const char *text, size_t text_len, struct yaml_findings *findings,
                           struct yaml_tree **ret_tree)
{
    if (!bytes_fit(text, text_len, findings)) {
        return findings->first.code;
    }
    struct yaml_tree *tree = calloc(1, sizeof(*tree));
    if (tree == NULL) {
        return BATON_E_no_memory;
    }
    struct reading reading = {.tree = tree, .findings = findings};
    bool whole = read_events(&reading, text, text_len);
    if (whole && tree->root != NULL && tree->root->kind == YAML_KIND_text && tree->root->empty) {
        tree->root->kind = YAML_KIND_map;
    }
    if (whole && tree->root == NULL && node_new(tree, NULL, YAML_KIND_map, NULL) == NULL) {
        whole = out_of_memory(&reading);
    }
    if (!whole) {
        yaml_tree_free(tree);
        return reading.no_memory ? BATON_E_no_memory : findings->first.code;
    }
    *ret_tree = tree;
    return BATON_OK;
}
