/*
 * What a transaction coordinator that was killed leaves behind: it counts a transaction as ended, and
 * some of its partitions have never heard of it (seen on 4.3.0 when a broker is killed twice in short
 * order: the abort is complete in the coordinator's log, its markers are in no partition). The last
 * stable offset of these stands still for ever, and the records that lie open there would become
 * visible with the next transaction of the same transactional id that writes them: what was dropped
 * would happen after all.
 *
 * So whoever has taken a transactional id over writes once to every partition in which something lies
 * open, and aborts, or commits where it is known that this was committed (confirm.c): its markers end
 * whatever that id has left there. What others have open is theirs, and stays.
 *
 * In: producer.c, confirm.c
 */
#include "common/log/kafka/member.h"

#include <string.h>
#include <time.h>

#define ASK_TIMEOUT_MS 2000
#define END_TIMEOUT_MS 5000
#define LOOKS 5 /* what stands still over so many looks hangs: transactions of the living do not */
#define LOOK_PAUSE_NS 80000000

bool hang_ask_ends(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *list, int timeout_ms)
{
    for (int i = 0; i < list->cnt; i++) {
        list->elems[i].offset = RD_KAFKA_OFFSET_END;
        list->elems[i].err = RD_KAFKA_RESP_ERR_NO_ERROR;
    }
    return rd_kafka_offsets_for_times(rk, list, timeout_ms) == RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* The partitions in which something lies open, of any transaction. */
static rd_kafka_topic_partition_list_t *open_partitions(struct kafka_log *log, rd_kafka_t *rk,
                                                        const char *const *topics, size_t n_topics)
{
    rd_kafka_topic_partition_list_t *stable = rd_kafka_topic_partition_list_new(16);
    rd_kafka_topic_partition_list_t *found = rd_kafka_topic_partition_list_new(16);
    struct kafka_topic topic;
    for (size_t i = 0; i < n_topics; i++) {
        if (kafka_topic_of(log, topics[i], ASK_TIMEOUT_MS, &topic, NULL) == BATON_OK) {
            rd_kafka_topic_partition_list_add_range(stable, topics[i], 0, topic.partitions - 1);
        }
    }
    rd_kafka_topic_partition_list_t *high = rd_kafka_topic_partition_list_copy(stable);
    /* A producer asks at read_committed, the log's own handle does not. */
    if (stable->cnt > 0 && hang_ask_ends(rk, stable, ASK_TIMEOUT_MS) &&
        hang_ask_ends(kafka_admin(log), high, ASK_TIMEOUT_MS)) {
        for (int i = 0; i < stable->cnt; i++) {
            const rd_kafka_topic_partition_t *one = &stable->elems[i];
            const rd_kafka_topic_partition_t *end =
                rd_kafka_topic_partition_list_find(high, one->topic, one->partition);
            if (end != NULL && one->err == RD_KAFKA_RESP_ERR_NO_ERROR &&
                end->offset > one->offset) {
                rd_kafka_topic_partition_list_add(found, one->topic, one->partition)->offset =
                    one->offset;
            }
        }
    }
    rd_kafka_topic_partition_list_destroy(stable);
    rd_kafka_topic_partition_list_destroy(high);
    return found;
}

/* Ends the transaction; false: the producer is of no use any more. */
static bool end(rd_kafka_t *rk, enum hang_end how)
{
    const int64_t until = mono_now().v + END_TIMEOUT_MS;
    for (;;) {
        rd_kafka_error_t *error = how == HANG_commit
                                      ? rd_kafka_commit_transaction(rk, END_TIMEOUT_MS)
                                      : rd_kafka_abort_transaction(rk, END_TIMEOUT_MS);
        if (error == NULL) {
            return true;
        }
        const bool again = rd_kafka_error_is_retriable(error) != 0 && mono_now().v < until;
        rd_kafka_error_destroy(error);
        if (!again) {
            return false;
        }
    }
}

static bool begin(rd_kafka_t *rk)
{
    rd_kafka_error_t *error = rd_kafka_begin_transaction(rk);
    if (error != NULL) {
        rd_kafka_error_destroy(error);
        return false;
    }
    return true;
}

static bool write_one(rd_kafka_t *rk, const rd_kafka_topic_partition_list_t *list, int from, int to,
                      enum hang_end how)
{
    if (!begin(rk)) {
        return false;
    }
    for (int i = from; i < to; i++) {
        (void)rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(list->elems[i].topic),
                                RD_KAFKA_V_PARTITION(list->elems[i].partition),
                                RD_KAFKA_V_KEY(KAFKA_NOTE_KEY, strlen(KAFKA_NOTE_KEY)),
                                RD_KAFKA_V_END);
    }
    (void)rd_kafka_flush(rk, ASK_TIMEOUT_MS);
    return end(rk, how);
}

bool hang_write(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *list, enum hang_end how)
{
    bool good = true;
    rd_kafka_topic_partition_list_sort(list, NULL, NULL);
    for (int from = 0, to = 0; good && from < list->cnt; from = to) {
        while (to < list->cnt && strcmp(list->elems[to].topic, list->elems[from].topic) == 0) {
            to++;
        }
        good = write_one(rk, list, from, to, how);
        /* Often it is what others are just writing: no news. */
        diag_line(good ? DIAG_debug : DIAG_warn, "kafka.records_hang",
                  D_TEXT("topic", list->elems[from].topic), D_INT("partitions", to - from),
                  D_TEXT("ended_by", how == HANG_commit ? "commit" : "abort"),
                  D_BOOL("ended", good));
    }
    return good;
}

/* Takes out what has come further meanwhile: others were just writing there. */
static void keep_still(rd_kafka_topic_partition_list_t *list,
                       const rd_kafka_topic_partition_list_t *later)
{
    for (int i = list->cnt - 1; i >= 0; i--) {
        const rd_kafka_topic_partition_t *one = &list->elems[i];
        const rd_kafka_topic_partition_t *again =
            rd_kafka_topic_partition_list_find(later, one->topic, one->partition);
        if (again == NULL || again->offset != one->offset) {
            (void)rd_kafka_topic_partition_list_del_by_idx(list, i);
        }
    }
}

/* The partitions in which something lies open and stays so. */
static rd_kafka_topic_partition_list_t *hanging(struct kafka_log *log, rd_kafka_t *rk,
                                                const char *const *topics, size_t n_topics)
{
    rd_kafka_topic_partition_list_t *list = open_partitions(log, rk, topics, n_topics);
    for (int look = 0; list->cnt > 0 && look < LOOKS; look++) {
        nanosleep(&(struct timespec){0, LOOK_PAUSE_NS}, NULL);
        rd_kafka_topic_partition_list_t *later = open_partitions(log, rk, topics, n_topics);
        keep_still(list, later);
        rd_kafka_topic_partition_list_destroy(later);
    }
    return list;
}

/* Who restores the partition next must know of it, whoever that is: a note that stays. */
static bool leave_note(rd_kafka_t *rk, const rd_kafka_topic_partition_list_t *list,
                       const char *state)
{
    rd_kafka_topic_partition_list_t *own = rd_kafka_topic_partition_list_new(8);
    for (int i = 0; i < list->cnt; i++) {
        if (strcmp(list->elems[i].topic, state) == 0) {
            rd_kafka_topic_partition_list_add(own, state, list->elems[i].partition);
        }
    }
    const bool good = hang_write(rk, own, HANG_commit);
    rd_kafka_topic_partition_list_destroy(own);
    return good;
}

bool hang_end_records(struct kafka_log *log, rd_kafka_t *rk, const char *const *topics,
                      size_t n_topics, enum hang_end how)
{
    rd_kafka_topic_partition_list_t *list = hanging(log, rk, topics, n_topics);
    bool good = hang_write(rk, list, how);
    if (good && how == HANG_abort && n_topics > 0) {
        good = leave_note(rk, list, topics[0]);
    }
    rd_kafka_topic_partition_list_destroy(list);
    return good;
}

bool hang_end_offsets(rd_kafka_t *rk, const char *group, const char *topic)
{
    if (!begin(rk)) {
        return false;
    }
    rd_kafka_consumer_group_metadata_t *nobody = rd_kafka_consumer_group_metadata_new(group);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    /* This offset is never committed. */
    rd_kafka_topic_partition_list_add(list, topic, 0)->offset = 0;
    rd_kafka_error_t *error =
        rd_kafka_send_offsets_to_transaction(rk, list, nobody, ASK_TIMEOUT_MS);
    if (error != NULL) {
        rd_kafka_error_destroy(error);
    }
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_consumer_group_metadata_destroy(nobody);
    const bool good = end(rk, HANG_abort);
    diag_line(good ? DIAG_info : DIAG_warn, "kafka.offsets_hang", D_TEXT("group", group),
              D_BOOL("ended", good));
    return good;
}
