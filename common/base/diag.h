/*
 * Log lines: one for each event, through one sink.
 *
 *   diag_line(DIAG_info, "turn.moved", D_TEXT("turn", id.s), D_INT("attempt", n));
 *
 * Without a sink nothing is written: the library is silent, a program opens standard error once at
 * its start. Lines are JSON, or readable on a terminal. Texts are foreign until proven otherwise:
 * every value is escaped and cut at 200 bytes. Never log bodies, prompts, keys, environment values.
 * Any thread; a line is written whole. A line that cannot be written is dropped.
 */
#ifndef BATON_BASE_DIAG_H
#define BATON_BASE_DIAG_H

#include "baton/code.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum diag_level { DIAG_error, DIAG_warn, DIAG_info, DIAG_debug };

enum diag_kind { DIAG_KIND_none, DIAG_KIND_text, DIAG_KIND_int, DIAG_KIND_bool };

struct diag_field {
    const char *key; /* a literal of ours */
    enum diag_kind kind;
    const char *text; /* of text_len bytes; NULL: the field is left out */
    size_t text_len;
    int64_t number;
};

/* A text that ends with NUL (NULL: left out), bytes with a length, numbers, the word of a code. */
#define D_TEXT(k, v) diag_field_text((k), (v))
#define D_BYTES(k, p, n)                                                                           \
    ((struct diag_field){.key = (k), .kind = DIAG_KIND_text, .text = (p), .text_len = (n)})
#define D_INT(k, n) ((struct diag_field){.key = (k), .kind = DIAG_KIND_int, .number = (n)})
#define D_BOOL(k, v)                                                                               \
    ((struct diag_field){.key = (k), .kind = DIAG_KIND_bool, .number = (v) ? 1 : 0})
#define D_CODE(k, code) D_TEXT((k), baton_code_word(code))

struct diag_field diag_field_text(const char *key, const char *text);

/* diag_line(level, event, fields...): event is a stable noun.verb. */
#define diag_line(level, event, ...)                                                               \
    diag_write((level), (event), (const struct diag_field[]){{0}, ##__VA_ARGS__},                  \
               sizeof((const struct diag_field[]){{0}, ##__VA_ARGS__}) /                           \
                   sizeof(struct diag_field))
void diag_write(enum diag_level level, const char *event, const struct diag_field *fields,
                size_t n_fields);

/* Would a line of this level be written? To save the work of preparing its fields. */
bool diag_wants(enum diag_level level);

/*
 * Repeating events: the first one of each interval is written (with DIAG_LIMIT_BURST the first few), the
 * others are counted, and the next line that is written carries `repeated`, the count of those left out.
 * One limit for each place or object, zeroed or DIAG_LIMIT.
 *
 *   static struct diag_limit limit = DIAG_LIMIT(10000);
 *   diag_limited(&limit, DIAG_warn, "log.retried", D_CODE("code", code));
 */
struct diag_limit {
    int64_t interval_ms; /* 0: ten seconds */
    int64_t next_ms;     /* monotonic; 0: never written */
    int64_t left_out;
    int64_t burst; /* lines of an interval; 0: one */
    int64_t written;
};
#define DIAG_LIMIT_BURST(interval, lines)                                                          \
    {                                                                                              \
        (interval), 0, 0, (lines), 0                                                               \
    }
#define DIAG_LIMIT(interval) DIAG_LIMIT_BURST((interval), 0)
#define diag_limited(limit, level, event, ...)                                                     \
    diag_write_limited((limit), (level), (event), (const struct diag_field[]){{0}, ##__VA_ARGS__}, \
                       sizeof((const struct diag_field[]){{0}, ##__VA_ARGS__}) /                   \
                           sizeof(struct diag_field))
void diag_write_limited(struct diag_limit *limit, enum diag_level level, const char *event,
                        const struct diag_field *fields, size_t n_fields);

/* The sink gets one whole line with its newline, already escaped. Any thread calls it. */
typedef void diag_sink(void *arg, enum diag_level level, const char *line, size_t line_len);
enum diag_form { DIAG_FORM_auto, DIAG_FORM_json, DIAG_FORM_readable };

/* Sets sink (NULL: silent), the highest level that is written, and the form. auto: JSON. */
void diag_set(diag_sink *sink, void *arg, enum diag_level max, enum diag_form form);
/* Writes to standard error from now on; auto: readable on a terminal, else JSON. */
void diag_open_stderr(enum diag_level max, enum diag_form form);

#endif
