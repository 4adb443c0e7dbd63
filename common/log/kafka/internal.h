/*
 * What the files of the Kafka driver share. Nothing outside this folder includes it, and nothing
 * outside this folder includes librdkafka.
 *
 *   open.c        the log: one connection for administration, the identity of the cluster
 *   settings.c    what a client handle is configured with, and what may be passed through
 *   handle.c      handles made, and listened to
 *   farewell.c    handles destroyed, bounded
 *   message.c     batches of consumed messages
 *   admin.c       requests of administration and metadata, with one deadline each
 *   errors.c      one table: what an error of librdkafka or the broker means and what to do
 *   topic*.c      describing, creating, mending; the cache of topics (kafka_topic_of)
 *   trim.c        the ends of partitions, and deleting from their front
 *   publisher.c   records outside of transactions
 *   probe*.c      which topics may be written or read, without either
 *   reader*.c     reading without a group; the clients that readers share
 *   groups.c      what a group looks like from outside
 *   session.c     how long a session may be
 *   member.c      the member of a group: opening, polling, leaving
 *   rebalance.c   what the group gives and takes
 *   queue.c       a partition's own queue: seeking and fetching
 *   producer.c    the transactional producer: made anew, fencing a dead one
 *   deliveries.c  the records of a transaction
 *   hang.c        what a coordinator that was killed leaves open
 *   confirm.c     what was acknowledged is there before more is written
 *   commit.c      one transaction
 */
#ifndef BATON_COMMON_LOG_KAFKA_INTERNAL_H
#define BATON_COMMON_LOG_KAFKA_INTERNAL_H

#include "common/log/driver.h"

#include <librdkafka/rdkafka.h>
#include <stdatomic.h>

struct kafka_log; /* open.c; begins with a struct log */

/* ---- client handles (settings.c, handle.c, farewell.c) ---- */

enum kafka_use {
    KAFKA_USE_admin,     /* metadata, administration, watermarks: reads uncommitted */
    KAFKA_USE_member,    /* consumer of a group */
    KAFKA_USE_reader,    /* consumer without a group */
    KAFKA_USE_txn,       /* transactional producer */
    KAFKA_USE_publisher, /* idempotent producer */
};

/*
 * What a handle's callbacks find as their opaque. It must outlive the handle. `owner` is whoever
 * made the handle (a member's rebalance callback finds the member there).
 */
struct kafka_client {
    struct kafka_log *log;
    enum kafka_use use;
    void *owner;
    /* The last error of the connection, kept by error_cb on the thread that polls: read them with
     * kafka_client_said. */
    atomic_int cause; /* rd_kafka_resp_err_t, 0: none */
    char said[256];   /* its text, cleaned */
    int64_t said_ms;  /* when (monotonic) */
    int64_t heard_ms; /* the last error, also one that says less; 0: none */
    /* A group's member only: the client has given its session up by itself, told by its log. */
    atomic_bool session_over;
};

/*
 * A configuration for that use: everything of the configuration file and of the table of settings,
 * log_cb and error_cb, opaque = client. Names what an owner of a special kind sets itself
 * (transactional.id, group.id, callbacks) are added with kafka_set. NULL with an error.
 */
rd_kafka_conf_t *kafka_conf_new(struct kafka_log *log, struct kafka_client *client,
                                enum kafka_use use, struct baton_error *err);
baton_code kafka_set(rd_kafka_conf_t *conf, const char *name, const char *value,
                     struct baton_error *err);
baton_code kafka_set_int(rd_kafka_conf_t *conf, const char *name, int64_t value,
                         struct baton_error *err);
/* Makes the handle; owns conf, also when it fails. */
baton_code kafka_handle_new(struct kafka_client *client, rd_kafka_conf_t *conf, rd_kafka_t **ret_rk,
                            struct baton_error *err);
/* Destroys a handle in a thread of its own and waits at most timeout_ms for it (farewell.c). False:
 * client and log must stay in memory. */
bool kafka_destroy_bounded(rd_kafka_t *rk, int64_t timeout_ms);
/* Sets log_cb, error_cb and opaque; part of kafka_conf_new. */
void kafka_conf_listen(rd_kafka_conf_t *conf, struct kafka_client *client);
/* What the connection last heard, if that is not long ago: NO_ERROR and "" otherwise. Any thread. */
#define KAFKA_SAID_MS 60000
#define KAFKA_AWAY_MS 6000 /* three tries to reach them */
rd_kafka_resp_err_t kafka_client_said(struct kafka_client *client, char *ret_text, size_t size);
/* Was an error of the connection heard since then (monotonic ms)? Any thread. */
bool kafka_client_troubled(struct kafka_client *client, int64_t since_ms);
/* The brokers have answered: what was heard before is of no interest any more. */
void kafka_client_well(struct kafka_client *client);
/* The log's own handle (KAFKA_USE_admin), for metadata and administration; any thread. */
rd_kafka_t *kafka_admin(struct kafka_log *log);
/* For messages: "127.0.0.1:9092, …" and the principal ("User:name", or "an anonymous client"). */
const char *kafka_brokers(const struct kafka_log *log);
const char *kafka_principal(const struct kafka_log *log);

/*
 * What the brokers take as a session, ms; false where this may not be asked (session.c).
 */
bool kafka_session_bounds(struct kafka_log *log, int64_t *ret_low, int64_t *ret_high);

/* ---- errors (errors.c) ---- */

/*
 * TRIED(id, what was tried, the right that it needs, of what): the words are followed by a name, of
 * that kind. A right that is missing is told by them.
 */
/* clang-format off */
#define KAFKA_TRIED(TRIED) \
    TRIED(connect, "connecting", NULL, "") \
    TRIED(describe, "describing", "Describe", "topic") \
    TRIED(settings, "reading the settings of", "DescribeConfigs", "topic") \
    TRIED(create, "creating", "Create", "topic") \
    TRIED(mend, "mending", "AlterConfigs", "topic") \
    TRIED(trim, "trimming", "Delete", "topic") \
    TRIED(write, "writing to", "Write", "topic") \
    TRIED(read, "reading from", "Read", "topic") \
    TRIED(seek, "seeking in", "Read", "topic") \
    TRIED(open, "opening topic", "Describe", "topic") \
    TRIED(join, "joining group", "Read", "group") \
    TRIED(belong, "being a member of group", "Read", "group") \
    TRIED(group, "describing group", "Describe", "group") \
    TRIED(offsets, "asking for the offsets of group", "Describe", "group") \
    TRIED(move, "committing the offsets of group", "Read", "group") \
    TRIED(take_over, "taking over transactional id", "Write", "transactional id") \
    TRIED(transact, "writing with transactional id", "Write", "transactional id") \
    TRIED(commit, "committing a transaction of", "Write", "transactional id") \
    TRIED(abort, "ending a transaction of", "Write", "transactional id")
/* clang-format on */
#define KAFKA_TRIED_ENUM(id, words, right, kind) KAFKA_TRIED_##id,
enum kafka_tried { KAFKA_TRIED(KAFKA_TRIED_ENUM) KAFKA_TRIED_COUNT };
#undef KAFKA_TRIED_ENUM

/* What the code means to those above: BATON_E_service_unavailable, not_permitted, topic_missing … */
baton_code kafka_code(rd_kafka_resp_err_t cause);
/*
 * Fills *err: what was tried, on what (a topic, group or transactional id; may be NULL), why, and
 * what to do; for a missing right its name, the resource and the principal. Returns the code.
 */
baton_code kafka_fail(struct baton_error *err, const struct kafka_log *log,
                      rd_kafka_resp_err_t cause, enum kafka_tried tried, const char *on);
/* The same for a handle that cannot reach the brokers: what its error_cb last heard says more. */
baton_code kafka_fail_client(struct baton_error *err, const struct kafka_client *client,
                             rd_kafka_resp_err_t cause, enum kafka_tried tried, const char *on);

/* For questions that have no time of the caller's: no answer in time is service_unavailable. */
baton_code kafka_unreachable(baton_code code, struct baton_error *err);

/* ---- requests on the log's own handle (admin.c) ---- */

/* Metadata of one topic, of all (KAFKA_ALL_TOPICS), or of the brokers alone (NULL); asked again until
 * timeout_ms is over. A topic's own error stands in the answer. */
#define KAFKA_ALL_TOPICS "*"
baton_code kafka_metadata(struct kafka_log *log, const char *topic, int64_t timeout_ms,
                          const struct rd_kafka_metadata **ret_metadata, struct baton_error *err);
/* A request of administration: begun, sent by the caller with queue and options, waited for. */
struct kafka_request {
    struct kafka_log *log;
    rd_kafka_t *rk; /* the handle it goes by */
    rd_kafka_queue_t *queue;
    rd_kafka_AdminOptions_t *options;
    int64_t timeout_ms;
};
void kafka_request_begin(struct kafka_log *log, rd_kafka_admin_op_t what, int64_t timeout_ms,
                         struct kafka_request *ret_request);
/* The same by another handle than the log's own. */
void kafka_request_begin_by(struct kafka_log *log, rd_kafka_t *rk, rd_kafka_admin_op_t what,
                            int64_t timeout_ms, struct kafka_request *ret_request);
/* The answer, and the end of the request whatever came; the caller destroys the event. */
baton_code kafka_request_end(struct kafka_request *request, enum kafka_tried tried, const char *on,
                             rd_kafka_event_t **ret_event, struct baton_error *err);
/* The settings of a topic, or of a broker by its number, as the brokers have them; they live in
 * *ret_event, which the caller destroys. */
baton_code kafka_settings_of(struct kafka_log *log, rd_kafka_ResourceType_t type, const char *name,
                             int64_t timeout_ms, rd_kafka_event_t **ret_event,
                             const rd_kafka_ConfigEntry_t ***ret_entries, size_t *ret_count,
                             struct baton_error *err);

/* ---- topics (cache) ---- */

struct kafka_topic {
    int32_t partitions;
    size_t record_bytes_max; /* max.message.bytes; 0: not known (no right to read it) */
};
/*
 * What is known of a topic, asked of the broker if it is not known yet (or was missing more than a
 * second ago). topic_missing, not_permitted, service_unavailable, timed_out. Any thread.
 */
baton_code kafka_topic_of(struct kafka_log *log, const char *name, int64_t timeout_ms,
                          struct kafka_topic *ret_topic, struct baton_error *err);
/* The same for who tries something else than describing: a refusal is about the right to that. */
baton_code kafka_topic_for(struct kafka_log *log, const char *name, enum kafka_tried tried,
                           int64_t timeout_ms, struct kafka_topic *ret_topic,
                           struct baton_error *err);
/* ok, or topic_missing where the topic has no such partition, and the codes of kafka_topic_for. */
baton_code kafka_partition_for(struct kafka_log *log, const char *name, int32_t partition,
                               enum kafka_tried tried, int64_t timeout_ms, struct baton_error *err);
/* Forgets it: a write said that it is gone or different. */
void kafka_topic_forget(struct kafka_log *log, const char *name);
/*
 * Judges a record before it is sent: too many headers, no key on a compacted topic is the broker's
 * to say, larger than the topic takes. Sets record->partition where it goes by key.
 */
baton_code kafka_record_check(struct kafka_log *log, struct log_record *record, int64_t timeout_ms,
                              struct baton_error *err);
/* Hands a record that was checked to a producer, with a copy of its bytes; the delivery report has
 * the opaque. _QUEUE_FULL is the caller's to wait for. */
rd_kafka_resp_err_t kafka_produce(rd_kafka_t *rk, const struct log_record *record, void *opaque);

/* Low mark and end of a partition, the end as the handle's isolation sees it; asked again while that
 * can help (trim.c). ret_low may be NULL. */
rd_kafka_resp_err_t kafka_ends(rd_kafka_t *rk, const char *topic, int32_t partition,
                               int64_t timeout_ms, int64_t *ret_low, int64_t *ret_end);

/* ---- batches of consumed messages (message.c) ---- */

/* Key of a record without value that only carries a marker (hang.c): readers are not given it. */
#define KAFKA_NOTE_KEY "~"

/*
 * Appends a copy of the message to a batch that batch_begin (common/log/batch.h) has emptied. The
 * message stays the caller's: one that is kept holds its partition, and destroying the handle then
 * waits for ever. False: no memory.
 */
bool kafka_batch_add(struct log_batch *batch, const rd_kafka_message_t *message);
/* When the brokers appended a record that they have acknowledged, and what log_time goes by; 0: they
 * did not say. */
struct wall_ms kafka_dated(struct kafka_log *log, const rd_kafka_message_t *message);

/* ---- the functions of the table, by file ---- */

baton_code kafka_topic_describe(struct log *log, const char *name, struct log_topic *ret_topic,
                                struct baton_error *err);
baton_code kafka_topics_create(struct log *log, const struct log_topic *topics, size_t count,
                               struct baton_error *err);
baton_code kafka_topic_alter(struct log *log, const struct log_topic *topic,
                             struct baton_error *err);
baton_code kafka_topics_list(struct log *log, const char *prefix, char ***ret_names,
                             size_t *ret_count, struct baton_error *err);
baton_code kafka_watermarks(struct log *log, const char *topic, int32_t partition, int64_t *ret_low,
                            int64_t *ret_high, struct baton_error *err);
baton_code kafka_trim(struct log *log, const char *topic, int32_t partition, int64_t before,
                      struct baton_error *err);

baton_code kafka_may_write(struct log *log, const char *const *topics, size_t count,
                           struct baton_error *ret_errs, struct baton_error *err);
baton_code kafka_may_read(struct log *log, const char *const *topics, size_t count,
                          struct baton_error *ret_errs, struct baton_error *err);
baton_code kafka_publisher_open(struct log *log, struct log_publisher **ret_publisher,
                                struct baton_error *err);
void kafka_publisher_close(struct log_publisher *publisher);
baton_code kafka_publish(struct log_publisher *publisher, struct log_record *records, size_t count,
                         int64_t timeout_ms, struct baton_error *err);

baton_code kafka_reader_open(struct log *log, const char *topic, int32_t partition, int64_t from,
                             enum log_isolation isolation, struct log_reader **ret_reader,
                             struct baton_error *err);
void kafka_reader_close(struct log_reader *reader);
baton_code kafka_reader_next(struct log_reader *reader, size_t max, int64_t timeout_ms,
                             struct log_batch *batch, struct baton_error *err);

baton_code kafka_group_members(struct log *log, const char *group, int64_t timeout_ms,
                               struct log_group_member **ret_members, size_t *ret_count,
                               struct baton_error *err);
baton_code kafka_group_offset(struct log *log, const char *group, const char *topic,
                              int32_t partition, int64_t *ret_offset, struct baton_error *err);

baton_code kafka_member_open(struct log *log, const struct log_member_spec *spec,
                             struct log_member **ret_member, struct baton_error *err);
void kafka_member_close(struct log_member *member, bool leave_group, int64_t timeout_ms);
int kafka_member_fd(const struct log_member *member);
baton_code kafka_member_poll(struct log_member *member, struct log_event *ret_event,
                             struct baton_error *err);
baton_code kafka_member_committed(struct log_member *member, const int32_t *partitions,
                                  size_t count, int64_t timeout_ms,
                                  int64_t (*ret_offsets)[LOG_PARTITIONS_MAX],
                                  struct baton_error *err);
baton_code kafka_member_seek(struct log_member *member, int input, int32_t partition,
                             int64_t offset, struct baton_error *err);
baton_code kafka_member_fetch(struct log_member *member, int input, int32_t partition, size_t max,
                              size_t bytes_max, struct log_batch *batch, struct baton_error *err);
int64_t kafka_member_end(struct log_member *member, int input, int32_t partition);
bool kafka_away(const struct log *log);
baton_code kafka_commit(struct log_member *member, const struct log_txn *txn, int64_t timeout_ms,
                        struct log_commit_result *ret_result, struct baton_error *err);
baton_code kafka_member_renew(struct log_member *member, struct baton_error *err);
baton_code kafka_fence(struct log *log, const char *group, const char *worker,
                       const char *const *topics, size_t n_topics, int64_t timeout_ms,
                       struct baton_error *err);

#endif
