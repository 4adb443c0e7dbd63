/*
 * A run log with as many runs as are asked for, written as a coordinator writes them: some wait for a
 * person, the others have gone their way. Their records are made by the functions of a run; no turn of
 * theirs was executed. In: runs.c  Out: producer/run/run.h, common/log/log.h
 */
#include "worker/bench/runs.h"

#include "common/base/check.h"
#include "common/record/signer.h"
#include "topics/catalogue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILL_AT_ONCE 200
#define FILL_TIMEOUT_MS 60000
#define ID_HEX 32

struct fill {
    struct log *log;
    struct log_publisher *publisher;
    struct topic_name topic;
    struct run *ended;   /* of any run: only ids change */
    struct run *waiting; /* the same */
    struct plain_id ids[FILL_AT_ONCE];
    struct buf bytes[FILL_AT_ONCE];
    struct log_record records[FILL_AT_ONCE];
};

/* ---- a run as it goes ---- */

static baton_code begin_run(const struct bench_set *set, struct run **ret_run,
                            struct baton_error *err)
{
    size_t len = 0;
    const char *text = workflow_builtin(BENCH_WORKFLOW, &len);
    struct run *run = calloc(1, sizeof(*run));
    if (run == NULL || (run->summary = strdup(BENCH_SUMMARY)) == NULL) {
        run_free(run);
        return baton_fail(err, BATON_E_no_memory, "out of memory");
    }
    run->epoch = 1;
    run->task_status = TASK_STATUS_active;
    run->state = RUN_active;
    run->by = plain_id_of("publisher");
    run->started_at = wall_now();
    run->updated_at = run->started_at;
    baton_code rc =
        workflow_parse(BENCH_WORKFLOW, text, len, set->config, &run->workflow, NULL, NULL, err);
    if (rc != BATON_OK) {
        run_free(run);
        return rc;
    }
    run->deadline.v = run->started_at.v + run->workflow->deadline_ms;
    *ret_run = run;
    return BATON_OK;
}

/* One turn that was taken along a transition, and ended so. */
static void add_turn(struct run *run, const char *by, const char *from, enum role role,
                     enum verdict verdict)
{
    struct run_turn *turn = run_add_turn(run);
    BATON_INVARIANT(turn != NULL && run_count(run, by));
    turn->task_rev = run->task_rev;
    turn->by = plain_id_of(by);
    turn->from = plain_id_of(from);
    turn->slot = plain_id_of(role_word(role));
    turn->role = role;
    turn->born = service_id_of(BENCH_SERVICE);
    turn->service = turn->born;
    turn->attempt = 1;
    turn->has_verdict = true;
    turn->verdict = verdict;
    turn->content = digest_of(&turn->no, sizeof(turn->no));
    turn->digest = turn->content;
    turn->begun_at = run->started_at;
    turn->claimed_at = run->started_at;
    run_turn_end(run, turn, TURN_completed, run->started_at);
}

static void go(struct run *run, bool to_its_end)
{
    add_turn(run, RUN_START, "", ROLE_owner, to_its_end ? VERDICT_done : VERDICT_needs_context);
    for (int round = 0; to_its_end && round <= BENCH_RUN_CHANGES; round++) {
        const bool last = round == BENCH_RUN_CHANGES;
        add_turn(run, "review", "owner", ROLE_reviewer, last ? VERDICT_approve : VERDICT_changes);
        if (!last) {
            add_turn(run, "changes", "reviewer", ROLE_owner, VERDICT_done);
        }
    }
    BATON_INVARIANT(run_move(run, to_its_end ? RUN_completed : RUN_waiting,
                             to_its_end ? "approved: no more remarks" : "owner says needs_context",
                             wall_now()));
}

/* ---- many of them ---- */

static void fill_close(struct fill *fill)
{
    for (size_t i = 0; i < FILL_AT_ONCE; i++) {
        buf_done(&fill->bytes[i]);
    }
    run_free(fill->ended);
    run_free(fill->waiting);
    if (fill->publisher != NULL) {
        log_publisher_close(fill->publisher);
    }
    log_close(fill->log);
    free(fill);
}

static baton_code fill_open(const struct bench_set *set, struct fill *fill, struct baton_error *err)
{
    baton_code rc = begin_run(set, &fill->ended, err);
    rc = rc == BATON_OK ? begin_run(set, &fill->waiting, err) : rc;
    if (rc == BATON_OK) {
        go(fill->ended, true);
        go(fill->waiting, false);
        rc = log_open(set->config, &fill->log, err);
    }
    fill->topic = topic_name(TOPIC_runs, set->config->prefix.s, NULL);
    return rc == BATON_OK ? log_publisher_open(fill->log, &fill->publisher, err) : rc;
}

static void name_run(struct run *run, int64_t number)
{
    char hex[2 * DIGEST_LEN + 1];
    char task[32];
    snprintf(task, sizeof(task), "filled-%lld", (long long)number);
    const struct digest digest = digest_of(task, strlen(task));
    hex_encode(digest.b, DIGEST_LEN, hex);
    hex[ID_HEX] = '\0';
    run->id = plain_id_of(hex);
    run->task_id = task_id_of(task);
    for (size_t i = 0; i < run->n_kept; i++) {
        run->turns[i].id = bench_turn_id(-1 - (number * RUN_TURNS_MAX + (int64_t)i));
    }
}

static baton_code fill_some(struct fill *fill, int64_t from, size_t count, int64_t open,
                            struct baton_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const int64_t number = from + (int64_t)i;
        struct run *run = number < open ? fill->waiting : fill->ended;
        name_run(run, number);
        fill->ids[i] = run->id;
        buf_clear(&fill->bytes[i]);
        run_encode(run, &fill->bytes[i]);
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

baton_code bench_fill_runs(const struct bench_set *set, int64_t runs, int64_t open,
                           struct baton_error *err)
{
    struct fill *fill = calloc(1, sizeof(*fill));
    if (fill == NULL) {
        return baton_fail(err, BATON_E_no_memory, "out of memory");
    }
    baton_code rc = fill_open(set, fill, err);
    for (int64_t at = 0; rc == BATON_OK && at < runs; at += FILL_AT_ONCE) {
        const size_t count = runs - at < FILL_AT_ONCE ? (size_t)(runs - at) : FILL_AT_ONCE;
        rc = fill_some(fill, at, count, open, err);
    }
    fill_close(fill);
    return rc;
}
