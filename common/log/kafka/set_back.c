/*
 * A wall clock that was set back. librdkafka 2.0.2 waits until times of the wall clock: a thread that
 * waited when the clock was set back by an hour waits an hour longer, unless something is put on its
 * queue. Of the consumer that is the thread that sends the heartbeats, and without them the group takes
 * the member for dead. So a question that it answers from what it knows wakes it. The producer and the
 * readers are asked for something whenever they have something to do, which is the same.
 *
 * In: member.c
 */
#include "common/log/kafka/member.h"

#define SET_BACK_MS 500 /* less is a clock that is kept right */

void member_clock(struct kafka_member *member)
{
    const int64_t ahead = wall_now().v - mono_now().v;
    const bool set_back = member->clock_ahead != 0 && ahead < member->clock_ahead - SET_BACK_MS;
    member->clock_ahead = ahead;
    if (!set_back || member->consumer == NULL) {
        return;
    }
    rd_kafka_consumer_group_metadata_t *known = rd_kafka_consumer_group_metadata(member->consumer);
    if (known != NULL) {
        rd_kafka_consumer_group_metadata_destroy(known);
    }
}
