/*
 * Delegation: attempt n ends here as `delegated`, and attempt n+1 of the same turn, under the same
 * role and with the same bytes, goes to the next service of the role's chain. Pass, turn record and
 * outcome are records of one batch, so of one transaction of the log (protocol rule 22).
 *
 * In: worker/settle.c, worker/begin.c, worker/replay.c  Out: common/engine/engine.h
 */
#include "worker/delegate.h"

#include "common/base/check.h"
#include "common/base/config.h"
#include "common/base/diag.h"
#include "common/base/traceparent.h"
#include "common/engine/engine.h"
#include "common/log/log.h"
#include "common/record/headers.h"
#include "common/record/outcome.h"
#include "common/record/pass.h"
#include "common/record/trust.h"
#include "common/record/turn_record.h"
#include "topics/catalogue.h"
#include "worker/dead_letter.h"
#include "worker/internal.h"
#include "worker/move.h"
#include "worker/spans.h"
#include "worker/tell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASK_AGAIN_MS 30000 /* a topic that was not there may have been made meanwhile */

static const enum topic_kind needed[] = {TOPIC_handoff, TOPIC_control};

static struct topic_name name_of(const struct worker *w, enum topic_kind kind, const char *service)
{
    return topic_name(kind, w->config->prefix.s, service);
}

/* ---- who may have it ---- */

/* Does this service serve the role there, as far as is known here? */
static bool serves(const struct worker *w, const char *to, enum role role)
{
    const struct config_service *service = config_service_find(w->config, to);
    if (service != NULL && (service->roles & ROLE_BIT(role)) == 0) {
        return false;
    }
    if (!w->config->proof_required) {
        return service != NULL;
    }
    return trust_may_serve(trust_principal_find(w->trust, to), role);
}

static bool may_pass(const struct worker *w, const char *to, enum role role)
{
    return !w->config->proof_required ||
           trust_may_pass(trust_principal_find(w->trust, w->service->name.s), to, role);
}

/* The signed chain says who has had it; a service gets a turn once. */
static bool has_had(const struct worker *w, const struct turn_record *record, const char *to)
{
    bool had = strcmp(to, w->service->name.s) == 0 || strcmp(to, record->service.s) == 0;
    for (size_t i = 0; i < record->n_passes && !had; i++) {
        struct pass pass;
        had = !pass_read(record->passes[i], &pass) || strcmp(pass.to.s, to) == 0;
    }
    return had;
}

/* ---- whose topics are there ---- */

static struct target *target_find(struct worker *w, const char *service)
{
    for (size_t i = 0; i < w->n_targets; i++) {
        if (strcmp(w->targets[i].service.s, service) == 0) {
            return &w->targets[i];
        }
    }
    return NULL;
}

/* Looks for the topics of a service, by what every writer of them may ask; one that is not there, or
 * that this service has no right to, is told by name. A log that does not answer says nothing about
 * its topics. */
static void target_ask(struct worker *w, struct target *target)
{
    target->code = BATON_OK;
    target->asked_at = mono_now();
    for (size_t i = 0; i < COUNT_OF(needed); i++) {
        struct baton_error err;
        int64_t low;
        int64_t high;
        const struct topic_name name = name_of(w, needed[i], target->service.s);
        baton_code rc = log_watermarks(w->log, name.s, 0, &low, &high, &err);
        if (rc == BATON_OK || baton_code_class(rc) == BATON_CLASS_retry) {
            continue;
        }
        target->code = rc;
        diag_line(DIAG_warn, "fallback.unavailable", D_TEXT("service", target->service.s),
                  D_TEXT("topic", name.s), D_CODE("code", rc), D_TEXT("error", err.text),
                  D_TEXT("meaning", "no turn is passed on to it until this is mended; "
                                    "baton topics apply makes topics that are missing"));
    }
}

/* ok, or why nothing can be written to its handoff topic now. */
static baton_code target_code(struct worker *w, const char *service)
{
    baton_code code = BATON_OK;
    const struct topic_name topic = name_of(w, TOPIC_handoff, service);
    struct target *target = target_find(w, service);
    if (engine_unavailable(w->engine, topic.s, &code)) {
        return code;
    }
    if (target != NULL && target->code != BATON_OK &&
        mono_now().v - target->asked_at.v >= ASK_AGAIN_MS) {
        target_ask(w, target);
        if (target->code == BATON_OK) {
            diag_line(DIAG_info, "fallback.available", D_TEXT("service", service));
        }
    }
    return target != NULL ? target->code : BATON_OK;
}

static bool in_chain(const struct worker *w, const char *service, enum role role)
{
    const struct config_role *chain = &w->config->roles[role];
    for (size_t i = 0; i < chain->n_chain; i++) {
        if (strcmp(chain->chain[i].s, service) == 0) {
            return true;
        }
    }
    return false;
}

/* May any role of this service go there, by itself (chain) or as an operator asks (right)? */
static bool is_target(const struct worker *w, const char *service)
{
    for (int r = 0; r < ROLE_COUNT; r++) {
        const enum role role = (enum role)r;
        if ((w->service->roles & ROLE_BIT(role)) != 0 && serves(w, service, role) &&
            may_pass(w, service, role) &&
            (w->config->proof_required || in_chain(w, service, role))) {
            return true;
        }
    }
    return false;
}

baton_code delegate_open(struct worker *w, struct baton_error *err)
{
    free(w->targets); /* of a try before this one */
    w->n_targets = 0;
    w->targets = calloc(w->config->n_services + 1, sizeof(*w->targets));
    if (w->targets == NULL) {
        return baton_fail(err, BATON_E_no_memory, "out of memory");
    }
    for (size_t i = 0; i < w->config->n_services; i++) {
        const struct config_service *service = &w->config->services[i];
        if (service == w->service || !is_target(w, service->name.s)) {
            continue;
        }
        struct target *target = &w->targets[w->n_targets++];
        target->service = service->name;
        target_ask(w, target);
    }
    return BATON_OK;
}

bool delegate_topics(const struct worker *w, char ***ret_names, size_t *ret_count)
{
    char **names = calloc(w->n_targets * COUNT_OF(needed) + 1, sizeof(*names));
    size_t n = 0;
    bool copied = names != NULL;
    for (size_t i = 0; copied && i < w->n_targets; i++) {
        for (size_t k = 0; copied && k < COUNT_OF(needed); k++) {
            names[n] = strdup(name_of(w, needed[k], w->targets[i].service.s).s);
            copied = names[n] != NULL;
            n += copied ? 1 : 0;
        }
    }
    if (!copied) {
        for (size_t i = 0; i < n; i++) {
            free(names[i]);
        }
        free(names);
        return false;
    }
    *ret_names = names;
    *ret_count = n;
    return true;
}

/* ---- deciding ---- */

baton_code delegate_may(struct worker *w, const struct turn_record *record, const char *to,
                        const char **ret_note)
{
    if (has_had(w, record, to)) {
        *ret_note = "that service has had the turn";
        return BATON_E_not_permitted;
    }
    if (record->n_passes >= PASSES_MAX) {
        *ret_note = "it was passed on as often as a turn may be";
        return BATON_E_not_permitted;
    }
    if (!serves(w, to, record->role)) {
        *ret_note = "that service does not serve its role";
        return BATON_E_not_permitted;
    }
    if (!may_pass(w, to, record->role)) {
        *ret_note = "the trust folder does not let this service pass its role on to that one";
        return BATON_E_not_permitted;
    }
    *ret_note = "its topic cannot be written now";
    return target_code(w, to);
}

const char *delegate_target(struct worker *w, const struct turn_record *record)
{
    const struct config_role *role = &w->config->roles[record->role];
    const char *note;
    for (size_t i = 0; i < role->n_chain; i++) {
        if (delegate_may(w, record, role->chain[i].s, &note) == BATON_OK) {
            return role->chain[i].s;
        }
    }
    return NULL;
}

bool delegate_any(const struct worker *w)
{
    for (size_t i = 0; i < w->n_targets; i++) {
        for (int r = 0; w->targets[i].code == BATON_OK && r < ROLE_COUNT; r++) {
            const enum role role = (enum role)r;
            const char *name = w->targets[i].service.s;
            if ((w->service->roles & ROLE_BIT(role)) != 0 && in_chain(w, name, role) &&
                serves(w, name, role) && may_pass(w, name, role)) {
                return true;
            }
        }
    }
    return false;
}

char *delegate_sign(struct worker *w, const struct turn_record *record, const char *to,
                    enum failure class)
{
    const struct pass pass = {
        .attempt = record->attempt + 1,
        .from = w->service->name,
        .to = service_id_of(to),
        .failures = record->failures,
        .losses = record->losses,
        .replays = record->replays,
        .class = class,
        .cost_micros = turn_record_cost(record),
        .at = log_date(w->log), /* the next service holds it against the log's dates */
    };
    struct baton_error err;
    char *text = NULL;
    baton_code rc =
        pass_make(&pass, w->signer, w->fleet.s, record->id.s, &record->digest, &text, &err);
    if (rc != BATON_OK) {
        diag_line(DIAG_error, "pass.not_made", D_TURN(record), D_TEXT("to", to), D_CODE("code", rc),
                  D_TEXT("error", err.text));
        return NULL;
    }
    return text;
}

static void put(struct worker *w, const struct turn_record *record, const char *to,
                const char *pass, bool claimed)
{
    struct log_header headers[PASSES_MAX + 4];
    struct traceparent_text trace;
    struct buf history = BUF_INIT;
    size_t n = 0;
    const struct topic_name topic = name_of(w, TOPIC_handoff, to);

    BATON_PRE(record->handoff != NULL && record->n_passes < PASSES_MAX);
    if (record->signature != NULL) {
        headers[n++] =
            (struct log_header){HEADER_SIG, record->signature, strlen(record->signature)};
    }
    for (size_t i = 0; i < record->n_passes; i++) {
        headers[n++] =
            (struct log_header){HEADER_PASS, record->passes[i], strlen(record->passes[i])};
    }
    headers[n++] = (struct log_header){HEADER_PASS, pass, strlen(pass)};
    if (record->traceparent != NULL) {
        trace = spans_pass(w, record);
        headers[n++] = (struct log_header){HEADER_TRACEPARENT, trace.s, strlen(trace.s)};
    }
    if (record->wait && !claimed) {
        headers[n++] =
            (struct log_header){HEADER_WAIT, HEADER_WAIT_CLAIMED, strlen(HEADER_WAIT_CLAIMED)};
    }
    attempts_write(record, &history);
    BATON_INVARIANT(buf_ok(&history));
    headers[n++] = (struct log_header){HEADER_ATTEMPTS, history.data, history.len};
    const struct log_record out = {
        .topic = topic.s,
        .partition = LOG_PARTITION_BY_KEY,
        .key = record->id.s,
        .key_len = strlen(record->id.s),
        .value = record->handoff,
        .value_len = record->handoff_len,
        .headers = headers,
        .n_headers = n,
    };
    (void)engine_put(w->engine, &out);
    buf_done(&history);
}

void delegate_put(struct worker *w, struct turn_record *record, const char *to, char *take_pass)
{
    bool claimed = false;
    for (size_t i = 0; i < record->n_attempts; i++) {
        claimed = claimed || record->attempts[i].started_at.v != 0;
    }
    record->to_service = service_id_of(to);
    record->to_attempt = record->attempt + 1;
    turn_move(w, record, false, TURN_delegated);
    diag_line(DIAG_info, "turn.delegated", D_TURN(record), D_TEXT("from", w->service->name.s),
              D_TEXT("to", to), D_INT("next", record->to_attempt));
    tell_turn(w, record, OUTCOME_delegated);
    put(w, record, to, take_pass, claimed);
    free(take_pass);
}
