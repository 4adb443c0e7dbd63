/*
 * A worker that begins with nothing in its hands while the turn log holds many turns: how long until
 * it takes a turn, and what memory it needs; and the same when it has its store.
 *
 * The turn log is filled with turns that ended, as a worker writes them. No executor ran for them.
 *
 * In: worker/cmd_bench.c  Out: process.c, setup.c, common/log/log.h
 */
#include "worker/bench/bench.h"

#include "common/base/clock.h"
#include "common/record/signer.h"
#include "common/record/turn_record.h"
#include "topics/catalogue.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILL_AT_ONCE 500
#define FILL_TIMEOUT_MS 60000
#define LOOK_MS 2
#define WAIT_MS 1800000

struct fill {
    struct log *log;
    struct log_publisher *publisher;
    struct topic_name topic;
    struct turn_record ended; /* of any turn: only its id and task change */
    struct turn_id ids[FILL_AT_ONCE];
    struct buf bytes[FILL_AT_ONCE];
    struct log_record records[FILL_AT_ONCE];
};

static baton_code fill_open(const struct bench_set *set, struct fill *fill, struct baton_error *err)
{
    turn_record_init(&fill->ended);
    struct turn_record *record = &fill->ended;
    struct attempt *attempt = turn_record_add_attempt(record);
    record->result = strdup("{\"verdict\":\"" BENCH_VERDICT "\"}");
    if (attempt == NULL || record->result == NULL) {
        return baton_fail(err, BATON_E_no_memory, "out of memory");
    }
    record->result_len = strlen(record->result);
    record->origin = plain_id_of("publisher");
    record->service = service_id_of(BENCH_SERVICE);
    record->role = ROLE_owner;
    record->intent = plain_id_of("work");
    record->created_at = wall_now();
    record->updated_at = record->created_at;
    record->ended_at = record->created_at;
    record->state = TURN_completed;
    record->attempt = 1;
    record->since = 1;
    attempt->no = 1;
    attempt->service = record->service;
    attempt->worker = plain_id_of(BENCH_SECOND);
    attempt->profile = plain_id_of("default");
    attempt->state = ATTEMPT_completed;
    attempt->started_at = record->created_at;
    attempt->ended_at = record->created_at;
    fill->topic = topic_name(TOPIC_turns, set->config->prefix.s, BENCH_SERVICE);
    baton_code rc = log_open(set->config, &fill->log, err);
    return rc == BATON_OK ? log_publisher_open(fill->log, &fill->publisher, err) : rc;
}

static void fill_close(struct fill *fill)
{
    for (size_t i = 0; i < FILL_AT_ONCE; i++) {
        buf_done(&fill->bytes[i]);
    }
    turn_record_done(&fill->ended);
    if (fill->publisher != NULL) {
        log_publisher_close(fill->publisher);
    }
    log_close(fill->log);
}

static baton_code fill_some(struct fill *fill, int64_t from, size_t count, struct baton_error *err)
{
    for (size_t i = 0; i < count; i++) {
        char task[32];
        snprintf(task, sizeof(task), "ended-%lld", (long long)from + (long long)i);
        fill->ids[i] = bench_turn_id(from + (int64_t)i);
        fill->ended.id = fill->ids[i];
        fill->ended.task_id = task_id_of(task);
        buf_clear(&fill->bytes[i]);
        turn_record_encode(&fill->ended, &fill->bytes[i]);
        if (!buf_ok(&fill->bytes[i])) {
            return baton_fail(err, BATON_E_no_memory, "out of memory");
        }
        fill->records[i] = (struct log_record){
            .topic = fill->topic.s,
            .partition = LOG_PARTITION_BY_KEY,
            .key = fill->ids[i].s,
            .key_len = strlen(fill->ids[i].s),
            .value = fill->bytes[i].data,
            .value_len = fill->bytes[i].len,
        };
    }
    return log_publish(fill->publisher, fill->records, count, FILL_TIMEOUT_MS, err);
}

static baton_code fill_all(const struct bench_set *set, int64_t turns, struct baton_error *err)
{
    struct fill *fill = calloc(1, sizeof(*fill));
    if (fill == NULL) {
        return baton_fail(err, BATON_E_no_memory, "out of memory");
    }
    baton_code rc = fill_open(set, fill, err);
    for (int64_t at = 0; rc == BATON_OK && at < turns; at += FILL_AT_ONCE) {
        const size_t count = turns - at < FILL_AT_ONCE ? (size_t)(turns - at) : FILL_AT_ONCE;
        rc = fill_some(fill, at, count, err);
    }
    fill_close(fill);
    free(fill);
    return rc;
}

/* From the start of the worker to the turn that waits for it. */
static baton_code start_once(const struct bench_set *set, int64_t number, double *ret_s,
                             int64_t *ret_peak_kib, struct baton_error *err)
{
    struct bench_worker worker;
    struct bench_use use = {0};
    const _Atomic int64_t *started = &set->page->start_ns[number];
    baton_code rc = bench_publish_backlog(set, number, 1, err);
    if (rc != BATON_OK || (rc = bench_worker_start(set, BENCH_WORKER, &worker, err)) != BATON_OK) {
        return rc;
    }
    const int64_t until = mono_now().v + WAIT_MS;
    while (atomic_load(started) == 0 && bench_worker_runs(&worker) && mono_now().v < until) {
        (void)poll(NULL, 0, LOOK_MS);
    }
    *ret_s = (double)(atomic_load(started) - worker.spawned_ns) / 1e9;
    rc = bench_worker_stop(&worker, &use, err);
    *ret_peak_kib = use.peak_kib;
    if (rc == BATON_OK && atomic_load(started) == 0) {
        rc = baton_fail(err, BATON_E_timed_out, "the worker did not take its turn");
    }
    return rc;
}

baton_code bench_restore(const struct bench_set *set, int64_t turns, struct bench_restore *ret,
                         struct baton_error *err)
{
    int64_t peak_kib = 0;
    const int64_t begin_ns = mono_ns();
    baton_code rc = fill_all(set, turns, err);
    ret->fill_s = (double)(mono_ns() - begin_ns) / 1e9;
    if (rc == BATON_OK &&
        (rc = start_once(set, 0, &ret->empty_s, &ret->peak_kib, err)) == BATON_OK) {
        rc = start_once(set, 1, &ret->kept_s, &peak_kib, err);
    }
    return rc;
}
