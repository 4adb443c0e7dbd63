/*
 * Reading a tree of YAML (yaml_tree.h) into typed values, with findings for what is not as it must
 * be. Called by what reads files that people write. `where` names the value for people
 * (`nodes.owner.role`). Any thread, one at a time for each findings.
 */
#ifndef BATON_BASE_YAML_READ_H
#define BATON_BASE_YAML_READ_H

#include "common/base/yaml_tree.h"

/* What a node is, for people: a section, a list, one value, nothing. */
const char *yaml_kind_text(const struct yaml_node *node);

/* A map? NULL and a key without a value count as an empty one: false without a finding. */
bool yaml_is_map(struct yaml_findings *findings, const struct yaml_node *node, const char *where);
/* A list of at most max members? NULL: false without a finding. */
bool yaml_is_list(struct yaml_findings *findings, const struct yaml_node *node, const char *where,
                  size_t max);
/* A text with something in it? NULL: a finding at above, which lacks it (above NULL: no finding). */
bool yaml_is_text(struct yaml_findings *findings, const struct yaml_node *above,
                  const struct yaml_node *node, const char *where);
/* One of the words? Else a finding with all of them and the nearest. Index, or -1. */
int yaml_word(struct yaml_findings *findings, const struct yaml_node *node, const char *where,
              const char *const *words, size_t n_words);

#endif
