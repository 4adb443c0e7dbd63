/*
 * Hooks of pending ends, and of handoffs that were asked for: each is run once for each decision, while
 * the run stays as it is.
 *
 *   wanted ----> runs ----> ended: it is decided again, with what it said
 *     |           |
 *     +-> (gone)  +-> gone: nobody waits for it any more; killed, its end is dropped
 *
 * A hook is wanted in the batch that leaves its end (or what was asked) pending, and started once that is committed. What it
 * said is in memory only: after a restart, and where another coordinator takes the run over, it runs
 * again. Its command comes from the workflow's file on disk, never from the run's record.
 *
 * In: advance.c, asked.c, coordinator.c, requests.c  Out: producer/hook/hook.h
 */
#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/process/scratch.h"
#include "producer/coordinator/internal.h"
#include "producer/workflow/may_start.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum hooking_state { HOOKING_wanted, HOOKING_runs, HOOKING_ended, HOOKING_gone };

struct hooking {
    struct hooking *next;
    enum hooking_state state;
    struct plain_id run_id;
    int32_t epoch;
    struct plain_id request; /* that asked for it; "": it is for a pending end */
    struct turn_id turn;     /* whose end is pending, or of the sender */
    struct plain_id workflow;
    struct workflow_name hook;
    char *task_id;
    struct service_id sender; /* the service of the sender's turn; "": it has none */
    int attempt;
    struct buf input;
    char *data; /* the sender's, NULL: none */
    struct hook_run *run;
    struct hook_end end;
    struct mono_ms began;
    struct mono_ms again_at; /* hook_retry */
};

static void hooking_free(struct hooking *one)
{
    free(one->task_id);
    free(one->data);
    buf_done(&one->input);
    hook_end_done(&one->end);
    free(one);
}

static bool was_asked(const struct hooking *one)
{
    return one->request.s[0] != '\0';
}

static bool is_for(const struct hooking *one, const struct run *run)
{
    return run != NULL && one->state != HOOKING_gone && strcmp(one->run_id.s, run->id.s) == 0 &&
           one->epoch == run->epoch &&
           (was_asked(one) ? strcmp(one->request.s, run->asked.request.s) == 0
                           : strcmp(one->turn.s, run->pending.turn.s) == 0);
}

static struct hooking *find(const struct coordinator *c, const struct run *run, bool asked)
{
    struct hooking *one = c->hooks;
    while (one != NULL && (!is_for(one, run) || was_asked(one) != asked)) {
        one = one->next;
    }
    return one;
}

/* Is its pending end still to be decided? What was refused has a stage. */
static bool undecided(const struct run *run)
{
    return run->state == RUN_active || (run->state == RUN_waiting && run->stage.s[0] == '\0');
}

bool hooks_may_look(const struct run *run)
{
    return run->pending.turn.s[0] != '\0' && (undecided(run) || run->code == BATON_E_hook_retry);
}

bool hooks_lost(const struct coordinator *c, const struct run *run)
{
    return hooks_may_look(run) && find(c, run, false) == NULL;
}

bool hooks_none_for(const struct coordinator *c, const struct run *run,
                    const struct run_asked *asked)
{
    return find(c, run, asked != NULL) == NULL;
}

const struct hook_end *hooks_end_of(const struct coordinator *c, const struct run *run,
                                    const struct run_asked *asked)
{
    const struct hooking *one = find(c, run, asked != NULL);
    return one != NULL && one->state == HOOKING_ended ? &one->end : NULL;
}

void hooks_forget(struct coordinator *c, const struct run *run)
{
    struct hooking *one = find(c, run, false);
    /* What it has found may be what was refused. */
    const bool subject =
        run->code == BATON_E_subject_changed || run->code == BATON_E_subject_unavailable;
    if (one != NULL && one->state == HOOKING_ended &&
        (one->end.decision.code != BATON_OK || subject)) {
        one->state = HOOKING_gone; /* taken out by the next look */
    }
}

/* ---- wanting one ---- */

/* What it is to judge (H-29). */
static void write_input(const struct run *run, const struct run_turn *turn,
                        const struct handoff_result *result, const char *summary, const char *data,
                        const struct run_asked *asked, struct buf *out)
{
    struct jsonw w = jsonw_to(out);
    const struct workflow_transition *transition = result->transition;
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "hook", transition->hook->name.s);
    jsonw_key_text(&w, "run_id", run->id.s);
    jsonw_key_int(&w, "epoch", run->epoch);
    jsonw_key_text(&w, "task_id", run->task_id.s);
    jsonw_key_int(&w, "task_rev", run->task_rev);
    jsonw_key_text(&w, "task_status", task_status_word(run->task_status));
    jsonw_key_text(&w, "subject", run->subject);
    jsonw_key_text(&w, "from", asked != NULL ? asked->from : turn->slot.s);
    jsonw_key_text(&w, "transition", transition->name.s);
    jsonw_key(&w, "targets");
    jsonw_begin_array(&w);
    for (size_t slot = 0; slot < run->workflow->n_slots; slot++) {
        if ((result->targets & SLOT_BIT(slot)) != 0) {
            jsonw_text(&w, workflow_slot_text(run->workflow, slot).s);
        }
    }
    jsonw_end(&w);
    jsonw_key_plain(&w, "summary", summary, strlen(summary));
    if (data != NULL) {
        jsonw_key_raw(&w, "data", data, strlen(data));
    } else {
        jsonw_key_raw(&w, "data", "{}", 2);
    }
    const bool said = turn != NULL && turn->has_verdict;
    jsonw_key_text(&w, "verdict", said ? verdict_word(turn->verdict) : NULL);
    jsonw_key_text(&w, "turn_id", turn != NULL ? turn->id.s : NULL);
    jsonw_key_int(&w, "attempt", turn != NULL ? turn->attempt : 0);
    if (asked != NULL) {
        jsonw_key_text(&w, "asked_by", asked->by.s);
    }
    jsonw_end(&w);
    BATON_INVARIANT(buf_ok(out));
}

void hooks_want(struct coordinator *c, const struct run *run, const struct run_turn *turn,
                const struct handoff_result *result, const char *summary, const char *data,
                const struct run_asked *asked)
{
    if (find(c, run, asked != NULL) != NULL) {
        return; /* it runs: once for each decision, however slow it is (I35) */
    }
    struct hooking *one = calloc(1, sizeof(*one));
    BATON_INVARIANT(one != NULL);
    one->run_id = run->id;
    one->epoch = run->epoch;
    if (asked != NULL) {
        one->request = asked->request;
    }
    if (turn != NULL) {
        one->turn = turn->id;
    }
    one->workflow = run->workflow->name;
    one->hook = result->transition->hook->name;
    one->task_id = strdup(run->task_id.s);
    one->attempt = turn != NULL ? turn->attempt : 1;
    if (turn != NULL) {
        one->sender = turn->service;
    }
    one->data = data != NULL ? strdup(data) : NULL;
    BATON_INVARIANT(one->task_id != NULL && (data == NULL || one->data != NULL));
    write_input(run, turn, result, summary, data, asked, &one->input);
    struct hooking **at = &c->hooks;
    while (*at != NULL) {
        at = &(*at)->next;
    }
    *at = one; /* who wanted first runs first */
}

/* ---- starting one ---- */

static void end_unavailable(struct hooking *one, const char *text)
{
    one->state = HOOKING_ended;
    one->end.decision.code = BATON_E_hook_unavailable;
    snprintf(one->end.decision.text, sizeof(one->end.decision.text), "%.255s", text);
}

/* Where hooks of this coordinator have their scratch directories; what it left there before goes. */
static bool open_scratch(struct coordinator *c, struct baton_error *err)
{
    char *folder = NULL;
    if (c->hook_scratch != NULL) {
        return true;
    }
    if (mkdir(c->config->state_dir, 0700) != 0 && errno != EEXIST) {
        baton_fail(err, BATON_E_bad_config, "cannot make %s: %s", c->config->state_dir,
                   strerror(errno));
        return false;
    }
    BATON_INVARIANT(asprintf(&folder, "%s/scratch", c->config->state_dir) >= 0);
    const baton_code rc =
        scratch_open(folder, COORDINATOR_PRINCIPAL, c->id.s, false, &c->hook_scratch, err);
    free(folder);
    char **left = rc == BATON_OK ? scratch_left(c->hook_scratch) : NULL;
    for (size_t i = 0; left != NULL && left[i] != NULL; i++) {
        while (!scratch_remove_step(left[i], 10000)) {
        }
        free(left[i]);
    }
    free(left);
    return rc == BATON_OK;
}

static const struct workflow_hook *hook_named(const struct workflow *workflow, const char *name)
{
    for (size_t i = 0; i < workflow->n_hooks; i++) {
        if (strcmp(workflow->hooks[i].name.s, name) == 0) {
            return &workflow->hooks[i];
        }
    }
    return NULL;
}

static void start(struct coordinator *c, struct hooking *one)
{
    struct workflow *workflow = NULL;
    struct baton_error err = {BATON_OK, ""};
    if (!open_scratch(c, &err) ||
        workflow_named(c->config, one->workflow.s, &workflow, &err) != BATON_OK) {
        end_unavailable(one, err.text);
        return;
    }
    const struct workflow_hook *hook = hook_named(workflow, one->hook.s);
    if (hook == NULL || !hook->enabled) {
        end_unavailable(one, hook == NULL ? "the workflow's file here has it no more"
                                          : "the workflow's file here has it switched off");
        workflow_free(workflow);
        return;
    }
    const struct config_service *sender = config_service_find(c->config, one->sender.s);
    const struct hook_spec spec = {.take_workflow = workflow,
                                   .hook = hook,
                                   .scratch = c->hook_scratch,
                                   .place = sender != NULL ? sender->place : NULL,
                                   .run_id = one->run_id.s,
                                   .task_id = one->task_id,
                                   .attempt = one->attempt,
                                   .input = one->input.data,
                                   .input_len = one->input.len,
                                   .data = one->data,
                                   .mail = c->mail};
    if (hook_start(&spec, &one->run, &err) != BATON_OK) {
        end_unavailable(one, err.text);
        return;
    }
    one->state = HOOKING_runs;
    one->began = mono_now();
    c->n_hooks_run++;
    diag_line(DIAG_info, "hook.started", D_TEXT("run", one->run_id.s), D_TEXT("turn", one->turn.s),
              D_TEXT("hook", one->hook.s));
}

/* ---- its end ---- */

void hooks_heard(struct coordinator *c, void *mail)
{
    struct hooking *one = c->hooks;
    while (one != NULL && one->run != mail) {
        one = one->next;
    }
    BATON_INVARIANT(one != NULL);
    hook_join(one->run, &one->end);
    one->run = NULL;
    c->n_hooks_run--;
    const struct handoff_hook_end *end = &one->end.decision;
    diag_line(DIAG_info, "hook.ended", D_TEXT("run", one->run_id.s), D_TEXT("turn", one->turn.s),
              D_TEXT("hook", one->hook.s), D_CODE("code", end->code), D_TEXT("text", end->text),
              D_BOOL("patched", one->end.summary != NULL || one->end.data != NULL),
              D_BOOL("counts", one->state == HOOKING_runs),
              D_INT("ms", mono_now().v - one->began.v));
    if (one->state == HOOKING_runs) {
        one->state = HOOKING_ended;
        one->again_at.v = mono_now().v + end->retry_after_ms;
    }
    engine_again(c->engine);
}

/* It is decided once more, with what its hook said or for a new hook. */
static void decide(struct coordinator *c, const struct hooking *one)
{
    struct run *run = NULL;
    if (change_of(c, one->run_id.s, &run) != BATON_OK || !is_for(one, run)) {
        return; /* a decision before it in this batch has changed that */
    }
    if (was_asked(one)) {
        asked_again(c, run);
    } else {
        advance_pending(c, run);
    }
}

/* What is to be done about one, by what is committed. */
static void look_one(struct coordinator *c, struct hooking *one)
{
    const struct image_row *row = image_find(&c->image, one->run_id.s);
    const struct run *run = row != NULL ? row->run : NULL;
    const struct mono_ms now = mono_now();
    if (one->state == HOOKING_gone) {
        return;
    }
    const bool open = was_asked(one) || (run != NULL && undecided(run));
    if (!is_for(one, run) || (one->state == HOOKING_wanted && !open)) {
        one->state = HOOKING_gone; /* cancelled, moved away, or its batch was dropped (H-27) */
        if (one->run != NULL) {
            hook_stop(one->run);
        }
        return;
    }
    if (one->state == HOOKING_wanted && c->n_hooks_run < HOOKS_AT_ONCE) {
        start(c, one);
    }
    if (one->state == HOOKING_ended && open) {
        decide(c, one);
    } else if (one->state == HOOKING_ended && run->code == BATON_E_hook_retry) {
        if (one->again_at.v <= now.v) {
            one->state = HOOKING_gone;
            decide(c, one);
        } else if (one->again_at.v < c->look_at.v) {
            c->look_at = one->again_at;
        }
    }
}

void hooks_look(struct coordinator *c)
{
    const struct hooking *last = c->hooks;
    while (last != NULL && last->next != NULL) {
        last = last->next;
    }
    for (struct hooking *one = c->hooks; one != NULL; one = one->next) {
        look_one(c, one);
        if (one == last) {
            break; /* what this look has added is not committed yet */
        }
    }
    for (struct hooking **at = &c->hooks; *at != NULL;) {
        struct hooking *one = *at;
        if (one->state == HOOKING_gone && one->run == NULL) {
            *at = one->next;
            hooking_free(one);
        } else {
            at = &one->next;
        }
    }
}

void hooks_done(struct coordinator *c)
{
    for (struct hooking *one = c->hooks; one != NULL; one = one->next) {
        if (one->run != NULL) {
            hook_stop(one->run);
        }
    }
    while (c->hooks != NULL) {
        struct hooking *one = c->hooks;
        c->hooks = one->next;
        if (one->run != NULL) {
            hook_join(one->run, &one->end);
        }
        hooking_free(one);
    }
    if (c->hook_scratch != NULL) {
        (void)rmdir(c->hook_scratch);
        free(c->hook_scratch);
    }
}
