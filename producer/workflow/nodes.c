/*
 * The section `nodes` of a workflow, and the names by which the others speak of nodes and slots.
 *
 * In: parse.c, transitions.c  Out: read.c
 */
#include "producer/workflow/reading.h"

#include "common/base/check.h"
#include "common/base/text.h"
#include "common/base/word.h"

#include <stdio.h>
#include <string.h>

#define ROLE_NAME(word, list) #word,
static const char *const roles[] = {ROLES(ROLE_NAME)};
#undef ROLE_NAME
static const char *const node_keys[] = {"service", "role", "slots"};

static void read_slot(struct workflow_reading *reading, const struct yaml_node *node,
                      const char *where, const char *name, size_t of)
{
    struct workflow *workflow = reading->workflow;
    struct workflow_slot slot = {.node = of};
    if (!yaml_is_text(&reading->findings, NULL, node, where)) {
        return;
    }
    const int role = yaml_word(&reading->findings, node, where, roles, COUNT_OF(roles));
    if (role < 0) {
        return;
    }
    if (workflow->n_slots == WORKFLOW_SLOTS_MAX) {
        yaml_found(&reading->findings, node, "there are more than %d slots", WORKFLOW_SLOTS_MAX);
        return;
    }
    slot.role = (enum role)role;
    snprintf(slot.name.s, sizeof(slot.name.s), "%s", name);
    workflow->slots[workflow->n_slots++] = slot;
    workflow->nodes[of].n_slots++;
}

static void read_slots(struct workflow_reading *reading, const struct yaml_node *row,
                       const char *where, size_t of)
{
    char below[WORKFLOW_WHERE_MAX];
    const struct yaml_node *role = yaml_member(row, "role");
    const struct yaml_node *slots = yaml_member(row, "slots");
    if ((role == NULL) == (slots == NULL)) {
        yaml_found(&reading->findings, row,
                   "%s must have either `role: ROLE` or `slots: {NAME: ROLE, ...}`", where);
        return;
    }
    workflow_where(below, where, role != NULL ? "role" : "slots");
    if (role != NULL) {
        read_slot(reading, role, below, "", of);
        return;
    }
    if (!workflow_filled(reading, slots, below)) {
        return;
    }
    for (const struct yaml_node *one = slots->first; one != NULL; one = one->next) {
        struct workflow_name name;
        if (workflow_row_name(reading, one, "slot", &name)) {
            char at[WORKFLOW_WHERE_MAX];
            workflow_where(at, below, name.s);
            read_slot(reading, one, at, name.s, of);
        }
    }
}

void workflow_read_nodes(struct workflow_reading *reading, const struct yaml_node *root,
                         const struct yaml_node *map)
{
    struct workflow *workflow = reading->workflow;
    if (map == NULL) {
        yaml_found(&reading->findings, root,
                   "nodes is missing: `nodes: {owner: {role: owner}, ...}`");
        return;
    }
    if (!workflow_filled(reading, map, "nodes")) {
        return;
    }
    const size_t n = workflow_rows(reading, map, "nodes", &reading->nodes_at);
    workflow->nodes = workflow_array(reading, n, sizeof(workflow->nodes[0]));
    for (const struct yaml_node *row = map->first; workflow->nodes != NULL && row != NULL;
         row = row->next) {
        const size_t of = workflow->n_nodes;
        struct workflow_node *node = &workflow->nodes[of];
        char where[WORKFLOW_WHERE_MAX];
        if (!workflow_row_name(reading, row, "node", &node->name)) {
            continue;
        }
        workflow_where(where, "nodes", node->name.s);
        if (!workflow_filled(reading, row, where)) {
            continue;
        }
        yaml_only_keys(&reading->findings, row, where, node_keys, COUNT_OF(node_keys));
        reading->nodes_at[workflow->n_nodes++] = row;
        node->first_slot = workflow->n_slots;
        const struct yaml_node *service = yaml_member(row, "service");
        char below[WORKFLOW_WHERE_MAX];
        workflow_where(below, where, "service");
        if (yaml_is_text(&reading->findings, NULL, service, below)) {
            if (!service_id_valid(service->text, service->text_len)) {
                yaml_found(&reading->findings, service, "%s: '%s' is no service: %s", below,
                           text_quote_of(service->text).s, baton_code_text(BATON_E_bad_service));
            } else {
                node->service = service_id_of(service->text);
            }
        }
        read_slots(reading, row, where, of);
    }
}

/* ---- names of nodes and slots ---- */

int workflow_find_node(const struct workflow *workflow, const char *text, size_t len)
{
    for (size_t i = 0; i < workflow->n_nodes; i++) {
        if (word_is(workflow->nodes[i].name.s, text, len)) {
            return (int)i;
        }
    }
    return -1;
}

slot_set workflow_find_slots(const struct workflow *workflow, const char *text)
{
    const size_t n = strcspn(text, ".");
    const int at = workflow_find_node(workflow, text, n);
    slot_set set = 0;
    if (at < 0) {
        return 0;
    }
    const struct workflow_node *node = &workflow->nodes[at];
    for (size_t i = node->first_slot; i < node->first_slot + node->n_slots; i++) {
        if (text[n] == '\0' || strcmp(text + n + 1, workflow->slots[i].name.s) == 0) {
            set |= SLOT_BIT(i);
        }
    }
    return set;
}

void workflow_found_no_slot(struct workflow_reading *reading, const struct yaml_node *node,
                            const char *where)
{
    const struct workflow *workflow = reading->workflow;
    static char names[WORKFLOW_SLOTS_MAX][2 * WORKFLOW_NAME_MAX + 2];
    const char *words[WORKFLOW_SLOTS_MAX];
    for (size_t i = 0; i < workflow->n_slots; i++) {
        snprintf(names[i], sizeof(names[i]), "%s", workflow_slot_text(workflow, i).s);
        words[i] = names[i];
    }
    const char *near = word_nearest(words, workflow->n_slots, node->text);
    yaml_found(&reading->findings, node, "%s names '%s', which is no node or slot here%s%s%s",
               where, text_quote_of(node->text).s, near != NULL ? "; did you mean '" : "",
               near != NULL ? near : "", near != NULL ? "'?" : "");
}

bool workflow_read_slot_name(struct workflow_reading *reading, const struct yaml_node *row,
                             const char *above, const char *key, size_t *ret_slot)
{
    char where[WORKFLOW_WHERE_MAX];
    const struct yaml_node *node = yaml_member(row, key);
    if (above[0] == '\0') {
        snprintf(where, sizeof(where), "%s", key);
    } else {
        workflow_where(where, above, key);
    }
    if (!yaml_is_text(&reading->findings, row, node, where)) {
        return false;
    }
    const slot_set set = workflow_find_slots(reading->workflow, node->text);
    if (set == 0) {
        workflow_found_no_slot(reading, node, where);
    } else if ((set & (set - 1)) != 0) {
        yaml_found(&reading->findings, node, "%s: node '%s' has several slots; name one: %s", where,
                   text_quote_of(node->text).s,
                   workflow_slot_text(reading->workflow, (size_t)__builtin_ctzll(set)).s);
    } else {
        *ret_slot = (size_t)__builtin_ctzll(set);
        return true;
    }
    return false;
}
