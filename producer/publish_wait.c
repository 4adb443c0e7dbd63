/*
 * Waiting for what becomes of a turn that was just published.
 * In: producer/publish.c
 * Out: topics/outcomes.c
 */
#include "producer/publish.h"

#include "topics/outcomes.h"

#include <string.h>

struct waiting {
    struct outcome_watch *watch;
    const struct turn *turn;
    enum publish_wait wait;
    struct published *published;
    bool rewound;
    int after; /* rewound: ends of attempts up to this one are of its past */
};

static bool other_content(const struct outcome *outcome, const struct turn *turn)
{
    return outcome->has_role &&
           memcmp(outcome->content.b, turn->content.b, sizeof(turn->content.b)) != 0;
}

static baton_code conflict(const struct turn *turn, struct baton_error *err)
{
    return baton_fail(err, BATON_E_turn_conflict,
                      "turn %s is known with another content: its idempotency key was used for "
                      "something else",
                      turn->id.s);
}

/* Is the turn over, as far as this service knows? */
static bool ended(enum turn_state state)
{
    return state == TURN_completed || state == TURN_parked || state == TURN_cancelled;
}

static void keep(struct waiting *w, struct outcome *take_outcome)
{
    outcome_free(w->published->outcome);
    w->published->outcome = take_outcome;
}

/* A repeat was answered with what the turn is now. True: nothing more is waited for. */
static bool on_duplicate(struct waiting *w, struct outcome *take_outcome, baton_code *ret_rc,
                         struct baton_error *err)
{
    enum turn_state state = take_outcome->state;
    bool known = take_outcome->has_state;
    int attempt = take_outcome->attempt;
    w->published->answered = true;
    w->published->deduped = true;
    if (known && state != TURN_queued) {
        w->published->delivered = true;
    }
    if (known && ended(state)) {
        keep(w, take_outcome);
        return true;
    }
    outcome_free(take_outcome);
    if (known && state == TURN_delegated && w->wait == PUBLISH_WAIT_end && !w->rewound) {
        w->after = attempt;
        w->rewound = true; /* its end may lie in the past, told by the service that has it now */
        *ret_rc = outcome_watch_rewind(w->watch, err);
        return *ret_rc != BATON_OK;
    }
    return w->wait == PUBLISH_WAIT_claim && w->published->delivered;
}

static bool on_outcome(struct waiting *w, struct outcome *take_outcome, baton_code *ret_rc,
                       struct baton_error *err)
{
    bool past = w->rewound && take_outcome->attempt <= w->after;
    if (strcmp(take_outcome->turn_id.s, w->turn->id.s) != 0 || past) {
        outcome_free(take_outcome);
        return false;
    }
    /* Whatever is told about the turn carries the content that the log knows: if it is not ours,
     * ours was refused. Another publisher's conflict with this turn carries ours. */
    if (other_content(take_outcome, w->turn)) {
        outcome_free(take_outcome);
        *ret_rc = conflict(w->turn, err);
        return true;
    }
    switch (take_outcome->event) {
    case OUTCOME_claimed:
        w->published->delivered = true;
        w->published->answered = true;
        break;
    case OUTCOME_duplicate:
        return on_duplicate(w, take_outcome, ret_rc, err);
    case OUTCOME_completed:
    case OUTCOME_parked:
    case OUTCOME_cancelled:
        w->published->delivered = true;
        w->published->answered = true;
        keep(w, take_outcome);
        return true;
    case OUTCOME_delegated: /* the next service tells the end under the same key */
        w->published->delivered = true;
        break;
    case OUTCOME_run_ended:
    case OUTCOME_answer:
    case OUTCOME_EVENT_COUNT:
        break;
    }
    outcome_free(take_outcome);
    return w->wait == PUBLISH_WAIT_claim && w->published->delivered;
}

baton_code publish_wait_for(struct outcome_watch *watch, const struct turn *turn,
                            enum publish_wait wait, int64_t timeout_ms, struct published *published,
                            struct baton_error *err)
{
    struct waiting w = {.watch = watch, .turn = turn, .wait = wait, .published = published};
    struct mono_ms until = {mono_now().v + timeout_ms};
    baton_code rc = BATON_OK;
    bool done = false;
    while (rc == BATON_OK && !done) {
        struct outcome *outcome = NULL;
        rc = outcome_watch_next(watch, until, &outcome, err);
        if (rc == BATON_OK && outcome == NULL) {
            published->timed_out = true;
            break;
        }
        if (rc == BATON_OK) {
            done = on_outcome(&w, outcome, &rc, err);
        }
    }
    return rc;
}
