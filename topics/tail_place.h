/*
 * A place in a list that is read newest first (topics/tail.h): where a record is, which of two comes
 * first, and the same as a word, with which a command is told where its page begins.
 *
 * The order is that of the log's append times, and where those are alike of kind, service, partition and
 * offset: a total one, so that a page can say where the next one begins.
 *
 * Included by tail.h; the words by who prints a list. Pure; any thread.
 */
#ifndef BATON_TOPICS_TAIL_PLACE_H
#define BATON_TOPICS_TAIL_PLACE_H

#include "common/base/clock.h"
#include "common/base/id.h"

#include <stdbool.h>
#include <stdint.h>

enum tail_kind { TAIL_turns, TAIL_letters, TAIL_KIND_COUNT };

struct tail_place {
    struct wall_ms at; /* when the log appended the record */
    enum tail_kind kind;
    const char *service; /* borrowed: of tail_add, or of tail_place_parse */
    int32_t partition;
    int64_t offset;
};

/* Does a come before b in a list? */
bool tail_place_newer(const struct tail_place *a, const struct tail_place *b);

/* `<ms since 1970>:<t|d>:<service>:<partition>:<offset>`: a place as a word, for --before. */
struct tail_position {
    char s[128];
};
struct tail_position tail_position(const struct tail_place *place);
/* The place that a word names; its service is that of ret_service. False: it is no such word. */
bool tail_place_parse(const char *text, struct tail_place *ret_place,
                      struct service_id *ret_service);

#endif
