/* Log lines. Called by the entry points of worker, producer and commands; sinks belong to programs.
 */
#include "common/base/diag.h"

#include "common/base/buf.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "common/base/text.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static const char *const level_words[] = {"error", "warn", "info", "debug"};

/* The sink: the one mutable global beside counters. `max` is read without the lock; -1: silent. */
static struct {
    pthread_mutex_t lock;
    diag_sink *sink;
    void *arg;
    bool json;
    atomic_int max;
} diag = {.lock = PTHREAD_MUTEX_INITIALIZER, .max = -1};

void diag_set(diag_sink *sink, void *arg, enum diag_level max, enum diag_form form)
{
    pthread_mutex_lock(&diag.lock);
    diag.sink = sink;
    diag.arg = arg;
    diag.json = form != DIAG_FORM_readable;
    atomic_store(&diag.max, sink != NULL ? (int)max : -1);
    pthread_mutex_unlock(&diag.lock);
}

static void to_stderr(void *arg, enum diag_level level, const char *line, size_t line_len)
{
    (void)arg;
    (void)level;
    while (line_len > 0) {
        ssize_t n = write(STDERR_FILENO, line, line_len);
        if (n < 0 && errno != EINTR) {
            return; /* ignored: where log lines go, there is nothing left to tell it to */
        }
        line += n > 0 ? n : 0;
        line_len -= n > 0 ? (size_t)n : 0;
    }
}

void diag_open_stderr(enum diag_level max, enum diag_form form)
{
    if (form == DIAG_FORM_auto) {
        form = isatty(STDERR_FILENO) == 1 ? DIAG_FORM_readable : DIAG_FORM_json;
    }
    diag_set(to_stderr, NULL, max, form);
}

bool diag_wants(enum diag_level level)
{
    return (int)level <= atomic_load_explicit(&diag.max, memory_order_relaxed);
}

struct diag_field diag_field_text(const char *key, const char *text)
{
    return (struct diag_field){.key = key,
                               .kind = DIAG_KIND_text,
                               .text = text,
                               .text_len = text != NULL ? strlen(text) : 0};
}

static bool present(const struct diag_field *field)
{
    return field->kind != DIAG_KIND_none && (field->kind != DIAG_KIND_text || field->text != NULL);
}

/* At most LIMIT_DIAG_TEXT bytes of text, not ending inside a character. */
static size_t cut(const struct diag_field *field)
{
    size_t len = field->text_len;
    if (len > LIMIT_DIAG_TEXT) {
        len = LIMIT_DIAG_TEXT - 3;
        while (len > 0 && ((unsigned char)field->text[len] & 0xC0) == 0x80) {
            len--;
        }
    }
    return len;
}

static void json_field(struct jsonw *w, const struct diag_field *field)
{
    jsonw_key(w, field->key);
    switch (field->kind) {
    case DIAG_KIND_int:
        jsonw_int(w, field->number);
        break;
    case DIAG_KIND_bool:
        jsonw_bool(w, field->number != 0);
        break;
    case DIAG_KIND_text: {
        size_t len = cut(field);
        jsonw_bytes(w, field->text, len);
        if (len < field->text_len && buf_ok(w->buf)) {
            w->buf->len--; /* the closing quotation mark */
            buf_add_text(w->buf, "...\"");
        }
        break;
    }
    case DIAG_KIND_none:
        break;
    }
}

static void json_line(struct buf *line, enum diag_level level, const char *event,
                      const struct diag_field *fields, size_t n_fields)
{
    struct jsonw w = jsonw_to(line);
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "ts", wall_text(wall_now()).s);
    jsonw_key_text(&w, "level", level_words[level]);
    jsonw_key_text(&w, "event", event);
    for (size_t i = 0; i < n_fields; i++) {
        if (present(&fields[i])) {
            json_field(&w, &fields[i]);
        }
    }
    jsonw_end(&w);
}

static void readable_text(struct buf *line, const struct diag_field *field)
{
    size_t len = cut(field);
    bool quoted = len == 0 || len < field->text_len;
    for (size_t i = 0; i < len && !quoted; i++) {
        quoted = field->text[i] == ' ' || field->text[i] == '"' || field->text[i] == '=';
    }
    buf_add_text(line, quoted ? "\"" : "");
    text_add(line, field->text, len, 0);
    buf_add_text(line, len < field->text_len ? "...\"" : quoted ? "\"" : "");
}

static void readable_line(struct buf *line, enum diag_level level, const char *event,
                          const struct diag_field *fields, size_t n_fields)
{
    struct time_text ts = wall_text(wall_now());
    buf_printf(line, "%.12s %-5s %s", ts.s + 11, level_words[level], event);
    for (size_t i = 0; i < n_fields; i++) {
        if (!present(&fields[i])) {
            continue;
        }
        buf_printf(line, " %s=", fields[i].key);
        if (fields[i].kind == DIAG_KIND_text) {
            readable_text(line, &fields[i]);
        } else if (fields[i].kind == DIAG_KIND_bool) {
            buf_add_text(line, fields[i].number != 0 ? "true" : "false");
        } else {
            buf_add_int(line, fields[i].number);
        }
    }
}

static void write_line(enum diag_level level, const char *event, const struct diag_field *fields,
                       size_t n_fields, int64_t repeated)
{
    struct buf line = BUF_INIT;
    pthread_mutex_lock(&diag.lock);
    if (diag.sink != NULL) {
        if (diag.json) {
            json_line(&line, level, event, fields, n_fields);
            if (repeated > 0 && buf_ok(&line)) {
                line.len--; /* the closing brace */
                buf_printf(&line, ",\"repeated\":%lld}", (long long)repeated);
            }
        } else {
            readable_line(&line, level, event, fields, n_fields);
            if (repeated > 0) {
                buf_printf(&line, " repeated=%lld", (long long)repeated);
            }
        }
        buf_add_char(&line, '\n');
        if (buf_ok(&line)) {
            diag.sink(diag.arg, level, line.data, line.len);
        }
    }
    pthread_mutex_unlock(&diag.lock);
    buf_done(&line);
}

void diag_write(enum diag_level level, const char *event, const struct diag_field *fields,
                size_t n_fields)
{
    if (diag_wants(level)) {
        write_line(level, event, fields, n_fields, 0);
    }
}

void diag_write_limited(struct diag_limit *limit, enum diag_level level, const char *event,
                        const struct diag_field *fields, size_t n_fields)
{
    if (!diag_wants(level)) {
        return;
    }
    int64_t now_ms = mono_now().v;
    int64_t interval_ms = limit->interval_ms > 0 ? limit->interval_ms : 10000;
    pthread_mutex_lock(&diag.lock);
    const bool anew = limit->next_ms == 0 || now_ms >= limit->next_ms;
    if (anew) {
        limit->next_ms = now_ms + interval_ms;
        limit->written = 0;
    }
    const bool due = anew || limit->written < limit->burst;
    int64_t repeated = limit->left_out;
    limit->left_out = due ? 0 : limit->left_out + 1;
    limit->written += due ? 1 : 0;
    pthread_mutex_unlock(&diag.lock);
    if (due) {
        write_line(level, event, fields, n_fields, repeated);
    }
}
