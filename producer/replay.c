/*
 * Replays a parked turn.
 * In: producer/cmd_dlq_replay.c
 * Out: producer/operate.c, topics/turn_log.c
 */
#include "producer/replay.h"

#include "common/base/check.h"
#include "producer/operate.h"
#include "topics/turn_log.h"

#include <stdio.h>
#include <string.h>

#define REPLAYED_WORD(word, text) #word,
#define REPLAYED_TEXT(word, text) text,
static const char *const words[] = {REPLAYED(REPLAYED_WORD)};
static const char *const texts[] = {REPLAYED(REPLAYED_TEXT)};
#undef REPLAYED_WORD
#undef REPLAYED_TEXT

const char *replayed_word(enum replayed what)
{
    BATON_PRE((unsigned)what < REPLAYED_COUNT);
    return words[what];
}

const char *replayed_text(enum replayed what)
{
    BATON_PRE((unsigned)what < REPLAYED_COUNT);
    return texts[what];
}

/* ---- a parked turn ---- */

static baton_code find(struct session *session, const char *turn_id, struct turn_life *ret_life,
                       struct baton_error *err)
{
    const char *waits_at = NULL;
    baton_code rc = turn_log_find(session->log, session->config, turn_id, ret_life, err);
    if (rc != BATON_OK || ret_life->found) {
        return rc;
    }
    if ((rc = turn_log_waiting(session->log, session->config, turn_id, &waits_at, err)) !=
        BATON_OK) {
        return rc;
    }
    return waits_at != NULL
               ? baton_fail(err, BATON_E_not_parked,
                            "turn %s waits at %s and was not taken in yet: there is nothing to "
                            "replay",
                            turn_id, waits_at)
               : baton_fail(err, BATON_E_turn_not_found, "no turn log knows turn %s", turn_id);
}

/* What the turn's state means for a replay. *ret_already: an earlier one was taken. */
static baton_code judge(const struct turn_life *life, const struct replay_request *request,
                        bool *ret_already, struct baton_error *err)
{
    const struct turn_record *now = &life->now;
    *ret_already = false;
    switch (now->state) {
    case TURN_parked:
        return BATON_OK;
    case TURN_completed:
    case TURN_cancelled:
        return baton_fail(err, BATON_E_turn_closed,
                          "turn %s is %s: a closed turn is never replayed", now->id.s,
                          turn_state_word(now->state));
    case TURN_queued:
    case TURN_running:
        *ret_already =
            now->replays > 0 && (request->to == NULL || strcmp(life->service, request->to) == 0);
        break;
    case TURN_delegated: /* and not taken in there yet */
        *ret_already =
            now->replays > 0 && request->to != NULL && strcmp(now->to_service.s, request->to) == 0;
        break;
    case TURN_STATE_COUNT:
        break;
    }
    if (*ret_already) {
        return BATON_OK;
    }
    return baton_fail(err, BATON_E_not_parked, "turn %s is %s at %s, not parked", now->id.s,
                      turn_state_word(now->state), life->service);
}

/* The owner found the turn in another state: was it another replay of the same attempt? */
static baton_code second_look(struct session *session, const char *turn_id, int attempt,
                              bool *ret_already, struct baton_error *err)
{
    struct turn_life life;
    baton_code rc = turn_log_find(session->log, session->config, turn_id, &life, err);
    const struct turn_record *now = &life.now;
    *ret_already = rc == BATON_OK && life.found && now->replays > 0 &&
                   (now->attempt > attempt || now->to_attempt > attempt);
    turn_life_done(&life);
    return rc;
}

/* What the owner's refusal means for who asked. */
static baton_code refused(const struct parked *parked, const struct replay_request *request,
                          baton_code code, struct baton_error *err)
{
    if (request->to != NULL && code == BATON_E_not_permitted) {
        return baton_fail(
            err, code,
            "turn %s at %s is not passed on to %s: either that has had the turn, or "
            "it does not serve the role %s, or %s may not pass that role to it; `baton "
            "config check` and `baton keys list` show which",
            parked->turn_id, parked->service, request->to, parked->role, parked->service);
    }
    if (request->to != NULL && code == BATON_E_topic_missing) {
        return baton_fail(err, code, "service %s has no topic: `baton topics apply` makes it",
                          request->to);
    }
    return baton_fail(err, code, "turn %s at %s: %s%s", parked->turn_id, parked->service,
                      baton_code_text(code),
                      code == BATON_E_replays_exhausted ? "; --again replays it once more" : "");
}

static struct control control_of(const struct parked *parked, const struct replay_request *request)
{
    struct control control = {.kind = CONTROL_replay,
                              .turn_id = turn_id_of(parked->turn_id),
                              .attempt = parked->attempt,
                              .again = request->again};
    if (request->to != NULL) {
        control.to = service_id_of(request->to);
    }
    return control;
}

/* What the owner's answer means. */
static baton_code hear_owner(struct session *session, const struct parked *parked,
                             const struct replay_request *request, const struct operated *operated,
                             struct replay_result *result, struct baton_error *err)
{
    baton_code rc = BATON_OK;
    bool already = false;
    if (!operated->answered || operated->code == BATON_OK) {
        result->what = !operated->answered   ? REPLAYED_queued
                       : request->to != NULL ? REPLAYED_passed
                                             : REPLAYED_replayed;
        return BATON_OK;
    }
    if (operated->code == BATON_E_not_parked || operated->code == BATON_E_turn_closed) {
        rc = second_look(session, parked->turn_id, parked->attempt, &already, err);
    }
    if (rc == BATON_OK && already) {
        result->what = REPLAYED_already;
        return BATON_OK;
    }
    return rc != BATON_OK ? rc : refused(parked, request, operated->code, err);
}

static baton_code send_replay(struct session *session, const struct parked *parked,
                              const struct replay_request *request, struct replay_result *result,
                              struct baton_error *err)
{
    struct control control = control_of(parked, request);
    struct operated operated;
    baton_code rc = operate_turn(session, &control, parked->service, parked->run_id,
                                 request->timeout_ms, &operated, err);
    return rc == BATON_OK ? hear_owner(session, parked, request, &operated, result, err) : rc;
}

static baton_code check_target(struct session *session, const struct replay_request *request,
                               struct baton_error *err)
{
    return request->to != NULL ? config_service_get(session->config, request->to, NULL, err)
                               : BATON_OK;
}

static void begin_result(const struct parked *parked, const struct replay_request *request,
                         struct replay_result *result)
{
    *result = (struct replay_result){.attempt = parked->attempt};
    snprintf(result->turn_id, sizeof(result->turn_id), "%s", parked->turn_id);
    snprintf(result->service, sizeof(result->service), "%s", parked->service);
    snprintf(result->role, sizeof(result->role), "%s", parked->role);
    snprintf(result->to, sizeof(result->to), "%s", request->to != NULL ? request->to : "");
}

static baton_code replay_here(struct session *session, const struct parked *parked,
                              const struct replay_request *request, struct replay_result *result,
                              struct baton_error *err)
{
    baton_code rc = identity_may_operate(&session->identity, parked->service, err);
    result->what = REPLAYED_would;
    return rc == BATON_OK && !request->dry_run ? send_replay(session, parked, request, result, err)
                                               : rc;
}

void replay_parked(struct session *session, struct operates *operates, const struct parked *parked,
                   size_t count, const struct replay_request *request,
                   struct replay_outcome *ret_outcomes)
{
    struct operate_one all[OPERATE_BATCH];
    struct baton_error err = {BATON_OK, ""};
    BATON_PRE(count > 0 && count <= OPERATE_BATCH);
    baton_code rc = check_target(session, request, &err);
    if (rc == BATON_OK) {
        rc = identity_may_operate(&session->identity, parked[0].service, &err);
    }
    for (size_t i = 0; i < count; i++) {
        begin_result(&parked[i], request, &ret_outcomes[i].result);
        ret_outcomes[i].result.what = REPLAYED_would;
        all[i] = (struct operate_one){.control = control_of(&parked[i], request),
                                      .run_id = parked[i].run_id};
    }
    if (rc == BATON_OK && !request->dry_run) {
        rc = operates_send(operates, parked[0].service, all, count, request->timeout_ms, &err);
    }
    for (size_t i = 0; i < count; i++) {
        struct replay_outcome *one = &ret_outcomes[i];
        one->rc = rc;
        one->err = err;
        if (rc == BATON_OK && !request->dry_run) {
            one->rc =
                hear_owner(session, &parked[i], request, &all[i].operated, &one->result, &one->err);
        }
    }
}

baton_code replay_turn(struct session *session, const char *turn_id,
                       const struct replay_request *request, struct replay_result *ret_result,
                       struct baton_error *err)
{
    struct turn_life life = {.found = false};
    bool already = false;
    baton_code rc;
    memset(ret_result, 0, sizeof(*ret_result));
    snprintf(ret_result->turn_id, sizeof(ret_result->turn_id), "%s", turn_id);
    if ((rc = check_target(session, request, err)) != BATON_OK ||
        (rc = find(session, turn_id, &life, err)) != BATON_OK ||
        (rc = judge(&life, request, &already, err)) != BATON_OK) {
        goto out;
    }
    const struct parked parked = {life.now.id.s, life.service, life.now.run_id.s,
                                  role_word(life.now.role), life.now.attempt};
    begin_result(&parked, request, ret_result);
    if (already) {
        ret_result->what = REPLAYED_already;
    } else {
        rc = replay_here(session, &parked, request, ret_result, err);
    }
out:
    turn_life_done(&life);
    return rc;
}
