/*
 * A worker that is killed while ten of its turns run: how long until their next attempts start. One
 * time another worker takes over; one time the same id is started again at once; one time it is
 * killed with a transaction of the log open, which whoever takes over must end first.
 *
 * In: worker/cmd_bench.c  Out: process.c, setup.c, restart.c
 */
#include "worker/bench/bench.h"

#include "common/base/clock.h"
#include "topics/catalogue.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define LOAD_TURNS 200 /* so many more keep it committing; a backlog would be measured, too */
#define READ_AT_ONCE 2000
#define READ_MS 2000
#define LOOK_MS 3
#define OPEN_MS 30000 /* a moment with an open transaction comes within this */
#define HELD_TURNS 100000

struct crash {
    const struct bench_set *set;
    struct bench_group group;
    struct bench_worker first;
    struct bench_worker second;
    bool first_runs;
    int64_t held; /* the next number of a turn that is to be held */
    int64_t load; /* and of one that ends at once */
};

const char *bench_crash_word(enum bench_crash_case crash)
{
    static const char *const words[CRASH_CASE_COUNT] = {"elsewhere", "same id", "committing"};
    return words[crash];
}

static baton_code start_first(struct crash *crash, struct baton_error *err)
{
    baton_code rc = bench_worker_start(crash->set, BENCH_WORKER, &crash->first, err);
    crash->first_runs = rc == BATON_OK;
    return rc;
}

static void kill_first(struct crash *crash)
{
    if (crash->first_runs) {
        bench_worker_kill(&crash->first);
    }
    crash->first_runs = false;
}

/* Ten turns that the first worker runs; their numbers. */
static baton_code run_ten(struct crash *crash, int64_t *numbers, struct baton_error *err)
{
    const struct bench_set *set = crash->set;
    baton_code rc = BATON_OK;
    for (size_t i = 0; rc == BATON_OK && i < BENCH_RUNNING; i++) {
        rc = bench_publish_into(set, crash->held, crash->group.first.partitions,
                                crash->group.first.count, &numbers[i], err);
        crash->held = numbers[i] + 1;
    }
    for (size_t i = 0; rc == BATON_OK && i < BENCH_RUNNING; i++) {
        rc = bench_wait(&crash->first, &set->page->start_ns[numbers[i]], 1, err);
    }
    return rc;
}

/* Does readers' view of the partition end before what is there? The worker stands still. */
static baton_code look_open(struct log_reader *reader, struct log *log, const char *topic,
                            int32_t partition, bool *ret_open, struct baton_error *err)
{
    int64_t low = 0;
    int64_t high = 0;
    int64_t seen = 0;
    const int64_t until = mono_now().v + READ_MS;
    for (bool at_end = false; !at_end && mono_now().v < until;) {
        struct log_batch batch = {0};
        baton_code rc = log_reader_next(reader, READ_AT_ONCE, 0, &batch, err);
        if (rc != BATON_OK) {
            return rc;
        }
        at_end = batch.at_end;
        seen = batch.next_offset;
        log_batch_free(&batch);
    }
    baton_code rc = log_watermarks(log, topic, partition, &low, &high, err);
    *ret_open = rc == BATON_OK && seen < high;
    return rc;
}

/* Stops the first worker at a moment at which it has a transaction open in that partition. */
static baton_code freeze_open(struct crash *crash, struct log_reader *reader, const char *topic,
                              int32_t partition, struct baton_error *err)
{
    const int64_t until = mono_now().v + OPEN_MS;
    int64_t enough = atomic_load(&crash->set->page->started);
    while (mono_now().v < until && crash->load + LOAD_TURNS <= BENCH_CRASH_TURNS) {
        bool open = false;
        baton_code rc = BATON_OK;
        if (enough - atomic_load(&crash->set->page->started) < LOAD_TURNS / 2) {
            rc = bench_publish_backlog(crash->set, crash->load, LOAD_TURNS, err);
            crash->load += LOAD_TURNS;
            enough += LOAD_TURNS;
        }
        (void)poll(NULL, 0, LOOK_MS);
        if (rc != BATON_OK || kill(crash->first.pid, SIGSTOP) != 0 ||
            (rc = look_open(reader, crash->group.log, topic, partition, &open, err)) != BATON_OK ||
            open) {
            return rc;
        }
        (void)kill(crash->first.pid, SIGCONT);
    }
    return baton_fail(err, BATON_E_timed_out, "no transaction of the worker was seen open");
}

/* Publishes what keeps the worker committing. On Kafka it stands still in a transaction then; on the
 * local log a transaction is one of SQLite, which nobody sees open. */
static baton_code make_busy(struct crash *crash, struct baton_error *err)
{
    const struct bench_set *set = crash->set;
    const struct topic_name topic = topic_name(TOPIC_turns, set->config->prefix.s, BENCH_SERVICE);
    const int32_t partition = crash->group.first.partitions[0];
    struct log_reader *reader = NULL;
    if (set->brokers == NULL) {
        crash->load += LOAD_TURNS;
        return bench_publish_backlog(set, crash->load - LOAD_TURNS, LOAD_TURNS, err);
    }
    baton_code rc =
        log_reader_open(crash->group.log, topic.s, partition, 0, LOG_READ_committed, &reader, err);
    if (rc == BATON_OK) {
        rc = freeze_open(crash, reader, topic.s, partition, err);
        log_reader_close(reader);
    }
    return rc;
}

static baton_code kill_one(struct crash *crash, enum bench_crash_case how, int64_t *ret_first_ns,
                           int64_t *ret_all_ns, struct baton_error *err)
{
    struct bench_page *page = crash->set->page;
    int64_t numbers[BENCH_RUNNING];
    baton_code rc = bench_group_await(crash->set, &crash->group, err);
    if (rc != BATON_OK || (rc = run_ten(crash, numbers, err)) != BATON_OK ||
        (how == CRASH_committing && (rc = make_busy(crash, err)) != BATON_OK)) {
        return rc;
    }
    const int64_t again = atomic_load(&page->again) + BENCH_RUNNING;
    const int64_t killed_ns = mono_ns();
    kill_first(crash);
    if (how == CRASH_same_id) {
        rc = start_first(crash, err);
    }
    if (rc == BATON_OK) {
        rc = bench_wait(&crash->second, &page->again, again, err);
    }
    if (rc == BATON_OK) {
        for (size_t i = 0; i < BENCH_RUNNING; i++) {
            numbers[i] = atomic_load(&page->start_ns[numbers[i]]) - killed_ns;
        }
        *ret_first_ns = bench_quantile(numbers, BENCH_RUNNING, 0);
        *ret_all_ns = numbers[BENCH_RUNNING - 1];
    }
    return rc == BATON_OK && !crash->first_runs ? start_first(crash, err) : rc;
}

static baton_code kill_some(struct crash *crash, enum bench_crash_case how, struct bench_crash *ret,
                            struct baton_error *err)
{
    int64_t first[BENCH_KILLS];
    int64_t all[BENCH_KILLS];
    baton_code rc = BATON_OK;
    for (size_t i = 0; rc == BATON_OK && i < BENCH_KILLS; i++) {
        rc = kill_one(crash, how, &first[i], &all[i], err);
    }
    if (rc == BATON_OK) {
        ret->first_ms = (double)bench_quantile(first, BENCH_KILLS, 0.5) / 1e6;
        ret->all_ms = (double)bench_quantile(all, BENCH_KILLS, 0.5) / 1e6;
        ret->worst_ms = (double)all[BENCH_KILLS - 1] / 1e6;
    }
    return rc;
}

baton_code bench_crash(const struct bench_set *set, struct bench_crash ret[CRASH_CASE_COUNT],
                       struct baton_error *err)
{
    struct crash crash = {.set = set, .load = HELD_TURNS};
    atomic_store(&set->page->held, HELD_TURNS);
    atomic_store(&set->page->threads,
                 2 * BENCH_RUNNING); /* others run beside those that are held */
    baton_code rc = log_open(set->config, &crash.group.log, err);
    if (rc == BATON_OK && (rc = start_first(&crash, err)) == BATON_OK &&
        (rc = bench_wait(&crash.first, &set->page->ready_ns, 1, err)) == BATON_OK &&
        (rc = bench_worker_start(set, BENCH_SECOND, &crash.second, err)) == BATON_OK) {
        for (int how = 0; rc == BATON_OK && how < CRASH_CASE_COUNT; how++) {
            rc = kill_some(&crash, (enum bench_crash_case)how, &ret[how], err);
        }
        bench_worker_kill(&crash.second);
    }
    kill_first(&crash);
    log_close(crash.group.log);
    return rc;
}
