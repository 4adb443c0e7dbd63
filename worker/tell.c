/*
 * Outcomes: what ended, what was claimed, what was answered; signed by the service in parallel just
 * before the commit, and part of its transaction (protocol rule 11).
 *
 * In: worker/claim.c, worker/settle.c, worker/operate.c  Out: common/engine/engine.h
 */
#include "worker/tell.h"

#include "common/base/array.h"
#include "common/base/check.h"
#include "common/base/metrics.h"
#include "common/engine/engine.h"
#include "common/engine/verify.h"
#include "common/log/log.h"
#include "common/record/headers.h"
#include "common/record/outcome.h"
#include "common/record/pass.h"
#include "common/record/signer.h"
#include "topics/catalogue.h"
#include "worker/decision.h"
#include "worker/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct telling *add(struct worker *w)
{
    w->tellings = array_grown(w->tellings, w->n_tellings, &w->cap_tellings, sizeof(*w->tellings));
    struct telling *telling = &w->tellings[w->n_tellings++];
    memset(telling, 0, sizeof(*telling));
    return telling;
}

static void set_key(struct telling *telling, const char *run_id, const char *turn_id)
{
    snprintf(telling->key, sizeof(telling->key), "%s", run_id[0] != '\0' ? run_id : turn_id);
}

bool can_tell(const struct worker *w)
{
    baton_code code;
    return !engine_unavailable(w->engine, w->names[TOPIC_outcomes].s, &code);
}

void tell_turn(struct worker *w, const struct turn_record *record, enum outcome_event event)
{
    struct outcome outcome;
    struct telling *telling = add(w);

    outcome_of(record, event, w->service->name.s, wall_now(), &outcome);
    outcome_encode(&outcome, &telling->value);
    set_key(telling, record->run_id.s, record->id.s);
    telling->traceparent = decision_text(record->traceparent);
    if (record->n_passes > 0) {
        telling->passes = calloc(record->n_passes, sizeof(*telling->passes));
        BATON_INVARIANT(telling->passes != NULL);
        for (size_t i = 0; i < record->n_passes; i++) {
            telling->passes[telling->n_passes++] = decision_text(record->passes[i]);
        }
    }
}

void tell_answer(struct worker *w, const struct turn_record *record, const char *turn_id,
                 const char *answers_id, const char *answers_kind, baton_code code)
{
    struct outcome outcome;
    struct telling *telling = add(w);

    if (record != NULL) {
        outcome_of(record, OUTCOME_answer, w->service->name.s, wall_now(), &outcome);
        set_key(telling, record->run_id.s, record->id.s);
        telling->traceparent = decision_text(record->traceparent);
    } else {
        outcome = (struct outcome){.event = OUTCOME_answer, .at = wall_now()};
        outcome.turn_id = turn_id_of(turn_id);
        outcome.service = w->service->name;
        /* An answer about no turn (pause, resume) goes under its own id. */
        set_key(telling, "", turn_id[0] != '\0' ? turn_id : answers_id);
    }
    outcome.code = code;
    snprintf(outcome.answers_id.s, sizeof(outcome.answers_id.s), "%s", answers_id);
    snprintf(outcome.answers_kind, sizeof(outcome.answers_kind), "%s", answers_kind);
    outcome_encode(&outcome, &telling->value);
}

static void sign_one(void *arg, size_t index)
{
    struct worker *w = arg;
    struct telling *telling = &w->tellings[index];
    struct digest digest = digest_of(telling->value.data, telling->value.len);
    telling->is_signed =
        signer_sign(w->signer, w->fleet.s, PROOF_outcome, telling->key, strlen(telling->key), NULL,
                    &digest, &telling->proof, NULL) == BATON_OK;
}

void tell_all(struct worker *w)
{
    if (w->signer != NULL) {
        verify_run(w->signing, w->n_tellings, sign_one, w);
    }
    for (size_t i = 0; i < w->n_tellings; i++) {
        struct telling *telling = &w->tellings[i];
        struct log_header headers[PASSES_MAX + 2];
        size_t n = 0;
        BATON_INVARIANT(buf_ok(&telling->value));
        if (telling->is_signed) {
            headers[n++] =
                (struct log_header){HEADER_SIG, telling->proof.s, strlen(telling->proof.s)};
        }
        for (size_t k = 0; k < telling->n_passes && k < PASSES_MAX; k++) {
            headers[n++] =
                (struct log_header){HEADER_PASS, telling->passes[k], strlen(telling->passes[k])};
        }
        if (telling->traceparent != NULL) {
            headers[n++] = (struct log_header){HEADER_TRACEPARENT, telling->traceparent,
                                               strlen(telling->traceparent)};
        }
        const struct log_record record = {
            .topic = w->names[TOPIC_outcomes].s,
            .partition = LOG_PARTITION_BY_KEY,
            .key = telling->key,
            .key_len = strlen(telling->key),
            .value = telling->value.data,
            .value_len = telling->value.len,
            .headers = headers,
            .n_headers = n,
        };
        (void)engine_put(w->engine, &record);
    }
    metric_add(METRIC_outcomes_published, (int64_t)w->n_tellings);
    tell_clear(w);
}

void tell_clear(struct worker *w)
{
    for (size_t i = 0; i < w->n_tellings; i++) {
        struct telling *telling = &w->tellings[i];
        buf_done(&telling->value);
        free(telling->traceparent);
        for (size_t k = 0; k < telling->n_passes; k++) {
            free(telling->passes[k]);
        }
        free(telling->passes);
    }
    w->n_tellings = 0;
}
