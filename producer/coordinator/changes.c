/*
 * Runs as the present batch will leave them: a copy for each that is touched, written as one record
 * when the batch is committed, and only then the image's.
 *
 * In: requests.c, outcomes.c, advance.c, coordinator.c  Out: image.c, common/engine/engine.h
 */
#include "producer/coordinator/internal.h"

#include "common/base/array.h"
#include "common/base/check.h"

#include <stdlib.h>
#include <string.h>

static struct change *change_find(const struct coordinator *c, const char *run_id)
{
    for (size_t i = 0; i < c->n_changes; i++) {
        if (c->changes[i].run != NULL && strcmp(c->changes[i].run->id.s, run_id) == 0) {
            return &c->changes[i];
        }
    }
    return NULL;
}

void change_add(struct coordinator *c, struct run *take_run, int32_t partition)
{
    c->changes = array_grown(c->changes, c->n_changes, &c->cap_changes, sizeof(*c->changes));
    c->changes[c->n_changes++] = (struct change){.partition = partition, .run = take_run};
}

void change_forget(struct coordinator *c, const struct image_row *row)
{
    if (change_find(c, row->id.s) != NULL) {
        return;
    }
    change_add(c, NULL, row->partition);
    c->changes[c->n_changes - 1].gone = row->id;
}

/* An ended run is read from the run log again: the newest record with its key, at its place. Below the
 * session, since the membership is not kept alive meanwhile. */
#define READ_TIMEOUT_MS 1000

static baton_code read_ended(struct coordinator *c, const struct image_row *row,
                             struct run **ret_run)
{
    struct log_reader *reader = NULL;
    struct log_batch batch = {0};
    baton_code rc = BATON_E_service_unavailable;
    if (log_reader_open(c->log, c->runs.s, row->partition, row->offset, LOG_READ_committed, &reader,
                        NULL) != BATON_OK) {
        return rc;
    }
    if (log_reader_next(reader, 1, READ_TIMEOUT_MS, &batch, NULL) == BATON_OK && batch.count > 0) {
        const struct log_record *record = &batch.records[0];
        const bool found = record->offset == row->offset && record->value != NULL &&
                           run_parse_shelved(record->value, record->value_len, &c->shelf, ret_run,
                                             NULL) == BATON_OK;
        rc = found ? BATON_OK : BATON_E_store_failed;
    }
    log_batch_free(&batch);
    log_reader_close(reader);
    return rc;
}

baton_code change_of(struct coordinator *c, const char *run_id, struct run **ret_run)
{
    const struct change *change = change_find(c, run_id);
    if (change != NULL) {
        *ret_run = change->run;
        return BATON_OK;
    }
    const struct image_row *row = image_find(&c->image, run_id);
    struct run *run = NULL;
    baton_code rc = BATON_OK;
    if (row == NULL || !engine_owns(c->engine, row->partition)) {
        return BATON_E_run_not_found;
    }
    if (row->run == NULL) {
        rc = read_ended(c, row, &run);
    } else {
        BATON_INVARIANT(run_copy(row->run, &run) == BATON_OK);
    }
    if (rc == BATON_OK) {
        change_add(c, run, row->partition);
        *ret_run = run;
    }
    return rc;
}

void changes_put(struct coordinator *c)
{
    struct buf value = BUF_INIT;
    for (size_t i = 0; i < c->n_changes; i++) {
        struct change *change = &c->changes[i];
        const bool gone = change->run == NULL;
        const char *key = gone ? change->gone.s : change->run->id.s;
        buf_clear(&value);
        if (!gone) {
            run_encode(change->run, &value);
        }
        BATON_INVARIANT(buf_ok(&value));
        const struct log_record record = {.topic = c->runs.s,
                                          .partition = change->partition,
                                          .key = key,
                                          .key_len = strlen(key),
                                          .value = gone ? NULL : value.data,
                                          .value_len = value.len};
        change->put = engine_put(c->engine, &record);
    }
    buf_done(&value);
}

void changes_committed(struct coordinator *c)
{
    struct wall_ms at = {0};
    (void)log_time(c->log, &at); /* not before what it was appended at */
    for (size_t i = 0; i < c->n_changes; i++) {
        struct change *change = &c->changes[i];
        if (change->run == NULL) {
            image_forget(&c->image, change->gone.s);
            continue;
        }
        BATON_INVARIANT(image_fold(&c->image, change->run, change->partition,
                                   engine_offset(c->engine, change->put), at));
    }
    c->n_changes = 0;
    tracer_send(c->tracer, &c->spans);
}

void changes_drop(struct coordinator *c)
{
    for (size_t i = 0; i < c->n_changes; i++) {
        run_free(c->changes[i].run);
    }
    c->n_changes = 0;
    span_list_clear(&c->spans);
}
