/*
 * What the parts of a workflow mean together: verdicts that a role has, one answer to each, services
 * that are there; and what is legal but surely wrong. Loops and reach are loops.c.
 *
 * In: parse.c, once every part has been read without a finding  Out: -
 */
#include "producer/workflow/reading.h"

#include "common/base/check.h"
#include "common/base/text.h"

#include <stdio.h>
#include <string.h>

/* A list of the verdicts of a set, for people. */
static void add_verdicts(struct buf *out, verdict_set set)
{
    for (int v = 0, n = 0; v < VERDICT_COUNT; v++) {
        if ((set & VERDICT_BIT(v)) != 0) {
            buf_printf(out, "%s%s", n++ > 0 ? ", " : "", verdict_word((enum verdict)v));
        }
    }
}

/* ---- verdicts ---- */

static void judge_verdicts(struct workflow_reading *reading, const struct yaml_node *row,
                           const char *section, const struct workflow_name *name, size_t from,
                           verdict_set on)
{
    const struct workflow *workflow = reading->workflow;
    const enum role role = workflow->slots[from].role;
    for (int v = 0; v < VERDICT_COUNT; v++) {
        if ((on & ~workflow->verdicts[role] & VERDICT_BIT(v)) == 0) {
            continue;
        }
        const bool narrowed = verdict_legal(role, (enum verdict)v);
        yaml_found(&reading->findings, row,
                   "%s.%s.when: %s is no verdict of %s, whose role is %s%s", section, name->s,
                   verdict_word((enum verdict)v), workflow_slot_text(workflow, from).s,
                   role_word(role), narrowed ? "; `verdicts` left it out" : "");
    }
}

/* Each verdict of a slot has one answer (H-05). */
static void judge_answers(struct workflow_reading *reading)
{
    const struct workflow *workflow = reading->workflow;
    const char *answer[WORKFLOW_SLOTS_MAX][VERDICT_COUNT] = {{NULL}};
    for (size_t i = 0; i < workflow->n_transitions + workflow->n_ends; i++) {
        const bool ends = i >= workflow->n_transitions;
        const size_t at = ends ? i - workflow->n_transitions : i;
        const size_t from = ends ? workflow->ends[at].from : workflow->transitions[at].from;
        const verdict_set on = ends ? workflow->ends[at].on : workflow->transitions[at].on;
        const struct workflow_name *name =
            ends ? &workflow->ends[at].name : &workflow->transitions[at].name;
        const struct yaml_node *row = ends ? reading->ends_at[at] : reading->transitions_at[at];
        judge_verdicts(reading, row, ends ? "ends" : "transitions", name, from, on);
        for (int v = 0; v < VERDICT_COUNT; v++) {
            if ((on & VERDICT_BIT(v)) == 0) {
                continue;
            }
            if (answer[from][v] != NULL) {
                yaml_found(&reading->findings, row,
                           "%s of %s is answered twice: by '%s' and by '%s'; a verdict has one "
                           "answer",
                           verdict_word((enum verdict)v), workflow_slot_text(workflow, from).s,
                           answer[from][v], name->s);
            }
            answer[from][v] = name->s;
        }
    }
}

/* Two that are only asked for, to the same target: nobody could say which is meant (H-05). */
static void judge_targets(struct workflow_reading *reading)
{
    const struct workflow *workflow = reading->workflow;
    for (size_t i = 0; i < workflow->n_transitions; i++) {
        const struct workflow_transition *one = &workflow->transitions[i];
        for (size_t j = 0; j < i && one->on == 0; j++) {
            const struct workflow_transition *other = &workflow->transitions[j];
            if (other->on == 0 && other->from == one->from && other->targets == one->targets) {
                yaml_found(&reading->findings, reading->transitions_at[i],
                           "transitions '%s' and '%s' both lead from %s to '%s' without a verdict; "
                           "a request could mean either",
                           other->name.s, one->name.s, workflow_slot_text(workflow, one->from).s,
                           text_quote_of(one->to).s);
            }
        }
    }
}

static void warn_unanswered(struct workflow_reading *reading)
{
    const struct workflow *workflow = reading->workflow;
    for (size_t slot = 0; slot < workflow->n_slots; slot++) {
        const enum role role = workflow->slots[slot].role;
        verdict_set open = 0;
        for (int v = 0; v < VERDICT_COUNT; v++) {
            if ((workflow->verdicts[role] & VERDICT_BIT(v)) != 0 &&
                workflow_transition_on(workflow, slot, (enum verdict)v) == NULL &&
                workflow_end_on(workflow, slot, (enum verdict)v) == NULL &&
                !verdict_asks_person(role, (enum verdict)v)) {
                open |= VERDICT_BIT(v);
            }
        }
        if (open != 0) {
            struct buf words = BUF_INIT;
            add_verdicts(&words, open);
            yaml_found(&reading->warnings, reading->nodes_at[workflow->slots[slot].node],
                       "nothing answers %s of %s, so the run would wait for a person; add a "
                       "transition or an end, or leave it out under `verdicts`",
                       buf_ok(&words) ? words.data : "a verdict",
                       workflow_slot_text(workflow, slot).s);
            buf_done(&words);
        }
    }
}

/* ---- services ---- */

static void judge_service(struct workflow_reading *reading, size_t slot)
{
    const struct workflow *workflow = reading->workflow;
    const struct workflow_node *node = &workflow->nodes[workflow->slots[slot].node];
    const struct yaml_node *at = reading->nodes_at[workflow->slots[slot].node];
    const enum role role = workflow->slots[slot].role;
    const char *name = workflow_service(workflow, slot, reading->config);
    if (name == NULL) {
        yaml_found(&reading->findings, at,
                   "nodes.%s names no service, and the configuration has no chain for the role %s; "
                   "put `service: NAME` here, or `%s: {chain: [NAME]}` below roles: there",
                   node->name.s, role_word(role), role_word(role));
        return;
    }
    const struct config_service *service = config_service_find(reading->config, name);
    if (service == NULL) {
        yaml_found(&reading->findings, at,
                   "nodes.%s: service %s is not in the configuration (`baton services` lists them)",
                   node->name.s, name);
    } else if ((service->roles & ROLE_BIT(role)) == 0) {
        yaml_found(&reading->findings, at,
                   "nodes.%s: service %s does not serve the role %s; add it to services.%s.roles",
                   node->name.s, name, role_word(role), name);
    }
}

static void warn_channels(struct workflow_reading *reading)
{
    const struct workflow *workflow = reading->workflow;
    for (size_t i = 0; i < workflow->n_transitions; i++) {
        const struct workflow_transition *one = &workflow->transitions[i];
        for (size_t slot = 0; slot < workflow->n_slots; slot++) {
            if ((one->targets & SLOT_BIT(slot)) != 0 &&
                !workflow_permits(workflow, one->from, slot)) {
                yaml_found(
                    &reading->warnings, reading->transitions_at[i],
                    "no channel permits transition '%s' to %s, so it would always be refused "
                    "(topology_denied)",
                    one->name.s, workflow_slot_text(workflow, slot).s);
            }
        }
    }
}

static void warn_hooks(struct workflow_reading *reading)
{
    const struct workflow *workflow = reading->workflow;
    for (size_t i = 0; i < workflow->n_hooks; i++) {
        bool bound = false;
        for (size_t t = 0; t < workflow->n_transitions; t++) {
            bound = bound || workflow->transitions[t].hook == &workflow->hooks[i];
        }
        if (!bound) {
            yaml_found(&reading->warnings, reading->hooks_at[i], "no transition has hook '%s'",
                       workflow->hooks[i].name.s);
        } else if (!workflow->hooks[i].enabled) {
            yaml_found(&reading->warnings, reading->hooks_at[i],
                       "hook '%s' is switched off, so its transitions are always refused "
                       "(hook_denied)",
                       workflow->hooks[i].name.s);
        }
    }
}

void workflow_judge(struct workflow_reading *reading)
{
    judge_answers(reading);
    judge_targets(reading);
    for (size_t slot = 0; reading->config != NULL && slot < reading->workflow->n_slots; slot++) {
        judge_service(reading, slot);
    }
    if (reading->findings.count == 0) {
        warn_unanswered(reading);
        warn_channels(reading);
        warn_hooks(reading);
    }
}
