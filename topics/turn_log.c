/* Reads turn logs. See turn_log.h for who calls it. */
#include "topics/turn_log.h"

#include "common/base/check.h"
#include "common/base/text.h"
#include "topics/catalogue.h"
#include "topics/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX_MIN 6 /* shorter ones mean several turns soon */

static bool is_turn_key(const struct log_record *record)
{
    return record->key != NULL && hex_valid(record->key, record->key_len, 32);
}

/* ---- all of them ---- */

struct each {
    const struct turn_filter *filter;
    struct turn_place place;
    turn_fn *fn;
    void *arg;
    size_t unreadable;
};

static bool passes(const struct turn_filter *filter, const struct turn_record *record)
{
    return (filter->states == 0 || (filter->states & (1u << (unsigned)record->state)) != 0) &&
           (filter->roles == 0 || (filter->roles & ROLE_BIT(record->role)) != 0) &&
           (filter->task_id == NULL || strcmp(filter->task_id, record->task_id.s) == 0);
}

/* Could it be in one of the states? A look at the bytes, which are those of turn_record_encode:
 * most turns are closed, and whoever asks for the open ones need not wait for them to be parsed. */
static bool may_pass(const struct turn_filter *filter, const struct log_record *record)
{
    for (int i = 0; i < TURN_STATE_COUNT && filter->states != 0; i++) {
        char member[32];
        int len = snprintf(member, sizeof(member), "\"state\":\"%s\"",
                           turn_state_word((enum turn_state)i));
        if ((filter->states & (1u << i)) != 0 &&
            memmem(record->value, record->value_len, member, (size_t)len) != NULL) {
            return true;
        }
    }
    return filter->states == 0;
}

static bool each_record(void *arg, const struct log_record *record)
{
    struct each *each = arg;
    struct turn_record turn;
    bool go_on = true;
    if (!is_turn_key(record) || !may_pass(each->filter, record)) {
        return true;
    }
    turn_record_init(&turn);
    if (turn_record_parse(record->value, record->value_len, &turn, NULL) != BATON_OK) {
        each->unreadable++;
    } else if (passes(each->filter, &turn)) {
        each->place.offset = record->offset;
        go_on = each->fn(each->arg, &each->place, &turn);
    }
    turn_record_done(&turn);
    return go_on;
}

static baton_code each_of_service(struct log *log, const struct config *config, const char *service,
                                  struct each *each, bool *stopped, struct baton_error *err)
{
    struct topic_name topic = topic_name(TOPIC_turns, config->prefix.s, service);
    int32_t partitions = 0;
    baton_code rc = scan_partitions(log, topic.s, &partitions, err);
    for (int32_t p = 0; rc == BATON_OK && !*stopped && p < partitions; p++) {
        each->place = (struct turn_place){.service = service, .partition = p};
        rc = scan_newest(log, topic.s, p, each_record, each, stopped, err);
    }
    return rc;
}

baton_code turn_log_each(struct log *log, const struct config *config,
                         const struct turn_filter *filter, turn_fn *fn, void *arg,
                         size_t *ret_unreadable, struct baton_error *err)
{
    struct each each = {.filter = filter, .fn = fn, .arg = arg};
    struct scan_hidden hidden = {0};
    bool stopped = false;
    baton_code rc = BATON_OK;
    if (filter->service != NULL &&
        (rc = config_service_get(config, filter->service, NULL, err)) != BATON_OK) {
        return rc;
    }
    for (size_t s = 0; rc == BATON_OK && !stopped && s < config->n_services; s++) {
        const char *service = config->services[s].name.s;
        struct baton_error why = {BATON_OK, ""};
        if (filter->service == NULL || strcmp(filter->service, service) == 0) {
            rc = each_of_service(log, config, service, &each, &stopped, &why);
            rc = scan_pass_hidden(&hidden, rc, &why, err);
        }
    }
    if (ret_unreadable != NULL) {
        *ret_unreadable = each.unreadable;
    }
    return rc == BATON_OK ? scan_hidden_end(&hidden, hidden.seen > 0, err) : rc;
}

static bool tail_record(void *arg, const struct tail_place *place, const struct log_record *record,
                        void *ret_row)
{
    struct turn_tail *turns = arg;
    const struct turn_place at = {place->service, place->partition, place->offset};
    struct turn_record turn;
    bool taken = false;
    if (!is_turn_key(record) || !may_pass(turns->filter, record)) {
        return false;
    }
    turn_record_init(&turn);
    if (turn_record_parse(record->value, record->value_len, &turn, NULL) != BATON_OK) {
        turns->unreadable++;
    } else if (passes(turns->filter, &turn)) {
        taken = turns->fn(turns->arg, &at, &turn, ret_row);
    }
    turn_record_done(&turn);
    return taken;
}

baton_code turn_log_tail(struct tail *tail, const struct config *config, struct turn_tail *turns,
                         struct baton_error *err)
{
    const char *wanted = turns->filter->service;
    baton_code rc =
        wanted != NULL ? config_service_get(config, wanted, NULL, err) : (baton_code)BATON_OK;
    for (size_t s = 0; rc == BATON_OK && s < config->n_services; s++) {
        const char *service = config->services[s].name.s;
        if (wanted == NULL || strcmp(wanted, service) == 0) {
            rc = tail_add(tail, TAIL_turns, service,
                          topic_name(TOPIC_turns, config->prefix.s, service).s, true, tail_record,
                          turns, err);
        }
    }
    return rc;
}

/* ---- one of them ---- */

struct find {
    const char *turn_id;
    bool found;
    baton_code rc;
    struct baton_error err;
    struct turn_record record;
    struct circuit_note circuit; /* of the partition */
};

static bool find_record(void *arg, const struct log_record *record)
{
    struct find *find = arg;
    if (circuit_note_is_key(record->key, record->key_len)) {
        (void)circuit_note_parse(record->value, record->value_len, &find->circuit);
        return true;
    }
    if (record->key_len != 32 || memcmp(record->key, find->turn_id, 32) != 0) {
        return true;
    }
    if (find->found) {
        turn_record_done(&find->record);
    }
    turn_record_init(&find->record);
    find->found = record->value != NULL;
    find->rc = BATON_OK;
    if (find->found) {
        find->rc = turn_record_parse(record->value, record->value_len, &find->record, &find->err);
        find->found = find->rc == BATON_OK;
    }
    if (!find->found) {
        turn_record_done(&find->record);
    }
    return true; /* a newer one may follow */
}

static bool add_attempt(struct turn_life *life, const struct attempt *from, bool own)
{
    size_t at = 0;
    while (at < life->n_attempts && life->attempts[at].no < from->no) {
        at++;
    }
    if (at < life->n_attempts && life->attempts[at].no == from->no) {
        if (!own) {
            return true;
        }
        attempt_done(&life->attempts[at]);
    } else {
        struct attempt *more =
            realloc(life->attempts, (life->n_attempts + 1) * sizeof(*life->attempts));
        if (more == NULL) {
            return false;
        }
        life->attempts = more;
        memmove(&more[at + 1], &more[at], (life->n_attempts - at) * sizeof(*more));
        life->n_attempts++;
    }
    memset(&life->attempts[at], 0, sizeof(life->attempts[at]));
    return attempt_copy(from, &life->attempts[at]);
}

/* Is a the later state of the same turn? One that was passed on is earlier than where it went. */
static bool later(const struct turn_record *a, const struct turn_record *b)
{
    bool a_left = a->state == TURN_delegated;
    bool b_left = b->state == TURN_delegated;
    return a_left != b_left ? b_left : a->attempt > b->attempt;
}

static baton_code add_life(struct turn_life *life, struct turn_record *take_record,
                           const struct circuit_note *circuit, const char *service,
                           int32_t partition, struct baton_error *err)
{
    for (size_t i = 0; i < take_record->n_attempts; i++) {
        const struct attempt *attempt = &take_record->attempts[i];
        if (!add_attempt(life, attempt, strcmp(attempt->service.s, service) == 0)) {
            turn_record_done(take_record);
            return baton_fail(err, BATON_E_no_memory, "no memory for the attempts of a turn");
        }
    }
    if (life->found && !later(take_record, &life->now)) {
        turn_record_done(take_record);
        return BATON_OK;
    }
    if (life->found) {
        turn_record_done(&life->now);
    }
    life->now = *take_record;
    life->circuit = *circuit;
    life->service = service;
    life->partition = partition;
    life->found = true;
    return BATON_OK;
}

static baton_code find_at(struct log *log, const struct config *config, const char *service,
                          const char *turn_id, struct turn_life *life, struct baton_error *err)
{
    struct topic_name topic = topic_name(TOPIC_turns, config->prefix.s, service);
    struct find find = {.turn_id = turn_id, .circuit = {.state = CIRCUIT_closed}};
    int32_t partitions = 0;
    baton_code rc = scan_partitions(log, topic.s, &partitions, err);
    if (rc != BATON_OK) {
        return rc;
    }
    int32_t partition = log_partition_of(turn_id, 32, partitions);
    rc = scan_partition(log, topic.s, partition, 0, find_record, &find, NULL, err);
    if (rc == BATON_OK && find.rc != BATON_OK) {
        rc = baton_fail(err, find.rc, "turn %.8s in topic %s: %s", turn_id, topic.s, find.err.text);
    } else if (find.found && rc == BATON_OK) {
        rc = add_life(life, &find.record, &find.circuit, service, partition, err);
    } else if (find.found) {
        turn_record_done(&find.record);
    }
    return rc;
}

baton_code turn_log_find(struct log *log, const struct config *config, const char *turn_id,
                         struct turn_life *ret_life, struct baton_error *err)
{
    struct scan_hidden hidden = {0};
    baton_code rc = BATON_OK;
    memset(ret_life, 0, sizeof(*ret_life));
    for (size_t s = 0; rc == BATON_OK && s < config->n_services; s++) {
        struct baton_error why = {BATON_OK, ""};
        rc = find_at(log, config, config->services[s].name.s, turn_id, ret_life, &why);
        rc = scan_pass_hidden(&hidden, rc, &why, err);
    }
    return rc == BATON_OK ? scan_hidden_end(&hidden, ret_life->found, err) : rc;
}

void turn_life_done(struct turn_life *life)
{
    if (life->found) {
        turn_record_done(&life->now);
    }
    for (size_t i = 0; i < life->n_attempts; i++) {
        attempt_done(&life->attempts[i]);
    }
    free(life->attempts);
    memset(life, 0, sizeof(*life));
}

/* ---- by the first digits ---- */

struct resolve {
    const char *prefix;
    size_t len;
    struct turn_id ids[2];
    size_t count;
};

static bool resolve_record(void *arg, const struct log_record *record)
{
    struct resolve *resolve = arg;
    if (!is_turn_key(record) || memcmp(record->key, resolve->prefix, resolve->len) != 0) {
        return true;
    }
    if (resolve->count > 0 && memcmp(resolve->ids[0].s, record->key, 32) == 0) {
        return true; /* the same turn at another service, or an older record */
    }
    memcpy(resolve->ids[resolve->count].s, record->key, 32);
    resolve->ids[resolve->count].s[32] = '\0';
    return ++resolve->count < COUNT_OF(resolve->ids);
}

baton_code turn_log_resolve(struct log *log, const struct config *config, const char *prefix,
                            struct turn_id *ret_id, struct baton_error *err)
{
    struct resolve resolve = {.prefix = prefix, .len = strlen(prefix)};
    const enum topic_kind kinds[] = {TOPIC_turns, TOPIC_handoff};
    struct scan_hidden hidden = {0};
    baton_code rc = BATON_OK;
    bool stopped = false;
    if (resolve.len < PREFIX_MIN || resolve.len > 32 ||
        !hex_valid(prefix, resolve.len, resolve.len)) {
        return baton_fail(err, BATON_E_invalid_request,
                          "'%s' is no turn id: 32 hex digits, or the first of them (at least %d)",
                          text_quote_of(prefix).s, PREFIX_MIN);
    }
    if (resolve.len == 32) {
        *ret_id = turn_id_of(prefix);
        return BATON_OK;
    }
    for (size_t s = 0; s < config->n_services * COUNT_OF(kinds) && rc == BATON_OK && !stopped;
         s++) {
        struct topic_name topic = topic_name(kinds[s % COUNT_OF(kinds)], config->prefix.s,
                                             config->services[s / COUNT_OF(kinds)].name.s);
        struct baton_error why = {BATON_OK, ""};
        int32_t partitions = 0;
        rc = scan_partitions(log, topic.s, &partitions, &why);
        for (int32_t p = 0; rc == BATON_OK && !stopped && p < partitions; p++) {
            rc = scan_partition(log, topic.s, p, 0, resolve_record, &resolve, &stopped, &why);
        }
        /* Handoffs are read by their service only; whoever may show turns does not miss them. */
        bool optional = kinds[s % COUNT_OF(kinds)] == TOPIC_handoff;
        rc = optional && rc == BATON_E_not_permitted ? BATON_OK
                                                     : scan_pass_hidden(&hidden, rc, &why, err);
    }
    rc = rc == BATON_OK ? scan_hidden_end(&hidden, resolve.count > 0, err) : rc;
    if (rc != BATON_OK) {
        return rc;
    }
    if (resolve.count == 0) {
        return baton_fail(err, BATON_E_turn_not_found,
                          "no turn begins with %s; `baton turns list` shows them", prefix);
    }
    if (resolve.count > 1) {
        return baton_fail(err, BATON_E_invalid_request,
                          "%s is ambiguous: %s and %s begin so; give more digits", prefix,
                          resolve.ids[0].s, resolve.ids[1].s);
    }
    *ret_id = resolve.ids[0];
    return BATON_OK;
}

/* ---- not taken in yet ---- */

static bool has_key(void *arg, const struct log_record *record)
{
    const char *turn_id = arg;
    return record->key_len != 32 || memcmp(record->key, turn_id, 32) != 0;
}

static baton_code waits_at(struct log *log, const struct config *config, const char *service,
                           char key[33], bool *ret_found, struct baton_error *err)
{
    struct topic_name topic = topic_name(TOPIC_handoff, config->prefix.s, service);
    struct topic_name group = group_of_workers(config->prefix.s, service);
    int32_t partitions = 0;
    int64_t from = LOG_OFFSET_NONE;
    baton_code rc = scan_partitions_or_none(log, topic.s, true, &partitions, err);
    if (rc != BATON_OK || partitions == 0) {
        return rc;
    }
    int32_t partition = log_partition_of(key, 32, partitions);
    if ((rc = log_group_offset(log, group.s, topic.s, partition, &from, err)) == BATON_OK) {
        rc = scan_partition(log, topic.s, partition, from < 0 ? 0 : from, has_key, key, ret_found,
                            err);
    }
    return rc;
}

baton_code turn_log_waiting(struct log *log, const struct config *config, const char *turn_id,
                            const char **ret_service, struct baton_error *err)
{
    char key[33];
    *ret_service = NULL;
    memcpy(key, turn_id, sizeof(key));
    for (size_t s = 0; s < config->n_services; s++) {
        const char *service = config->services[s].name.s;
        struct baton_error why = {BATON_OK, ""};
        bool found = false;
        baton_code rc = waits_at(log, config, service, key, &found, &why);
        if (rc != BATON_OK && rc != BATON_E_not_permitted) { /* handoffs are their service's */
            return baton_fail(err, rc, "%s", why.text);
        }
        if (found) {
            *ret_service = service;
            break;
        }
    }
    return BATON_OK;
}
