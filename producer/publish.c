/*
 * A turn with an explicit role becomes a handoff.
 * In: producer/cmd_publish.c, producer/publish_api.c, producer/publish_lines.c
 * Out: common/log/log.c, producer/publish_wait.c
 */
#include "producer/publish.h"

#include "common/base/check.h"
#include "common/base/text.h"
#include "common/record/headers.h"
#include "topics/catalogue.h"
#include "topics/outcomes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

baton_code publisher_open(const struct config *config, struct publisher *ret_publisher,
                          struct baton_error *err)
{
    struct publisher publisher = {.config = config};
    baton_code rc = identity_open(config, &publisher.identity, err);
    if (rc == BATON_OK) {
        rc = tracer_open(config, publisher.identity.name, "", &publisher.tracer, err);
    }
    if (rc == BATON_OK) {
        *ret_publisher = publisher;
    } else {
        identity_close(&publisher.identity);
    }
    return rc;
}

void publisher_close(struct publisher *publisher)
{
    if (publisher->log_publisher != NULL) {
        log_publisher_close(publisher->log_publisher);
    }
    log_close(publisher->log);
    tracer_close(publisher->tracer, TRACER_CLOSE_COMMAND_MS);
    identity_close(&publisher->identity);
    memset(publisher, 0, sizeof(*publisher));
}

void published_done(struct published *published)
{
    outcome_free(published->outcome);
    published->outcome = NULL;
}

/* ---- what is refused before anything is done ---- */

static baton_code check_service(const struct config *config, const char *service,
                                struct baton_error *err)
{
    if (service == NULL || !service_id_valid(service, strlen(service))) {
        return baton_fail(err, BATON_E_bad_service, "'%s' is no service name: [a-z0-9-]{1,%d}",
                          text_quote_of(service).s, SERVICE_MAX);
    }
    return config_service_get(config, service, NULL, err);
}

static baton_code check_role(const char *word, enum role *ret_role, struct baton_error *err)
{
    if (word != NULL && role_parse(word, strlen(word), ret_role)) {
        return BATON_OK;
    }
    return baton_fail(err, BATON_E_invalid_request, "'%s' is no role; roles are: %s",
                      text_quote_of(word).s, role_list());
}

/* As the configuration here says; the service's own decides when it takes the turn in. */
static baton_code check_served(const struct config *config, const char *name, enum role role,
                               struct baton_error *err)
{
    const struct config_service *service = NULL;
    baton_code rc = config_service_get(config, name, &service, err);
    if (rc == BATON_OK && (service->roles & ROLE_BIT(role)) == 0) {
        rc = baton_fail(err, BATON_E_role_not_served,
                        "service %s does not serve the role %s: services.%s.roles in %s does not "
                        "list it",
                        name, role_word(role), name, text_quote_of(config->path).s);
    }
    return rc;
}

static baton_code check_names(const struct publish_request *request, struct baton_error *err)
{
    const char *intent = request->intent;
    const char *key = request->key;
    if (request->task_id == NULL || !task_id_valid(request->task_id, strlen(request->task_id))) {
        return baton_fail(err, BATON_E_invalid_request,
                          "'%s' is no task id: 1 to %d of [A-Za-z0-9._/#:-]",
                          text_quote_of(request->task_id).s, ID_MAX);
    }
    if (request->task_rev < 0) {
        return baton_fail(err, BATON_E_invalid_request, "a task's revision is not negative");
    }
    if (intent != NULL && !plain_id_valid(intent, strlen(intent))) {
        return baton_fail(err, BATON_E_invalid_request, "'%s' is no intent: 1 to %d of [a-z0-9._-]",
                          text_quote_of(intent).s, ID_MAX);
    }
    if (key != NULL && !idempotency_key_valid(key, strlen(key))) {
        return baton_fail(err, BATON_E_invalid_request,
                          "'%s' is no idempotency key: 1 to %d of [A-Za-z0-9._/#:-]",
                          text_quote_of(key).s, KEY_MAX);
    }
    if (request->life_ms < 0 || request->life_ms > TURN_LIFE_MAX_MS) {
        return baton_fail(err, BATON_E_invalid_request, "a turn expires within 7 days");
    }
    if (request->place != NULL && request->place[0] != '/') {
        return baton_fail(err, BATON_E_invalid_request, "place '%s' is not an absolute path",
                          text_quote_of(request->place).s);
    }
    return BATON_OK;
}

/* ---- the turn ---- */

static baton_code make_turn(const struct publisher *publisher,
                            const struct publish_request *request, enum role role,
                            struct published *published, struct turn **ret_turn,
                            struct baton_error *err)
{
    char summary[ID_MAX + 64];
    struct wall_ms now = wall_now();
    snprintf(summary, sizeof(summary), "%s's turn on %s", role_word(role), request->task_id);
    if (request->key != NULL) {
        snprintf(published->key, sizeof(published->key), "%s", request->key);
    } else {
        random_hex(published->key, 32);
    }
    const struct turn_draft draft = {
        .fleet = publisher->identity.fleet,
        .origin = publisher->identity.name,
        .service = request->service,
        .role = role,
        .task_id = request->task_id,
        .task_rev = request->task_rev,
        .run_id = "",
        .intent = request->intent != NULL ? request->intent : PUBLISH_INTENT,
        .key = published->key,
        .parent = "",
        .created_at = now,
        .expires_at = {request->life_ms == 0 ? 0 : now.v + request->life_ms},
        .not_before = request->not_before,
        .deadline = request->deadline,
        .place = request->place,
        .summary = request->summary != NULL ? request->summary : summary,
        .data = request->data,
        .data_len = request->data_len,
        .media_type = request->media_type,
        .payload = request->payload != NULL ? request->payload : "",
        .payload_len = request->payload_len,
        .payload_json = request->payload_json,
        .payload_json_len = request->payload_json_len,
    };
    return turn_encode(&draft, ret_turn, err);
}

/* ---- the log ---- */

static baton_code open_log(struct publisher *publisher, const char *topic, const char *service,
                           struct baton_error *err)
{
    struct log_topic wanted;
    struct log_topic found;
    struct baton_error why = {BATON_OK, ""};
    char text[640];
    baton_code rc = BATON_OK;
    if (publisher->log == NULL) {
        rc = log_open(publisher->config, &publisher->log, err);
    }
    if (rc == BATON_OK && publisher->log_publisher == NULL) {
        rc = log_publisher_open(publisher->log, &publisher->log_publisher, err);
    }
    if (rc != BATON_OK) {
        return rc;
    }
    rc = log_topic_describe(publisher->log, topic, &found, &why);
    if (rc == BATON_E_topic_missing) {
        return baton_fail(err, BATON_E_unknown_service,
                          "service '%s' has no topic %s: `baton topics apply` makes it", service,
                          topic);
    }
    if (rc != BATON_OK) {
        return baton_fail(err, rc, "%s", why.text);
    }
    /* The key's partition would be another than the one on which its worker takes it. */
    topic_settings(TOPIC_handoff, topic, publisher->config->partitions, &wanted);
    return found.partitions == wanted.partitions || topic_check(&wanted, &found, text, sizeof(text))
               ? BATON_OK
               : baton_fail(err, BATON_E_topic_missing, "%s", text);
}

#define HEADERS_MAX 3

/* The record of a turn; headers and *proof, which it borrows, are the caller's, like the rest. */
static baton_code record_of(const struct publisher *publisher, const struct turn *turn,
                            const char *topic, enum publish_wait wait,
                            const struct published *published, struct proof_text *proof,
                            struct log_header headers[HEADERS_MAX], struct log_record *ret_record,
                            struct baton_error *err)
{
    size_t n = 0;
    baton_code rc =
        identity_prove(&publisher->identity, PROOF_turn, turn->id.s, &turn->digest, proof, err);
    if (rc != BATON_OK) {
        return rc;
    }
    if (proof->s[0] != '\0') {
        headers[n++] = (struct log_header){HEADER_SIG, proof->s, strlen(proof->s)};
    }
    headers[n++] = (struct log_header){HEADER_TRACEPARENT, published->traceparent,
                                       strlen(published->traceparent)};
    if (wait != PUBLISH_WAIT_none) {
        headers[n++] =
            (struct log_header){HEADER_WAIT, HEADER_WAIT_CLAIMED, strlen(HEADER_WAIT_CLAIMED)};
    }
    *ret_record = (struct log_record){.topic = topic,
                                      .partition = LOG_PARTITION_BY_KEY,
                                      .key = turn->id.s,
                                      .key_len = strlen(turn->id.s),
                                      .value = turn->bytes,
                                      .value_len = turn->len,
                                      .headers = headers,
                                      .n_headers = n};
    return BATON_OK;
}

static baton_code put(struct publisher *publisher, const struct turn *turn, const char *topic,
                      enum publish_wait wait, struct published *published, struct baton_error *err)
{
    struct proof_text proof;
    struct log_header headers[HEADERS_MAX];
    struct log_record record;
    baton_code rc =
        record_of(publisher, turn, topic, wait, published, &proof, headers, &record, err);
    if (rc == BATON_OK) {
        rc = log_publish(publisher->log_publisher, &record, 1, PUBLISH_TIMEOUT_MS, err);
    }
    if (rc == BATON_OK) {
        published->partition = record.partition;
        published->offset = record.offset;
    }
    return rc;
}

/* What the records of many turns borrow until the log has them. */
struct sending {
    struct topic_name topic;
    struct proof_text proof;
    struct log_header headers[HEADERS_MAX];
};

bool publish_of_one(baton_code code)
{
    return baton_code_class(code) == BATON_CLASS_refused ||
           baton_code_class(code) == BATON_CLASS_invalid || code == BATON_E_topic_missing;
}

baton_code publisher_send_all(struct publisher *publisher, struct prepared *list, size_t count,
                              struct baton_error *err)
{
    struct sending *sending = calloc(count, sizeof(*sending));
    struct log_record *records = calloc(count, sizeof(*records));
    const struct wall_ms start = wall_now();
    baton_code rc = BATON_OK;
    if (sending == NULL || records == NULL) {
        rc = baton_fail(err, BATON_E_no_memory, "no memory for %zu turns", count);
    }
    for (size_t i = 0; rc == BATON_OK && i < count; i++) {
        struct sending *one = &sending[i];
        one->topic =
            topic_name(TOPIC_handoff, publisher->config->prefix.s, list[i].published.service.s);
        rc = record_of(publisher, list[i].turn, one->topic.s, PUBLISH_WAIT_none, &list[i].published,
                       &one->proof, one->headers, &records[i], err);
    }
    if (rc == BATON_OK) {
        rc = log_publish(publisher->log_publisher, records, count, PUBLISH_TIMEOUT_MS, err);
    }
    for (size_t i = 0; records != NULL && i < count; i++) {
        if (rc == BATON_OK) {
            list[i].published.partition = records[i].partition;
            list[i].published.offset = records[i].offset;
        }
        if (count == 1 || !publish_of_one(rc)) { /* else each is sent, and told, by itself */
            publish_trace_end(publisher, list[i].turn, &list[i].published, start, rc);
        }
    }
    free(sending);
    free(records);
    return rc;
}

static baton_code send(struct publisher *publisher, const struct publish_request *request,
                       const struct turn *turn, struct published *published,
                       struct baton_error *err)
{
    struct topic_name topic =
        topic_name(TOPIC_handoff, publisher->config->prefix.s, request->service);
    const struct outcome_trust trust = {publisher->identity.trust, publisher->identity.fleet,
                                        publisher->identity.required};
    struct outcome_watch *watch = NULL;
    baton_code rc = open_log(publisher, topic.s, request->service, err);
    if (rc == BATON_OK && request->wait != PUBLISH_WAIT_none) {
        rc = outcome_watch_open(publisher->log, publisher->config->prefix.s, turn->id.s, &trust,
                                &watch, err);
    }
    if (rc == BATON_OK) {
        const struct wall_ms start = wall_now();
        rc = put(publisher, turn, topic.s, request->wait, published, err);
        publish_trace_end(publisher, turn, published, start, rc);
    }
    if (rc == BATON_OK && request->wait != PUBLISH_WAIT_none) {
        if (request->queued != NULL) {
            request->queued(request->queued_arg, published);
        }
        rc = publish_wait_for(watch, turn, request->wait, request->timeout_ms, published, err);
    }
    outcome_watch_close(watch);
    return rc;
}

baton_code publisher_prepare(const struct publisher *publisher,
                             const struct publish_request *request, struct prepared *ret_prepared,
                             struct baton_error *err)
{
    struct published published = {.offset = LOG_OFFSET_NONE};
    struct turn *turn = NULL;
    enum role role;
    baton_code rc;
    if ((rc = check_service(publisher->config, request->service, err)) != BATON_OK ||
        (rc = check_role(request->role, &role, err)) != BATON_OK ||
        (rc = check_served(publisher->config, request->service, role, err)) != BATON_OK ||
        (rc = check_names(request, err)) != BATON_OK ||
        (rc = identity_may_create(&publisher->identity, request->service, role, err)) != BATON_OK ||
        (rc = make_turn(publisher, request, role, &published, &turn, err)) != BATON_OK) {
        return rc;
    }
    published.turn_id = turn->id;
    published.service = service_id_of(request->service);
    published.role = role;
    publish_trace_begin(publisher, request->traceparent, &published);
    *ret_prepared = (struct prepared){published, turn};
    return BATON_OK;
}

void prepared_done(struct prepared *prepared)
{
    turn_free(prepared->turn);
    prepared->turn = NULL;
    published_done(&prepared->published);
}

baton_code publisher_look(struct publisher *publisher, const char *service, struct baton_error *err)
{
    const struct topic_name topic = topic_name(TOPIC_handoff, publisher->config->prefix.s, service);
    return open_log(publisher, topic.s, service, err);
}

baton_code publisher_publish(struct publisher *publisher, const struct publish_request *request,
                             struct published *ret_published, struct baton_error *err)
{
    struct prepared prepared = {.turn = NULL};
    baton_code rc = publisher_prepare(publisher, request, &prepared, err);
    if (rc == BATON_OK) {
        rc = send(publisher, request, prepared.turn, &prepared.published, err);
    }
    if (rc == BATON_OK) {
        *ret_published = prepared.published;
        prepared.published.outcome = NULL; /* the caller's */
    }
    prepared_done(&prepared);
    return rc;
}
