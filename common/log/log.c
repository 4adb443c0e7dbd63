/*
 * The log's front: opens the driver that the configuration names and hands every call to it.
 *
 * In: everything above the log (engine, topics, producer, worker). Out: local/open.c,
 * kafka/open.c.
 */
#include "common/log/log.h"

#include "common/base/check.h"
#include "common/base/config.h"
#include "common/log/driver.h"
#include "common/log/kafka/kafka.h"
#include "common/log/local/local.h"

#include <stdio.h>
#include <stdlib.h>

baton_code log_settings_check(const struct config *config, struct buf *findings,
                              struct baton_error *err)
{
    switch (config->log) {
    case LOG_KIND_local:
        break;
    case LOG_KIND_kafka:
        return kafka_settings_check(config, findings, err);
    }
    return BATON_OK;
}

baton_code log_open(const struct config *config, struct log **ret_log, struct baton_error *err)
{
    baton_code rc = log_settings_check(config, NULL, err);
    if (rc != BATON_OK) {
        return rc;
    }
    switch (config->log) {
    case LOG_KIND_local:
        rc = local_log_open(config->local_path, ret_log, err);
        break;
    case LOG_KIND_kafka:
        rc = kafka_log_open(config, ret_log, err);
        break;
    }
    return rc;
}

baton_code log_create(const struct config *config, struct baton_error *err)
{
    switch (config->log) {
    case LOG_KIND_local:
        return local_log_create(config->local_path, err);
    case LOG_KIND_kafka:
        break; /* a cluster is there already; its topics are all that is made */
    }
    return BATON_OK;
}

void log_close(struct log *log)
{
    if (log != NULL) {
        log->ops->close(log);
    }
}

bool log_versions(char *text, size_t size)
{
    bool old_local = false;
    bool old_kafka = false;
    const char *local = local_log_version(&old_local);
    const char *kafka = kafka_log_version(&old_kafka);
    snprintf(text, size, "SQLite %s%s, librdkafka %s%s", local, old_local ? " (older)" : "", kafka,
             old_kafka ? " (older)" : "");
    return old_local || old_kafka;
}

const char *log_driver(const struct log *log)
{
    return log->ops->name;
}

bool log_replaces_keys(const struct log *log)
{
    return log->ops->replaces_keys;
}

int64_t log_commit_gap_ms(const struct log *log)
{
    return log->ops->commit_gap_ms;
}

const char *log_cluster(const struct log *log)
{
    return log->ops->cluster(log);
}

bool log_time(struct log *log, struct wall_ms *ret_now)
{
    return log->ops->time(log, ret_now);
}

struct wall_ms log_date(struct log *log)
{
    struct wall_ms now = {0};
    return log->ops->date != NULL && log->ops->date(log, &now) ? now : wall_now();
}

baton_code log_topic_describe(struct log *log, const char *name, struct log_topic *ret_topic,
                              struct baton_error *err)
{
    return log->ops->topic_describe(log, name, ret_topic, err);
}

baton_code log_topics_create(struct log *log, const struct log_topic *topics, size_t count,
                             struct baton_error *err)
{
    return log->ops->topics_create(log, topics, count, err);
}

baton_code log_topic_alter(struct log *log, const struct log_topic *topic, struct baton_error *err)
{
    return log->ops->topic_alter(log, topic, err);
}

baton_code log_topics_list(struct log *log, const char *prefix, char ***ret_names,
                           size_t *ret_count, struct baton_error *err)
{
    return log->ops->topics_list(log, prefix, ret_names, ret_count, err);
}

void log_names_free(char **names, size_t count)
{
    for (size_t i = 0; names != NULL && i < count; i++) {
        free(names[i]);
    }
    free(names);
}

baton_code log_watermarks(struct log *log, const char *topic, int32_t partition, int64_t *ret_low,
                          int64_t *ret_high, struct baton_error *err)
{
    return log->ops->watermarks(log, topic, partition, ret_low, ret_high, err);
}

baton_code log_trim(struct log *log, const char *topic, int32_t partition, int64_t before,
                    struct baton_error *err)
{
    return log->ops->trim(log, topic, partition, before, err);
}

/* Where nobody is refused anything: is it there? */
static void find_each(struct log *log, const char *const *topics, size_t count,
                      struct baton_error *errs)
{
    for (size_t i = 0; i < count; i++) {
        struct log_topic found;
        errs[i] = (struct baton_error){BATON_OK, ""};
        (void)log->ops->topic_describe(log, topics[i], &found, &errs[i]); /* an answer */
    }
}

baton_code log_may_write(struct log *log, const char *const *topics, size_t count,
                         struct baton_error *ret_errs, struct baton_error *err)
{
    if (log->ops->may_write != NULL) {
        return log->ops->may_write(log, topics, count, ret_errs, err);
    }
    find_each(log, topics, count, ret_errs);
    return BATON_OK;
}

baton_code log_may_read(struct log *log, const char *const *topics, size_t count,
                        struct baton_error *ret_errs, struct baton_error *err)
{
    if (log->ops->may_read != NULL) {
        return log->ops->may_read(log, topics, count, ret_errs, err);
    }
    find_each(log, topics, count, ret_errs);
    return BATON_OK;
}

baton_code log_publisher_open(struct log *log, struct log_publisher **ret_publisher,
                              struct baton_error *err)
{
    return log->ops->publisher_open(log, ret_publisher, err);
}

void log_publisher_close(struct log_publisher *publisher)
{
    if (publisher != NULL) {
        publisher->ops->publisher_close(publisher);
    }
}

baton_code log_publish(struct log_publisher *publisher, struct log_record *records, size_t count,
                       int64_t timeout_ms, struct baton_error *err)
{
    if (count == 0) {
        return BATON_OK;
    }
    return publisher->ops->publish(publisher, records, count, timeout_ms, err);
}

baton_code log_reader_open(struct log *log, const char *topic, int32_t partition, int64_t from,
                           enum log_isolation isolation, struct log_reader **ret_reader,
                           struct baton_error *err)
{
    return log->ops->reader_open(log, topic, partition, from, isolation, ret_reader, err);
}

void log_reader_close(struct log_reader *reader)
{
    if (reader != NULL) {
        reader->ops->reader_close(reader);
    }
}

baton_code log_reader_next(struct log_reader *reader, size_t max, int64_t timeout_ms,
                           struct log_batch *batch, struct baton_error *err)
{
    BATON_PRE(max > 0);
    return reader->ops->reader_next(reader, max, timeout_ms, batch, err);
}

baton_code log_member_open(struct log *log, const struct log_member_spec *spec,
                           struct log_member **ret_member, struct baton_error *err)
{
    return log->ops->member_open(log, spec, ret_member, err);
}

void log_member_close(struct log_member *member, bool leave_group, int64_t timeout_ms)
{
    if (member != NULL) {
        member->ops->member_close(member, leave_group, timeout_ms);
    }
}

int log_member_fd(const struct log_member *member)
{
    return member->ops->member_fd(member);
}

baton_code log_member_poll(struct log_member *member, struct log_event *ret_event,
                           struct baton_error *err)
{
    return member->ops->member_poll(member, ret_event, err);
}

baton_code log_member_committed(struct log_member *member, const int32_t *partitions, size_t count,
                                int64_t timeout_ms, int64_t (*ret_offsets)[LOG_PARTITIONS_MAX],
                                struct baton_error *err)
{
    BATON_PRE(count <= LOG_PARTITIONS_MAX);
    return member->ops->member_committed(member, partitions, count, timeout_ms, ret_offsets, err);
}

baton_code log_member_seek(struct log_member *member, int input, int32_t partition, int64_t offset,
                           struct baton_error *err)
{
    BATON_PRE(input >= 0 && input < LOG_INPUTS);
    return member->ops->member_seek(member, input, partition, offset, err);
}

baton_code log_member_fetch(struct log_member *member, int input, int32_t partition, size_t max,
                            size_t bytes_max, struct log_batch *batch, struct baton_error *err)
{
    BATON_PRE(input >= 0 && input < LOG_INPUTS && max > 0);
    return member->ops->member_fetch(member, input, partition, max, bytes_max, batch, err);
}

int64_t log_member_end(struct log_member *member, int input, int32_t partition)
{
    BATON_PRE(input >= 0 && input < LOG_INPUTS);
    return member->ops->member_end(member, input, partition);
}

baton_code log_commit(struct log_member *member, const struct log_txn *txn, int64_t timeout_ms,
                      struct log_commit_result *ret_result, struct baton_error *err)
{
    BATON_PRE(txn->n_offsets > 0); /* rule 12: without an offset nothing fences a stale owner */
    return member->ops->commit(member, txn, timeout_ms, ret_result, err);
}

baton_code log_member_renew(struct log_member *member, struct baton_error *err)
{
    return member->ops->member_renew(member, err);
}

baton_code log_fence(struct log *log, const char *group, const char *worker,
                     const char *const *topics, size_t n_topics, int64_t timeout_ms,
                     struct baton_error *err)
{
    return log->ops->fence(log, group, worker, topics, n_topics, timeout_ms, err);
}

bool log_member_died(struct log *log, const char *boot)
{
    return log->ops->member_died != NULL && log->ops->member_died(log, boot);
}

bool log_away(const struct log *log)
{
    return log->ops->away != NULL && log->ops->away(log);
}

baton_code log_group_members(struct log *log, const char *group,
                             struct log_group_member **ret_members, size_t *ret_count,
                             struct baton_error *err)
{
    return log_group_members_within(log, group, LOG_GROUP_MS, ret_members, ret_count, err);
}

baton_code log_group_members_within(struct log *log, const char *group, int64_t timeout_ms,
                                    struct log_group_member **ret_members, size_t *ret_count,
                                    struct baton_error *err)
{
    return log->ops->group_members(log, group, timeout_ms, ret_members, ret_count, err);
}

baton_code log_group_offset(struct log *log, const char *group, const char *topic,
                            int32_t partition, int64_t *ret_offset, struct baton_error *err)
{
    return log->ops->group_offset(log, group, topic, partition, ret_offset, err);
}
