/* Codes: lookups in the one table, and errors with detail. Called from everywhere. */
#include "baton/code.h"
#include "common/base/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct code_row {
    baton_code code;
    enum baton_class class;
    int exit;
    const char *word;
    const char *text;
};

#define CODE_ROW(number, word, class, exit, text)                                                  \
    {BATON_E_##word, BATON_CLASS_##class, exit, #word, text},
static const struct code_row code_rows[] = {BATON_CODES(CODE_ROW)};
#undef CODE_ROW

static const struct code_row *row_of(baton_code code)
{
    static const struct code_row *by_number[256];
    static bool filled; /* idempotent: a race writes the same pointers */
    if (!__atomic_load_n(&filled, __ATOMIC_ACQUIRE)) {
        for (size_t i = 0; i < COUNT_OF(code_rows); i++) {
            __atomic_store_n(&by_number[code_rows[i].code], &code_rows[i], __ATOMIC_RELAXED);
        }
        __atomic_store_n(&filled, true, __ATOMIC_RELEASE);
    }
    const struct code_row *row = NULL;
    if ((unsigned)code < COUNT_OF(by_number)) {
        row = __atomic_load_n(&by_number[(unsigned)code], __ATOMIC_RELAXED);
    }
    return row != NULL ? row : &code_rows[COUNT_OF(code_rows) - 1];
}

const char *baton_code_word(baton_code code)
{
    return row_of(code)->word;
}

const char *baton_code_text(baton_code code)
{
    return row_of(code)->text;
}

enum baton_class baton_code_class(baton_code code)
{
    return row_of(code)->class;
}

int baton_code_exit(baton_code code)
{
    return row_of(code)->exit;
}

bool baton_code_parse(const char *word, baton_code *ret_code)
{
    for (size_t i = 0; i < COUNT_OF(code_rows); i++) {
        if (strcmp(code_rows[i].word, word) == 0) {
            *ret_code = code_rows[i].code;
            return true;
        }
    }
    return false;
}

baton_code baton_fail(struct baton_error *err, baton_code code, const char *format, ...)
{
    if (err != NULL) {
        va_list args;
        err->code = code;
        va_start(args, format);
        vsnprintf(err->text, sizeof(err->text), format, args);
        va_end(args);
    }
    return code;
}

baton_code baton_fail_context(struct baton_error *err, baton_code code, const char *format, ...)
{
    if (err != NULL) {
        char text[sizeof(err->text)];
        char before[200];
        va_list args;
        va_start(args, format);
        vsnprintf(before, sizeof(before), format, args);
        va_end(args);
        memcpy(text, err->text, sizeof(text));
        text[sizeof(text) - 1] = '\0';
        err->code = code;
        int n = snprintf(err->text, sizeof(err->text), "%s", before);
        snprintf(err->text + n, sizeof(err->text) - (size_t)n, "%s", text);
    }
    return code;
}

void check_failed(const char *kind, const char *text, const char *file, int line)
{
    fprintf(stderr, "baton: broken %s: %s (%s:%d)\n", kind, text, file, line);
    abort();
}
