/*
 * Opens and closes a log on Kafka: what the configuration says of the cluster, the handle for
 * administration, the cluster's identity. In: common/log/log.c. Out: every file here.
 */
#include "common/log/kafka/kafka.h"

#include "common/base/config.h"
#include "common/base/safe_file.h"
#include "common/log/kafka/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A coordinator needs about so long to call a transaction complete whose markers can be seen (confirm.c).
 * One that begins sooner is told to come again, and librdkafka does so after 20 ms. */
#define COMMIT_GAP_MS 2
#define OPEN_TIMEOUT_MS 5000
#define CLOSE_TIMEOUT_MS 2000
#define SCRAM_SINCE 0x020601ff /* librdkafka 2.6.1 */

static void log_free(struct kafka_log *log)
{
    if (log->conf != NULL) {
        rd_kafka_conf_destroy(log->conf);
    }
    kafka_topics_forget_all(log);
    for (size_t i = 0; i < log->n_pairs; i++) {
        free(log->pairs[i].name);
        free(log->pairs[i].value);
    }
    free(log->pairs);
    free(log->brokers);
    free(log->principal);
    free(log->cluster);
    pthread_mutex_destroy(&log->lock);
    free(log);
}

static void kafka_log_close(struct log *base)
{
    struct kafka_log *log = (struct kafka_log *)base;
    bool ended = kafka_pool_close(log, CLOSE_TIMEOUT_MS);
    if (log->groups != NULL) {
        ended = kafka_destroy_bounded(log->groups, CLOSE_TIMEOUT_MS) && ended;
    }
    if (log->admin != NULL) {
        ended = kafka_destroy_bounded(log->admin, CLOSE_TIMEOUT_MS) && ended;
    }
    if (ended) {
        log_free(log); /* else threads of the client still look at it */
    }
}

static bool since_boot(int64_t ahead_ms, struct wall_ms *ret_now)
{
    ret_now->v = ahead_ms != INT64_MAX ? mono_now().v + ahead_ms : 0;
    return ahead_ms != INT64_MAX;
}

static bool kafka_time(struct log *base, struct wall_ms *ret_now)
{
    return since_boot(atomic_load(&((struct kafka_log *)base)->ahead_ms), ret_now);
}

static bool kafka_date(struct log *base, struct wall_ms *ret_now)
{
    return since_boot(atomic_load(&((struct kafka_log *)base)->dated_ms), ret_now);
}

static const char *kafka_cluster(const struct log *base)
{
    return ((const struct kafka_log *)base)->cluster;
}

rd_kafka_t *kafka_admin(struct kafka_log *log)
{
    return log->admin;
}

const char *kafka_brokers(const struct kafka_log *log)
{
    return log->brokers;
}

const char *kafka_principal(const struct kafka_log *log)
{
    return log->principal;
}

/* ---- the configuration's section ---- */

static baton_code no_memory(struct baton_error *err)
{
    return baton_fail(err, BATON_E_no_memory, "kafka: out of memory");
}

static bool is_set(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static baton_code copy_pairs(struct kafka_log *log, const struct config *config,
                             struct baton_error *err)
{
    log->pairs = calloc(config->kafka.n_client + 1, sizeof(*log->pairs));
    for (size_t i = 0; log->pairs != NULL && i < config->kafka.n_client; i++) {
        struct kafka_pair *to = &log->pairs[log->n_pairs++];
        to->name = strdup(config->kafka.client[i].key);
        to->value = strdup(config->kafka.client[i].value);
        if (to->name == NULL || to->value == NULL) {
            return no_memory(err);
        }
    }
    return log->pairs != NULL ? BATON_OK : no_memory(err);
}

/* "a:9092,b:9092" as people read it. */
static char *brokers_text(const char *brokers)
{
    size_t len = strlen(brokers);
    char *text = calloc(2 * len + 1, 1);
    for (size_t i = 0, at = 0; text != NULL && i < len; i++) {
        text[at++] = brokers[i];
        if (brokers[i] == ',' && brokers[i + 1] != ' ') {
            text[at++] = ' ';
        }
    }
    return text;
}

/* Who we are to the brokers, as their access lists name it. */
static char *principal_text(const struct config *config)
{
    char *text = NULL;
    int n;
    if (is_set(config->kafka.sasl_username)) {
        n = asprintf(&text, "User:%s", config->kafka.sasl_username);
    } else if (is_set(config->kafka.certificate)) {
        n = asprintf(&text, "the client of certificate %s", config->kafka.certificate);
    } else {
        n = asprintf(&text, "an anonymous client (User:ANONYMOUS)");
    }
    return n >= 0 ? text : NULL;
}

/* Before 2.6.1 librdkafka's answer holds the client's nonce twice: brokers from Kafka 4 on take that for
 * a wrong password, older ones do not look. */
static bool is_old_scram(const struct config *config)
{
    return is_set(config->kafka.sasl_mechanism) &&
           strncmp(config->kafka.sasl_mechanism, "SCRAM", 5) == 0 &&
           rd_kafka_version() < SCRAM_SINCE;
}

/* A secret's file: its content without one newline at the end; wiped by the caller. */
static baton_code set_password(rd_kafka_conf_t *conf, const char *path, struct baton_error *err)
{
    char password[4096 + 1];
    size_t len = 0;
    baton_code rc = safe_read(path, SAFE_secret, sizeof(password) - 1, password, &len, err);
    if (rc == BATON_E_key_not_found) {
        return baton_fail(
            err, BATON_E_bad_config,
            "kafka.sasl.password: {file: %s} is not there; write the password into it, "
            "readable by this user only",
            path);
    }
    if (rc == BATON_OK && memchr(password, '\0', len) != NULL) {
        rc = baton_fail(err, BATON_E_bad_config, "kafka.sasl.password.file: %s has a NUL byte",
                        path);
    }
    if (rc == BATON_OK) {
        if (len > 0 && password[len - 1] == '\n') {
            password[len - 1] = '\0';
        }
        rc = kafka_set(conf, "sasl.password", password, err);
    }
    explicit_bzero(password, sizeof(password));
    return rc == BATON_OK ? rc : baton_fail_context(err, rc, "kafka.sasl.password.file: ");
}

static baton_code set_key(rd_kafka_conf_t *conf, const char *path, struct baton_error *err)
{
    char *bytes = malloc(LIMIT_KEY_FILE + 1);
    size_t len = 0;
    if (bytes == NULL) {
        return no_memory(err);
    }
    /* Read here for its owner and permissions; librdkafka reads the file by itself. */
    baton_code rc = safe_read(path, SAFE_secret, LIMIT_KEY_FILE, bytes, &len, err);
    explicit_bzero(bytes, LIMIT_KEY_FILE);
    free(bytes);
    return rc == BATON_OK ? kafka_set(conf, "ssl.key.location", path, err) : rc;
}

static baton_code set_section(rd_kafka_conf_t *conf, const struct config *config,
                              struct baton_error *err)
{
    const struct {
        const char *name;
        const char *value;
    } plain[] = {
        {"bootstrap.servers", config->kafka_brokers},
        {"security.protocol", config->kafka.security},
        {"sasl.mechanism", config->kafka.sasl_mechanism},
        {"sasl.username", config->kafka.sasl_username},
        {"ssl.ca.location", config->kafka.ca},
        {"ssl.certificate.location", config->kafka.certificate},
    };
    baton_code rc = BATON_OK;
    for (size_t i = 0; rc == BATON_OK && i < sizeof(plain) / sizeof(plain[0]); i++) {
        if (is_set(plain[i].value)) {
            rc = kafka_set(conf, plain[i].name, plain[i].value, err);
        }
    }
    if (rc == BATON_OK && is_set(config->kafka.sasl_password_file)) {
        rc = set_password(conf, config->kafka.sasl_password_file, err);
    }
    if (rc == BATON_OK && is_set(config->kafka.key)) {
        rc = set_key(conf, config->kafka.key, err);
    }
    return rc;
}

static baton_code log_new(const struct config *config, struct kafka_log **ret_log,
                          struct baton_error *err)
{
    struct kafka_log *log = calloc(1, sizeof(*log));
    if (log == NULL || pthread_mutex_init(&log->lock, NULL) != 0) {
        free(log);
        return no_memory(err);
    }
    log->base.ops = &kafka_ops;
    atomic_store(&log->ahead_ms, INT64_MAX);
    atomic_store(&log->dated_ms, INT64_MAX);
    log->conf = rd_kafka_conf_new();
    log->brokers = brokers_text(config->kafka_brokers);
    log->principal = principal_text(config);
    log->old_scram = is_old_scram(config);
    baton_code rc = log->brokers != NULL && log->principal != NULL ? BATON_OK : no_memory(err);
    if (rc == BATON_OK) {
        rc = copy_pairs(log, config, err);
    }
    if (rc == BATON_OK) {
        rc = set_section(log->conf, config, err);
    }
    if (rc != BATON_OK) {
        log_free(log);
        return rc;
    }
    *ret_log = log;
    return BATON_OK;
}

/* ---- opening ---- */

static baton_code make_admin(struct kafka_log *log, struct baton_error *err)
{
    rd_kafka_conf_t *conf = kafka_conf_new(log, &log->client, KAFKA_USE_admin, err);
    if (conf == NULL) {
        return BATON_E_bad_config;
    }
    return kafka_handle_new(&log->client, conf, &log->admin, err);
}

/* The first answer of the cluster tells whether it is there, and which it is. */
static baton_code find_cluster(struct kafka_log *log, struct baton_error *err)
{
    const struct rd_kafka_metadata *metadata = NULL;
    baton_code rc =
        kafka_unreachable(kafka_metadata(log, NULL, OPEN_TIMEOUT_MS, &metadata, err), err);
    if (rc != BATON_OK) {
        return rc;
    }
    rd_kafka_metadata_destroy(metadata);
    atomic_store(&log->reached, true);
    char *id = rd_kafka_clusterid(log->admin, OPEN_TIMEOUT_MS);
    log->cluster = strdup(id != NULL ? id : "");
    if (id != NULL) {
        rd_kafka_mem_free(log->admin, id);
    }
    if (log->cluster == NULL) {
        return no_memory(err);
    }
    return log->cluster[0] != '\0' ? BATON_OK
                                   : baton_fail(err, BATON_E_service_unavailable,
                                                "brokers %s: do not say which cluster "
                                                "they are; they are starting, or too old",
                                                log->brokers);
}

baton_code kafka_log_open(const struct config *config, struct log **ret_log,
                          struct baton_error *err)
{
    struct kafka_log *log = NULL;
    if (!is_set(config->kafka_brokers)) {
        return baton_fail(err, BATON_E_bad_config,
                          "log: kafka needs kafka.brokers, [host:port, ...]");
    }
    baton_code rc = log_new(config, &log, err);
    if (rc == BATON_OK &&
        ((rc = make_admin(log, err)) != BATON_OK || (rc = find_cluster(log, err)) != BATON_OK)) {
        kafka_log_close(&log->base);
        return rc;
    }
    if (rc == BATON_OK) {
        *ret_log = &log->base;
    }
    return rc;
}

const struct log_driver_ops kafka_ops = {
    .name = "kafka",
    .replaces_keys = false,
    .commit_gap_ms = COMMIT_GAP_MS,
    .close = kafka_log_close,
    .cluster = kafka_cluster,
    .time = kafka_time,
    .date = kafka_date,
    .topic_describe = kafka_topic_describe,
    .topics_create = kafka_topics_create,
    .topic_alter = kafka_topic_alter,
    .topics_list = kafka_topics_list,
    .watermarks = kafka_watermarks,
    .trim = kafka_trim,
    .may_write = kafka_may_write,
    .may_read = kafka_may_read,
    .publisher_open = kafka_publisher_open,
    .publisher_close = kafka_publisher_close,
    .publish = kafka_publish,
    .reader_open = kafka_reader_open,
    .reader_close = kafka_reader_close,
    .reader_next = kafka_reader_next,
    .member_open = kafka_member_open,
    .member_close = kafka_member_close,
    .member_fd = kafka_member_fd,
    .member_poll = kafka_member_poll,
    .member_committed = kafka_member_committed,
    .member_seek = kafka_member_seek,
    .member_fetch = kafka_member_fetch,
    .member_end = kafka_member_end,
    .commit = kafka_commit,
    .member_renew = kafka_member_renew,
    .away = kafka_away,
    .fence = kafka_fence,
    .group_members = kafka_group_members,
    .group_offset = kafka_group_offset,
};

const char *kafka_log_version(bool *ret_old)
{
    *ret_old =
        rd_kafka_version() >> 8 < RD_KAFKA_VERSION >> 8; /* the last byte: builds of one version */
    return rd_kafka_version_str();
}
