/*
 * Loops of a workflow: which transitions close one, and how often each may be taken; and which slots
 * and ends nothing reaches. Only transitions count, channels do not (H-09, H-10).
 *
 * In: parse.c  Out: -
 */
#include "producer/workflow/reading.h"

#include <string.h>

/* to[i]: every slot that can be reached from i by one transition or more (Warshall). */
static void reach_of(const struct workflow *workflow, slot_set to[WORKFLOW_SLOTS_MAX],
                     bool capped_too)
{
    memset(to, 0, WORKFLOW_SLOTS_MAX * sizeof(to[0]));
    for (size_t i = 0; i < workflow->n_transitions; i++) {
        const struct workflow_transition *one = &workflow->transitions[i];
        if (capped_too || one->max_cycles == 0) {
            to[one->from] |= one->targets;
        }
    }
    for (size_t k = 0; k < workflow->n_slots; k++) {
        for (size_t i = 0; i < workflow->n_slots; i++) {
            to[i] |= (to[i] & SLOT_BIT(k)) != 0 ? to[k] : 0;
        }
    }
}

/* Does one of the targets lead back to where the transition begins? */
static bool leads_back(const struct workflow_transition *one, const slot_set *to)
{
    for (size_t slot = 0; slot < WORKFLOW_SLOTS_MAX; slot++) {
        if ((one->targets & SLOT_BIT(slot)) != 0 &&
            (slot == one->from || (to[slot] & SLOT_BIT(one->from)) != 0)) {
            return true;
        }
    }
    return false;
}

/* A loop that no cap bounds gets one all the same, for each of its transitions. */
static void judge_caps(struct workflow_reading *reading)
{
    struct workflow *workflow = reading->workflow;
    slot_set to[WORKFLOW_SLOTS_MAX];
    slot_set unbounded[WORKFLOW_SLOTS_MAX];
    reach_of(workflow, to, true);
    reach_of(workflow, unbounded, false);
    for (size_t i = 0; i < workflow->n_transitions; i++) {
        struct workflow_transition *one = &workflow->transitions[i];
        one->closes_loop = leads_back(one, to);
        if (one->max_cycles > 0 && !one->closes_loop) {
            yaml_found(&reading->warnings, reading->transitions_at[i],
                       "max_cycles of transition '%s' means nothing: it lies on no loop",
                       one->name.s);
        }
        one->cap = one->closes_loop ? one->max_cycles : 0;
        if (one->max_cycles == 0 && leads_back(one, unbounded)) {
            one->cap = (int)(2 * workflow->n_slots);
            yaml_found(&reading->warnings, reading->transitions_at[i],
                       "transition '%s' lies on a loop without a cap; it is taken %d times at most "
                       "(twice the number of slots). Say max_cycles: N for one transition of the "
                       "loop",
                       one->name.s, one->cap);
        }
    }
}

static void warn_reach(struct workflow_reading *reading)
{
    const struct workflow *workflow = reading->workflow;
    slot_set to[WORKFLOW_SLOTS_MAX];
    slot_set seen = SLOT_BIT(workflow->start);
    bool ends = false;
    reach_of(workflow, to, true);
    seen |= to[workflow->start];
    for (size_t slot = 0; slot < workflow->n_slots; slot++) {
        if ((seen & SLOT_BIT(slot)) == 0) {
            yaml_found(&reading->warnings, reading->nodes_at[workflow->slots[slot].node],
                       "nothing reaches %s from the start", workflow_slot_text(workflow, slot).s);
        }
    }
    for (size_t i = 0; i < workflow->n_ends; i++) {
        ends = ends || (seen & SLOT_BIT(workflow->ends[i].from)) != 0;
    }
    if (!ends) {
        yaml_found(&reading->warnings, NULL,
                   "no way leads to an end, so a run could only be ended by a person; add a row to "
                   "`ends`");
    }
}

void workflow_judge_loops(struct workflow_reading *reading)
{
    judge_caps(reading);
    warn_reach(reading);
}
