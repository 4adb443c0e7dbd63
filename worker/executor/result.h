/*
 * What an executor's answer means: one pure function for exec, child and callback
 * (worker/EXECUTOR.md).
 *
 * The order of judging, and the table of exit statuses, are in worker/EXECUTOR.md; a test compares.
 */
#ifndef BATON_WORKER_EXECUTOR_RESULT_H
#define BATON_WORKER_EXECUTOR_RESULT_H

#include "common/record/usage.h"
#include "worker/executor/executor.h"

/* EXIT(status, failure class, text): without a result; anything else is crash. */
#define EXECUTOR_EXITS(EXIT)                                                                       \
    EXIT(0, no_verdict, "ended without a result")                                                  \
    EXIT(65, bad_request, "says that the request itself cannot be served")                         \
    EXIT(75, unavailable, "says that its provider cannot be reached now")                          \
    EXIT(77, auth, "says that its credentials were refused")

/* Classes that an executor cannot claim: only a worker can know them. */
#define EXECUTOR_CLASSES_RESERVED "killed lost"

#define EXECUTOR_RETRY_AFTER_MAX_MS (INT64_C(7) * 24 * 3600 * 1000)

struct executor_exit {
    bool signaled;
    int value;   /* exit status, or the signal */
    bool agents; /* of an agent program, whose statuses are none of the table's */
};

struct executor_outcome {
    bool ok;
    enum verdict verdict; /* ok */
    enum failure failure; /* !ok */
    bool void_verdict;    /* !ok: there is a verdict, which counts for nothing: no stop hides why */
    int64_t retry_after_ms;
    size_t object_at; /* ok: the object within the bytes, without white space around it */
    size_t object_len;
    bool by_exit; /* !ok: how it ended is all there is; its last line of standard error may say why
                   */
    char usage[USAGE_TEXT_MAX + 1]; /* what the attempt took, as JSON; "": not told */
    char hint[160]; /* a deadline that passed meanwhile may be explained by it; "": it is not */
    char message[EXECUTOR_MESSAGE_MAX + 1]; /* !ok; may hold the executor's own text, not escaped */
};

/*
 * Judges the bytes on the result descriptor (len 0: none; overflow: there were more than
 * LIMIT_RESULT) together with how the executor ended, for a turn of this role, which may end with these verdicts. The bytes are masked
 * already, so that neither object nor message can hold a secret. Any thread.
 */
void executor_result_check(enum role role, verdict_set verdicts, const char *bytes, size_t len,
                           bool overflow, const struct executor_exit *exit,
                           struct executor_outcome *ret_outcome);

#endif
