/*
 * Names and settings of topics from the one list in catalogue.h. Called by everything that names a
 * topic: provision, the readers of this folder, producer/, worker/.
 */
#include "topics/catalogue.h"

#include "common/base/buf.h"
#include "common/base/check.h"
#include "common/base/quantity.h"

#include <stdio.h>
#include <string.h>

struct row {
    const char *word;
    const char *pattern;
    bool of_service;
    enum log_cleanup cleanup;
    int64_t retention_ms;
    int64_t tombstone_ms;
    size_t record_bytes_max;
    const char *text;
};

#define TOPIC_ROW(kind, name, of_service, cleanup, retention, tombstone, bytes, text)              \
    {#kind, name, of_service, LOG_CLEANUP_##cleanup, retention, tombstone, bytes, text},
static const struct row rows[TOPIC_COUNT] = {TOPICS(TOPIC_ROW)};
#undef TOPIC_ROW

static const struct row *row_of(enum topic_kind kind)
{
    BATON_PRE((unsigned)kind < TOPIC_COUNT);
    return &rows[kind];
}

static void add(struct topic_name *name, size_t *len, const char *text, size_t text_len)
{
    BATON_INVARIANT(*len + text_len < sizeof(name->s)); /* prefix and service are bounded ids */
    memcpy(name->s + *len, text, text_len);
    *len += text_len;
    name->s[*len] = '\0';
}

static struct topic_name expand(const char *pattern, const char *prefix, const char *service)
{
    struct topic_name name = {""};
    size_t len = 0;
    for (const char *at = pattern; *at != '\0'; at++) {
        if (at[0] == '%' && at[1] == 'P') {
            add(&name, &len, prefix, strlen(prefix));
            at++;
        } else if (at[0] == '%' && at[1] == 'S') {
            BATON_PRE(service != NULL);
            add(&name, &len, service, strlen(service));
            at++;
        } else {
            add(&name, &len, at, 1);
        }
    }
    return name;
}

struct topic_name topic_name(enum topic_kind kind, const char *prefix, const char *service)
{
    return expand(row_of(kind)->pattern, prefix, service);
}

struct topic_name topic_name_begin(enum topic_kind kind, const char *prefix)
{
    BATON_PRE(row_of(kind)->of_service);
    return expand(row_of(kind)->pattern, prefix, ""); /* every such name ends with its service */
}

const char *topic_kind_word(enum topic_kind kind)
{
    return row_of(kind)->word;
}

const char *topic_kind_text(enum topic_kind kind)
{
    return row_of(kind)->text;
}

bool topic_kind_of_service(enum topic_kind kind)
{
    return row_of(kind)->of_service;
}

void topic_settings(enum topic_kind kind, const char *name, int32_t partitions,
                    struct log_topic *ret_topic)
{
    const struct row *row = row_of(kind);
    *ret_topic = (struct log_topic){.name = name,
                                    .partitions = partitions,
                                    .cleanup = row->cleanup,
                                    .retention_ms = row->retention_ms,
                                    .tombstone_ms = row->tombstone_ms,
                                    .record_bytes_max = row->record_bytes_max};
}

struct topic_name group_of_workers(const char *prefix, const char *service)
{
    return expand("%P.worker.%S", prefix, service);
}

struct topic_name group_of_workers_begin(const char *prefix)
{
    return group_of_workers(prefix, "");
}

struct topic_name group_of_coordinators(const char *prefix)
{
    return expand("%P.coordinator", prefix, NULL);
}

struct topic_name transactional_begin(const char *group)
{
    return expand("%P.", group, NULL);
}

const char *topic_cleanup_word(enum log_cleanup cleanup)
{
    return cleanup == LOG_CLEANUP_compact ? "compact" : "delete";
}

static void retention_text(int64_t ms, char *ret_text, size_t size)
{
    if (ms < 0) {
        snprintf(ret_text, size, "no limit");
    } else {
        snprintf(ret_text, size, "%s", quantity_duration_text(ms).s);
    }
}

size_t topic_changes(const struct log_topic *wanted, const struct log_topic *found,
                     struct topic_change ret_changes[TOPIC_CHANGES_MAX])
{
    size_t n = 0;
    if (found->cleanup != wanted->cleanup) {
        struct topic_change *change = &ret_changes[n++];
        change->setting = "cleanup";
        snprintf(change->from, sizeof(change->from), "%s", topic_cleanup_word(found->cleanup));
        snprintf(change->to, sizeof(change->to), "%s", topic_cleanup_word(wanted->cleanup));
    }
    if (wanted->cleanup == LOG_CLEANUP_delete && found->retention_ms != wanted->retention_ms) {
        struct topic_change *change = &ret_changes[n++];
        change->setting = "retention";
        retention_text(found->retention_ms, change->from, sizeof(change->from));
        retention_text(wanted->retention_ms, change->to, sizeof(change->to));
    }
    if (wanted->cleanup == LOG_CLEANUP_compact && found->tombstone_ms < wanted->tombstone_ms) {
        struct topic_change *change = &ret_changes[n++];
        change->setting = "tombstones";
        retention_text(found->tombstone_ms, change->from, sizeof(change->from));
        retention_text(wanted->tombstone_ms, change->to, sizeof(change->to));
    }
    if (found->record_bytes_max < wanted->record_bytes_max) {
        struct topic_change *change = &ret_changes[n++];
        change->setting = "record bytes";
        snprintf(change->from, sizeof(change->from), "%zu", found->record_bytes_max);
        snprintf(change->to, sizeof(change->to), "%zu", wanted->record_bytes_max);
    }
    BATON_POST(n <= TOPIC_CHANGES_MAX);
    return n;
}

bool topic_check(const struct log_topic *wanted, const struct log_topic *found, char *ret_text,
                 size_t ret_text_size)
{
    struct topic_change changes[TOPIC_CHANGES_MAX];
    struct buf text = BUF_INIT;
    if (found->partitions != wanted->partitions) {
        snprintf(ret_text, ret_text_size,
                 "topic %s has %d partitions, the configuration says %d: their number is fixed "
                 "when a topic is made, since keys would move to other partitions, away from "
                 "their turns; set it back to %d, or drain the service, delete its topics with "
                 "the log's own tools, and run `baton topics apply`",
                 wanted->name, (int)found->partitions, (int)wanted->partitions,
                 (int)found->partitions);
        return false;
    }
    size_t n = topic_changes(wanted, found, changes);
    if (n == 0 && found->differs[0] == '\0') {
        return true;
    }
    buf_printf(&text, "topic %s: ", wanted->name);
    for (size_t i = 0; i < n; i++) {
        buf_printf(&text, "%s is %s, not %s; ", changes[i].setting, changes[i].from, changes[i].to);
    }
    if (found->differs[0] != '\0') {
        buf_printf(&text, "%s; ", found->differs);
    }
    buf_add_text(&text, "`baton topics apply` mends it");
    snprintf(ret_text, ret_text_size, "%s", buf_ok(&text) ? text.data : "its settings differ");
    buf_done(&text);
    return false;
}

baton_code topic_require(struct log *log, enum topic_kind kind, const char *name,
                         int32_t partitions, struct baton_error *err)
{
    struct log_topic wanted;
    struct log_topic found;
    char text[640];
    baton_code rc = log_topic_describe(log, name, &found, err);
    if (rc == BATON_E_topic_missing) {
        return baton_fail(err, rc, "topic %s is not there; run: baton topics apply", name);
    }
    if (rc != BATON_OK) {
        return rc;
    }
    topic_settings(kind, name, partitions, &wanted);
    return topic_check(&wanted, &found, text, sizeof(text))
               ? BATON_OK
               : baton_fail(err, BATON_E_topic_missing, "%s", text);
}
