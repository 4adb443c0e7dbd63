/*
 * A member's life: opening, polling, committed offsets, leaving.
 *
 * Polling is what keeps a member in its group: the engine polls all the time, whatever it waits
 * for, and reads the partitions' own queues only when it has capacity.
 *
 * In: common/log/log.c  Out: rebalance.c, queue.c, producer.c
 */
#include "common/log/kafka/member.h"
#include "common/log/kafka/state.h"

#include "common/base/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define OPEN_TIMEOUT_MS 10000
/* Silent for so many sessions: the engine hangs, and its partitions go to others. It covers the
 * longest wait for a commit; turns do not count, they run elsewhere. */
#define POLL_SESSIONS 10
#define LOST_SESSIONS 3 /* lost, and the group has not said so: join again */
#define CLOSE_STEP_MS 10
#define HURRY_MS 1000
#define CLOSE_TIMEOUT_MS 2000

bool member_hurried(const struct kafka_member *member, int64_t since_ms)
{
    return member->spec.hurry != NULL && mono_now().v - since_ms >= HURRY_MS &&
           member->spec.hurry(member->spec.hurry_arg);
}

static void spec_free(struct log_member_spec *spec)
{
    free((char *)spec->group);
    free((char *)spec->worker);
    for (int input = 0; input < LOG_INPUTS; input++) {
        free((char *)spec->inputs[input]);
    }
    for (size_t i = 0; spec->outputs != NULL && i < spec->n_outputs; i++) {
        free((char *)spec->outputs[i]);
    }
    free((char **)spec->outputs);
}

static bool spec_copy(struct log_member_spec *copy, const struct log_member_spec *spec)
{
    *copy = *spec;
    copy->group = strdup(spec->group);
    copy->worker = strdup(spec->worker);
    bool good = copy->group != NULL && copy->worker != NULL;
    for (int input = 0; input < LOG_INPUTS; input++) {
        copy->inputs[input] = strdup(spec->inputs[input]);
        good = good && copy->inputs[input] != NULL;
    }
    char **outputs = calloc(spec->n_outputs + 1, sizeof(*outputs));
    for (size_t i = 0; outputs != NULL && i < spec->n_outputs; i++) {
        outputs[i] = strdup(spec->outputs[i]);
        good = good && outputs[i] != NULL;
    }
    copy->outputs = (const char *const *)outputs;
    return good && outputs != NULL;
}

static void member_free(struct kafka_member *member)
{
    if (member->fd >= 0) {
        close(member->fd);
    }
    spec_free(&member->spec);
    confirm_forget(member);
    free(member->deliveries);
    free(member);
}

/* What a session may be is the brokers' to say; where this may not be asked, joining tells. */
static baton_code check_session(struct kafka_member *member, struct baton_error *err)
{
    int64_t low = 0;
    int64_t high = 0;
    if (!kafka_session_bounds(member->log, &low, &high)) {
        return BATON_OK;
    }
    if (member->spec.session_ms < low || member->spec.session_ms > high) {
        return baton_fail(err, BATON_E_bad_config,
                          "kafka.session is %lld ms; the brokers take %lld to %lld ms "
                          "(group.min.session.timeout.ms, group.max.session.timeout.ms)",
                          (long long)member->spec.session_ms, (long long)low, (long long)high);
    }
    return BATON_OK;
}

static baton_code check_topics(struct kafka_member *member, struct baton_error *err)
{
    struct kafka_topic topic;
    for (int input = 0; input < LOG_INPUTS; input++) {
        baton_code rc =
            kafka_topic_of(member->log, member->spec.inputs[input], OPEN_TIMEOUT_MS, &topic, err);
        if (rc != BATON_OK) {
            return rc;
        }
        if (topic.partitions > LOG_PARTITIONS_MAX) {
            return baton_fail(err, BATON_E_bad_config,
                              "%s has %d partitions, at most %d can be used",
                              member->spec.inputs[input], topic.partitions, LOG_PARTITIONS_MAX);
        }
    }
    return BATON_OK;
}

static baton_code configure_consumer(struct kafka_member *member, rd_kafka_conf_t **ret_conf,
                                     struct baton_error *err)
{
    const int64_t session = member->spec.session_ms;
    rd_kafka_conf_t *conf =
        kafka_conf_new(member->log, &member->consumer_client, KAFKA_USE_member, err);
    if (conf == NULL) {
        return err != NULL ? err->code : BATON_E_bad_config;
    }
    baton_code rc = kafka_set(conf, "group.id", member->spec.group, err);
    if (rc == BATON_OK) {
        rc = kafka_set(conf, "group.instance.id", member->spec.worker, err);
    }
    if (rc == BATON_OK) {
        rc = kafka_set_int(conf, "session.timeout.ms", session, err);
    }
    if (rc == BATON_OK) {
        rc = kafka_set_int(conf, "heartbeat.interval.ms", member->spec.heartbeat_ms, err);
    }
    if (rc == BATON_OK) {
        rc = kafka_set_int(conf, "max.poll.interval.ms", session * POLL_SESSIONS, err);
    }
    if (rc != BATON_OK) {
        rd_kafka_conf_destroy(conf);
        return rc;
    }
    rd_kafka_conf_set_rebalance_cb(conf, member_rebalance);
    *ret_conf = conf;
    return BATON_OK;
}

static baton_code subscribe(struct kafka_member *member, const char *const *topics, size_t count)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)count);
    for (size_t i = 0; i < count; i++) {
        rd_kafka_topic_partition_list_add(list, topics[i], RD_KAFKA_PARTITION_UA);
    }
    rd_kafka_resp_err_t cause = rd_kafka_subscribe(member->consumer, list);
    rd_kafka_topic_partition_list_destroy(list);
    return cause == RD_KAFKA_RESP_ERR_NO_ERROR ? BATON_OK : kafka_code(cause);
}

static baton_code consumer_open(struct kafka_member *member, struct baton_error *err)
{
    static const uint64_t one = 1;
    rd_kafka_conf_t *conf = NULL;
    baton_code rc = configure_consumer(member, &conf, err);
    if (rc == BATON_OK) {
        rc = kafka_handle_new(&member->consumer_client, conf, &member->consumer, err);
    }
    if (rc != BATON_OK) {
        return rc;
    }
    rd_kafka_poll_set_consumer(member->consumer);
    member->main_queue = rd_kafka_queue_get_consumer(member->consumer);
    rd_kafka_queue_io_event_enable(member->main_queue, member->fd, &one, sizeof(one));
    for (int input = 0; input < LOG_INPUTS; input++) {
        member->inputs[input] =
            rd_kafka_topic_new(member->consumer, member->spec.inputs[input], NULL);
        if (member->inputs[input] == NULL) {
            return kafka_fail(err, member->log, rd_kafka_last_error(), KAFKA_TRIED_open,
                              member->spec.inputs[input]);
        }
    }
    rc = subscribe(member, member->spec.inputs, LOG_INPUTS);
    return rc == BATON_OK ? BATON_OK
                          : baton_fail(err, rc, "group %s: the topics cannot be subscribed",
                                       member->spec.group);
}

baton_code kafka_member_open(struct log *log, const struct log_member_spec *spec,
                             struct log_member **ret_member, struct baton_error *err)
{
    struct baton_error local = {BATON_OK, ""};
    struct baton_error *why = err != NULL ? err : &local;
    struct kafka_member *member = calloc(1, sizeof(*member));
    if (member == NULL) {
        return baton_fail(err, BATON_E_no_memory, "out of memory");
    }
    member->base.ops = log->ops;
    member->log = (struct kafka_log *)log;
    member->limit = (struct diag_limit)DIAG_LIMIT(10000);
    member->consumer_client =
        (struct kafka_client){.log = member->log, .use = KAFKA_USE_member, .owner = member};
    member->producer_client =
        (struct kafka_client){.log = member->log, .use = KAFKA_USE_txn, .owner = member};
    member->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    baton_code rc = BATON_OK;
    if (!spec_copy(&member->spec, spec) || member->fd < 0) {
        rc = baton_fail(why, BATON_E_no_memory, "out of memory or descriptors");
    }
    member->transactional_id = transactional_id_of(spec->group, spec->worker);
    if (rc == BATON_OK) {
        rc = check_topics(member, why);
    }
    if (rc == BATON_OK) {
        rc = check_session(member, why);
    }
    if (rc == BATON_OK) {
        rc = producer_open(member, OPEN_TIMEOUT_MS, why);
    }
    if (rc == BATON_OK) {
        rc = consumer_open(member, why);
    }
    if (rc != BATON_OK) {
        kafka_member_close(&member->base, false, OPEN_TIMEOUT_MS);
        return rc;
    }
    *ret_member = &member->base;
    return BATON_OK;
}

/* Others take over at once only where the group hears of it, and librdkafka never takes a static
 * member out of its group. So it asks for another topic instead: the group then
 * gives it nothing of the inputs, and forgets it a session later. */
static void part(struct kafka_member *member, int64_t until)
{
    const int64_t heartbeats = mono_now().v + 4 * member->spec.heartbeat_ms + 500;
    if (until > heartbeats) {
        until = heartbeats;
    }
    member->parting = true;
    if (member->place == PLACE_leaving) {
        member_let_go(member);
    }
    if (member->spec.n_outputs == 0 || subscribe(member, member->spec.outputs, 1) != BATON_OK) {
        return;
    }
    while (!member->parted && mono_now().v < until) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(member->consumer, CLOSE_STEP_MS);
        if (message != NULL) {
            if (rd_kafka_fatal_error(member->consumer, NULL, 0) != RD_KAFKA_RESP_ERR_NO_ERROR) {
                member->parted = true;
            }
            rd_kafka_message_destroy(message);
        }
        if (member->misplaced) {
            member->misplaced = false;
            (void)subscribe(member, member->spec.outputs, 1);
        }
    }
    if (!member->parted) { /* librdkafka 2.0.2 never frees what it has not yet asked for */
        rd_kafka_unsubscribe(member->consumer);
    }
}

/* Everything of the consumer but its handle. */
static void consumer_release(struct kafka_member *member)
{
    queues_close(member);
    memset(member->owned, 0, sizeof(member->owned));
    if (member->metadata != NULL) {
        rd_kafka_consumer_group_metadata_destroy(member->metadata);
        member->metadata = NULL;
    }
    for (int input = 0; input < LOG_INPUTS; input++) {
        if (member->inputs[input] != NULL) {
            rd_kafka_topic_destroy(member->inputs[input]);
            member->inputs[input] = NULL;
        }
    }
    if (member->main_queue != NULL) {
        rd_kafka_queue_io_event_enable(member->main_queue, -1, NULL, 0);
        rd_kafka_queue_destroy(member->main_queue);
        member->main_queue = NULL;
    }
}

void kafka_member_close(struct log_member *base, bool leave_group, int64_t timeout_ms)
{
    struct kafka_member *member = (struct kafka_member *)base;
    const int64_t until = mono_now().v + timeout_ms;
    bool gone = true;

    if (member->consumer != NULL && leave_group &&
        rd_kafka_fatal_error(member->consumer, NULL, 0) == RD_KAFKA_RESP_ERR_NO_ERROR) {
        part(member, until);
    }
    consumer_release(member);
    if (member->producer != NULL) {
        producer_close(member, until - mono_now().v);
        gone = member->producer == NULL;
    }
    if (member->consumer != NULL) {
        /* Nothing is committed and no group is left on the way out: the destruction skips both. */
        gone = kafka_destroy_bounded(member->consumer, until - mono_now().v) && gone;
    }
    if (gone && !member->abandoned) { /* else callbacks may still come: to the end of the process */
        member_free(member);
    }
}

int kafka_member_fd(const struct log_member *base)
{
    return ((const struct kafka_member *)base)->fd;
}

/* ---- polling ---- */

/* A client whose session is over forgets who it was, and until its revoke has been answered it goes
 * on with heartbeats of nobody in particular: brokers that were away meanwhile call that a second
 * process (librdkafka #3437). There is none. Another consumer takes the place. */
static baton_code come_back(struct kafka_member *member, struct baton_error *err)
{
    rd_kafka_t *old = member->consumer;
    diag_line(DIAG_warn, "kafka.come_back", D_TEXT("group", member->spec.group),
              D_TEXT("worker", member->spec.worker));
    if (member->place == PLACE_assigned) {
        member_tell(member, LOG_EVENT_lost);
    }
    member->place = PLACE_none;
    consumer_release(member);
    member->consumer = NULL;
    if (!kafka_destroy_bounded(old, CLOSE_TIMEOUT_MS)) {
        member->abandoned = true;
    }
    atomic_store(&member->consumer_client.session_over, false);
    return consumer_open(member, err);
}

static baton_code fatal(struct kafka_member *member, struct baton_error *err)
{
    char text[256] = "";
    rd_kafka_resp_err_t cause = rd_kafka_fatal_error(member->consumer, text, sizeof(text));
    if (cause == RD_KAFKA_RESP_ERR_NO_ERROR) {
        return BATON_OK;
    }
    if (cause == RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID &&
        atomic_load(&member->consumer_client.session_over)) {
        return come_back(member, err);
    }
    if (cause == RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID) {
        return baton_fail(err, BATON_E_twin,
                          "group %s: a newer process runs as worker %s: give each process its own "
                          "id (--id)",
                          member->spec.group, member->spec.worker);
    }
    return kafka_fail(err, member->log, cause, KAFKA_TRIED_belong, member->spec.group);
}

/* An error that the group or the brokers told. Most pass by themselves. */
static baton_code judge_error(struct kafka_member *member, const rd_kafka_message_t *message,
                              struct baton_error *err)
{
    switch ((int)message->err) {
    case RD_KAFKA_RESP_ERR__FATAL: /* the caller judges it */
        return BATON_OK;
    case RD_KAFKA_RESP_ERR_INVALID_SESSION_TIMEOUT:
        return baton_fail(err, BATON_E_bad_config,
                          "the brokers do not take kafka.session of %lld ms "
                          "(group.min.session.timeout.ms, group.max.session.timeout.ms)",
                          (long long)member->spec.session_ms);
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
        return kafka_fail(err, member->log, message->err, KAFKA_TRIED_join, member->spec.group);
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED: {
        const char *topic =
            message->rkt != NULL ? rd_kafka_topic_name(message->rkt) : member->spec.inputs[0];
        return kafka_fail(err, member->log, message->err, KAFKA_TRIED_read, topic);
    }
    default:
        diag_limited(&member->limit, DIAG_warn, "kafka.consumer",
                     D_TEXT("group", member->spec.group),
                     D_TEXT("error", rd_kafka_message_errstr(message)));
        return BATON_OK;
    }
}

static baton_code hear(struct kafka_member *member, struct baton_error *err)
{
    baton_code rc = BATON_OK;
    rd_kafka_message_t *message;
    while (rc == BATON_OK && member->n_events == 0 &&
           (message = rd_kafka_consumer_poll(member->consumer, 0)) != NULL) {
        if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
            rc = judge_error(member, message, err);
        }
        rd_kafka_message_destroy(message);
    }
    return rc == BATON_OK ? fatal(member, err) : rc;
}

/* Asks the group anew. It hears only what differs from what it knows of the member: one topic more,
 * of which nothing is taken. */
static void ask_anew(struct kafka_member *member)
{
    const char *topics[LOG_INPUTS + 1] = {member->spec.inputs[0], member->spec.inputs[1]};
    const size_t more = member->spec.n_outputs > 0 ? 1 : 0;
    if (more > 0) {
        topics[LOG_INPUTS] = member->spec.outputs[0];
    }
    member->misplaced = false;
    (void)subscribe(member, topics, LOG_INPUTS + more);
}

/* The group has not noticed what a commit found out: asked again, it must. */
static void join_again(struct kafka_member *member)
{
    if (member->misplaced) {
        ask_anew(member);
        return;
    }
    if (member->place != PLACE_lost ||
        mono_now().v - member->lost_at < LOST_SESSIONS * member->spec.session_ms) {
        return;
    }
    member->lost_at = mono_now().v;
    diag_line(DIAG_warn, "kafka.join_again", D_TEXT("group", member->spec.group));
    rd_kafka_unsubscribe(member->consumer);
    (void)subscribe(member, member->spec.inputs, LOG_INPUTS);
}

baton_code kafka_member_poll(struct log_member *base, struct log_event *ret_event,
                             struct baton_error *err)
{
    struct kafka_member *member = (struct kafka_member *)base;
    uint64_t drained;
    (void)!read(member->fd, &drained, sizeof(drained));

    ret_event->kind = LOG_EVENT_none;
    if (member->place == PLACE_leaving && member->n_events == 0) {
        member_let_go(member);
    }
    member_clock(member);
    join_again(member);
    if (member->producer != NULL) {
        rd_kafka_poll(member->producer, 0);
        confirm_idle(member);
    }
    kafka_pool_tidy(member->log);
    baton_code rc = hear(member, err);
    if (rc != BATON_OK || member->n_events == 0) {
        return rc;
    }
    *ret_event = member->events[0];
    member->n_events--;
    memmove(member->events, member->events + 1, member->n_events * sizeof(member->events[0]));
    member_ring(member); /* there may be more to tell, or to let go */
    return BATON_OK;
}

/* ---- committed offsets ---- */

baton_code kafka_member_committed(struct log_member *base, const int32_t *partitions, size_t count,
                                  int64_t timeout_ms, int64_t (*ret_offsets)[LOG_PARTITIONS_MAX],
                                  struct baton_error *err)
{
    struct kafka_member *member = (struct kafka_member *)base;
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new((int)(count * LOG_INPUTS));
    for (int input = 0; input < LOG_INPUTS; input++) {
        for (size_t i = 0; i < count; i++) {
            rd_kafka_topic_partition_list_add(list, member->spec.inputs[input], partitions[i]);
        }
    }
    /* At read_committed the broker answers only when no open transaction moves them. */
    rd_kafka_resp_err_t cause = rd_kafka_committed(member->consumer, list, (int)timeout_ms);
    for (int i = 0; cause == RD_KAFKA_RESP_ERR_NO_ERROR && i < list->cnt; i++) {
        cause = list->elems[i].err;
    }
    for (int i = 0; cause == RD_KAFKA_RESP_ERR_NO_ERROR && i < list->cnt; i++) {
        const int input = (size_t)i < count ? 0 : 1;
        const size_t at = (size_t)i % count;
        const int64_t offset = list->elems[i].offset;
        struct kafka_queue *own = &member->queues[input][partitions[at]];
        ret_offsets[input][at] = offset >= 0 ? offset : LOG_OFFSET_NONE;
        if (own->queue != NULL && own->next == LOG_OFFSET_NONE) {
            own->started = ret_offsets[input][at];
        }
    }
    rd_kafka_topic_partition_list_destroy(list);
    if (cause == RD_KAFKA_RESP_ERR__TIMED_OUT) {
        if (member->producer != NULL && member->txn == TXN_none) {
            producer_unhang(member);
        }
        return baton_fail(err, BATON_E_timed_out,
                          "the committed offsets of group %s were not stable within %lld ms: a "
                          "transaction is open, or the brokers do not answer",
                          member->spec.group, (long long)timeout_ms);
    }
    return cause == RD_KAFKA_RESP_ERR_NO_ERROR
               ? BATON_OK
               : kafka_fail_client(err, &member->consumer_client, cause, KAFKA_TRIED_offsets,
                                   member->spec.group);
}
