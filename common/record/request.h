/*
 * Requests: what people and programs ask of a run, said to the coordinator that owns it (RECORD.md,
 * Requests). Closed JSON, proven like a turn, class `request`; the record's key is the run id.
 *
 * A parsed request owns its texts and is const after it is made: any thread may read it.
 */
#ifndef BATON_RECORD_REQUEST_H
#define BATON_RECORD_REQUEST_H

#include "baton/code.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/base/limits.h"
#include "common/record/tbl/request_fields.h"
#include "common/record/trust.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REQUEST_BYTES_MAX LIMIT_REQUEST
#define REQUEST_NAME_MAX 48                          /* a node or slot of a workflow */
#define REQUEST_SLOT_MAX (2 * REQUEST_NAME_MAX + 1)  /* NODE.SLOT */
#define REQUEST_LIFE_MAX_MS (7LL * 24 * 3600 * 1000) /* appended later than `at` by more: expired */

#define REQUEST_ENUM(word) REQUEST_##word,
enum request_kind { REQUEST_KINDS(REQUEST_ENUM) REQUEST_COUNT };
#undef REQUEST_ENUM

#define ASKER_ENUM(word) REQUEST_ASKER_##word,
enum request_asker { REQUEST_ASKERS(ASKER_ENUM) REQUEST_ASKER_COUNT };
#undef ASKER_ENUM

/* Members that the kind does not hold are NULL, "" or 0. */
struct request {
    enum request_kind kind;
    struct plain_id id; /* random; answers name it */
    struct plain_id run_id;
    int32_t request_no; /* 0 for start, else the run's count of taken requests + 1, as its sender
                           believes: from 1 */
    struct wall_ms at;
    struct plain_id workflow; /* start, down to key; whose name it is, is the coordinator's */
    struct task_id task_id;
    int32_t task_rev;
    char key[KEY_MAX + 1];             /* idempotency key */
    char from[REQUEST_SLOT_MAX + 1];   /* handoff: NODE[.SLOT] */
    char target[REQUEST_SLOT_MAX + 1]; /* handoff: NODE[.SLOT], or "*" */
    char *summary;                     /* start, handoff */
    char *data;                        /* start, handoff: raw JSON object of texts; NULL when it is
                                            written: {} */
    size_t data_len;
    char *payload; /* start: raw JSON object as a turn's payload, or NULL */
    size_t payload_len;
    struct wall_ms deadline;  /* start: of the run; 0: none */
    char *reason;             /* touch, cancel, reopen, answer; NULL: none */
    enum request_asker asker; /* start, handoff; owner_of_key is not written */
};

/* A word of REQUEST_KINDS. */
const char *request_word(enum request_kind kind);
/* Is it for people only (rule S12)? By the kind of the key, and where somebody is there. */
bool request_wants_person(enum request_kind kind);
/* Appends the value. What it was given is not checked: request_parse tells whether it can be read. */
void request_encode(const struct request *request, struct buf *value);
/* Strict JSON, closed schema, body of the kind. Checks no proof, and not that the run id of a start is
 * request_run_id: only its signer's name tells. record_too_large, invalid_envelope, schema_unsupported,
 * no_memory. */
baton_code request_parse(const void *bytes, size_t len, struct request **ret_request,
                         struct baton_error *err);
void request_free(struct request *request);

/* The id of the run that a start asks for: the same fleet, requester (a principal's name) and key are
 * the same run. */
struct plain_id request_run_id(const char *fleet, const char *requester, const char *key);

#endif
