/*
 * Sends requests and waits for their answers.
 * In: producer/cmd_runs_ask.c
 * Out: common/log/log.c, topics/outcomes.c
 */
#include "producer/ask.h"

#include "common/base/agent_mark.h"
#include "common/base/limits.h"
#include "common/record/headers.h"
#include "common/record/json.h"
#include "topics/catalogue.h"
#include "topics/outcomes.h"

#include <string.h>

#define SEND_TIMEOUT_MS 10000

void asked_done(struct asked *asked)
{
    outcome_free(asked->answer);
    asked->answer = NULL;
}

static baton_code may_ask(const struct session *session, const struct request *request,
                          bool unattended, struct baton_error *err)
{
    const char *word = request_word(request->kind);
    const bool person = request_wants_person(request->kind);
    if (agent_in_attempt() && request->kind == REQUEST_start) {
        return baton_fail(err, BATON_E_nested_start,
                          "a run is not started from inside an attempt (BATON_ATTEMPT is set)");
    }
    if (agent_in_attempt() && request->kind != REQUEST_handoff) {
        return baton_fail(err, BATON_E_person_required,
                          "%s is asked by people, not from inside an attempt", word);
    }
    if (person && agent_mark() != NULL) {
        return baton_fail(err, BATON_E_person_required,
                          "%s is asked by people, and %s says that an agent runs this", word,
                          agent_mark());
    }
    if (person && unattended) {
        return baton_fail(err, BATON_E_person_required,
                          "%s is asked by people, and nobody is here (BATON_MODE, CI); "
                          "BATON_MODE=attended says that somebody is",
                          word);
    }
    if (session->identity.required && !trust_may_request(session->identity.principal, word)) {
        return baton_fail(err, BATON_E_not_permitted,
                          "%s may not ask for %s: in its trust file put `request: [%s]`",
                          session->identity.name, word, word);
    }
    return BATON_OK;
}

/* Who asks, as a process says of itself (L-03): a marker goes before whatever an option says, and nobody
 * confirms anything where nobody is (L-04). */
static enum request_asker asker_of(const struct request *request, bool unattended)
{
    if ((request->kind != REQUEST_start && request->kind != REQUEST_handoff) ||
        agent_mark() == NULL) {
        return REQUEST_ASKER_owner_of_key;
    }
    return request->asker == REQUEST_ASKER_confirmed && !unattended ? REQUEST_ASKER_confirmed
                                                                    : REQUEST_ASKER_agent;
}

baton_code ask_check(const struct session *session, struct request *request, bool unattended,
                     struct baton_error *err)
{
    baton_code rc = may_ask(session, request, unattended, err);
    request->asker = asker_of(request, unattended);
    return rc;
}

/* Nothing is sent that a coordinator would not read. */
static baton_code check_form(const struct buf *value, struct baton_error *err)
{
    struct request *read = NULL;
    struct baton_error why = {BATON_OK, ""};
    baton_code rc = request_parse(value->data, value->len, &read, &why);
    request_free(read);
    return rc == BATON_OK || rc == BATON_E_no_memory
               ? rc
               : baton_fail(err, BATON_E_invalid_request, "%s", why.text);
}

static baton_code send(struct session *session, const struct request *request,
                       struct baton_error *err)
{
    const struct topic_name topic = topic_name(TOPIC_requests, session->config->prefix.s, NULL);
    struct log_publisher *publisher = NULL;
    struct buf value = BUF_INIT;
    struct proof_text proof;
    baton_code rc = BATON_E_no_memory;
    request_encode(request, &value);
    if (!buf_ok(&value) || (rc = check_form(&value, err)) != BATON_OK) {
        goto out;
    }
    const struct digest digest = digest_of(value.data, value.len);
    if ((rc = identity_prove(&session->identity, PROOF_request, request->run_id.s, &digest, &proof,
                             err)) != BATON_OK) {
        goto out;
    }
    const struct log_header header = {HEADER_SIG, proof.s, strlen(proof.s)};
    struct log_record record = {.topic = topic.s,
                                .partition = LOG_PARTITION_BY_KEY,
                                .key = request->run_id.s,
                                .key_len = strlen(request->run_id.s),
                                .value = value.data,
                                .value_len = value.len,
                                .headers = &header,
                                .n_headers = proof.s[0] != '\0' ? 1 : 0};
    if ((rc = log_publisher_open(session->log, &publisher, err)) == BATON_OK) {
        rc = log_publish(publisher, &record, 1, SEND_TIMEOUT_MS, err);
        log_publisher_close(publisher);
    }
out:
    buf_done(&value);
    return rc;
}

static baton_code await(struct outcome_watch *watch, const struct request *request,
                        struct mono_ms until, struct asked *asked, struct baton_error *err)
{
    for (;;) {
        struct outcome *outcome = NULL;
        baton_code rc = outcome_watch_next(watch, until, &outcome, err);
        if (rc != BATON_OK || outcome == NULL) {
            return rc;
        }
        if (outcome->event == OUTCOME_answer && strcmp(outcome->answers_id.s, request->id.s) == 0) {
            asked->answered = true;
            asked->code = outcome->code;
            asked->answer = outcome;
            return BATON_OK;
        }
        outcome_free(outcome);
    }
}

/* ---- claims ---- */

#define CLAIMS_MAX 64 /* a transition has as many targets at most as there are slots */

struct claims {
    struct turn_id left[CLAIMS_MAX];
    size_t n;
};

/* The turns that an answer names; true: they were there before, so that claims may lie in the past. */
static bool turns_named(const struct outcome *answer, struct claims *claims)
{
    struct json_doc *doc = NULL;
    bool before = false;
    if (answer->result != NULL && json_parse(answer->result, answer->result_len, LIMIT_RECORD,
                                             LIMIT_JSON_DEPTH, &doc, NULL) == BATON_OK) {
        const struct json_value *turns = json_member(json_root(doc), "turns");
        const struct json_value *deduped = json_member(json_root(doc), "deduped");
        const bool is_list = turns != NULL && json_kind(turns) == JSON_array;
        before = deduped != NULL && json_kind(deduped) == JSON_bool && json_bool(deduped);
        for (const struct json_value *one = is_list ? json_first(turns) : NULL;
             one != NULL && claims->n < CLAIMS_MAX; one = json_next(one)) {
            size_t len;
            if (json_kind(one) == JSON_text &&
                strlen(json_text(one, &len)) == sizeof(claims->left[0].s) - 1) {
                claims->left[claims->n++] = turn_id_of(json_text(one, &len));
            }
        }
        json_free(doc);
    }
    return before;
}

/* Whatever is told of a turn by who has it comes after a claim, or instead of one. */
static bool means_claimed(const struct outcome *outcome)
{
    return outcome->event == OUTCOME_claimed || outcome->event == OUTCOME_completed ||
           outcome->event == OUTCOME_delegated;
}

static baton_code await_claims(struct outcome_watch *watch, struct mono_ms until,
                               struct asked *asked, struct baton_error *err)
{
    struct claims claims = {.n = 0};
    const bool before = turns_named(asked->answer, &claims);
    asked->n_turns = claims.n;
    baton_code rc = before ? outcome_watch_rewind(watch, err) : BATON_OK;
    while (rc == BATON_OK && asked->n_claimed < asked->n_turns) {
        struct outcome *outcome = NULL;
        rc = outcome_watch_next(watch, until, &outcome, err);
        if (rc != BATON_OK || outcome == NULL) {
            break;
        }
        for (size_t i = 0; means_claimed(outcome) && i < claims.n; i++) {
            if (strcmp(claims.left[i].s, outcome->turn_id.s) == 0) {
                claims.left[i] = claims.left[--claims.n];
                asked->n_claimed++;
                break;
            }
        }
        outcome_free(outcome);
    }
    return rc;
}

baton_code ask_send(struct session *session, struct request *request,
                    const struct ask_options *options, struct asked *ret_asked,
                    struct baton_error *err)
{
    const struct outcome_trust trust = session_trust(session);
    struct asked asked = {.code = BATON_OK};
    struct outcome_watch *watch = NULL;
    baton_code rc = ask_check(session, request, options->unattended, err);
    random_hex(request->id.s, 32);
    request->at = wall_now();
    if (rc == BATON_OK) {
        rc = outcome_watch_open(session->log, session->config->prefix.s, request->run_id.s, &trust,
                                &watch, err);
    }
    if (rc == BATON_OK) {
        rc = send(session, request, err);
    }
    const struct mono_ms until = {mono_now().v + options->timeout_ms};
    if (rc == BATON_OK && options->timeout_ms > 0) {
        rc = await(watch, request, until, &asked, err);
    }
    if (rc == BATON_OK && options->wait_claim && asked.answered && asked.code == BATON_OK) {
        rc = await_claims(watch, until, &asked, err);
    }
    outcome_watch_close(watch);
    if (asked.code == BATON_E_confirm_needed && options->unattended) {
        asked.code = BATON_E_unattended_denied; /* nobody is there who could */
    }
    if (rc == BATON_OK) {
        *ret_asked = asked;
    } else {
        asked_done(&asked);
    }
    return rc;
}
