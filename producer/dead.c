/*
 * One list of what is dead.
 * In: producer/cmd_dlq_list.c, producer/cmd_dlq_show.c, producer/cmd_dlq_replay.c
 * Out: topics/turn_log.c, topics/letters.c
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

static bool on_turn(void *arg, const struct turn_place *place, const struct turn_record *record)
{
    const struct attempt *last =
        record->n_attempts > 0 ? &record->attempts[record->n_attempts - 1] : NULL;
    struct dead dead = {
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
    snprintf(dead.run_id, sizeof(dead.run_id), "%s", record->run_id.s);
    snprintf(dead.origin, sizeof(dead.origin), "%s", record->origin.s);
    snprintf(dead.id, sizeof(dead.id), "%s", record->id.s);
    snprintf(dead.turn_id, sizeof(dead.turn_id), "%s", record->id.s);
    snprintf(dead.service, sizeof(dead.service), "%s", place->service);
    snprintf(dead.role, sizeof(dead.role), "%s", role_word(record->role));
    snprintf(dead.task_id, sizeof(dead.task_id), "%s", record->task_id.s);
    if (last != NULL && last->note != NULL) {
        snprintf(dead.message, sizeof(dead.message), "%.255s", last->note);
    }
    return give(arg, &dead);
}

static bool on_letter(void *arg, const struct letter *letter)
{
    struct dead dead = {
        .code = letter->code,
        .at = letter->at,
        .value = letter->record->value,
        .value_len = letter->record->value != NULL ? letter->record->value_len : 0,
        .headers = letter->record->headers,
        .n_headers = letter->record->n_headers,
    };
    snprintf(dead.id, sizeof(dead.id), "%s", letter->id.s);
    snprintf(dead.turn_id, sizeof(dead.turn_id), "%s", letter->turn_id);
    snprintf(dead.service, sizeof(dead.service), "%s", letter->service);
    snprintf(dead.role, sizeof(dead.role), "%s", letter->role);
    snprintf(dead.task_id, sizeof(dead.task_id), "%s", letter->task_id);
    snprintf(dead.run_id, sizeof(dead.run_id), "%s", letter->run_id);
    snprintf(dead.kind, sizeof(dead.kind), "%s", letter->kind);
    snprintf(dead.message, sizeof(dead.message), "%s", letter->message);
    return give(arg, &dead);
}

baton_code dead_each(struct session *session, const struct dead_filter *filter, dead_fn *fn,
                     void *arg, struct baton_error *err)
{
    struct each each = {.filter = filter, .fn = fn, .arg = arg};
    const struct turn_filter parked = {
        .service = filter->service,
        .states = 1u << (unsigned)TURN_parked,
        .roles = filter->by_role ? ROLE_BIT(filter->role) : 0,
    };
    const bool runs = filter->service != NULL && strcmp(filter->service, LETTERS_OF_RUNS) == 0;
    baton_code rc =
        runs ? BATON_OK
             : turn_log_each(session->log, session->config, &parked, on_turn, &each, NULL, err);
    if (rc == BATON_OK && !each.stopped) {
        rc = letters_each(session->log, session->config, filter->service, on_letter, &each, err);
    }
    return rc;
}
