/*
 * The coordinator's loop: one event of the engine after the other. What a batch decides becomes what
 * is known only once it is committed.
 *
 * In: producer/cmd_coordinator.c  Out: start.c, reload.c, changes.c, requests.c, outcomes.c, advance.c, hooks.c
 */
#include "producer/coordinator/internal.h"

#include "common/base/check.h"
#include "common/http/health.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOK_EVERY_MS 1000
#define TRIM_EVERY_MS 60000 /* a minute; a second while more may be forgotten */
#define CAPACITY 512        /* requests a round */
#define CLOSE_TIMEOUT_MS 5000

void coordinator_read_wake(struct coordinator *c)
{
    char bytes[64];
    const ssize_t n = read(c->options->wake_fd, bytes, sizeof(bytes));
    for (ssize_t i = 0; i < n; i++) {
        c->stopping = c->stopping || bytes[i] == WAKE_STOP;
        if (bytes[i] == WAKE_RELOAD) {
            (void)coordinator_reload_trust(c);
            coordinator_reload(c);
        }
    }
    c->stopping = c->stopping || n == 0; /* whoever could have told us is gone */
    if (c->engine == NULL) {
        return; /* it is still starting */
    }
    if (n == 0) {
        engine_ignore_wake(c->engine);
    }
    if (c->stopping) {
        engine_stop_taking(c->engine);
    }
}

/* The run log as it is read again: the newest record of each run stays. */
static baton_code fold(struct coordinator *c, const struct engine_event *event,
                       struct baton_error *err)
{
    for (size_t i = 0; i < event->n_records; i++) {
        const struct log_record *record = &event->records[i];
        struct run *run = NULL;
        char key[ID_MAX + 1];
        if (record->key_len == 0 || record->key_len > ID_MAX ||
            ((const char *)record->key)[0] == '~') {
            continue; /* an owner's note */
        }
        memcpy(key, record->key, record->key_len);
        key[record->key_len] = '\0';
        if (record->value == NULL) {
            image_forget(&c->image, key);
            continue;
        }
        if (run_record_ended(record->value, record->value_len)) { /* read when it is asked for */
            if (!image_place(&c->image, key, event->partition, record->offset, record->at)) {
                return baton_fail(err, BATON_E_no_memory, "out of memory for the runs");
            }
            continue;
        }
        baton_code rc = run_parse_shelved(record->value, record->value_len, &c->shelf, &run, err);
        if (rc == BATON_E_no_memory) {
            return rc;
        }
        if (rc != BATON_OK) { /* nobody but a coordinator may write there */
            diag_line(DIAG_error, "run.unreadable", D_TEXT("run", key),
                      D_INT("partition", event->partition), D_INT("offset", record->offset),
                      D_TEXT("error", err->text));
            if (!image_place(&c->image, key, event->partition, record->offset,
                             (struct wall_ms){0})) {
                return baton_fail(err, BATON_E_no_memory, "out of memory for the runs");
            }
            continue;
        }
        if (!image_fold(&c->image, run, event->partition, record->offset, record->at)) {
            run_free(run);
            return baton_fail(err, BATON_E_no_memory, "out of memory for the runs");
        }
    }
    return BATON_OK;
}

static void moved(struct coordinator *c, const struct engine_event *event)
{
    changes_drop(c);
    for (size_t i = 0; i < event->n_moved; i++) {
        image_drop_partition(&c->image, event->moved[i]);
    }
}

static void tick(struct coordinator *c)
{
    const struct mono_ms now = mono_now();
    const bool look = now.v >= c->look_at.v;
    if (look) {
        c->look_at.v = now.v + LOOK_EVERY_MS;
    }
    if (send_can_tell(c)) {
        hooks_look(c);
    }
    if (look) {
        (void)coordinator_reload_trust(c);
        if (send_can_tell(c)) {
            advance_look(c);
        }
    }
    if (now.v >= c->trim_at.v) {
        c->trim_at.v = now.v + (runs_forget(c) ? TRIM_EVERY_MS : 1000);
    }
    engine_capacity(c->engine, c->stopping ? 0 : CAPACITY);
}

static baton_code commit(struct coordinator *c, struct baton_error *err)
{
    enum engine_result result = ENGINE_DROPPED;
    int64_t culprit = -1;
    changes_put(c);
    baton_code rc = engine_commit(c->engine, &result, &culprit, err);
    if (rc != BATON_OK || result != ENGINE_COMMITTED) {
        changes_drop(c);
        return rc;
    }
    if (c->n_changes > 0) {
        engine_again(c->engine);
    }
    changes_committed(c);
    return BATON_OK;
}

static baton_code handle(struct coordinator *c, const struct engine_event *event,
                         struct baton_error *err)
{
    switch (event->kind) {
    case ENGINE_none:
        break;
    case ENGINE_mail:
        hooks_heard(c, event->mail);
        break;
    case ENGINE_wake:
        coordinator_read_wake(c);
        break;
    case ENGINE_restoring:
        changes_drop(c);
        image_drop_partition(&c->image, event->partition);
        engine_restore_from(c->engine, LOG_OFFSET_NONE);
        break;
    case ENGINE_fold:
        return fold(c, event, err);
    case ENGINE_assigned:
        diag_line(DIAG_info, "coordinator.restored", D_INT("partition", event->partition),
                  D_INT("runs", (int64_t)c->image.count), D_INT("open", (int64_t)c->image.n_open));
        c->trim_at.v = mono_now().v + 10000;
        break;
    case ENGINE_moved:
        moved(c, event);
        break;
    case ENGINE_tick:
        tick(c);
        break;
    case ENGINE_control:
        outcomes_take(c, event);
        break;
    case ENGINE_record:
        requests_take(c, event);
        break;
    case ENGINE_round:
        return commit(c, err);
    }
    return BATON_OK;
}

static baton_code loop(struct coordinator *c, struct baton_error *err)
{
    for (;;) {
        struct engine_event event;
        health_expect(c->look_at);
        baton_code rc = engine_next(c->engine, c->look_at, &event, err);
        health_expect(mono_now());
        if (rc == BATON_OK) {
            if (!c->ready_told && event.kind == ENGINE_tick) {
                c->ready_told = true;
                diag_line(DIAG_info, "coordinator.ready", D_TEXT("coordinator", c->id.s));
            }
            rc = handle(c, &event, err);
        }
        if (rc != BATON_OK) {
            return rc;
        }
        const bool between =
            event.kind == ENGINE_round || event.kind == ENGINE_none || event.kind == ENGINE_wake;
        if (between) {
            coordinator_gauges(c);
        }
        if (between && c->stopping) {
            return BATON_OK;
        }
        if (event.kind == ENGINE_round && c->options->drain && engine_drained(c->engine) &&
            c->image.n_open == 0) {
            return BATON_OK;
        }
    }
}

static void done(struct coordinator *c, bool leave)
{
    http_close(c->http);
    health_log(NULL);
    changes_drop(c);
    free(c->changes);
    tracer_close(c->tracer, TRACER_CLOSE_MS);
    hooks_done(c);
    if (c->engine != NULL) {
        engine_close(c->engine, leave, CLOSE_TIMEOUT_MS);
    }
    image_done(&c->image);
    workflow_shelf_done(&c->shelf);
    mailbox_free(c->mail);
    log_close(c->log);
    coordinator_reloaded_free(c->reloaded);
    signer_free(c->signer);
    trust_free(c->trust);
    free(c);
}

baton_code coordinator_run(const struct coordinator_options *options, struct baton_error *err)
{
    struct coordinator *c = calloc(1, sizeof(*c));
    struct baton_error local;
    if (c == NULL) {
        return baton_fail(err, BATON_E_no_memory, "out of memory");
    }
    err = err != NULL ? err : &local;
    c->config = options->config;
    c->options = options;
    baton_code rc = coordinator_start(c, err);
    if (rc == BATON_E_stopped && c->stopping) {
        rc = BATON_OK; /* before it had begun */
    } else if (rc == BATON_OK) {
        rc = loop(c, err);
        diag_line(rc == BATON_OK ? DIAG_info : DIAG_error, "coordinator.stopped",
                  D_TEXT("coordinator", c->id.s), D_CODE("code", rc),
                  D_TEXT("error", rc == BATON_OK ? NULL : err->text));
    }
    done(c, rc != BATON_E_twin);
    return rc;
}
