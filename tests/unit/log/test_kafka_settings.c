/*
 * What is configured for the Kafka driver: what may be passed through, how its mistakes are told,
 * and how a cluster that cannot be opened is: without a broker.
 */
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/config.h"
#include "common/log/kafka/internal.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define OPEN_MS_MAX 15000 /* five seconds, and a busy machine */

/* What the configuration keeps as its own memory. */
static char *owned(const char *text)
{
    return (char *)(uintptr_t)text;
}

struct pair {
    const char *name;
    const char *value;
    const char *where;
};

static baton_code check_pairs(const struct pair *pairs, size_t count, struct buf *findings,
                              struct baton_error *err)
{
    struct config config = {.log = LOG_KIND_kafka};
    struct config_pair copies[8];
    assert_true(count <= 8);
    for (size_t i = 0; i < count; i++) {
        copies[i] = (struct config_pair){owned(pairs[i].name), owned(pairs[i].value),
                                         owned(pairs[i].where)};
    }
    config.kafka.client = copies;
    config.kafka.n_client = count;
    return log_settings_check(&config, findings, err);
}

static void test_passed_through(void **state)
{
    const struct pair good[] = {{"socket.keepalive.enable", "false", "f:1:1"},
                                {"client.rack", "eu-1a", "f:2:1"},
                                {"compression.type", "lz4", "f:3:1"}};
    struct baton_error err = {0};
    (void)state;
    assert_int_equal(check_pairs(good, 3, NULL, &err), BATON_OK);
    assert_string_equal(err.text, "");
}

/* Every mistake at once, each with its place and what to do. */
static void test_mistakes_are_told(void **state)
{
    const struct pair bad[] = {{"isolation.level", "read_uncommitted", "f:1:1"},
                               {"socket.keepalive.enabel", "true", "f:2:1"},
                               {"socket.timeout.ms", "soon", "f:3:1"},
                               {"plugin.library.paths", "/tmp/x.so", "f:4:1"},
                               {"sasl.password", "hunter2", "f:5:1"}};
    struct baton_error err = {0};
    struct buf findings = BUF_INIT;
    (void)state;
    assert_int_equal(check_pairs(bad, 5, &findings, &err), BATON_E_bad_config);
    assert_int_equal(err.code, BATON_E_bad_config);
    assert_non_null(strstr(err.text, "f:1:1: kafka.client.isolation.level"));
    assert_non_null(strstr(findings.data, "what was aborted must not be seen"));
    assert_non_null(strstr(findings.data, "f:2:1: kafka.client.socket.keepalive.enabel"));
    assert_non_null(strstr(findings.data, "did you mean 'socket.keepalive.enable'"));
    assert_non_null(strstr(findings.data, "f:3:1: kafka.client.socket.timeout.ms"));
    assert_non_null(strstr(findings.data, "f:4:1: kafka.client.plugin.library.paths"));
    assert_non_null(strstr(findings.data, "kafka.sasl.password.file"));
    assert_null(strstr(findings.data, "hunter2"));
    buf_done(&findings);
}

/* What the table of settings relies on cannot be passed through, under any of its names. */
static void test_ours_are_refused(void **state)
{
    static const char *const ours[] = {"bootstrap.servers",
                                       "metadata.broker.list",
                                       "security.protocol",
                                       "group.id",
                                       "group.instance.id",
                                       "transactional.id",
                                       "acks",
                                       "request.required.acks",
                                       "enable.idempotence",
                                       "enable.auto.commit",
                                       "auto.offset.reset",
                                       "partition.assignment.strategy",
                                       "linger.ms",
                                       "queue.buffering.max.ms",
                                       "message.timeout.ms",
                                       "delivery.timeout.ms",
                                       "session.timeout.ms",
                                       "max.poll.interval.ms",
                                       "allow.auto.create.topics",
                                       "enable.partition.eof",
                                       "transaction.timeout.ms"};
    (void)state;
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        const struct pair pair = {ours[i], "1", "f:1:1"};
        struct baton_error err = {0};
        assert_int_equal(check_pairs(&pair, 1, NULL, &err), BATON_E_bad_config);
        assert_non_null(strstr(err.text, "is not for kafka.client"));
    }
}

static void test_codes(void **state)
{
    static const struct {
        rd_kafka_resp_err_t cause;
        baton_code code;
    } rows[] = {
        {RD_KAFKA_RESP_ERR_NO_ERROR, BATON_OK},
        {RD_KAFKA_RESP_ERR__TRANSPORT, BATON_E_service_unavailable},
        {RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, BATON_E_timed_out},
        {RD_KAFKA_RESP_ERR__AUTHENTICATION, BATON_E_not_permitted},
        {RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED, BATON_E_not_permitted},
        {RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, BATON_E_topic_missing},
        {RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, BATON_E_topic_missing},
        {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, BATON_E_record_too_large},
        {RD_KAFKA_RESP_ERR_INVALID_RECORD, BATON_E_invalid_request},
        {RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR, BATON_E_disk_full},
        {RD_KAFKA_RESP_ERR_INVALID_SESSION_TIMEOUT, BATON_E_bad_config},
        {RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID, BATON_E_twin},
        {RD_KAFKA_RESP_ERR_UNKNOWN, BATON_E_service_unavailable},
        {(rd_kafka_resp_err_t)120, BATON_E_service_unavailable}, /* newer than this library */
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(kafka_code(rows[i].cause), rows[i].code);
    }
}

/* ---- what cannot be opened ---- */

static baton_code open_at(const char *brokers, const char *security, const char *password_file,
                          struct baton_error *err)
{
    char list[64];
    struct config config = {.log = LOG_KIND_kafka, .partitions = 1, .kafka_brokers = list};
    struct log *log = NULL;
    snprintf(list, sizeof(list), "%s", brokers);
    config.kafka.security = owned(security);
    if (password_file != NULL) {
        config.kafka.sasl_mechanism = owned("PLAIN");
        config.kafka.sasl_username = owned("bob");
        config.kafka.sasl_password_file = owned(password_file);
    }
    int64_t began_ns = mono_ns();
    baton_code rc = log_open(&config, &log, err);
    assert_true(mono_ns() - began_ns < OPEN_MS_MAX * 1000000LL);
    assert_null(log);
    return rc;
}

/* A socket of this host that nobody listens on: its port is taken, and refuses. */
static int bound(char *ret_address, size_t size)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&at, len) == 0 &&
                getsockname(fd, (struct sockaddr *)&at, &len) == 0);
    snprintf(ret_address, size, "127.0.0.1:%d", ntohs(at.sin_port));
    return fd;
}

/* FIELD B14: a broker that is down is no refusal of the login. */
static void test_B14_broker_is_down(void **state)
{
    char address[32];
    struct baton_error err = {0};
    int fd = bound(address, sizeof(address));
    (void)state;
    assert_int_equal(open_at(address, "plaintext", NULL, &err), BATON_E_service_unavailable);
    assert_int_equal(err.code, BATON_E_service_unavailable);
    assert_non_null(strstr(err.text, address));
    assert_non_null(strstr(err.text, "cannot be reached"));
    assert_non_null(strstr(err.text, "are they running"));
    close(fd);
}

static void *break_off(void *arg)
{
    int listener = *(int *)arg;
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0) {
            return NULL;
        }
        char byte;
        (void)!read(fd, &byte, 1);
        close(fd);
    }
}

/* A listener with another protocol takes the connection and breaks it off. */
static void test_B14_another_protocol(void **state)
{
    char address[32];
    struct baton_error err = {0};
    pthread_t thread;
    int fd = bound(address, sizeof(address));
    (void)state;
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(pthread_create(&thread, NULL, break_off, &fd), 0);
    assert_int_equal(open_at(address, "plaintext", NULL, &err), BATON_E_service_unavailable);
    assert_non_null(strstr(err.text, "kafka.security"));
    assert_int_equal(open_at(address, "ssl", NULL, &err), BATON_E_service_unavailable);
    assert_non_null(strstr(err.text, "kafka.security"));
    shutdown(fd, SHUT_RDWR);
    pthread_join(thread, NULL);
    close(fd);
}

static void test_password_file(void **state)
{
    char path[] = "/tmp/baton-password-XXXXXX";
    struct baton_error err = {0};
    int fd = mkstemp(path);
    (void)state;
    assert_true(fd >= 0 && write(fd, "pa55word\n", 9) == 9 && fchmod(fd, 0644) == 0);
    close(fd);
    assert_int_equal(open_at("127.0.0.1:1", "sasl_plaintext", path, &err), BATON_E_key_unsafe);
    assert_non_null(strstr(err.text, path));
    assert_null(strstr(err.text, "pa55word"));
    unlink(path);
    assert_int_equal(open_at("127.0.0.1:1", "sasl_plaintext", path, &err), BATON_E_bad_config);
    assert_non_null(strstr(err.text, path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passed_through),     cmocka_unit_test(test_mistakes_are_told),
        cmocka_unit_test(test_ours_are_refused),   cmocka_unit_test(test_codes),
        cmocka_unit_test(test_B14_broker_is_down), cmocka_unit_test(test_B14_another_protocol),
        cmocka_unit_test(test_password_file),
    };
    return cmocka_run_group_tests_name("kafka settings", tests, NULL, NULL);
}
