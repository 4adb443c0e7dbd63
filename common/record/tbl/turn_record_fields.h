/*
 * The fields of a record of the turn log, in the order in which they are written.
 *
 * FIELD(name, kind, need, max): kinds and the meaning of max stand in common/record/fields.h. What
 * must be there in which state, turn_record.c says.
 */
#ifndef BATON_RECORD_TBL_TURN_RECORD_FIELDS_H
#define BATON_RECORD_TBL_TURN_RECORD_FIELDS_H

/* clang-format off */
#define TURN_RECORD_FIELDS(FIELD) \
    FIELD(version,     version,     required, 1) \
    FIELD(turn_id,     hex,         required, 32) \
    FIELD(origin,      id,          required, 0) \
    FIELD(service,     service,     required, 0) \
    FIELD(role,        role,        required, 0) \
    FIELD(task_id,     task,        required, 0) \
    FIELD(task_rev,    count,       required, 2147483647) \
    FIELD(run_id,      id_or_empty, required, 0) \
    FIELD(epoch,       count,       required, 2147483647) \
    FIELD(intent,      id,          required, 0) \
    FIELD(digest,      hex,         required, 64) \
    FIELD(content,     hex,         required, 64) \
    FIELD(created_at,  time,        required, 0) \
    FIELD(state,       word,        required, 16) \
    FIELD(attempt,     count,       required, 2147483647) \
    FIELD(failures,    count,       required, 2147483647) \
    FIELD(losses,      count,       required, 2147483647) \
    FIELD(replays,     count,       required, 2147483647) \
    FIELD(since,       count,       required, 2147483647) \
    FIELD(probes,      count,       optional, 2147483647) \
    FIELD(tried,       array,       optional, TURN_TRIED_MAX) \
    FIELD(not_before,  time,        optional, 0) \
    FIELD(delay_ms,    count,       optional, JSON_INT_MAX) \
    FIELD(lease,       object,      optional, 0) \
    FIELD(cost_before, count,       optional, JSON_INT_MAX) \
    FIELD(attempts,    array,       optional, TURN_ATTEMPTS_MAX) \
    FIELD(result,      object,      optional, 0) \
    FIELD(code,        word,        optional, 32) \
    FIELD(to,          object,      optional, 0) \
    FIELD(cancel,      object,      optional, 0) \
    FIELD(wait,        flag,        optional, 0) \
    FIELD(updated_at,  time,        required, 0) \
    FIELD(ended_at,    time,        optional, 0) \
    FIELD(handoff,     text,        optional, LIMIT_VALUE) \
    FIELD(signature,   line,        optional, 256) \
    FIELD(passes,      array,       optional, LIMIT_PASSES) \
    FIELD(traceparent, line,        optional, 64)

#define ATTEMPT_FIELDS(FIELD) \
    FIELD(no,         count,       required, 2147483647) \
    FIELD(service,    service,     required, 0) \
    FIELD(worker,     id,          optional, 0) \
    FIELD(profile,    id,          optional, 0) \
    FIELD(state,      word,        required, 16) \
    FIELD(class,      word,        optional, 32) \
    FIELD(started_at, time,        optional, 0) \
    FIELD(ended_at,   time,        optional, 0) \
    FIELD(note,       text,        optional, 4 * LIMIT_NOTE) \
    FIELD(late,       flag,        optional, 0) \
    FIELD(probe,      flag,        optional, 0) \
    FIELD(usage,      object,      optional, 0)

#define LEASE_FIELDS(FIELD) \
    FIELD(worker, id,  required, 0) \
    FIELD(boot,   hex, required, 32)

#define TO_FIELDS(FIELD) \
    FIELD(service, service, required, 0) \
    FIELD(attempt, count,   required, 2147483647)

#define CANCEL_FIELDS(FIELD) \
    FIELD(by,     id,   optional, 0) \
    FIELD(reason, text, optional, 4 * LIMIT_REASON)
/* clang-format on */

#endif
