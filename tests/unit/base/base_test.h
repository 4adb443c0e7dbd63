/* What the unit tests of base share: cmocka's includes, and the golden folder beside this file. */
#ifndef BATON_TESTS_BASE_TEST_H
#define BATON_TESTS_BASE_TEST_H

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "common/base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The text of a buffer; the test fails when it is broken. */
static inline const char *text_in(const struct buf *buf)
{
    assert_true(buf_ok(buf));
    return buf->data != NULL ? buf->data : "";
}

/* The path of a file below tests/golden, from this file's own place. */
static inline void golden_path(char *path, size_t size, const char *name)
{
    const char *here = __FILE__;
    const char *unit = strstr(here, "/unit/base/");
    assert_non_null(unit);
    snprintf(path, size, "%.*s/golden/%s", (int)(unit - here), here, name);
}

#endif
