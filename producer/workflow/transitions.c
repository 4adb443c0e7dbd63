/*
 * The sections `transitions`, `ends` and `channels` of a workflow: what follows what, and what is
 * permitted.
 *
 * In: parse.c  Out: nodes.c, hooks.c, read.c
 */
#include "producer/workflow/reading.h"

#include "common/base/check.h"
#include "common/base/quantity.h"
#include "common/base/text.h"

#include <string.h>

#define WORKFLOW_WORD(word) #word,
static const char *const statuses[] = {TASK_STATUSES(WORKFLOW_WORD)};
#undef WORKFLOW_WORD
#define WORKFLOW_WORD(word) #word,
static const char *const end_kinds[] = {WORKFLOW_ENDS(WORKFLOW_WORD)};
#undef WORKFLOW_WORD
#define WORKFLOW_WORD(word) #word,
static const char *const verdicts[] = {VERDICTS(WORKFLOW_WORD)};
#undef WORKFLOW_WORD

static const char *const transition_keys[] = {"from",       "when", "to",
                                              "max_cycles", "hook", "requires_status"};
static const char *const end_keys[] = {"from", "when", "as"};
static const char *const channel_keys[] = {"from", "to"};

const char *task_status_word(enum task_status status)
{
    return statuses[status];
}

const char *workflow_end_word(enum workflow_end_kind kind)
{
    return end_kinds[kind];
}

/* ---- transitions ---- */

static void read_target(struct workflow_reading *reading, const struct yaml_node *row,
                        const char *above, struct workflow_transition *transition)
{
    const struct workflow *workflow = reading->workflow;
    char where[WORKFLOW_WHERE_MAX];
    const struct yaml_node *node = yaml_member(row, "to");
    workflow_where(where, above, "to");
    if (!yaml_is_text(&reading->findings, row, node, where)) {
        return;
    }
    transition->to = workflow_copy(reading, node->text);
    const struct workflow_node *own = &workflow->nodes[workflow->slots[transition->from].node];
    if (strcmp(node->text, "*") == 0) { /* every node but the sender's own (H-07) */
        for (size_t i = 0; i < workflow->n_slots; i++) {
            transition->targets |=
                &workflow->nodes[workflow->slots[i].node] != own ? SLOT_BIT(i) : 0;
        }
        if (transition->targets == 0) {
            yaml_found(&reading->findings, node, "%s: there is no other node", where);
        }
        return;
    }
    transition->targets = workflow_find_slots(workflow, node->text);
    if (transition->targets == 0) {
        workflow_found_no_slot(reading, node, where);
        return;
    }
    if (strchr(node->text, '.') == NULL) { /* a node means its other slots to one of them (H-26) */
        transition->targets &= ~SLOT_BIT(transition->from);
    }
    if (transition->targets == 0 || transition->targets == SLOT_BIT(transition->from)) {
        yaml_found(&reading->findings, node, "%s leads back to the sender's own slot", where);
    }
}

static void read_max_cycles(struct workflow_reading *reading, const struct yaml_node *row,
                            const char *above, struct workflow_transition *transition)
{
    char where[WORKFLOW_WHERE_MAX];
    int64_t number = 0;
    const struct yaml_node *node = yaml_member(row, "max_cycles");
    workflow_where(where, above, "max_cycles");
    if (!yaml_is_text(&reading->findings, NULL, node, where)) {
        return;
    }
    if (!quantity_int_parse(node->text, node->text_len, &number) || number < 1 || number > 1000) {
        yaml_found(&reading->findings, node, "%s: '%s' is no whole number from 1 to 1000", where,
                   text_quote_of(node->text).s);
        return;
    }
    transition->max_cycles = (int)number;
}

void workflow_read_transitions(struct workflow_reading *reading, const struct yaml_node *map)
{
    struct workflow *workflow = reading->workflow;
    if (!yaml_is_map(&reading->findings, map, "transitions")) {
        return;
    }
    const size_t n = workflow_rows(reading, map, "transitions", &reading->transitions_at);
    workflow->transitions = workflow_array(reading, n, sizeof(workflow->transitions[0]));
    for (const struct yaml_node *row = map->first; workflow->transitions != NULL && row != NULL;
         row = row->next) {
        struct workflow_transition *one = &workflow->transitions[workflow->n_transitions];
        char where[WORKFLOW_WHERE_MAX];
        char below[WORKFLOW_WHERE_MAX];
        if (!workflow_row_name(reading, row, "transition", &one->name)) {
            continue;
        }
        workflow_where(where, "transitions", one->name.s);
        if (!workflow_filled(reading, row, where)) {
            continue;
        }
        yaml_only_keys(&reading->findings, row, where, transition_keys, COUNT_OF(transition_keys));
        reading->transitions_at[workflow->n_transitions++] = row;
        if (workflow_read_slot_name(reading, row, where, "from", &one->from)) {
            read_target(reading, row, where, one);
        }
        workflow_where(below, where, "when");
        one->on =
            workflow_words(reading, yaml_member(row, "when"), below, verdicts, COUNT_OF(verdicts));
        workflow_where(below, where, "requires_status");
        one->status = workflow_words(reading, yaml_member(row, "requires_status"), below, statuses,
                                     COUNT_OF(statuses));
        read_max_cycles(reading, row, where, one);
        workflow_where(below, where, "hook");
        one->hook = workflow_find_hook(reading, yaml_member(row, "hook"), below);
    }
}

void workflow_read_ends(struct workflow_reading *reading, const struct yaml_node *map)
{
    struct workflow *workflow = reading->workflow;
    if (!yaml_is_map(&reading->findings, map, "ends")) {
        return;
    }
    const size_t n = workflow_rows(reading, map, "ends", &reading->ends_at);
    workflow->ends = workflow_array(reading, n, sizeof(workflow->ends[0]));
    for (const struct yaml_node *row = map->first; workflow->ends != NULL && row != NULL;
         row = row->next) {
        struct workflow_end *one = &workflow->ends[workflow->n_ends];
        char where[WORKFLOW_WHERE_MAX];
        char below[WORKFLOW_WHERE_MAX];
        if (!workflow_row_name(reading, row, "end", &one->name)) {
            continue;
        }
        workflow_where(where, "ends", one->name.s);
        if (!workflow_filled(reading, row, where)) {
            continue;
        }
        yaml_only_keys(&reading->findings, row, where, end_keys, COUNT_OF(end_keys));
        reading->ends_at[workflow->n_ends++] = row;
        (void)workflow_read_slot_name(reading, row, where, "from", &one->from);
        const struct yaml_node *on = yaml_member(row, "when");
        workflow_where(below, where, "when");
        one->on = workflow_words(reading, on, below, verdicts, COUNT_OF(verdicts));
        if (on == NULL) {
            yaml_found(&reading->findings, row, "%s is missing: the verdicts that end the run",
                       below);
        }
        const struct yaml_node *as = yaml_member(row, "as");
        workflow_where(below, where, "as");
        if (yaml_is_text(&reading->findings, row, as, below)) {
            const int kind =
                yaml_word(&reading->findings, as, below, end_kinds, COUNT_OF(end_kinds));
            one->as = kind >= 0 ? (enum workflow_end_kind)kind : WORKFLOW_END_completed;
        }
    }
}

/* ---- channels ---- */

static void read_channel(struct workflow_reading *reading, const struct yaml_node *row)
{
    struct workflow *workflow = reading->workflow;
    struct workflow_channel *one = &workflow->channels[workflow->n_channels];
    if (!workflow_filled(reading, row, "a row of channels")) {
        return;
    }
    yaml_only_keys(&reading->findings, row, "channels", channel_keys, COUNT_OF(channel_keys));
    const struct yaml_node *from = yaml_member(row, "from");
    const struct yaml_node *to = yaml_member(row, "to");
    if (!yaml_is_text(&reading->findings, row, from, "channels.from")) {
        return;
    }
    const int node = workflow_find_node(workflow, from->text, from->text_len);
    if (node < 0) {
        workflow_found_no_slot(reading, from, "channels.from");
        return;
    }
    one->from = (size_t)node;
    if (to == NULL) {
        yaml_found(&reading->findings, row, "channels.to is missing: a list of nodes");
        return;
    }
    if (!yaml_is_list(&reading->findings, to, "channels.to", WORKFLOW_SLOTS_MAX)) {
        return;
    }
    for (const struct yaml_node *one_to = to->first; one_to != NULL; one_to = one_to->next) {
        if (!yaml_is_text(&reading->findings, to, one_to, "channels.to")) {
            continue;
        }
        const slot_set set = workflow_find_slots(workflow, one_to->text);
        if (set == 0) {
            workflow_found_no_slot(reading, one_to, "channels.to");
        }
        one->to |= set;
    }
    reading->channels_at[workflow->n_channels++] = row;
}

void workflow_read_channels(struct workflow_reading *reading, const struct yaml_node *list)
{
    struct workflow *workflow = reading->workflow;
    if (!yaml_is_list(&reading->findings, list, "channels", WORKFLOW_ROWS_MAX)) {
        return;
    }
    const size_t n = workflow_rows(reading, list, "channels", &reading->channels_at);
    workflow->channels = workflow_array(reading, n, sizeof(workflow->channels[0]));
    for (const struct yaml_node *row = list->first; workflow->channels != NULL && row != NULL;
         row = row->next) {
        read_channel(reading, row);
    }
}
