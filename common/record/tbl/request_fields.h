/*
 * The fields of a request and of its body, in the order in which they are written, and what the body of
 * each kind holds.
 *
 * REQUEST_FIELDS(FIELD), REQUEST_BODY_FIELDS(FIELD): kinds and the meaning of max stand in
 * common/record/fields.h.
 * REQUEST_HOLDS(HOLDS): HOLDS(kind, must, may) - names in the body.
 */
#ifndef BATON_RECORD_TBL_REQUEST_FIELDS_H
#define BATON_RECORD_TBL_REQUEST_FIELDS_H

/* clang-format off */
/* Who asks with the key, as the asking process says it of itself: it lowers what the key may, never raises
 * it. `agent`: an agent does; `confirmed`: an agent does, and a person has said yes. */
#define REQUEST_ASKERS(ASKER) \
    ASKER(owner_of_key) \
    ASKER(agent) \
    ASKER(confirmed)

#define REQUEST_FIELDS(FIELD) \
    FIELD(version,    version, required, 1) \
    FIELD(kind,       word,    required, 16) \
    FIELD(id,         id,      required, 0) \
    FIELD(run_id,     id,      required, 0) \
    FIELD(request_no, count,   required, 2147483647) \
    FIELD(at,         time,    required, 0) \
    FIELD(body,       object,  required, 0)

#define REQUEST_BODY_FIELDS(FIELD) \
    FIELD(workflow, id,     optional, 0) \
    FIELD(task_id,  task,   optional, 0) \
    FIELD(task_rev, count,  optional, 2147483647) \
    FIELD(key,      key,    optional, 0) \
    FIELD(from,     line,   optional, REQUEST_SLOT_MAX) \
    FIELD(target,   line,   optional, REQUEST_SLOT_MAX) \
    FIELD(summary,  text,   optional, LIMIT_SUMMARY) \
    FIELD(data,     object, optional, LIMIT_DATA_KEYS) \
    FIELD(payload,  object, optional, 0) \
    FIELD(deadline, time,   optional, 0) \
    FIELD(reason,   text,   optional, LIMIT_REASON) \
    FIELD(asker,    word,   optional, 16)

#define REQUEST_HOLDS(HOLDS) \
    HOLDS(start,   "workflow task_id task_rev key summary data", "payload deadline asker") \
    HOLDS(handoff, "from target summary data",                   "asker") \
    HOLDS(touch,   "",                                           "reason") \
    HOLDS(cancel,  "",                                           "reason") \
    HOLDS(reopen,  "reason",                                     "") \
    HOLDS(answer,  "",                                           "reason")
/* clang-format on */

#endif
