/*
 * Failure classes of an attempt, the budget each counts in, what it says about the provider, and the
 * default answer.
 *
 * FAILURE(word, counter, provider, actions, text)
 *   counter  failures: the provider said no; losses: the work was lost
 *   provider what it says of other turns: down: the provider does nobody's work now, so their tries
 *            would end alike; up: it has looked at this request and answered; nothing: it need not be
 *            the provider at all (a timeout is our own deadline)
 *   actions  the default `on_failure` list: the first possible one is taken, every list ends with
 *            park
 *
 * ACTION(word, text)
 */
#ifndef BATON_BASE_TBL_FAILURES_H
#define BATON_BASE_TBL_FAILURES_H

/* clang-format off */
#define FAILURES(FAILURE) \
    FAILURE(auth,              failures, down,    "rotate delegate park",       "the provider refused the credentials") \
    FAILURE(access_denied,     failures, up,      "rotate delegate park",       "the credentials may not do this") \
    FAILURE(rate_limited,      failures, down,    "retry rotate delegate park", "the provider asked to wait") \
    FAILURE(quota,             failures, down,    "rotate delegate retry park", "the provider's quota is spent") \
    FAILURE(overloaded,        failures, down,    "retry delegate park",        "the provider is overloaded") \
    FAILURE(unavailable,       failures, down,    "retry delegate park",        "the provider cannot be reached") \
    FAILURE(timeout,           failures, nothing, "retry delegate park",        "the deadline of the attempt passed") \
    FAILURE(crash,             losses,   nothing, "retry delegate park",        "the executor died or failed by itself") \
    FAILURE(killed,            losses,   nothing, "retry park",                 "the executor was killed") \
    FAILURE(invalid_output,    failures, nothing, "retry delegate park",        "the executor's result is not well formed") \
    FAILURE(no_verdict,        failures, nothing, "retry delegate park",        "the executor ended without a verdict of the role") \
    FAILURE(bad_request,       failures, up,      "park",                       "the provider refused the request itself") \
    FAILURE(policy,            failures, up,      "park",                       "the provider's policy forbids the request") \
    FAILURE(readonly_violated, failures, nothing, "park",                       "a read-only attempt changed its place") \
    FAILURE(lost,              losses,   nothing, "retry park",                 "the worker of the attempt is gone")

#define ACTIONS(ACTION) \
    ACTION(retry,    "the same service again, later") \
    ACTION(rotate,   "the same service with the next credential profile") \
    ACTION(delegate, "the next service of the role's chain") \
    ACTION(park,     "wait for an operator")
/* clang-format on */

#endif
