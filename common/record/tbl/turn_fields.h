/*
 * The fields of a turn, the value of a handoff, in the order in which they are written (RECORD.md).
 *
 * FIELD(name, kind, need, max): kinds and the meaning of max stand in common/record/fields.h.
 */
#ifndef BATON_RECORD_TBL_TURN_FIELDS_H
#define BATON_RECORD_TBL_TURN_FIELDS_H

/* clang-format off */
#define TURN_FIELDS(FIELD) \
    FIELD(version,    version,     required, 1) \
    FIELD(turn_id,    hex,         required, 32) \
    FIELD(origin,     id,          required, 0) \
    FIELD(service,    service,     required, 0) \
    FIELD(role,       role,        required, 0) \
    FIELD(task_id,    task,        required, 0) \
    FIELD(task_rev,   count,       required, 2147483647) \
    FIELD(run_id,     id_or_empty, required, 0) \
    FIELD(epoch,      count,       required, 2147483647) \
    FIELD(intent,     id,          required, 0) \
    FIELD(key,        key,         required, 0) \
    FIELD(parent,     id_or_empty, required, 0) \
    FIELD(created_at, time,        required, 0) \
    FIELD(expires_at, time,        required, 0) \
    FIELD(summary,    text,        required, LIMIT_SUMMARY) \
    FIELD(data,       object,      required, LIMIT_DATA_KEYS) \
    FIELD(payload,    object,      required, 0) \
    FIELD(ext,        object,      optional, 0) \
    FIELD(not_before, time,        optional, 0) \
    FIELD(deadline,   time,        optional, 0) \
    FIELD(place,      line,        optional, 1024)
/* clang-format on */

#endif
