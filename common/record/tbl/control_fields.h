/*
 * The fields of a control record, in the order in which they are written, and what each kind holds.
 *
 * CONTROL_FIELDS(FIELD): kinds and the meaning of max stand in common/record/fields.h.
 * CONTROL_HOLDS(HOLDS): HOLDS(kind, must, may) - names beside version, kind, id and at.
 */
#ifndef BATON_RECORD_TBL_CONTROL_FIELDS_H
#define BATON_RECORD_TBL_CONTROL_FIELDS_H

/* clang-format off */
#define CONTROL_FIELDS(FIELD) \
    FIELD(version, version, required, 1) \
    FIELD(kind,    word,    required, 16) \
    FIELD(id,      id,      required, 0) \
    FIELD(turn_id, hex,     optional, 32) \
    FIELD(at,      time,    required, 0) \
    FIELD(reason,  text,    optional, LIMIT_REASON) \
    FIELD(attempt, count,   optional, 2147483647) \
    FIELD(to,      service, optional, 0) \
    FIELD(again,   flag,    optional, 0) \
    FIELD(boot,    hex,     optional, 32) \
    FIELD(seq,     count,   optional, JSON_INT_MAX) \
    FIELD(class,   word,    optional, 32) \
    FIELD(result,  object,  optional, 0) \
    FIELD(usage,   object,  optional, 0) \
    FIELD(profile, id,      optional, 0)

#define CONTROL_HOLDS(HOLDS) \
    HOLDS(cancel, "turn_id",                  "reason") \
    HOLDS(replay, "turn_id attempt",          "to again") \
    HOLDS(renew,  "turn_id attempt boot seq", "") \
    HOLDS(report, "turn_id attempt boot",     "class result usage") \
    HOLDS(pause,  "",                         "reason") \
    HOLDS(resume, "",                         "reason") \
    HOLDS(clear,  "",                         "profile reason")
/* clang-format on */

#endif
