/*
 * Places of records in a list that is read newest first: their order, and how one is written as a word.
 * In: topics/tail.c, producer/dead.c, producer/cmd_turns.c  Out: common/base/quantity.h
 */
#include "topics/tail_place.h"

#include "common/base/check.h"
#include "common/base/quantity.h"
#include "common/log/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool tail_place_newer(const struct tail_place *a, const struct tail_place *b)
{
    const int name = a->at.v == b->at.v && a->kind == b->kind ? strcmp(a->service, b->service) : 0;
    return a->at.v != b->at.v             ? a->at.v > b->at.v
           : a->kind != b->kind           ? a->kind < b->kind
           : name != 0                    ? name < 0
           : a->partition != b->partition ? a->partition < b->partition
                                          : a->offset > b->offset;
}

struct tail_position tail_position(const struct tail_place *place)
{
    struct tail_position text;
    snprintf(text.s, sizeof(text.s), "%" PRId64 ":%c:%s:%d:%" PRId64, place->at.v,
             place->kind == TAIL_turns ? 't' : 'd', place->service, (int)place->partition,
             place->offset);
    return text;
}

bool tail_place_parse(const char *text, struct tail_place *ret_place,
                      struct service_id *ret_service)
{
    const char *parts[5] = {text};
    size_t lens[5];
    struct tail_place place;
    int64_t partition;
    for (size_t i = 1; i < COUNT_OF(parts); i++) {
        const char *colon = strchr(parts[i - 1], ':');
        if (colon == NULL) {
            return false;
        }
        lens[i - 1] = (size_t)(colon - parts[i - 1]);
        parts[i] = colon + 1;
    }
    lens[4] = strlen(parts[4]);
    if (!quantity_int_parse(parts[0], lens[0], &place.at.v) || lens[1] != 1 ||
        (parts[1][0] != 't' && parts[1][0] != 'd') || !service_id_valid(parts[2], lens[2]) ||
        !quantity_int_parse(parts[3], lens[3], &partition) || partition < 0 ||
        partition >= LOG_PARTITIONS_MAX || !quantity_int_parse(parts[4], lens[4], &place.offset) ||
        place.offset < 0) {
        return false;
    }
    snprintf(ret_service->s, sizeof(ret_service->s), "%.*s", (int)lens[2], parts[2]);
    place.kind = parts[1][0] == 't' ? TAIL_turns : TAIL_letters;
    place.service = ret_service->s;
    place.partition = (int32_t)partition;
    *ret_place = place;
    return true;
}
