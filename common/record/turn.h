/*
 * The turn: the value of a handoff. Written and signed once by its origin; its bytes never change
 * (RECORD.md section 2). Whoever needs the role of a turn reads it here, from verified bytes.
 *
 * A turn owns its bytes and is const after it is made: any thread may read it.
 */
#ifndef BATON_RECORD_TURN_H
#define BATON_RECORD_TURN_H

#include "baton/code.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/base/limits.h"
#include "common/base/role.h"
#include "common/record/json.h"

#define TURN_BYTES_MAX LIMIT_VALUE
#define TURN_LIFE_MAX_MS (7LL * 24 * 3600 * 1000) /* expires_at - created_at at most */

struct turn {
    char *bytes; /* the exact value; a NUL follows that is not part of it */
    size_t len;
    struct digest digest;  /* SHA-256 of the value */
    struct digest content; /* what a repeat must share */

    struct turn_id id;
    struct plain_id origin;
    struct service_id service; /* the first target */
    enum role role;
    verdict_set verdicts; /* with which it may end: the role's, or what the origin leaves of them */
    struct task_id task_id;
    int32_t task_rev;
    struct plain_id run_id; /* "" outside a run */
    int32_t epoch;
    struct plain_id intent;
    char key[KEY_MAX + 1];
    char parent[ID_MAX + 1]; /* "" or a turn id (a run id for a run's first turns) */
    struct wall_ms created_at;
    struct wall_ms expires_at;
    struct wall_ms not_before; /* 0: absent */
    struct wall_ms deadline;   /* 0: absent */
    char *summary;
    char *place;           /* NULL: absent */
    struct json_span data; /* raw JSON object, into bytes */
    struct json_span payload;
    bool payload_by_reference; /* {media_type, ref, sha256, size}: the bytes are elsewhere */
};

/* What a publisher says; the rest (version, id, times) is made by turn_encode. */
struct turn_draft {
    const char *fleet;
    const char *origin;
    const char *service;
    enum role role;
    verdict_set verdicts; /* 0: all of the role */
    const char *task_id;
    int32_t task_rev;
    const char *run_id; /* "" outside a run */
    int32_t epoch;
    const char *intent;
    const char *key;    /* idempotency key */
    const char *parent; /* "" */
    struct wall_ms created_at;
    struct wall_ms expires_at; /* 0: created_at + 7 days */
    struct wall_ms not_before; /* 0: absent */
    struct wall_ms deadline;   /* 0: absent */
    const char *place;         /* NULL: absent */
    const char *summary;
    const char *data; /* raw JSON object; NULL: {} */
    size_t data_len;
    const char *media_type; /* of the payload; NULL: text/plain, or application/octet-stream */
    const char *payload;    /* bytes; text where they are UTF-8 without NUL, else base64 */
    size_t payload_len;
    const char *payload_json; /* a payload that is written already, as a raw JSON object (that of a
                                 request): stands instead of the three above; NULL: none */
    size_t payload_json_len;
};

/*
 * Writes the value of a draft and reads it back through turn_parse, so that nothing is published
 * that a worker would refuse. Errors: those of turn_parse, invalid_request for a draft that has no
 * such form.
 */
baton_code turn_encode(const struct turn_draft *draft, struct turn **ret_turn,
                       struct baton_error *err);

/*
 * Parses a value: strict JSON, closed schema, id = hash of the identity under the fleet. Checks no
 * proof. Errors: record_too_large, invalid_envelope, schema_unsupported, role_unresolved,
 * no_memory.
 */
baton_code turn_parse(const char *fleet, const void *bytes, size_t len, struct turn **ret_turn,
                      struct baton_error *err);
void turn_free(struct turn *turn);

#endif
