/*
 * Renewals and reports: control records of a lease holder, outside of transactions (protocol rule
 * 24).
 *
 * In: worker/lease/lease.c  Out: topic control (common/log/log.h)
 */
#include "worker/lease/internal.h"

#include "common/base/check.h"
#include "common/record/control.h"
#include "common/record/headers.h"
#include "common/record/signer.h"

#include <stdlib.h>
#include <string.h>

#define PUBLISH_TIMEOUT_MS 2000
#define PUBLISH_LEAST_MS 100

struct outgoing {
    struct buf value;
    struct turn_id turn;
    struct proof_text proof;
    struct log_header header;
    bool renewal;
};

static void encode(struct leases *leases, struct lease_item *item, struct outgoing *out)
{
    struct control control = {
        .kind = item->ended ? CONTROL_report : CONTROL_renew,
        .turn_id = item->turn,
        .at = log_date(leases->spec.log),
        .attempt = item->attempt,
        .boot = item->boot,
        .failed = item->failed,
        .class = item->class,
        .result = item->result,
        .usage = item->usage,
        .result_len = item->result != NULL ? strlen(item->result) : 0,
    };
    random_hex(control.id.s, 32);
    if (!item->ended) {
        control.seq = ++leases->seq;
    }
    *out = (struct outgoing){.value = BUF_INIT, .turn = item->turn, .renewal = !item->ended};
    control_encode(&control, &out->value);
    if (leases->spec.signer != NULL) {
        struct digest digest = digest_of(out->value.data, out->value.len);
        if (signer_sign(leases->spec.signer, leases->spec.fleet, PROOF_control, item->turn.s,
                        strlen(item->turn.s), NULL, &digest, &out->proof, NULL) == BATON_OK) {
            out->header = (struct log_header){HEADER_SIG, out->proof.s, strlen(out->proof.s)};
        }
    }
}

static void answered(struct leases *leases, const struct outgoing *out, struct mono_ms start)
{
    struct lease_item *item = lease_find(leases, out->turn.s);
    if (item != NULL && out->renewal && !item->ended) {
        item->lease_from = start;
        item->lease_ms = leases->spec.lease_ms;
    }
}

/* Half the grace: a kill and what it waits for end within it, and a renewal that is answered within
 * the other half is in time. */
static int64_t margin_ms(const struct leases *leases)
{
    return leases->spec.grace_ms / 2;
}

int64_t lease_kill_at(const struct leases *leases, const struct lease_item *item)
{
    if (item->ended || item->killed || leases->spec.keep) {
        return INT64_MAX;
    }
    return item->lease_from.v + item->lease_ms - margin_ms(leases);
}

int64_t lease_first_kill(const struct leases *leases)
{
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < leases->n_items; i++) {
        int64_t at = lease_kill_at(leases, &leases->items[i]);
        first = at < first ? at : first;
    }
    return first;
}

/* A renewal that waits longer would extend a lease that its holder has given up. */
static int64_t publish_time_ms(const struct leases *leases)
{
    int64_t left = lease_first_kill(leases) - mono_now().v;
    if (left > PUBLISH_TIMEOUT_MS) {
        return PUBLISH_TIMEOUT_MS;
    }
    return left < PUBLISH_LEAST_MS ? PUBLISH_LEAST_MS : left;
}

/* One publish of all renewals and reports; without the lock, since the log may take its time. */
void lease_send_all(struct leases *leases)
{
    struct baton_error err = {BATON_OK, ""};
    size_t n = leases->n_items;
    const int64_t timeout_ms = publish_time_ms(leases);
    if (n == 0) {
        leases->unanswered = false;
        return;
    }
    struct outgoing *out = calloc(n + 1, sizeof(*out));
    struct log_record *records = calloc(n + 1, sizeof(*records));
    const struct mono_ms start = mono_now();

    BATON_INVARIANT(out != NULL && records != NULL);
    for (size_t i = 0; i < n; i++) {
        encode(leases, &leases->items[i], &out[i]);
        records[i] = (struct log_record){
            .topic = leases->spec.control,
            .partition = leases->items[i].partition,
            .key = out[i].turn.s,
            .key_len = strlen(out[i].turn.s),
            .value = out[i].value.data,
            .value_len = out[i].value.len,
            .headers = &out[i].header,
            .n_headers = out[i].header.name != NULL ? 1 : 0,
        };
    }
    pthread_mutex_unlock(&leases->lock);
    baton_code rc = BATON_OK;
    if (leases->publisher == NULL) {
        rc = log_publisher_open(leases->spec.log, &leases->publisher, &err);
    }
    if (rc == BATON_OK) {
        rc = log_publish(leases->publisher, records, n, timeout_ms, &err);
    }
    pthread_mutex_lock(&leases->lock);
    for (size_t i = 0; i < n; i++) {
        if (rc == BATON_OK) {
            answered(leases, &out[i], start);
        }
        buf_done(&out[i].value);
    }
    leases->unanswered = rc != BATON_OK;
    if (rc != BATON_OK) {
        diag_limited(&leases->limit, DIAG_warn, "lease.not_renewed", D_CODE("code", rc),
                     D_TEXT("error", err.text), D_INT("attempts", (int64_t)n));
    }
    free(out);
    free(records);
}
