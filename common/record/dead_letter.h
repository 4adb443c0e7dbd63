/*
 * Headers of a dead letter. Its key, value and other headers are those of the original record, byte
 * for byte.
 *
 * The context has the names of Kafka's KIP-1191, so that tools made for Kafka's dead letters read
 * ours; `baton-*` say what Baton knows beside it. Written by worker/dead_letter.c, read by topics/
 * and producer/.
 */
#ifndef BATON_RECORD_DEAD_LETTER_H
#define BATON_RECORD_DEAD_LETTER_H

#define DEAD_LETTER_TOPIC "__dlq.errors.topic"         /* of the original record */
#define DEAD_LETTER_PARTITION "__dlq.errors.partition" /* decimal */
#define DEAD_LETTER_OFFSET                                                                         \
    "__dlq.errors.offset" /* decimal; absent for a turn parked later than its intake */
#define DEAD_LETTER_GROUP "__dlq.errors.group" /* the group that gave it up */
#define DEAD_LETTER_COUNT                                                                          \
    "__dlq.errors.delivery.count" /* the attempt's number; absent for rejected records */
#define DEAD_LETTER_MESSAGE "__dlq.errors.message" /* one line for people */
#define DEAD_LETTER_CODE "baton-code"              /* word of the code */
#define DEAD_LETTER_CLASS "baton-class"            /* failure class; absent for rejected records */
#define DEAD_LETTER_ATTEMPTS "baton-attempts"      /* JSON: the newest, at most 16 and 8 KiB */

#endif
