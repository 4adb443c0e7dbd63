/*
 * The holder's side of a lease: attempts that go on here although their partition has moved
 * (protocol rules 23 to 27).
 *
 * A thread of its own: it renews at once and every second, reports ends until the turn log shows
 * another state, follows the turn log and stops what is no longer current, and kills at lease minus
 * margin what it could not renew, whatever the engine waits for. It decides nothing.
 *
 * In: worker/round.c  Out: worker/lease/send.c, worker/lease/follow.c, worker/lease/silence.c
 */
#include "worker/lease/internal.h"

#include "common/base/array.h"
#include "common/base/check.h"
#include "common/store/store.h"
#include "worker/decision.h"
#include "worker/executor/executor.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FIRST_WAIT_MS 1000

struct lease_item *lease_find(struct leases *leases, const char *turn_id)
{
    for (size_t i = 0; i < leases->n_items; i++) {
        if (strcmp(leases->items[i].turn.s, turn_id) == 0) {
            return &leases->items[i];
        }
    }
    return NULL;
}

void lease_remove(struct leases *leases, struct lease_item *item)
{
    free(item->result);
    free(item->usage);
    *item = leases->items[--leases->n_items];
}

struct lease_item *lease_add(struct leases *leases)
{
    leases->items =
        array_grown(leases->items, leases->n_items, &leases->cap_items, sizeof(*leases->items));
    struct lease_item *item = &leases->items[leases->n_items++];
    memset(item, 0, sizeof(*item));
    item->boot = leases->spec.boot;
    return item;
}

/* Kills what could not be renewed, at lease minus margin. */
static void kill_expired(struct leases *leases)
{
    const struct mono_ms now = mono_now();
    for (size_t i = 0; i < leases->n_items; i++) {
        struct lease_item *item = &leases->items[i];
        if (now.v >= lease_kill_at(leases, item)) {
            item->killed = true;
            diag_line(DIAG_warn, "lease.ran_out", D_TEXT("turn", item->turn.s),
                      D_INT("attempt", item->attempt));
            executor_kill(leases->spec.pool, &item->turn, item->attempt);
        }
    }
}

static void add_ms(struct timespec *at, int64_t ms)
{
    at->tv_sec += ms / 1000;
    at->tv_nsec += ms % 1000 * 1000000;
    if (at->tv_nsec >= 1000000000) {
        at->tv_sec++;
        at->tv_nsec -= 1000000000;
    }
}

/* Until the next round: an interval, or the first kill. */
static struct timespec next_round(const struct leases *leases)
{
    struct timespec until;
    int64_t ms = lease_first_kill(leases) - mono_now().v;
    clock_gettime(CLOCK_MONOTONIC, &until);
    if (ms > leases->spec.interval_ms) {
        ms = leases->spec.interval_ms;
    }
    add_ms(&until, ms < 1 ? 1 : ms);
    return until;
}

static void *leases_main(void *arg)
{
    struct leases *leases = arg;

    pthread_mutex_lock(&leases->lock);
    while (!leases->stop) {
        if (leases->n_items == 0 && leases->n_running == 0 && !leases->asked) {
            pthread_cond_wait(&leases->wake, &leases->lock);
            continue;
        }
        leases->asked = false;
        leases->begun++;
        lease_watch_engine(leases);
        lease_send_all(leases);
        kill_expired(leases);
        if (!leases->unanswered) { /* else reading would only wait, and hold up the kills */
            lease_follow_all(leases);
            kill_expired(leases);
        }
        leases->round = leases->begun;
        pthread_cond_broadcast(&leases->done);
        const struct timespec until = next_round(leases);
        while (!leases->stop && !leases->asked &&
               pthread_cond_timedwait(&leases->wake, &leases->lock, &until) == 0) {
        }
    }
    pthread_mutex_unlock(&leases->lock);
    return NULL;
}

/* ---- what the engine's thread asks ---- */

baton_code leases_new(const struct leases_spec *spec, struct leases **ret_leases,
                      struct baton_error *err)
{
    pthread_condattr_t attr;
    struct leases *leases = calloc(1, sizeof(*leases));
    if (leases == NULL) {
        return baton_fail(err, BATON_E_no_memory, "out of memory");
    }
    leases->spec = *spec;
    leases->limit = (struct diag_limit)DIAG_LIMIT(10000);
    pthread_mutex_init(&leases->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&leases->wake, &attr);
    pthread_cond_init(&leases->done, &attr);
    pthread_condattr_destroy(&attr);
    if (pthread_create(&leases->thread, NULL, leases_main, leases) != 0) {
        free(leases);
        return baton_fail(err, BATON_E_no_memory, "the thread of leases cannot be started");
    }
    pthread_setname_np(leases->thread, "leases");
    *ret_leases = leases;
    return BATON_OK;
}

void leases_free(struct leases *leases)
{
    if (leases == NULL) {
        return;
    }
    pthread_mutex_lock(&leases->lock);
    leases->stop = true;
    pthread_cond_broadcast(&leases->wake);
    pthread_mutex_unlock(&leases->lock);
    pthread_join(leases->thread, NULL);
    while (leases->n_items > 0) {
        lease_remove(leases, &leases->items[0]);
    }
    for (size_t p = 0; p < LOG_PARTITIONS_MAX; p++) {
        log_reader_close(leases->follows[p].reader);
    }
    if (leases->publisher != NULL) {
        log_publisher_close(leases->publisher);
    }
    pthread_cond_destroy(&leases->done);
    pthread_cond_destroy(&leases->wake);
    pthread_mutex_destroy(&leases->lock);
    free(leases->items);
    free(leases->running);
    free(leases->settled);
    free(leases);
}

/* Wants a round now, and waits at most a second for one that began after the call. */
static void run_now(struct leases *leases)
{
    struct timespec until;
    const unsigned long due = leases->begun + 1;
    leases->asked = true;
    pthread_cond_broadcast(&leases->wake);
    clock_gettime(CLOCK_MONOTONIC, &until);
    add_ms(&until, FIRST_WAIT_MS);
    while (leases->round < due &&
           pthread_cond_timedwait(&leases->done, &leases->lock, &until) == 0) {
    }
}

void leases_hold(struct leases *leases, const struct held *held, size_t count, bool lost)
{
    if (count == 0) {
        return;
    }
    pthread_mutex_lock(&leases->lock);
    for (size_t i = 0; i < count; i++) {
        struct lease_item *item = lease_find(leases, held[i].turn.s);
        if (item != NULL && !item->silent) {
            continue;
        }
        if (item == NULL) {
            item = lease_add(leases);
        }
        item->silent = false;
        item->turn = held[i].turn;
        item->attempt = held[i].attempt;
        item->partition = held[i].partition;
        item->lease_from = mono_now();
        /* After a loss the lease is spent: one answer within the grace minus margin, else kill. */
        item->lease_ms = lost ? leases->spec.grace_ms : leases->spec.lease_ms;
        if (leases->follows[held[i].partition].reader == NULL) {
            leases->follows[held[i].partition].from = held[i].followed_from;
        }
    }
    run_now(leases);
    pthread_mutex_unlock(&leases->lock);
}

void leases_watch(struct leases *leases, const struct engine *engine)
{
    pthread_mutex_lock(&leases->lock);
    leases->engine = engine;
    pthread_mutex_unlock(&leases->lock);
}

void leases_sign(struct leases *leases, const struct signer *signer)
{
    pthread_mutex_lock(&leases->lock);
    leases->spec.signer = signer;
    pthread_mutex_unlock(&leases->lock);
}

void leases_running(struct leases *leases, const struct held *running, size_t count)
{
    struct held *copy = calloc(count + 1, sizeof(*copy));
    BATON_INVARIANT(copy != NULL);
    memcpy(copy, running, count * sizeof(*copy));
    pthread_mutex_lock(&leases->lock);
    free(leases->running);
    leases->running = copy;
    leases->n_running = count;
    pthread_cond_broadcast(&leases->wake);
    pthread_mutex_unlock(&leases->lock);
}

void leases_report(struct leases *leases, const struct recorded_end *end)
{
    pthread_mutex_lock(&leases->lock);
    struct lease_item *item = lease_find(leases, end->turn.s);
    if (item == NULL) {
        item = lease_add(leases);
        item->turn = end->turn;
        item->attempt = end->attempt;
        item->partition = end->partition;
    }
    if (item->attempt == end->attempt && !item->ended) {
        item->boot = end->boot;
        item->ended = true;
        item->silent = false;
        item->failed = end->failed;
        item->class = end->class;
        item->result = decision_text(end->result);
        item->usage = end->usage[0] != '\0' ? decision_text(end->usage) : NULL;
        leases->asked = true;
        pthread_cond_broadcast(&leases->wake);
    }
    pthread_mutex_unlock(&leases->lock);
}

void leases_drop(struct leases *leases, const char *turn_id)
{
    pthread_mutex_lock(&leases->lock);
    struct lease_item *item = lease_find(leases, turn_id);
    if (item != NULL) {
        lease_remove(leases, item);
    }
    pthread_mutex_unlock(&leases->lock);
}

bool leases_take(struct leases *leases, struct turn_id *ret_turn, int *ret_attempt,
                 struct boot_id *ret_boot)
{
    pthread_mutex_lock(&leases->lock);
    bool any = leases->n_settled > 0;
    if (any) {
        struct settled *last = &leases->settled[--leases->n_settled];
        *ret_turn = last->turn;
        *ret_attempt = last->attempt;
        *ret_boot = last->boot;
    }
    pthread_mutex_unlock(&leases->lock);
    return any;
}

bool leases_unanswered(struct leases *leases)
{
    pthread_mutex_lock(&leases->lock);
    const bool unanswered = leases->unanswered;
    pthread_mutex_unlock(&leases->lock);
    return unanswered;
}

size_t leases_count(struct leases *leases)
{
    pthread_mutex_lock(&leases->lock);
    size_t count = leases->n_items;
    pthread_mutex_unlock(&leases->lock);
    return count;
}
