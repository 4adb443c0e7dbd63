/*
 * Loads a shared library when something that needs it is configured.
 * In: common/http/listen.c, common/trace/collector.c  Out: dlopen
 */
#include "common/base/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

/* Workers and publishers of a program may start at once, and none may write what another calls by. */
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

static baton_code load(const struct library *library, struct baton_error *err)
{
    void *handle = dlopen(library->file, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        return baton_fail(err, BATON_E_bad_config,
                          "%s: this needs %s, which cannot be loaded (%s); install it (Debian: "
                          "apt-get install %s), or leave %s out",
                          library->key, library->file, dlerror(), library->package, library->key);
    }
    for (size_t i = 0; i < library->n_symbols; i++) {
        const struct library_symbol *symbol = &library->symbols[i];
        void *function = dlsym(handle, symbol->name);
        if (function == NULL) {
            return baton_fail(err, BATON_E_bad_config,
                              "%s: the %s of this machine has no %s: it is too old or another "
                              "library; install a newer %s, or leave %s out",
                              library->key, library->file, symbol->name, library->package,
                              library->key);
        }
        memcpy(symbol->to, &function, sizeof(function));
    }
    return library->begin != NULL ? library->begin(err) : BATON_OK;
}

baton_code library_load(struct library *library, struct baton_error *err)
{
    pthread_mutex_lock(&loading);
    const baton_code rc = library->loaded ? BATON_OK : load(library, err);
    library->loaded = rc == BATON_OK;
    pthread_mutex_unlock(&loading);
    return rc;
}
