/*
 * Inside of reading a workflow: what its files share. All of them add
 * findings and go on, so that every mistake is told at once.
 */
#ifndef BATON_PRODUCER_WORKFLOW_READING_H
#define BATON_PRODUCER_WORKFLOW_READING_H

#include "common/base/yaml_read.h"
#include "producer/workflow/workflow.h"

struct workflow_reading {
    struct workflow *workflow;
    const struct config *config; /* may be NULL */
    const char *path;
    struct yaml_findings findings;
    struct yaml_findings warnings;
    /* Where each row stands in the file. */
    const struct yaml_node **nodes_at;
    const struct yaml_node **transitions_at;
    const struct yaml_node **ends_at;
    const struct yaml_node **hooks_at;
    const struct yaml_node **channels_at;
    bool no_memory;
};

#define WORKFLOW_WHERE_MAX 128

/* "above.key", for findings. */
void workflow_where(char where[WORKFLOW_WHERE_MAX], const char *above, const char *key);
/* Zeroed memory for n members; NULL marks no_memory (n 0: NULL without it). */
void *workflow_array(struct workflow_reading *reading, size_t n, size_t size);
/* A copy that the workflow owns; NULL marks no_memory. */
char *workflow_copy(struct workflow_reading *reading, const char *text);
/* The key of a row as its name, or a finding. */
bool workflow_row_name(struct workflow_reading *reading, const struct yaml_node *row,
                       const char *kind, struct workflow_name *ret_name);
/* A section with something in it, or a finding (also where nothing stands at all). */
bool workflow_filled(struct workflow_reading *reading, const struct yaml_node *node,
                     const char *where);
/* Verdicts, statuses and the like: a list of words as a set of bits, or a finding; absent: 0. */
unsigned workflow_words(struct workflow_reading *reading, const struct yaml_node *list,
                        const char *where, const char *const *words, size_t n_words);
/* A list of texts, copied; absent: none. */
void workflow_texts(struct workflow_reading *reading, const struct yaml_node *list,
                    const char *where, size_t max, char ***ret_texts, size_t *ret_count);
/* The section's rows counted, and room for where they stand; 0: none, or a finding. */
size_t workflow_rows(struct workflow_reading *reading, const struct yaml_node *rows,
                     const char *where, const struct yaml_node ***ret_at);

/* nodes.c: the section `nodes`, and names of nodes and slots. */
void workflow_read_nodes(struct workflow_reading *reading, const struct yaml_node *root,
                         const struct yaml_node *map);
/* Index, or -1. */
int workflow_find_node(const struct workflow *workflow, const char *text, size_t len);
/* The slots that NODE or NODE.SLOT names; 0: none. */
slot_set workflow_find_slots(const struct workflow *workflow, const char *text);
/* The finding that node names none of them. */
void workflow_found_no_slot(struct workflow_reading *reading, const struct yaml_node *node,
                            const char *where);
/* The one slot that member `key` of a row names, or a finding; above: the row's name, "" for the
 * file itself. */
bool workflow_read_slot_name(struct workflow_reading *reading, const struct yaml_node *row,
                             const char *above, const char *key, size_t *ret_slot);

/* transitions.c */
void workflow_read_transitions(struct workflow_reading *reading, const struct yaml_node *map);
void workflow_read_ends(struct workflow_reading *reading, const struct yaml_node *map);
void workflow_read_channels(struct workflow_reading *reading, const struct yaml_node *list);

/* hooks.c: the section `hooks`. */
void workflow_read_hooks(struct workflow_reading *reading, const struct yaml_node *map);
/* The hook of that name, or a finding at node. */
const struct workflow_hook *workflow_find_hook(struct workflow_reading *reading,
                                               const struct yaml_node *node, const char *where);
/* judge.c: what the parts mean together. Only without findings so far. */
void workflow_judge(struct workflow_reading *reading);
/* loops.c: which transitions close a loop, and their caps; what nothing reaches. */
void workflow_judge_loops(struct workflow_reading *reading);

#endif
