/*
 * The newest records of many partitions, read backward from their ends: a list's page costs what the page
 * holds, not what the topics hold. Memory: the rows of the page, one window of records, and of a log that
 * keeps older records of a key the hashes of the keys that were seen, 8 bytes each.
 *
 * Their order is that of topics/tail_place.h. Of a compacted topic only the newest record of each key
 * counts.
 *
 * In: turn_log.c and letters.c, which add their topics; producer/dead.c, producer/cmd_turns.c
 * Out: common/log/log.c. Main thread.
 */
#ifndef BATON_TOPICS_TAIL_H
#define BATON_TOPICS_TAIL_H

#include "baton/code.h"
#include "common/log/log.h"
#include "topics/tail_place.h"

#include <stdbool.h>

struct tail_spec {
    struct log *log;
    size_t row_size;
    size_t max;         /* rows of the page; 1 or more */
    const char *before; /* a position: only what is older; NULL: from the newest on */
    /* Told now and then how many offsets of all were passed; may be NULL. */
    void (*progress)(void *arg, int64_t passed, int64_t all);
    void *progress_arg;
};

/* Judges a record, valid during the call. True: it belongs to the list, and *ret_row is filled. */
typedef bool tail_fn(void *arg, const struct tail_place *place, const struct log_record *record,
                     void *ret_row);

struct tail;
/* invalid_request: `before` is no position. */
baton_code tail_new(const struct tail_spec *spec, struct tail **ret_tail, struct baton_error *err);
void tail_free(struct tail *tail);
/* A topic; service, fn and arg live as long as the tail. One that is missing or may not be read is passed
 * over, as scan_pass_hidden has it. */
baton_code tail_add(struct tail *tail, enum tail_kind kind, const char *service, const char *topic,
                    bool compacted, tail_fn *fn, void *arg, struct baton_error *err);
/* Reads until the page is known. Fails as scan_hidden_end does if nothing of a kind may be seen. */
baton_code tail_read(struct tail *tail, struct baton_error *err);

/* After tail_read, newest first. */
size_t tail_count(const struct tail *tail);
const void *tail_row(const struct tail *tail, size_t i, struct tail_place *ret_place);
/* Is there more, older than the page? It was not judged, so a filter may let nothing of it through. */
bool tail_more(const struct tail *tail);

#endif
