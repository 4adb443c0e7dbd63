/*
 * Engines on a local log in a folder of its own, and a spy between them and the log: it notes the
 * calls, and answers commits as a test says. For the tests of common/engine.
 */
#ifndef BATON_TESTS_UNIT_ENGINE_RIG_H
#define BATON_TESTS_UNIT_ENGINE_RIG_H

#include "common/base/config.h"
#include "common/base/fault.h"
#include "common/engine/internal.h"
#include "common/log/driver.h"
#include "common/record/turn_record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PARTS 2
#define GROUP "workers"
#define WAIT_MS 10000

#define OK(call)                                                                                   \
    do {                                                                                           \
        struct baton_error ok_err = {0};                                                           \
        struct baton_error *err = &ok_err;                                                         \
        baton_code ok_rc = (call);                                                                 \
        if (ok_rc != BATON_OK) {                                                                   \
            fail_msg("line %d: %s: %s: %s", __LINE__, #call, baton_code_word(ok_rc), ok_err.text); \
        }                                                                                          \
    } while (0)

/* ---- the spy ---- */

/*
 * One letter for each call that the protocol rules order: o committed offsets, w watermarks of the
 * state topic, r reader of the state topic, c commit, n renew, s seek.
 */
static struct {
    struct log_driver_ops ops;
    const struct log_driver_ops *real;
    const char *state;
    char calls[4096];
    struct log_offset offsets[LOG_PARTITIONS_MAX * LOG_INPUTS]; /* of the newest commit */
    size_t n_offsets;
    int64_t generation;
    struct log_record *records; /* of the newest commit: borrowed, to be compared only */
    size_t n_records;
    int64_t noted; /* 0: nothing */
    int refuse;    /* so many commits are not sent and answered with verdict */
    enum log_verdict verdict;
    int let_through; /* so many commits are sent; after them */
    int failing;     /* so many do not come to their turn: an error, and no verdict */
    int unavailable; /* so many calls for offsets fail */
} spy;

static void spy_note(char letter)
{
    size_t n = strlen(spy.calls);
    if (n + 1 < sizeof(spy.calls)) {
        spy.calls[n] = letter;
        spy.calls[n + 1] = '\0';
    }
}

static baton_code spy_watermarks(struct log *log, const char *topic, int32_t partition,
                                 int64_t *ret_low, int64_t *ret_high, struct baton_error *err)
{
    if (strcmp(topic, spy.state) == 0) {
        spy_note('w');
    }
    return spy.real->watermarks(log, topic, partition, ret_low, ret_high, err);
}

static baton_code spy_reader_open(struct log *log, const char *topic, int32_t partition,
                                  int64_t from, enum log_isolation isolation,
                                  struct log_reader **ret_reader, struct baton_error *err)
{
    if (strcmp(topic, spy.state) == 0) {
        assert_int_equal(isolation, LOG_READ_committed);
        spy_note('r');
    }
    baton_code rc = spy.real->reader_open(log, topic, partition, from, isolation, ret_reader, err);
    if (rc == BATON_OK && strcmp(topic, spy.state) == 0 && partition == 0) {
        (*ret_reader)->ops = &spy.ops;
    }
    return rc;
}

/* The log has dropped something before spy.noted of partition 0. */
static baton_code spy_reader_next(struct log_reader *reader, size_t max, int64_t timeout_ms,
                                  struct log_batch *batch, struct baton_error *err)
{
    baton_code rc = spy.real->reader_next(reader, max, timeout_ms, batch, err);
    batch->noted = batch->next_offset >= spy.noted ? spy.noted : 0;
    return rc;
}

static baton_code spy_committed(struct log_member *member, const int32_t *partitions, size_t count,
                                int64_t timeout_ms, int64_t (*ret_offsets)[LOG_PARTITIONS_MAX],
                                struct baton_error *err)
{
    spy_note('o');
    if (spy.unavailable > 0) {
        spy.unavailable--;
        return baton_fail(err, BATON_E_service_unavailable, "the spy says no");
    }
    return spy.real->member_committed(member, partitions, count, timeout_ms, ret_offsets, err);
}

static baton_code spy_seek(struct log_member *member, int input, int32_t partition, int64_t offset,
                           struct baton_error *err)
{
    spy_note('s');
    return spy.real->member_seek(member, input, partition, offset, err);
}

static baton_code spy_renew(struct log_member *member, struct baton_error *err)
{
    spy_note('n');
    return spy.real->member_renew(member, err);
}

static baton_code spy_commit(struct log_member *member, const struct log_txn *txn,
                             int64_t timeout_ms, struct log_commit_result *ret_result,
                             struct baton_error *err)
{
    spy_note('c');
    memcpy(spy.offsets, txn->offsets, txn->n_offsets * sizeof(spy.offsets[0]));
    spy.n_offsets = txn->n_offsets;
    spy.records = txn->records;
    spy.n_records = txn->n_records;
    spy.generation = txn->generation;
    if (spy.refuse > 0) {
        spy.refuse--;
        *ret_result = (struct log_commit_result){spy.verdict, BATON_E_service_unavailable, -1};
        return BATON_OK;
    }
    if (spy.let_through > 0) {
        spy.let_through--;
    } else if (spy.failing > 0) {
        spy.failing--;
        return baton_fail(err, BATON_E_timed_out, "the spy has the log");
    }
    return spy.real->commit(member, txn, timeout_ms, ret_result, err);
}

static baton_code spy_member_open(struct log *log, const struct log_member_spec *spec,
                                  struct log_member **ret_member, struct baton_error *err)
{
    baton_code rc = spy.real->member_open(log, spec, ret_member, err);
    if (rc == BATON_OK) {
        (*ret_member)->ops = &spy.ops;
    }
    return rc;
}

/* ---- the rig ---- */

struct rig {
    char dir[64];
    char path[80];
    struct config config;
    struct log *log;
    struct log_publisher *publisher;
};

static int rig_setup(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    assert_non_null(rig);
    snprintf(rig->dir, sizeof(rig->dir), "/tmp/baton-engine-XXXXXX");
    assert_non_null(mkdtemp(rig->dir));
    snprintf(rig->path, sizeof(rig->path), "%s/log.db", rig->dir);
    rig->config.log = LOG_KIND_local;
    rig->config.local_path = rig->path;
    OK(log_create(&rig->config, err));
    OK(log_open(&rig->config, &rig->log, err));
    const struct {
        const char *name;
        enum log_cleanup cleanup;
    } topics[] = {{"in", LOG_CLEANUP_delete},
                  {"ctl", LOG_CLEANUP_delete},
                  {"state", LOG_CLEANUP_compact},
                  {"out", LOG_CLEANUP_delete}};
    for (size_t i = 0; i < 4; i++) {
        const struct log_topic topic = {.name = topics[i].name,
                                        .partitions = PARTS,
                                        .cleanup = topics[i].cleanup,
                                        .retention_ms = -1,
                                        .tombstone_ms = 1000,
                                        .record_bytes_max = 100000};
        OK(log_topics_create(rig->log, &topic, 1, err));
    }
    OK(log_publisher_open(rig->log, &rig->publisher, err));
    memset(&spy, 0, sizeof(spy));
    spy.real = rig->log->ops;
    spy.ops = *rig->log->ops;
    spy.state = "state";
    spy.ops.watermarks = spy_watermarks;
    spy.ops.reader_open = spy_reader_open;
    spy.ops.reader_next = spy_reader_next;
    spy.ops.member_open = spy_member_open;
    spy.ops.member_committed = spy_committed;
    spy.ops.member_seek = spy_seek;
    spy.ops.member_renew = spy_renew;
    spy.ops.commit = spy_commit;
    rig->log->ops = &spy.ops;
    *state = rig;
    return 0;
}

static int rig_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int rig_teardown(void **state)
{
    struct rig *rig = *state;
    log_publisher_close(rig->publisher);
    rig->log->ops = spy.real;
    log_close(rig->log);
    nftw(rig->dir, rig_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(rig);
    return 0;
}

#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

__attribute__((unused)) static void rig_publish(struct rig *rig, const char *topic,
                                                int32_t partition, const char *key,
                                                const char *value)
{
    struct log_record record = {.topic = topic,
                                .partition = partition,
                                .key = key,
                                .key_len = strlen(key),
                                .value = value,
                                .value_len = value != NULL ? strlen(value) : 0};
    OK(log_publish(rig->publisher, &record, 1, 5000, err));
}

/* Committed offset of the group, as anybody sees it. */
__attribute__((unused)) static int64_t rig_offset(struct rig *rig, const char *topic,
                                                  int32_t partition)
{
    int64_t offset = -7;
    OK(log_group_offset(rig->log, GROUP, topic, partition, &offset, err));
    return offset;
}

/* Keys of a partition's records, in order, with blanks; owner's notes as '~'. */
__attribute__((unused)) static const char *rig_keys(struct rig *rig, const char *topic,
                                                    int32_t partition)
{
    static char keys[4096];
    struct log_reader *reader = NULL;
    struct log_batch batch = {0};
    keys[0] = '\0';
    OK(spy.real->reader_open(rig->log, topic, partition, 0, LOG_READ_committed, &reader, err));
    OK(log_reader_next(reader, 10000, 0, &batch, err));
    for (size_t i = 0; i < batch.count; i++) {
        const struct log_record *record = &batch.records[i];
        bool note = record->key_len > 0 && *(const char *)record->key == '~';
        size_t n = strlen(keys);
        snprintf(keys + n, sizeof(keys) - n, "%s%.*s", n > 0 ? " " : "",
                 note ? 1 : (int)record->key_len, (const char *)record->key);
    }
    log_reader_close(reader);
    log_batch_free(&batch);
    return keys;
}

/* ---- an engine that is driven, with a caller that does nothing wrong by itself ---- */

struct driven {
    struct rig *rig;
    struct engine *engine;
    struct mailbox *mail;
    /*
     * What came, one letter each: R restoring, F fold, A assigned, M moved, L lost, T tick, C
     * control, r record, E round (nothing taken or put), + committed, - dropped, ! start over, m
     * mail, w wake. Empty rounds leave nothing.
     */
    char trace[8192];
    char seen[8192];   /* keys of the records that were given, with blanks */
    char folded[4096]; /* keys that were to be folded; notes as '~' */
    size_t capacity;
    int64_t checkpoint[PARTS]; /* answer to restoring; LOG_OFFSET_NONE */
    int64_t low[PARTS], high[PARTS], next[PARTS];
    bool leave;            /* nothing is taken */
    const char *leave_key; /* this one is not taken */
    bool write;            /* each record that is taken writes its key to the state topic */
    const char *also_to;   /* and to this topic, when it is not known to fail */
    int64_t culprit;
    size_t puts; /* of the round */
    struct baton_error err;
};

static struct engine_spec driven_spec(struct rig *rig, const char *worker, struct mailbox *mail)
{
    static const char *const outputs[] = {"out"};
    return (struct engine_spec){
        .log = rig->log,
        .group = GROUP,
        .worker = worker,
        .boot = boot_id_new(),
        .inputs = {{"in", ENGINE_HANDOFFS, true}, {"ctl", ENGINE_CONTROLS, true}},
        .state = "state",
        .outputs = outputs,
        .n_outputs = 1,
        .session_ms = 3000,
        .heartbeat_ms = 50,
        .receiver = {NULL, "prod", false, "lint", PARTS},
        .mail = mail,
        .wake_fd = -1};
}

static void driven_init(struct driven *d, struct rig *rig)
{
    memset(d, 0, sizeof(*d));
    d->rig = rig;
    d->capacity = 100;
    for (int p = 0; p < PARTS; p++) {
        d->checkpoint[p] = LOG_OFFSET_NONE;
    }
    d->mail = mailbox_new(16);
    assert_non_null(d->mail);
}

__attribute__((unused)) static void driven_open(struct driven *d, struct rig *rig,
                                                const char *worker)
{
    driven_init(d, rig);
    const struct engine_spec spec = driven_spec(rig, worker, d->mail);
    OK(engine_open(&spec, &d->engine, err));
}

__attribute__((unused)) static void driven_close(struct driven *d)
{
    engine_close(d->engine, true, 1000);
    mailbox_free(d->mail);
}

static void add_text_to(char *list, size_t size, const char *text, size_t len)
{
    size_t n = strlen(list);
    snprintf(list + n, size - n, "%s%.*s", n > 0 ? " " : "", (int)len, text);
}

static void trace_add(struct driven *d, char letter)
{
    size_t n = strlen(d->trace);
    if (letter == 'E' && n > 0 && d->trace[n - 1] == 'T') {
        d->trace[n - 1] = '\0'; /* nothing came of it */
        return;
    }
    assert_true(n + 1 < sizeof(d->trace));
    d->trace[n] = letter;
    d->trace[n + 1] = '\0';
}

static void put_state(struct driven *d, int32_t partition, const char *topic, const void *key,
                      size_t key_len)
{
    const struct log_record record = {
        .topic = topic,
        .partition = strcmp(topic, "state") == 0 ? partition : LOG_PARTITION_BY_KEY,
        .key = key,
        .key_len = key_len,
        .value = "v",
        .value_len = 1};
    (void)engine_put(d->engine, &record);
    d->puts++;
}

static void on_record(struct driven *d, const struct engine_event *event)
{
    const struct log_record *record = event->record;
    baton_code code;
    trace_add(d, event->kind == ENGINE_control ? 'C' : 'r');
    add_text_to(d->seen, sizeof(d->seen), record->key, record->key_len);
    assert_true(engine_owns(d->engine, event->partition));
    if (d->leave || (d->leave_key != NULL && strlen(d->leave_key) == record->key_len &&
                     memcmp(d->leave_key, record->key, record->key_len) == 0)) {
        return;
    }
    if (d->write) {
        put_state(d, event->partition, "state", record->key, record->key_len);
    }
    if (d->also_to != NULL && !engine_unavailable(d->engine, d->also_to, &code)) {
        put_state(d, event->partition, d->also_to, record->key, record->key_len);
    }
    engine_take(d->engine);
}

static void on_fold(struct driven *d, const struct engine_event *event)
{
    trace_add(d, 'F');
    for (size_t i = 0; i < event->n_records; i++) {
        bool note = *(const char *)event->records[i].key == '~';
        add_text_to(d->folded, sizeof(d->folded), event->records[i].key,
                    note ? 1 : event->records[i].key_len);
    }
    d->next[event->partition] = event->next;
}

static void on_round(struct driven *d)
{
    enum engine_result result = ENGINE_START_OVER;
    size_t before = strlen(spy.calls);
    baton_code rc = engine_commit(d->engine, &result, &d->culprit, &d->err);
    if (rc != BATON_OK) {
        fail_msg("commit: %s: %s", baton_code_word(rc), d->err.text);
    }
    bool sent = strlen(spy.calls) > before;
    trace_add(d, !sent                        ? 'E'
                 : result == ENGINE_COMMITTED ? '+'
                 : result == ENGINE_DROPPED   ? '-'
                                              : '!');
    d->puts = 0;
}

/* One event, answered as a caller must. */
static enum engine_event_kind driven_step(struct driven *d, int64_t wait_ms)
{
    struct engine_event event;
    OK(engine_next(d->engine, (struct mono_ms){mono_now().v + wait_ms}, &event, err));
    switch (event.kind) {
    case ENGINE_none:
        break;
    case ENGINE_mail:
        trace_add(d, 'm');
        break;
    case ENGINE_wake:
        trace_add(d, 'w');
        break;
    case ENGINE_restoring:
        trace_add(d, 'R');
        d->low[event.partition] = event.low;
        d->high[event.partition] = event.high;
        engine_restore_from(d->engine, d->checkpoint[event.partition]);
        break;
    case ENGINE_fold:
        on_fold(d, &event);
        break;
    case ENGINE_assigned:
        trace_add(d, 'A');
        break;
    case ENGINE_moved:
        trace_add(d, event.lost ? 'L' : 'M');
        break;
    case ENGINE_tick:
        trace_add(d, 'T');
        engine_capacity(d->engine, d->capacity);
        break;
    case ENGINE_control:
    case ENGINE_record:
        on_record(d, &event);
        break;
    case ENGINE_round:
        on_round(d);
        break;
    }
    return event.kind;
}

/* Until so many of a letter are in the trace. */
__attribute__((unused)) static void driven_until(struct driven *d, char letter, size_t count)
{
    for (int64_t end = mono_now().v + WAIT_MS;;) {
        size_t n = 0;
        for (const char *at = d->trace; *at != '\0'; at++) {
            n += *at == letter ? 1 : 0;
        }
        if (n >= count) {
            return;
        }
        if (mono_now().v > end) {
            fail_msg("'%c' did not come %zu times: %s", letter, count, d->trace);
        }
        (void)driven_step(d, 20);
    }
}

/* Until both partitions are ours and decided about. */
__attribute__((unused)) static void driven_ready(struct driven *d)
{
    driven_until(d, 'A', PARTS);
}

/* Ends the round that is open. */
__attribute__((unused)) static void driven_finish(struct driven *d)
{
    while (d->engine->phase != PHASE_between) {
        (void)driven_step(d, 0);
    }
}

/* Lets the engine look around until nothing calls for a round any more. */
__attribute__((unused)) static void driven_quiet(struct driven *d)
{
    driven_finish(d);
    for (int i = 0; i < 5; i++) {
        (void)driven_step(d, 30);
        driven_finish(d);
    }
}

#endif
