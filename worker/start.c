/*
 * A worker's start, in the order of protocol rule 3: lock the store, kill what an old boot left,
 * join the group (which settles what the old boot left open).
 *
 * In: worker/worker.c  Out: worker/trust.c, worker/profiles.c, common/store/store.h,
 * worker/executor/executor.h, common/engine/engine.h
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
#include "common/process/scratch.h"
#include "common/sqlite/place.h"
#include "common/store/store.h"
#include "common/trace/tracer.h"
#include "topics/catalogue.h"
#include "topics/progress.h"
#include "worker/delegate.h"
#include "worker/executor/executor.h"
#include "worker/internal.h"
#include "worker/lease/lease.h"
#include "worker/live.h"
#include "worker/profiles.h"
#include "worker/stop.h"
#include "worker/trust.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OWN_IDS_MAX 64 /* <host>-1 .. <host>-64 */

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
    char *scratch = apart ? scratch_apart(w->config->state_dir) : NULL;
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
    if ((rc = worker_load_keys(w, err)) != BATON_OK || (rc = profiles_load(w, err)) != BATON_OK ||
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
