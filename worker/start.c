/*
 * A worker's start, in the order of protocol rule 3: lock the store, kill what an old boot left,
 * join the group (which settles what the old boot left open); and what is read again while it runs:
 * trust and secrets.
 *
 * In: worker/worker.c  Out: common/store/store.h, worker/executor/executor.h,
 * common/engine/engine.h
 */
#include "worker/start.h"

#include "common/base/check.h"
#include "common/base/config.h"
#include "common/base/diag.h"
#include "common/base/mailbox.h"
#include "common/base/metrics.h"
#include "common/engine/engine.h"
#include "common/engine/reach.h"
#include "common/engine/verify.h"
#include "common/http/health.h"
#include "common/http/listen.h"
#include "common/log/log.h"
#include "common/record/receipt.h"
#include "common/record/signer.h"
#include "common/record/trust.h"
#include "common/sqlite/place.h"
#include "common/store/store.h"
#include "common/trace/tracer.h"
#include "topics/catalogue.h"
#include "topics/progress.h"
#include "worker/delegate.h"
#include "worker/executor/environment.h"
#include "worker/executor/executor.h"
#include "worker/internal.h"
#include "worker/lease/lease.h"
#include "worker/live.h"
#include "worker/rest.h"
#include "worker/stop.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define OWN_IDS_MAX 64 /* <host>-1 .. <host>-64 */
#define ENV_REREAD_MS 60000
#define ENV_REFUSED_MS 5000
#define TRUST_TRIES 5
#define TRUST_PAUSE_NS 10000000

static void name_topics(struct worker *w)
{
    for (int kind = 0; kind < TOPIC_COUNT; kind++) {
        w->names[kind] =
            topic_name((enum topic_kind)kind, w->config->prefix.s,
                       topic_kind_of_service((enum topic_kind)kind) ? w->service->name.s : NULL);
    }
    w->group = group_of_workers(w->config->prefix.s, w->service->name.s);
}

/* A worker refuses to start on a missing or wrongly made topic of its own. */
static baton_code check_topics(struct worker *w, struct baton_error *err)
{
    static const enum topic_kind own[] = {TOPIC_handoff, TOPIC_control, TOPIC_turns, TOPIC_dlq,
                                          TOPIC_outcomes};
    baton_code rc = BATON_OK;
    for (size_t i = 0; rc == BATON_OK && i < COUNT_OF(own); i++) {
        rc = topic_require(w->log, own[i], w->names[own[i]].s, w->config->partitions, err);
    }
    return rc;
}

static baton_code load_keys(struct worker *w, struct baton_error *err)
{
    struct buf findings = BUF_INIT;
    const bool required = w->config->proof_required;

    process_hold_keys();
    baton_code rc = trust_load(w->config->trust, &w->trust, &findings, err);
    buf_done(&findings);
    if (rc != BATON_OK) {
        if (required) {
            return rc;
        }
        diag_line(DIAG_warn, "trust.not_read", D_CODE("code", rc), D_TEXT("error", err->text));
    }
    w->trust_read = mono_now();
    snprintf(w->fleet.s, sizeof(w->fleet.s), "%s",
             w->trust != NULL ? trust_fleet(w->trust) : w->config->prefix.s);
    rc = signer_load(w->config->keys, w->service->name.s, &w->signer, err);
    if (rc != BATON_OK && (required || rc != BATON_E_unauthenticated)) {
        return rc;
    }
    if (required && trust_revokes(w->trust, signer_key_id(w->signer).s)) {
        return baton_fail(
            err, BATON_E_unauthenticated,
            "the key %s of service %s is revoked, so nobody would believe its outcomes; "
            "`baton keys rotate %s` makes another",
            signer_key_id(w->signer).s, w->service->name.s, w->service->name.s);
    }
    metric_set(METRIC_proof_off, required ? 0 : 1);
    if (!required) {
        diag_line(
            DIAG_warn, "proof.off", D_TEXT("service", w->service->name.s),
            D_TEXT("meaning", "records are not verified: any writer of the topics is believed"));
    }
    return BATON_OK;
}

/* Somebody may be putting a principal and its key there just now: a record is not refused for that. */
static baton_code read_fresh(const struct worker *w, bool unknown, struct trust **ret_fresh,
                             struct baton_error *err)
{
    struct buf findings = BUF_INIT;
    baton_code rc = trust_load(w->config->trust, ret_fresh, &findings, err);
    for (int tries = 0; unknown && rc == BATON_E_bad_config && tries < TRUST_TRIES; tries++) {
        nanosleep(&(struct timespec){0, TRUST_PAUSE_NS}, NULL);
        buf_clear(&findings);
        rc = trust_load(w->config->trust, ret_fresh, &findings, err);
    }
    buf_done(&findings);
    return rc;
}

bool worker_reload_trust(struct worker *w, bool unknown)
{
    struct trust *fresh = NULL;
    struct baton_error err;
    const struct mono_ms now = mono_now();

    /* Looking whether the folder has changed is cheap; a folder that cannot be read is tried once a
     * second. */
    if (unknown && ((w->trust != NULL && !trust_changed(w->trust)) ||
                    (w->trust_failed && now.v - w->trust_read.v < TRUST_RELOAD_MS))) {
        return false;
    }
    w->trust_read = now;
    baton_code rc = read_fresh(w, unknown, &fresh, &err);
    if (rc == BATON_OK && strcmp(trust_fleet(fresh), w->fleet.s) != 0) {
        rc = baton_fail(&err, BATON_E_bad_config,
                        "%s: names another fleet; restart the worker for that", w->config->trust);
        trust_free(fresh);
    }
    w->trust_failed = rc != BATON_OK;
    if (rc != BATON_OK) {
        diag_limited(&w->limit, DIAG_error, "trust.not_read", D_CODE("code", rc),
                     D_TEXT("error", err.text),
                     D_TEXT("meaning", "the one read before stays in force"));
        return false;
    }
    if (w->engine != NULL) {
        engine_trust(w->engine, fresh);
    }
    trust_free(w->trust);
    w->trust = fresh;
    diag_line(DIAG_info, "trust.read", D_TEXT("folder", w->config->trust));
    return true;
}

static baton_code resolve_env(const struct worker *w, size_t i, struct executor_env **ret_env,
                              struct baton_error *err)
{
    const struct config_executor *executor = &w->service->executor;
    const struct config_profile *profile = &w->service->profiles[i];
    return executor_env_resolve(executor->env, executor->n_env, profile->env, profile->n_env,
                                ret_env, err);
}

static baton_code load_envs(struct worker *w, struct baton_error *err)
{
    w->envs = calloc(w->service->n_profiles, sizeof(struct executor_env *));
    if (w->envs == NULL) {
        return baton_fail(err, BATON_E_no_memory, "out of memory");
    }
    for (size_t i = 0; i < w->service->n_profiles; i++) {
        baton_code rc = resolve_env(w, i, &w->envs[i], err);
        if (rc != BATON_OK) {
            return baton_fail_context(err, rc,
                                      "profile %s of service %s: ", w->service->profiles[i].name.s,
                                      w->service->name.s);
        }
    }
    w->envs_read = mono_now();
    return BATON_OK;
}

/* Rotated secrets are seen within a minute, sooner while one is refused, since somebody may be mending it;
 * one that cannot be read leaves the one before in use. */
struct mono_ms worker_envs_due(const struct worker *w)
{
    return (struct mono_ms){w->envs_read.v +
                            (rest_any_refused(w) ? ENV_REFUSED_MS : ENV_REREAD_MS)};
}

void worker_envs_stale(struct worker *w)
{
    w->envs_read.v = INT64_MIN / 2;
}

void worker_reread_envs(struct worker *w)
{
    if (mono_now().v < worker_envs_due(w).v) {
        return;
    }
    w->envs_read = mono_now();
    for (size_t i = 0; i < w->service->n_profiles; i++) {
        struct executor_env *fresh = NULL;
        struct baton_error err;
        if (resolve_env(w, i, &fresh, &err) == BATON_OK) {
            const bool changed = !executor_env_equal(w->envs[i], fresh);
            executor_env_free(w->envs[i]);
            w->envs[i] = fresh;
            rest_look_again(w, i, changed);
        } else {
            diag_line(DIAG_warn, "profile.not_read",
                      D_TEXT("profile", w->service->profiles[i].name.s), D_TEXT("error", err.text));
        }
    }
}

/* One process has the store, so it may go well; what a host that is gone has written is not sure to be
 * seen. */
static void warn_of_place(const char *folder)
{
    struct place_type type;
    if (place_is_remote(folder, &type)) {
        diag_line(
            DIAG_warn, "store.remote", D_TEXT("folder", folder), D_TEXT("type", type.s),
            D_TEXT("meaning", "locks and shared memory do not hold on a network file system"),
            D_TEXT("mend", "set state_dir to a disk of this host: the store is made anew there"));
    }
}

static baton_code open_store(struct worker *w, const char *id, struct baton_error *err)
{
    snprintf(w->id.s, sizeof(w->id.s), "%s", id);
    snprintf(w->full, sizeof(w->full), "%s/%s", w->service->name.s, id);
    if (snprintf(w->state_dir, sizeof(w->state_dir), "%s/%s/%s", w->config->state_dir,
                 w->service->name.s, id) >= (int)sizeof(w->state_dir)) {
        return baton_fail(err, BATON_E_bad_config, "state_dir %s: the path is too long",
                          w->config->state_dir);
    }
    const struct store_owner owner = {log_cluster(w->log), w->names[TOPIC_turns].s, w->full,
                                      w->boot};
    w->blocked_file = 1; /* of an older boot: not known */
    baton_code rc = store_open(w->state_dir, &owner, &w->store, err);
    if (rc == BATON_OK) {
        progress_clear(w->state_dir);
        warn_of_place(w->state_dir);
    }
    return rc;
}

/* <host>-<first free number>: the first whose store nobody has. */
static baton_code choose_id(struct worker *w, struct baton_error *err)
{
    char host[48] = "";
    char id[ID_MAX + 1];

    if (w->options->id != NULL) {
        if (!file_id_valid(w->options->id, strlen(w->options->id))) {
            return baton_fail(err, BATON_E_invalid_request,
                              "worker id: [a-z0-9._-]{1,64} without a dot before is taken; "
                              "choose another --id");
        }
        return open_store(w, w->options->id, err);
    }
    if (gethostname(host, sizeof(host) - 1) != 0 || host[0] == '\0') {
        snprintf(host, sizeof(host), "host");
    }
    for (char *c = host; *c != '\0'; c++) {
        *c = isalnum((unsigned char)*c) ? (char)tolower((unsigned char)*c) : '-';
    }
    baton_code rc = BATON_E_store_busy;
    for (int n = 1; n <= OWN_IDS_MAX && rc == BATON_E_store_busy; n++) {
        snprintf(id, sizeof(id), "%s-%d", host, n);
        rc = open_store(w, id, err);
    }
    return rc;
}

/* An executor that a prefix makes another user's has to get through to its scratch directory, and the
 * folders of stores and log are closed to everybody: it lies beside them. The caller frees it. */
static char *scratch_apart(const struct worker *w)
{
    char *path = NULL;
    size_t len = strlen(w->config->state_dir);
    while (len > 1 && w->config->state_dir[len - 1] == '/') {
        len--;
    }
    return asprintf(&path, "%.*s-scratch", (int)len, w->config->state_dir) < 0 ? NULL : path;
}

static baton_code open_pool(struct worker *w, struct baton_error *err)
{
    const struct config_executor *executor = &w->service->executor;
    const bool callback = w->options->callback != NULL;
    const bool apart = !callback && executor->n_prefix > 0;
    struct executor_settings settings = {
        .kind = callback ? EXECUTOR_KIND_callback : executor->kind,
        .service = w->service->name,
        .worker = w->id,
        .boot = w->boot,
        .parallel = w->service->parallel,
        .state_dir = w->state_dir,
        .command = (const char *const *)executor->command,
        .n_command = executor->n_command,
        .prefix = (const char *const *)executor->prefix,
        .n_prefix = executor->n_prefix,
        .agent = executor->agent,
        .model = executor->model,
        .prompts = executor->prompts,
        .home = executor->home,
        .resume = executor->resume,
        .access = executor->access,
        .prices = {executor->prices.known, executor->prices.input, executor->prices.cached,
                   executor->prices.output},
        .callback = w->options->callback,
        .callback_arg = w->options->callback_arg,
        .callback_threads = w->options->callback_threads,
    };
    char *scratch = apart ? scratch_apart(w) : NULL;
    w->mail = mailbox_new((size_t)w->service->parallel * 4 + 64);
    if (w->mail == NULL || (apart && scratch == NULL)) {
        free(scratch);
        return baton_fail(err, BATON_E_no_memory, "a mailbox cannot be made");
    }
    settings.scratch_dir = scratch;
    baton_code rc = executor_pool_new(&settings, w->mail, &w->pool, err);
    free(scratch);
    return rc;
}

static baton_code open_leases(struct worker *w, struct baton_error *err)
{
    const struct leases_spec spec = {
        .log = w->log,
        .control = w->names[TOPIC_control].s,
        .turns = w->names[TOPIC_turns].s,
        .fleet = w->fleet.s,
        .worker = w->id.s,
        .signer = w->signer,
        .boot = w->boot,
        .lease_ms = w->config->lease_ms,
        .grace_ms = w->config->lease_grace_ms,
        .session_ms = w->config->session_ms,
        .interval_ms = w->config->heartbeat_ms,
        .keep = w->service->cut_off == CUT_OFF_keep,
        .pool = w->pool,
        .mail = w->mail,
    };
    return leases_new(&spec, &w->leases, err);
}

struct receiver worker_receiver(const struct worker *w)
{
    return (struct receiver){w->trust, w->fleet.s, w->config->proof_required, w->service->name.s,
                             w->config->partitions};
}

/* Every topic that batches may name beside the inputs and the turn log. */
static baton_code list_outputs(const struct worker *w, const char ***ret_names, size_t *ret_count,
                               char ***ret_targets, size_t *ret_n, struct baton_error *err)
{
    if (!delegate_topics(w, ret_targets, ret_n)) {
        return baton_fail(err, BATON_E_no_memory, "out of memory");
    }
    const char **names = calloc(*ret_n + 2, sizeof(*names));
    if (names == NULL) {
        return baton_fail(err, BATON_E_no_memory, "out of memory");
    }
    names[0] = w->names[TOPIC_outcomes].s;
    names[1] = w->names[TOPIC_dlq].s;
    for (size_t i = 0; i < *ret_n; i++) {
        names[2 + i] = (*ret_targets)[i];
    }
    *ret_names = names;
    *ret_count = *ret_n + 2;
    return BATON_OK;
}

static baton_code join_group(struct worker *w, struct baton_error *err)
{
    const char **outputs = NULL;
    char **targets = NULL;
    size_t n_outputs = 0;
    size_t n_targets = 0;
    baton_code rc = list_outputs(w, &outputs, &n_outputs, &targets, &n_targets, err);
    const struct engine_spec spec = {
        .log = w->log,
        .group = w->group.s,
        .worker = w->id.s,
        .boot = w->boot,
        .inputs = {{w->names[TOPIC_handoff].s, ENGINE_HANDOFFS, true},
                   {w->names[TOPIC_control].s, ENGINE_CONTROLS, true}},
        .state = w->names[TOPIC_turns].s,
        .outputs = outputs,
        .n_outputs = n_outputs,
        .session_ms = w->config->session_ms,
        .heartbeat_ms = w->config->heartbeat_ms,
        .receiver = worker_receiver(w),
        .verify_threads = w->config->proof_required ? w->options->verify_threads : 0,
        .mail = w->mail,
        .wake_fd = w->options->wake_fd,
    };
    if (rc == BATON_OK) {
        rc = engine_open(&spec, &w->engine, err);
    }
    for (size_t i = 0; i < n_targets; i++) {
        free(targets[i]);
    }
    free(targets);
    free(outputs);
    return rc;
}

static baton_code reach_log(struct worker *w, struct baton_error *err)
{
    baton_code rc = log_open(w->config, &w->log, err);
    if (rc == BATON_OK) {
        health_log(w->log);
    }
    return rc;
}

/* A step of the start that needs the log, until the log can be reached (reach.h). */
static baton_code patiently(struct worker *w,
                            baton_code (*step)(struct worker *, struct baton_error *),
                            struct baton_error *err)
{
    for (;;) {
        const baton_code rc = step(w, err);
        if (!reach_waits(w->config, w->options->drain, rc, err, "worker.waits", &w->limit)) {
            return rc;
        }
        health_ready("the log cannot be reached");
        health_expect(mono_now());
        const struct mono_ms next = reach_next();
        while (!w->stopping && reach_woken(w->options->wake_fd, next)) {
            stop_read_wake(w);
        }
        if (w->stopping) {
            return baton_fail(err, BATON_E_stopped, "told to stop while the log was not there");
        }
    }
}

/* Before the log is reached: who asks is told that it is not. */
static baton_code open_http(struct worker *w, struct baton_error *err)
{
    metrics_of(w->service->name.s, "worker", w->options->id != NULL ? w->options->id : "");
    return w->config->http_listen == NULL ? BATON_OK
                                          : http_listen(w->config->http_listen, &w->http, err);
}

baton_code worker_start(struct worker *w, struct baton_error *err)
{
    baton_code rc;

    if ((rc = config_service_get(w->config, w->options->service, &w->service, err)) != BATON_OK) {
        return rc;
    }
    w->boot = boot_id_new();
    name_topics(w);
    w->limit = (struct diag_limit)DIAG_LIMIT(60000);
    if (!lives_init(&w->lives)) {
        return baton_fail(err, BATON_E_no_memory, "out of memory");
    }
    w->old_handoff = (struct diag_limit)DIAG_LIMIT(600000);
    w->old_turn = (struct diag_limit)DIAG_LIMIT(3600000);
    if ((rc = load_keys(w, err)) != BATON_OK || (rc = load_envs(w, err)) != BATON_OK ||
        (rc = open_http(w, err)) != BATON_OK || (rc = patiently(w, reach_log, err)) != BATON_OK ||
        (rc = patiently(w, check_topics, err)) != BATON_OK ||
        (rc = patiently(w, delegate_open, err)) != BATON_OK ||
        (rc = choose_id(w, err)) != BATON_OK ||
        (rc = tracer_open(w->config, w->service->name.s, w->id.s, &w->tracer, err)) != BATON_OK ||
        (rc = open_pool(w, err)) != BATON_OK || (rc = open_leases(w, err)) != BATON_OK) {
        return rc;
    }
    w->signing = verify_new(w->signer != NULL ? w->options->verify_threads : 0);
    if (w->signing == NULL) {
        return baton_fail(err, BATON_E_no_memory, "a thread for signatures cannot be started");
    }
    if ((rc = patiently(w, join_group, err)) != BATON_OK) {
        return rc;
    }
    leases_watch(w->leases, w->engine);
    metrics_of(w->service->name.s, "worker", w->id.s);
    diag_line(DIAG_info, "worker.started", D_TEXT("service", w->service->name.s),
              D_TEXT("worker", w->id.s), D_TEXT("boot", w->boot.s),
              D_TEXT("log", log_driver(w->log)), D_INT("parallel", w->service->parallel),
              D_INT("pid", getpid()));
    return BATON_OK;
}
