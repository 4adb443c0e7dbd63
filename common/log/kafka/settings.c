/*
 * What a client handle is configured with: one table of settings, the configuration's section, and
 * what the user passes through. In: common/log/log.c (the check), and every file here that makes a
 * handle. Out: handle.c.
 */
#include "common/log/kafka/kafka.h"

#include "common/base/buf.h"
#include "common/base/check.h"
#include "common/base/config.h"
#include "common/base/text.h"
#include "common/base/word.h"
#include "common/log/kafka/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USE(use) (1u << KAFKA_USE_##use)
#define ALL (USE(admin) | USE(member) | USE(reader) | USE(txn) | USE(publisher))
#define PRODUCERS (USE(txn) | USE(publisher))
#define CONSUMERS (USE(admin) | USE(member) | USE(reader))

/* OWN: the code relies on it, so that kafka.client may not change it. */
enum whose { OWN, DEFAULT };

struct setting {
    const char *name;
    const char *value; /* NULL: set elsewhere, `why` says where */
    unsigned uses;
    enum whose whose;
    const char *why; /* told to who tries to change it */
};

/* Of a name that stands twice, each row has its own uses. */
static const struct setting settings[] = {
    /* connections */
    {"socket.nagle.disable", "true", ALL, DEFAULT, "small requests must not wait for each other"},
    {"socket.keepalive.enable", "true", ALL, DEFAULT, "dead peers are found"},
    {"socket.connection.setup.timeout.ms", "10000", ALL, DEFAULT, "a silent host is given up"},
    {"reconnect.backoff.max.ms", "2000", ALL, DEFAULT, "10 s prolong every outage"},
    {"log.connection.close", "false", ALL, DEFAULT, "idle connections are closed by the brokers"},
    {"client.id", "baton", ALL, DEFAULT, "how the brokers' logs and quotas name it"},
    {"allow.auto.create.topics", "false", ALL, OWN, "topics are made by `baton topics apply`"},
#if RD_KAFKA_VERSION >= 0x02050000
    {"enable.metrics.push", "false", ALL, DEFAULT, "nothing is reported that was not asked for"},
#endif
    /* consumers */
    {"enable.auto.commit", "false", CONSUMERS, OWN, "offsets move in transactions only"},
    {"enable.auto.offset.store", "false", CONSUMERS, OWN, "offsets move in transactions only"},
    {"enable.partition.eof", "true", CONSUMERS, OWN, "the end of a partition is an event"},
    {"isolation.level", "read_committed", USE(member) | USE(reader), OWN,
     "what was aborted must not be seen"},
    {"isolation.level", "read_uncommitted", USE(admin), OWN, "ends are those behind everything"},
    {"auto.offset.reset", "earliest", CONSUMERS, OWN, "what was trimmed is behind us"},
    {"partition.assignment.strategy", "range", USE(member), OWN,
     "both inputs' partitions of one number go to one worker"},
    {"check.crcs", "true", CONSUMERS, DEFAULT, "costs little"},
    {"fetch.wait.max.ms", "500", USE(member), DEFAULT, "brokers wake early"},
    {"fetch.wait.max.ms", "1", USE(reader), OWN,
     "the end of a partition comes with an empty fetch"},
    {"fetch.message.max.bytes", "1048576", CONSUMERS, DEFAULT, "a record of any topic of ours"},
    {"queued.max.messages.kbytes", "1024", USE(member), DEFAULT, "memory of each partition"},
    {"queued.max.messages.kbytes", "8192", USE(admin) | USE(reader), DEFAULT,
     "memory of each partition that is read"},
    /* producers */
    {"acks", "all", PRODUCERS, OWN, "an acknowledged record is durable"},
    {"enable.idempotence", "true", PRODUCERS, OWN, "a repeated request writes once"},
    {"linger.ms", "0", PRODUCERS, OWN, "batches are made above, and flushed"},
    {"retry.backoff.ms", "10", USE(txn), OWN,
     "100 ms cost each transaction that follows another at once"},
#if RD_KAFKA_VERSION >= 0x02030000
    {"retry.backoff.max.ms", "10", USE(txn), OWN, "the same"},
#endif
    {"max.in.flight", "1", USE(publisher), OWN,
     "a batch that was refused must not be followed by one that is taken"},
    {"message.timeout.ms", "300000", USE(publisher), OWN, "the caller's time ends it sooner"},
    {"compression.codec", "zstd", PRODUCERS, DEFAULT, "no broker turns it off in silence"},
    {"partitioner", "murmur2", PRODUCERS, OWN, "keys go where Kafka's Java clients put them"},
    {"message.max.bytes", "1200000", PRODUCERS, OWN, "each topic has its own limit"},
    {"batch.size", "409600", PRODUCERS, OWN, "a topic's limit is that of a whole batch"},
    {"queue.buffering.max.messages", "100000", PRODUCERS, DEFAULT, "bounds memory"},
    {"queue.buffering.max.kbytes", "65536", PRODUCERS, DEFAULT, "bounds memory"},
    {"topic.metadata.propagation.max.ms", "2000", PRODUCERS, DEFAULT,
     "a topic that is gone is known after so long"},
    /* set elsewhere */
    {"bootstrap.servers", NULL, 0, OWN, "it is kafka.brokers"},
    {"metadata.broker.list", NULL, 0, OWN, "it is kafka.brokers"},
    {"security.protocol", NULL, 0, OWN, "it is kafka.security"},
    {"sasl.mechanism", NULL, 0, OWN, "it is kafka.sasl.mechanism"},
    {"sasl.mechanisms", NULL, 0, OWN, "it is kafka.sasl.mechanism"},
    {"sasl.username", NULL, 0, OWN, "it is kafka.sasl.username"},
    {"sasl.password", NULL, 0, OWN, "it is kafka.sasl.password.file: a secret stands in a file"},
    {"ssl.ca.location", NULL, 0, OWN, "it is kafka.ca"},
    {"ssl.certificate.location", NULL, 0, OWN, "it is kafka.certificate"},
    {"ssl.key.location", NULL, 0, OWN, "it is kafka.key"},
    {"ssl.key.pem", NULL, 0, OWN, "it is kafka.key: a secret stands in a file"},
    {"session.timeout.ms", NULL, 0, OWN, "it is kafka.session"},
    {"heartbeat.interval.ms", NULL, 0, OWN, "it is kafka.heartbeat"},
    {"transaction.timeout.ms", NULL, 0, OWN, "it is kafka.session"},
    {"max.poll.interval.ms", NULL, 0, OWN, "turns run beside the reading; it is never reached"},
    {"group.id", NULL, 0, OWN, "it is made of prefix and service"},
    {"group.instance.id", NULL, 0, OWN, "it is the worker's id"},
    {"group.protocol", NULL, 0, OWN, "the classic protocol lets a restart take its place back"},
    {"transactional.id", NULL, 0, OWN, "it is made of group and worker"},
    {"request.required.acks", NULL, 0, OWN, "an acknowledged record is durable"},
    {"queue.buffering.max.ms", NULL, 0, OWN, "batches are made above, and flushed"},
    {"delivery.timeout.ms", NULL, 0, OWN, "the caller's time ends it"},
    {"max.in.flight.requests.per.connection", NULL, 0, OWN, "order must be kept"},
    {"auto.commit.enable", NULL, 0, OWN, "offsets move in transactions only"},
    {"enable.gapless.guarantee", NULL, 0, OWN, "a lost record is told to who wrote it"},
    {"plugin.library.paths", NULL, 0, OWN, "no foreign code is loaded"},
    {"ssl.engine.location", NULL, 0, OWN, "no foreign code is loaded"},
};

static const struct setting *own_setting(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        if (settings[i].whose == OWN && strcmp(settings[i].name, name) == 0) {
            return &settings[i];
        }
    }
    return NULL;
}

/* ---- the check of what is passed through ---- */

static void found_unknown(const struct config_pair *pair, rd_kafka_conf_t *scratch,
                          struct buf *findings, struct baton_error *err)
{
    size_t count = 0;
    const char **dump = rd_kafka_conf_dump(scratch, &count);
    const char **names = calloc(count / 2 + 1, sizeof(*names));
    const char *near = NULL;
    for (size_t i = 0; names != NULL && i + 1 < count; i += 2) {
        names[i / 2] = dump[i];
    }
    if (names != NULL) {
        near = word_nearest(names, count / 2, pair->key);
    }
    config_pair_found(
        pair, findings, err, "kafka.client.%s is no setting of this librdkafka (%s)%s%s%s",
        text_quote_of(pair->key).s, rd_kafka_version_str(), near != NULL ? "; did you mean '" : "",
        near != NULL ? near : "", near != NULL ? "'?" : "");
    free(names);
    rd_kafka_conf_dump_free(dump, count);
}

static bool check_pair(const struct config_pair *pair, rd_kafka_conf_t *scratch,
                       struct buf *findings, struct baton_error *err)
{
    char text[256] = "";
    const struct setting *own = own_setting(pair->key);
    if (own != NULL) {
        config_pair_found(pair, findings, err, "kafka.client.%s is not for kafka.client: %s",
                          own->name, own->why);
        return false;
    }
    switch (rd_kafka_conf_set(scratch, pair->key, pair->value, text, sizeof(text))) {
    case RD_KAFKA_CONF_OK:
        return true;
    case RD_KAFKA_CONF_UNKNOWN:
        found_unknown(pair, scratch, findings, err);
        break;
    case RD_KAFKA_CONF_INVALID:
        config_pair_found(pair, findings, err, "kafka.client.%s: %s", text_quote_of(pair->key).s,
                          text_quote_of(text).s);
        break;
    }
    return false;
}

baton_code kafka_settings_check(const struct config *config, struct buf *findings,
                                struct baton_error *err)
{
    struct baton_error first = {BATON_OK, ""}; /* err may hold what was there before */
    rd_kafka_conf_t *scratch = rd_kafka_conf_new();
    bool good = true;
    for (size_t i = 0; i < config->kafka.n_client; i++) {
        good = check_pair(&config->kafka.client[i], scratch, findings, &first) && good;
    }
    rd_kafka_conf_destroy(scratch);
    if (!good && err != NULL) {
        *err = first;
    }
    return good ? BATON_OK : BATON_E_bad_config;
}

/* ---- configurations ---- */

baton_code kafka_set(rd_kafka_conf_t *conf, const char *name, const char *value,
                     struct baton_error *err)
{
    char text[256] = "";
    if (rd_kafka_conf_set(conf, name, value, text, sizeof(text)) != RD_KAFKA_CONF_OK) {
        return baton_fail(err, BATON_E_bad_config, "kafka: %s", text_quote_of(text).s);
    }
    return BATON_OK;
}

baton_code kafka_set_int(rd_kafka_conf_t *conf, const char *name, int64_t value,
                         struct baton_error *err)
{
    char text[32];
    snprintf(text, sizeof(text), "%lld", (long long)value);
    return kafka_set(conf, name, text, err);
}

static baton_code apply(const struct kafka_log *log, rd_kafka_conf_t *conf, enum kafka_use use,
                        struct baton_error *err)
{
    baton_code rc = BATON_OK;
    for (size_t i = 0; rc == BATON_OK && i < COUNT_OF(settings); i++) {
        if ((settings[i].uses & (1u << use)) != 0 && settings[i].value != NULL) {
            rc = kafka_set(conf, settings[i].name, settings[i].value, err);
        }
    }
    for (size_t i = 0; rc == BATON_OK && i < log->n_pairs; i++) {
        rc = kafka_set(conf, log->pairs[i].name, log->pairs[i].value, err);
    }
    return rc;
}

rd_kafka_conf_t *kafka_conf_new(struct kafka_log *log, struct kafka_client *client,
                                enum kafka_use use, struct baton_error *err)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_dup(log->conf);
    client->log = log;
    client->use = use;
    if (apply(log, conf, use, err) != BATON_OK) {
        rd_kafka_conf_destroy(conf);
        return NULL;
    }
    kafka_conf_listen(conf, client);
    return conf;
}
