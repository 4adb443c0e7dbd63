/*
 * Asking: signed requests of runs, and the coordinator's answers.
 *
 * In: cmd_runs_ask.c  Out: common/record/request.c, common/log/log.c
 *
 * What can be refused is refused before anything is sent: an executor may start nothing (L-05), and who
 * lacks the right is told so. The coordinator judges again. Main thread.
 */
#ifndef BATON_PRODUCER_ASK_H
#define BATON_PRODUCER_ASK_H

#include "baton/code.h"
#include "common/record/request.h"
#include "producer/session.h"

/* What came of a request that is in the log. */
struct asked {
    bool answered;          /* false: no coordinator answered in time; it will be taken in */
    baton_code code;        /* the answer */
    struct outcome *answer; /* its result says more; NULL unless answered */
    size_t n_turns;         /* of a handoff that was taken, or is there already */
    size_t n_claimed;       /* of these: workers have claimed them; 0 unless that was waited for */
};
void asked_done(struct asked *asked);

/* What the asking process says of itself, and how long it waits. */
struct ask_options {
    bool unattended; /* nobody is there */
    bool wait_claim; /* a handoff: until each of its turns is claimed, or the time is over */
    int64_t timeout_ms;
};

/* What is refused before anything is sent: nested_start, person_required, not_permitted. Says in the request
 * who asks it (asker). */
baton_code ask_check(const struct session *session, struct request *request, bool unattended,
                     struct baton_error *err);

/*
 * Sends the request (id, at and asker are set here) and waits for its answer. An asker
 * `confirmed` stays so under an agent's marker only, and where somebody is there. unattended:
 * whether nobody is; then confirm_needed is answered as unattended_denied. nested_start (an attempt asks for a start), person_required (an attempt, or
 * nobody or an agent, asks what only people may), not_permitted, topic_missing.
 */
baton_code ask_send(struct session *session, struct request *request,
                    const struct ask_options *options, struct asked *ret_asked,
                    struct baton_error *err);

#endif
