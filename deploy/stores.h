/* The stores below a state folder: <state_dir>/<service>/<worker>/store.db. */
#ifndef BATON_DEPLOY_STORES_H
#define BATON_DEPLOY_STORES_H

#include "baton/code.h"

#include <stdbool.h>

struct store_place {
    const char *service;
    const char *worker;
    const char *dir; /* that holds store.db */
};

/* False stops. */
typedef bool store_fn(void *arg, const struct store_place *place);

/*
 * Every store, those only of a service and worker that are named (NULL: any), sorted. A state
 * folder that is not there has none. store_failed: it cannot be read.
 */
baton_code stores_each(const char *state_dir, const char *service, const char *worker, store_fn *fn,
                       void *arg, struct baton_error *err);

#endif
