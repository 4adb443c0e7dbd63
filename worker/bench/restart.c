/*
 * A worker that is killed and started again under its id, while another one is a member of the
 * group, too: how long until its next turn runs, and whether the other one noticed (an owner writes
 * its name into the turn log of each partition whenever it is given partitions).
 *
 * In: worker/cmd_bench.c, crash.c (who has which partitions)  Out: process.c, setup.c
 */
#include "worker/bench/bench.h"

#include "common/base/clock.h"
#include "topics/catalogue.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define SHARED_MS 60000
#define LOOK_MS 20
#define SETTLE_MS 1000 /* ends of turns are written, offsets of what was read to its end, too */

baton_code bench_group_await(const struct bench_set *set, struct bench_group *group,
                             struct baton_error *err)
{
    const struct topic_name name = group_of_workers(set->config->prefix.s, BENCH_SERVICE);
    const int64_t until = mono_now().v + SHARED_MS;
    while (mono_now().v < until) {
        struct log_group_member *members = NULL;
        size_t count = 0;
        baton_code rc = log_group_members(group->log, name.s, &members, &count, err);
        if (rc != BATON_OK) {
            return rc;
        }
        const bool both = count == 2 && members[0].count > 0 && members[1].count > 0 &&
                          strcmp(members[0].worker, BENCH_WORKER) == 0;
        if (both) {
            group->first = members[0];
            group->second = members[1];
        }
        free(members);
        if (both) {
            return BATON_OK;
        }
        (void)poll(NULL, 0, LOOK_MS);
    }
    return baton_fail(err, BATON_E_timed_out, "two workers did not share the partitions");
}

/* How much the turn log holds of that member's partitions. */
static baton_code written(const struct bench_set *set, struct log *log,
                          const struct log_group_member *member, int64_t *ret_count,
                          struct baton_error *err)
{
    const struct topic_name topic = topic_name(TOPIC_turns, set->config->prefix.s, BENCH_SERVICE);
    baton_code rc = BATON_OK;
    *ret_count = 0;
    for (size_t i = 0; rc == BATON_OK && i < member->count; i++) {
        int64_t low = 0;
        int64_t high = 0;
        rc = log_watermarks(log, topic.s, member->partitions[i], &low, &high, err);
        *ret_count += high;
    }
    return rc;
}

/* Publishes one turn for a member and waits until it has started. */
static baton_code one_turn(const struct bench_set *set, const struct bench_worker *worker,
                           const struct log_group_member *member, int64_t *number,
                           struct baton_error *err)
{
    baton_code rc =
        bench_publish_into(set, *number + 1, member->partitions, member->count, number, err);
    return rc == BATON_OK ? bench_wait(worker, &set->page->start_ns[*number], 1, err) : rc;
}

static baton_code one_kill(const struct bench_set *set, struct bench_group *group,
                           struct bench_worker *first, int64_t *number, int64_t *ret_ns,
                           bool *ret_noticed, struct baton_error *err)
{
    int64_t before = 0;
    int64_t after = 0;
    (void)poll(NULL, 0, SETTLE_MS);
    baton_code rc = written(set, group->log, &group->second, &before, err);
    if (rc != BATON_OK) {
        return rc;
    }
    const int64_t killed_ns = mono_ns();
    bench_worker_kill(first);
    if ((rc = bench_worker_start(set, BENCH_WORKER, first, err)) != BATON_OK) {
        return rc;
    }
    if ((rc = one_turn(set, first, &group->first, number, err)) == BATON_OK) {
        *ret_ns = atomic_load(&set->page->start_ns[*number]) - killed_ns;
        rc = written(set, group->log, &group->second, &after, err);
        *ret_noticed = after != before;
    }
    return rc;
}

static baton_code kill_some(const struct bench_set *set, struct bench_group *group,
                            struct bench_worker *first, const struct bench_worker *second,
                            struct bench_restart *ret, struct baton_error *err)
{
    int64_t took[BENCH_KILLS];
    int64_t number = -1;
    baton_code rc = bench_group_await(set, group, err);
    if (rc == BATON_OK && (rc = one_turn(set, first, &group->first, &number, err)) == BATON_OK) {
        rc = one_turn(set, second, &group->second, &number, err);
    }
    for (size_t i = 0; rc == BATON_OK && i < BENCH_KILLS; i++) {
        bool noticed = false;
        rc = one_kill(set, group, first, &number, &took[i], &noticed, err);
        ret->noticed = ret->noticed || noticed;
        if (rc == BATON_OK) { /* where a death moves partitions, they come back */
            rc = bench_group_await(set, group, err);
        }
        if (rc == BATON_OK) {
            rc = one_turn(set, first, &group->first, &number, err);
        }
    }
    if (rc == BATON_OK) {
        ret->ms = (double)bench_quantile(took, BENCH_KILLS, 0.5) / 1e6;
    }
    return rc;
}

baton_code bench_restart(const struct bench_set *set, struct bench_restart *ret,
                         struct baton_error *err)
{
    struct bench_group group = {0};
    struct bench_worker first;
    struct bench_worker second;
    baton_code rc = log_open(set->config, &group.log, err);
    if (rc != BATON_OK || (rc = bench_worker_start(set, BENCH_WORKER, &first, err)) != BATON_OK) {
        log_close(group.log);
        return rc;
    }
    if ((rc = bench_wait(&first, &set->page->ready_ns, 1, err)) == BATON_OK &&
        (rc = bench_worker_start(set, BENCH_SECOND, &second, err)) == BATON_OK) {
        rc = kill_some(set, &group, &first, &second, ret, err);
        bench_worker_kill(&second);
    }
    bench_worker_kill(&first);
    log_close(group.log);
    return rc;
}
