/*
 * Loads a shared library when something that needs it is configured.
 * In: common/http/listen.c, common/trace/collector.c  Out: dlopen
 */
#include "common/base/library.h"

#include <dlfcn.h>
#include <string.h>

baton_code library_load(const char *file, const char *package, const char *key,
                        const struct library_symbol *symbols, size_t n_symbols,
                        struct baton_error *err)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        return baton_fail(err, BATON_E_bad_config,
                          "%s: this needs %s, which cannot be loaded (%s); install it (Debian: "
                          "apt-get install %s), or leave %s out",
                          key, file, dlerror(), package, key);
    }
    for (size_t i = 0; i < n_symbols; i++) {
        void *function = dlsym(library, symbols[i].name);
        if (function == NULL) {
            return baton_fail(err, BATON_E_bad_config,
                              "%s: the %s of this machine has no %s: it is too old or another "
                              "library; install a newer %s, or leave %s out",
                              key, file, symbols[i].name, package, key);
        }
        memcpy(symbols[i].to, &function, sizeof(function));
    }
    return BATON_OK;
}
