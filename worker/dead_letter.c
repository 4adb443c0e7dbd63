/*
 * Dead letters: the original record, byte for byte, with context headers
 * (common/record/dead_letter.h).
 *
 * In: worker/claim.c, worker/settle.c, worker/operate.c  Out: common/engine/engine.h
 */
#include "worker/dead_letter.h"

#include "common/base/check.h"
#include "common/base/diag.h"
#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "common/base/metrics.h"
#include "common/base/text.h"
#include "common/engine/engine.h"
#include "common/log/log.h"
#include "common/record/dead_letter.h"
#include "common/record/headers.h"
#include "topics/catalogue.h"
#include "worker/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ATTEMPTS_TOLD 16

static void put_letter(struct worker *w, const struct dead_letter *letter,
                       const struct log_record *record)
{
    struct log_record out = *record;
    out.topic = w->names[TOPIC_dlq].s;
    out.headers = letter->headers;
    out.n_headers = letter->n_headers;
    (void)engine_put(w->engine, &out);
}

#define REJECTED DIAG_LIMIT_BURST(10000, 10)
static struct diag_limit rejected[4] = {REJECTED, REJECTED, REJECTED, REJECTED}; /* by code */

void dead_letter_rejected(struct worker *w, const struct log_record *record, baton_code code,
                          const char *note)
{
    struct dead_letter letter = {.n_headers = 0};
    dead_letter_original(&letter, record);
    dead_letter_context(&letter, record, record->topic, w->group.s, code, note);
    struct log_record original = *record;
    /* The key decides the partition, as in the topic that it came to; never the number (another
     * count). */
    original.partition = LOG_PARTITION_BY_KEY;
    put_letter(w, &letter, &original);
    metric_add(METRIC_handoffs_rejected, 1);
    /* Whoever may write to the topic could fill the log; each record is in the dead letters. */
    diag_limited(&rejected[(unsigned)code % COUNT_OF(rejected)], DIAG_warn, "record.rejected",
                 D_BYTES("key", record->key, record->key_len), D_TEXT("topic", record->topic),
                 D_INT("partition", record->partition), D_INT("offset", record->offset),
                 D_CODE("code", code), D_TEXT("note", note));
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
    struct dead_letter letter = {.n_headers = 0};
    struct buf attempts = BUF_INIT;
    const struct attempt *newest =
        record->n_attempts > 0 ? &record->attempts[record->n_attempts - 1] : NULL;

    BATON_PRE(record->handoff != NULL);
    if (record->signature != NULL) {
        dead_letter_header(&letter, HEADER_SIG, record->signature, strlen(record->signature));
    }
    for (size_t i = 0; i < record->n_passes; i++) {
        dead_letter_header(&letter, HEADER_PASS, record->passes[i], strlen(record->passes[i]));
    }
    if (record->traceparent != NULL) {
        dead_letter_header(&letter, HEADER_TRACEPARENT, record->traceparent,
                           strlen(record->traceparent));
    }
    dead_letter_context(&letter, source, w->names[TOPIC_handoff].s, w->group.s, record->code,
                        newest != NULL && newest->note != NULL ? newest->note : "");
    dead_letter_int(&letter, DEAD_LETTER_COUNT, record->attempt);
    if (newest != NULL && newest->has_class) {
        dead_letter_text(&letter, DEAD_LETTER_CLASS, failure_word(newest->class));
    }
    attempts_write(record, &attempts);
    dead_letter_header(&letter, DEAD_LETTER_ATTEMPTS, attempts.data, attempts.len);
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

bool can_bury(const struct worker *w)
{
    baton_code code;
    return !engine_unavailable(w->engine, w->names[TOPIC_dlq].s, &code);
}
