/*
 * A holder follows the turn log and stops what is no longer current (protocol rule 27).
 * In: worker/lease/lease.c  Out: worker/executor/executor.h, worker/round.c (by mail)
 */
#include "worker/lease/internal.h"

#include "common/base/array.h"
#include "common/base/check.h"
#include "common/base/mailbox.h"
#include "common/record/turn_record.h"
#include "worker/executor/executor.h"

#include <stdlib.h>
#include <string.h>

#define FOLLOW_RECORDS 256

static void settle(struct leases *leases, struct lease_item *item)
{
    leases->settled = array_grown(leases->settled, leases->n_settled, &leases->cap_settled,
                                  sizeof(*leases->settled));
    leases->settled[leases->n_settled++] = (struct settled){item->turn, item->attempt, item->boot};
    if (!item->ended) {
        executor_kill(leases->spec.pool, &item->turn, item->attempt);
    }
    diag_line(DIAG_info, "lease.over", D_TEXT("turn", item->turn.s),
              D_INT("attempt", item->attempt));
    lease_remove(leases, item);
    (void)mailbox_post(leases->spec.mail, leases);
}

/* From before the claim: the log is read from a place that may lie behind it, and an attempt's number
 * is claimed once. */
static bool older(const struct turn_record *state, const struct lease_item *item)
{
    return state->attempt < item->attempt ||
           (state->attempt == item->attempt && state->state == TURN_queued);
}

static void read_record(struct leases *leases, const struct log_record *record)
{
    struct turn_record state;
    char key[40];

    if (record->key_len != 32) {
        return;
    }
    memcpy(key, record->key, 32);
    key[32] = '\0';
    struct lease_item *item = lease_find(leases, key);
    if (item == NULL) {
        return;
    }
    bool current = false;
    if (record->value != NULL &&
        turn_record_parse(record->value, record->value_len, &state, NULL) == BATON_OK) {
        current =
            older(&state, item) || (state.state == TURN_running && state.attempt == item->attempt &&
                                    strcmp(state.lease_boot.s, item->boot.s) == 0);
        turn_record_done(&state);
    }
    if (!current) {
        settle(leases, item);
    }
}

static bool wanted(const struct leases *leases, int32_t partition)
{
    for (size_t i = 0; i < leases->n_items; i++) {
        if (leases->items[i].partition == partition && !leases->items[i].silent) {
            return true;
        }
    }
    return false;
}

/* Reads what was appended to the turn logs of the partitions that have moved. */
void lease_follow_all(struct leases *leases)
{
    struct log_batch batch = {0};
    baton_code rc = BATON_OK;
    for (int32_t p = 0; rc == BATON_OK && p < LOG_PARTITIONS_MAX && !leases->stop; p++) {
        struct follow *follow = &leases->follows[p];
        if (!wanted(leases, p)) {
            log_reader_close(follow->reader);
            *follow = (struct follow){0};
            continue;
        }
        struct log_reader *reader = follow->reader;
        const int64_t from = follow->from;
        pthread_mutex_unlock(&leases->lock);
        if (reader == NULL) {
            rc = log_reader_open(leases->spec.log, leases->spec.turns, p, from, LOG_READ_committed,
                                 &reader, NULL);
        }
        pthread_mutex_lock(&leases->lock);
        follow->reader = reader;
        do {
            if (rc == BATON_OK) {
                pthread_mutex_unlock(&leases->lock);
                rc = log_reader_next(reader, FOLLOW_RECORDS, 0, &batch, NULL);
                pthread_mutex_lock(&leases->lock);
            }
            for (size_t i = 0; rc == BATON_OK && i < batch.count; i++) {
                read_record(leases, &batch.records[i]);
            }
        } while (rc == BATON_OK && batch.count > 0 && !leases->stop);
    }
    log_batch_free(&batch);
}
