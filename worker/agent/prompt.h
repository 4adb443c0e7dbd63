/*
 * Prompts: a template for each role, filled with a turn. Shipped ones (prompts/<role>.txt) may be
 * replaced by files of the same names in a folder that the configuration names.
 *
 * A template holds {{name}} where a value goes: role, verdicts, task, task_rev, run, intent, summary,
 * data, payload, access, answer. Values are put in as they are and never searched again, so nothing in a
 * turn can name another value. What the answer must look like is added at the end where a template
 * does not say {{answer}}.
 *
 * Templates are const once loaded: any thread may use them. Called by worker/executor/run_agent.c and
 * `baton doctor`.
 */
#ifndef BATON_WORKER_AGENT_PROMPT_H
#define BATON_WORKER_AGENT_PROMPT_H

#include "baton/code.h"
#include "common/base/buf.h"
#include "common/base/role.h"

#include <stdbool.h>
#include <stdint.h>

#define PROMPT_TEMPLATE_MAX (64 * 1024)
#define PROMPT_MARK_MAX 16
#define PROMPT_PAYLOAD_FILE "payload" /* in the scratch directory: a payload that is no text */

struct prompts {
    char *texts[ROLE_COUNT];
};

/* folder NULL: the shipped ones; of a folder those that it has. bad_config: a file cannot be read, is
 * too large, is no text, or names a value that there is not. */
baton_code prompts_load(const char *folder, struct prompts *ret_prompts, struct baton_error *err);
void prompts_done(struct prompts *prompts);

/* What a prompt is filled with; borrowed. */
struct prompt_values {
    enum role role;
    verdict_set verdicts; /* that it may give; 0: all of the role */
    const char *task;
    int32_t task_rev;
    const char *run; /* "" outside a run */
    const char *intent;
    const char
        *json; /* the turn's bytes, verified: summary, data and payload are taken from them */
    size_t json_len;
    bool read_only;   /* the place must stay as it is */
    bool place;       /* there is a place: the working directory is more than scratch */
    bool schema;      /* the verdict is asked for by a schema, not in the text */
    const char *mark; /* at most PROMPT_MARK_MAX characters that the payload's author cannot know:
                           they stand at both ends of it, so that it cannot pretend to have ended */
    const char *payload_path; /* where a payload that is no text will lie */
};

/* Appends the prompt to text, and to file the bytes of a payload that is no text (nothing otherwise).
 * bad_request: the turn has no such form. */
baton_code prompt_fill(const struct prompts *prompts, const struct prompt_values *values,
                       struct buf *text, struct buf *file, struct baton_error *err);

#endif
