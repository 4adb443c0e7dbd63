/*
 * The lines between the pool and a long-lived child: written, read, judged (worker/EXECUTOR.md).
 *
 * Every line of a child is masked before it is looked at, so nothing that comes from here can hold
 * a secret. A line that is not exactly one of hello, progress, result ends the child: who loses
 * count of requests and answers must not go on.
 *
 * In: run_child.c.  Out: run_child.c (ready, result, end), common/record/json.h.
 */
#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/base/word.h"
#include "common/record/json.h"
#include "worker/executor/run_child.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECES_AT_ONCE 4

/* ---- to the child ---- */

void child_in_flush(struct executor_pool *pool, struct child_run *run)
{
    size_t done = 0;
    while (run->in.fd >= 0 && done < run->in_waiting.len) {
        ssize_t n = write(run->in.fd, run->in_waiting.data + done, run->in_waiting.len - done);
        if (n > 0) {
            done += (size_t)n;
            run->in_sent += (uint64_t)n;
        } else if (errno == EPIPE) {
            source_close(pool, &run->in); /* its end is told by its pidfd or its output */
        } else if (errno != EINTR) {
            break;
        }
    }
    if (done > 0) {
        memmove(run->in_waiting.data, run->in_waiting.data + done, run->in_waiting.len - done);
        run->in_waiting.len -= done;
    }
}

static void send_line(struct executor_pool *pool, struct child_run *run, struct buf *line)
{
    buf_add_char(line, '\n');
    if (!buf_ok(line)) {
        child_run_end(pool, run, FAILURE_unavailable, "no memory for a line to the child");
        return;
    }
    if (run->in.fd < 0) {
        return;
    }
    buf_add(&run->in_waiting, line->data, line->len);
    run->in_queued += line->len;
    if (!buf_ok(&run->in_waiting)) {
        child_run_end(pool, run, FAILURE_unavailable, "no memory for a line to the child");
        return;
    }
    child_in_flush(pool, run);
}

void child_say_hello(struct executor_pool *pool, struct child_run *run)
{
    struct buf line = BUF_INIT;
    struct jsonw w = jsonw_to(&line);
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "type", "hello");
    jsonw_key_int(&w, "protocol", CHILD_PROTOCOL);
    jsonw_key_text(&w, "service", pool->set.service.s);
    jsonw_key_text(&w, "worker", pool->set.worker.s);
    jsonw_key_text(&w, "profile", run->group->profile.s);
    jsonw_key_int(&w, "parallel", pool->set.parallel);
    jsonw_end(&w);
    send_line(pool, run, &line);
    buf_done(&line);
}

/* The turn's bytes on one line: outside of strings a newline is white space, within none can stand.
 */
static void add_turn(struct jsonw *w, const struct attempt *attempt)
{
    jsonw_key(w, "turn");
    jsonw_raw(w, attempt->json, attempt->json_len);
    char *at = w->buf->data + w->buf->len - attempt->json_len;
    for (size_t i = 0; buf_ok(w->buf) && i < attempt->json_len; i++) {
        if (at[i] == '\n' || at[i] == '\r') {
            at[i] = ' ';
        }
    }
}

static void write_turn(const struct child_run *run, const struct child_slot *slot, struct buf *line)
{
    const struct attempt *attempt = slot->attempt;
    int64_t left_ms = attempt->deadline_at_ms - mono_now().v;
    struct jsonw w = jsonw_to(line);
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "type", "turn");
    jsonw_key_text(&w, "id", slot->id);
    jsonw_key_text(&w, "role", role_word(attempt->role));
    jsonw_key_text(&w, "turn_id", attempt->turn.s);
    jsonw_key_int(&w, "attempt", attempt->no);
    jsonw_key_text(&w, "task_id", attempt->task.s);
    jsonw_key_int(&w, "task_rev", attempt->task_rev);
    jsonw_key_text(&w, "run_id", attempt->run.s);
    jsonw_key_text(&w, "intent", attempt->intent.s);
    jsonw_key_int(&w, "deadline_ms", left_ms > 0 ? left_ms : 0);
    jsonw_key_bool(&w, "read_only", attempt->read_only);
    jsonw_key_text(&w, "place", attempt->place != NULL ? attempt->place : run->scratch);
    if (attempt->traceparent[0] != '\0') {
        jsonw_key_text(&w, "traceparent", attempt->traceparent);
    }
    add_turn(&w, attempt);
    jsonw_end(&w);
}

void child_give(struct executor_pool *pool, struct child_run *run, struct attempt *attempt)
{
    struct child_slot *slot = calloc(1, sizeof(*slot));
    struct buf line = BUF_INIT;
    if (slot == NULL) {
        attempt_fail(pool, attempt, FAILURE_unavailable, "no memory for a turn on a child");
        return;
    }
    slot->run = run;
    slot->attempt = attempt;
    slot->sent_from = run->in_queued;
    snprintf(slot->id, sizeof(slot->id), "%s.%d", attempt->turn.s, (int)attempt->no);
    slot->next = run->slots;
    run->slots = slot;
    run->n_slots++;
    attempt->work = slot;
    attempt_running(pool, attempt);
    write_turn(run, slot, &line);
    send_line(pool, run, &line);
    buf_done(&line);
}

void child_cancel(struct executor_pool *pool, struct child_run *run, const struct child_slot *slot,
                  const char *why)
{
    struct buf line = BUF_INIT;
    struct jsonw w = jsonw_to(&line);
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "type", "cancel");
    jsonw_key_text(&w, "id", slot->id);
    jsonw_key_text(&w, "reason", why);
    jsonw_end(&w);
    send_line(pool, run, &line);
    buf_done(&line);
}

/* ---- from the child ---- */

__attribute__((format(printf, 3, 4))) static void
stray(struct executor_pool *pool, struct child_run *run, const char *format, ...)
{
    char why[384];
    char message[EXECUTOR_MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    snprintf(message, sizeof(message), "the child was ended: %s", why);
    child_run_end(pool, run, run->greeted ? FAILURE_invalid_output : FAILURE_unavailable, message);
}

/* The members of each kind of line, closed. */
static const struct frame {
    const char *type;
    const char *members;
} frames[] = {
    {"hello", "type protocol name parallel"},
    {"progress", "type id text"},
    {"result", "type id result"},
};

static const struct frame *frame_of(const struct json_value *root)
{
    const struct json_value *type = json_member(root, "type");
    for (size_t i = 0; type != NULL && json_kind(type) == JSON_text && i < 3; i++) {
        if (strcmp(json_text(type, NULL), frames[i].type) == 0) {
            return &frames[i];
        }
    }
    return NULL;
}

static bool members_known(const struct frame *frame, const struct json_value *root)
{
    for (const struct json_value *at = json_first(root); at != NULL; at = json_next(at)) {
        if (!word_in_list(frame->members, json_name(at))) {
            return false;
        }
    }
    return true;
}

static void take_hello(struct executor_pool *pool, struct child_run *run,
                       const struct json_value *root)
{
    const struct json_value *protocol = json_member(root, "protocol");
    const struct json_value *name = json_member(root, "name");
    const struct json_value *parallel = json_member(root, "parallel");
    int64_t width = 1;
    if (parallel != NULL) {
        width = json_kind(parallel) == JSON_int ? json_int(parallel) : 0;
    }
    if (protocol == NULL || json_kind(protocol) != JSON_int ||
        json_int(protocol) != CHILD_PROTOCOL) {
        stray(pool, run, "its hello does not name protocol %d, which this worker speaks",
              CHILD_PROTOCOL);
    } else if (name == NULL || json_kind(name) != JSON_text || width < 1 ||
               width > CHILD_PARALLEL_MAX) {
        stray(pool, run, "its hello has no name, or a parallel that is not 1 to %d",
              CHILD_PARALLEL_MAX);
    } else {
        child_run_ready(pool, run, (int)width);
    }
}

static struct child_slot *slot_of(struct child_run *run, const struct json_value *root)
{
    const struct json_value *id = json_member(root, "id");
    if (id == NULL || json_kind(id) != JSON_text) {
        return NULL;
    }
    for (struct child_slot *slot = run->slots; slot != NULL; slot = slot->next) {
        if (strcmp(slot->id, json_text(id, NULL)) == 0) {
            return slot;
        }
    }
    return NULL;
}

static void take_progress(struct executor_pool *pool, struct child_run *run,
                          const struct child_slot *slot, const struct json_value *root)
{
    size_t len;
    const struct json_value *text = json_member(root, "text");
    if (text == NULL || json_kind(text) != JSON_text) {
        stray(pool, run, "a progress without text");
        return;
    }
    const char *bytes = json_text(text, &len);
    attempt_heard(slot->attempt);
    attempt_progress(pool, slot->attempt, bytes,
                     len < EXECUTOR_PROGRESS_MAX ? len : EXECUTOR_PROGRESS_MAX);
}

static void take_frame(struct executor_pool *pool, struct child_run *run, struct json_doc *doc)
{
    const struct json_value *root = json_root(doc);
    if (json_kind(root) != JSON_object) {
        stray(pool, run, "a line that is JSON, but no object");
        return;
    }
    const struct frame *frame = frame_of(root);
    if (frame == NULL || !members_known(frame, root)) {
        stray(pool, run, "a line that is no hello, progress or result, or has unknown members");
        return;
    }
    bool hello = frame == &frames[0];
    if (hello == run->greeted) {
        stray(pool, run, hello ? "a second hello" : "a line before its hello");
        return;
    }
    if (hello) {
        take_hello(pool, run, root);
        return;
    }
    struct child_slot *slot = slot_of(run, root);
    struct json_span object = json_raw(doc, "result");
    if (slot == NULL) {
        stray(pool, run, "a %s for a turn that it does not have", frame->type);
    } else if (frame == &frames[1]) {
        take_progress(pool, run, slot, root);
    } else if (object.at == NULL) {
        stray(pool, run, "a result without result");
    } else {
        child_run_result(pool, run, slot, object.at, object.len);
    }
}

static void take_line(struct executor_pool *pool, struct child_run *run, const char *line,
                      size_t len)
{
    struct json_doc *doc = NULL;
    struct baton_error err;
    struct buf masked = BUF_INIT;
    mask_add(executor_env_mask(run->env), line, len, &masked);
    if (!buf_ok(&masked)) {
        stray(pool, run, "no memory for its line");
    } else if (json_parse(masked.len > 0 ? masked.data : "", masked.len, LIMIT_CHILD_FRAME,
                          LIMIT_JSON_DEPTH + 1, &doc, &err) != BATON_OK) {
        stray(pool, run, "a line that is not JSON: %s", err.text);
    } else {
        take_frame(pool, run, doc);
    }
    json_free(doc);
    buf_done(&masked);
}

static void take_lines(struct executor_pool *pool, struct child_run *run)
{
    const char *line;
    size_t len;
    while (run->phase != CHILD_PHASE_killed) {
        switch (line_reader_next(&run->frames, &line, &len)) {
        case LINE_none:
            return;
        case LINE_too_long:
            stray(pool, run, "a line of more than %d bytes", LIMIT_CHILD_FRAME);
            return;
        case LINE_whole:
            take_line(pool, run, line, len);
            break;
        }
    }
}

void child_frames_read(struct executor_pool *pool, struct child_run *run, bool to_end)
{
    for (int pieces = 0; run->out.fd >= 0 && (to_end || pieces < PIECES_AT_ONCE); pieces++) {
        ssize_t n = read(run->out.fd, pool->piece, POOL_PIECE);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (n <= 0) {
            child_run_deaf(pool, run);
            return;
        }
        if (!line_reader_feed(&run->frames, pool->piece, (size_t)n)) {
            stray(pool, run, "no memory for its line");
            return;
        }
        take_lines(pool, run);
    }
}

bool child_error_read(struct child_run *run)
{
    char piece[4096];
    for (int pieces = 0; run->error.fd >= 0 && pieces < 64; pieces++) {
        ssize_t n = read(run->error.fd, piece, sizeof(piece));
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            return true;
        }
        if (n <= 0) {
            return false;
        }
        output_feed(&run->error_text, piece, (size_t)n);
    }
    return true;
}
