/*
 * Every point at which a test may break the program. The crash suite enumerates this
 * list.
 *
 * FAULT(id, name, description): code says FAULT_POINT(id), the environment says
 * BATON_FAULT=name:...
 */
#ifndef BATON_BASE_TBL_FAULT_POINTS_H
#define BATON_BASE_TBL_FAULT_POINTS_H

/* clang-format off */
#define FAULT_POINTS(FAULT) \
    FAULT(store_before_commit,   "store.before_commit",   "the store's transaction is ready, not committed") \
    FAULT(store_commit,          "store.commit",          "the store's commit fails, as on a full disk") \
    FAULT(store_after_commit,    "store.after_commit",    "the store's transaction is committed") \
    FAULT(log_before_commit,     "log.before_commit",     "the log's transaction is ready, not committed") \
    FAULT(log_after_commit,      "log.after_commit",      "the log's transaction is committed, nobody knows yet") \
    FAULT(executor_before_start, "executor.before_start", "the claim is in log and store, the executor not started") \
    FAULT(executor_after_start,  "executor.after_start",  "the executor runs, nothing else has happened") \
    FAULT(executor_ended,        "executor.ended",        "the executor has ended, its end is not recorded") \
    FAULT(restore_begin,         "restore.begin",         "a partition was assigned, nothing is read") \
    FAULT(restore_end,           "restore.end",           "the turn log is read, the owner's note not written") \
    FAULT(revoke,                "revoke",                "a partition is being taken away")
/* clang-format on */

#endif
