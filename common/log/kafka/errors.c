/*
 * What an error of librdkafka or of a broker means, and what to do: one table. In: every file here.
 */
#include "common/log/kafka/state.h"

#include "common/base/check.h"

#include <stdio.h>
#include <string.h>

struct row {
    rd_kafka_resp_err_t cause;
    baton_code code;
    const char *why;  /* NULL: librdkafka's own words */
    const char *todo; /* "": nothing */
};

#define ERR(word) RD_KAFKA_RESP_ERR_##word
#define IN_TIME "it is tried again; if it lasts, look at the brokers' logs"
#define FREE_DISK "free space on the brokers' disks"

/* What is not here is service_unavailable in librdkafka's words: worth a repetition. */
static const struct row rows[] = {
    /* the connection */
    {ERR(_TRANSPORT), BATON_E_service_unavailable, "cannot be reached",
     "are they running, and is kafka.brokers right?"},
    {ERR(_ALL_BROKERS_DOWN), BATON_E_service_unavailable, "cannot be reached",
     "are they running, and is kafka.brokers right?"},
    {ERR(_RESOLVE), BATON_E_service_unavailable, "have a name that cannot be resolved",
     "is kafka.brokers right?"},
    {ERR(_TIMED_OUT), BATON_E_timed_out, "no answer in time", ""},
    {ERR(_TIMED_OUT_QUEUE), BATON_E_timed_out, "no answer in time", ""},
    {ERR(_MSG_TIMED_OUT), BATON_E_timed_out, "no acknowledgement in time", ""},
    {ERR(REQUEST_TIMED_OUT), BATON_E_timed_out, "the broker ran out of time", IN_TIME},
    {ERR(_AUTHENTICATION), BATON_E_not_permitted, "refuse user and password",
     "see kafka.sasl in the configuration"},
    {ERR(SASL_AUTHENTICATION_FAILED), BATON_E_not_permitted, "refuse user and password",
     "see kafka.sasl in the configuration"},
    {ERR(UNSUPPORTED_SASL_MECHANISM), BATON_E_not_permitted, "do not speak this SASL mechanism",
     "see kafka.sasl.mechanism"},
    {ERR(ILLEGAL_SASL_STATE), BATON_E_not_permitted, "want another kind of login",
     "see kafka.security and kafka.sasl"},
    {ERR(_SSL), BATON_E_service_unavailable, "have no TLS connection with us",
     "see kafka.security, kafka.ca and the brokers' certificates"},
    {ERR(_UNSUPPORTED_FEATURE), BATON_E_bad_config, "the brokers are too old for this",
     "Baton needs brokers of Kafka 2.5 or newer, at a broker's port (not a controller's)"},
    {ERR(UNSUPPORTED_VERSION), BATON_E_bad_config, "the brokers are too old for this",
     "Baton needs brokers of Kafka 2.5 or newer"},
    {ERR(_FATAL), BATON_E_service_unavailable, "the client has failed for good", ""},
    {ERR(_DESTROY), BATON_E_stopped, "the client is being closed", ""},
    {ERR(_QUEUE_FULL), BATON_E_service_unavailable, "too much waits to be sent", IN_TIME},
    /* rights: the text is made of right, resource and principal */
    {ERR(TOPIC_AUTHORIZATION_FAILED), BATON_E_not_permitted, "", ""},
    {ERR(GROUP_AUTHORIZATION_FAILED), BATON_E_not_permitted, "", ""},
    {ERR(TRANSACTIONAL_ID_AUTHORIZATION_FAILED), BATON_E_not_permitted, "", ""},
    {ERR(CLUSTER_AUTHORIZATION_FAILED), BATON_E_not_permitted, "", ""},
    /* topics */
    {ERR(UNKNOWN_TOPIC_OR_PART), BATON_E_topic_missing, "it is not there",
     "`baton topics apply` makes what is missing"},
    {ERR(_UNKNOWN_TOPIC), BATON_E_topic_missing, "it is not there",
     "`baton topics apply` makes what is missing"},
    {ERR(_UNKNOWN_PARTITION), BATON_E_topic_missing, "it has no such partition",
     "`baton topics plan` shows what differs"},
    {ERR(TOPIC_EXCEPTION), BATON_E_invalid_request, "that is no name for a topic", ""},
    {ERR(LEADER_NOT_AVAILABLE), BATON_E_service_unavailable, "it has no leader now", IN_TIME},
    {ERR(NOT_LEADER_FOR_PARTITION), BATON_E_service_unavailable, "its leader has changed", IN_TIME},
    {ERR(INVALID_REPLICATION_FACTOR), BATON_E_bad_config,
     "there are fewer brokers than copies wanted", "see kafka.replication"},
    {ERR(INVALID_PARTITIONS), BATON_E_invalid_request, "that number of partitions cannot be", ""},
    {ERR(INVALID_CONFIG), BATON_E_bad_config, "the brokers refuse its settings", ""},
    {ERR(POLICY_VIOLATION), BATON_E_invalid_request, "a rule of the brokers forbids it", ""},
    {ERR(KAFKA_STORAGE_ERROR), BATON_E_disk_full, "a broker's disk is full or broken", FREE_DISK},
    {ERR(NOT_ENOUGH_REPLICAS), BATON_E_service_unavailable, "too few copies are alive to write",
     IN_TIME},
    {ERR(NOT_ENOUGH_REPLICAS_AFTER_APPEND), BATON_E_service_unavailable,
     "too few copies are alive to write", IN_TIME},
    /* records */
    {ERR(MSG_SIZE_TOO_LARGE), BATON_E_record_too_large, "the record is larger than it takes", ""},
    {ERR(INVALID_MSG_SIZE), BATON_E_record_too_large, "the record is larger than it takes", ""},
    {ERR(RECORD_LIST_TOO_LARGE), BATON_E_record_too_large, "the records are larger than it takes",
     ""},
    {ERR(INVALID_RECORD), BATON_E_invalid_request,
     "the brokers refuse the record: a compacted topic takes none without a key", ""},
    {ERR(INVALID_MSG), BATON_E_publish_failed, "the record arrived damaged", IN_TIME},
    {ERR(OFFSET_OUT_OF_RANGE), BATON_E_invalid_request, "there is no such offset", ""},
    {ERR(_PURGE_QUEUE), BATON_E_timed_out, "it was not sent in time", ""},
    {ERR(_PURGE_INFLIGHT), BATON_E_timed_out, "it was not acknowledged in time", ""},
    /* groups and transactions */
    {ERR(COORDINATOR_NOT_AVAILABLE), BATON_E_service_unavailable,
     "its coordinator is not there now", IN_TIME},
    {ERR(NOT_COORDINATOR), BATON_E_service_unavailable, "its coordinator has changed", IN_TIME},
    {ERR(COORDINATOR_LOAD_IN_PROGRESS), BATON_E_service_unavailable, "its coordinator is starting",
     IN_TIME},
    {ERR(INVALID_SESSION_TIMEOUT), BATON_E_bad_config,
     "the brokers do not allow a session of that length",
     "see kafka.session and the brokers' group.min.session.timeout.ms"},
    {ERR(INCONSISTENT_GROUP_PROTOCOL), BATON_E_bad_config,
     "its members want other assignments than ours",
     "no other program may be a member of a group of Baton's"},
    {ERR(GROUP_MAX_SIZE_REACHED), BATON_E_service_unavailable, "the group is full",
     "see the brokers' group.max.size"},
    {ERR(FENCED_INSTANCE_ID), BATON_E_twin, "another process has this worker id",
     "give each worker its own id"},
    {ERR(PRODUCER_FENCED), BATON_E_twin, "another producer has this transactional id", ""},
    {ERR(_FENCED), BATON_E_twin, "another producer has this transactional id", ""},
    {ERR(INVALID_PRODUCER_EPOCH), BATON_E_twin, "another producer has this transactional id", ""},
    {ERR(INVALID_TRANSACTION_TIMEOUT), BATON_E_bad_config,
     "the brokers do not allow a transaction of that length",
     "see kafka.session and the brokers' transaction.max.timeout.ms"},
    {ERR(UNSTABLE_OFFSET_COMMIT), BATON_E_timed_out, "a transaction that moves it is open", ""},
    {ERR(_INVALID_ARG), BATON_E_unexpected, NULL, ""},
    {ERR(_STATE), BATON_E_unexpected, NULL, ""},
};

/* What was tried, and which right it needs. */
struct attempt {
    const char *words;
    const char *right; /* NULL: none of its own */
    const char *kind;  /* of the resource */
};

#define TRIED_ROW(id, words, right, kind) {words, right, kind},
static const struct attempt attempts[] = {KAFKA_TRIED(TRIED_ROW)};
#undef TRIED_ROW

static const struct attempt *attempt_of(enum kafka_tried tried)
{
    BATON_PRE((unsigned)tried < KAFKA_TRIED_COUNT);
    return &attempts[tried];
}

static const struct row *row_of(rd_kafka_resp_err_t cause)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (rows[i].cause == cause) {
            return &rows[i];
        }
    }
    return NULL;
}

baton_code kafka_code(rd_kafka_resp_err_t cause)
{
    if (cause == RD_KAFKA_RESP_ERR_NO_ERROR) {
        return BATON_OK;
    }
    const struct row *row = row_of(cause);
    return row != NULL ? row->code : BATON_E_service_unavailable;
}

/* The kind of resource that the cause is about, whatever was tried. */
static const char *kind_of(rd_kafka_resp_err_t cause)
{
    if (cause == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED) {
        return "group";
    }
    if (cause == RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED) {
        return "transactional id";
    }
    return cause == RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED ? "the cluster" : "topic";
}

static bool about_rights(rd_kafka_resp_err_t cause)
{
    return cause == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ||
           cause == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED ||
           cause == RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED ||
           cause == RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED;
}

/* Right, resource and principal. */
static baton_code fail_right(struct baton_error *err, const struct kafka_log *log,
                             rd_kafka_resp_err_t cause, enum kafka_tried tried, const char *on)
{
    const struct attempt *attempt = attempt_of(tried);
    const char *name = on != NULL ? on : "";
    const char *kind = kind_of(cause);
    const bool known = strcmp(kind, attempt->kind) == 0; /* else another step of it was refused */
    const char *right = known && attempt->right != NULL ? attempt->right : "that this needs";
    const char *quote = known && attempt->right != NULL ? "'" : "";
    return baton_fail(err, BATON_E_not_permitted,
                      "%s%s%s: %s lacks the right %s%s%s%s on %s%s%s; `baton topics plan --acl` "
                      "prints the rights that are needed",
                      attempt->words, on != NULL ? " " : "", name, kafka_principal(log), quote,
                      right, quote,
                      strcmp(right, "Describe") == 0 ? " (which Read and Write bring)" : "", kind,
                      known && on != NULL ? " " : "", known ? name : "");
}

/* What is said of the brokers, not of what was tried on. */
static bool about_brokers(rd_kafka_resp_err_t cause)
{
    static const rd_kafka_resp_err_t causes[] = {
        ERR(_TRANSPORT),
        ERR(_ALL_BROKERS_DOWN),
        ERR(_RESOLVE),
        ERR(_SSL),
        ERR(_AUTHENTICATION),
        ERR(SASL_AUTHENTICATION_FAILED),
        ERR(UNSUPPORTED_SASL_MECHANISM),
        ERR(ILLEGAL_SASL_STATE),
    };
    for (size_t i = 0; i < COUNT_OF(causes); i++) {
        if (causes[i] == cause) {
            return true;
        }
    }
    return false;
}

/* What to do about it, and if the fault may be the library's, that. */
static const char *todo_of(const struct row *row, const struct kafka_log *log)
{
    if (log->old_scram &&
        (row->cause == ERR(_AUTHENTICATION) || row->cause == ERR(SASL_AUTHENTICATION_FAILED))) {
        return "see kafka.sasl in the configuration; with SCRAM this librdkafka can log in to "
               "brokers up to Kafka 3.9 only, from 2.6.1 on to newer ones, too: there use PLAIN "
               "over TLS, or certificates";
    }
    return row->todo;
}

baton_code kafka_fail(struct baton_error *err, const struct kafka_log *log,
                      rd_kafka_resp_err_t cause, enum kafka_tried tried, const char *on)
{
    const struct row *row = row_of(cause);
    if (about_rights(cause)) {
        return fail_right(err, log, cause, tried, on);
    }
    const char *why = row != NULL && row->why != NULL ? row->why : rd_kafka_err2str(cause);
    const char *todo = row != NULL ? todo_of(row, log) : IN_TIME;
    bool brokers = about_brokers(cause);
    bool ours = cause < 0 && !brokers; /* an answer of the client, so say whom it asked */
    return baton_fail(err, kafka_code(cause), "%s%s%s: %s%s%s%s (%s%s%s)%s%s",
                      attempt_of(tried)->words, on != NULL ? " " : "", on != NULL ? on : "",
                      brokers ? "brokers " : "", brokers ? kafka_brokers(log) : "",
                      brokers ? " " : "", why, rd_kafka_err2name(cause), ours ? ", brokers " : "",
                      ours ? kafka_brokers(log) : "", todo[0] != '\0' ? "; " : "", todo);
}

/* Errors that only say that nobody answers: the connection knows more. */
static bool says_little(rd_kafka_resp_err_t cause)
{
    return cause == RD_KAFKA_RESP_ERR__TRANSPORT || cause == RD_KAFKA_RESP_ERR__TIMED_OUT ||
           cause == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT || cause == RD_KAFKA_RESP_ERR__PURGE_QUEUE ||
           cause == RD_KAFKA_RESP_ERR__PURGE_INFLIGHT ||
           cause == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN ||
           cause == RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE || cause == RD_KAFKA_RESP_ERR__FATAL;
}

/* A TLS failure that no waiting heals. */
static bool wrong_for_good(const char *said)
{
    return strstr(said, "verify failed") != NULL || strstr(said, "wrong version number") != NULL ||
           strstr(said, "unknown ca") != NULL || strstr(said, "certificate required") != NULL;
}

/* A TLS alert of the brokers about our certificate. With TLS 1.3 it comes when the connection already
 * stands, so it looks like one that breaks off. */
static bool refuses_certificate(const char *said)
{
    return strstr(said, "alert bad certificate") != NULL ||
           strstr(said, "alert certificate") != NULL || strstr(said, "alert unknown ca") != NULL ||
           strstr(said, "alert unsupported certificate") != NULL;
}

/* A listener of another kind: it takes the connection, and ends it without a word. */
static bool breaks_off(rd_kafka_resp_err_t heard, const char *said)
{
    return (heard == RD_KAFKA_RESP_ERR__TRANSPORT ||
            heard == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) &&
           strstr(said, "Connect to") == NULL;
}

baton_code kafka_fail_client(struct baton_error *err, const struct kafka_client *client,
                             rd_kafka_resp_err_t cause, enum kafka_tried tried, const char *on)
{
    char said[sizeof(client->said)];
    rd_kafka_resp_err_t heard =
        kafka_client_said((struct kafka_client *)client, said, sizeof(said));
    const struct row *row = row_of(heard);
    if (heard == RD_KAFKA_RESP_ERR_NO_ERROR || !says_little(cause)) {
        return kafka_fail(err, client->log, cause, tried, on);
    }
    baton_code code = kafka_code(cause);
    const bool certificate = refuses_certificate(said);
    if (certificate || kafka_code(heard) == BATON_E_not_permitted) {
        code = BATON_E_not_permitted;
    } else if (heard == RD_KAFKA_RESP_ERR__SSL && wrong_for_good(said)) {
        code = BATON_E_bad_config;
    }
    const char *why = certificate                       ? "refuse the TLS login"
                      : row != NULL && row->why != NULL ? row->why
                                                        : rd_kafka_err2str(heard);
    const char *todo = certificate ? "see kafka.certificate and kafka.key, and which authorities "
                                     "the brokers know"
                       : breaks_off(heard, said) ? "something answers there and breaks off: do "
                                                   "kafka.security and the listener go together?"
                       : row != NULL             ? todo_of(row, client->log)
                                                 : "";
    bool as = code == BATON_E_not_permitted; /* whom the brokers refuse */
    return baton_fail(err, code, "%s%s%s: brokers %s %s%s%s%s%s (%s)", attempt_of(tried)->words,
                      on != NULL ? " " : "", on != NULL ? on : "", kafka_brokers(client->log), why,
                      as ? " of " : "", as ? kafka_principal(client->log) : "",
                      todo[0] != '\0' ? "; " : "", todo, said);
}

baton_code kafka_unreachable(baton_code code, struct baton_error *err)
{
    if (code == BATON_E_timed_out) {
        code = BATON_E_service_unavailable;
        if (err != NULL) {
            err->code = code;
        }
    }
    return code;
}
