/* Typed values of a tree of YAML, with findings. Called by configuration and workflows. */
#include "common/base/yaml_read.h"

#include "common/base/text.h"
#include "common/base/word.h"

#include <string.h>

const char *yaml_kind_text(const struct yaml_node *node)
{
    return node->kind == YAML_KIND_map    ? "a section"
           : node->kind == YAML_KIND_list ? "a list"
           : node->empty                  ? "nothing"
                                          : "one value";
}

bool yaml_is_map(struct yaml_findings *findings, const struct yaml_node *node, const char *where)
{
    if (node != NULL && node->kind != YAML_KIND_map && !node->empty) {
        yaml_found(findings, node, "%s must be a section of keys, not %s", where,
                   yaml_kind_text(node));
        return false;
    }
    return node != NULL && node->kind == YAML_KIND_map;
}

bool yaml_is_list(struct yaml_findings *findings, const struct yaml_node *node, const char *where,
                  size_t max)
{
    if (node != NULL && node->kind != YAML_KIND_list) {
        yaml_found(findings, node, "%s must be a list, [first, second], not %s", where,
                   yaml_kind_text(node));
        return false;
    }
    if (node != NULL && node->count > max) {
        yaml_found(findings, node, "%s has %zu members; at most %zu are allowed", where,
                   node->count, max);
        return false;
    }
    return node != NULL;
}

bool yaml_is_text(struct yaml_findings *findings, const struct yaml_node *above,
                  const struct yaml_node *node, const char *where)
{
    if (node == NULL) {
        if (above != NULL) {
            yaml_found(findings, above, "%s is missing", where);
        }
        return false;
    }
    if (node->kind != YAML_KIND_text || node->text_len == 0) {
        yaml_found(findings, node, "%s must be a text, not %s", where,
                   node->kind == YAML_KIND_text ? "an empty one" : yaml_kind_text(node));
        return false;
    }
    return true;
}

int yaml_word(struct yaml_findings *findings, const struct yaml_node *node, const char *where,
              const char *const *words, size_t n_words)
{
    struct buf all = BUF_INIT;
    int i = word_find(words, n_words, node->text, node->text_len);
    if (i >= 0) {
        return i;
    }
    for (size_t w = 0; w < n_words; w++) {
        buf_printf(&all, "%s%s", w > 0 ? ", " : "", words[w]);
    }
    const char *near = word_nearest(words, n_words, node->text);
    yaml_found(findings, node, "%s: '%s' is none of %s%s%s%s", where, text_quote_of(node->text).s,
               buf_ok(&all) ? all.data : "those known", near != NULL ? "; did you mean '" : "",
               near != NULL ? near : "", near != NULL ? "'?" : "");
    buf_done(&all);
    return -1;
}
