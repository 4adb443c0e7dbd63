/*
 * Pictures of a workflow: for people, for Graphviz, for programs. Called by `baton workflow graph`.
 *
 * Names were checked when the file was read, so they need no escaping; programs' paths are not shown.
 */
#include "producer/workflow/workflow.h"

#include "common/base/jsonw.h"
#include "common/base/quantity.h"

#include <stdio.h>
#include <string.h>

#define ARROW_COLUMN 34

/* "done, done_with_concerns", or how it is taken without one. */
static void add_verdicts(struct buf *out, verdict_set on)
{
    int n = 0;
    for (int v = 0; v < VERDICT_COUNT; v++) {
        if ((on & VERDICT_BIT(v)) != 0) {
            buf_printf(out, "%s%s", n++ > 0 ? ", " : "", verdict_word((enum verdict)v));
        }
    }
    buf_add_text(out, n == 0 ? "(asked for)" : "");
}

static void add_targets(struct buf *out, const struct workflow *workflow, slot_set targets)
{
    const char *between = "";
    for (size_t slot = 0; slot < workflow->n_slots; slot++) {
        if ((targets & SLOT_BIT(slot)) != 0) {
            buf_printf(out, "%s%s", between, workflow_slot_text(workflow, slot).s);
            between = ", ";
        }
    }
}

/* ", at most 3 times, if review_ready, hook tests" */
static void add_conditions(struct buf *out, const struct workflow_transition *one)
{
    if (one->cap > 0) {
        buf_printf(out, one->cap == 1 ? ", at most once" : ", at most %d times", one->cap);
    }
    const char *between = ", if ";
    for (int i = 0; i < TASK_STATUS_COUNT; i++) {
        if ((one->status & (1u << i)) != 0) {
            buf_printf(out, "%s%s", between, task_status_word((enum task_status)i));
            between = " or ";
        }
    }
    if (one->hook != NULL) {
        buf_printf(out, ", hook %s", one->hook->name.s);
    }
}

/* ---- for people ---- */

/* What has been written of a line, then blanks up to the arrow. */
static void arrow(struct buf *out, size_t from)
{
    while (out->len - from < ARROW_COLUMN && buf_ok(out)) {
        buf_add_char(out, ' ');
    }
    buf_add_text(out, " -> ");
}

static void print_slot(const struct workflow *workflow, const struct config *config, size_t slot,
                       struct buf *out)
{
    const enum role role = workflow->slots[slot].role;
    const char *service = workflow_service(workflow, slot, config);
    verdict_set waits = 0;
    buf_printf(out, "%s (%s at %s)\n", workflow_slot_text(workflow, slot).s, role_word(role),
               service != NULL ? service : "the first of its chain");
    for (size_t i = 0; i < workflow->n_transitions; i++) {
        const struct workflow_transition *one = &workflow->transitions[i];
        if (one->from == slot) {
            const size_t from = out->len;
            buf_add_text(out, "  ");
            add_verdicts(out, one->on);
            arrow(out, from);
            add_targets(out, workflow, one->targets);
            buf_printf(out, "   (%s", one->name.s);
            add_conditions(out, one);
            buf_add_text(out, ")\n");
        }
    }
    for (size_t i = 0; i < workflow->n_ends; i++) {
        const struct workflow_end *one = &workflow->ends[i];
        if (one->from == slot) {
            const size_t from = out->len;
            buf_add_text(out, "  ");
            add_verdicts(out, one->on);
            arrow(out, from);
            buf_printf(out, "the run is %s   (%s)\n", workflow_end_word(one->as), one->name.s);
        }
    }
    for (int v = 0; v < VERDICT_COUNT; v++) {
        if ((workflow->verdicts[role] & VERDICT_BIT(v)) != 0 &&
            workflow_transition_on(workflow, slot, (enum verdict)v) == NULL &&
            workflow_end_on(workflow, slot, (enum verdict)v) == NULL) {
            waits |= VERDICT_BIT(v);
        }
    }
    if (waits != 0) {
        const size_t from = out->len;
        buf_add_text(out, "  ");
        add_verdicts(out, waits);
        arrow(out, from);
        buf_add_text(out, "waits for a person\n");
    }
}

void workflow_print_text(const struct workflow *workflow, const struct config *config,
                         struct buf *out)
{
    buf_printf(out, "%s, digest %.12s, started by %s", workflow->name.s, workflow->digest,
               workflow->invoke == INVOKE_allow ? "people and agents"
               : workflow->invoke == INVOKE_ask ? "people, and agents that a person confirms"
                                                : "people");
    if (workflow->deadline_ms > 0) {
        buf_printf(out, ", over after %s", quantity_duration_text(workflow->deadline_ms).s);
    }
    buf_printf(out, "\nstart -> %s\n", workflow_slot_text(workflow, workflow->start).s);
    for (size_t slot = 0; slot < workflow->n_slots; slot++) {
        buf_add_char(out, '\n');
        print_slot(workflow, config, slot, out);
    }
}

/* ---- for Graphviz ---- */

void workflow_print_dot(const struct workflow *workflow, const struct config *config,
                        struct buf *out)
{
    buf_printf(out,
               "digraph \"%s\" {\n  rankdir=LR;\n  node [shape=box, style=rounded];\n"
               "  \"(start)\" [shape=point];\n",
               workflow->name.s);
    for (size_t slot = 0; slot < workflow->n_slots; slot++) {
        const char *service = workflow_service(workflow, slot, config);
        buf_printf(out, "  \"%s\" [label=\"%s\\n%s%s%s\"];\n", workflow_slot_text(workflow, slot).s,
                   workflow_slot_text(workflow, slot).s, role_word(workflow->slots[slot].role),
                   service != NULL ? " at " : "", service != NULL ? service : "");
    }
    buf_printf(out, "  \"(start)\" -> \"%s\";\n", workflow_slot_text(workflow, workflow->start).s);
    for (size_t i = 0; i < workflow->n_transitions; i++) {
        const struct workflow_transition *one = &workflow->transitions[i];
        for (size_t slot = 0; slot < workflow->n_slots; slot++) {
            if ((one->targets & SLOT_BIT(slot)) != 0) {
                buf_printf(out, "  \"%s\" -> \"%s\" [label=\"%s: ",
                           workflow_slot_text(workflow, one->from).s,
                           workflow_slot_text(workflow, slot).s, one->name.s);
                add_verdicts(out, one->on);
                add_conditions(out, one);
                buf_printf(out, "\"%s];\n", one->on == 0 ? ", style=dashed" : "");
            }
        }
    }
    for (size_t i = 0; i < workflow->n_ends; i++) {
        const struct workflow_end *one = &workflow->ends[i];
        buf_printf(out,
                   "  \"(%s)\" [shape=doublecircle, label=\"%s\"];\n  \"%s\" -> \"(%s)\" [label=\"",
                   one->name.s, workflow_end_word(one->as),
                   workflow_slot_text(workflow, one->from).s, one->name.s);
        add_verdicts(out, one->on);
        buf_add_text(out, "\"];\n");
    }
    buf_add_text(out, "}\n");
}

/* ---- for programs ---- */

static void json_verdicts(struct jsonw *w, verdict_set on)
{
    jsonw_key(w, "when");
    jsonw_begin_array(w);
    for (int v = 0; v < VERDICT_COUNT; v++) {
        if ((on & VERDICT_BIT(v)) != 0) {
            jsonw_text(w, verdict_word((enum verdict)v));
        }
    }
    jsonw_end(w);
}

static void json_slot(struct jsonw *w, const struct workflow *workflow, const struct config *config,
                      size_t slot)
{
    const struct workflow_slot *one = &workflow->slots[slot];
    jsonw_begin_object(w);
    jsonw_key_text(w, "name", workflow_slot_text(workflow, slot).s);
    jsonw_key_text(w, "node", workflow->nodes[one->node].name.s);
    jsonw_key_text(w, "slot", one->name.s);
    jsonw_key_text(w, "role", role_word(one->role));
    jsonw_key_text(w, "service", workflow_service(workflow, slot, config));
    jsonw_end(w);
}

static void json_transition(struct jsonw *w, const struct workflow *workflow,
                            const struct workflow_transition *one)
{
    jsonw_begin_object(w);
    jsonw_key_text(w, "name", one->name.s);
    jsonw_key_text(w, "from", workflow_slot_text(workflow, one->from).s);
    json_verdicts(w, one->on);
    jsonw_key_text(w, "target", one->to);
    jsonw_key(w, "to");
    jsonw_begin_array(w);
    for (size_t slot = 0; slot < workflow->n_slots; slot++) {
        if ((one->targets & SLOT_BIT(slot)) != 0) {
            jsonw_text(w, workflow_slot_text(workflow, slot).s);
        }
    }
    jsonw_end(w);
    jsonw_key_bool(w, "closes_loop", one->closes_loop);
    jsonw_key_int(w, "cap", one->cap);
    jsonw_key_text(w, "hook", one->hook != NULL ? one->hook->name.s : NULL);
    jsonw_key(w, "requires_status");
    jsonw_begin_array(w);
    for (int i = 0; i < TASK_STATUS_COUNT; i++) {
        if ((one->status & (1u << i)) != 0) {
            jsonw_text(w, task_status_word((enum task_status)i));
        }
    }
    jsonw_end(w);
    jsonw_end(w);
}

void workflow_print_json(const struct workflow *workflow, const struct config *config,
                         struct buf *out)
{
    struct jsonw w = jsonw_to(out);
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "name", workflow->name.s);
    jsonw_key_text(&w, "digest", workflow->digest);
    jsonw_key_text(&w, "invoke", invoke_word(workflow->invoke));
    jsonw_key_int(&w, "deadline_ms", workflow->deadline_ms);
    jsonw_key_text(&w, "start", workflow_slot_text(workflow, workflow->start).s);
    jsonw_key(&w, "slots");
    jsonw_begin_array(&w);
    for (size_t slot = 0; slot < workflow->n_slots; slot++) {
        json_slot(&w, workflow, config, slot);
    }
    jsonw_end(&w);
    jsonw_key(&w, "transitions");
    jsonw_begin_array(&w);
    for (size_t i = 0; i < workflow->n_transitions; i++) {
        json_transition(&w, workflow, &workflow->transitions[i]);
    }
    jsonw_end(&w);
    jsonw_key(&w, "ends");
    jsonw_begin_array(&w);
    for (size_t i = 0; i < workflow->n_ends; i++) {
        jsonw_begin_object(&w);
        jsonw_key_text(&w, "name", workflow->ends[i].name.s);
        jsonw_key_text(&w, "from", workflow_slot_text(workflow, workflow->ends[i].from).s);
        json_verdicts(&w, workflow->ends[i].on);
        jsonw_key_text(&w, "as", workflow_end_word(workflow->ends[i].as));
        jsonw_end(&w);
    }
    jsonw_end(&w);
    jsonw_end(&w);
    buf_add_char(out, '\n');
}
