/*
 * Headers of a dead letter. Its key, value and other headers are those of the original record, byte
 * for byte.
 *
 * The context has the names of Kafka's KIP-1191, so that tools made for Kafka's dead letters read
 * ours; `baton-*` say what Baton knows beside it. Written by worker/dead_letter.c and
 * producer/coordinator/send.c, read by topics/ and producer/. Any thread.
 */
#ifndef BATON_RECORD_DEAD_LETTER_H
#define BATON_RECORD_DEAD_LETTER_H

#include "baton/code.h"
#include "common/log/log.h"

#include <stddef.h>
#include <stdint.h>

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

#define DEAD_LETTER_CONTEXT_MAX 12

/* Headers of a letter that is being written: those of the original, then the context. Values are borrowed,
 * but for texts and numbers. */
struct dead_letter {
    struct log_header headers[LOG_HEADERS_MAX];
    size_t n_headers;
    char texts[DEAD_LETTER_CONTEXT_MAX][512];
    size_t n_texts;
};

/* The original's headers but what an earlier letter put there; one with more than any of ours has keeps
 * the first ones, so that the context fits beside them. */
void dead_letter_original(struct dead_letter *letter, const struct log_record *record);
void dead_letter_header(struct dead_letter *letter, const char *name, const void *value,
                        size_t len);
void dead_letter_text(struct dead_letter *letter, const char *name, const char *value);
void dead_letter_int(struct dead_letter *letter, const char *name, int64_t value);
/* Where it comes from, who gave it up, and why. source NULL: its place is not known any more. */
void dead_letter_context(struct dead_letter *letter, const struct log_record *source,
                         const char *topic, const char *group, baton_code code, const char *note);

#endif
