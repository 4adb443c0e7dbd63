/*
 * A shared library that only some processes need, loaded by those.
 *
 * Loading one costs every process its memory and its start, used or not: libmicrohttpd brings GnuTLS,
 * libcurl a dozen more. What is linked is what every worker uses.
 */
#ifndef BATON_COMMON_BASE_LIBRARY_H
#define BATON_COMMON_BASE_LIBRARY_H

#include "baton/code.h"

#include <stdbool.h>
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

/* Static, one for each library. */
struct library {
    const char *file;    /* a soname: libcurl.so.4 */
    const char *package; /* Debian's that has it */
    const char *key;     /* what asks for it in the configuration */
    const struct library_symbol *symbols;
    size_t n_symbols;
    baton_code (*begin)(struct baton_error *err); /* once, when its functions are known; or NULL */
    bool loaded;
};

/* Loads it, looks its functions up and begins it, once for the process; it stays until that ends. Again is free.
 * Threads: any. Errors: bad_config if it is not on this machine or lacks a function; those of begin. */
baton_code library_load(struct library *library, struct baton_error *err);

#endif
