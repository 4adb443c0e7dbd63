/*
 * Publishing: a turn with an explicit role becomes one signed record in its service's topic.
 *
 * In: cmd_publish.c, publish_api.c, publish_lines.c  Out: common/record/turn.c, common/log/log.c
 *
 * Everything that can be refused is refused before the log is written: request, service, role, key,
 * right, size, log, topic. Repeating a publish with the same idempotency key is harmless.
 * A publisher belongs to one thread at a time.
 */
#ifndef BATON_PRODUCER_PUBLISH_H
#define BATON_PRODUCER_PUBLISH_H

#include "baton/code.h"
#include "common/base/config.h"
#include "common/log/log.h"
#include "common/record/outcome.h"
#include "common/record/turn.h"
#include "common/trace/tracer.h"
#include "producer/identity.h"

#include <stdbool.h>

#define PUBLISH_INTENT "work" /* unless the publisher says something better */
#define PUBLISH_TIMEOUT_MS 10000

struct publisher {
    const struct config *config; /* borrowed */
    struct identity identity;
    struct log *log; /* opened at the first publish */
    struct log_publisher *log_publisher;
    struct tracer *tracer; /* NULL: no traces.endpoint */
};

enum publish_wait {
    PUBLISH_WAIT_none,
    PUBLISH_WAIT_claim, /* a worker of the target has claimed it */
    PUBLISH_WAIT_end,   /* completed, parked or cancelled */
};

struct published; /* below */

struct publish_request {
    const char *service;
    const char *role; /* a word: never guessed, never defaulted */
    const char *task_id;
    int32_t task_rev;
    const char *intent;  /* NULL: PUBLISH_INTENT */
    const char *summary; /* NULL: made from role and task */
    const char *key;     /* NULL: random */
    const char *data;    /* raw JSON object; NULL: {} */
    size_t data_len;
    const char *media_type; /* NULL: by the bytes */
    const void *payload;
    size_t payload_len;
    const char
        *payload_json; /* the payload as a record has it, a raw JSON object, instead; NULL: none */
    size_t payload_json_len;
    const char *place;         /* absolute directory, or NULL */
    struct wall_ms not_before; /* 0: at once */
    struct wall_ms deadline;   /* 0: none but those of the attempts */
    int64_t life_ms;           /* expires so long after now; 0: 7 days */
    const char *traceparent;   /* continues that trace if well-formed; NULL: a new one */
    enum publish_wait wait;
    int64_t timeout_ms; /* of the wait; 0: none beyond the publish itself */
    /* Told once the record is in the log and the wait begins; may be NULL. */
    void (*queued)(void *arg, const struct published *published);
    void *queued_arg;
};

struct published {
    struct turn_id turn_id;
    struct service_id service;
    enum role role;
    char key[KEY_MAX + 1];
    char traceparent[64];
    char trace_parent[17]; /* the span that it is published for; "": it begins the trace */
    int32_t partition;
    int64_t offset;
    bool delivered;          /* a worker of the target claimed it */
    bool answered;           /* deduped is known */
    bool deduped;            /* the log knew the turn already */
    bool timed_out;          /* what was waited for did not come in time */
    struct outcome *outcome; /* the end; NULL: not waited for, or none came */
};
void published_done(struct published *published);

/* Reads identity and trust; nothing of the log yet. */
baton_code publisher_open(const struct config *config, struct publisher *ret_publisher,
                          struct baton_error *err);
void publisher_close(struct publisher *publisher);

/*
 * Publishes, and waits if asked to. BATON_OK: it is in the log (timed_out says whether the wait was
 * in vain). Codes: bad_service, unknown_service, invalid_request, not_permitted, record_too_large,
 * service_unavailable, publish_failed, turn_conflict (the owner knows another turn by this key).
 */
baton_code publisher_publish(struct publisher *publisher, const struct publish_request *request,
                             struct published *ret_published, struct baton_error *err);

/* A turn that nothing speaks against, as far as can be said without the log. */
struct prepared {
    struct published published; /* what is known of it by now */
    struct turn *turn;
};
void prepared_done(struct prepared *prepared);

/*
 * publisher_publish in its parts, for many turns at once (publish_lines.c): all that can be refused
 * without the log; whether a service has its topic in the log, which is opened by the first call
 * (unknown_service, topic_missing, and those of the log); and the records of count turns whose
 * services were looked for, in one call. After a failure any prefix may be in the log, and sending
 * the same again is harmless.
 */
baton_code publisher_prepare(const struct publisher *publisher,
                             const struct publish_request *request, struct prepared *ret_prepared,
                             struct baton_error *err);
baton_code publisher_look(struct publisher *publisher, const char *service,
                          struct baton_error *err);
baton_code publisher_send_all(struct publisher *publisher, struct prepared *list, size_t count,
                              struct baton_error *err);
/* Is a failure about one turn, so that the others may go on, one by one? */
bool publish_of_one(baton_code code);

/* `00-<32 hex>-<16 hex>-<2 hex>`, not all zero? */
bool traceparent_valid(const char *text);

/* publish_trace.c: the publish becomes a span of the given trace, or begins one; and how it went, for who
 * exports. published has the turn's id. */
void publish_trace_begin(const struct publisher *publisher, const char *given,
                         struct published *published);
void publish_trace_end(struct publisher *publisher, const struct turn *turn,
                       const struct published *published, struct wall_ms start, baton_code rc);

struct outcome_watch; /* topics/outcomes.h */
/* publish_wait.c: waits for claim or end of a turn that was published after watch was opened. */
baton_code publish_wait_for(struct outcome_watch *watch, const struct turn *turn,
                            enum publish_wait wait, int64_t timeout_ms, struct published *published,
                            struct baton_error *err);

#endif
