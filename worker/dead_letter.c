/*
 * Dead letters: the original record, byte for byte, with context headers
 * (common/record/dead_letter.h).
 *
 * In: worker/claim.c, worker/settle.c, worker/operate.c  Out: common/engine/engine.h
 */
#include "worker/internal.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "common/base/metrics.h"
#include "common/base/text.h"
#include "common/record/dead_letter.h"
#include "common/record/headers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONTEXT_MAX 12
#define ORIGINAL_MAX (LOG_HEADERS_MAX - CONTEXT_MAX)
#define ATTEMPTS_TOLD 16

/* Headers of the letter: those of the original, then the context. Texts live in `texts`. */
struct letter {
    struct log_header headers[LOG_HEADERS_MAX];
    size_t n_headers;
    char texts[CONTEXT_MAX][512];
    size_t n_texts;
};

static void add_header(struct letter *letter, const char *name, const void *value, size_t len)
{
    if (letter->n_headers < COUNT_OF(letter->headers)) {
        letter->headers[letter->n_headers++] = (struct log_header){name, value, len};
    }
}

static void add_text(struct letter *letter, const char *name, const char *value)
{
    BATON_PRE(letter->n_texts < CONTEXT_MAX);
    char *text = letter->texts[letter->n_texts++];
    snprintf(text, sizeof(letter->texts[0]), "%s", value);
    add_header(letter, name, text, strlen(text));
}

static void add_int(struct letter *letter, const char *name, int64_t value)
{
    char text[24];
    snprintf(text, sizeof(text), "%lld", (long long)value);
    add_text(letter, name, text);
}

static void add_context(struct worker *w, struct letter *letter, const struct log_record *source,
                        const char *topic, baton_code code, const char *note)
{
    struct buf message = BUF_INIT;
    add_text(letter, DEAD_LETTER_TOPIC, topic);
    if (source != NULL) {
        add_int(letter, DEAD_LETTER_PARTITION, source->partition);
        add_int(letter, DEAD_LETTER_OFFSET, source->offset);
    }
    add_text(letter, DEAD_LETTER_GROUP, w->group.s);
    add_text(letter, DEAD_LETTER_CODE, baton_code_word(code));
    buf_printf(&message, "%s: ", baton_code_text(code));
    text_add(&message, note, strlen(note), 300);
    add_text(letter, DEAD_LETTER_MESSAGE, message.data != NULL ? message.data : "");
    buf_done(&message);
}

static void put_letter(struct worker *w, const struct letter *letter,
                       const struct log_record *record)
{
    struct log_record out = *record;
    out.topic = w->names[TOPIC_dlq].s;
    out.headers = letter->headers;
    out.n_headers = letter->n_headers;
    (void)engine_put(w->engine, &out);
}

static bool is_context(const char *name)
{
    return strncmp(name, "__dlq.errors.", strlen("__dlq.errors.")) == 0 ||
           strcmp(name, DEAD_LETTER_CODE) == 0 || strcmp(name, DEAD_LETTER_CLASS) == 0 ||
           strcmp(name, DEAD_LETTER_ATTEMPTS) == 0;
}

void dead_letter_rejected(struct worker *w, const struct log_record *record, baton_code code,
                          const char *note)
{
    struct letter letter = {.n_headers = 0};
    /* A record with more headers than any of ours has keeps the first ones: the context must fit
     * beside them. */
    for (size_t i = 0; i < record->n_headers && letter.n_headers < ORIGINAL_MAX; i++) {
        if (!is_context(record->headers[i].name)) {
            letter.headers[letter.n_headers++] = record->headers[i];
        }
    }
    add_context(w, &letter, record, record->topic, code, note);
    struct log_record original = *record;
    /* The key decides the partition, as in the topic that it came to; never the number (another
     * count). */
    original.partition = LOG_PARTITION_BY_KEY;
    put_letter(w, &letter, &original);
    metric_add(METRIC_handoffs_rejected, 1);
    diag_line(DIAG_warn, "record.rejected", D_BYTES("key", record->key, record->key_len),
              D_TEXT("topic", record->topic), D_INT("partition", record->partition),
              D_INT("offset", record->offset), D_CODE("code", code), D_TEXT("note", note));
}

void attempts_write(const struct turn_record *record, struct buf *out)
{
    size_t first = record->n_attempts > ATTEMPTS_TOLD ? record->n_attempts - ATTEMPTS_TOLD : 0;
    do {
        buf_clear(out);
        struct jsonw w = jsonw_to(out);
        jsonw_begin_array(&w);
        for (size_t i = first; i < record->n_attempts; i++) {
            const struct attempt *attempt = &record->attempts[i];
            jsonw_begin_object(&w);
            jsonw_key_int(&w, "no", attempt->no);
            jsonw_key_text(&w, "service", attempt->service.s);
            if (attempt->worker.s[0] != '\0') {
                jsonw_key_text(&w, "worker", attempt->worker.s);
            }
            jsonw_key_text(&w, "profile", attempt->profile.s);
            jsonw_key_text(&w, "state", attempt_state_word(attempt->state));
            if (attempt->has_class) {
                jsonw_key_text(&w, "class", failure_word(attempt->class));
            }
            if (attempt->started_at.v != 0) {
                jsonw_key_text(&w, "started_at", wall_text(attempt->started_at).s);
            }
            if (attempt->ended_at.v != 0) {
                jsonw_key_text(&w, "ended_at", wall_text(attempt->ended_at).s);
            }
            if (attempt->note != NULL) {
                jsonw_key_text(&w, "note", attempt->note);
            }
            if (attempt->usage != NULL) {
                jsonw_key_raw(&w, "usage", attempt->usage, strlen(attempt->usage));
            }
            jsonw_end(&w);
        }
        jsonw_end(&w);
    } while (out->len > LIMIT_HISTORY && ++first < record->n_attempts);
}

void dead_letter_parked(struct worker *w, const struct turn_record *record,
                        const struct log_record *source)
{
    struct letter letter = {.n_headers = 0};
    struct buf attempts = BUF_INIT;
    const struct attempt *newest =
        record->n_attempts > 0 ? &record->attempts[record->n_attempts - 1] : NULL;

    BATON_PRE(record->handoff != NULL);
    if (record->signature != NULL) {
        add_header(&letter, HEADER_SIG, record->signature, strlen(record->signature));
    }
    for (size_t i = 0; i < record->n_passes; i++) {
        add_header(&letter, HEADER_PASS, record->passes[i], strlen(record->passes[i]));
    }
    if (record->traceparent != NULL) {
        add_header(&letter, HEADER_TRACEPARENT, record->traceparent, strlen(record->traceparent));
    }
    add_context(w, &letter, source, w->names[TOPIC_handoff].s, record->code,
                newest != NULL && newest->note != NULL ? newest->note : "");
    add_int(&letter, DEAD_LETTER_COUNT, record->attempt);
    if (newest != NULL && newest->has_class) {
        add_text(&letter, DEAD_LETTER_CLASS, failure_word(newest->class));
    }
    attempts_write(record, &attempts);
    add_header(&letter, DEAD_LETTER_ATTEMPTS, attempts.data, attempts.len);
    const struct log_record original = {
        .partition = LOG_PARTITION_BY_KEY,
        .key = record->id.s,
        .key_len = strlen(record->id.s),
        .value = record->handoff,
        .value_len = record->handoff_len,
    };
    put_letter(w, &letter, &original);
    buf_done(&attempts);
}

bool can_tell(const struct worker *w)
{
    baton_code code;
    return !engine_unavailable(w->engine, w->names[TOPIC_outcomes].s, &code);
}

bool can_bury(const struct worker *w)
{
    baton_code code;
    return !engine_unavailable(w->engine, w->names[TOPIC_dlq].s, &code);
}
