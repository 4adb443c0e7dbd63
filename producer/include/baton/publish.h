/*
 * Publishing turns from a program.
 *
 *   struct baton_publisher *publisher;
 *   struct baton_published *published;
 *   struct baton_turn turn = BATON_TURN_INIT;
 *   turn.service = "example";
 *   turn.role = "reviewer";
 *   turn.task_id = "t-41";
 *   if (baton_publisher_open(NULL, &publisher, &err) == BATON_E_ok &&
 *       baton_publish(publisher, &turn, &published, &err) == BATON_E_ok) {
 *       puts(baton_published_turn_id(published));
 *   }
 *
 * A turn is written and signed once, by the identity of the configuration. Publishing it again with
 * the same key is harmless and gives the same turn id. Everything that can be refused is refused
 * before the log is written.
 *
 * A publisher and what it gives belong to one thread at a time. Texts are UTF-8.
 */
#ifndef BATON_PUBLISH_H
#define BATON_PUBLISH_H

#include "baton/code.h"
#include "baton/export.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct baton_publisher;
struct baton_published;

/* What is waited for; numbers never change. */
#define BATON_WAIT_NONE 0  /* returns once the turn is durable in the log */
#define BATON_WAIT_CLAIM 1 /* until a worker of the service has claimed it */
#define BATON_WAIT_END 2   /* until it is completed, parked or cancelled */

/* A turn to be published. Begin with BATON_TURN_INIT; later versions may add members behind. */
struct baton_turn {
    size_t size;         /* sizeof(struct baton_turn), set by BATON_TURN_INIT */
    const char *service; /* must be given */
    const char *role;    /* must be given: "owner", "reviewer" or "arbiter" */
    const char *task_id; /* must be given */
    int32_t task_rev;
    const char *intent;     /* NULL: "work" */
    const char *summary;    /* NULL: made from role and task; else not empty, at most 4096 bytes */
    const char *key;        /* idempotency key; NULL: random */
    const char *data_json;  /* a JSON object; NULL: {} */
    const void *payload;    /* NULL: empty */
    size_t payload_len;     /* turn and payload together: at most 256 KiB */
    const char *media_type; /* NULL: text/plain, or application/octet-stream where it is no text */
    int wait;               /* BATON_WAIT_... */
    int64_t timeout_ms;     /* of the wait */
};

#define BATON_TURN_INIT                                                                            \
    {                                                                                              \
        sizeof(struct baton_turn), NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0,  \
            0                                                                                      \
    }

/*
 * config_path NULL: $BATON_CONFIG, ./baton.yaml, /etc/baton/baton.yaml. Codes: bad_config,
 * key_unsafe, unauthenticated (no private key of the identity), bad_mode.
 */
BATON_API BATON_MUST_USE baton_code baton_publisher_open(const char *config_path,
                                                         struct baton_publisher **ret_publisher,
                                                         struct baton_error *err);
BATON_API void baton_publisher_close(struct baton_publisher *publisher);

/*
 * Publishes a turn. ok: it is in the log, also when the wait was in vain
 * (baton_published_timed_out). Codes: usage, bad_service, unknown_service, invalid_request,
 * not_permitted, record_too_large, turn_conflict, service_unavailable, publish_failed, timed_out
 * (the log did not answer: publish again with the same key).
 */
BATON_API BATON_MUST_USE baton_code baton_publish(struct baton_publisher *publisher,
                                                  const struct baton_turn *turn,
                                                  struct baton_published **ret_published,
                                                  struct baton_error *err);

/* What came of it; texts live as long as the object. */
BATON_API const char *baton_published_turn_id(const struct baton_published *published);
BATON_API const char *baton_published_key(const struct baton_published *published);
/* A worker of the service has claimed the turn (only known to those who wait). */
BATON_API bool baton_published_delivered(const struct baton_published *published);
/* The turn was known before (only known to those who wait). */
BATON_API bool baton_published_deduped(const struct baton_published *published);
BATON_API bool baton_published_timed_out(const struct baton_published *published);
/* The end as a JSON object (event, state, verdict, result, attempt, class, code), or NULL. */
BATON_API const char *baton_published_outcome(const struct baton_published *published);
BATON_API void baton_published_free(struct baton_published *published);

#ifdef __cplusplus
}
#endif

#endif
