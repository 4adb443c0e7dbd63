/*
 * A coordinator's start: keys and trust first, then the log, its topics, the group.
 *
 * In: coordinator.c  Out: common/engine/engine.h
 */
#include "producer/coordinator/internal.h"

#include "common/base/metrics.h"
#include "common/base/text.h"
#include "common/engine/reach.h"
#include "common/http/health.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void name_topics(struct coordinator *c)
{
    const char *prefix = c->config->prefix.s;
    c->requests = topic_name(TOPIC_requests, prefix, NULL);
    c->outcomes = topic_name(TOPIC_outcomes, prefix, NULL);
    c->runs = topic_name(TOPIC_runs, prefix, NULL);
    c->dlq = topic_name(TOPIC_dlq_requests, prefix, NULL);
    c->group = group_of_coordinators(prefix);
}

static baton_code check_topics(struct coordinator *c, struct baton_error *err)
{
    const struct {
        enum topic_kind kind;
        const char *name;
    } own[] = {{TOPIC_requests, c->requests.s},
               {TOPIC_outcomes, c->outcomes.s},
               {TOPIC_runs, c->runs.s},
               {TOPIC_dlq_requests, c->dlq.s}};
    baton_code rc = BATON_OK;
    for (size_t i = 0; rc == BATON_OK && i < sizeof(own) / sizeof(own[0]); i++) {
        rc = topic_require(c->log, own[i].kind, own[i].name, c->config->partitions, err);
    }
    return rc;
}

static baton_code load_keys(struct coordinator *c, struct baton_error *err)
{
    struct buf findings = BUF_INIT;
    const bool required = c->config->proof_required;
    process_hold_keys();
    baton_code rc = trust_load(c->config->trust, &c->trust, &findings, err);
    buf_done(&findings);
    if (rc != BATON_OK && required) {
        return rc;
    }
    snprintf(c->fleet.s, sizeof(c->fleet.s), "%s",
             c->trust != NULL ? trust_fleet(c->trust) : c->config->prefix.s);
    if (required && !trust_may_coordinate(trust_principal_find(c->trust, COORDINATOR_PRINCIPAL))) {
        return baton_fail(err, BATON_E_not_permitted,
                          "%s may not coordinate: in %s/%s.yaml put `coordinate: true`",
                          COORDINATOR_PRINCIPAL, c->config->trust, COORDINATOR_PRINCIPAL);
    }
    rc = signer_load(c->config->keys, COORDINATOR_PRINCIPAL, &c->signer, err);
    return rc != BATON_OK && (required || rc != BATON_E_unauthenticated) ? rc : BATON_OK;
}

bool coordinator_reload_trust(struct coordinator *c)
{
    struct trust *fresh = NULL;
    struct buf findings = BUF_INIT;
    struct baton_error err;
    if (c->trust == NULL || !trust_changed(c->trust)) {
        return false;
    }
    baton_code rc = trust_load(c->config->trust, &fresh, &findings, &err);
    buf_done(&findings);
    if (rc != BATON_OK) {
        diag_limited(&c->limit, DIAG_error, "trust.not_read", D_CODE("code", rc),
                     D_TEXT("error", err.text),
                     D_TEXT("meaning", "the one read before stays in force"));
        return false;
    }
    if (c->engine != NULL) {
        engine_trust(c->engine, fresh);
    }
    trust_free(c->trust);
    c->trust = fresh;
    diag_line(DIAG_info, "trust.read", D_TEXT("folder", c->config->trust));
    return true;
}

struct receiver coordinator_receiver(const struct coordinator *c)
{
    return (struct receiver){.trust = c->trust,
                             .fleet = c->fleet.s,
                             .proof_required = c->config->proof_required,
                             .partitions = c->config->partitions};
}

/* Every topic that batches may name: handoffs and control records of each service. */
static baton_code list_outputs(struct coordinator *c, struct topic_name **ret_names,
                               const char ***ret_list, size_t *ret_count, struct baton_error *err)
{
    const size_t n = 2 * c->config->n_services + 2;
    struct topic_name *names = calloc(n, sizeof(*names));
    const char **list = calloc(n, sizeof(*list));
    if (names == NULL || list == NULL) {
        free(names);
        free(list);
        return baton_fail(err, BATON_E_no_memory, "out of memory");
    }
    names[0] = c->outcomes;
    names[1] = c->dlq;
    for (size_t i = 0; i < c->config->n_services; i++) {
        const char *service = c->config->services[i].name.s;
        names[2 + 2 * i] = topic_name(TOPIC_handoff, c->config->prefix.s, service);
        names[3 + 2 * i] = topic_name(TOPIC_control, c->config->prefix.s, service);
    }
    for (size_t i = 0; i < n; i++) {
        list[i] = names[i].s;
    }
    *ret_names = names;
    *ret_list = list;
    *ret_count = n;
    return BATON_OK;
}

static baton_code join_group(struct coordinator *c, struct baton_error *err)
{
    struct topic_name *names = NULL;
    const char **outputs = NULL;
    size_t n = 0;
    baton_code rc = list_outputs(c, &names, &outputs, &n, err);
    if (rc != BATON_OK) {
        return rc;
    }
    const struct engine_spec spec = {
        .log = c->log,
        .group = c->group.s,
        .worker = c->id.s,
        .boot = c->boot,
        .inputs = {{.topic = c->requests.s, .records = ENGINE_REQUESTS, .trimmed = true},
                   {.topic = c->outcomes.s, .records = ENGINE_OUTCOMES, .trimmed = false}},
        .state = c->runs.s,
        .outputs = outputs,
        .n_outputs = n,
        .session_ms = c->config->session_ms,
        .heartbeat_ms = c->config->heartbeat_ms,
        .receiver = coordinator_receiver(c),
        .verify_threads = c->config->proof_required ? c->options->verify_threads : 0,
        .mail = c->mail,
        .wake_fd = c->options->wake_fd,
    };
    rc = engine_open(&spec, &c->engine, err);
    free(names);
    free(outputs);
    return rc;
}

static void choose_id(struct coordinator *c)
{
    char host[40] = "";
    if (c->options->id != NULL) {
        snprintf(c->id.s, sizeof(c->id.s), "%s", c->options->id);
        return;
    }
    if (gethostname(host, sizeof(host) - 1) != 0 || host[0] == '\0') {
        snprintf(host, sizeof(host), "host");
    }
    snprintf(c->id.s, sizeof(c->id.s), "%s-%d", host, (int)getpid());
    for (char *at = c->id.s; *at != '\0'; at++) {
        const bool upper = *at >= 'A' && *at <= 'Z';
        const bool fits = (*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9');
        *at = upper ? (char)(*at - 'A' + 'a') : (fits ? *at : '-');
    }
}

static baton_code reach_log(struct coordinator *c, struct baton_error *err)
{
    baton_code rc = log_open(c->config, &c->log, err);
    if (rc == BATON_OK) {
        health_log(c->log);
    }
    return rc;
}

/* A step that needs the log, until the log can be reached (reach.h). */
static baton_code patiently(struct coordinator *c,
                            baton_code (*step)(struct coordinator *, struct baton_error *),
                            struct baton_error *err)
{
    for (;;) {
        const baton_code rc = step(c, err);
        if (!reach_waits(c->config, c->options->drain, rc, err, "coordinator.waits", &c->limit)) {
            return rc;
        }
        health_ready("the log cannot be reached");
        health_expect(mono_now());
        const struct mono_ms next = reach_next();
        while (!c->stopping && reach_woken(c->options->wake_fd, next)) {
            coordinator_read_wake(c);
        }
        if (c->stopping) {
            return baton_fail(err, BATON_E_stopped, "told to stop while the log was not there");
        }
    }
}

baton_code coordinator_start(struct coordinator *c, struct baton_error *err)
{
    baton_code rc;
    c->boot = boot_id_new();
    c->limit = (struct diag_limit)DIAG_LIMIT(60000);
    name_topics(c);
    const char *given = c->options->id;
    if (given != NULL && !file_id_valid(given, strlen(given))) {
        return baton_fail(err, BATON_E_invalid_request,
                          "'%s' is no coordinator's id: [a-z0-9._-]{1,64}, without a dot before",
                          text_quote_of(given).s);
    }
    choose_id(c);
    c->mail = mailbox_new(HOOKS_AT_ONCE);
    if (c->mail == NULL) {
        return baton_fail(err, BATON_E_no_memory, "a mailbox cannot be made");
    }
    metrics_of("", "coordinator", c->id.s);
    health_expect(mono_now());
    if (c->config->http_listen != NULL &&
        (rc = http_listen(c->config->http_listen, &c->http, err)) != BATON_OK) {
        return rc;
    }
    if ((rc = load_keys(c, err)) != BATON_OK ||
        (rc = tracer_open(c->config, COORDINATOR_PRINCIPAL, c->id.s, &c->tracer, err)) !=
            BATON_OK ||
        (rc = patiently(c, reach_log, err)) != BATON_OK ||
        (rc = patiently(c, check_topics, err)) != BATON_OK ||
        (rc = patiently(c, join_group, err)) != BATON_OK) {
        return rc;
    }
    diag_line(DIAG_info, "coordinator.started", D_TEXT("coordinator", c->id.s),
              D_TEXT("boot", c->boot.s), D_TEXT("log", log_driver(c->log)), D_INT("pid", getpid()));
    return BATON_OK;
}
