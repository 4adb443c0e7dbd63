/* Questions to a workflow, its end, and those that are built in. Called by whoever has one. */
#include "producer/workflow/workflow.h"

#include "producer/workflow/builtin.h"

#include "common/base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void texts_free(char **texts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(texts[i]);
    }
    free(texts);
}

void workflow_free(struct workflow *workflow)
{
    if (workflow == NULL) {
        return;
    }
    for (size_t i = 0; i < workflow->n_transitions; i++) {
        free(workflow->transitions[i].to);
    }
    for (size_t i = 0; i < workflow->n_hooks; i++) {
        texts_free(workflow->hooks[i].command, workflow->hooks[i].n_command);
        texts_free(workflow->hooks[i].env, workflow->hooks[i].n_env);
        texts_free(workflow->hooks[i].data, workflow->hooks[i].n_data);
    }
    free(workflow->nodes);
    free(workflow->transitions);
    free(workflow->ends);
    free(workflow->hooks);
    free(workflow->channels);
    free(workflow->text);
    free(workflow);
}

/* ---- built in ---- */

static const struct {
    const char *name;
    const unsigned char *text;
    size_t len;
} builtins[] = {
    {"paired-review", embedded_paired_review, embedded_paired_review_len},
};

const char *workflow_builtin(const char *name, size_t *ret_len)
{
    for (size_t i = 0; i < COUNT_OF(builtins); i++) {
        if (strcmp(builtins[i].name, name) == 0) {
            *ret_len = builtins[i].len;
            return (const char *)builtins[i].text;
        }
    }
    return NULL;
}

const char *workflow_builtin_name(size_t index)
{
    return index < COUNT_OF(builtins) ? builtins[index].name : NULL;
}

/* ---- questions ---- */

struct workflow_slot_text workflow_slot_text(const struct workflow *workflow, size_t slot)
{
    struct workflow_slot_text text;
    BATON_PRE(slot < workflow->n_slots);
    const struct workflow_slot *one = &workflow->slots[slot];
    snprintf(text.s, sizeof(text.s), "%s%s%s", workflow->nodes[one->node].name.s,
             one->name.s[0] != '\0' ? "." : "", one->name.s);
    return text;
}

const char *workflow_service(const struct workflow *workflow, size_t slot,
                             const struct config *config)
{
    BATON_PRE(slot < workflow->n_slots);
    const struct workflow_slot *one = &workflow->slots[slot];
    const struct workflow_node *node = &workflow->nodes[one->node];
    if (node->service.s[0] != '\0') {
        return node->service.s;
    }
    const struct config_role *role = config != NULL ? &config->roles[one->role] : NULL;
    return role != NULL && role->n_chain > 0 ? role->chain[0].s : NULL;
}

const struct workflow_transition *workflow_transition_on(const struct workflow *workflow,
                                                         size_t slot, enum verdict verdict)
{
    for (size_t i = 0; i < workflow->n_transitions; i++) {
        const struct workflow_transition *one = &workflow->transitions[i];
        if (one->from == slot && (one->on & VERDICT_BIT(verdict)) != 0) {
            return one;
        }
    }
    return NULL;
}

const struct workflow_end *workflow_end_on(const struct workflow *workflow, size_t slot,
                                           enum verdict verdict)
{
    for (size_t i = 0; i < workflow->n_ends; i++) {
        const struct workflow_end *one = &workflow->ends[i];
        if (one->from == slot && (one->on & VERDICT_BIT(verdict)) != 0) {
            return one;
        }
    }
    return NULL;
}

bool workflow_permits(const struct workflow *workflow, size_t from_slot, size_t to_slot)
{
    BATON_PRE(from_slot < workflow->n_slots && to_slot < workflow->n_slots);
    for (size_t i = 0; i < workflow->n_channels; i++) {
        const struct workflow_channel *one = &workflow->channels[i];
        if (one->from == workflow->slots[from_slot].node && (one->to & SLOT_BIT(to_slot)) != 0) {
            return true;
        }
    }
    return workflow->n_channels == 0;
}

bool verdict_asks_person(enum role role, enum verdict verdict)
{
    /* An arbiter is the last who can be asked; a reviewer's escalation has somewhere to go. */
    return verdict == VERDICT_blocked || verdict == VERDICT_needs_context ||
           (verdict == VERDICT_escalate && role == ROLE_arbiter);
}
