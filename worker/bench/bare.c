/*
 * The floor: nothing but the SQLite work of turns, through the same functions of store and log and
 * in the same transactions as a worker's rounds, without deciding, executing, proving or copying.
 * What a worker reaches, divided by this, may be compared between machines.
 *
 * In: worker/cmd_bench.c  Out: common/store/store.h, common/log/log.h
 */
#include "worker/bench/bench.h"

#include "common/base/clock.h"
#include "common/record/signer.h"
#include "common/record/turn_record.h"
#include "common/store/store.h"
#include "topics/catalogue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 512
#define HANDOFF_BYTES 1150 /* the value of a turn with BENCH_PAYLOAD bytes of payload */
#define OUTCOME_BYTES 600
#define PUBLISH_TIMEOUT_MS 60000

struct floor {
    struct log *log;
    struct log_publisher *publisher;
    struct store *store;
    struct topic_name turns;
    struct topic_name outcomes;
    struct boot_id boot;
    struct turn_record claimed; /* of any turn: only its id changes */
    struct turn_record ended;
    struct buf claimed_bytes;
    struct buf ended_bytes;
    struct log_record records[3 * BATCH];
    struct turn_id
        ids[3][BATCH]; /* of the batch that is claimed, the one that runs, the one that has ended */
    char outcome[OUTCOME_BYTES];
};

static bool make_record(struct floor *at, struct turn_record *record, enum turn_state state,
                        struct buf *bytes)
{
    turn_record_init(record);
    struct attempt *attempt = turn_record_add_attempt(record);
    record->handoff = malloc(HANDOFF_BYTES + 1);
    if (attempt == NULL || record->handoff == NULL) {
        return false;
    }
    record->id = bench_turn_id(0);
    record->origin = plain_id_of("publisher");
    record->service = service_id_of(BENCH_SERVICE);
    record->role = ROLE_owner;
    record->task_id = task_id_of("turn");
    record->intent = plain_id_of("work");
    record->created_at = wall_now();
    record->updated_at = record->created_at;
    record->state = state;
    record->attempt = 1;
    record->since = 1;
    memset(record->handoff, 'h', HANDOFF_BYTES);
    record->handoff[HANDOFF_BYTES] = '\0';
    record->handoff_len = HANDOFF_BYTES;
    attempt->no = 1;
    attempt->service = record->service;
    attempt->worker = plain_id_of("measured");
    attempt->profile = plain_id_of("default");
    attempt->started_at = record->created_at;
    attempt->state = ATTEMPT_running;
    if (state == TURN_completed) {
        attempt->state = ATTEMPT_completed;
        attempt->ended_at = record->created_at;
        record->ended_at = record->created_at;
    } else {
        record->lease_worker = attempt->worker;
        record->lease_boot = at->boot;
    }
    turn_record_encode(record, bytes);
    return buf_ok(bytes);
}

static void put(struct log_record *record, const struct topic_name *topic, int32_t partition,
                const struct turn_id *id, const void *value, size_t len)
{
    *record = (struct log_record){
        .topic = topic->s,
        .partition = partition,
        .key = id->s,
        .key_len = strlen(id->s),
        .value = value,
        .value_len = len,
    };
}

static baton_code fold(struct floor *at, struct turn_record *record, const struct buf *bytes,
                       const struct turn_id *id, struct baton_error *err)
{
    record->id = *id;
    const struct log_place place = {0, 1, record->created_at};
    return store_turn_fold(at->store, &place, record, bytes->data, bytes->len, (struct mono_ms){0},
                           err);
}

/* One transaction of the store: the ends of one batch, the claims of the next, and how those ended.
 */
static baton_code store_round(struct floor *at, size_t n_ended, size_t n_running,
                              struct baton_error *err)
{
    baton_code rc = store_begin(at->store, __func__, err);
    for (size_t i = 0; rc == BATON_OK && i < n_ended; i++) {
        if ((rc = fold(at, &at->ended, &at->ended_bytes, &at->ids[2][i], err)) == BATON_OK) {
            rc = store_end_forget(at->store, at->ids[2][i].s, 1, at->boot.s, err);
        }
    }
    for (size_t i = 0; rc == BATON_OK && i < n_running; i++) {
        struct recorded_end end = {.turn = at->ids[1][i],
                                   .attempt = 1,
                                   .boot = at->boot,
                                   .started_at = {1},
                                   .ended_at = {2}};
        end.result = at->outcome + OUTCOME_BYTES - 20; /* as short as a verdict */
        if ((rc = fold(at, &at->claimed, &at->claimed_bytes, &at->ids[1][i], err)) == BATON_OK) {
            rc = store_end_note(at->store, &end, err);
        }
    }
    if (rc == BATON_OK) {
        return store_commit(at->store, err);
    }
    store_rollback(at->store);
    return rc;
}

/* One transaction of the log: claims, and the ends of what runs with their outcomes. */
static baton_code log_round(struct floor *at, size_t n_claimed, size_t n_running,
                            struct baton_error *err)
{
    size_t n = 0;
    bool known = false;
    baton_code rc = BATON_OK;
    store_look(at->store);
    for (size_t i = 0; rc == BATON_OK && i < n_claimed; i++) {
        rc = store_turn_known(at->store, at->ids[0][i].s, &known, err);
        put(&at->records[n++], &at->turns, (int32_t)(i % 4), &at->ids[0][i], at->claimed_bytes.data,
            at->claimed_bytes.len);
    }
    store_look_end(at->store);
    for (size_t i = 0; i < n_running; i++) {
        put(&at->records[n++], &at->turns, (int32_t)(i % 4), &at->ids[1][i], at->ended_bytes.data,
            at->ended_bytes.len);
        put(&at->records[n++], &at->outcomes, LOG_PARTITION_BY_KEY, &at->ids[1][i], at->outcome,
            sizeof(at->outcome));
    }
    return rc == BATON_OK && n > 0
               ? log_publish(at->publisher, at->records, n, PUBLISH_TIMEOUT_MS, err)
               : rc;
}

static baton_code run(struct floor *at, int64_t turns, struct baton_error *err)
{
    size_t n[3] = {0, 0, 0};
    baton_code rc = BATON_OK;
    for (int64_t done = 0; rc == BATON_OK && (done < turns || n[0] + n[1] + n[2] > 0);) {
        memcpy(at->ids[2], at->ids[1], sizeof(at->ids[1]));
        memcpy(at->ids[1], at->ids[0], sizeof(at->ids[0]));
        n[2] = n[1];
        n[1] = n[0];
        n[0] = turns - done < BATCH ? (size_t)(turns - done) : BATCH;
        for (size_t i = 0; i < n[0]; i++) {
            at->ids[0][i] = bench_turn_id(done++);
        }
        if ((rc = store_round(at, n[2], n[1], err)) == BATON_OK) {
            rc = log_round(at, n[0], n[1], err);
        }
    }
    return rc;
}

static baton_code open_all(struct floor *at, const struct bench_set *set, struct baton_error *err)
{
    char dir[600];
    baton_code rc;
    at->boot = boot_id_new();
    at->turns = topic_name(TOPIC_turns, set->config->prefix.s, BENCH_SERVICE);
    at->outcomes = topic_name(TOPIC_outcomes, set->config->prefix.s, NULL);
    memset(at->outcome, 'o', sizeof(at->outcome));
    at->outcome[OUTCOME_BYTES - 1] = '\0';
    if (!make_record(at, &at->claimed, TURN_running, &at->claimed_bytes) ||
        !make_record(at, &at->ended, TURN_completed, &at->ended_bytes)) {
        return baton_fail(err, BATON_E_no_memory, "out of memory");
    }
    if ((rc = log_open(set->config, &at->log, err)) != BATON_OK ||
        (rc = log_publisher_open(at->log, &at->publisher, err)) != BATON_OK) {
        return rc;
    }
    const struct store_owner owner = {log_cluster(at->log), at->turns.s, BENCH_SERVICE "/bare",
                                      at->boot};
    snprintf(dir, sizeof(dir), "%s/data/bare", set->dir);
    return store_open(dir, &owner, &at->store, err);
}

baton_code bench_bare(const struct bench_set *set, int64_t turns, double *ret_turns_s,
                      struct baton_error *err)
{
    struct floor *at = calloc(1, sizeof(*at));
    if (at == NULL) {
        return baton_fail(err, BATON_E_no_memory, "out of memory");
    }
    baton_code rc = open_all(at, set, err);
    if (rc == BATON_OK) {
        const int64_t begin_ns = mono_ns();
        rc = run(at, turns, err);
        *ret_turns_s = (double)turns / ((double)(mono_ns() - begin_ns) / 1e9);
    }
    store_close(at->store);
    if (at->publisher != NULL) {
        log_publisher_close(at->publisher);
    }
    log_close(at->log);
    turn_record_done(&at->claimed);
    turn_record_done(&at->ended);
    buf_done(&at->claimed_bytes);
    buf_done(&at->ended_bytes);
    free(at);
    return rc;
}
