/*
 * The callback executor: a C function of a program that embeds a worker does the turns.
 *
 * The function runs on a thread of the worker's callback pool, never on the program's own threads.
 * Both objects belong to the worker and are valid during the call only; texts returned are borrowed
 * and valid as long. Each attempt is used by the one thread that runs it; baton_attempt_stopped may
 * be asked from any thread while the call lasts.
 *
 * A function cannot be killed. It is asked to stop (baton_attempt_stopped) at its deadline, on
 * cancel and on a clean stop; 5 s later its attempt ends without it, and what it returns then is
 * dropped.
 */
#ifndef BATON_EXECUTOR_H
#define BATON_EXECUTOR_H

#include "baton/code.h"
#include "baton/export.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct baton_attempt; /* what is to be done: read only */
struct baton_result;  /* what came of it */

/*
 * Does one attempt. Returns what a program would exit with: 0 with a verdict set is the result;
 * else the table of worker/EXECUTOR.md applies (0 no_verdict, 75 unavailable, 77 auth, 65
 * bad_request, anything else crash), unless baton_result_fail named the failure.
 */
typedef int (*baton_executor_fn)(const struct baton_attempt *attempt, struct baton_result *result,
                                 void *arg);

BATON_API const char *baton_attempt_turn_id(const struct baton_attempt *attempt);
BATON_API int baton_attempt_number(const struct baton_attempt *attempt);
/* "owner", "reviewer" or "arbiter", from the signed turn. */
BATON_API const char *baton_attempt_role(const struct baton_attempt *attempt);
BATON_API const char *baton_attempt_service(const struct baton_attempt *attempt);
BATON_API const char *baton_attempt_task_id(const struct baton_attempt *attempt);
BATON_API int baton_attempt_task_rev(const struct baton_attempt *attempt);
/* "" outside a run. */
BATON_API const char *baton_attempt_run_id(const struct baton_attempt *attempt);
BATON_API const char *baton_attempt_intent(const struct baton_attempt *attempt);
/* W3C Trace Context of the attempt, for what is done in it; "": none. */
BATON_API const char *baton_attempt_traceparent(const struct baton_attempt *attempt);
/* The turn's bytes as its origin signed them: one JSON object. */
BATON_API const char *baton_attempt_turn(const struct baton_attempt *attempt, size_t *ret_len);
/* The directory to work in, or NULL if the turn has none. */
BATON_API const char *baton_attempt_place(const struct baton_attempt *attempt);
/* A declared value (configuration: env of executor and profile), or NULL. It may be a secret. */
BATON_API const char *baton_attempt_env(const struct baton_attempt *attempt, const char *name);
/* The attempt must leave its place unchanged. */
BATON_API bool baton_attempt_read_only(const struct baton_attempt *attempt);
/* Milliseconds until the deadline; 0 when it has passed. */
BATON_API int64_t baton_attempt_time_left_ms(const struct baton_attempt *attempt);
/* True once the attempt shall end: deadline, cancel, clean stop. */
BATON_API bool baton_attempt_stopped(const struct baton_attempt *attempt);
/* Tells those who watch; at most 4 KiB, UTF-8. */
BATON_API void baton_attempt_progress(const struct baton_attempt *attempt, const char *text);

/*
 * The verdict and a summary for people (may be NULL, at most 4 KiB). The last call counts. The
 * words are checked after the return: one that the role does not have is no_verdict.
 */
BATON_API void baton_result_verdict(struct baton_result *result, const char *verdict,
                                    const char *summary);
/* The whole result as an executable would write it on descriptor 3; instead of the calls above. */
BATON_API void baton_result_json(struct baton_result *result, const char *json, size_t json_len);
/*
 * The failure: a class of worker/EXECUTOR.md, a text for people (may be NULL), and how long the
 * provider asked to wait (0: it did not say).
 */
BATON_API void baton_result_fail(struct baton_result *result, const char *failure_class,
                                 const char *message, int64_t retry_after_ms);
/* Adds to the output kept with the attempt; bounded and masked like a program's. */
BATON_API void baton_result_output(struct baton_result *result, const void *bytes, size_t len);

#ifdef __cplusplus
}
#endif

#endif
