/*
 * Codes: the closed list of answers, their classes, and the error that carries detail.
 *
 * Any thread. A function that can fail for more than one reason returns baton_code and takes an
 * optional `struct baton_error *err` last: a code says what kind, the error says what happened, to
 * what, and what to do. Out-parameters (ret_...) are untouched on failure.
 */
#ifndef BATON_CODE_H
#define BATON_CODE_H

#include "baton/codes_table.h"
#include "baton/export.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BATON_CODE_ENUM(number, word, class, exit, text) BATON_E_##word = number,
typedef enum baton_code { BATON_CODES(BATON_CODE_ENUM) } baton_code;
#undef BATON_CODE_ENUM

#define BATON_OK BATON_E_ok

/* What a program does about a code: everywhere the same. */
enum baton_class {
    BATON_CLASS_ok,       /* done */
    BATON_CLASS_retry,    /* may work later: same role, later */
    BATON_CLASS_refused,  /* valid, not allowed: report, no retry */
    BATON_CLASS_invalid,  /* malformed, forged or unknown: dead-letter with the code */
    BATON_CLASS_config,   /* this installation is wrong: stop taking work */
    BATON_CLASS_internal, /* our bug or a damaged store: stop, keep evidence */
};

/* Detail of a failure; the caller's. One line, no trailing dot; the lowest layer that knows sets
 * it. */
struct baton_error {
    baton_code code;
    char text[512];
};

/* The word of a code ("turn_conflict"). Never NULL. An unknown number is "unexpected". */
BATON_API const char *baton_code_word(baton_code code);
/* The fixed text of a code for people. Never NULL. */
BATON_API const char *baton_code_text(baton_code code);
BATON_API enum baton_class baton_code_class(baton_code code);
/* The exit status of the command line. */
BATON_API int baton_code_exit(baton_code code);
/* Finds a code by its exact word; false if there is none. */
BATON_API bool baton_code_parse(const char *word, baton_code *ret_code);

/* Sets *err (may be NULL) to code and the formatted text, and returns code: `return
 * baton_fail(...)`. */
BATON_API baton_code baton_fail(struct baton_error *err, baton_code code, const char *format, ...)
    BATON_PRINTF(3, 4);
/* Puts a formatted context before the text that is there: `handoff 3f..: ` + text. Returns err's
 * code. */
BATON_API baton_code baton_fail_context(struct baton_error *err, baton_code code,
                                        const char *format, ...) BATON_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif

#endif
