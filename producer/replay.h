/*
 * Replaying dead letters: a parked turn by a signed control record, a rejected record by writing
 * its original bytes to its topic again. Same turn, same role, next attempt.
 *
 * In: cmd_dlq_replay.c  Out: operate.c, written.c, resign.c, common/log/log.c
 */
#ifndef BATON_PRODUCER_REPLAY_H
#define BATON_PRODUCER_REPLAY_H

#include "baton/code.h"
#include "producer/operate_many.h"
#include "producer/session.h"

#include <stdbool.h>

/* REPLAYED(word, text): what came of a replay. */
#define REPLAYED(ROW)                                                                              \
    ROW(replayed, "its owner has queued the next attempt")                                         \
    ROW(passed, "its owner has passed it on")                                                      \
    ROW(queued, "the replay is in the log; no worker has answered yet")                            \
    ROW(already, "it was replayed or published again before; nothing was done")                    \
    ROW(written, "its original bytes are in its topic again")                                      \
    ROW(signed, "expired: signed again by its origin, and in its topic")                           \
    ROW(waits, "its bytes are in its topic already; nobody has taken them yet")                    \
    ROW(later, "a later letter has the same bytes: that one is replayed, not this")                \
    ROW(held, "it was rejected in the same way again after a replay; --again replays it, too")     \
    ROW(would, "nothing was done (dry run)")

#define REPLAYED_ENUM(word, text) REPLAYED_##word,
enum replayed { REPLAYED(REPLAYED_ENUM) REPLAYED_COUNT };
#undef REPLAYED_ENUM
const char *replayed_word(enum replayed what);
const char *replayed_text(enum replayed what);

struct replay_request {
    const char *to; /* parked turns: the service to pass it to; NULL: here */
    bool again;     /* lifts the budget of replays and the loop guard */
    const char *const
        *without; /* rejected records: names of headers to leave out, beside the context */
    size_t n_without;
    bool hold; /* rejected records: what was rejected in the same way again is left alone */
    bool dry_run;
    int64_t timeout_ms;
};

struct replay_result {
    enum replayed what;
    char turn_id[33]; /* "" for a rejected record whose key is no turn id */
    char service[SERVICE_MAX + 1];
    char to[SERVICE_MAX + 1];   /* "" unless the replay names another service */
    char role[16];              /* "" if a rejected record claims none */
    int attempt;                /* parked turns: the attempt that was named */
    char signed_by[ID_MAX + 1]; /* rejected and expired: the origin that signs it again; "" else */
    char dropped[512];          /* rejected: names of the headers that are left out, ", " between */
};

/*
 * Codes: turn_not_found, turn_closed, not_parked, replays_exhausted, not_permitted, and those of
 * the log.
 */
baton_code replay_turn(struct session *session, const char *turn_id,
                       const struct replay_request *request, struct replay_result *ret_result,
                       struct baton_error *err);

/* A turn that was just read as parked at that attempt; texts are borrowed. */
struct parked {
    const char *turn_id;
    const char *service;
    const char *run_id; /* "" outside a run */
    const char *role;
    int attempt;
};
struct replay_outcome {
    struct replay_result result;
    baton_code rc;
    struct baton_error err;
};
/* The same of at most OPERATE_BATCH turns of one service, without looking for them: whether each is parked at that
 * attempt still, its owner judges. */
void replay_parked(struct session *session, struct operates *operates, const struct parked *parked,
                   size_t count, const struct replay_request *request,
                   struct replay_outcome *ret_outcomes);

/* What is asked and told while rejected records are written again. */
struct replay_hooks {
    bool (*next)(void *arg); /* before each; false: stop. NULL: go on */
    void (*done)(void *arg, const char *id, const struct replay_result *result, baton_code rc,
                 const struct baton_error *err);
    void *arg;
};
/*
 * replay_letter.c. Rejected records by their ids, each told by hooks->done: handoff_not_found; invalid_request: the
 * letter does not say which topic of the service it came from; unauthenticated: it expired, and its origin's key is
 * not here; not_permitted. An error is returned only where none could be judged.
 */
baton_code replay_letters(struct session *session, const char *const *ids, size_t count,
                          const struct replay_request *request, const struct replay_hooks *hooks,
                          struct baton_error *err);
/* One of them. */
baton_code replay_letter(struct session *session, const char *letter_id,
                         const struct replay_request *request, struct replay_result *ret_result,
                         struct baton_error *err);

#endif
