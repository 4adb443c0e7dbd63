/*
 * The holder's side of a lease: attempts that go on here although their partition has moved (DESIGN
 * "Moved partitions", protocol rules 23 to 27).
 *
 * A thread of its own: it renews at once and every second, reports ends until the turn log shows
 * another state, follows the turn log and stops what is no longer current, and kills at lease minus
 * margin what it could not renew, whatever the engine waits for. It decides nothing.
 *
 * In: worker/round.c  Out: topic control (common/log/log.h), worker/executor/executor.h
 */
#include "worker/internal.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PUBLISH_TIMEOUT_MS 2000
#define PUBLISH_LEAST_MS 100
#define FIRST_WAIT_MS 1000
#define FOLLOW_RECORDS 256

struct item {
    struct turn_id turn;
    int attempt;
    struct boot_id boot;
    int32_t partition;
    struct mono_ms lease_from; /* start of the last answered renewal */
    int64_t lease_ms;          /* what is left of it: the lease, or the grace of a lost one */
    int64_t seq;
    bool ended;  /* reports instead of renewing */
    bool silent; /* its partition has not moved: the engine does not come round, and this thread
                    renews for it */
    bool killed; /* its lease ran out */
    bool failed;
    enum failure class;
    char *result;
};

struct follow {
    int32_t partition;
    struct log_reader *reader;
    int64_t from;
};

struct settled {
    struct turn_id turn;
    int attempt;
    struct boot_id boot;
};

struct leases {
    struct leases_spec spec;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_cond_t done;
    bool stop;
    bool asked;          /* a round is wanted now */
    unsigned long begun; /* rounds that have begun */
    unsigned long round; /* number of the newest one that has ended */

    struct item *items;
    size_t n_items;
    size_t cap_items;
    const struct engine *engine; /* whose thread is watched, or NULL */
    struct held *running;        /* what runs in partitions that are ours */
    size_t n_running;
    bool silence_told; /* the silence has lasted for so long that the partitions count as lost */
    struct settled *settled;
    size_t n_settled;
    size_t cap_settled;

    /* the thread's own */
    struct log_publisher *publisher;
    struct follow follows[LOG_PARTITIONS_MAX];
    struct diag_limit limit;
};

static struct item *find(struct leases *leases, const char *turn_id)
{
    for (size_t i = 0; i < leases->n_items; i++) {
        if (strcmp(leases->items[i].turn.s, turn_id) == 0) {
            return &leases->items[i];
        }
    }
    return NULL;
}

static void remove_item(struct leases *leases, struct item *item)
{
    free(item->result);
    *item = leases->items[--leases->n_items];
}

static struct item *add_item(struct leases *leases)
{
    if (leases->n_items == leases->cap_items) {
        leases->cap_items = leases->cap_items == 0 ? 16 : leases->cap_items * 2;
        leases->items = realloc(leases->items, leases->cap_items * sizeof(*leases->items));
        BATON_INVARIANT(leases->items != NULL);
    }
    struct item *item = &leases->items[leases->n_items++];
    memset(item, 0, sizeof(*item));
    item->boot = leases->spec.boot;
    return item;
}

/* ---- what is sent ---- */

struct outgoing {
    struct buf value;
    struct turn_id turn;
    struct proof_text proof;
    struct log_header header;
    bool renewal;
};

static void encode(struct leases *leases, struct item *item, struct outgoing *out)
{
    struct control control = {
        .kind = item->ended ? CONTROL_report : CONTROL_renew,
        .turn_id = item->turn,
        .at = wall_now(),
        .attempt = item->attempt,
        .boot = item->boot,
        .failed = item->failed,
        .class = item->class,
        .result = item->result,
        .result_len = item->result != NULL ? strlen(item->result) : 0,
    };
    random_hex(control.id.s, 32);
    if (!item->ended) {
        control.seq = ++item->seq;
    }
    *out = (struct outgoing){.value = BUF_INIT, .turn = item->turn, .renewal = !item->ended};
    control_encode(&control, &out->value);
    if (leases->spec.signer != NULL) {
        struct digest digest = digest_of(out->value.data, out->value.len);
        if (signer_sign(leases->spec.signer, leases->spec.fleet, PROOF_control, item->turn.s,
                        strlen(item->turn.s), NULL, &digest, &out->proof, NULL) == BATON_OK) {
            out->header = (struct log_header){"baton-sig", out->proof.s, strlen(out->proof.s)};
        }
    }
}

static void answered(struct leases *leases, const struct outgoing *out, struct mono_ms start)
{
    struct item *item = find(leases, out->turn.s);
    if (item != NULL && out->renewal && !item->ended) {
        item->lease_from = start;
        item->lease_ms = leases->spec.lease_ms;
    }
}

/* Half the grace: a kill and what it waits for end within it, and a renewal that is answered within
 * the other half is in time. */
static int64_t margin_ms(const struct leases *leases)
{
    return leases->spec.grace_ms / 2;
}

/* When the first lease must be killed unless it is renewed; INT64_MAX: none. */
static int64_t first_kill(const struct leases *leases)
{
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < leases->n_items; i++) {
        const struct item *item = &leases->items[i];
        int64_t at = item->lease_from.v + item->lease_ms - margin_ms(leases);
        if (!item->ended && !item->killed && !leases->spec.keep && at < first) {
            first = at;
        }
    }
    return first;
}

/* A renewal that waits longer would extend a lease that its holder has given up. */
static int64_t publish_time_ms(const struct leases *leases)
{
    int64_t left = first_kill(leases) - mono_now().v;
    if (left > PUBLISH_TIMEOUT_MS) {
        return PUBLISH_TIMEOUT_MS;
    }
    return left < PUBLISH_LEAST_MS ? PUBLISH_LEAST_MS : left;
}

/* One publish of all renewals and reports; without the lock, since the log may take its time. */
static void send_all(struct leases *leases)
{
    struct baton_error err = {BATON_OK, ""};
    size_t n = leases->n_items;
    const int64_t timeout_ms = publish_time_ms(leases);
    if (n == 0) {
        return;
    }
    struct outgoing *out = calloc(n + 1, sizeof(*out));
    struct log_record *records = calloc(n + 1, sizeof(*records));
    const struct mono_ms start = mono_now();

    BATON_INVARIANT(out != NULL && records != NULL);
    for (size_t i = 0; i < n; i++) {
        encode(leases, &leases->items[i], &out[i]);
        records[i] = (struct log_record){
            .topic = leases->spec.control,
            .partition = leases->items[i].partition,
            .key = out[i].turn.s,
            .key_len = strlen(out[i].turn.s),
            .value = out[i].value.data,
            .value_len = out[i].value.len,
            .headers = &out[i].header,
            .n_headers = out[i].header.name != NULL ? 1 : 0,
        };
    }
    pthread_mutex_unlock(&leases->lock);
    baton_code rc = BATON_OK;
    if (leases->publisher == NULL) {
        rc = log_publisher_open(leases->spec.log, &leases->publisher, &err);
    }
    if (rc == BATON_OK) {
        rc = log_publish(leases->publisher, records, n, timeout_ms, &err);
    }
    pthread_mutex_lock(&leases->lock);
    for (size_t i = 0; i < n; i++) {
        if (rc == BATON_OK) {
            answered(leases, &out[i], start);
        }
        buf_done(&out[i].value);
    }
    if (rc != BATON_OK) {
        diag_limited(&leases->limit, DIAG_warn, "lease.not_renewed", D_CODE("code", rc),
                     D_TEXT("error", err.text), D_INT("attempts", (int64_t)n));
    }
    free(out);
    free(records);
}

/* ---- what the turn log says ---- */

static void settle(struct leases *leases, struct item *item)
{
    if (leases->n_settled == leases->cap_settled) {
        leases->cap_settled = leases->cap_settled == 0 ? 16 : leases->cap_settled * 2;
        leases->settled = realloc(leases->settled, leases->cap_settled * sizeof(*leases->settled));
        BATON_INVARIANT(leases->settled != NULL);
    }
    leases->settled[leases->n_settled++] = (struct settled){item->turn, item->attempt, item->boot};
    if (!item->ended) {
        executor_kill(leases->spec.pool, &item->turn, item->attempt);
    }
    diag_line(DIAG_info, "lease.over", D_TEXT("turn", item->turn.s),
              D_INT("attempt", item->attempt));
    remove_item(leases, item);
    (void)mailbox_post(leases->spec.mail, leases);
}

static void read_record(struct leases *leases, const struct log_record *record)
{
    struct turn_record state;
    char key[40];

    if (record->key_len != 32) {
        return;
    }
    memcpy(key, record->key, 32);
    key[32] = '\0';
    struct item *item = find(leases, key);
    if (item == NULL) {
        return;
    }
    bool current = false;
    if (record->value != NULL &&
        turn_record_parse(record->value, record->value_len, &state, NULL) == BATON_OK) {
        current = state.state == TURN_running && state.attempt == item->attempt &&
                  strcmp(state.lease_boot.s, item->boot.s) == 0;
        turn_record_done(&state);
    }
    if (!current) {
        settle(leases, item);
    }
}

static bool wanted(const struct leases *leases, int32_t partition)
{
    for (size_t i = 0; i < leases->n_items; i++) {
        if (leases->items[i].partition == partition && !leases->items[i].silent) {
            return true;
        }
    }
    return false;
}

/* Reads what was appended to the turn logs of the partitions that have moved. */
static void follow_all(struct leases *leases)
{
    struct log_batch batch = {0};
    for (int32_t p = 0; p < LOG_PARTITIONS_MAX; p++) {
        struct follow *follow = &leases->follows[p];
        if (!wanted(leases, p)) {
            log_reader_close(follow->reader);
            *follow = (struct follow){0};
            continue;
        }
        baton_code rc = BATON_OK;
        struct log_reader *reader = follow->reader;
        const int64_t from = follow->from;
        pthread_mutex_unlock(&leases->lock);
        if (reader == NULL) {
            rc = log_reader_open(leases->spec.log, leases->spec.turns, p, from, LOG_READ_committed,
                                 &reader, NULL);
        }
        pthread_mutex_lock(&leases->lock);
        follow->reader = reader;
        do {
            if (rc == BATON_OK) {
                pthread_mutex_unlock(&leases->lock);
                rc = log_reader_next(reader, FOLLOW_RECORDS, 0, &batch, NULL);
                pthread_mutex_lock(&leases->lock);
            }
            for (size_t i = 0; rc == BATON_OK && i < batch.count; i++) {
                read_record(leases, &batch.records[i]);
            }
        } while (rc == BATON_OK && batch.count > 0 && !leases->stop);
    }
    log_batch_free(&batch);
}

/* Kills what could not be renewed, at lease minus margin. */
static void kill_expired(struct leases *leases)
{
    const struct mono_ms now = mono_now();
    for (size_t i = 0; i < leases->n_items; i++) {
        struct item *item = &leases->items[i];
        if (!item->ended && !item->killed && !leases->spec.keep &&
            now.v - item->lease_from.v >= item->lease_ms - margin_ms(leases)) {
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

/* ---- an engine that does not come round (protocol rule 26) ---- */

static void end_silence(struct leases *leases)
{
    leases->silence_told = false;
    for (size_t i = leases->n_items; i > 0; i--) {
        if (leases->items[i - 1].silent) {
            remove_item(leases, &leases->items[i - 1]);
        }
    }
}

/* While its engine is silent no callback tells of a loss: what runs is renewed from here. */
static void watch_engine(struct leases *leases)
{
    const struct mono_ms now = mono_now();
    const int64_t silent_ms = leases->engine != NULL ? now.v - engine_polled(leases->engine).v : 0;

    if (silent_ms < leases->spec.interval_ms + leases->spec.interval_ms / 2) {
        end_silence(leases);
        return;
    }
    for (size_t i = 0; i < leases->n_running; i++) {
        const struct held *running = &leases->running[i];
        if (find(leases, running->turn.s) == NULL) {
            struct item *item = add_item(leases);
            item->turn = running->turn;
            item->attempt = running->attempt;
            item->partition = running->partition;
            item->lease_from = now;
            item->lease_ms = leases->spec.lease_ms;
            item->silent = true;
        }
    }
    if (silent_ms >= leases->spec.session_ms - leases->spec.interval_ms && !leases->silence_told) {
        leases->silence_told = true;
        diag_line(DIAG_warn, "lease.engine_silent", D_INT("ms", silent_ms),
                  D_INT("attempts", (int64_t)leases->n_items));
        for (size_t i = 0; i < leases->n_items; i++) {
            if (leases->items[i]
                    .silent) { /* lost, as far as anybody here can know: the lease is spent */
                leases->items[i].lease_from = now;
                leases->items[i].lease_ms = leases->spec.grace_ms;
            }
        }
    }
}

/* Until the next round: an interval, or the first kill. */
static struct timespec next_round(const struct leases *leases)
{
    struct timespec until;
    int64_t ms = first_kill(leases) - mono_now().v;
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
        watch_engine(leases);
        send_all(leases);
        follow_all(leases);
        kill_expired(leases);
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
        remove_item(leases, &leases->items[0]);
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
        struct item *item = find(leases, held[i].turn.s);
        if (item != NULL && !item->silent) {
            continue;
        }
        if (item == NULL) {
            item = add_item(leases);
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
    struct item *item = find(leases, end->turn.s);
    if (item == NULL) {
        item = add_item(leases);
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
        item->result = end->result != NULL ? strdup(end->result) : NULL;
        leases->asked = true;
        pthread_cond_broadcast(&leases->wake);
    }
    pthread_mutex_unlock(&leases->lock);
}

void leases_drop(struct leases *leases, const char *turn_id)
{
    pthread_mutex_lock(&leases->lock);
    struct item *item = find(leases, turn_id);
    if (item != NULL) {
        remove_item(leases, item);
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

size_t leases_count(struct leases *leases)
{
    pthread_mutex_lock(&leases->lock);
    size_t count = leases->n_items;
    pthread_mutex_unlock(&leases->lock);
    return count;
}
