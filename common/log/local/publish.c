/* Publishing outside of a member's transactions: one write transaction a call. Called by common/log/log.c. */
#include "common/log/local/internal.h"

#include <stdlib.h>

struct local_publisher {
    struct log_publisher base;
    struct local_conn *conn;
    uint32_t turn;
};

baton_code local_publisher_open(struct log *base, struct log_publisher **ret_publisher,
                                struct baton_error *err)
{
    struct local_log *log = (struct local_log *)base;
    struct local_publisher *publisher = calloc(1, sizeof(*publisher));
    if (publisher == NULL) {
        return baton_fail(err, BATON_E_no_memory, "%s: out of memory", log->path);
    }
    baton_code rc = local_conn_take(log, &publisher->conn, err);
    if (rc != BATON_OK) {
        free(publisher);
        return rc;
    }
    publisher->base.ops = &local_ops;
    *ret_publisher = &publisher->base;
    return BATON_OK;
}

void local_publisher_close(struct log_publisher *base)
{
    struct local_publisher *publisher = (struct local_publisher *)base;
    local_conn_give(publisher->conn);
    free(publisher);
}

static baton_code append_all(struct append *append, const struct log_record *records, size_t count,
                             struct wall_ms at, struct append_place *places,
                             struct baton_error *err)
{
    baton_code rc = BATON_OK;
    for (size_t i = 0; rc == BATON_OK && i < count; i++) {
        rc = append_record(append, &records[i], at, &places[i], err);
    }
    return rc == BATON_OK ? append_finish(append, err) : rc;
}

baton_code local_publish(struct log_publisher *base, struct log_record *records, size_t count,
                         int64_t timeout_ms, struct baton_error *err)
{
    struct local_publisher *publisher = (struct local_publisher *)base;
    struct local_conn *conn = publisher->conn;
    struct append append = {.conn = conn, .turn = publisher->turn};
    struct append_place *places = malloc(count * sizeof(*places));
    struct wall_ms at;
    baton_code rc;

    if (places == NULL) {
        return baton_fail(err, BATON_E_no_memory, "%s: out of memory", conn->log->path);
    }
    if ((rc = local_begin(conn, timeout_ms, err)) != BATON_OK) {
        goto out;
    }
    at = clock_date(
        conn->log
            ->clock); /* append time: with the pen in hand, so that it rises with the offsets */
    if ((rc = append_all(&append, records, count, at, places, err)) != BATON_OK) {
        local_rollback(conn);
        goto out;
    }
    if ((rc = local_commit(conn, NULL, err)) != BATON_OK) {
        goto out;
    }
    append_ring(&append);
    publisher->turn = append.turn;
    for (size_t i = 0; i < count; i++) {
        records[i].partition = places[i].partition;
        records[i].offset = places[i].offset;
        records[i].at = at;
    }
out:
    append_done(&append);
    free(places);
    return rc;
}
