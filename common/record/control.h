/*
 * Control records: what operators, origins and lease holders say to the owner of a turn
 * (RECORD.md section 2). Closed JSON, proven like a turn, class `control`.
 */
#ifndef BATON_RECORD_CONTROL_H
#define BATON_RECORD_CONTROL_H

#include "baton/code.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/failure.h"
#include "common/base/id.h"

#include <stdbool.h>

/* CONTROL(word): every kind, one list. */
#define CONTROLS(CONTROL)                                                                          \
    CONTROL(cancel)                                                                                \
    CONTROL(replay)                                                                                \
    CONTROL(renew)                                                                                 \
    CONTROL(report)                                                                                \
    CONTROL(pause)                                                                                 \
    CONTROL(resume)                                                                                \
    CONTROL(clear)

#define CONTROL_ENUM(word) CONTROL_##word,
enum control_kind { CONTROLS(CONTROL_ENUM) CONTROL_COUNT };
#undef CONTROL_ENUM

struct control {
    enum control_kind kind;
    struct plain_id id;     /* random; answers name it */
    struct turn_id turn_id; /* "" for pause, resume and clear */
    struct wall_ms at;
    char *reason;         /* cancel, pause, resume, clear */
    int attempt;          /* replay, renew, report */
    struct service_id to; /* replay: "" unless it goes to another service */
    bool again;           /* replay: lifts budget and loop guard */
    struct boot_id boot;  /* renew, report */
    int64_t seq;          /* renew */
    bool failed;          /* report: class is set */
    enum failure class;   /* report of a failure */
    char *result;         /* report: raw JSON object of the result, or NULL */
    size_t result_len;
    char *usage;             /* report: what the attempt took, as JSON; NULL: not told */
    struct plain_id profile; /* clear: the credential profile; "": every one */
};

const char *control_word(enum control_kind kind);
/* The key of kinds that are about a whole service, one record to each partition by its number; NULL: the
 * kind is about a turn, whose id is the key. */
const char *control_service_key(enum control_kind kind);
/* Appends the value. */
void control_encode(const struct control *control, struct buf *value);
/* invalid_envelope, schema_unsupported, no_memory. */
baton_code control_parse(const void *bytes, size_t len, struct control **ret_control,
                         struct baton_error *err);
void control_free(struct control *control);

#endif
