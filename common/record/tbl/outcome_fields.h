/*
 * The fields of an outcome, in the order in which they are written. Which of them an event needs,
 * outcome.c says. Kinds and the meaning of max stand in common/record/fields.h.
 */
#ifndef BATON_RECORD_TBL_OUTCOME_FIELDS_H
#define BATON_RECORD_TBL_OUTCOME_FIELDS_H

/* clang-format off */
#define OUTCOME_FIELDS(FIELD) \
    FIELD(version,  version,     required, 1) \
    FIELD(event,    word,        required, 16) \
    FIELD(turn_id,  hex,         optional, 32) \
    FIELD(origin,   id,          optional, 0) \
    FIELD(born,     service,     optional, 0) \
    FIELD(role,     role,        optional, 0) \
    FIELD(task_id,  task,        optional, 0) \
    FIELD(task_rev, count,       optional, 2147483647) \
    FIELD(run_id,   id_or_empty, optional, 0) \
    FIELD(epoch,    count,       optional, 2147483647) \
    FIELD(intent,   id,          optional, 0) \
    FIELD(content,  hex,         optional, 64) \
    FIELD(attempt,  count,       optional, 2147483647) \
    FIELD(service,  id,          required, 0) \
    FIELD(state,    word,        optional, 16) \
    FIELD(class,    word,        optional, 32) \
    FIELD(code,     word,        optional, 32) \
    FIELD(at,       time,        required, 0) \
    FIELD(to,       service,     optional, 0) \
    FIELD(cost_micros, count,    optional, JSON_INT_MAX) \
    FIELD(result,   object,      optional, 0) \
    FIELD(answers,  object,      optional, 0)

#define ANSWERS_FIELDS(FIELD) \
    FIELD(id,   id,   required, 0) \
    FIELD(kind, word, required, 15) \
    FIELD(code, word, required, 32)
/* clang-format on */

#endif
