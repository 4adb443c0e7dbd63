/*
 * A shared library that only some processes need, loaded by those.
 *
 * Loading one costs every process its memory and its start, used or not: libmicrohttpd brings GnuTLS,
 * libcurl a dozen more. What is linked is what every worker uses.
 */
#ifndef BATON_COMMON_BASE_LIBRARY_H
#define BATON_COMMON_BASE_LIBRARY_H

#include "baton/code.h"

#include <stddef.h>

/* A function of the library and the variable that gets its address. The variable has the function's own
 * type: __typeof__(&curl_easy_init), by the library's header. */
struct library_symbol {
    const char *name;
    void *to;
};

#define LIBRARY_SYMBOL(function, variable)                                                         \
    {                                                                                              \
        .name = #function, .to = &(variable)                                                       \
    }

/* Loads `file` (a soname: libcurl.so.4) and looks its functions up. Stays loaded until the process ends;
 * again is free. Threads: any, but no two for the same variables. `key` is what asked for it in the
 * configuration, `package` Debian's that has it, both for the message.
 * Errors: bad_config if it is not on this machine or lacks a function. */
baton_code library_load(const char *file, const char *package, const char *key,
                        const struct library_symbol *symbols, size_t n_symbols,
                        struct baton_error *err);

#endif
