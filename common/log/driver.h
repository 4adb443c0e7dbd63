/*
 * What a driver of the log gives: one table of functions, each as log.h declares it.
 *
 * Called by log.c only, which has checked the arguments' shape; the drivers embed the structs below
 * as first member of their own. Threads, memory and codes are those of log.h.
 */
#ifndef BATON_COMMON_LOG_DRIVER_H
#define BATON_COMMON_LOG_DRIVER_H

#include "common/log/log.h"

struct log_driver_ops {
    const char *name;
    bool replaces_keys;    /* see log_replaces_keys */
    int64_t commit_gap_ms; /* see log_commit_gap_ms */
    void (*close)(struct log *log);
    const char *(*cluster)(const struct log *log);
    bool (*time)(struct log *log, struct wall_ms *ret_now);
    bool (*date)(struct log *log, struct wall_ms *ret_now); /* NULL: who appends dates a record */

    baton_code (*topic_describe)(struct log *log, const char *name, struct log_topic *ret_topic,
                                 struct baton_error *err);
    baton_code (*topics_create)(struct log *log, const struct log_topic *topics, size_t count,
                                struct baton_error *err);
    baton_code (*topic_alter)(struct log *log, const struct log_topic *topic,
                              struct baton_error *err);
    baton_code (*topics_list)(struct log *log, const char *prefix, char ***ret_names,
                              size_t *ret_count, struct baton_error *err);
    baton_code (*watermarks)(struct log *log, const char *topic, int32_t partition,
                             int64_t *ret_low, int64_t *ret_high, struct baton_error *err);
    baton_code (*trim)(struct log *log, const char *topic, int32_t partition, int64_t before,
                       struct baton_error *err);

    /* NULL: whoever has the log open may write, and read, all of it */
    baton_code (*may_write)(struct log *log, const char *const *topics, size_t count,
                            struct baton_error *ret_errs, struct baton_error *err);
    baton_code (*may_read)(struct log *log, const char *const *topics, size_t count,
                           struct baton_error *ret_errs, struct baton_error *err);

    baton_code (*publisher_open)(struct log *log, struct log_publisher **ret_publisher,
                                 struct baton_error *err);
    void (*publisher_close)(struct log_publisher *publisher);
    baton_code (*publish)(struct log_publisher *publisher, struct log_record *records, size_t count,
                          int64_t timeout_ms, struct baton_error *err);

    baton_code (*reader_open)(struct log *log, const char *topic, int32_t partition, int64_t from,
                              enum log_isolation isolation, struct log_reader **ret_reader,
                              struct baton_error *err);
    void (*reader_close)(struct log_reader *reader);
    baton_code (*reader_next)(struct log_reader *reader, size_t max, int64_t timeout_ms,
                              struct log_batch *batch, struct baton_error *err);

    baton_code (*member_open)(struct log *log, const struct log_member_spec *spec,
                              struct log_member **ret_member, struct baton_error *err);
    void (*member_close)(struct log_member *member, bool leave_group, int64_t timeout_ms);
    int (*member_fd)(const struct log_member *member);
    baton_code (*member_poll)(struct log_member *member, struct log_event *ret_event,
                              struct baton_error *err);
    baton_code (*member_committed)(struct log_member *member, const int32_t *partitions,
                                   size_t count, int64_t timeout_ms,
                                   int64_t (*ret_offsets)[LOG_PARTITIONS_MAX],
                                   struct baton_error *err);
    baton_code (*member_seek)(struct log_member *member, int input, int32_t partition,
                              int64_t offset, struct baton_error *err);
    baton_code (*member_fetch)(struct log_member *member, int input, int32_t partition, size_t max,
                               size_t bytes_max, struct log_batch *batch, struct baton_error *err);
    int64_t (*member_end)(struct log_member *member, int input, int32_t partition);
    baton_code (*commit)(struct log_member *member, const struct log_txn *txn, int64_t timeout_ms,
                         struct log_commit_result *ret_result, struct baton_error *err);
    baton_code (*member_renew)(struct log_member *member, struct baton_error *err);

    baton_code (*fence)(struct log *log, const char *group, const char *worker,
                        const char *const *topics, size_t n_topics, int64_t timeout_ms,
                        struct baton_error *err);
    bool (*member_died)(struct log *log, const char *boot); /* NULL: it never knows */
    bool (*away)(const struct log *log);                    /* NULL: it never is */
    baton_code (*group_members)(struct log *log, const char *group, int64_t timeout_ms,
                                struct log_group_member **ret_members, size_t *ret_count,
                                struct baton_error *err);
    baton_code (*group_offset)(struct log *log, const char *group, const char *topic,
                               int32_t partition, int64_t *ret_offset, struct baton_error *err);
};

struct log {
    const struct log_driver_ops *ops;
};
struct log_publisher {
    const struct log_driver_ops *ops;
};
struct log_reader {
    const struct log_driver_ops *ops;
};
struct log_member {
    const struct log_driver_ops *ops;
};

/* What log_batch.memory points to begins with this: how to free it. */
struct log_batch_memory {
    void (*free)(struct log_batch_memory *memory);
};

#endif
