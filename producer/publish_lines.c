/*
 * Publishing in bulk: JSON lines become turns.
 * In: producer/cmd_publish.c
 * Out: producer/line_source.c, producer/publish_line.c, producer/publish.c
 */
#include "producer/publish_lines.h"

#include "common/base/jsonw.h"
#include "common/base/text.h"
#include "producer/line_source.h"
#include "producer/publish_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH_LINES 500
#define BATCH_BYTES (4 * 1024 * 1024)
#define GATHER_MS 50 /* nothing more came for so long: what there is goes out */
#define SHOW_AFTER_MS 1000
#define SHOW_EVERY_MS 100
#define EXIT_REFUSED 7 /* some lines were refused, and the others are published */

/* Services that lines name: whether they can be published to is asked once. */
struct looked {
    struct service_id name;
    baton_code code;
    char *text; /* NULL: it can */
};

struct totals {
    int64_t published; /* --dry-run, and the first reading: would be */
    int64_t refused;
    int64_t unknown; /* sent, and not heard of: in the log or not */
    int64_t last;    /* line that is dealt with */
};

struct bulk {
    const struct publish_lines *asked;
    struct command *cmd;
    struct line_source source;
    bool checking; /* nothing is sent */
    struct prepared list[BATCH_LINES];
    int64_t lines[BATCH_LINES]; /* their numbers */
    size_t count;
    size_t bytes;
    struct looked looked[LIMIT_SERVICES];
    size_t n_looked;
    struct totals totals;
    struct buf out;
    struct mono_ms began;
    struct mono_ms shown;
    bool bar; /* a progress line stands on the terminal */
    bool interrupted;
    bool unheard; /* nobody reads what is told */
};

/* ---- what is told ---- */

static void bar_clear(struct bulk *b)
{
    if (b->bar) {
        fprintf(stderr, "\r\033[K");
        fflush(stderr);
        b->bar = false;
    }
}

static void bar_show(struct bulk *b)
{
    const struct mono_ms now = mono_now();
    char part[16] = "";
    if (b->cmd->quiet || now.v - b->began.v < SHOW_AFTER_MS || now.v - b->shown.v < SHOW_EVERY_MS ||
        isatty(STDERR_FILENO) != 1) {
        return;
    }
    b->shown = now;
    b->bar = true;
    if (b->source.size > 0) {
        const int64_t whole = b->source.taken < b->source.size ? b->source.taken : b->source.size;
        snprintf(part, sizeof(part), "%d%%, ", (int)(whole * 100 / b->source.size));
    }
    fprintf(stderr, "\r%s%s%lld, refused %lld\033[K", part, b->checking ? "checked " : "published ",
            (long long)b->totals.published, (long long)b->totals.refused);
    fflush(stderr);
}

static void say(struct bulk *b)
{
    if (b->out.len > 0 && !command_print(b->cmd, &b->out)) {
        b->unheard = true;
    }
}

static void line_refused(struct bulk *b, int64_t line, baton_code code, const char *text)
{
    b->totals.refused++;
    if (b->cmd->json) {
        struct jsonw w = jsonw_to(&b->out);
        jsonw_begin_object(&w);
        jsonw_key_int(&w, "line", line);
        jsonw_key_text(&w, "status", "refused");
        jsonw_key_text(&w, "code", baton_code_word(code));
        jsonw_key_text(&w, "error", text);
        jsonw_end(&w);
        buf_add_char(&b->out, '\n');
        return;
    }
    bar_clear(b);
    command_note(b->cmd, "line %lld refused: %s (%s)", (long long)line, text,
                 baton_code_word(code));
}

/* One that is in the log, would be, or may be. */
static void line_taken(struct bulk *b, int64_t line, const struct published *published,
                       const char *status)
{
    if (!b->cmd->json) {
        return;
    }
    struct jsonw w = jsonw_to(&b->out);
    jsonw_begin_object(&w);
    jsonw_key_int(&w, "line", line);
    jsonw_key_text(&w, "status", status);
    jsonw_key_text(&w, "turn_id", published->turn_id.s);
    jsonw_key_text(&w, "service", published->service.s);
    jsonw_key_text(&w, "role", role_word(published->role));
    jsonw_key_text(&w, "key", published->key);
    if (published->offset != LOG_OFFSET_NONE) {
        jsonw_key_text(&w, "traceparent", published->traceparent);
        jsonw_key_int(&w, "partition", published->partition);
        jsonw_key_int(&w, "offset", published->offset);
    }
    jsonw_end(&w);
    buf_add_char(&b->out, '\n');
}

/* ---- sending ---- */

static void batch_drop(struct bulk *b)
{
    for (size_t i = 0; i < b->count; i++) {
        prepared_done(&b->list[i]);
    }
    b->count = 0;
    b->bytes = 0;
}

/* From i on: whether the log has them is not known, but for those that it was not asked about. */
static void unknown_from(struct bulk *b, size_t i, size_t end)
{
    for (; i < end; i++) {
        b->totals.unknown++;
        line_taken(b, b->lines[i], &b->list[i].published, "unknown");
    }
}

/* The log has refused something of the batch, and does not say which: one by one, which is harmless for those that
 * it took. */
static baton_code send_singly(struct bulk *b, struct baton_error *err)
{
    for (size_t i = 0; i < b->count; i++) {
        baton_code rc = publisher_send_all(b->asked->publisher, &b->list[i], 1, err);
        if (rc == BATON_OK) {
            b->totals.published++;
            line_taken(b, b->lines[i], &b->list[i].published, "queued");
        } else if (publish_of_one(rc)) {
            line_refused(b, b->lines[i], rc, err->text);
        } else {
            unknown_from(b, i, b->count);
            return rc;
        }
        b->totals.last = b->lines[i];
    }
    b->totals.last = b->source.number;
    return BATON_OK;
}

static baton_code flush(struct bulk *b, struct baton_error *err)
{
    baton_code rc = BATON_OK;
    if (b->count > 0 && !b->checking) {
        rc = publisher_send_all(b->asked->publisher, b->list, b->count, err);
    }
    if (rc == BATON_OK) {
        for (size_t i = 0; i < b->count; i++) {
            b->totals.published++;
            if (!b->checking || b->asked->dry_run) {
                line_taken(b, b->lines[i], &b->list[i].published, b->checking ? "would" : "queued");
            }
        }
        b->totals.last = b->source.number; /* refused ones before it are told, too */
    } else if (publish_of_one(rc)) {
        rc = send_singly(b, err);
    } else {
        unknown_from(b, 0, b->count);
    }
    batch_drop(b);
    say(b);
    return rc;
}

/* ---- lines ---- */

/* Can its service be published to? What speaks against it is said of each line; a log that cannot be
 * reached ends everything. */
static baton_code look(struct bulk *b, const char *service, struct baton_error *err)
{
    struct looked *one = NULL;
    for (size_t i = 0; i < b->n_looked && one == NULL; i++) {
        one = strcmp(b->looked[i].name.s, service) == 0 ? &b->looked[i] : NULL;
    }
    if (one == NULL) {
        const baton_code rc = publisher_look(b->asked->publisher, service, err);
        if (b->n_looked == LIMIT_SERVICES || (rc != BATON_OK && !publish_of_one(rc))) {
            return rc;
        }
        one = &b->looked[b->n_looked++];
        *one =
            (struct looked){service_id_of(service), rc, rc != BATON_OK ? strdup(err->text) : NULL};
    }
    return one->code == BATON_OK
               ? BATON_OK
               : baton_fail(err, one->code, "%s", one->text != NULL ? one->text : "");
}

static baton_code prepare(struct bulk *b, const char *bytes, size_t len, struct prepared *ret,
                          struct baton_error *err)
{
    struct publish_line line;
    baton_code rc = publish_line_read(bytes, len, b->asked->fallback, &line, err);
    if (rc == BATON_OK) {
        rc = publisher_prepare(b->asked->publisher, &line.request, ret, err);
        publish_line_done(&line);
    }
    return rc;
}

static bool blank(const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] != ' ' && bytes[i] != '\t' && bytes[i] != '\r') {
            return false;
        }
    }
    return true;
}

static baton_code on_line(struct bulk *b, const char *bytes, size_t len, struct baton_error *err)
{
    static const char bom[] =
        "\xef\xbb\xbf"; /* what some editors begin a file with: no text of it */
    struct prepared prepared = {.turn = NULL};
    if (b->source.number == 1 && len >= strlen(bom) && memcmp(bytes, bom, strlen(bom)) == 0) {
        bytes += strlen(bom);
        len -= strlen(bom);
    }
    if (blank(bytes, len)) {
        return BATON_OK;
    }
    baton_code rc = prepare(b, bytes, len, &prepared, err);
    if (rc == BATON_OK && (rc = look(b, prepared.published.service.s, err)) != BATON_OK) {
        prepared_done(&prepared);
    }
    if (rc != BATON_OK) {
        if (publish_of_one(rc)) {
            line_refused(b, b->source.number, rc, err->text);
            return BATON_OK;
        }
        return rc;
    }
    b->lines[b->count] = b->source.number;
    b->list[b->count++] = prepared;
    b->bytes += prepared.turn->len;
    return b->count == BATCH_LINES || b->bytes >= BATCH_BYTES ? flush(b, err) : BATON_OK;
}

static void on_long(struct bulk *b)
{
    char text[160];
    snprintf(text, sizeof(text),
             "longer than %d bytes; a turn has at most %d (256 KiB) with everything in it",
             PUBLISH_LINE_MAX, LIMIT_VALUE);
    line_refused(b, b->source.number, BATON_E_record_too_large, text);
}

/* Every line once. */
static baton_code pass(struct bulk *b, struct baton_error *err)
{
    baton_code rc = BATON_OK;
    enum line_event event = LINE_EVENT_pause;
    while (rc == BATON_OK && event != LINE_EVENT_end && !b->interrupted && !b->unheard) {
        const char *line = NULL;
        size_t len = 0;
        rc = line_source_next(&b->source, b->count > 0 ? GATHER_MS : -1, &event, &line, &len, err);
        if (rc != BATON_OK) {
            break;
        }
        switch (event) {
        case LINE_EVENT_line:
            rc = on_line(b, line, len, err);
            break;
        case LINE_EVENT_long:
            on_long(b);
            break;
        case LINE_EVENT_pause:
        case LINE_EVENT_end:
            rc = flush(b, err);
            break;
        case LINE_EVENT_stop:
            b->interrupted = true;
            break;
        }
        bar_show(b);
    }
    if (b->unheard && event != LINE_EVENT_end) {
        b->interrupted = true; /* whoever read is gone, and would not know how far it came */
    }
    batch_drop(b); /* interrupted: these were not sent */
    bar_clear(b);
    say(b);
    return rc;
}

/* ---- all of it ---- */

static const char *end_word(const struct bulk *b, baton_code rc)
{
    return rc != BATON_OK          ? "failed"
           : b->interrupted        ? "interrupted"
           : b->totals.refused > 0 ? "refused"
                                   : "done";
}

static void tell_end(struct bulk *b, baton_code rc, const struct baton_error *err)
{
    const struct totals *t = &b->totals;
    if (b->cmd->json) {
        struct jsonw w = jsonw_to(&b->out);
        jsonw_begin_object(&w);
        jsonw_key_text(&w, "status", end_word(b, rc));
        jsonw_key_int(&w, b->checking ? "would" : "published", t->published);
        jsonw_key_int(&w, "refused", t->refused);
        jsonw_key_int(&w, "unknown", t->unknown);
        jsonw_key_int(&w, "last_line", t->last);
        if (rc != BATON_OK) {
            jsonw_key_text(&w, "code", baton_code_word(rc));
            jsonw_key_text(&w, "error", err->text);
        }
        jsonw_end(&w);
        buf_add_char(&b->out, '\n');
    } else if (b->checking) {
        buf_printf(&b->out, "%lld lines can be published, %lld refused; nothing was published\n",
                   (long long)t->published, (long long)t->refused);
    } else {
        buf_printf(&b->out, "published %lld, refused %lld", (long long)t->published,
                   (long long)t->refused);
        if (t->unknown > 0) {
            buf_printf(&b->out, ", not known of %lld", (long long)t->unknown);
        }
        buf_add_char(&b->out, '\n');
    }
    say(b);
    if (!b->checking && (rc != BATON_OK || b->interrupted)) {
        command_note(b->cmd,
                     "%s after line %lld: what follows it was not published%s; the same command "
                     "again is harmless, and goes on",
                     rc != BATON_OK ? "stopped" : "interrupted", (long long)t->last,
                     t->unknown > 0 ? ", but for what is not known" : "");
    }
}

static baton_code both(struct bulk *b, struct baton_error *err)
{
    const struct publish_lines *asked = b->asked;
    baton_code rc = BATON_OK;
    b->checking = asked->dry_run || asked->all_or_nothing;
    rc = pass(b, err);
    if (rc != BATON_OK || asked->dry_run || !asked->all_or_nothing || b->interrupted ||
        b->totals.refused > 0) {
        return rc;
    }
    b->checking = false;
    b->totals = (struct totals){0};
    rc = line_source_again(&b->source, err);
    return rc == BATON_OK ? pass(b, err) : rc;
}

static int bulk_status(const struct bulk *b, baton_code rc)
{
    return rc != BATON_OK          ? baton_code_exit(rc)
           : b->interrupted        ? baton_code_exit(BATON_E_stopped)
           : b->totals.refused > 0 ? EXIT_REFUSED
                                   : 0;
}

int publish_lines_run(const struct publish_lines *asked)
{
    struct bulk *b = calloc(1, sizeof(*b));
    struct baton_error err = {BATON_OK, ""};
    int status;
    if (b == NULL) {
        baton_code rc = baton_fail(&err, BATON_E_no_memory, "no memory for a batch");
        return command_fail(asked->cmd, rc, &err);
    }
    b->asked = asked;
    b->cmd = asked->cmd;
    b->began = b->shown = mono_now();
    baton_code rc = line_source_open(asked->path, asked->all_or_nothing && !asked->dry_run,
                                     PUBLISH_LINE_MAX, &b->source, &err);
    if (rc != BATON_OK) {
        status = command_fail(asked->cmd, rc, &err);
    } else {
        rc = both(b, &err);
        if (rc != BATON_OK && !b->cmd->json) {
            (void)command_fail(asked->cmd, rc, &err);
        }
        tell_end(b, rc, &err);
        status = bulk_status(b, rc);
        line_source_close(&b->source);
    }
    for (size_t i = 0; i < b->n_looked; i++) {
        free(b->looked[i].text);
    }
    buf_done(&b->out);
    free(b);
    return status;
}
