/*
 * Outcomes: what is told about a turn, in the transaction of the decision (tell.c).
 *
 * Included by worker.c, round.c, and by what decides about turns. Engine's thread.
 */
#ifndef BATON_WORKER_TELL_H
#define BATON_WORKER_TELL_H

#include "baton/code.h"
#include "common/base/buf.h"
#include "common/base/limits.h"
#include "common/record/outcome.h"
#include "common/record/signer.h"

#include <stdbool.h>
#include <stddef.h>

struct turn_record;
struct worker;

/* An outcome that goes out with the batch; signed in parallel just before the commit. */
struct telling {
    struct buf value;
    char key[ID_MAX + 1];
    struct proof_text proof;
    bool is_signed;
    char *traceparent;
    char **passes;
    size_t n_passes;
};

/* Can outcomes be written, as far as is known? What needs one waits otherwise, the rest goes on. */
bool can_tell(const struct worker *w);
void tell_turn(struct worker *w, const struct turn_record *record, enum outcome_event event);
void tell_answer(struct worker *w, const struct turn_record *record, const char *turn_id,
                 const char *answers_id, const char *answers_kind, baton_code code);
/* Signs what is to be told and puts it into the batch. */
void tell_all(struct worker *w);
void tell_clear(struct worker *w);

#endif
