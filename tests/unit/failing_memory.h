/*
 * An allocator that fails when it is told to, counts what lives, and spoils what is freed: for tests of memory that runs
 * out (STYLE M5). It replaces the program's, so one file of a program includes it; sanitizers have their own, so there
 * nothing fails (OWN_ALLOCATOR is 0).
 */
#ifndef BATON_TESTS_UNIT_FAILING_MEMORY_H
#define BATON_TESTS_UNIT_FAILING_MEMORY_H

#include "baton/code.h"

#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_ALLOCATOR 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define OWN_ALLOCATOR 0
#endif
#endif
#ifndef OWN_ALLOCATOR
#define OWN_ALLOCATOR 1
#endif

static long fail_at; /* counts down; 0: never */
static long live;    /* allocated and not freed */

#if OWN_ALLOCATOR

extern void *__libc_malloc(size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void __libc_free(void *old);

static bool fails(void)
{
    return fail_at > 0 && --fail_at == 0;
}

BATON_API void *malloc(size_t size)
{
    void *p = fails() ? NULL : __libc_malloc(size);
    live += p != NULL ? 1 : 0;
    return p;
}

BATON_API void *calloc(size_t n, size_t size)
{
    void *p = fails() ? NULL : __libc_calloc(n, size);
    live += p != NULL ? 1 : 0;
    return p;
}

BATON_API void *realloc(void *old, size_t size)
{
    void *p = fails() ? NULL : __libc_realloc(old, size);
    live += p != NULL && old == NULL ? 1 : 0;
    return p;
}

BATON_API void free(void *old)
{
    if (old != NULL) {
        live--;
        memset(old, 0xa5, malloc_usable_size(old)); /* who looks here again is found out */
        __libc_free(old);
    }
}

#endif

#endif
