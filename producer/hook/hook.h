/*
 * Hooks of workflows: a program that looks at one handoff before it is taken, and what its answer means.
 *
 * It runs under baton-guard on a thread of its own, so that whoever decides never waits for it; its end
 * comes as a message. Whatever is not a clear answer refuses (H-38): hook_unavailable.
 *
 * In: producer/coordinator/hooks.c  Out: common/process
 */
#ifndef BATON_PRODUCER_HOOK_HOOK_H
#define BATON_PRODUCER_HOOK_HOOK_H

#include "baton/code.h"
#include "common/base/mailbox.h"
#include "common/process/child.h"
#include "producer/handoff/handoff.h"

/* What came of a hook: what the operation is told, and what its patch made of summary and data. */
struct hook_end {
    struct handoff_hook_end decision;
    char *summary; /* NULL: as it was; else it counts from now on (H-34) */
    char *data;    /* the same: a raw JSON object, the sender's with the patch over it */
};

void hook_end_done(struct hook_end *end);

/* ---- its answer (answer.c) ---- */

/* How a hook's program ended, and what stood on its descriptor 3. */
struct hook_said {
    const char *bytes;
    size_t len;
    bool overflow;  /* there was more than LIMIT_RESULT */
    bool timed_out; /* it was killed when its timeout was over */
    struct child_status status;
};

/*
 * Judges an answer; data is the sender's (a raw JSON object, or NULL), over which a patch is laid. What a
 * patch may not touch is left out with one log line, hook.patch_stripped (H-35); what it may is
 * validated as a sender's would be: patch_invalid (H-36). Pure but for that line. Source: WORKFLOW.md,
 * "Hooks".
 */
void hook_judge(const struct workflow_hook *hook, const struct hook_said *said, const char *data,
                struct hook_end *ret_end);

/* ---- its run (run.c) ---- */

struct hook_run;

struct hook_spec {
    /* The hook as it stands on disk, with its workflow, which the run takes. */
    struct workflow *take_workflow;
    const struct workflow_hook *hook;
    const char *scratch; /* the folder where its scratch directory is made */
    const char *place;   /* where it starts; NULL, or not there: in its scratch directory */
    const char *run_id;
    const char *task_id;
    int attempt;       /* of the sender's turn: marks whatever it starts (L-09) */
    const char *input; /* for its standard input */
    size_t input_len;
    const char *data;     /* the sender's, see hook_judge; NULL: none */
    struct mailbox *mail; /* gets the hook_run when it has ended; borrowed, has room for it */
};

/* Starts it; copies what the spec points to. Errors: service_unavailable, no_memory; take_workflow is
 * taken anyway. That a program is missing or cannot be started is an end, not an error. */
baton_code hook_start(const struct hook_spec *spec, struct hook_run **ret_run,
                      struct baton_error *err);
/* Kills what it started, now; its end comes soon. Any thread, any number of times. */
void hook_stop(struct hook_run *run);
/* Waits for its thread, gives its end, which the caller ends by hook_end_done, and frees it. Without
 * waiting once its message has come. */
void hook_join(struct hook_run *run, struct hook_end *ret_end);

#endif
