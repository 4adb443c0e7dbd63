/*
 * The engine's life and the order of its events.
 * In: worker/worker.c  Out: common/engine/ownership.c, common/engine/intake.c,
 * common/engine/batch.c
 */
#include "common/engine/internal.h"

#include "common/base/check.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

static bool woken(const struct engine *engine)
{
    struct pollfd fd = {.fd = engine->spec.wake_fd, .events = POLLIN};
    return fd.fd >= 0 && poll(&fd, 1, 0) == 1;
}

/* Somebody wants to be heard, a stop perhaps: no waiting for a log that does not answer. */
static bool in_a_hurry(void *arg)
{
    const struct engine *engine = arg;
    return engine->stopping || woken(engine);
}

/* The state topic and the outputs, kept: the caller's names last for engine_open only. */
static baton_code keep_written(struct engine *engine, const struct engine_spec *spec,
                               struct baton_error *err)
{
    const size_t count = spec->n_outputs + 1;
    engine->written = calloc(count, sizeof(*engine->written));
    for (size_t i = 0; engine->written != NULL && i < count; i++) {
        const char *name = i == 0 ? spec->state : spec->outputs[i - 1];
        if ((engine->written[i] = strdup(name)) == NULL) {
            break;
        }
        engine->n_written++;
    }
    return engine->n_written == count ? BATON_OK
                                      : baton_fail(err, BATON_E_no_memory, "out of memory");
}

baton_code engine_open(const struct engine_spec *spec, struct engine **ret_engine,
                       struct baton_error *err)
{
    struct engine *engine = calloc(1, sizeof(*engine));
    if (engine == NULL) {
        return baton_fail(err, BATON_E_no_memory, "out of memory");
    }
    engine->spec = *spec;
    engine->event_input = -1;
    atomic_store(&engine->polled_at, mono_now().v);
    engine->limit = (struct diag_limit)DIAG_LIMIT(60000);
    baton_code rc = keep_written(engine, spec, err);
    engine->spec.outputs = NULL;
    engine->spec.n_outputs = 0;
    if (rc == BATON_OK && (engine->verify = verify_new(spec->verify_threads)) == NULL) {
        rc = baton_fail(err, BATON_E_no_memory, "a thread for verification cannot be started");
    }
    if (rc == BATON_OK) {
        const struct log_member_spec member = {
            .group = spec->group,
            .worker = spec->worker,
            .boot = spec->boot,
            .inputs = {spec->inputs[0].topic, spec->inputs[1].topic},
            .outputs = (const char *const *)engine->written,
            .n_outputs = engine->n_written,
            .session_ms = spec->session_ms,
            .heartbeat_ms = spec->heartbeat_ms,
            .hurry = in_a_hurry,
            .hurry_arg = engine,
        };
        rc = log_member_open(spec->log, &member, &engine->member, err);
    }
    if (rc != BATON_OK) {
        engine_close(engine, false, 0);
        return rc;
    }
    *ret_engine = engine;
    return BATON_OK;
}

void engine_close(struct engine *engine, bool leave_group, int64_t timeout_ms)
{
    if (engine == NULL) {
        return;
    }
    for (size_t p = 0; p < LOG_PARTITIONS_MAX; p++) {
        part_clear(&engine->parts[p]);
    }
    batch_clear(engine);
    if (engine->member != NULL) {
        log_member_close(engine->member, leave_group, timeout_ms);
    }
    log_batch_free(&engine->restore_batch);
    verify_free(engine->verify);
    free(engine->puts);
    free(engine->places);
    for (size_t i = 0; i < engine->n_written; i++) {
        free(engine->written[i]);
    }
    free(engine->written);
    free(engine);
}

void engine_pause(struct engine *engine, baton_code code, const struct baton_error *err,
                  const char *what)
{
    engine->pause_ms = engine->pause_ms == 0                  ? RETRY_FIRST_MS
                       : engine->pause_ms * 2 < RETRY_LAST_MS ? engine->pause_ms * 2
                                                              : RETRY_LAST_MS;
    engine->pause_until.v = mono_now().v + engine->pause_ms;
    engine->work = true;
    diag_limited(&engine->limit, DIAG_warn, "engine.waits", D_TEXT("for", what),
                 D_CODE("code", code), D_TEXT("error", err != NULL ? err->text : ""),
                 D_INT("ms", engine->pause_ms));
}

/* An error that passes by itself: wait and try again; others are the caller's. */
static baton_code forgive(struct engine *engine, baton_code rc, const struct baton_error *err,
                          const char *what)
{
    if (rc != BATON_OK && baton_code_class(rc) == BATON_CLASS_retry) {
        engine_pause(engine, rc, err, what);
        return BATON_OK;
    }
    return rc;
}

/* A transaction right behind the last one would cost more than this wait, and what comes meanwhile
 * goes with it. Executors of the last one are started by now. */
static void gather(struct engine *engine)
{
    const int64_t left_ns = engine->gap_until_ns - mono_ns();
    if (!engine->gathered && left_ns > 0) {
        (void)poll(NULL, 0, (int)((left_ns + 999999) / 1000000));
    }
    engine->gathered = true;
}

/* Is there something for a round? Fetches ahead as much as the caller could take last time. */
static baton_code look_for_work(struct engine *engine, struct mono_ms until, bool *ret_work,
                                struct baton_error *err)
{
    bool control = false;
    bool records = false;
    baton_code rc = intake_fetch(engine, ENGINE_CONTROL_INPUT, FETCH_RECORDS_MAX, &control, err);
    const bool later =
        engine->work && mono_ns() < engine->gap_until_ns; /* when they are gathered */
    if (rc == BATON_OK && !engine->stopping && engine->capacity > 0 && !later) {
        rc = intake_fetch(engine, ENGINE_INPUT, engine->capacity, &records, err);
    }
    struct mono_ms now = mono_now();
    bool eof = engine->eof_since.v != 0 && now.v - engine->eof_since.v >= EOF_IDLE_MS;
    bool given = (control || records) && now.v >= engine->patience.v;
    *ret_work = engine->work || given || eof || now.v >= until.v || batch_target_returned(engine);
    return rc;
}

static void begin_round(struct engine *engine, struct engine_event *ret_event)
{
    for (size_t p = 0; p < LOG_PARTITIONS_MAX; p++) {
        engine->parts[p].feeds[0].postponed = false;
        engine->parts[p].feeds[1].postponed = false;
    }
    engine->work = false;
    engine->postponed = false;
    engine->given = 0;
    engine->gathered = false;
    engine->phase = PHASE_control;
    ret_event->kind = ENGINE_tick;
}

static baton_code next_in_round(struct engine *engine, struct engine_event *ret_event,
                                struct baton_error *err)
{
    bool any = false;
    intake_settle_event(engine);
    if (engine->phase == PHASE_control) {
        gather(engine);
        if (intake_give(engine, ENGINE_CONTROL_INPUT, ret_event)) {
            return BATON_OK;
        }
        engine->phase = PHASE_record;
    }
    if (engine->phase == PHASE_record) {
        if (!engine->stopping && engine->given < engine->capacity) {
            if (engine->given == 0) {
                baton_code rc = intake_fetch(engine, ENGINE_INPUT, engine->capacity, &any, err);
                rc = forgive(engine, rc, err, "reading");
                if (rc != BATON_OK) {
                    return rc;
                }
            }
            if (intake_give(engine, ENGINE_INPUT, ret_event)) {
                engine->given++;
                return BATON_OK;
            }
        }
        if (engine->given > 0 && !engine->stopping && !engine->postponed) {
            engine->work = true; /* there may be more: look again without waiting */
        }
        if (engine->postponed && !batch_any(engine)) {
            engine->patience.v = mono_now().v + PATIENCE_MS; /* the caller waits for something */
        }
        engine->next_part = (engine->next_part + 1) % engine->spec.receiver.partitions;
    }
    engine->phase = PHASE_between;
    ret_event->kind = ENGINE_round;
    return BATON_OK;
}

/* Sleeps until the member, the mail or a time wants something. */
static void wait_for_something(struct engine *engine, struct mono_ms until)
{
    struct pollfd fds[3] = {
        {.fd = log_member_fd(engine->member), .events = POLLIN},
        {.fd = mailbox_fd(engine->spec.mail), .events = POLLIN},
        {.fd = engine->spec.wake_fd, .events = POLLIN},
    };
    int64_t now = mono_now().v;
    int64_t ms = until.v - now;
    int64_t heartbeat = engine->spec.heartbeat_ms;
    if (engine->pause_until.v > now) {
        /* Only the membership is kept alive, and mail is taken. */
        ms = engine->pause_until.v - now;
        fds[0].fd = -1;
    }
    if (engine->patience.v > now && engine->patience.v - now < ms) {
        ms = engine->patience.v - now;
    }
    if (engine->eof_since.v != 0 && engine->eof_since.v + EOF_IDLE_MS - now < ms) {
        ms = engine->eof_since.v + EOF_IDLE_MS - now;
    }
    if (ms > heartbeat) {
        ms = heartbeat;
    }
    if (ms > 0) {
        (void)poll(fds, COUNT_OF(fds), (int)ms);
    }
}

static baton_code next_between(struct engine *engine, struct engine_event *ret_event,
                               bool *ret_given, struct mono_ms until, struct baton_error *err)
{
    bool work = false;
    baton_code rc = ownership_poll(engine, ret_event, ret_given, err);
    rc = forgive(engine, rc, err, "membership");
    if (rc != BATON_OK || *ret_given) {
        return rc;
    }
    void *mail = mailbox_take(engine->spec.mail);
    if (mail != NULL) {
        engine->work = true;
        ret_event->kind = ENGINE_mail;
        ret_event->mail = mail;
        *ret_given = true;
        return BATON_OK;
    }
    if (woken(engine)) {
        ret_event->kind = ENGINE_wake;
        *ret_given = true;
        return BATON_OK;
    }
    if (engine->pause_until.v > mono_now().v) {
        return BATON_OK;
    }
    rc = ownership_restore(engine, ret_event, ret_given, err);
    rc =
        forgive(engine, rc == BATON_E_timed_out ? BATON_E_service_unavailable : rc, err, "restore");
    if (rc != BATON_OK || *ret_given || engine->pause_until.v > mono_now().v) {
        return rc;
    }
    for (size_t p = 0; p < LOG_PARTITIONS_MAX; p++) {
        if (engine->parts[p].state != PART_none && engine->parts[p].state != PART_owned) {
            return BATON_OK; /* rule 10: nothing is decided while something is being restored */
        }
    }
    rc = forgive(engine, look_for_work(engine, until, &work, err), err, "reading");
    if (rc == BATON_OK && work && engine->pause_until.v <= mono_now().v) {
        begin_round(engine, ret_event);
        *ret_given = true;
    }
    return rc;
}

static bool restoring(const struct engine *engine)
{
    for (size_t p = 0; p < LOG_PARTITIONS_MAX; p++) {
        if (engine->parts[p].state != PART_none && engine->parts[p].state != PART_owned) {
            return true;
        }
    }
    return false;
}

baton_code engine_next(struct engine *engine, struct mono_ms until, struct engine_event *ret_event,
                       struct baton_error *err)
{
    *ret_event = (struct engine_event){.kind = ENGINE_none};
    if (engine->phase != PHASE_between) {
        return next_in_round(engine, ret_event, err);
    }
    for (;;) {
        bool given = false;
        baton_code rc = next_between(engine, ret_event, &given, until, err);
        if (rc != BATON_OK || given) {
            return rc;
        }
        if (mono_now().v >= until.v) {
            return BATON_OK;
        }
        if (engine->pause_until.v > mono_now().v || !restoring(engine)) {
            wait_for_something(engine, until);
        }
    }
}

/* ---- what the caller asks ---- */

void engine_capacity(struct engine *engine, size_t records)
{
    engine->capacity = records;
}

void engine_hold(struct engine *engine, int32_t partition, bool hold)
{
    BATON_PRE(partition >= 0 && partition < LOG_PARTITIONS_MAX);
    engine->parts[partition].held = hold;
}

void engine_heard(struct engine *engine, int32_t partition)
{
    BATON_PRE(partition >= 0 && partition < LOG_PARTITIONS_MAX);
    engine->parts[partition].heard = true;
}

void engine_again(struct engine *engine)
{
    engine->work = true;
}

void engine_restore_again(struct engine *engine, baton_code code, const struct baton_error *err)
{
    BATON_PRE(engine->phase == PHASE_between);
    batch_clear(engine);
    intake_rewind(engine);
    ownership_start_over(engine);
    engine_pause(engine, code, err, "store");
}

void engine_ignore_wake(struct engine *engine)
{
    engine->spec.wake_fd = -1;
}

void engine_stop_taking(struct engine *engine)
{
    engine->stopping = true;
}

bool engine_owns(const struct engine *engine, int32_t partition)
{
    return partition >= 0 && partition < LOG_PARTITIONS_MAX &&
           engine->parts[partition].state == PART_owned;
}

int64_t engine_position(const struct engine *engine, int input, int32_t partition)
{
    return engine->parts[partition].feeds[input].taken;
}

struct engine_waiting engine_waiting(const struct engine *engine, int input, int32_t partition)
{
    const struct feed *feed = &engine->parts[partition].feeds[input];
    struct engine_waiting waiting = {0};
    if (engine->parts[partition].state != PART_owned) {
        return waiting;
    }
    const int64_t end = log_member_end(engine->member, input, partition);
    waiting.records = end > feed->taken ? end - feed->taken : 0;
    if (feed->at < feed->batch.count) {
        waiting.since = feed->batch.records[feed->at].at;
    }
    return waiting;
}

bool engine_drained(const struct engine *engine)
{
    for (size_t p = 0; p < LOG_PARTITIONS_MAX; p++) {
        const struct part *part = &engine->parts[p];
        if (part->state == PART_none) {
            continue;
        }
        for (int input = 0; input < LOG_INPUTS; input++) {
            const struct feed *feed = &part->feeds[input];
            if (part->state != PART_owned || feed->at < feed->batch.count || !feed->at_end) {
                return false;
            }
        }
    }
    return engine->joined;
}

struct mono_ms engine_polled(const struct engine *engine)
{
    return (struct mono_ms){atomic_load(&engine->polled_at)};
}

size_t engine_partitions(const struct engine *engine, int32_t *ret_partitions)
{
    size_t n = 0;
    for (int32_t p = 0; p < LOG_PARTITIONS_MAX; p++) {
        if (engine->parts[p].state == PART_owned) {
            ret_partitions[n++] = p;
        }
    }
    return n;
}

/*
 * Trims what was taken, where the input is trimmed, unless the topic is another one than it was taken
 * from: deleted and made again by somebody. Then nothing in it was taken yet; it shows by its ends, which
 * only rise.
 */
static baton_code trim(struct engine *engine, int32_t number, int input, struct baton_error *err)
{
    struct feed *feed = &engine->parts[number].feeds[input];
    const char *topic = engine->spec.inputs[input].topic;
    const bool trimmed = engine->spec.inputs[input].trimmed;
    int64_t low = 0;
    int64_t high = 0;
    baton_code rc = log_watermarks(engine->spec.log, topic, number, &low, &high, err);
    if (rc != BATON_OK) {
        return rc;
    }
    if (low >= feed->low && high >= feed->committed) {
        if (trimmed && feed->committed > low) {
            rc = log_trim(engine->spec.log, topic, number, feed->committed, err);
        }
        feed->low = rc == BATON_OK && trimmed ? feed->committed : low;
        return rc;
    }
    if (engine->parts[number].in_batch) {
        return BATON_OK; /* the next time */
    }
    diag_line(DIAG_warn, "engine.topic_begins_anew", D_TEXT("topic", topic),
              D_INT("partition", number), D_INT("offset", feed->committed), D_INT("end", high));
    return intake_begin_anew(engine, number, input, low, err);
}

void engine_trim(struct engine *engine)
{
    struct baton_error err;
    for (int32_t p = 0; p < LOG_PARTITIONS_MAX; p++) {
        for (int input = 0; input < LOG_INPUTS && engine->parts[p].state == PART_owned; input++) {
            baton_code rc = trim(engine, p, input, &err);
            if (rc != BATON_OK) {
                diag_limited(&engine->limit, DIAG_warn, "engine.trim_failed",
                             D_TEXT("topic", engine->spec.inputs[input].topic),
                             D_INT("partition", p), D_CODE("code", rc), D_TEXT("error", err.text));
                return;
            }
        }
    }
}
