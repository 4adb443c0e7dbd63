/* Keeps head and tail of masked streams. In: run_exec, run_child, run_callback. Out: mask, text. */
#include "worker/executor/output.h"

#include "common/base/limits.h"
#include "common/base/text.h"

#include <stdio.h>
#include <string.h>

void output_init(struct output *output, const struct mask *mask, size_t head_max, size_t tail_max,
                 output_line_fn *line_fn, void *line_arg)
{
    memset(output, 0, sizeof(*output));
    mask_stream_init(&output->stream, mask);
    output->head_max = head_max;
    output->tail_max = tail_max;
    output->line_fn = line_fn;
    output->line_arg = line_arg;
    line_reader_init(&output->lines, LIMIT_STDERR_LINE);
}

void output_done(struct output *output)
{
    mask_stream_done(&output->stream);
    buf_done(&output->masked);
    buf_done(&output->head);
    buf_done(&output->tail);
    line_reader_done(&output->lines);
}

static void keep(struct output *output, const char *bytes, size_t len)
{
    size_t room = output->head_max - output->head.len;
    size_t n = len < room ? len : room;
    buf_add(&output->head, bytes, n);
    bytes += n;
    len -= n;
    if (len > output->tail_max) { /* only its end can stay */
        output->left_out += output->tail.len + len - output->tail_max;
        buf_clear(&output->tail);
        bytes += len - output->tail_max;
        len = output->tail_max;
    }
    if (len == 0) {
        return;
    }
    buf_add(&output->tail, bytes, len);
    if (output->tail.len > 2 * output->tail_max) { /* moved rarely, so that a flood stays cheap */
        size_t drop = output->tail.len - output->tail_max;
        memmove(output->tail.data, output->tail.data + drop, output->tail_max);
        output->tail.len = output->tail_max;
        output->left_out += drop;
    }
}

static void take_lines(struct output *output)
{
    const char *line;
    size_t len;
    if (!line_reader_feed(&output->lines, output->masked.data, output->masked.len)) {
        output->line_fn = NULL; /* no memory for a line: the log goes without */
        return;
    }
    while (line_reader_next(&output->lines, &line, &len) != LINE_none) {
        output->line_fn(output->line_arg, line, len);
    }
}

static void take_masked(struct output *output)
{
    if (buf_ok(&output->masked) && output->masked.len > 0) {
        keep(output, output->masked.data, output->masked.len);
        if (output->line_fn != NULL) {
            take_lines(output);
        }
    }
    buf_clear(&output->masked);
}

void output_feed(struct output *output, const void *bytes, size_t len)
{
    mask_stream_feed(&output->stream, bytes, len, &output->masked);
    take_masked(output);
}

void output_end(struct output *output)
{
    const char *line;
    size_t len;
    mask_stream_end(&output->stream, &output->masked);
    take_masked(output);
    if (output->line_fn != NULL && line_reader_rest(&output->lines, &line, &len)) {
        output->line_fn(output->line_arg, line, len);
    }
}

/* Appends as valid UTF-8 without NUL. */
static void add_clean(struct buf *text, const struct buf *bytes, size_t from)
{
    static const char replacement[] = "\xEF\xBF\xBD";
    for (size_t at = from; at < bytes->len;) {
        uint32_t point;
        size_t n = text_utf8_next(bytes->data + at, bytes->len - at, &point);
        if (n == 0 || point == 0) {
            buf_add_text(text, replacement);
            at++;
        } else {
            buf_add(text, bytes->data + at, n);
            at += n;
        }
    }
}

static bool add_stream(const struct output *output, struct buf *text)
{
    size_t over = output->tail.len > output->tail_max ? output->tail.len - output->tail_max : 0;
    size_t left_out = output->left_out + over;
    add_clean(text, &output->head, 0);
    if (left_out > 0) {
        buf_printf(text, "\n[%zu bytes left out]\n", left_out);
    }
    add_clean(text, &output->tail, over);
    return left_out > 0;
}

void output_text(const struct output *out, const struct output *error, struct buf *text,
                 bool *ret_truncated)
{
    bool truncated = out != NULL && add_stream(out, text);
    if (error != NULL && error->head.len > 0) {
        if (text->len > 0 && text->data[text->len - 1] != '\n') {
            buf_add_char(text, '\n');
        }
        buf_add_text(text, "[standard error]\n");
        truncated = add_stream(error, text) || truncated;
    }
    if (text->len > LIMIT_OUTPUT) { /* many invalid bytes grew threefold */
        size_t len = LIMIT_OUTPUT;
        while (len > 0 && ((unsigned char)text->data[len] & 0xC0) == 0x80) {
            len--;
        }
        text->len = len;
        text->data[len] = '\0';
        truncated = true;
    }
    *ret_truncated = truncated;
}

void output_add_last_line(const struct output *error, char *message, size_t size)
{
    const struct buf *kept = error->tail.len > 0 ? &error->tail : &error->head;
    size_t end = kept->len;
    while (end > 0 && strchr(" \t\r\n", kept->data[end - 1]) != NULL) {
        end--;
    }
    size_t begin = end;
    while (begin > 0 && kept->data[begin - 1] != '\n') {
        begin--;
    }
    size_t have = strlen(message);
    if (end > begin) {
        snprintf(message + have, size - have, ": %.*s", (int)(end - begin), kept->data + begin);
    }
}
