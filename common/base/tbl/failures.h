/*
 * Failure classes of an attempt, the budget each counts in, and the default answer.
 *
 * FAILURE(word, counter, actions, text)
 *   counter  failures: the provider said no; losses: the work was lost
 *   actions  the default `on_failure` list: the first possible one is taken, every list ends with
 *            park
 *
 * ACTION(word, text)
 */
#ifndef BATON_BASE_TBL_FAILURES_H
#define BATON_BASE_TBL_FAILURES_H

/* clang-format off */
#define FAILURES(FAILURE) \
    FAILURE(auth,              failures, "rotate delegate park",       "the provider refused the credentials") \
    FAILURE(access_denied,     failures, "rotate delegate park",       "the credentials may not do this") \
    FAILURE(rate_limited,      failures, "retry rotate delegate park", "the provider asked to wait") \
    FAILURE(quota,             failures, "rotate delegate retry park", "the provider's quota is spent") \
    FAILURE(overloaded,        failures, "retry delegate park",        "the provider is overloaded") \
    FAILURE(unavailable,       failures, "retry delegate park",        "the provider cannot be reached") \
    FAILURE(timeout,           failures, "retry delegate park",        "the deadline of the attempt passed") \
    FAILURE(crash,             losses,   "retry delegate park",        "the executor died or failed by itself") \
    FAILURE(killed,            losses,   "retry park",                 "the executor was killed") \
    FAILURE(invalid_output,    failures, "retry delegate park",        "the executor's result is not well formed") \
    FAILURE(no_verdict,        failures, "retry delegate park",        "the executor ended without a verdict of the role") \
    FAILURE(bad_request,       failures, "park",                       "the provider refused the request itself") \
    FAILURE(policy,            failures, "park",                       "the provider's policy forbids the request") \
    FAILURE(readonly_violated, failures, "park",                       "a read-only attempt changed its place") \
    FAILURE(lost,              losses,   "retry park",                 "the worker of the attempt is gone")

#define ACTIONS(ACTION) \
    ACTION(retry,    "the same service again, later") \
    ACTION(rotate,   "the same service with the next credential profile") \
    ACTION(delegate, "the next service of the role's chain") \
    ACTION(park,     "wait for an operator")
/* clang-format on */

#endif
