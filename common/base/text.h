/*
 * Foreign text: the one family of functions through which every string that Baton did not write
 * itself is printed - on a terminal, in a log line, in an error, in JSON.
 *
 * Dangerous are control bytes, ESC, C1 (raw and as U+0080..9F), bidi controls, zero width and other
 * invisible characters, U+2028/2029, tag characters, unassigned specials, and invalid UTF-8. Text
 * forms show them as visible `\xNN` (bytes) and `\u{...}` (code points); a backslash itself stays
 * as it is. JSON forms write them as \uXXXX, so what a program reads back is what was there. Any
 * thread.
 */
#ifndef BATON_BASE_TEXT_H
#define BATON_BASE_TEXT_H

#include "common/base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Well-formed UTF-8 (no surrogates, no overlong forms, at most U+10FFFF)? NUL is a character. */
bool text_utf8_valid(const void *bytes, size_t len);
/* Length 1..4 of the well-formed sequence at bytes and its code point, or 0 if there is none. */
size_t text_utf8_next(const void *bytes, size_t len, uint32_t *ret_point);
/* Must this code point not reach a terminal as it is? Newline and tab count as dangerous. */
bool text_dangerous(uint32_t point);

/*
 * Appends as one line: newline and tab are escaped, too. At most max bytes of the escaped form, cut
 * between characters and marked with "..." (which counts in max); max 0: no limit.
 */
void text_add(struct buf *buf, const void *bytes, size_t len, size_t max);
/* Words filled into lines of at most width columns (0: one line), the first indented by `first`, the others
 * by `indent`; an empty line begins a paragraph. Ends with a newline. */
void text_wrap(struct buf *out, const char *text, size_t first, size_t indent, size_t width);
/* The same for many lines: newlines stay, each begins with indent; tabs become spaces. */
void text_add_lines(struct buf *buf, const void *bytes, size_t len, size_t max, const char *indent);

/* A short escaped copy for error texts: baton_fail(err, ..., "... '%s'", text_quote(p, n).s). */
#define TEXT_QUOTE_MAX 128
struct text_quote {
    char s[TEXT_QUOTE_MAX + 1];
};
struct text_quote text_quote(const void *bytes, size_t len);
/* The same for a text that ends with NUL; NULL is "". */
struct text_quote text_quote_of(const char *text);

/*
 * Appends a JSON string with its quotation marks, for output that people may see: always valid
 * JSON, invalid UTF-8 replaced by U+FFFD, dangerous code points as \uXXXX (pairs above U+FFFF).
 */
void text_json_add(struct buf *buf, const void *bytes, size_t len);
/*
 * The same with only what JSON demands escaped, for records on the log: '"', '\', U+0000..001F.
 * Invalid UTF-8 is replaced by U+FFFD, so the result is valid JSON whatever comes in.
 */
void text_json_add_plain(struct buf *buf, const void *bytes, size_t len);

/* Columns on a terminal of a text that was escaped by text_add: wide characters count two. */
size_t text_width(const char *text, size_t len);

#endif
