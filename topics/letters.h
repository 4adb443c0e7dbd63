/*
 * Dead letters that never became a turn: rejected records of services, and rejected requests of runs. The
 * letter of a parked turn is not among them, for what holds for that turn now stands in the turn log.
 *
 * Everything in a rejected record is unproven: what is read from it serves to find it again.
 */
#ifndef BATON_TOPICS_LETTERS_H
#define BATON_TOPICS_LETTERS_H

#include "baton/code.h"
#include "common/base/config.h"
#include "common/log/log.h"
#include "topics/tail.h"

#include <stdbool.h>

/* `<service>:<partition>:<offset>` of the dead-letter topic: the id of a rejected record; of a rejected
 * request LETTERS_OF_RUNS stands for the service. */
#define LETTERS_OF_RUNS "coordinator" /* no service may be called so */
#define LETTER_ID_MAX 96
struct letter_id {
    char s[LETTER_ID_MAX];
};

struct letter {
    struct letter_id id;
    const char
        *service; /* whose topic it came to; borrowed from the configuration, or LETTERS_OF_RUNS */
    int32_t partition; /* of the dead-letter topic */
    int64_t offset;
    struct wall_ms at; /* when it was rejected */
    baton_code code;
    char message[256];               /* one line, foreign */
    char topic[256];                 /* the original one; "" if the header is missing */
    int32_t from_partition;          /* of the original topic; -1: not said */
    int64_t from_offset;             /* -1: not said */
    char turn_id[33];                /* as the record's key claims, or "" */
    char role[16];                   /* as its value claims, or "" */
    char task_id[65];                /* as its value claims, or "" */
    char run_id[ID_MAX + 1];         /* of a request: as its key claims, or "" */
    char kind[16];                   /* of a request: as its value claims, or "" */
    const struct log_record *record; /* key, value, headers; valid during the call */
};

typedef bool letter_fn(void *arg, const struct letter *letter);

/* Every rejected record of the services and of runs (service NULL: all), in the order of the log. */
baton_code letters_each(struct log *log, const struct config *config, const char *service,
                        letter_fn *fn, void *arg, struct baton_error *err);
/* Gets each letter of a page; true: it belongs there, and *ret_row (of tail_spec's row_size) is filled. */
typedef bool letter_row_fn(void *arg, const struct letter *letter, void *ret_row);
struct letter_tail {
    letter_row_fn *fn;
    void *arg;
};
/* Adds their topics (service NULL: all) to a tail that is not read yet; *letters lives as long. */
baton_code letters_tail(struct tail *tail, const struct config *config, const char *service,
                        struct letter_tail *letters, struct baton_error *err);
/*
 * One by its id: fn gets it. invalid_request: no such form; handoff_not_found: nothing is there, or
 * the letter is that of a turn that was parked.
 */
baton_code letters_one(struct log *log, const struct config *config, const char *id, letter_fn *fn,
                       void *arg, struct baton_error *err);
/* The rejected records of one partition from offset first to last, in order; false stops. */
baton_code letters_between(struct log *log, const struct config *config, const char *service,
                           int32_t partition, int64_t first, int64_t last, letter_fn *fn, void *arg,
                           struct baton_error *err);
/* Takes an id apart; invalid_request as of letters_one. */
baton_code letter_id_split(const char *text, char ret_service[SERVICE_MAX + 1],
                           int32_t *ret_partition, int64_t *ret_offset, struct baton_error *err);
/* Has text the form of a rejected record's id? */
bool letter_id_valid(const char *text);

/* Why a rejected record was rejected; unexpected: it does not say. */
baton_code letter_code(const struct log_record *record);
/* Is this a header that the dead-letter topic added? Those are left out of a replay. */
bool letter_context_header(const char *name);

#endif
