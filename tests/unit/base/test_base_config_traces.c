/* The traces section: where spans go, what may not stand in that URL, and what is warned about. */
#include "base_test.h"

#include "common/base/check.h"
#include "common/base/config.h"

static const char *const no_sets[1];

static baton_code parse(const char *text, struct config **ret_config, struct buf *findings)
{
    return config_parse("/etc/x/f.yaml", text, strlen(text), no_sets, 0, ret_config, findings,
                        NULL);
}

static struct config *accepted(const char *endpoint)
{
    char text[512];
    struct config *config = NULL;
    struct buf findings = BUF_INIT;
    snprintf(text, sizeof(text), "traces: {endpoint: \"%s\"}\n", endpoint);
    if (parse(text, &config, &findings) != BATON_OK) {
        fail_msg("%s\ngot: %s", text, text_in(&findings));
    }
    buf_done(&findings);
    return config;
}

static void t1_every_key_has_its_place(void **state)
{
    struct config *c = NULL;
    (void)state;
    assert_int_equal(parse("traces:\n  endpoint: https://otel.example:4318/v1/traces\n"
                           "  headers: {file: secrets/otel}\n  ca: ca.pem\n  timeout: 3s\n"
                           "  queue: 100\n",
                           &c, NULL),
                     BATON_OK);
    assert_string_equal(c->traces.endpoint, "https://otel.example:4318/v1/traces");
    assert_string_equal(c->traces.headers_file, "/etc/x/secrets/otel");
    assert_string_equal(c->traces.ca, "/etc/x/ca.pem");
    assert_int_equal(c->traces.timeout_ms, 3000);
    assert_int_equal(c->traces.queue, 100);
    config_free(c);
    assert_int_equal(parse("log: local\n", &c, NULL), BATON_OK);
    assert_null(c->traces.endpoint);
    assert_null(c->traces.headers_file);
    assert_null(c->traces.ca);
    assert_int_equal(c->traces.timeout_ms, 10000);
    assert_int_equal(c->traces.queue, 2048);
    config_free(c);
}

static void t2_endpoints(void **state)
{
    static const char *const right[] = {"http://127.0.0.1:4318/v1/traces",
                                        "https://otel.example/v1/traces", "http://[::1]:4318/",
                                        "HTTPS://h/x", "http://localhost/v1/traces"};
    static const char *const wrong[] = {"127.0.0.1:4318/v1/traces",
                                        "http://127.0.0.1:4318",
                                        "http:///v1/traces",
                                        "http://:4318/v1",
                                        "ftp://h/x",
                                        "file:///etc/passwd",
                                        "http://u:Zanzibar@h/v1",
                                        "http://h/v1?key=Zanzibar",
                                        "http://h/v1#Zanzibar",
                                        "http://h:0/v1",
                                        "http://h:70000/v1",
                                        "http://h:/v1",
                                        "http://h:x/v1",
                                        "http://[::1/v1",
                                        "http://[::1]x/v1",
                                        "http://h /v1"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(right); i++) {
        struct config *c = accepted(right[i]);
        assert_string_equal(c->traces.endpoint, right[i]);
        config_free(c);
    }
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        char text[512];
        struct config *c = NULL;
        struct buf findings = BUF_INIT;
        snprintf(text, sizeof(text), "traces: {endpoint: \"%s\"}\n", wrong[i]);
        if (parse(text, &c, &findings) != BATON_E_bad_config) {
            fail_msg("accepted: %s", wrong[i]);
        }
        if (strstr(text_in(&findings), "traces.endpoint must") == NULL) {
            fail_msg("%s\ngot: %s", text, text_in(&findings));
        }
        assert_null(strstr(text_in(&findings), "Zanzibar")); /* it may be a password */
        buf_done(&findings);
    }
}

static void t3_what_has_no_effect(void **state)
{
    static const struct {
        const char *text;
        const char *part;
    } rows[] = {
        {"traces: {ca: x.pem}\n", "traces.ca has no effect without traces.endpoint"},
        {"traces: {headers: {file: x}}\n", "traces.headers.file has no effect without"},
        {"traces: {endpoint: \"http://h/x\", ca: x.pem}\n", "traces.ca has no effect with http://"},
        {"traces: {endpoint: \"http://h/x\", headers: secret}\n", "traces.headers is a section"},
        {"traces: {endpoint: \"http://h/x\", timeout: 1h}\n", "traces.timeout must be"},
        {"traces: {endpoint: \"http://h/x\", queue: 1}\n", "traces.queue must be"},
        {"traces: {enpoint: \"http://h/x\"}\n", "did you mean 'traces.endpoint'"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct config *c = NULL;
        struct buf findings = BUF_INIT;
        assert_int_equal(parse(rows[i].text, &c, &findings), BATON_E_bad_config);
        if (strstr(text_in(&findings), rows[i].part) == NULL) {
            fail_msg("%s\ngot: %s", rows[i].text, text_in(&findings));
        }
        buf_done(&findings);
    }
}

static void t4_what_goes_over_the_network_in_clear(void **state)
{
    static const struct {
        const char *endpoint;
        size_t warned;
    } rows[] = {
        {"http://127.0.0.1:4318/v1/traces", 0},    {"http://localhost:4318/v1/traces", 0},
        {"http://[::1]:4318/v1/traces", 0},        {"https://otel.example/v1/traces", 0},
        {"http://otel.example/v1/traces", 1},      {"http://localhost.example/v1/traces", 1},
        {"http://127.0.0.1.example/v1/traces", 1},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct config *c = accepted(rows[i].endpoint);
        struct buf lines = BUF_INIT;
        assert_int_equal(config_warnings(c, &lines), rows[i].warned);
        assert_true(rows[i].warned == 0 || strstr(text_in(&lines), "unencrypted") != NULL);
        buf_done(&lines);
        config_free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t1_every_key_has_its_place),
        cmocka_unit_test(t2_endpoints),
        cmocka_unit_test(t3_what_has_no_effect),
        cmocka_unit_test(t4_what_goes_over_the_network_in_clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
