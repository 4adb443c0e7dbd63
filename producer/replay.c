/*
 * Replays one dead letter.
 * In: producer/cmd_dlq.c
 * Out: producer/operate.c, common/log/log.c
 */
#include "producer/replay.h"

#include "common/base/check.h"
#include "common/base/text.h"
#include "producer/operate.h"
#include "topics/catalogue.h"
#include "topics/letters.h"
#include "topics/scan.h"
#include "topics/turn_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEND_TIMEOUT_MS 10000

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
static baton_code refused(const struct turn_life *life, const struct replay_request *request,
                          baton_code code, struct baton_error *err)
{
    if (request->to != NULL && code == BATON_E_not_permitted) {
        return baton_fail(
            err, code,
            "turn %s at %s is not passed on to %s: either that has had the turn, or "
            "it does not serve the role %s, or %s may not pass that role to it; `baton "
            "config check` and `baton keys list` show which",
            life->now.id.s, life->service, request->to, role_word(life->now.role), life->service);
    }
    if (request->to != NULL && code == BATON_E_topic_missing) {
        return baton_fail(err, code, "service %s has no topic: `baton topics apply` makes it",
                          request->to);
    }
    return baton_fail(err, code, "turn %s at %s: %s%s", life->now.id.s, life->service,
                      baton_code_text(code),
                      code == BATON_E_replays_exhausted ? "; --again replays it once more" : "");
}

static baton_code send_replay(struct session *session, const struct turn_life *life,
                              const struct replay_request *request, struct replay_result *result,
                              struct baton_error *err)
{
    struct control control = {.kind = CONTROL_replay,
                              .turn_id = life->now.id,
                              .attempt = life->now.attempt,
                              .again = request->again};
    struct operated operated;
    bool already = false;
    if (request->to != NULL) {
        control.to = service_id_of(request->to);
    }
    baton_code rc = operate_turn(session, &control, life->service, life->now.run_id.s,
                                 request->timeout_ms, &operated, err);
    if (rc != BATON_OK) {
        return rc;
    }
    if (!operated.answered || operated.code == BATON_OK) {
        result->what = !operated.answered    ? REPLAYED_queued
                       : request->to != NULL ? REPLAYED_passed
                                             : REPLAYED_replayed;
        return BATON_OK;
    }
    if (operated.code == BATON_E_not_parked || operated.code == BATON_E_turn_closed) {
        rc = second_look(session, life->now.id.s, life->now.attempt, &already, err);
    }
    if (rc == BATON_OK && already) {
        result->what = REPLAYED_already;
        return BATON_OK;
    }
    return rc != BATON_OK ? rc : refused(life, request, operated.code, err);
}

static baton_code check_target(struct session *session, const struct replay_request *request,
                               struct baton_error *err)
{
    return request->to != NULL ? config_service_get(session->config, request->to, NULL, err)
                               : BATON_OK;
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
    ret_result->attempt = life.now.attempt;
    snprintf(ret_result->service, sizeof(ret_result->service), "%s", life.service);
    snprintf(ret_result->role, sizeof(ret_result->role), "%s", role_word(life.now.role));
    snprintf(ret_result->to, sizeof(ret_result->to), "%s", request->to != NULL ? request->to : "");
    if (already) {
        ret_result->what = REPLAYED_already;
    } else if ((rc = identity_may_operate(&session->identity, life.service, err)) == BATON_OK) {
        ret_result->what = REPLAYED_would;
        if (!request->dry_run) {
            rc = send_replay(session, &life, request, ret_result, err);
        }
    }
out:
    turn_life_done(&life);
    return rc;
}

/* ---- a rejected record ---- */

struct letter_replay {
    struct session *session;
    const struct replay_request *request;
    struct replay_result *result;
    baton_code rc;
    struct baton_error *err;
};

/* The topic that the letter came from must be an input of the service whose dead letter it is. */
static baton_code origin_of(const struct session *session, const struct letter *letter,
                            struct topic_name *ret_topic, struct baton_error *err)
{
    static const enum topic_kind inputs[] = {TOPIC_handoff, TOPIC_control};
    if (strcmp(letter->service, LETTERS_OF_RUNS) == 0) {
        *ret_topic = topic_name(TOPIC_requests, session->config->prefix.s, NULL);
        if (strcmp(ret_topic->s, letter->topic) == 0) {
            return BATON_OK;
        }
    }
    for (size_t i = 0; i < COUNT_OF(inputs); i++) {
        *ret_topic = topic_name(inputs[i], session->config->prefix.s, letter->service);
        if (strcmp(ret_topic->s, letter->topic) == 0) {
            return BATON_OK;
        }
    }
    return baton_fail(err, BATON_E_invalid_request,
                      "dead letter %s names topic '%s' as its origin, which is no input of service "
                      "%s: it is not written anywhere",
                      letter->id.s, text_quote_of(letter->topic).s, letter->service);
}

static baton_code write_again(struct session *session, const struct letter *letter,
                              const char *topic, struct baton_error *err)
{
    struct log_header headers[LOG_HEADERS_MAX];
    struct log_publisher *publisher = NULL;
    struct log_record record = *letter->record;
    const char *key = record.key;
    int32_t partitions = 0;
    size_t n = 0;
    for (size_t i = 0; i < record.n_headers && n < COUNT_OF(headers); i++) {
        if (!letter_context_header(record.headers[i].name)) {
            headers[n++] = record.headers[i];
        }
    }
    record.topic = topic;
    record.headers = headers;
    record.n_headers = n;
    record.partition = LOG_PARTITION_BY_KEY;
    baton_code rc = scan_partitions(session->log, topic, &partitions, err);
    if (rc != BATON_OK) {
        return rc;
    }
    /* Without a key, or with one that names its partition by number, it goes where it came from. */
    if ((key == NULL || (record.key_len > 0 && key[0] == '~')) && letter->from_partition >= 0 &&
        letter->from_partition < partitions) {
        record.partition = letter->from_partition;
    }
    if ((rc = log_publisher_open(session->log, &publisher, err)) == BATON_OK) {
        rc = log_publish(publisher, &record, 1, SEND_TIMEOUT_MS, err);
        log_publisher_close(publisher);
    }
    return rc;
}

static bool on_letter(void *arg, const struct letter *letter)
{
    struct letter_replay *replay = arg;
    struct session *session = replay->session;
    struct replay_result *result = replay->result;
    struct turn_life life = {.found = false};
    struct topic_name topic;
    bool handoff;
    snprintf(result->service, sizeof(result->service), "%s", letter->service);
    snprintf(result->turn_id, sizeof(result->turn_id), "%s", letter->turn_id);
    snprintf(result->role, sizeof(result->role), "%s", letter->role);
    if ((replay->rc = origin_of(session, letter, &topic, replay->err)) != BATON_OK ||
        (replay->rc = identity_may_operate(&session->identity, letter->service, replay->err)) !=
            BATON_OK) {
        return false;
    }
    handoff = strcmp(topic.s,
                     topic_name(TOPIC_handoff, session->config->prefix.s, letter->service).s) == 0;
    if (handoff && letter->turn_id[0] != '\0') {
        replay->rc =
            turn_log_find(session->log, session->config, letter->turn_id, &life, replay->err);
    }
    if (replay->rc == BATON_OK && life.found) {
        result->what =
            REPLAYED_already; /* the log knows the turn: it would be a duplicate at best */
    } else if (replay->rc == BATON_OK) {
        result->what = replay->request->dry_run ? REPLAYED_would : REPLAYED_written;
        if (!replay->request->dry_run) {
            replay->rc = write_again(session, letter, topic.s, replay->err);
        }
    }
    turn_life_done(&life);
    return false;
}

baton_code replay_letter(struct session *session, const char *letter_id,
                         const struct replay_request *request, struct replay_result *ret_result,
                         struct baton_error *err)
{
    struct letter_replay replay = {session, request, ret_result, BATON_OK, err};
    memset(ret_result, 0, sizeof(*ret_result));
    if (request->to != NULL) {
        return baton_fail(
            err, BATON_E_invalid_request,
            "%s is a rejected record and no turn: it goes to its own topic, --to does "
            "not apply",
            letter_id);
    }
    baton_code rc = letters_one(session->log, session->config, letter_id, on_letter, &replay, err);
    return rc == BATON_OK ? replay.rc : rc;
}
