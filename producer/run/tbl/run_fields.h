/*
 * The fields of a record of the run log, in the order in which they are written (run_record.c).
 *
 * FIELD(name, kind, need, max): kinds and the meaning of max stand in common/record/fields.h.
 */
#ifndef BATON_PRODUCER_RUN_TBL_RUN_FIELDS_H
#define BATON_PRODUCER_RUN_TBL_RUN_FIELDS_H

/* clang-format off */
#define RUN_FIELDS(FIELD) \
    FIELD(version,     version,     required, 1) \
    FIELD(run_id,      id,          required, 0) \
    FIELD(epoch,       count,       required, 2147483647) \
    FIELD(task_id,     task,        required, 0) \
    FIELD(task_rev,    count,       required, 2147483647) \
    FIELD(task_status, word,        required, 16) \
    FIELD(state,       word,        required, 16) \
    FIELD(why,         text,        optional, RUN_WHY_MAX) \
    FIELD(code,        word,        optional, 32) \
    FIELD(stage,       word,        optional, 32) \
    FIELD(pending,     object,      optional, 4) \
    FIELD(later,       array,       optional, RUN_TURNS_MAX) \
    FIELD(held,        object,      optional, 4) \
    FIELD(asked,       object,      optional, 7) \
    FIELD(request_no,  count,       required, 2147483647) \
    FIELD(by,          id,          required, 0) \
    FIELD(summary,     text,        required, LIMIT_SUMMARY) \
    FIELD(data,        object,      optional, LIMIT_DATA_KEYS) \
    FIELD(payload,     object,      optional, 4) \
    FIELD(subject,     text,        optional, RUN_SUBJECT_MAX) \
    FIELD(started_at,  time,        required, 0) \
    FIELD(deadline,    time,        optional, 0) \
    FIELD(updated_at,  time,        required, 0) \
    FIELD(ended_at,    time,        optional, 0) \
    FIELD(n_turns,     count,       required, 2147483647) \
    FIELD(edges,       array,       optional, WORKFLOW_ROWS_MAX + 1) \
    FIELD(turns,       array,       optional, RUN_TURNS_MAX) \
    FIELD(workflow,    text,        required, WORKFLOW_FILE_MAX)

#define RUN_PENDING_FIELDS(FIELD) \
    FIELD(turn_id, hex,    required, 32) \
    FIELD(target,  text,   optional, RUN_TARGET_MAX) \
    FIELD(summary, text,   optional, RUN_SUMMARY_MAX) \
    FIELD(data,    text,   optional, RUN_DATA_MAX)

#define RUN_ASKED_FIELDS(FIELD) \
    FIELD(request, id,   required, 0) \
    FIELD(by,      id,   required, 0) \
    FIELD(person,  flag, required, 0) \
    FIELD(from,    line, required, RUN_TARGET_MAX) \
    FIELD(target,  line, required, RUN_TARGET_MAX) \
    FIELD(summary, text, required, RUN_SUMMARY_MAX) \
    FIELD(data,    text, required, RUN_DATA_MAX)

#define RUN_EDGE_FIELDS(FIELD) \
    FIELD(name,    id,    required, 0) \
    FIELD(taken,   count, required, 2147483647) \
    FIELD(total,   count, required, 2147483647) \
    FIELD(cost,    count, optional, JSON_INT_MAX) \
    FIELD(time_ms, count, optional, JSON_INT_MAX)

#define RUN_TURN_FIELDS(FIELD) \
    FIELD(no,         count,       required, 2147483647) \
    FIELD(turn_id,    hex,         required, 32) \
    FIELD(epoch,      count,       required, 2147483647) \
    FIELD(task_rev,   count,       required, 2147483647) \
    FIELD(by,         id,          required, 0) \
    FIELD(from,       id_or_empty, required, 0) \
    FIELD(slot,       id,          required, 0) \
    FIELD(role,       role,        required, 0) \
    FIELD(born,       service,     required, 0) \
    FIELD(service,    service,     required, 0) \
    FIELD(attempt,    count,       required, 2147483647) \
    FIELD(state,      word,        required, 16) \
    FIELD(verdict,    word,        optional, 32) \
    FIELD(code,       word,        optional, 32) \
    FIELD(content,    hex,         required, 64) \
    FIELD(digest,     hex,         required, 64) \
    FIELD(cost,       count,       optional, JSON_INT_MAX) \
    FIELD(begun_at,   time,        required, 0) \
    FIELD(claimed_at, time,        optional, 0) \
    FIELD(ended_at,   time,        optional, 0)
/* clang-format on */

#endif
