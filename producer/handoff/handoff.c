/*
 * The stages of a handoff, one function each, in the order of tbl/stages.h.
 *
 * In: producer/coordinator/advance.c  Out: producer/run/run.c, producer/workflow/workflow.c (questions only)
 */
#include "producer/handoff/handoff.h"

#include "common/base/check.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/record/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define STAGE_WORD(word, status, asks) #word,
static const char *const stage_words[] = {HANDOFF_STAGES(STAGE_WORD)};
#undef STAGE_WORD
#define STATUS_WORD(word) #word,
static const char *const status_words[] = {HANDOFF_STATUSES(STATUS_WORD)};
#undef STATUS_WORD

const char *handoff_stage_word(enum handoff_stage stage)
{
    BATON_PRE((unsigned)stage < HANDOFF_STAGE_COUNT);
    return stage_words[stage];
}

const char *handoff_status_word(enum handoff_status status)
{
    BATON_PRE((unsigned)status < HANDOFF_STATUS_COUNT);
    return status_words[status];
}

struct deciding {
    const struct run *run;
    const struct workflow *workflow;
    const struct handoff_ask *ask;
    struct handoff_result *result;
    size_t from; /* once it is known */
};

BATON_PRINTF(3, 4)
static baton_code refuse(struct deciding *d, baton_code code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(d->result->text, sizeof(d->result->text), format, args);
    va_end(args);
    return code;
}

bool handoff_subject(const struct workflow_transition *transition, const char *data,
                     char ret_subject[RUN_SUBJECT_MAX + 2])
{
    const char *key = transition->hook != NULL ? transition->hook->subject : NULL;
    struct json_doc *doc = NULL;
    ret_subject[0] = '\0';
    if (key != NULL && data != NULL &&
        json_parse(data, strlen(data), LIMIT_VALUE, LIMIT_JSON_DEPTH, &doc, NULL) == BATON_OK) {
        const struct json_value *root = json_root(doc);
        const struct json_value *value =
            json_kind(root) == JSON_object ? json_member(root, key) : NULL;
        if (value != NULL && json_kind(value) == JSON_text) {
            snprintf(ret_subject, RUN_SUBJECT_MAX + 2, "%s", json_text(value, NULL));
        }
        json_free(doc);
    }
    return ret_subject[0] != '\0';
}

/* ---- the stages ---- */

/* What a run is about is said once; another one is another run's work (H-40). */
static baton_code check_subject(struct deciding *d, const struct workflow_transition *found)
{
    char subject[RUN_SUBJECT_MAX + 2];
    if (!handoff_subject(found, d->ask->facts, subject)) {
        return BATON_OK;
    }
    if (strlen(subject) > RUN_SUBJECT_MAX) {
        return refuse(d, BATON_E_subject_unavailable,
                      "transition %s takes at most %d bytes as '%s'", found->name.s,
                      RUN_SUBJECT_MAX, found->hook->subject);
    }
    if (d->run->subject != NULL && strcmp(d->run->subject, subject) != 0) {
        return refuse(d, BATON_E_subject_changed, "run %s is about %s, and '%s' names %s",
                      d->run->id.s, text_quote_of(d->run->subject).s, found->hook->subject,
                      text_quote_of(subject).s);
    }
    return BATON_OK;
}

static baton_code check_policy(struct deciding *d)
{
    const struct handoff_ask *ask = d->ask;
    const size_t len = ask->summary != NULL ? strlen(ask->summary) : 0;
    if (ask->actor == HANDOFF_ACTOR_agent && d->workflow->n_transitions == 0) {
        return refuse(d, BATON_E_handoff_not_available, "workflow %s has no transitions",
                      d->workflow->name.s);
    }
    if (ask->summary == NULL || strspn(ask->summary, " \t\r\n") == len) { /* H-45 */
        return refuse(d, BATON_E_invalid_request, "a handoff needs a summary: what is to be done");
    }
    if (len > LIMIT_SUMMARY) {
        return refuse(d, BATON_E_invalid_request,
                      "the summary has %zu bytes; at most %d are allowed", len, LIMIT_SUMMARY);
    }
    return BATON_OK;
}

static baton_code check_resolve_run(struct deciding *d)
{
    const struct run *run = d->run;
    const struct run_turn *turn = d->ask->turn;
    if (!run_state_open(run->state)) { /* H-03 */
        return refuse(d, BATON_E_run_terminal, "run %s is %s", run->id.s,
                      run_state_word(run->state));
    }
    if (turn != NULL && turn->epoch != run->epoch) {
        return refuse(d, BATON_E_run_terminal,
                      "turn %s belongs to epoch %d of run %s, which is in %d", turn->id.s,
                      turn->epoch, run->id.s, run->epoch);
    }
    return BATON_OK;
}

static baton_code check_resolve_source(struct deciding *d)
{
    d->from = run_slot(d->run, d->ask->from);
    if (d->from == SIZE_MAX) { /* H-04 */
        return refuse(d, BATON_E_source_unknown, "'%s' is no slot of workflow %s",
                      text_quote_of(d->ask->from).s, d->workflow->name.s);
    }
    return BATON_OK;
}

/* Does this transition fit what was asked for? */
static bool fits(const struct deciding *d, const struct workflow_transition *one)
{
    const struct handoff_ask *ask = d->ask;
    if (one->from != d->from) {
        return false;
    }
    if (ask->target == NULL) {
        return ask->has_verdict && (one->on & VERDICT_BIT(ask->verdict)) != 0;
    }
    /* What a verdict takes by itself may be asked for along with that verdict, or by a person. */
    const bool by_verdict = one->on == 0 || ask->actor == HANDOFF_ACTOR_person ||
                            (ask->has_verdict && (one->on & VERDICT_BIT(ask->verdict)) != 0);
    return by_verdict && strcmp(one->to, ask->target) == 0;
}

/* A person has no verdict, so several transitions may lead to one target: their names tell them apart. */
static const struct workflow_transition *by_name(const struct deciding *d)
{
    for (size_t i = 0; i < d->workflow->n_transitions; i++) {
        const struct workflow_transition *one = &d->workflow->transitions[i];
        if (one->from == d->from && d->ask->actor == HANDOFF_ACTOR_person &&
            d->ask->target != NULL && strcmp(one->name.s, d->ask->target) == 0) {
            return one;
        }
    }
    return NULL;
}

/* What the sender could have asked for, each once: it is told, and never guessed (I11). Whole names; "…" stands
 * for those that do not fit. */
static void targets_of(const struct deciding *d, char *ret_text, size_t size)
{
    const char more[] = ", …";
    size_t len = 0;
    ret_text[0] = '\0';
    for (size_t i = 0; i < d->workflow->n_transitions; i++) {
        const struct workflow_transition *one = &d->workflow->transitions[i];
        bool again = one->from != d->from;
        for (size_t k = 0; k < i && !again; k++) {
            const struct workflow_transition *before = &d->workflow->transitions[k];
            again = before->from == d->from && strcmp(before->to, one->to) == 0;
        }
        if (again) {
            continue;
        }
        if (len + 2 + strlen(one->to) + sizeof(more) > size) {
            snprintf(ret_text + len, size - len, "%s", more);
            return;
        }
        len += (size_t)snprintf(ret_text + len, size - len, "%s%s", len > 0 ? ", " : "", one->to);
    }
}

static baton_code check_resolve_transition(struct deciding *d)
{
    const struct workflow_transition *found = NULL;
    const char *target = d->ask->target;
    size_t n = 0;
    size_t n_own = 0;
    char slot[2 * WORKFLOW_NAME_MAX + 2];
    snprintf(slot, sizeof(slot), "%s", workflow_slot_text(d->workflow, d->from).s);
    for (size_t i = 0; i < d->workflow->n_transitions; i++) {
        const struct workflow_transition *one = &d->workflow->transitions[i];
        n_own += one->from == d->from;
        if (fits(d, one)) {
            found = n == 0 ? one : found;
            n++;
        }
    }
    if (n_own == 0) { /* H-05 */
        return refuse(d, BATON_E_no_transitions, "%s declares no transition in workflow %s", slot,
                      d->workflow->name.s);
    }
    if (target != NULL && strcmp(target, slot) == 0) { /* H-26: the own slot only */
        return refuse(d, BATON_E_self_target, "%s cannot hand to itself", slot);
    }
    if (n == 0 && (found = by_name(d)) == NULL) {
        char known[256]; /* beside two names and a quotation it fits into what is said */
        targets_of(d, known, sizeof(known));
        return refuse(d, BATON_E_unknown_target,
                      "no transition leads from %s to '%s'; from it they lead to: %s", slot,
                      target != NULL ? text_quote_of(target).s : "whatever its verdict takes",
                      known);
    }
    if (n > 1) {
        return refuse(d, BATON_E_ambiguous_target, "%zu transitions lead from %s to '%s'; name %s",
                      n, slot, text_quote_of(target).s,
                      d->ask->actor == HANDOFF_ACTOR_person
                          ? "one of them instead (baton runs show, baton workflow show)"
                          : "the verdict or the slot");
    }
    d->result->transition = found;
    if (found->status != 0 && (found->status & (1u << d->run->task_status)) == 0) { /* H-61 */
        return refuse(d, BATON_E_hook_blocked,
                      "transition %s asks for another status of the task than %s", found->name.s,
                      task_status_word(d->run->task_status));
    }
    for (size_t i = 0; i < d->ask->n_data; i++) { /* H-37 */
        bool declared = false;
        for (size_t k = 0; found->hook != NULL && k < found->hook->n_data; k++) {
            declared = declared || strcmp(found->hook->data[k], d->ask->data[i]) == 0;
        }
        if (!declared) {
            return refuse(d, BATON_E_unsupported_field,
                          "transition %s takes no data '%s': no hook of it declares that key",
                          found->name.s, text_quote_of(d->ask->data[i]).s);
        }
    }
    return check_subject(d, found);
}

static baton_code check_resolve_target(struct deciding *d)
{
    d->result->targets = d->result->transition->targets;
    if (d->result->targets == 0) {
        return refuse(d, BATON_E_no_target, "transition %s leads to nobody",
                      d->result->transition->name.s);
    }
    return BATON_OK;
}

static baton_code check_authorize_topology(struct deciding *d)
{
    for (size_t slot = 0; slot < d->workflow->n_slots; slot++) {
        if ((d->result->targets & SLOT_BIT(slot)) != 0 &&
            !workflow_permits(d->workflow, d->from, slot)) { /* H-08 */
            char from[2 * WORKFLOW_NAME_MAX + 2];
            snprintf(from, sizeof(from), "%s", workflow_slot_text(d->workflow, d->from).s);
            return refuse(d, BATON_E_topology_denied, "no channel permits %s to hand to %s", from,
                          workflow_slot_text(d->workflow, slot).s);
        }
    }
    return BATON_OK;
}

static baton_code check_cycle_limit(struct deciding *d)
{
    const struct workflow_transition *one = d->result->transition;
    const int taken = run_taken(d->run, one->name.s);
    if (one->cap > 0 && taken >= one->cap) { /* H-09, before any side effect: H-14 */
        return refuse(
            d, BATON_E_cycle_limit,
            "transition %s was taken %d times since a person last touched run %s; its cap "
            "is %d. `baton runs touch %s` lets it go on",
            one->name.s, taken, d->run->id.s, one->cap, d->run->id.s);
    }
    return BATON_OK;
}

static baton_code check_hook(struct deciding *d)
{
    const struct workflow_hook *hook = d->result->transition->hook;
    if (hook == NULL) {
        return BATON_OK;
    }
    if (!hook->enabled) { /* H-30 */
        return refuse(d, BATON_E_hook_denied, "hook %s is switched off", hook->name.s);
    }
    if (hook->people_only && d->ask->actor == HANDOFF_ACTOR_agent) {
        return refuse(d, BATON_E_hook_denied, "hook %s is for people only", hook->name.s);
    }
    if (d->ask->hook == NULL) {
        d->result->wants_hook = true;
        return refuse(d, BATON_E_hook_unavailable, "hook %s has not run", hook->name.s);
    }
    if (d->ask->hook->code != BATON_OK && hook->class == HOOK_CLASS_validation) { /* H-33 */
        d->result->retry_after_ms = d->ask->hook->retry_after_ms;
        return refuse(d, d->ask->hook->code, "hook %s: %s", hook->name.s,
                      text_quote_of(d->ask->hook->text).s);
    }
    return BATON_OK;
}

static baton_code check_recheck(struct deciding *d) /* H-27: a hook may take long */
{
    baton_code rc = check_resolve_run(d);
    rc = rc == BATON_OK ? check_authorize_topology(d) : rc;
    return rc == BATON_OK ? check_cycle_limit(d) : rc;
}

static baton_code check_publish(struct deciding *d) /* H-23 */
{
    baton_code why = BATON_OK;
    size_t last = 0;
    for (size_t slot = 0; d->ask->reachable != NULL && slot < d->workflow->n_slots; slot++) {
        baton_code code = BATON_OK;
        if ((d->result->targets & SLOT_BIT(slot)) != 0 &&
            !d->ask->reachable(d->ask->reachable_arg, slot, &code)) {
            d->result->unreached |= SLOT_BIT(slot);
            why = code;
            last = slot;
        }
    }
    d->result->targets &= ~d->result->unreached;
    if (d->result->targets == 0) {
        return refuse(d, why, "no turn can be sent to %s: %s",
                      workflow_slot_text(d->workflow, last).s, baton_code_text(why));
    }
    return BATON_OK;
}

#define STAGE_ROW(word, status, asks) {HANDOFF_STAGE_##word, HANDOFF_##status, check_##word},
static const struct {
    enum handoff_stage stage;
    enum handoff_status refused;
    baton_code (*check)(struct deciding *d);
} stages[] = {HANDOFF_STAGES(STAGE_ROW)};
#undef STAGE_ROW

void handoff_decide(const struct run *run, const struct handoff_ask *ask,
                    struct handoff_result *ret_result)
{
    struct deciding d = {.run = run, .workflow = run->workflow, .ask = ask, .result = ret_result};
    memset(ret_result, 0, sizeof(*ret_result));
    for (size_t i = 0; i < COUNT_OF(stages); i++) {
        ret_result->stage = stages[i].stage;
        ret_result->code = stages[i].check(&d);
        if (ret_result->code != BATON_OK) {
            ret_result->status = stages[i].refused;
            return;
        }
    }
    ret_result->status = HANDOFF_queued;
}
