/* Finds stores for cmd_store.c and cmd_doctor.c. */
#include "deploy/stores.h"

#include "common/base/id.h"
#include "common/base/text.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int service_names(const struct dirent *entry)
{
    return service_id_valid(entry->d_name, strlen(entry->d_name));
}

static int worker_names(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && plain_id_valid(entry->d_name, strlen(entry->d_name));
}

/* Names in a folder; 0 where there is none, -1 on failure. */
static int names_of(const char *dir, int (*choose)(const struct dirent *),
                    struct dirent ***ret_names)
{
    int n = scandir(dir, ret_names, choose, alphasort);
    return n < 0 && (errno == ENOENT || errno == ENOTDIR) ? 0 : n;
}

static void names_free(struct dirent **names, int count)
{
    for (int i = 0; i < count; i++) {
        free(names[i]);
    }
    free(names);
}

static baton_code cannot(const char *dir, struct baton_error *err)
{
    return baton_fail(err, BATON_E_store_failed, "cannot read %s: %s", text_quote_of(dir).s,
                      strerror(errno));
}

static baton_code each_worker(const char *state_dir, const char *service, const char *worker,
                              store_fn *fn, void *arg, bool *ret_stopped, struct baton_error *err)
{
    char folder[PATH_MAX];
    struct dirent **names = NULL;
    snprintf(folder, sizeof(folder), "%s/%s", state_dir, service);
    int count = names_of(folder, worker_names, &names);
    if (count < 0) {
        return cannot(folder, err);
    }
    for (int i = 0; i < count && !*ret_stopped; i++) {
        char dir[PATH_MAX];
        char file[PATH_MAX];
        int a = snprintf(dir, sizeof(dir), "%s/%s/%s", state_dir, service, names[i]->d_name);
        int b =
            snprintf(file, sizeof(file), "%s/%s/%s/store.db", state_dir, service, names[i]->d_name);
        bool fits = a > 0 && b > 0 && (size_t)b < sizeof(file);
        if (fits && (worker == NULL || strcmp(worker, names[i]->d_name) == 0) &&
            access(file, F_OK) == 0) {
            const struct store_place place = {service, names[i]->d_name, dir};
            *ret_stopped = !fn(arg, &place);
        }
    }
    names_free(names, count);
    return BATON_OK;
}

baton_code stores_each(const char *state_dir, const char *service, const char *worker, store_fn *fn,
                       void *arg, struct baton_error *err)
{
    struct dirent **names = NULL;
    bool stopped = false;
    baton_code rc = BATON_OK;
    int count = names_of(state_dir, service_names, &names);
    if (count < 0) {
        return cannot(state_dir, err);
    }
    for (int i = 0; rc == BATON_OK && i < count && !stopped; i++) {
        if (service == NULL || strcmp(service, names[i]->d_name) == 0) {
            rc = each_worker(state_dir, names[i]->d_name, worker, fn, arg, &stopped, err);
        }
    }
    names_free(names, count);
    return rc;
}
