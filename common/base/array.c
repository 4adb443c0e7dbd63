/* A growing array. Called by the engine's batch and by the worker. */
#include "common/base/array.h"

#include "common/base/check.h"

#include <stdlib.h>

void *array_grown(void *list, size_t count, size_t *cap, size_t item_size)
{
    if (count < *cap) {
        return list;
    }
    *cap = *cap == 0 ? 16 : *cap * 2;
    list = realloc(list, *cap * item_size);
    if (list == NULL) {
        check_failed("allocation", "a growing list", __FILE__, __LINE__);
    }
    return list;
}
