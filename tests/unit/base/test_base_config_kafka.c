/* The kafka section: every key reaches its place, every mistake is named, no secret is printed. */
#include "base_test.h"

#include "common/base/check.h"
#include "common/base/config.h"

static const char *const no_sets[1];

static baton_code parse(const char *text, const char *const *sets, size_t n_sets,
                        struct config **ret_config, struct buf *findings)
{
    return config_parse("/etc/x/f.yaml", text, strlen(text), sets, n_sets, ret_config, findings,
                        NULL);
}

static struct config *accepted(const char *text)
{
    struct config *config = NULL;
    struct buf findings = BUF_INIT;
    baton_code rc = parse(text, no_sets, 0, &config, &findings);
    if (rc != BATON_OK) {
        fail_msg("%s\ngot: %s %s", text, baton_code_word(rc), text_in(&findings));
    }
    buf_done(&findings);
    return config;
}

#define KAFKA "log: kafka\nkafka:\n  brokers: [a:9092]\n"
#define SASL "  sasl: {mechanism: PLAIN, username: u, password: {file: secrets/kafka}}\n"

static void c1_every_key_has_its_place(void **state)
{
    (void)state;
    struct config *c =
        accepted("log: kafka\nkafka:\n  brokers: [kafka-1:9093, \"[::1]:9092\"]\n"
                 "  partitions: 12\n  replication: 3\n  session: 9s\n  heartbeat: 2s\n"
                 "  security: sasl_ssl\n" SASL "  ca: ca.pem\n  certificate: me.pem\n"
                 "  key: secrets/me.pem\n  client: {linger.ms: 5, debug: broker}\n"
                 "lease_grace: 4s\nlease: 8s\n");
    assert_string_equal(c->kafka_brokers, "kafka-1:9093,[::1]:9092");
    assert_int_equal(c->partitions, 12);
    assert_int_equal(c->replication, 3);
    assert_int_equal(c->session_ms, 9000);
    assert_int_equal(c->heartbeat_ms, 2000);
    assert_string_equal(c->kafka.security, "sasl_ssl");
    assert_string_equal(c->kafka.sasl_mechanism, "PLAIN");
    assert_string_equal(c->kafka.sasl_username, "u");
    assert_string_equal(c->kafka.sasl_password_file, "/etc/x/secrets/kafka");
    assert_string_equal(c->kafka.ca, "/etc/x/ca.pem");
    assert_string_equal(c->kafka.certificate, "/etc/x/me.pem");
    assert_string_equal(c->kafka.key, "/etc/x/secrets/me.pem");
    assert_int_equal(c->kafka.n_client, 2);
    assert_string_equal(c->kafka.client[1].key, "debug");
    assert_string_equal(c->kafka.client[1].value, "broker");
    assert_string_equal(c->kafka.client[1].where, "/etc/x/f.yaml:13:26");
    config_free(c);
    c = accepted(KAFKA);
    assert_int_equal(c->partitions, 4);
    assert_int_equal(c->replication, 0);
    assert_int_equal(c->session_ms, 6000);
    assert_string_equal(c->kafka.security, "plaintext");
    assert_string_equal(c->kafka.sasl_mechanism, "");
    assert_null(c->kafka.sasl_password_file);
    assert_null(c->kafka.key);
    config_free(c);
    config_free(accepted(KAFKA "  security: sasl_plaintext\n" SASL));
    config_free(accepted(KAFKA "  security: ssl\n"));
}

static const struct trap {
    const char *text;
    const char *expected;
} mistakes[] = {
    {"log: kafka\n", "f.yaml:1:1: log: kafka needs kafka.brokers"},
    {"log: kafka\nkafka: {brokers: []}\n", "f.yaml:2:9: log: kafka needs kafka.brokers"},
    {"log: kafka\nkafka: {brokers: a:1}\n", "kafka.brokers must be a list"},
    {"kafka: {brokers: [a]}\n", "f.yaml:1:19: kafka.brokers: 'a' must be host:port, for example"},
    {"kafka: {brokers: ['a:1,b:2']}\n", "kafka.brokers: 'a:1,b:2' must be host:port"},
    {"kafka: {brokers: [a:0]}\n", "a port is a number from 1 to 65535"},
    {"kafka: {brokers: [a:65536]}\n", "a port is a number from 1 to 65535"},
    {"kafka: {brokers: ['PLAINTEXT://a:9092']}\n", "without a scheme"},
    {"kafka: {brokers: ['ssl://u:pass@a:1']}\n",
     "'***@a:1' must be host:port without a scheme"}, /* H04 */
    {"kafka: {brokers: ['u:p@ss@a:1']}\n", "'***@a:1' must be host:port"},
    {"kafka: {brokers: ['a:1?password=x']}\n", "'a:1***' must be host:port"},
    {"kafka: {brokers: ['::1:9092']}\n", "[::1]:9092"},
    {"kafka: {brokers: ['a b:9092']}\n", "one for each member of the list"},
    {KAFKA "  security: tls\n", "one of plaintext, ssl, sasl_plaintext, sasl_ssl, not 'tls'"},
    {KAFKA "  security: sasl_ssl\n", "kafka.security: sasl_ssl needs kafka.sasl"},
    {KAFKA "  security: sasl_plaintext\n", "kafka.security: sasl_plaintext needs kafka.sasl"},
    {KAFKA "  security: sasl_ssl\n  sasl: {mechanism: PLAIN, username: u}\n", "needs kafka.sasl"},
    {KAFKA "  security: sasl_ssl\n  sasl: {mechanism: GSSAPI}\n",
     "one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, not 'GSSAPI'"},
    {KAFKA SASL, "kafka.sasl.mechanism has no effect with kafka.security: plaintext; it belongs to "
                 "sasl_ssl and sasl_plaintext"},
    {KAFKA "  ca: x.pem\n", "kafka.ca has no effect with kafka.security: plaintext"},
    {KAFKA "  security: ssl\n  certificate: x.pem\n", "kafka.certificate needs kafka.key beside"},
    {KAFKA "  security: ssl\n  key: x.pem\n", "kafka.key needs kafka.certificate beside"},
    {KAFKA "  session: 2s\n", "kafka.session (2s) must be at least 3 times kafka.heartbeat (1s)"},
    {KAFKA "  session: 500ms\n", "from 1s to 5m"},
    {KAFKA "  replication: 0\n", "auto or a whole number from 1 to 9"},
    {KAFKA "  partitions: 65\n", "from 1 to 64"},
    {KAFKA "  client: [x]\n", "kafka.client must be a section"},
    {KAFKA "  client: {'A b': x}\n", "'A b' is no name of a setting"},
    {KAFKA "  client: {linger.ms: [1]}\n", "kafka.client.linger.ms must be a text"},
    {KAFKA "  brokrs: [a:1]\n", "unknown key 'kafka.brokrs'; did you mean 'kafka.brokers'?"},
};

static void c1_each_mistake_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(mistakes); i++) {
        struct config *config = NULL;
        struct buf findings = BUF_INIT;
        baton_code rc = parse(mistakes[i].text, no_sets, 0, &config, &findings);
        if (rc != BATON_E_bad_config || strstr(text_in(&findings), mistakes[i].expected) == NULL) {
            fail_msg("%s\nexpected: %s\ngot: %s %s", mistakes[i].text, mistakes[i].expected,
                     baton_code_word(rc), text_in(&findings));
        }
        buf_done(&findings);
    }
}

/* X31, C3: a secret in the configuration is refused and not printed again, wherever it is tried. */
static void x31_no_secret_in_the_configuration(void **state)
{
    (void)state;
    static const char *const tried[] = {
        KAFKA "  security: sasl_ssl\n  sasl: {mechanism: PLAIN, username: u, password: CANARY}\n",
        KAFKA "  client: {sasl.password: CANARY}\n",
        KAFKA "  client: {ssl.key.password: CANARY}\n",
        KAFKA "  client: {ssl.key.pem: CANARY}\n",
        KAFKA "  client: {sasl.oauthbearer.client.secret: CANARY}\n",
    };
    static const char *const sets[] = {"kafka.sasl.password=CANARY"};
    struct config *config = NULL;
    struct buf findings = BUF_INIT;
    for (size_t i = 0; i < COUNT_OF(tried); i++) {
        assert_int_equal(parse(tried[i], no_sets, 0, &config, &findings), BATON_E_bad_config);
        assert_null(strstr(text_in(&findings), "CANARY"));
        assert_non_null(strstr(text_in(&findings), "stands in the configuration"));
        buf_clear(&findings);
    }
    assert_int_equal(parse("", sets, 1, &config, &findings), BATON_E_bad_config);
    assert_null(strstr(text_in(&findings), "CANARY"));
    assert_non_null(strstr(text_in(&findings), "--set kafka.sasl.password=...: no password"));
    buf_done(&findings);
}

static void b14_what_is_not_wrong_but_not_good_is_a_warning(void **state)
{
    (void)state;
    struct buf lines = BUF_INIT;
    struct config *c = accepted(KAFKA "  security: sasl_plaintext\n" SASL);
    assert_int_equal(config_warnings(c, &lines), 1);
    assert_non_null(strstr(text_in(&lines), "the password and all records go over the network"));
    config_free(c);
    buf_clear(&lines);
    c = accepted(KAFKA "  security: sasl_ssl\n" SASL);
    assert_int_equal(config_warnings(c, &lines), 0);
    config_free(c);
    buf_done(&lines);
}

/* What a driver finds about a pair stands at its place; the first is the error. */
static void c1_findings_of_drivers_have_their_place(void **state)
{
    (void)state;
    static const char *const sets[] = {"kafka.client.queue.buffering.max.ms=x"};
    struct config *c = NULL;
    struct buf findings = BUF_INIT;
    struct baton_error err = {BATON_OK, ""};
    assert_int_equal(parse(KAFKA "  client:\n    linger.ms: 5\n", sets, 1, &c, NULL), BATON_OK);
    assert_int_equal(c->kafka.n_client, 2);
    assert_string_equal(c->kafka.client[1].key, "queue.buffering.max.ms");
    config_pair_found(&c->kafka.client[0], &findings, &err, "%s is not ours", "linger.ms");
    config_pair_found(&c->kafka.client[1], &findings, &err, "nor is this");
    assert_string_equal(text_in(&findings),
                        "/etc/x/f.yaml:5:5: linger.ms is not ours\n"
                        "--set kafka.client.queue.buffering.max.ms=x: nor is this\n");
    assert_int_equal(err.code, BATON_E_bad_config);
    assert_string_equal(err.text, "/etc/x/f.yaml:5:5: linger.ms is not ours");
    config_free(c);
    buf_done(&findings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c1_every_key_has_its_place),
        cmocka_unit_test(c1_each_mistake_is_named),
        cmocka_unit_test(x31_no_secret_in_the_configuration),
        cmocka_unit_test(b14_what_is_not_wrong_but_not_good_is_a_warning),
        cmocka_unit_test(c1_findings_of_drivers_have_their_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
