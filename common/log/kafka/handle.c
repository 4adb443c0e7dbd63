/*
 * Handles of librdkafka: made, and listened to. In: every file here that has a
 * handle. Their log lines and errors become log lines of ours; the last error is kept for messages.
 */
#include "common/log/kafka/state.h"

#include "common/base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

/* ---- what a handle says ---- */

/* One limit for each kind of line, so that a flood of one does not hide another. */
static struct diag_limit *limit_of(struct kafka_log *log, const char *facility)
{
    unsigned sum = 0;
    for (const char *at = facility; at != NULL && *at != '\0'; at++) {
        sum = sum * 31 + (unsigned char)*at;
    }
    return &log->limits[sum % KAFKA_LIMITS];
}

/* Lines that say again what is told elsewhere: FAIL comes as an error, too (on_error); GETPID and
 * REQTMOUT are tried again by the client, and what waits for them says so if it is over time. Before
 * the cluster has answered once, all that is said is in the error of who opens the log. */
static bool told_elsewhere(const struct kafka_client *client, const char *facility)
{
    return !atomic_load(&client->log->reached) || strcmp(facility, "FAIL") == 0 ||
           strcmp(facility, "GETPID") == 0 || strcmp(facility, "REQTMOUT") == 0;
}

static enum diag_level level_of(const struct kafka_client *client, int level, const char *facility)
{
    if (client == NULL || level > LOG_INFO || told_elsewhere(client, facility)) {
        return DIAG_debug;
    }
    /* a client that cannot go on returns an error as well */
    return level <= LOG_WARNING ? DIAG_warn : DIAG_info;
}

/* On any thread of the client. */
static void on_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
    struct kafka_client *client = rd_kafka_opaque(rk);
    enum diag_level to = level_of(client, level, facility);
    if (client != NULL &&
        (strcmp(facility, "SESSTMOUT") == 0 || strcmp(facility, "MAXPOLL") == 0)) {
        atomic_store(&client->session_over, true);
    }
    if (client == NULL || !diag_wants(to) ||
        (strcmp(facility, "CONFWARN") == 0 && strstr(text, "will be ignored") != NULL)) {
        return; /* a setting for producers, at a consumer: every handle gets all that is passed */
    }
    if (to == DIAG_debug) {
        diag_line(to, "kafka.client", D_TEXT("about", facility), D_TEXT("text", text));
    } else {
        diag_limited(limit_of(client->log, facility), to, "kafka.client", D_TEXT("about", facility),
                     D_TEXT("text", text));
    }
}

/* How much an error says: a later one that says less does not hide it. */
static int weight(int cause)
{
    if (cause == RD_KAFKA_RESP_ERR__AUTHENTICATION || cause == RD_KAFKA_RESP_ERR__SSL) {
        return 3;
    }
    if (cause == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN || cause == RD_KAFKA_RESP_ERR_NO_ERROR) {
        return 0;
    }
    return cause == RD_KAFKA_RESP_ERR__FATAL ? 2 : 1;
}

/* The useful part: without the client's name, and without how long and how often. */
static struct text_quote useful(const char *reason)
{
    const char *from = strstr(reason, "]: ");
    from = from != NULL ? from + 3 : reason;
    const char *to = strstr(from, " (after ");
    return text_quote(from, to != NULL ? (size_t)(to - from) : strlen(from));
}

static void on_error(rd_kafka_t *rk, int cause, const char *reason, void *opaque)
{
    struct kafka_client *client = opaque;
    (void)rk;
    pthread_mutex_lock(&client->log->lock);
    if (weight(cause) >= weight(atomic_load(&client->cause)) ||
        mono_now().v - client->said_ms > KAFKA_SAID_MS) {
        struct text_quote clean = useful(reason);
        snprintf(client->said, sizeof(client->said), "%s", clean.s);
        client->said_ms = mono_now().v;
        atomic_store(&client->cause, cause);
    }
    client->heard_ms = mono_now().v;
    struct text_quote last = text_quote_of(client->said);
    pthread_mutex_unlock(&client->log->lock);
    const enum diag_level level = atomic_load(&client->log->reached) ? DIAG_warn : DIAG_debug;
    struct diag_limit *limit = limit_of(client->log, rd_kafka_err2name(cause));
    if (cause == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
        atomic_store(&client->log->away_ms, mono_now().v);
        diag_limited(limit, level, "kafka.away", D_TEXT("brokers", client->log->brokers),
                     D_TEXT("error", last.s),
                     D_TEXT("meaning",
                            "none of them answers; nothing is taken or settled until one "
                            "does, and it is tried again by itself"));
        return;
    }
    diag_limited(limit, level, "kafka.trouble", D_TEXT("error", rd_kafka_err2name(cause)),
                 D_TEXT("text", reason));
}

void kafka_conf_listen(rd_kafka_conf_t *conf, struct kafka_client *client)
{
    rd_kafka_conf_set_opaque(conf, client);
    rd_kafka_conf_set_log_cb(conf, on_log);
    rd_kafka_conf_set_error_cb(conf, on_error);
}

bool kafka_away(const struct log *base)
{
    const struct kafka_log *log = (const struct kafka_log *)base;
    const int64_t away_ms = atomic_load(&log->away_ms);
    return away_ms != 0 && mono_now().v - away_ms < KAFKA_AWAY_MS;
}

rd_kafka_resp_err_t kafka_client_said(struct kafka_client *client, char *ret_text, size_t size)
{
    rd_kafka_resp_err_t cause = RD_KAFKA_RESP_ERR_NO_ERROR;
    ret_text[0] = '\0';
    pthread_mutex_lock(&client->log->lock);
    if (atomic_load(&client->cause) != 0 && mono_now().v - client->said_ms <= KAFKA_SAID_MS) {
        cause = (rd_kafka_resp_err_t)atomic_load(&client->cause);
        snprintf(ret_text, size, "%s", client->said);
    }
    pthread_mutex_unlock(&client->log->lock);
    return cause;
}

bool kafka_client_troubled(struct kafka_client *client, int64_t since_ms)
{
    pthread_mutex_lock(&client->log->lock);
    const bool troubled = client->heard_ms != 0 && client->heard_ms >= since_ms;
    pthread_mutex_unlock(&client->log->lock);
    return troubled;
}

void kafka_client_well(struct kafka_client *client)
{
    atomic_store(&client->cause, RD_KAFKA_RESP_ERR_NO_ERROR);
}

/* ---- made ---- */

baton_code kafka_handle_new(struct kafka_client *client, rd_kafka_conf_t *conf, rd_kafka_t **ret_rk,
                            struct baton_error *err)
{
    char text[256] = "";
    bool produces = client->use == KAFKA_USE_txn || client->use == KAFKA_USE_publisher;
    rd_kafka_t *rk =
        rd_kafka_new(produces ? RD_KAFKA_PRODUCER : RD_KAFKA_CONSUMER, conf, text, sizeof(text));
    if (rk == NULL) {
        rd_kafka_conf_destroy(conf);
        return errno == EAGAIN
                   ? baton_fail(err, BATON_E_no_memory, "kafka: no threads for a client: %s",
                                text_quote_of(text).s)
                   : baton_fail(err, BATON_E_bad_config, "kafka: %s", text_quote_of(text).s);
    }
    *ret_rk = rk;
    return BATON_OK;
}
