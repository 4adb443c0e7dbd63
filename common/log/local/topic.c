/* Topics and partitions: provisioning, watermarks, trimming. Called by
 * common/log/log.c, append.c, read.c and member.c.
 */
#include "common/log/local/internal.h"
#include "common/log/local/queries.h"

#include "common/base/check.h"

#include <stdlib.h>
#include <string.h>

#define TRIM_ROWS 5000 /* of one transaction: others get their turn in between */

static const char *const cleanup_words[] = {"delete", "compact"};

bool local_name_valid(const char *name)
{
    size_t len = strlen(name);
    return len > 0 && len <= LOCAL_NAME_MAX && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == len;
}

baton_code local_topic_find(struct local_conn *conn, const char *name,
                            struct local_topic *ret_topic, struct baton_error *err)
{
    struct stmt stmt = db_stmt(&conn->db, TOPIC_FIND);
    bool row = false;
    stmt_text(&stmt, ":name", name);
    baton_code rc = stmt_step(&stmt, &row, err);
    if (rc != BATON_OK) {
        return rc;
    }
    if (!row) {
        return baton_fail(err, BATON_E_topic_missing,
                          "topic %s is not there: `baton topics apply` makes what is missing",
                          name);
    }
    *ret_topic = (struct local_topic){
        .id = stmt_get_int(&stmt, 0),
        .first_part = stmt_get_int(&stmt, 2),
        .about = {.name = name,
                  .partitions = (int32_t)stmt_get_int(&stmt, 1),
                  .cleanup = strcmp(stmt_get_text(&stmt, 3), "compact") == 0 ? LOG_CLEANUP_compact
                                                                             : LOG_CLEANUP_delete,
                  .retention_ms = stmt_get_int(&stmt, 4),
                  .tombstone_ms = stmt_get_int(&stmt, 5),
                  .record_bytes_max = (size_t)stmt_get_int(&stmt, 6),
                  .copies = 1}};
    stmt_reset(&stmt);
    return BATON_OK;
}

baton_code local_part_find(struct local_conn *conn, const char *topic, int32_t partition,
                           int64_t *ret_part, struct baton_error *err)
{
    struct local_topic found;
    baton_code rc = local_topic_find(conn, topic, &found, err);
    if (rc != BATON_OK) {
        return rc;
    }
    if (partition < 0 || partition >= found.about.partitions) {
        return baton_fail(err, BATON_E_topic_missing, "topic %s has %d partitions and no number %d",
                          topic, found.about.partitions, partition);
    }
    *ret_part = found.first_part + partition;
    return BATON_OK;
}

baton_code local_part_marks(struct local_conn *conn, int64_t part, int64_t *ret_low,
                            int64_t *ret_next, struct baton_error *err)
{
    struct stmt stmt = db_stmt(&conn->db, PART_MARKS);
    bool row = false;
    stmt_int(&stmt, ":part", part);
    baton_code rc = stmt_step(&stmt, &row, err);
    if (rc != BATON_OK) {
        return rc;
    }
    if (!row) {
        return baton_fail(err, BATON_E_store_failed, "%s: partition %lld has no row in table part",
                          conn->log->path, (long long)part);
    }
    *ret_low = stmt_get_int(&stmt, 0);
    *ret_next = stmt_get_int(&stmt, 1);
    stmt_reset(&stmt);
    return BATON_OK;
}

baton_code local_topic_describe(struct log *base, const char *name, struct log_topic *ret_topic,
                                struct baton_error *err)
{
    struct local_conn *conn = NULL;
    struct local_topic topic;
    baton_code rc = local_conn_take((struct local_log *)base, &conn, err);
    if (rc == BATON_OK && (rc = local_topic_find(conn, name, &topic, err)) == BATON_OK) {
        *ret_topic = topic.about;
    }
    local_conn_give(conn);
    return rc;
}

static baton_code check_topic(const struct log_topic *topic, struct baton_error *err)
{
    if (!local_name_valid(topic->name)) {
        return baton_fail(err, BATON_E_invalid_request,
                          "topic name `%.100s`: letters, digits, '.', '_' and '-', at most %d of "
                          "them",
                          topic->name, LOCAL_NAME_MAX);
    }
    if (topic->partitions < 1 || topic->partitions > LOG_PARTITIONS_MAX) {
        return baton_fail(err, BATON_E_invalid_request,
                          "topic %s: %d partitions; 1 to %d are possible", topic->name,
                          topic->partitions, LOG_PARTITIONS_MAX);
    }
    if (topic->retention_ms < -1 || topic->tombstone_ms < 0 || topic->record_bytes_max == 0 ||
        topic->record_bytes_max > INT32_MAX) {
        return baton_fail(
            err, BATON_E_invalid_request,
            "topic %s: retention %lld ms, tombstones %lld ms, records of %zu bytes: out "
            "of range",
            topic->name, (long long)topic->retention_ms, (long long)topic->tombstone_ms,
            topic->record_bytes_max);
    }
    return BATON_OK;
}

static void bind_settings(struct stmt *stmt, const struct log_topic *topic)
{
    stmt_text(stmt, ":cleanup", cleanup_words[topic->cleanup]);
    stmt_int(stmt, ":retention", topic->retention_ms);
    stmt_int(stmt, ":tombstone", topic->tombstone_ms);
    stmt_int(stmt, ":bytes", (int64_t)topic->record_bytes_max);
}

static baton_code topic_add(struct local_conn *conn, const struct log_topic *topic,
                            struct baton_error *err)
{
    struct local_topic made;
    baton_code rc = local_topic_find(conn, topic->name, &made, NULL);
    if (rc == BATON_OK) {
        return BATON_OK;
    }
    if (rc != BATON_E_topic_missing) {
        return local_topic_find(conn, topic->name, &made, err);
    }
    struct stmt stmt = db_stmt(&conn->db, TOPIC_ADD);
    stmt_text(&stmt, ":name", topic->name);
    stmt_int(&stmt, ":partitions", topic->partitions);
    bind_settings(&stmt, topic);
    if ((rc = stmt_run(&stmt, NULL, err)) != BATON_OK ||
        (rc = local_topic_find(conn, topic->name, &made, err)) != BATON_OK) {
        return rc;
    }
    for (int32_t no = 0; rc == BATON_OK && no < topic->partitions; no++) {
        stmt = db_stmt(&conn->db, PART_ADD);
        stmt_int(&stmt, ":id", made.first_part + no);
        stmt_int(&stmt, ":topic", made.id);
        stmt_int(&stmt, ":no", no);
        rc = stmt_run(&stmt, NULL, err);
    }
    return rc;
}

baton_code local_topics_create(struct log *base, const struct log_topic *topics, size_t count,
                               struct baton_error *err)
{
    struct local_conn *conn = NULL;
    baton_code rc = BATON_OK;
    for (size_t i = 0; rc == BATON_OK && i < count; i++) {
        rc = check_topic(&topics[i], err);
    }
    if (rc != BATON_OK ||
        (rc = local_conn_take((struct local_log *)base, &conn, err)) != BATON_OK) {
        return rc;
    }
    if ((rc = local_begin(conn, LOCAL_WAIT_MS, err)) == BATON_OK) {
        for (size_t i = 0; rc == BATON_OK && i < count; i++) {
            rc = topic_add(conn, &topics[i], err);
        }
        if (rc == BATON_OK) {
            rc = local_commit(conn, NULL, err);
        } else {
            local_rollback(conn);
        }
    }
    local_conn_give(conn);
    return rc;
}

/* Runs one of the statements over a partition's records. */
static baton_code run_over(struct local_conn *conn, int number, int64_t part, bool bind_part,
                           struct baton_error *err)
{
    struct stmt stmt = db_stmt(&conn->db, number);
    stmt_int(&stmt, ":from", local_record_id(part, 0));
    stmt_int(&stmt, ":end", local_record_id(part + 1, 0));
    if (bind_part) {
        stmt_int(&stmt, ":part", part);
    }
    return stmt_run(&stmt, NULL, err);
}

/* Another cleanup: the records that are there are brought under it. */
static baton_code change_cleanup(struct local_conn *conn, const struct local_topic *topic,
                                 enum log_cleanup cleanup, struct baton_error *err)
{
    baton_code rc = BATON_OK;
    for (int32_t no = 0; rc == BATON_OK && no < topic->about.partitions; no++) {
        int64_t part = topic->first_part + no;
        switch (cleanup) {
        case LOG_CLEANUP_compact:
            if ((rc = run_over(conn, COMPACT_DROP_OLDER, part, false, err)) == BATON_OK) {
                rc = run_over(conn, COMPACT_SET, part, true, err);
            }
            break;
        case LOG_CLEANUP_delete:
            rc = run_over(conn, COMPACT_UNSET, part, false, err);
            break;
        }
    }
    return rc;
}

static baton_code topic_alter(struct local_conn *conn, const struct log_topic *wanted,
                              struct baton_error *err)
{
    struct local_topic topic;
    baton_code rc = local_topic_find(conn, wanted->name, &topic, err);
    if (rc != BATON_OK) {
        return rc;
    }
    if (wanted->partitions != topic.about.partitions) {
        return baton_fail(
            err, BATON_E_invalid_request,
            "topic %s has %d partitions, not %d: their number is fixed when a topic is "
            "made, since keys would move",
            wanted->name, topic.about.partitions, wanted->partitions);
    }
    if (wanted->cleanup != topic.about.cleanup &&
        (rc = change_cleanup(conn, &topic, wanted->cleanup, err)) != BATON_OK) {
        return rc;
    }
    struct stmt stmt = db_stmt(&conn->db, TOPIC_ALTER);
    stmt_int(&stmt, ":id", topic.id);
    bind_settings(&stmt, wanted);
    return stmt_run(&stmt, NULL, err);
}

baton_code local_topic_alter(struct log *base, const struct log_topic *topic,
                             struct baton_error *err)
{
    struct local_conn *conn = NULL;
    baton_code rc = check_topic(topic, err);
    if (rc != BATON_OK ||
        (rc = local_conn_take((struct local_log *)base, &conn, err)) != BATON_OK) {
        return rc;
    }
    if ((rc = local_begin(conn, LOCAL_WAIT_MS, err)) == BATON_OK) {
        if ((rc = topic_alter(conn, topic, err)) == BATON_OK) {
            rc = local_commit(conn, NULL, err);
        } else {
            local_rollback(conn);
        }
    }
    local_conn_give(conn);
    return rc;
}

static baton_code list_into(struct local_conn *conn, const char *prefix, char ***names,
                            size_t *count, struct baton_error *err)
{
    struct stmt stmt = db_stmt(&conn->db, TOPIC_LIST);
    bool row = true;
    baton_code rc = BATON_OK;
    stmt_text(&stmt, ":prefix", prefix);
    while ((rc = stmt_step(&stmt, &row, err)) == BATON_OK && row) {
        char *name = strdup(stmt_get_text(&stmt, 0));
        char **more = realloc(*names, (*count + 1) * sizeof(**names));
        if (more != NULL) {
            *names = more;
        }
        if (more == NULL || name == NULL) {
            free(name);
            stmt_reset(&stmt);
            return baton_fail(err, BATON_E_no_memory, "%s: out of memory", conn->log->path);
        }
        (*names)[(*count)++] = name;
    }
    return rc;
}

baton_code local_topics_list(struct log *base, const char *prefix, char ***ret_names,
                             size_t *ret_count, struct baton_error *err)
{
    struct local_conn *conn = NULL;
    char **names = NULL;
    size_t count = 0;
    baton_code rc = local_conn_take((struct local_log *)base, &conn, err);
    if (rc == BATON_OK) {
        rc = list_into(conn, prefix, &names, &count, err);
    }
    if (rc == BATON_OK) {
        *ret_names = names;
        *ret_count = count;
    } else {
        log_names_free(names, count);
    }
    local_conn_give(conn);
    return rc;
}

baton_code local_watermarks(struct log *base, const char *topic, int32_t partition,
                            int64_t *ret_low, int64_t *ret_high, struct baton_error *err)
{
    struct local_conn *conn = NULL;
    int64_t part = 0;
    baton_code rc = local_conn_take((struct local_log *)base, &conn, err);
    if (rc == BATON_OK && (rc = local_part_find(conn, topic, partition, &part, err)) == BATON_OK) {
        rc = local_part_marks(conn, part, ret_low, ret_high, err);
    }
    local_conn_give(conn);
    return rc;
}

/* Deletes a bounded number of records below `before` and moves the low mark behind them. */
static baton_code trim_some(struct local_conn *conn, int64_t part, int64_t before, bool *ret_more,
                            struct baton_error *err)
{
    int64_t low = 0;
    int64_t next = 0;
    baton_code rc = local_part_marks(conn, part, &low, &next, err);
    if (rc != BATON_OK) {
        return rc;
    }
    before = before < next ? before : next;
    *ret_more = false;
    if (before <= low) {
        return BATON_OK;
    }
    struct stmt stmt = db_stmt(&conn->db, RECORD_NTH);
    bool row = false;
    stmt_int(&stmt, ":from", local_record_id(part, low));
    stmt_int(&stmt, ":end", local_record_id(part, before));
    stmt_int(&stmt, ":n", TRIM_ROWS);
    if ((rc = stmt_step(&stmt, &row, err)) != BATON_OK) {
        return rc;
    }
    if (row) {
        before = stmt_get_int(&stmt, 0) & LOCAL_OFFSET_MAX;
        *ret_more = true;
        stmt_reset(&stmt);
    }
    return local_delete_below(conn, part, low, before, err);
}

baton_code local_delete_below(struct local_conn *conn, int64_t part, int64_t low, int64_t before,
                              struct baton_error *err)
{
    struct stmt stmt = db_stmt(&conn->db, RECORD_DELETE_RANGE);
    stmt_int(&stmt, ":from", local_record_id(part, low));
    stmt_int(&stmt, ":end", local_record_id(part, before));
    baton_code rc = stmt_run(&stmt, NULL, err);
    if (rc == BATON_OK) {
        stmt = db_stmt(&conn->db, PART_SET_LOW);
        stmt_int(&stmt, ":low", before);
        stmt_int(&stmt, ":part", part);
        rc = stmt_run(&stmt, NULL, err);
    }
    return rc;
}

static baton_code trim(struct local_conn *conn, const char *name, int32_t partition, int64_t before,
                       struct baton_error *err)
{
    struct local_topic topic;
    int64_t part = 0;
    int64_t low = 0;
    int64_t next = 0;
    bool more = true;
    baton_code rc = local_topic_find(conn, name, &topic, err);
    if (rc == BATON_OK) {
        rc = local_part_find(conn, name, partition, &part, err);
    }
    if (rc == BATON_OK && topic.about.cleanup != LOG_CLEANUP_delete) {
        return baton_fail(err, BATON_E_invalid_request,
                          "topic %s is compacted: records go by their key, none is trimmed", name);
    }
    if (rc == BATON_OK) {
        rc = local_part_marks(conn, part, &low, &next, err);
    }
    if (rc != BATON_OK || before <= low) {
        return rc; /* nothing to do, and so nothing to queue for */
    }
    while (rc == BATON_OK && more) {
        if ((rc = local_begin(conn, LOCAL_WAIT_MS, err)) != BATON_OK) {
            break;
        }
        if ((rc = trim_some(conn, part, before, &more, err)) == BATON_OK) {
            rc = local_commit(conn, NULL, err);
        } else {
            local_rollback(conn);
        }
    }
    return rc;
}

baton_code local_trim(struct log *base, const char *topic, int32_t partition, int64_t before,
                      struct baton_error *err)
{
    struct local_conn *conn = NULL;
    baton_code rc = local_conn_take((struct local_log *)base, &conn, err);
    if (rc == BATON_OK) {
        rc = trim(conn, topic, partition, before, err);
    }
    local_conn_give(conn);
    return rc;
}
