/*
 * Replaying dead letters: a parked turn by a signed control record, a rejected record by writing
 * its original bytes to its topic again. Same turn, same role, next attempt.
 *
 * In: cmd_dlq.c  Out: operate.c, common/log/log.c
 */
#ifndef BATON_PRODUCER_REPLAY_H
#define BATON_PRODUCER_REPLAY_H

#include "baton/code.h"
#include "producer/session.h"

#include <stdbool.h>

/* REPLAYED(word, text): what came of a replay. */
#define REPLAYED(ROW)                                                                              \
    ROW(replayed, "its owner has queued the next attempt")                                         \
    ROW(passed, "its owner has passed it on")                                                      \
    ROW(queued, "the replay is in the log; no worker has answered yet")                            \
    ROW(already, "it was replayed before; nothing was done")                                       \
    ROW(written, "its original bytes are in its topic again")                                      \
    ROW(would, "nothing was done (dry run)")

#define REPLAYED_ENUM(word, text) REPLAYED_##word,
enum replayed { REPLAYED(REPLAYED_ENUM) REPLAYED_COUNT };
#undef REPLAYED_ENUM
const char *replayed_word(enum replayed what);
const char *replayed_text(enum replayed what);

struct replay_request {
    const char *to; /* parked turns: the service to pass it to; NULL: here */
    bool again;     /* lifts the budget of replays and the loop guard */
    bool dry_run;
    int64_t timeout_ms;
};

struct replay_result {
    enum replayed what;
    char turn_id[33]; /* "" for a rejected record whose key is no turn id */
    char service[SERVICE_MAX + 1];
    char to[SERVICE_MAX + 1]; /* "" unless the replay names another service */
    char role[16];            /* "" if a rejected record claims none */
    int attempt;              /* parked turns: the attempt that was named */
};

/*
 * Codes: turn_not_found, turn_closed, not_parked, replays_exhausted, not_permitted, and those of
 * the log.
 */
baton_code replay_turn(struct session *session, const char *turn_id,
                       const struct replay_request *request, struct replay_result *ret_result,
                       struct baton_error *err);
/* handoff_not_found; invalid_request: the letter does not say which topic of the service it came
 * from. */
baton_code replay_letter(struct session *session, const char *letter_id,
                         const struct replay_request *request, struct replay_result *ret_result,
                         struct baton_error *err);

#endif
