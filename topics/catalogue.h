/*
 * The catalogue of topics: every name and every setting. Nothing else builds a
 * topic's name. Any thread.
 */
#ifndef BATON_TOPICS_CATALOGUE_H
#define BATON_TOPICS_CATALOGUE_H

#include "common/base/config.h"
#include "common/log/log.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * TOPIC(kind, "name", of a service?, cleanup, retention_ms, tombstone_ms, record_bytes_max, what it
 * holds) %P is the prefix, %S the service.
 */
/* clang-format off */
#define DAY_MS 86400000LL
#define TOPICS(TOPIC) \
    TOPIC(handoff,      "%P.handoff.%S",     true,  delete,  -1,          0,           512 * 1024,  "handoffs: requests that this service execute a turn") \
    TOPIC(control,      "%P.control.%S",     true,  delete,  -1,          0,           512 * 1024,  "cancel, replay, pause, lease renewals and reports") \
    TOPIC(turns,        "%P.turns.%S",       true,  compact, -1,          14 * DAY_MS, 1024 * 1024, "turn log: the newest state of each turn") \
    TOPIC(dlq,          "dlq.%P.handoff.%S", true,  delete,  30 * DAY_MS, 0,           1024 * 1024, "dead letters of the service") \
    TOPIC(requests,     "%P.requests",       false, delete,  -1,          0,           512 * 1024,  "what people and agents ask of runs") \
    TOPIC(dlq_requests, "dlq.%P.requests",   false, delete,  30 * DAY_MS, 0,           1024 * 1024, "dead letters of requests") \
    TOPIC(outcomes,     "%P.outcomes",       false, delete,  30 * DAY_MS, 0,           1024 * 1024, "what ended, what was claimed, answers") \
    TOPIC(runs,         "%P.runs",           false, compact, -1,          14 * DAY_MS, 1024 * 1024, "run log: the newest state of each run")
/* clang-format on */

#define TOPIC_ENUM(kind, name, of_service, cleanup, retention, tombstone, bytes, text) TOPIC_##kind,
enum topic_kind { TOPICS(TOPIC_ENUM) TOPIC_COUNT };
#undef TOPIC_ENUM

struct topic_name {
    char s[256];
};

/* service is NULL for topics that belong to no service. */
struct topic_name topic_name(enum topic_kind kind, const char *prefix, const char *service);
/* What the names of all services' topics of this kind begin with: `<prefix>.handoff.`. */
struct topic_name topic_name_begin(enum topic_kind kind, const char *prefix);
const char *topic_kind_word(enum topic_kind kind);
/* What a topic holds, for people. */
const char *topic_kind_text(enum topic_kind kind);
bool topic_kind_of_service(enum topic_kind kind);
/* Settings of a topic; ret_topic->name is name (borrowed). */
void topic_settings(enum topic_kind kind, const char *name, int32_t partitions,
                    struct log_topic *ret_topic);

/* The consumer group of a service's workers: <prefix>.worker.<service>. */
struct topic_name group_of_workers(const char *prefix, const char *service);
/* What the groups of all services begin with: `<prefix>.worker.`. */
struct topic_name group_of_workers_begin(const char *prefix);
/* The consumer group of the coordinators: <prefix>.coordinator. */
struct topic_name group_of_coordinators(const char *prefix);
/* What the transactional ids of a group's members begin with: `<group>.`. */
struct topic_name transactional_begin(const char *group);

const char *topic_cleanup_word(enum log_cleanup cleanup);

#define TOPIC_CHANGES_MAX 4
struct topic_change {
    const char *setting;
    char from[40];
    char to[40];
};
/* What altering the topic would change of the interface's settings; what differs of the driver's own
 * stands in found->differs. Returns how many. */
size_t topic_changes(const struct log_topic *wanted, const struct log_topic *found,
                     struct topic_change ret_changes[TOPIC_CHANGES_MAX]);
/* Is what is there what it should be? Otherwise one line says what differs, and how to mend it. */
bool topic_check(const struct log_topic *wanted, const struct log_topic *found, char *ret_text,
                 size_t ret_text_size);
/* A topic that its owner cannot do without: is it there, and made as it must be? topic_missing, with the
 * command that mends it. */
baton_code topic_require(struct log *log, enum topic_kind kind, const char *name,
                         int32_t partitions, struct baton_error *err);

#endif
