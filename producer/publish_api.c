/* The public functions of baton/publish.h over producer/publish.c, for programs that embed a
 * publisher. */
#include "baton/publish.h"

#include "producer/publish.h"
#include "topics/outcomes.h"

#include <stdlib.h>
#include <string.h>

struct baton_publisher {
    struct config *config;
    struct publisher publisher;
};

struct baton_published {
    struct published published;
    char *outcome; /* JSON, or NULL */
};

static baton_code load(const char *config_path, struct config **ret_config, struct baton_error *err)
{
    char *path = NULL;
    baton_code rc = config_find(config_path, &path, err);
    if (rc == BATON_OK) {
        rc = config_load(path, NULL, 0, ret_config, NULL, err);
    }
    free(path);
    return rc;
}

baton_code baton_publisher_open(const char *config_path, struct baton_publisher **ret_publisher,
                                struct baton_error *err)
{
    struct baton_publisher *publisher = calloc(1, sizeof(*publisher));
    baton_code rc;
    if (ret_publisher == NULL) {
        free(publisher);
        return baton_fail(err, BATON_E_usage, "baton_publisher_open: ret_publisher is NULL");
    }
    if (publisher == NULL) {
        return baton_fail(err, BATON_E_no_memory, "no memory for a publisher");
    }
    if ((rc = load(config_path, &publisher->config, err)) != BATON_OK ||
        (rc = publisher_open(publisher->config, &publisher->publisher, err)) != BATON_OK) {
        config_free(publisher->config);
        free(publisher);
        return rc;
    }
    *ret_publisher = publisher;
    return BATON_OK;
}

void baton_publisher_close(struct baton_publisher *publisher)
{
    if (publisher != NULL) {
        publisher_close(&publisher->publisher);
        config_free(publisher->config);
        free(publisher);
    }
}

static char *outcome_text(const struct outcome *outcome)
{
    struct buf out = BUF_INIT;
    outcome_print(outcome, &out);
    return buf_take(&out, NULL);
}

baton_code baton_publish(struct baton_publisher *publisher, const struct baton_turn *turn,
                         struct baton_published **ret_published, struct baton_error *err)
{
    if (publisher == NULL || turn == NULL || ret_published == NULL ||
        turn->size != sizeof(struct baton_turn) || turn->wait < BATON_WAIT_NONE ||
        turn->wait > BATON_WAIT_END || turn->timeout_ms < 0 ||
        (turn->payload == NULL && turn->payload_len > 0)) {
        return baton_fail(
            err, BATON_E_usage,
            "baton_publish: arguments are unusable; begin a turn with BATON_TURN_INIT");
    }
    static const enum publish_wait waits[] = {PUBLISH_WAIT_none, PUBLISH_WAIT_claim,
                                              PUBLISH_WAIT_end};
    const struct publish_request request = {
        .service = turn->service,
        .role = turn->role,
        .task_id = turn->task_id,
        .task_rev = turn->task_rev,
        .intent = turn->intent,
        .summary = turn->summary,
        .key = turn->key,
        .data = turn->data_json,
        .data_len = turn->data_json != NULL ? strlen(turn->data_json) : 0,
        .media_type = turn->media_type,
        .payload = turn->payload,
        .payload_len = turn->payload_len,
        .wait = waits[turn->wait],
        .timeout_ms = turn->timeout_ms,
    };
    struct baton_published *published = calloc(1, sizeof(*published));
    if (published == NULL) {
        return baton_fail(err, BATON_E_no_memory, "no memory for what is published");
    }
    baton_code rc = publisher_publish(&publisher->publisher, &request, &published->published, err);
    if (rc != BATON_OK) {
        free(published);
        return rc;
    }
    if (published->published.outcome != NULL) {
        published->outcome = outcome_text(published->published.outcome);
    }
    *ret_published = published;
    return BATON_OK;
}

const char *baton_published_turn_id(const struct baton_published *published)
{
    return published->published.turn_id.s;
}

const char *baton_published_key(const struct baton_published *published)
{
    return published->published.key;
}

bool baton_published_delivered(const struct baton_published *published)
{
    return published->published.delivered;
}

bool baton_published_deduped(const struct baton_published *published)
{
    return published->published.deduped;
}

bool baton_published_timed_out(const struct baton_published *published)
{
    return published->published.timed_out;
}

const char *baton_published_outcome(const struct baton_published *published)
{
    return published->outcome;
}

void baton_published_free(struct baton_published *published)
{
    if (published != NULL) {
        published_done(&published->published);
        free(published->outcome);
        free(published);
    }
}
