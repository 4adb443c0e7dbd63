/*
 * What the group gives and takes: assign, revoke and lost, as librdkafka calls back for them.
 *
 * A revoke is answered in two steps: the callback tells of it, and the poll after that lets go
 * (rd_kafka_assign of nothing), so that the caller can do in between what must be done before
 * others get the partitions. Group metadata is taken in the assign callback and kept for every
 * transaction of that assignment: the broker then refuses by generation what was decided under an
 * older one (protocol rule 13).
 *
 * In: member.c  Out: queue.c
 */
#include "common/log/kafka/member.h"

#include <string.h>
#include <unistd.h>

/* "CGMDv2:" and then the generation, as rd_kafka_consumer_group_metadata_write writes it; versions
 * before 2.12 have no getter. */
#define METADATA_MAGIC "CGMDv2:"

static int64_t generation_of(const struct kafka_member *member)
{
    int32_t generation = -1;
    void *bytes = NULL;
    size_t size = 0;
    rd_kafka_error_t *error =
        rd_kafka_consumer_group_metadata_write(member->metadata, &bytes, &size);
    if (error != NULL) {
        rd_kafka_error_destroy(error);
    } else if (size >= strlen(METADATA_MAGIC) + sizeof(generation) &&
               memcmp(bytes, METADATA_MAGIC, strlen(METADATA_MAGIC)) == 0) {
        memcpy(&generation, (const char *)bytes + strlen(METADATA_MAGIC), sizeof(generation));
    }
    if (bytes != NULL) {
        rd_kafka_mem_free(member->consumer, bytes);
    }
    /* Another form in a newer library: a number that rises is as good for one process. */
    return generation > 0 ? generation : member->generation + 1;
}

void member_ring(struct kafka_member *member)
{
    const uint64_t one = 1;
    (void)!write(member->fd, &one, sizeof(one));
}

void member_tell(struct kafka_member *member, enum log_event_kind kind)
{
    /* A revoke that nobody has heard of yet cancels the assignment before it. */
    if (member->n_events == MEMBER_EVENTS) {
        memmove(member->events, member->events + 1,
                sizeof(member->events[0]) * (MEMBER_EVENTS - 1));
        member->n_events--;
    }
    struct log_event *event = &member->events[member->n_events++];
    *event = (struct log_event){.kind = kind, .generation = member->generation};
    for (int32_t p = 0; p < LOG_PARTITIONS_MAX; p++) {
        if (member->owned[p]) {
            event->partitions[event->count++] = p;
        }
    }
    member_ring(member);
}

static int input_of(const struct kafka_member *member, const char *topic)
{
    for (int input = 0; input < LOG_INPUTS; input++) {
        if (strcmp(topic, member->spec.inputs[input]) == 0) {
            return input;
        }
    }
    return -1;
}

static void forget_metadata(struct kafka_member *member)
{
    if (member->metadata != NULL) {
        rd_kafka_consumer_group_metadata_destroy(member->metadata);
        member->metadata = NULL;
    }
}

/* A partition number is ours when it is of both inputs: range gives them together, as long as both
 * topics have the same number of partitions. */
static void note_owned(struct kafka_member *member,
                       const rd_kafka_topic_partition_list_t *partitions)
{
    unsigned char seen[LOG_PARTITIONS_MAX] = {0};
    for (int i = 0; i < partitions->cnt; i++) {
        const rd_kafka_topic_partition_t *one = &partitions->elems[i];
        const int input = input_of(member, one->topic);
        if (input >= 0 && one->partition >= 0 && one->partition < LOG_PARTITIONS_MAX) {
            seen[one->partition] |= (unsigned char)(1u << input);
        }
    }
    for (int32_t p = 0; p < LOG_PARTITIONS_MAX; p++) {
        member->owned[p] = seen[p] == (1u << LOG_INPUTS) - 1;
        if (seen[p] != 0 && !member->owned[p]) {
            diag_line(DIAG_error, "kafka.partition_of_one_input",
                      D_TEXT("group", member->spec.group), D_INT("partition", p));
        }
        for (int input = 0; input < LOG_INPUTS && member->owned[p]; input++) {
            queue_open(member, input, p);
        }
    }
}

/* Those of the inputs. */
static rd_kafka_topic_partition_list_t *ours(const struct kafka_member *member,
                                             const rd_kafka_topic_partition_list_t *partitions)
{
    rd_kafka_topic_partition_list_t *found = rd_kafka_topic_partition_list_new(partitions->cnt);
    for (int i = 0; i < partitions->cnt; i++) {
        const rd_kafka_topic_partition_t *one = &partitions->elems[i];
        if (input_of(member, one->topic) >= 0) {
            rd_kafka_topic_partition_list_add(found, one->topic, one->partition);
        }
    }
    return found;
}

/* What a member that leaves is given is not taken. Inputs among it: the group had decided before it
 * heard that we leave, counts on us, and must be asked anew. */
static void part_assigned(struct kafka_member *member, rd_kafka_t *rk, bool inputs)
{
    rd_kafka_topic_partition_list_t *nothing = rd_kafka_topic_partition_list_new(1);
    rd_kafka_assign(rk, nothing); /* without a list librdkafka would go on waiting for one */
    rd_kafka_topic_partition_list_destroy(nothing);
    member->misplaced = inputs;
    member->parted = !inputs;
}

static void assign(struct kafka_member *member, rd_kafka_t *rk,
                   const rd_kafka_topic_partition_list_t *partitions)
{
    rd_kafka_topic_partition_list_t *mine = ours(member, partitions);
    if (member->parting) {
        part_assigned(member, rk, mine->cnt > 0);
        rd_kafka_topic_partition_list_destroy(mine);
        return;
    }
    if (mine->cnt == 0 && partitions->cnt > 0) {
        /* A static member gets its last assignment: here what the process before parted with. */
        rd_kafka_assign(rk, mine); /* of nothing; without a list it would go on waiting for one */
        rd_kafka_topic_partition_list_destroy(mine);
        member->misplaced = true;
        member_ring(member);
        return;
    }
    memset(member->owned, 0, sizeof(member->owned));
    note_owned(member, mine);
    rd_kafka_resp_err_t cause = rd_kafka_assign(rk, mine);
    rd_kafka_topic_partition_list_destroy(mine);
    if (cause != RD_KAFKA_RESP_ERR_NO_ERROR) {
        diag_line(DIAG_error, "kafka.assign_failed", D_TEXT("group", member->spec.group),
                  D_TEXT("error", rd_kafka_err2str(cause)));
    }
    forget_metadata(member);
    member->metadata = rd_kafka_consumer_group_metadata(rk);
    member->generation = generation_of(member);
    member->place = PLACE_assigned;
    atomic_store(&member->consumer_client.session_over, false);
    member_tell(member, LOG_EVENT_assigned);
}

static void take_away(struct kafka_member *member, rd_kafka_t *rk)
{
    const bool told = member->place == PLACE_lost;
    const bool lost = rd_kafka_assignment_lost(rk) != 0;
    forget_metadata(member);
    if (member->parting || told || member->place != PLACE_assigned) {
        /* A commit has told already, or there is nobody to tell. */
        queues_close(member);
        memset(member->owned, 0, sizeof(member->owned));
        member->place = PLACE_none;
        rd_kafka_assign(rk, NULL);
        return;
    }
    member_tell(member, lost ? LOG_EVENT_lost : LOG_EVENT_revoked);
    member->place = PLACE_leaving;
}

void member_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t kind,
                      rd_kafka_topic_partition_list_t *partitions, void *opaque)
{
    struct kafka_client *client = opaque;
    struct kafka_member *member = client->owner;
    if (kind == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        assign(member, rk, partitions);
    } else {
        if (kind != RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS) {
            diag_line(DIAG_warn, "kafka.rebalance_failed", D_TEXT("group", member->spec.group),
                      D_TEXT("error", rd_kafka_err2str(kind)));
        }
        take_away(member, rk);
    }
    rd_kafka_yield(rk); /* one thing at a time: the caller hears of it before the next */
}

void member_let_go(struct kafka_member *member)
{
    queues_close(member);
    memset(member->owned, 0, sizeof(member->owned));
    member->place = PLACE_none;
    rd_kafka_assign(member->consumer, NULL);
}

void member_found_lost(struct kafka_member *member)
{
    if (member->place != PLACE_assigned) {
        return;
    }
    diag_line(DIAG_warn, "kafka.lost", D_TEXT("group", member->spec.group),
              D_INT("generation", member->generation));
    member_tell(member, LOG_EVENT_lost);
    queues_close(member);
    memset(member->owned, 0, sizeof(member->owned));
    forget_metadata(member);
    member->place = PLACE_lost;
    member->lost_at = mono_now().v;
}
