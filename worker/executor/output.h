/*
 * What an executor printed: masked, bounded, cleaned.
 *
 * Of each stream the beginning and the end are kept; all of it is drained. One thread.
 * In: run_exec, run_child, run_callback. Out: common/process/mask.c.
 */
#ifndef BATON_WORKER_EXECUTOR_OUTPUT_H
#define BATON_WORKER_EXECUTOR_OUTPUT_H

#include "common/process/line_io.h"
#include "common/process/mask.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kept of standard output, and of standard error behind it; together LIMIT_OUTPUT. */
#define OUTPUT_HEAD (16 * 1024)
#define OUTPUT_TAIL (31 * 1024)
#define OUTPUT_ERROR_HEAD (4 * 1024)
#define OUTPUT_ERROR_TAIL (12 * 1024)

/* Gets each whole masked line of a stream (standard error goes to the log so). */
typedef void output_line_fn(void *arg, const char *line, size_t len);

struct output {
    struct mask_stream stream;
    struct buf masked; /* of the piece just fed */
    struct buf head;
    struct buf tail;
    size_t head_max;
    size_t tail_max;
    size_t left_out; /* bytes between head and tail that are gone */
    output_line_fn *line_fn;
    void *line_arg;
    struct line_reader lines;
};

/* mask must outlive it. line_fn may be NULL. */
void output_init(struct output *output, const struct mask *mask, size_t head_max, size_t tail_max,
                 output_line_fn *line_fn, void *line_arg);
void output_done(struct output *output);
void output_feed(struct output *output, const void *bytes, size_t len);
/* The stream is over. */
void output_end(struct output *output);

/*
 * The text that is kept with the attempt: out's, then error's under a line `[standard error]`.
 * Valid UTF-8 without NUL (else U+FFFD stands there), at most LIMIT_OUTPUT. Either may be NULL.
 */
void output_text(const struct output *out, const struct output *error, struct buf *text,
                 bool *ret_truncated);

/* Adds ": " and the stream's last line that is not empty to a message of size bytes, as far as it
 * fits. Nothing if there is none. */
void output_add_last_line(const struct output *error, char *message, size_t size);

#endif
