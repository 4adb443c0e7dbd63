/* The configuration: YAML's traps one by one (X33), the shipped example, all mistakes at once (C1).
 */
#include "base_test.h"

#include "common/base/check.h"
#include "common/base/config.h"
#include "common/base/limits.h"

#include <cjson/cJSON.h>
#include <unistd.h>

static const char *const no_sets[1];

/* Parses text as /etc/x/f.yaml; what was found is put into findings. */
static baton_code parse_with(const char *text, size_t len, const char *const *sets, size_t n_sets,
                             struct config **ret_config, struct buf *findings)
{
    struct baton_error err;
    baton_code rc =
        config_parse("/etc/x/f.yaml", text, len, sets, n_sets, ret_config, findings, &err);
    if (rc == BATON_E_bad_config) { /* the first finding is the error */
        size_t first = strcspn(text_in(findings), "\n");
        assert_int_equal(err.code, BATON_E_bad_config);
        assert_memory_equal(err.text, findings->data, first < 300 ? first : 300);
    }
    return rc;
}

static void refused(const char *text, const char *expected)
{
    struct config *config = NULL;
    struct buf findings = BUF_INIT;
    baton_code rc = parse_with(text, strlen(text), no_sets, 0, &config, &findings);
    if (rc != BATON_E_bad_config || strstr(text_in(&findings), expected) == NULL) {
        fail_msg("%s\nexpected: %s\ngot: %s %s", text, expected, baton_code_word(rc),
                 text_in(&findings));
    }
    assert_null(config);
    buf_done(&findings);
}

static struct config *accepted(const char *text)
{
    struct config *config = NULL;
    struct buf findings = BUF_INIT;
    baton_code rc = parse_with(text, strlen(text), no_sets, 0, &config, &findings);
    if (rc != BATON_OK) {
        fail_msg("%s\ngot: %s %s", text, baton_code_word(rc), text_in(&findings));
    }
    buf_done(&findings);
    return config;
}

/* ---- X33 ---- */

struct trap {
    const char *text;
    const char *expected;
};

static const struct trap traps[] = {
    {"a: &x 1\n", "f.yaml:1:4: anchors"},
    {"version: 1\nbudget: &b {failures: 6}\n", "f.yaml:2:9: anchors"},
    {"version: *x\n", "f.yaml:1:10: aliases"},
    {"version: !!int 1\n", "f.yaml:1:10: tags"},
    {"version: !x 1\n", "f.yaml:1:10: tags"},
    {"budget: !!map {failures: 6}\n", "f.yaml:1:9: tags"},
    {"!!str version: 1\n", "f.yaml:1:1: tags"},
    {"version: ! 1\n", "f.yaml:1:10: tags"},
    {"version: 1\n---\nversion: 1\n", "f.yaml:2:1: a second document"},
    {"%YAML 1.1\n---\nversion: 1\n", "directives"},
    {"%TAG ! tag:x,2000:\n---\nversion: 1\n", "directives"},
    {"prefix: a\nprefix: b\n", "f.yaml:2:1: the key 'prefix' stands here twice, first on line 1"},
    {"budget: {failures: 1, losses: 2, failures: 1}\n", "f.yaml:1:34: the key 'failures'"},
    {"budget:\n  <<: {failures: 6}\n", "f.yaml:2:3: merge keys"},
    {"? [a]\n: b\n", "a key must be a plain text"},
    {"{[a]: b}\n", "a key must be a plain text"},
    {"? {a: b}\n: b\n", "a key must be a plain text"},
    {"prefix: [[[[[[[[[[[[[[[[x]]]]]]]]]]]]]]]]\n", "f.yaml:1:24: nested too deep"},
    {"prefix: \"a\\0b\"\n", "f.yaml:1:9: a text holds a NUL"},
    {"\"a\\0b\": 1\n", "f.yaml:1:1: a text holds a NUL"},
    {"prefix: a\n\tb: c\n", "f.yaml:2:1: not well-formed YAML"},
    {"prefix: [a\n", "not well-formed YAML"},
    {"prefix: 'a\n", "not well-formed YAML"},
    {"version: 1\nprefix: \xff\n", "f.yaml:2:9: not valid UTF-8"},
    {"prefix: \xC0\x80\n", "f.yaml:1:9: not valid UTF-8"},
    {"prefix: \xED\xA0\x80\n", "f.yaml:1:9: not valid UTF-8"},
    {"prefix: \x01\n", "f.yaml:1:9: not well-formed YAML: control characters"},
    {"\xEF\xBB\xBFversion: 1\n", "byte order mark"},
    {"\xFF\xFEv\n", "f.yaml:1:1: not valid UTF-8"},
    {"- a\n- b\n", "must be a map of keys"},
    {"just text\n", "must be a map of keys"},
};

static void x33_yaml_traps(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(traps); i++) {
        refused(traps[i].text, traps[i].expected);
    }
}

static void x33_nul_utf16_and_size(void **state)
{
    (void)state;
    struct config *config = NULL;
    struct buf findings = BUF_INIT;
    assert_int_equal(parse_with("prefix: a\0b", 11, no_sets, 0, &config, &findings),
                     BATON_E_bad_config);
    assert_non_null(strstr(text_in(&findings), "f.yaml:1:10: a NUL byte"));
    buf_clear(&findings);
    assert_int_equal(parse_with("v\0:\0 \0a\0", 8, no_sets, 0, &config, &findings),
                     BATON_E_bad_config);
    buf_clear(&findings);
    char *large = malloc(LIMIT_YAML + 1);
    memset(large, '#', LIMIT_YAML + 1);
    assert_int_equal(parse_with(large, LIMIT_YAML + 1, no_sets, 0, &config, &findings),
                     BATON_E_bad_config);
    assert_non_null(strstr(text_in(&findings), "larger than 1 MiB"));
    buf_clear(&findings);
    assert_int_equal(parse_with(large, LIMIT_YAML, no_sets, 0, &config, &findings), BATON_OK);
    config_free(config);
    free(large);
    buf_done(&findings);
}

static void x33_alias_bomb_and_deep_nesting_cost_nothing(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    struct buf findings = BUF_INIT;
    struct config *config = NULL;
    buf_add_text(&text, "a0: &a0 [x,x,x,x,x,x,x,x,x]\n");
    for (int i = 1; i < 10; i++) {
        buf_printf(&text, "a%d: &a%d [*a%d,*a%d,*a%d]\n", i, i, i - 1, i - 1, i - 1);
    }
    assert_int_equal(parse_with(text.data, text.len, no_sets, 0, &config, &findings),
                     BATON_E_bad_config);
    buf_clear(&text);
    buf_clear(&findings);
    for (int i = 0; i < 500000; i++) {
        buf_add_char(&text, '[');
    }
    assert_int_equal(parse_with(text.data, text.len, no_sets, 0, &config, &findings),
                     BATON_E_bad_config);
    buf_clear(&text);
    buf_clear(&findings);
    for (int i = 0; i < 100000; i++) {
        buf_printf(&text, "k%d:\n", i);
    }
    assert_int_equal(parse_with(text.data, text.len, no_sets, 0, &config, &findings),
                     BATON_E_bad_config);
    assert_non_null(strstr(text_in(&findings), "too many values"));
    buf_done(&text);
    buf_done(&findings);
}

/* YAML 1.1 would make booleans, octals, nulls, sexagesimals of these. */
static void no_implicit_types(void **state)
{
    (void)state;
    struct config *config = accepted("prefix: no\nidentity: null\nproof: off\n");
    assert_string_equal(config->prefix.s, "no");
    assert_string_equal(config->identity.s, "null");
    assert_false(config->proof_required);
    config_free(config);
    config =
        accepted("identity: 'on'\nhttp: {listen: \"127.0.0.1:9464\"}\nbudget: {failures: '7'}\n");
    assert_string_equal(config->identity.s, "on");
    assert_int_equal(config->budget.failures, 7);
    config_free(config);
    static const char *const yes[] = {"yes", "on", "True", "TRUE", "1", "y", "~", "\"true \""};
    for (size_t i = 0; i < COUNT_OF(yes); i++) {
        char text[128];
        snprintf(text, sizeof(text), "roles: {owner: {read_only: %s}}\n", yes[i]);
        refused(text, "roles.owner.read_only must be true or false");
    }
    static const char *const numbers[] = {"012", "0x10", "1e1", "1_0", "6.0", "+6",
                                          "~",   "1:30", "six", "-1",  "0",   "1001"};
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        char text[128];
        snprintf(text, sizeof(text), "budget: {failures: %s}\n", numbers[i]);
        refused(text, "budget.failures must be a whole number from 1 to 1000");
    }
    static const char *const durations[] = {"5", "5 s", "-5s", "1.5s", "1h30m", "5S", "05s"};
    for (size_t i = 0; i < COUNT_OF(durations); i++) {
        char text[128];
        snprintf(text, sizeof(text), "retry: {first: %s}\n", durations[i]);
        refused(text, "retry.first must be a duration");
    }
}

static void an_empty_file_is_all_defaults(void **state)
{
    (void)state;
    static const char *const empties[] = {"", "\n# nothing\n", "---\n",
                                          "local:\nservices:\nroles:\non_failure:\n", "{}"};
    for (size_t i = 0; i < COUNT_OF(empties); i++) {
        struct config *c = accepted(empties[i]);
        assert_string_equal(c->path, "/etc/x/f.yaml");
        assert_string_equal(c->dir, "/etc/x");
        assert_string_equal(c->prefix.s, "baton");
        assert_int_equal(c->log, LOG_KIND_local);
        assert_string_equal(c->local_path, "/etc/x/data/log.db");
        assert_int_equal(c->partitions, 4);
        assert_int_equal(c->session_ms, 6000);
        assert_int_equal(c->heartbeat_ms, 1000);
        assert_int_equal(c->lease_ms, 6000);
        assert_int_equal(c->lease_grace_ms, 2000);
        assert_int_equal(c->budget.failures, 6);
        assert_int_equal(c->budget.losses, 3);
        assert_int_equal(c->budget.replays, 3);
        assert_int_equal(c->budget.attempts, 64);
        assert_true(c->proof_required);
        assert_null(c->http_listen);
        assert_int_equal(c->n_services, 0);
        for (unsigned f = 0; f < FAILURE_COUNT;
             f++) { /* every class has a list that ends with park */
            assert_true(c->on_failure[f].count > 0);
            assert_int_equal(c->on_failure[f].list[c->on_failure[f].count - 1], ACTION_park);
        }
        config_free(c);
    }
}

/* ---- prices ---- */

static void prices_are_whole_numbers_of_a_model(void **state)
{
    static const char text[] = "services:\n"
                               "  a: {roles: [owner], executor: {kind: agent, agent: codex, model: "
                               "m, prices: {input: 1250000, "
                               "output: 10000000}}}\n"
                               "  b: {roles: [owner], executor: {kind: agent, agent: gemini, "
                               "model: m, prices: {input: 1, cached: "
                               "0, output: 1000000000000}}}\n"
                               "  c: {roles: [owner], executor: {kind: agent, agent: codex}}\n";
    static const int64_t due[][3] = {{1250000, 1250000, 10000000}, {1, 0, 1000000000000}};
    struct config *c = NULL;
    struct baton_error err;
    (void)state;
    if (config_parse("/x/f.yaml", text, strlen(text), no_sets, 0, &c, NULL, &err) != BATON_OK) {
        fail_msg("%s", err.text);
    }
    for (size_t i = 0; i < 2; i++) {
        const struct config_prices *prices = &c->services[i].executor.prices;
        assert_true(prices->known);
        assert_int_equal(prices->input, due[i][0]);
        assert_int_equal(prices->cached, due[i][1]);
        assert_int_equal(prices->output, due[i][2]);
    }
    assert_false(c->services[2].executor.prices.known);
    config_free(c);
}

/* ---- the example ---- */

static void the_shipped_example_loads(void **state)
{
    (void)state;
    char path[4096];
    struct config *c = NULL;
    struct buf findings = BUF_INIT;
    struct baton_error err;
    golden_path(path, sizeof(path), "config/baton.yaml");
    if (config_load(path, no_sets, 0, &c, &findings, &err) != BATON_OK) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(c->n_services, 5);
    const struct config_service *s = config_service_find(c, "claude-review");
    assert_int_equal(s->roles, ROLE_BIT(ROLE_reviewer) | ROLE_BIT(ROLE_arbiter));
    assert_int_equal(s->parallel, 4);
    assert_int_equal(s->deadline_ms, 1200000);
    assert_int_equal(s->grace_ms, 1200000);
    assert_int_equal(s->cut_off, CUT_OFF_kill);
    assert_int_equal(s->executor.kind, EXECUTOR_KIND_agent);
    assert_string_equal(s->executor.agent, "claude");
    assert_null(s->executor.model); /* the agent's own */
    assert_int_equal(s->n_profiles, 2);
    assert_string_equal(s->profiles[1].name.s, "backup");
    assert_string_equal(s->profiles[1].env[0].name, "ANTHROPIC_API_KEY");
    assert_int_equal(s->profiles[1].env[0].source, ENV_SOURCE_file);
    assert_int_equal(strncmp(s->profiles[1].env[0].text, c->dir, strlen(c->dir)), 0);
    assert_non_null(strstr(s->profiles[1].env[0].text, "/config/secrets/anthropic-backup"));
    s = config_service_find(c, "codex-review");
    assert_int_equal(s->profiles[0].env[0].source, ENV_SOURCE_from);
    assert_string_equal(s->profiles[0].env[0].text, "OPENAI_API_KEY");
    s = config_service_find(c, "codex");
    assert_int_equal(s->executor.kind, EXECUTOR_KIND_child);
    assert_int_equal(s->executor.n_command, 2);
    assert_string_equal(s->executor.command[0], "/usr/local/bin/codex-runtime");
    assert_string_equal(s->executor.command[1], "--serve");
    assert_int_equal(s->executor.env[0].source, ENV_SOURCE_value);
    assert_string_equal(s->executor.env[0].text, "eu");
    assert_int_equal(s->n_profiles, 1);
    assert_string_equal(s->profiles[0].name.s, "default");
    s = config_service_find(c, "lint");
    assert_int_equal(s->executor.command[0][0], '/');
    assert_non_null(strstr(s->executor.command[0], "/config/examples/review-patch"));
    assert_null(config_service_find(c, "nobody"));
    assert_int_equal(c->roles[ROLE_owner].n_chain, 2);
    assert_string_equal(c->roles[ROLE_owner].chain[1].s, "codex");
    assert_true(c->roles[ROLE_reviewer].read_only);
    assert_false(c->roles[ROLE_arbiter].read_only);
    assert_int_equal(c->on_failure[FAILURE_quota].count, 4);
    assert_int_equal(c->on_failure[FAILURE_quota].list[0], ACTION_rotate);
    assert_int_equal(c->retry.first_ms, 2000);
    assert_true(c->retry.jitter == 0.2);
    assert_int_equal(c->retry.max_wait_ms, 900000);
    assert_int_equal(c->circuit.probe_ms, 15000);
    assert_string_equal(c->identity.s, "alice");
    assert_int_equal(c->n_workflows, 1);
    assert_int_equal(c->workflows[0][0], '/');
    assert_string_equal(c->http_listen, "127.0.0.1:9464");
    config_free(c);
    buf_done(&findings);
}

static void kafka_is_parsed_and_kept(void **state)
{
    (void)state;
    struct config *c = accepted(
        "log: kafka\nkafka:\n  brokers: [kafka-1:9093, kafka-2:9093]\n  partitions: 12\n"
        "  replication: 3\n  session: 9s\n  security: sasl_ssl\n"
        "  sasl: {mechanism: SCRAM-SHA-512, username: u, password: {file: secrets/kafka}}\n"
        "  ca: /ca.pem\n  client: {linger.ms: 5, debug: broker}\n");
    assert_int_equal(c->log, LOG_KIND_kafka);
    assert_string_equal(c->kafka_brokers, "kafka-1:9093,kafka-2:9093");
    assert_int_equal(c->partitions, 12);
    assert_int_equal(c->replication, 3);
    assert_int_equal(c->session_ms, 9000);
    assert_string_equal(c->kafka.sasl_password_file, "/etc/x/secrets/kafka");
    assert_string_equal(c->kafka.ca, "/ca.pem");
    assert_int_equal(c->kafka.n_client, 2);
    assert_string_equal(c->kafka.client[0].key, "linger.ms");
    config_free(c);
    refused("log: kafka\n", "needs kafka.brokers");
    refused("log: kafka\nkafka: {brokers: [a:1], security: sasl_ssl}\n",
            "kafka.security: sasl_ssl needs");
    refused("kafka: {replication: 0}\n", "auto or a whole number");
}

/* ---- mistakes ---- */

#define AN "services: {a: {roles: [owner], executor: {kind: agent, agent: "
#define EX "executor: {kind: exec, command: [x]}"

static const struct trap mistakes[] = {
    {"prefx: a\n", "f.yaml:1:1: unknown key 'prefx'; did you mean 'prefix'?"},
    {"budget: {failure: 1}\n",
     "f.yaml:1:10: unknown key 'budget.failure'; did you mean 'budget.failures'?"},
    {"session: 1s\n", "did you mean 'local.session'?"},
    {"serivces: {}\n", "did you mean 'services'?"},
    {"local.path: x\n", "unknown key"},
    {"local: x\n", "f.yaml:1:1: local is a section"},
    {"prefix: {a: b}\n", "f.yaml:1:1: prefix must be a name of [a-z0-9-], at most 48 characters, "
                         "neither dlq nor coordinator, not a section"},
    {"prefix:\n", "prefix has no value"},
    {"prefix: dlq\n", "prefix must be"},
    {"prefix: a.b\n", "prefix must be"},
    {"prefix: \"a\\e[2J\"\n", "not 'a\\x1b[2J'"},
    {"version: 2\n", "version must be one of 1"},
    {"log: kafak\n", "log must be one of local, kafka, not 'kafak'"},
    {"local: {partitions: 65}\n", "from 1 to 64"},
    {"local: {path: \"a\\nb\"}\n", "local.path must be a path"},
    {"retry: {jitter: 1.5}\n", "a number from 0 to 1"},
    {"http: {listen: 9464}\n", "ADDRESS:PORT"},
    {"http: {listen: \"::1:99\"}\n", "ADDRESS:PORT"},
    {"http: {listen: \"a:99999\"}\n", "ADDRESS:PORT"},
    {"services: []\n", "services must be a section"},
    {"services: {a: x}\n", "services.a must be a section"},
    {"services: {a: {" EX "}}\n", "services.a.roles must name at least one role"},
    {"services: {a: {roles: [], " EX "}}\n", "at least one role"},
    {"services: {a: {roles: owner, " EX "}}\n", "services.a.roles must be a list"},
    {"services: {a: {roles: [Owner], " EX "}}\n",
     "f.yaml:1:24: services.a.roles: 'Owner' is no role"},
    {"services: {a: {roles: [owner, owner], " EX "}}\n", "names owner twice"},
    {"services: {a: {roles: [owner]}}\n", "services.a.executor is missing"},
    {"services: {a: {roles: [owner], executor: {}}}\n", "services.a.executor.kind is missing"},
    {"services: {a: {roles: [owner], executor: {kind: exec}}}\n", "needs a command"},
    {"services: {a: {roles: [owner], executor: {kind: exec, command: []}}}\n", "needs a command"},
    {"services: {a: {roles: [owner], executor: {kind: exec, command: x}}}\n",
     "command must be a list"},
    {"services: {a: {roles: [owner], executor: {kind: exec, command: ['']}}}\n",
     "must be a text, not an empty one"},
    {"services: {a: {roles: [owner], executor: {kind: agent}}}\n",
     "needs an agent, one of: claude codex gemini"},
    {"services: {a: {roles: [owner], executor: {kind: agent, agent: clade}}}\n",
     "one of claude, codex, gemini"},
    {"services: {a: {roles: [owner], executor: {kind: agent, agent: claude, access: none}}}\n",
     "one of auto, read, write, full"},
    {"services: {a: {roles: [owner], executor: {kind: agent, agent: claude, resume: true}}}\n",
     "resume needs home"},
    {"services: {a: {roles: [owner], executor: {kind: callback, command: [x]}}}\n",
     "command is not for kind callback"},
    {"services: {a: {roles: [owner], heartbeat: 5m, executor: {kind: callback}}}\n",
     "services.a.heartbeat is not for kind callback"},
    {"services: {a: {roles: [owner], executor: {kind: exec, command: [x], prices: {input: 1}}}}\n",
     "prices is for kind agent only"},
    {AN "claude, model: m, prices: {input: 1, output: 1}}}}\n",
     "f.yaml:1:81: services.a.executor.prices is for agents that tell no costs"},
    {AN "codex, prices: {input: 1, output: 1}}}}\n",
     "f.yaml:1:70: services.a.executor.prices are those of a model"},
    {AN "codex, model: m, prices: {output: 1}}}}\n",
     "prices.input is missing; it must be a whole number from 0 to 1000000000000"},
    {AN "codex, model: m, prices: {input: 1.25, output: 1}}}}\n",
     "f.yaml:1:89: services.a.executor.prices.input must be a whole number"},
    {AN "codex, model: m, prices: {input: -1, output: 1}}}}\n",
     "prices.input must be a whole number"},
    {AN "codex, model: m, prices: {input: 1, ouput: 1}}}}\n",
     "unknown key 'ouput' in services.a.executor.prices; did you mean 'output'?"},
    {AN "codex, model: m, prices: 1}}}\n", "services.a.executor.prices must be a section"},
    {"budget: {max_cost: 1}\n" AN "gemini}}}\n",
     "f.yaml:2:56: budget.max_cost cannot bind services.a: gemini tells tokens and no costs"},
    {"services: {a: {roles: [owner], executor: {kind: exec, command: [x], prompts: p}}}\n",
     "prompts is for kind agent only"},
    {"services: {a: {roles: [owner], executor: {kind: exec, command: [x], model: m}}}\n",
     "model is for kind agent only"},
    {"services: {a: {roles: [owner], executor: {kind: exec, command: [x], comand: [y]}}}\n",
     "unknown key 'comand' in services.a.executor; did you mean 'command'?"},
    {"services: {a: {roles: [owner], paralel: 2, " EX "}}\n",
     "unknown key 'paralel' in services.a; did you mean 'parallel'?"},
    {"services: {a: {roles: [owner], parallel: 1001, " EX "}}\n", "from 1 to 1000"},
    {"services: {a: {roles: [owner], cut_off: no, " EX "}}\n", "one of kill, keep"},
    {"services: {a.b: {roles: [owner], " EX "}}\n", "'a.b' is no name for a service"},
    {"services: {coordinator: {roles: [owner], " EX "}}\n", "'coordinator' is no name"},
    {"services: {a: {roles: [owner], " EX ", profiles: [{env: {}}]}}\n", "a profile needs a name"},
    {"services: {a: {roles: [owner], " EX ", profiles: [{name: p}, {name: p}]}}\n",
     "the profile 'p' stands here twice"},
    {"services: {a: {roles: [owner], " EX ", profiles: {name: p}}}\n", "profiles must be a list"},
    {"services: {a: {roles: [owner], " EX ", profiles: [{name: p, env: {A: secret}}]}}\n",
     "must say where its value comes from"},
    {"services: {a: {roles: [owner], " EX
     ", profiles: [{name: p, env: {A: {file: x, from: y}}}]}}\n",
     "must say where"},
    {"services: {a: {roles: [owner], " EX ", profiles: [{name: p, env: {A: {fil: x}}}]}}\n",
     "did you mean 'file'?"},
    {"services: {a: {roles: [owner], " EX ", profiles: [{name: p, env: {A: {from: 'x y'}}}]}}\n",
     "is not the name of a variable"},
    {"services: {a: {roles: [owner], " EX
     ", profiles: [{name: p, env: {BATON_ROLE: {value: owner}}}]}}\n",
     "BATON_ is Baton's own"},
    {"services: {a: {roles: [owner], " EX ", profiles: [{name: p, env: {'A=B': {value: x}}}]}}\n",
     "cannot be set here"},
    {"roles: {boss: {}}\n", "unknown key 'boss' in roles"},
    {"roles: {owner: {chain: [a]}}\n", "names 'a', which is no service here"},
    {"roles: {owner: {chain: a}}\n", "roles.owner.chain must be a list"},
    {"services: {ab: {roles: [owner], " EX "}}\nroles: {owner: {chain: [aa]}}\n",
     "f.yaml:2:25: roles.owner.chain names 'aa', which is no service here; did you mean 'ab'?"},
    {"services: {a: {roles: [owner], " EX "}}\nroles: {reviewer: {chain: [a]}}\n",
     "names a, which does not serve reviewer"},
    {"services: {a: {roles: [owner], " EX "}}\nroles: {owner: {chain: [a, a]}}\n", "names a twice"},
    {"on_failure: {auht: [park]}\n", "unknown key 'auht' in on_failure; did you mean 'auth'?"},
    {"on_failure: {auth: [retry]}\n", "on_failure.auth must end with park: `auth: [retry, park]`"},
    {"on_failure: {auth: []}\n", "on_failure.auth must end with park"},
    {"on_failure: {auth: park}\n", "on_failure.auth must be a list"},
    {"on_failure: {auth: [park, retry]}\n", "nothing after park"},
    {"on_failure: {auth: [retry, retry, park]}\n", "names retry twice"},
    {"on_failure: {auth: [wait, park]}\n", "'wait' is no action"},
    {"lease: 3s\n", "f.yaml:1:1: lease (3s) must be at least 2 times lease_grace (2s)"},
    {"local: {heartbeat: 3s}\n",
     "local.session (6s) must be at least 3 times local.heartbeat (3s)"},
    {"lease_grace: 1s\n", "lease_grace (1s) must be at least 2 times local.heartbeat (1s)"},
    {"retry: {first: 10m}\n", "retry.max (5m) must be at least retry.first (10m)"},
    {"workflows: x\n", "workflows must be a list"},
};

static void c1_each_mistake_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(mistakes); i++) {
        refused(mistakes[i].text, mistakes[i].expected);
    }
}

static void c1_all_mistakes_at_once(void **state)
{
    (void)state;
    static const char text[] = "prefx: a\nlog: kafak\nbudget: {failures: many, foo: 1}\n"
                               "services:\n  a.b: {}\n  ok: {roles: [Owner], parallel: 0, " EX "}\n"
                               "roles: {owner: {chain: [nobody]}}\non_failure: {auth: [retry]}\n";
    static const char *const each[] = {
        "f.yaml:1:1: ",  "f.yaml:2:1: ",  "f.yaml:3:10: ", "f.yaml:3:26: ", "f.yaml:5:3: ",
        "f.yaml:6:16: ", "f.yaml:6:24: ", "f.yaml:7:25: ", "f.yaml:8:14: "};
    struct config *config = NULL;
    struct buf findings = BUF_INIT;
    assert_int_equal(parse_with(text, sizeof(text) - 1, no_sets, 0, &config, &findings),
                     BATON_E_bad_config);
    size_t lines = 0;
    for (const char *at = text_in(&findings); *at != '\0'; at = strchr(at, '\n') + 1) {
        lines++;
    }
    for (size_t i = 0; i < COUNT_OF(each); i++) {
        if (strstr(findings.data, each[i]) == NULL) {
            fail_msg("nothing at %s\n%s", each[i], findings.data);
        }
    }
    assert_int_equal(lines, COUNT_OF(each));
    buf_done(&findings);
}

static void findings_are_bounded(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    struct buf findings = BUF_INIT;
    struct config *config = NULL;
    for (int i = 0; i < 1000; i++) {
        buf_printf(&text, "key%d: x\n", i);
    }
    assert_int_equal(parse_with(text.data, text.len, no_sets, 0, &config, &findings),
                     BATON_E_bad_config);
    size_t lines = 0;
    for (const char *at = text_in(&findings); *at != '\0'; at = strchr(at, '\n') + 1) {
        lines++;
    }
    assert_int_equal(lines, LIMIT_YAML_FINDINGS);
    buf_done(&text);
    buf_done(&findings);
}

/* ---- --set, show, find ---- */

static const char *value_of(const struct config *c, const char *key, enum config_source *ret_source)
{
    for (size_t i = 0; i < c->n_settings; i++) {
        if (strcmp(c->settings[i].key, key) == 0) {
            *ret_source = c->settings[i].source;
            return c->settings[i].value;
        }
    }
    return NULL;
}

static void c2_default_file_set(void **state)
{
    (void)state;
    static const char text[] =
        "prefix: f\nbudget: {failures: 4}\nservices: {a: {roles: [owner], " EX "}}\n";
    static const char *const sets[] = {"budget.failures=5", "budget.losses=2",
                                       "services.a.parallel=9", "local.path=l.db"};
    struct config *c = NULL;
    struct buf findings = BUF_INIT;
    enum config_source source;
    assert_int_equal(parse_with(text, sizeof(text) - 1, sets, 4, &c, &findings), BATON_OK);
    assert_int_equal(c->budget.failures, 5);
    assert_int_equal(c->budget.losses, 2);
    assert_int_equal(c->services[0].parallel, 9);
    assert_string_equal(value_of(c, "budget.failures", &source), "5");
    assert_int_equal(source, CONFIG_SOURCE_set);
    assert_string_equal(value_of(c, "prefix", &source), "f");
    assert_int_equal(source, CONFIG_SOURCE_file);
    assert_string_equal(value_of(c, "budget.replays", &source), "3");
    assert_int_equal(source, CONFIG_SOURCE_default);
    assert_string_equal(value_of(c, "local.path", &source), "/etc/x/l.db");
    assert_string_equal(value_of(c, "services.a.grace", &source), "20m");
    config_free(c);
    buf_done(&findings);
}

static void c2_wrong_sets_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *set;
        const char *expected;
    } wrong[] = {
        {"prefix", "--set prefix: must be KEY=VALUE"},
        {"=x", "--set =x: must be KEY=VALUE"},
        {"prefx=a", "--set prefx=a: unknown key 'prefx'; did you mean 'prefix'?"},
        {"budget.failures=x", "--set budget.failures=x: budget.failures must be"},
        {"budget=1", "--set budget=1: budget is a section"},
        {"prefix.a=1", "--set prefix.a=1: prefix must be a name"},
        {"workflows=x", "workflows must be a list"},
        {"prefix=\xff", "not valid UTF-8"},
        {"prefix=\x1b[2J", "--set prefix=\\x1b[2J: "},
        {"prefix=", "prefix must be"},
        {"budget..failures=1", "unknown key"},
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct config *c = NULL;
        struct buf findings = BUF_INIT;
        baton_code rc = parse_with("", 0, &wrong[i].set, 1, &c, &findings);
        if (rc != BATON_E_bad_config || strstr(text_in(&findings), wrong[i].expected) == NULL) {
            fail_msg("%s: %s", wrong[i].set, text_in(&findings));
        }
        buf_done(&findings);
    }
}

static void c2_show_names_value_and_source(void **state)
{
    (void)state;
    struct config *c =
        accepted("prefix: f\nservices: {a: {roles: [owner], " EX ", profiles: [{name: p, "
                 "env: {TOKEN: {file: token}, U: {from: UU}}}]}}\n");
    struct buf out = BUF_INIT;
    config_show(c, true, &out);
    cJSON *shown = cJSON_Parse(text_in(&out));
    assert_non_null(shown);
    cJSON *settings = cJSON_GetObjectItemCaseSensitive(shown, "settings");
    int found = 0;
    const cJSON *one;
    cJSON_ArrayForEach(one, settings)
    {
        const char *key = cJSON_GetObjectItemCaseSensitive(one, "key")->valuestring;
        const char *value = cJSON_GetObjectItemCaseSensitive(one, "value")->valuestring;
        const char *source = cJSON_GetObjectItemCaseSensitive(one, "source")->valuestring;
        found +=
            strcmp(key, "prefix") == 0 && strcmp(value, "f") == 0 && strcmp(source, "file") == 0;
        found +=
            strcmp(key, "lease") == 0 && strcmp(value, "6s") == 0 && strcmp(source, "default") == 0;
        found += strcmp(key, "services.a.profiles.p.env.TOKEN") == 0 &&
                 strcmp(value, "file /etc/x/token") == 0;
        found += strcmp(key, "services.a.profiles.p.env.U") == 0 && strcmp(value, "from UU") == 0;
    }
    assert_int_equal(found, 4);
    cJSON_Delete(shown);
    buf_clear(&out);
    config_show(c, false, &out);
    assert_non_null(strstr(text_in(&out), "prefix "));
    assert_null(strchr(out.data, '\t'));
    buf_clear(&out);
    assert_int_equal(config_warnings(c, &out), 1); /* there is no program x */
    assert_non_null(strstr(text_in(&out), "services.a"));
    buf_clear(&out);
    config_document(false, &out);
    assert_non_null(strstr(text_in(&out), "local.partitions  (1..64; default 4)\n"));
    assert_non_null(strstr(
        out.data, "services.<name>.executor.kind  (exec | child | agent | callback; required)\n"));
    assert_non_null(strstr(out.data, "on_failure"));
    buf_done(&out);
    config_free(c);
}

static void paths_are_found_in_order(void **state)
{
    (void)state;
    char dir[] = "/tmp/baton-config-XXXXXX";
    char here[4096];
    char *path = NULL;
    struct baton_error err;
    assert_non_null(getcwd(here, sizeof(here)));
    assert_non_null(mkdtemp(dir));
    assert_int_equal(chdir(dir), 0);
    unsetenv("BATON_CONFIG");
    if (access("/etc/baton/baton.yaml", F_OK) != 0) {
        assert_int_equal(config_find(NULL, &path, &err), BATON_E_bad_config);
        assert_non_null(strstr(err.text, "baton init"));
    }
    FILE *file = fopen("baton.yaml", "w");
    fputs("prefix: here\n", file);
    fclose(file);
    assert_int_equal(config_find(NULL, &path, &err), BATON_OK);
    assert_string_equal(path, "baton.yaml");
    struct config *config = NULL;
    assert_int_equal(config_load(path, no_sets, 0, &config, NULL, &err), BATON_OK);
    assert_string_equal(config->dir, dir); /* absolute, though it was found by a relative path */
    config_free(config);
    free(path);
    assert_int_equal(config_load("./baton.yaml", no_sets, 0, &config, NULL, &err), BATON_OK);
    assert_string_equal(config->dir, dir);
    config_free(config);
    assert_int_equal(config_parse("/b.yaml", "", 0, no_sets, 0, &config, NULL, &err), BATON_OK);
    assert_string_equal(config->dir, "/");
    assert_string_equal(config->local_path, "/data/log.db");
    config_free(config);
    setenv("BATON_CONFIG", "/from/environment", 1);
    assert_int_equal(config_find(NULL, &path, &err), BATON_OK);
    assert_string_equal(path, "/from/environment");
    free(path);
    assert_int_equal(config_find("/explicit", &path, &err), BATON_OK);
    assert_string_equal(path, "/explicit");
    free(path);
    unsetenv("BATON_CONFIG");
    assert_int_equal(config_load("/nowhere/b.yaml", no_sets, 0, &config, NULL, &err),
                     BATON_E_bad_config);
    assert_non_null(strstr(err.text, "/nowhere/b.yaml"));
    assert_int_equal(config_load("/", no_sets, 0, &config, NULL, NULL), BATON_E_bad_config);
    unlink("baton.yaml");
    assert_int_equal(chdir(here), 0);
    assert_int_equal(rmdir(dir), 0);
}

/* A delegation that is asked for and never possible is told, with the line that is missing. */
static void test_warns_of_delegations_that_cannot_be(void **state)
{
    (void)state;
    static const char services[] = "version: 1\nservices:\n"
                                   "  a: {roles: [reviewer, arbiter], executor: {kind: callback}}\n"
                                   "  b: {roles: [reviewer], executor: {kind: callback}}\n";
    static const struct {
        const char *more;
        size_t n;
        const char *text;
    } rows[] = {
        {"", 1, "`reviewer: {chain: [a, b]}`"},
        {"roles: {reviewer: {chain: [a, b]}}\n", 0, ""},
        {"roles: {reviewer: {chain: [b]}}\n", 1, "turns of role reviewer at b are never"},
        {"roles: {reviewer: {chain: [b, a]}, arbiter: {chain: [a]}}\n", 1,
         "no other service serves arbiter"},
        {"on_failure: {auth: [park]}\n", 1, "(access_denied, "},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct config *c = NULL;
        struct buf out = BUF_INIT;
        char text[512];
        snprintf(text, sizeof(text), "%s%s", services, rows[i].more);
        assert_int_equal(config_parse("/x/baton.yaml", text, strlen(text), NULL, 0, &c, NULL, NULL),
                         BATON_OK);
        if (config_warnings(c, &out) != rows[i].n ||
            strstr(out.data != NULL ? out.data : "", rows[i].text) == NULL) {
            fail_msg("row %zu: %s", i, out.data != NULL ? out.data : "");
        }
        buf_done(&out);
        config_free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(x33_yaml_traps),
        cmocka_unit_test(x33_nul_utf16_and_size),
        cmocka_unit_test(x33_alias_bomb_and_deep_nesting_cost_nothing),
        cmocka_unit_test(no_implicit_types),
        cmocka_unit_test(an_empty_file_is_all_defaults),
        cmocka_unit_test(prices_are_whole_numbers_of_a_model),
        cmocka_unit_test(the_shipped_example_loads),
        cmocka_unit_test(kafka_is_parsed_and_kept),
        cmocka_unit_test(c1_each_mistake_is_named),
        cmocka_unit_test(c1_all_mistakes_at_once),
        cmocka_unit_test(findings_are_bounded),
        cmocka_unit_test(c2_default_file_set),
        cmocka_unit_test(c2_wrong_sets_are_named),
        cmocka_unit_test(c2_show_names_value_and_source),
        cmocka_unit_test(paths_are_found_in_order),
        cmocka_unit_test(test_warns_of_delegations_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
