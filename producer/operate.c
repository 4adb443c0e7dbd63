/*
 * Sends control records and waits for their answers.
 * In: producer/cmd_turns_operate.c, producer/cmd_services.c, producer/replay.c
 * Out: common/log/log.c, topics/outcomes.c
 */
#include "producer/operate.h"

#include "common/base/text.h"
#include "common/record/headers.h"
#include "topics/catalogue.h"
#include "topics/scan.h"
#include "topics/service_view.h"

#include <string.h>

#define SEND_TIMEOUT_MS 10000

static baton_code partitions_of(struct session *session, const char *topic, const char *service,
                                int32_t *ret_partitions, struct baton_error *err)
{
    struct baton_error why = {BATON_OK, ""};
    baton_code rc = scan_partitions(session->log, topic, ret_partitions, &why);
    if (rc == BATON_E_topic_missing) {
        return baton_fail(err, BATON_E_unknown_service,
                          "service '%s' has no topic %s: `baton topics apply` makes it", service,
                          topic);
    }
    return rc == BATON_OK ? BATON_OK : baton_fail(err, rc, "%s", why.text);
}

/* The same signed bytes to the partition of the key, or to each by number. */
static baton_code send(struct session *session, const struct control *control, const char *topic,
                       const char *key, int32_t by_number, struct baton_error *err)
{
    struct log_record records[LOG_PARTITIONS_MAX];
    struct log_publisher *publisher = NULL;
    struct buf value = BUF_INIT;
    struct proof_text proof;
    size_t count = by_number > 0 ? (size_t)by_number : 1;
    baton_code rc = BATON_OK;
    control_encode(control, &value);
    if (!buf_ok(&value)) {
        rc = baton_fail(err, BATON_E_no_memory, "no memory for a control record");
        goto out;
    }
    struct digest digest = digest_of(value.data, value.len);
    if ((rc = identity_prove(&session->identity, PROOF_control, key, &digest, &proof, err)) !=
        BATON_OK) {
        goto out;
    }
    const struct log_header header = {HEADER_SIG, proof.s, strlen(proof.s)};
    for (size_t i = 0; i < count; i++) {
        records[i] = (struct log_record){
            .topic = topic,
            .partition = by_number > 0 ? (int32_t)i : LOG_PARTITION_BY_KEY,
            .key = key,
            .key_len = strlen(key),
            .value = value.data,
            .value_len = value.len,
            .headers = &header,
            .n_headers = proof.s[0] != '\0' ? 1 : 0,
        };
    }
    if ((rc = log_publisher_open(session->log, &publisher, err)) == BATON_OK) {
        rc = log_publish(publisher, records, count, SEND_TIMEOUT_MS, err);
        log_publisher_close(publisher);
    }
out:
    buf_done(&value);
    return rc;
}

/* A cancel of a turn that went on elsewhere: its owner has sent it after the turn, and says so. */
static bool forwarded(const struct outcome *outcome, const struct control *control)
{
    return control->kind == CONTROL_cancel && outcome->code == BATON_OK && outcome->has_state &&
           outcome->state == TURN_delegated && outcome->to.s[0] != '\0';
}

static baton_code await(struct session *session, struct outcome_watch *watch,
                        const struct control *control, int32_t wanted, struct mono_ms until,
                        struct operated *operated, struct baton_error *err)
{
    int32_t answers = 0;
    bool alive = true;
    while (answers < wanted && alive) {
        struct outcome *outcome = NULL;
        baton_code rc = outcome_watch_next(watch, until, &outcome, err);
        if (rc != BATON_OK || outcome == NULL) {
            return rc;
        }
        if (outcome->event == OUTCOME_answer && strcmp(outcome->answers_id.s, control->id.s) == 0) {
            if (forwarded(outcome, control)) {
                operated->to = outcome->to;
                rc = service_has_worker(session->log, session->config->prefix.s, outcome->to.s,
                                        &alive, err);
            } else {
                answers++;
                operated->code = operated->code == BATON_OK ? outcome->code : operated->code;
            }
        }
        outcome_free(outcome);
        if (rc != BATON_OK) {
            return rc;
        }
    }
    operated->answered = alive;
    return BATON_OK;
}

static baton_code operate(struct session *session, struct control *control, const char *service,
                          const char *key, const char *answer_key, int64_t timeout_ms,
                          struct operated *ret_operated, struct baton_error *err)
{
    const char *prefix = session->config->prefix.s;
    struct topic_name topic = topic_name(TOPIC_control, prefix, service);
    struct outcome_trust trust = session_trust(session);
    struct operated operated = {.id = control->id};
    struct outcome_watch *watch = NULL;
    bool all = key[0] == '~';
    bool alive = false;
    int32_t partitions = 0;
    baton_code rc;
    if ((rc = partitions_of(session, topic.s, service, &partitions, err)) != BATON_OK ||
        (rc = outcome_watch_open(session->log, prefix, answer_key, &trust, &watch, err)) !=
            BATON_OK) {
        goto out;
    }
    if ((rc = send(session, control, topic.s, key, all ? partitions : 0, err)) != BATON_OK ||
        (rc = service_has_worker(session->log, prefix, service, &alive, err)) != BATON_OK) {
        goto out;
    }
    operated.nobody = !alive;
    if (alive && timeout_ms > 0) {
        struct mono_ms until = {mono_now().v + timeout_ms};
        rc = await(session, watch, control, all ? partitions : 1, until, &operated, err);
    }
out:
    outcome_watch_close(watch);
    if (rc == BATON_OK) {
        *ret_operated = operated;
    }
    return rc;
}

static void stamp(struct control *control)
{
    random_hex(control->id.s, 32);
    control->at = wall_now();
}

static baton_code check_reason(const struct control *control, struct baton_error *err)
{
    if (control->reason != NULL && !text_utf8_valid(control->reason, strlen(control->reason))) {
        return baton_fail(err, BATON_E_invalid_request, "the reason '%s' is not valid UTF-8",
                          text_quote_of(control->reason).s);
    }
    return BATON_OK;
}

baton_code operate_turn(struct session *session, struct control *control, const char *service,
                        const char *run_id, int64_t timeout_ms, struct operated *ret_operated,
                        struct baton_error *err)
{
    baton_code rc = check_reason(control, err);
    stamp(control);
    return rc != BATON_OK ? rc
                          : operate(session, control, service, control->turn_id.s,
                                    run_id[0] != '\0' ? run_id : control->turn_id.s, timeout_ms,
                                    ret_operated, err);
}

baton_code operate_service(struct session *session, struct control *control, const char *service,
                           int64_t timeout_ms, struct operated *ret_operated,
                           struct baton_error *err)
{
    baton_code rc = check_reason(control, err);
    stamp(control);
    return rc != BATON_OK ? rc
                          : operate(session, control, service, control_service_key(control->kind),
                                    control->id.s, timeout_ms, ret_operated, err);
}
