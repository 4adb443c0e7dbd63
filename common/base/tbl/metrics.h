/*
 * Every metric. METRIC(id, name, kind, unit, help)
 *
 *   kind  counter | gauge | histogram (of milliseconds, shown in seconds)
 * Names follow Prometheus: baton_, base units, counters end with _total.
 */
#ifndef BATON_BASE_TBL_METRICS_H
#define BATON_BASE_TBL_METRICS_H

/* clang-format off */
#define METRICS(METRIC) \
    METRIC(handoffs_claimed,    "baton_handoffs_claimed_total",    counter,   "", "Handoffs that this worker took in and claimed") \
    METRIC(handoffs_duplicate,  "baton_handoffs_duplicate_total",  counter,   "", "Handoffs of turns that the log knew already") \
    METRIC(handoffs_rejected,   "baton_handoffs_rejected_total",   counter,   "", "Records that were not proven, permitted or addressed here") \
    METRIC(turns_completed,     "baton_turns_completed_total",     counter,   "", "Turns that ended with a verdict of their role") \
    METRIC(turns_parked,        "baton_turns_parked_total",        counter,   "", "Turns that were parked with a dead letter") \
    METRIC(turns_cancelled,     "baton_turns_cancelled_total",     counter,   "", "Turns that were cancelled") \
    METRIC(turns_delegated,     "baton_turns_delegated_total",     counter,   "", "Turns that were passed on to another service") \
    METRIC(turns_retried,       "baton_turns_retried_total",       counter,   "", "Attempts that were queued again at this service") \
    METRIC(turns_rotated,       "baton_turns_rotated_total",       counter,   "", "Attempts that were queued with the next credential profile") \
    METRIC(turns_replayed,      "baton_turns_replayed_total",      counter,   "", "Parked turns that an operator replayed") \
    METRIC(attempts_started,    "baton_attempts_started_total",    counter,   "", "Executors that were started") \
    METRIC(attempts_failed,     "baton_attempts_failed_total",     counter,   "", "Attempts that failed, the lost ones included") \
    METRIC(attempts_lost,       "baton_attempts_lost_total",       counter,   "", "Attempts whose worker was gone") \
    METRIC(attempts_running,    "baton_attempts_running",          gauge,     "", "Attempts that run now") \
    METRIC(circuit_open,        "baton_circuit_open",              gauge,     "", "1 while the circuit is open or half open: the provider does no work, and turns wait") \
    METRIC(circuit_opened,      "baton_circuit_opened_total",      counter,   "", "Times that the circuit was opened") \
    METRIC(circuit_probes,      "baton_circuit_probes_total",      counter,   "", "Attempts that tried whether the provider is back") \
    METRIC(log_commits,         "baton_log_commits_total",         counter,   "", "Transactions of the log that were committed") \
    METRIC(log_commits_aborted, "baton_log_commits_aborted_total", counter,   "", "Transactions of the log that were not committed") \
    METRIC(control_taken,       "baton_control_records_total",     counter,   "", "Control records that were taken in") \
    METRIC(outcomes_published,  "baton_outcomes_published_total",  counter,   "", "Outcomes that were published") \
    METRIC(proof_off,           "baton_proof_off",                 gauge,     "", "1 while records are not verified (proof: off)") \
    METRIC(start_delay,         "baton_start_delay_seconds",       histogram, "seconds", "From a handoff's append to the start of its executor")
/* clang-format on */

#endif
