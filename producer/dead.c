/*
 * One list of what is dead.
 * In: producer/cmd_dlq_list.c, producer/cmd_dlq_choose.c
 * Out: topics/tail.c, topics/turn_log.c, topics/letters.c
 */
#include "producer/dead.h"

#include "common/base/text.h"
#include "topics/turn_log.h"

#include <stdio.h>
#include <string.h>

struct each {
    const struct dead_filter *filter;
    dead_fn *fn;
    void *arg;
    bool stopped;
};

static bool passes(const struct dead_filter *filter, const struct dead *dead)
{
    return (!filter->by_role || strcmp(dead->role, role_word(filter->role)) == 0) &&
           (!filter->by_class || (dead->has_class && dead->class == filter->class)) &&
           (!filter->by_code || dead->code == filter->code) &&
           (filter->run_id == NULL || strcmp(dead->run_id, filter->run_id) == 0) &&
           (filter->origin == NULL || strcmp(dead->origin, filter->origin) == 0) &&
           (filter->before.v == 0 || dead->at.v < filter->before.v) &&
           (filter->after.v == 0 || dead->at.v >= filter->after.v);
}

/* The attempt before the present series is the one that the last replay answered. */
static bool failed_again(const struct turn_record *record, const struct attempt *last)
{
    const struct attempt *before = NULL;
    for (size_t i = 0; i < record->n_attempts; i++) {
        if (record->attempts[i].no == record->since - 1) {
            before = &record->attempts[i];
        }
    }
    return record->replays > 0 && last != NULL && before != NULL &&
           last->has_class == before->has_class &&
           (!last->has_class || last->class == before->class);
}

static bool give(struct each *each, const struct dead *dead)
{
    if (passes(each->filter, dead) && !each->fn(each->arg, dead)) {
        each->stopped = true;
    }
    return !each->stopped;
}

/* *ret_dead borrows what the record has. */
static void dead_of_turn(const struct turn_place *place, const struct turn_record *record,
                         struct dead *ret_dead)
{
    const struct attempt *last =
        record->n_attempts > 0 ? &record->attempts[record->n_attempts - 1] : NULL;
    *ret_dead = (struct dead){
        .parked = true,
        .code = record->code,
        .has_class = last != NULL && last->has_class,
        .class = last != NULL ? last->class : (enum failure)0,
        .attempt = record->attempt,
        .replays = record->replays,
        .repeated = failed_again(record, last),
        .at = record->updated_at,
        .value = record->handoff,
        .value_len = record->handoff_len,
    };
    snprintf(ret_dead->run_id, sizeof(ret_dead->run_id), "%s", record->run_id.s);
    snprintf(ret_dead->origin, sizeof(ret_dead->origin), "%s", record->origin.s);
    snprintf(ret_dead->id, sizeof(ret_dead->id), "%s", record->id.s);
    snprintf(ret_dead->turn_id, sizeof(ret_dead->turn_id), "%s", record->id.s);
    snprintf(ret_dead->service, sizeof(ret_dead->service), "%s", place->service);
    snprintf(ret_dead->role, sizeof(ret_dead->role), "%s", role_word(record->role));
    snprintf(ret_dead->task_id, sizeof(ret_dead->task_id), "%s", record->task_id.s);
    if (last != NULL && last->note != NULL) {
        snprintf(ret_dead->message, sizeof(ret_dead->message), "%.255s", last->note);
    }
}

static void dead_of_letter(const struct letter *letter, struct dead *ret_dead)
{
    *ret_dead = (struct dead){
        .code = letter->code,
        .at = letter->at,
        .value = letter->record->value,
        .value_len = letter->record->value != NULL ? letter->record->value_len : 0,
        .headers = letter->record->headers,
        .n_headers = letter->record->n_headers,
    };
    snprintf(ret_dead->id, sizeof(ret_dead->id), "%s", letter->id.s);
    snprintf(ret_dead->turn_id, sizeof(ret_dead->turn_id), "%s", letter->turn_id);
    snprintf(ret_dead->service, sizeof(ret_dead->service), "%s", letter->service);
    snprintf(ret_dead->role, sizeof(ret_dead->role), "%s", letter->role);
    snprintf(ret_dead->task_id, sizeof(ret_dead->task_id), "%s", letter->task_id);
    snprintf(ret_dead->run_id, sizeof(ret_dead->run_id), "%s", letter->run_id);
    snprintf(ret_dead->kind, sizeof(ret_dead->kind), "%s", letter->kind);
    snprintf(ret_dead->message, sizeof(ret_dead->message), "%s", letter->message);
}

static struct turn_filter turns_of(const struct dead_filter *filter)
{
    return (struct turn_filter){
        .service = filter->service,
        .states = 1u << (unsigned)TURN_parked,
        .roles = filter->by_role ? ROLE_BIT(filter->role) : 0,
    };
}

/* Are only rejected requests of runs asked for? They are at no service. */
static bool of_runs(const struct dead_filter *filter)
{
    return filter->service != NULL && strcmp(filter->service, LETTERS_OF_RUNS) == 0;
}

/* ---- all of them ---- */

static bool on_turn(void *arg, const struct turn_place *place, const struct turn_record *record)
{
    struct dead dead;
    dead_of_turn(place, record, &dead);
    return give(arg, &dead);
}

static bool on_letter(void *arg, const struct letter *letter)
{
    struct dead dead;
    dead_of_letter(letter, &dead);
    return give(arg, &dead);
}

baton_code dead_each(struct session *session, const struct dead_filter *filter, dead_fn *fn,
                     void *arg, struct baton_error *err)
{
    struct each each = {.filter = filter, .fn = fn, .arg = arg};
    const struct turn_filter parked = turns_of(filter);
    baton_code rc = of_runs(filter) ? BATON_OK
                                    : turn_log_each(session->log, session->config, &parked, on_turn,
                                                    &each, NULL, err);
    if (rc == BATON_OK && !each.stopped) {
        rc = letters_each(session->log, session->config, filter->service, on_letter, &each, err);
    }
    return rc;
}

/* ---- a page, newest first ---- */

/* The row owns no bytes: value and headers are gone once the record is. */
static bool row_taken(const struct dead_filter *filter, struct dead *dead, void *ret_row)
{
    if (!passes(filter, dead)) {
        return false;
    }
    dead->value = NULL;
    dead->headers = NULL;
    dead->n_headers = 0;
    memcpy(ret_row, dead, sizeof(*dead));
    return true;
}

static bool turn_row(void *arg, const struct turn_place *place, const struct turn_record *record,
                     void *ret_row)
{
    struct dead dead;
    dead_of_turn(place, record, &dead);
    return row_taken(arg, &dead, ret_row);
}

static bool letter_row(void *arg, const struct letter *letter, void *ret_row)
{
    struct dead dead;
    dead_of_letter(letter, &dead);
    return row_taken(arg, &dead, ret_row);
}

baton_code dead_page(struct session *session, const struct dead_filter *filter,
                     const struct tail_spec *spec, dead_page_fn *fn, void *arg, bool *ret_more,
                     struct baton_error *err)
{
    struct dead_filter asked = *filter;
    const struct turn_filter parked = turns_of(filter);
    struct turn_tail turns = {.filter = &parked, .fn = turn_row, .arg = &asked};
    struct letter_tail letters = {.fn = letter_row, .arg = &asked};
    struct tail_spec sized = *spec;
    struct tail *tail = NULL;
    sized.log = session->log;
    sized.row_size = sizeof(struct dead);
    baton_code rc = tail_new(&sized, &tail, err);
    if (rc == BATON_OK && !of_runs(filter)) {
        rc = turn_log_tail(tail, session->config, &turns, err);
    }
    /* A rejected record has neither class nor origin that could be believed. */
    if (rc == BATON_OK && !filter->by_class && filter->origin == NULL) {
        rc = letters_tail(tail, session->config, filter->service, &letters, err);
    }
    if (rc == BATON_OK && (rc = tail_read(tail, err)) == BATON_OK) {
        bool go_on = true;
        *ret_more = tail_more(tail);
        for (size_t i = 0; go_on && i < tail_count(tail); i++) {
            struct tail_place place;
            const struct dead *dead = tail_row(tail, i, &place);
            const struct tail_position position = tail_position(&place);
            go_on = fn(arg, dead, position.s);
        }
    }
    tail_free(tail);
    return rc;
}
