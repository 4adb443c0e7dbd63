/*
 * Workflows that were read once. In: producer/run/run_record.c, producer/coordinator/requests.c
 * Out: parse.c
 */
#include "producer/workflow/shelf.h"

#include "common/base/array.h"

#include <stdlib.h>
#include <string.h>

baton_code workflow_shelf_find(struct workflow_shelf *shelf, const char *name, const char *text,
                               size_t text_len, struct workflow **ret_workflow,
                               struct baton_error *err)
{
    struct workflow *fresh = NULL;
    for (size_t i = 0; i < shelf->count; i++) {
        struct workflow *one = shelf->list[i];
        if (one->text_len == text_len && memcmp(one->text, text, text_len) == 0) {
            *ret_workflow = one;
            return BATON_OK;
        }
    }
    baton_code rc = workflow_parse(name, text, text_len, NULL, &fresh, NULL, NULL, err);
    if (rc == BATON_OK) {
        shelf->list = array_grown(shelf->list, shelf->count, &shelf->cap, sizeof(shelf->list[0]));
        shelf->list[shelf->count++] = fresh;
        *ret_workflow = fresh;
    }
    return rc;
}

void workflow_shelf_done(struct workflow_shelf *shelf)
{
    for (size_t i = 0; i < shelf->count; i++) {
        workflow_free(shelf->list[i]);
    }
    free(shelf->list);
    *shelf = (struct workflow_shelf){.list = NULL};
}
