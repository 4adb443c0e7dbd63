/* Reads how a service stands for producer/cmd_services.c, producer/operate.c and
 * deploy/doctor_services.c. */
#include "topics/service_view.h"

#include "common/base/clock.h"
#include "common/base/word.h"
#include "common/record/json.h"
#include "common/record/turn_record.h"
#include "topics/catalogue.h"
#include "topics/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STOPPED_LATE_MS 60000 /* behind a deadline: longer than any executor is given to end */

#define PAUSE_KEY "~pause"
#define PAUSE_BYTES_MAX 8192

struct first {
    int64_t at; /* -1: there is none */
    struct turn_id turn;
};

static bool first_record(void *arg, const struct log_record *record)
{
    struct first *first = arg;
    first->at = record->at.v;
    if (record->key != NULL && hex_valid(record->key, record->key_len, sizeof(first->turn.s) - 1)) {
        memcpy(first->turn.s, record->key, sizeof(first->turn.s) - 1);
    }
    return false;
}

/* Fills lag, oldest_ms, waiting and taken anew. */
static baton_code read_lag(struct log *log, const struct config *config, const char *topic,
                           struct service_view *view, struct baton_error *err)
{
    struct topic_name group = group_of_workers(config->prefix.s, view->service->name.s);
    int64_t now = wall_now().v;
    baton_code rc = BATON_OK;
    view->lag = 0;
    view->oldest_ms = -1;
    view->waiting.s[0] = '\0';
    view->taken = 0;
    for (int32_t p = 0; rc == BATON_OK && p < view->partitions; p++) {
        int64_t low = 0;
        int64_t high = 0;
        int64_t next = LOG_OFFSET_NONE;
        struct first first = {.at = -1};
        if ((rc = log_watermarks(log, topic, p, &low, &high, err)) != BATON_OK ||
            (rc = log_group_offset(log, group.s, topic, p, &next, err)) != BATON_OK) {
            break;
        }
        next = next < low ? low : next;
        view->taken += next;
        if (next >= high) {
            continue;
        }
        rc = scan_partition(log, topic, p, next, first_record, &first, NULL, err);
        bool hidden = rc == BATON_E_not_permitted; /* an operator reads no handoffs: no age then */
        if (hidden) {
            rc = BATON_OK;
        }
        if (hidden || first.at >= 0) { /* else commit markers, or what is not committed yet */
            view->lag += high - next;
        }
        if (first.at >= 0 && now - first.at > view->oldest_ms) {
            view->oldest_ms = now > first.at ? now - first.at : 0;
            view->waiting = first.turn;
        }
    }
    return rc;
}

static void text_of(const struct json_value *root, const char *key, char *ret_text, size_t size)
{
    const struct json_value *value = json_member(root, key);
    if (value != NULL && json_kind(value) == JSON_text) {
        snprintf(ret_text, size, "%s", json_text(value, NULL));
    }
}

/* The owner's note `{..., "paused": true, "by": …, "reason": …, "at": …}`. */
static bool read_pause(const struct log_record *record, struct service_pause *ret_pause)
{
    struct json_doc *doc = NULL;
    bool paused = false;
    if (json_parse(record->value, record->value_len, PAUSE_BYTES_MAX, 4, &doc, NULL) == BATON_OK) {
        const struct json_value *root = json_root(doc);
        const struct json_value *flag =
            json_kind(root) == JSON_object ? json_member(root, "paused") : NULL;
        char at[64] = "";
        paused = flag != NULL && json_kind(flag) == JSON_bool && json_bool(flag);
        if (paused) {
            text_of(root, "by", ret_pause->by.s, sizeof(ret_pause->by.s));
            text_of(root, "reason", ret_pause->reason, sizeof(ret_pause->reason));
            text_of(root, "at", at, sizeof(at));
            (void)wall_parse(at, strlen(at), &ret_pause->at);
        }
        json_free(doc);
    }
    return paused;
}

/* One entry for each worker: its partitions say the same. */
static bool add_circuit(struct service_view *view, int32_t partition,
                        const struct log_record *record)
{
    struct circuit_note note;
    size_t at = 0;
    if (!circuit_note_parse(record->value, record->value_len, &note)) {
        return true;
    }
    while (at < view->n_circuits && strcmp(view->circuits[at].note.boot.s, note.boot.s) != 0) {
        at++;
    }
    if (at == view->n_circuits) {
        struct service_circuit *more =
            realloc(view->circuits, (view->n_circuits + 1) * sizeof(*view->circuits));
        if (more == NULL) {
            return false;
        }
        view->circuits = more;
        view->circuits[view->n_circuits++] = (struct service_circuit){.note = note};
    }
    struct service_circuit *circuit = &view->circuits[at];
    circuit->partitions[circuit->count++] = partition;
    return true;
}

/* One entry for each worker, as above. */
static bool add_blocked(struct service_view *view, const struct log_record *record)
{
    struct blocked_note note;
    if (!blocked_note_parse(record->value, record->value_len, &note)) {
        return true;
    }
    for (size_t i = 0; i < view->n_blocked; i++) {
        if (strcmp(view->blocked[i].boot.s, note.boot.s) == 0) {
            return true;
        }
    }
    struct blocked_note *more =
        realloc(view->blocked, (view->n_blocked + 1) * sizeof(*view->blocked));
    if (more == NULL) {
        return false;
    }
    view->blocked = more;
    view->blocked[view->n_blocked++] = note;
    return true;
}

/* One entry for each worker, as above. */
static bool add_rest(struct service_view *view, const struct log_record *record)
{
    struct rest_note note;
    if (!rest_note_parse(record->value, record->value_len, &note)) {
        return true;
    }
    for (size_t i = 0; i < view->n_rests; i++) {
        if (strcmp(view->rests[i].boot.s, note.boot.s) == 0) {
            return true;
        }
    }
    struct rest_note *more = realloc(view->rests, (view->n_rests + 1) * sizeof(*view->rests));
    if (more == NULL) {
        return false;
    }
    view->rests = more;
    view->rests[view->n_rests++] = note;
    return true;
}

struct count {
    struct service_view *view;
    int32_t partition;
    bool no_memory;
};

static int by_start(const void *a, const void *b)
{
    const struct service_turn *one = a;
    const struct service_turn *other = b;
    return one->since.v < other->since.v ? -1 : one->since.v > other->since.v;
}

static bool add_open(struct service_view *view, const struct turn_record *turn)
{
    struct service_turn open = {.id = turn->id,
                                .role = turn->role,
                                .task = turn->task_id,
                                .state = turn->state,
                                .attempt = turn->attempt,
                                .worker = turn->lease_worker,
                                .boot = turn->lease_boot,
                                .since = turn->created_at,
                                .created_at = turn->created_at};
    if (view->oldest.id.s[0] == '\0' || open.created_at.v < view->oldest.created_at.v) {
        view->oldest = open;
    }
    if (turn->state != TURN_running) {
        return true;
    }
    if (turn->n_attempts > 0 && turn->attempts[turn->n_attempts - 1].started_at.v != 0) {
        open.since = turn->attempts[turn->n_attempts - 1].started_at;
    }
    struct service_turn *more =
        realloc(view->running, (view->n_running + 1) * sizeof(*view->running));
    if (more == NULL) {
        return false;
    }
    view->running = more;
    view->running[view->n_running++] = open;
    return true;
}

static bool count_turn(void *arg, const struct log_record *record)
{
    struct count *count = arg;
    struct service_view *view = count->view;
    struct turn_record turn;
    view->written.v = record->at.v > view->written.v ? record->at.v : view->written.v;
    if (word_is(PAUSE_KEY, record->key, record->key_len)) {
        view->paused += read_pause(record, &view->pause) ? 1 : 0;
        return true;
    }
    if (circuit_note_is_key(record->key, record->key_len)) {
        count->no_memory = !add_circuit(view, count->partition, record);
        return !count->no_memory;
    }
    if (blocked_note_is_key(record->key, record->key_len)) {
        count->no_memory = !add_blocked(view, record);
        return !count->no_memory;
    }
    if (rest_note_is_key(record->key, record->key_len)) {
        count->no_memory = !add_rest(view, record);
        return !count->no_memory;
    }
    if (record->key == NULL || !hex_valid(record->key, record->key_len, 32)) {
        return true;
    }
    turn_record_init(&turn);
    if (turn_record_parse(record->value, record->value_len, &turn, NULL) == BATON_OK) {
        view->turns[turn.state]++;
        count->no_memory = turn_state_open(turn.state) && !add_open(view, &turn);
    } else {
        view->unreadable++;
    }
    turn_record_done(&turn);
    return !count->no_memory;
}

/* Who is in its group now, and what that has not taken in: anew, each time that it is called. */
static baton_code read_group(struct log *log, const struct config *config, const char *handoff,
                             const char *group, struct service_view *view, struct baton_error *err)
{
    free(view->workers);
    view->workers = NULL;
    view->n_workers = 0;
    const baton_code rc = log_group_members(log, group, &view->workers, &view->n_workers, err);
    return rc == BATON_OK ? read_lag(log, config, handoff, view, err) : rc;
}

/* Is nothing taken in really? Workers that own partitions may be restoring them, and what waited when that was
 * read may have been finished before the turn logs were. */
static baton_code look_again(struct log *log, const struct config *config, const char *handoff,
                             const char *group, struct service_view *view, struct baton_error *err)
{
    static const long waits_ms[] = {0, 300, 700};
    const int64_t taken = view->taken;
    baton_code rc = BATON_OK;
    for (size_t i = 0; i < sizeof(waits_ms) / sizeof(waits_ms[0]); i++) {
        if (rc != BATON_OK || !service_view_untaken(view)) {
            break;
        }
        nanosleep(&(struct timespec){0, waits_ms[i] * 1000000}, NULL);
        rc = read_group(log, config, handoff, group, view, err);
        view->moves = view->taken != taken;
    }
    return rc;
}

baton_code service_view_read(struct log *log, const struct config *config,
                             const struct config_service *service, bool with_turns,
                             struct service_view *ret_view, struct baton_error *err)
{
    struct service_view view = {.service = service, .with_turns = with_turns};
    struct topic_name handoff = topic_name(TOPIC_handoff, config->prefix.s, service->name.s);
    struct topic_name turns = topic_name(TOPIC_turns, config->prefix.s, service->name.s);
    struct topic_name group = group_of_workers(config->prefix.s, service->name.s);
    int32_t partitions = 0;
    baton_code rc;
    if ((rc = scan_partitions(log, handoff.s, &view.partitions, err)) == BATON_OK) {
        rc = read_group(log, config, handoff.s, group.s, &view, err);
    }
    if (rc == BATON_OK && with_turns) { /* by its own number: they may have been made unequal */
        rc = scan_partitions(log, turns.s, &partitions, err);
    }
    for (int32_t p = 0; rc == BATON_OK && p < partitions; p++) {
        struct count count = {.view = &view, .partition = p};
        rc = scan_newest(log, turns.s, p, count_turn, &count, NULL, err);
        if (rc == BATON_OK && count.no_memory) {
            rc = baton_fail(err, BATON_E_no_memory, "no memory for the state of a service");
        }
    }
    if (rc == BATON_OK) {
        rc = look_again(log, config, handoff.s, group.s, &view, err);
    }
    if (rc != BATON_OK) {
        service_view_done(&view);
        return rc;
    }
    if (view.n_running > 1) {
        qsort(view.running, view.n_running, sizeof(*view.running), by_start);
    }
    *ret_view = view;
    return BATON_OK;
}

int32_t service_view_unowned(const struct service_view *view)
{
    int32_t owned = 0;
    for (size_t i = 0; i < view->n_workers; i++) {
        owned += (int32_t)view->workers[i].count;
    }
    return view->n_workers > 0 && owned < view->partitions ? view->partitions - owned : 0;
}

bool service_view_lives(const struct service_view *view, const char *worker)
{
    for (size_t i = 0; i < view->n_workers; i++) {
        if (strcmp(view->workers[i].worker, worker) == 0) {
            return true;
        }
    }
    return false;
}

/* Since when its worker certainly runs again, which began this turn in an earlier boot: the first attempt of a
 * younger one; 0: the log shows none. */
static int64_t back_since(const struct service_view *view, const struct service_turn *turn)
{
    int64_t since = 0;
    for (size_t i = 0; i < view->n_running; i++) {
        const struct service_turn *other = &view->running[i];
        if (strcmp(other->worker.s, turn->worker.s) == 0 &&
            strcmp(other->boot.s, turn->boot.s) != 0 && other->since.v > turn->since.v &&
            (since == 0 || other->since.v < since)) {
            since = other->since.v;
        }
    }
    return since;
}

struct wall_ms service_view_stop(const struct service_view *view, const struct service_turn *turn)
{
    return (struct wall_ms){turn->since.v + view->service->deadline_ms};
}

bool service_view_overdue(const struct service_view *view, const struct service_turn *turn)
{
    const int64_t late_ms = wall_now().v - STOPPED_LATE_MS - SERVICE_DATE_SLACK_MS;
    return turn->state == TURN_running && service_view_lives(view, turn->worker.s) &&
           late_ms > service_view_stop(view, turn).v && late_ms > back_since(view, turn);
}

bool service_view_untaken(const struct service_view *view)
{
    return view->with_turns && view->n_workers > 0 && view->n_running == 0 &&
           view->oldest_ms > SERVICE_WAITING_LONG_MS && service_view_unowned(view) == 0 &&
           !view->moves && view->paused == 0 && view->n_circuits == 0 && view->n_blocked == 0;
}

bool service_view_stalled(const struct service_view *view)
{
    for (size_t i = 0; i < view->n_running; i++) {
        if (service_view_overdue(view, &view->running[i])) {
            return true;
        }
    }
    return service_view_untaken(view);
}

void service_view_done(struct service_view *view)
{
    free(view->workers);
    free(view->running);
    free(view->circuits);
    free(view->blocked);
    free(view->rests);
    memset(view, 0, sizeof(*view));
}

baton_code service_has_worker(struct log *log, const char *prefix, const char *service,
                              bool *ret_any, struct baton_error *err)
{
    struct topic_name group = group_of_workers(prefix, service);
    struct log_group_member *members = NULL;
    size_t count = 0;
    baton_code rc = log_group_members(log, group.s, &members, &count, err);
    if (rc == BATON_OK) {
        *ret_any = count > 0;
        free(members);
    }
    return rc;
}
