/*
 * Every metric. METRIC(id, name, kind, label, help)
 *
 *   kind   counter | gauge | histogram (of milliseconds, shown in seconds)
 *   label  none, or one of METRIC_LABELS: a series for each word of that closed list
 * Names follow Prometheus: baton_, base units, counters end with _total. Every series says, too, whose it
 * is: the service and worker, or the coordinator (metrics_of).
 */
#ifndef BATON_BASE_TBL_METRICS_H
#define BATON_BASE_TBL_METRICS_H

/* clang-format off */
#define METRICS(METRIC) \
    METRIC(handoffs_claimed,    "baton_handoffs_claimed_total",    counter,   none, "Handoffs that this worker took in and claimed") \
    METRIC(handoffs_duplicate,  "baton_handoffs_duplicate_total",  counter,   none, "Handoffs of turns that the log knew already") \
    METRIC(handoffs_rejected,   "baton_handoffs_rejected_total",   counter,   none, "Records that were not proven, permitted or addressed here") \
    METRIC(turns_completed,     "baton_turns_completed_total",     counter,   none, "Turns that ended with a verdict of their role") \
    METRIC(turns_parked,        "baton_turns_parked_total",        counter,   none, "Turns that were parked with a dead letter") \
    METRIC(turns_cancelled,     "baton_turns_cancelled_total",     counter,   none, "Turns that were cancelled") \
    METRIC(turns_delegated,     "baton_turns_delegated_total",     counter,   none, "Turns that were passed on to another service") \
    METRIC(turns_retried,       "baton_turns_retried_total",       counter,   none, "Attempts that were queued again at this service") \
    METRIC(turns_rotated,       "baton_turns_rotated_total",       counter,   none, "Attempts that were queued with the next credential profile") \
    METRIC(turns_replayed,      "baton_turns_replayed_total",      counter,   none, "Parked turns that an operator replayed") \
    METRIC(attempts_started,    "baton_attempts_started_total",    counter,   none, "Executors that were started") \
    METRIC(attempts_failed,     "baton_attempts_failed_total",     counter,   class, "Attempts that failed, by the class of their failure; the lost ones included") \
    METRIC(attempts_lost,       "baton_attempts_lost_total",       counter,   none, "Attempts whose worker was gone") \
    METRIC(attempts_running,    "baton_attempts_running",          gauge,     none, "Attempts that run now") \
    METRIC(circuit_open,        "baton_circuit_open",              gauge,     none, "1 while the circuit is open or half open: the provider does no work, and turns wait") \
    METRIC(circuit_opened,      "baton_circuit_opened_total",      counter,   none, "Times that the circuit was opened") \
    METRIC(circuit_probes,      "baton_circuit_probes_total",      counter,   none, "Attempts that tried whether the provider is back") \
    METRIC(log_commits,         "baton_log_commits_total",         counter,   none, "Transactions of the log that were committed") \
    METRIC(log_commits_aborted, "baton_log_commits_aborted_total", counter,   none, "Transactions of the log that were not committed") \
    METRIC(control_taken,       "baton_control_records_total",     counter,   none, "Control records that were taken in") \
    METRIC(outcomes_published,  "baton_outcomes_published_total",  counter,   none, "Outcomes that were published") \
    METRIC(proof_off,           "baton_proof_off",                 gauge,     none, "1 while records are not verified (proof: off)") \
    METRIC(start_delay,         "baton_start_delay_seconds",       histogram, none, "From a handoff's append to the start of its executor") \
    METRIC(execution,           "baton_execution_seconds",         histogram, none, "How long executors ran") \
    METRIC(log_commit,          "baton_log_commit_seconds",        histogram, none, "How long a transaction of the log took, whatever became of it") \
    METRIC(waiting,             "baton_input_waiting_records",     gauge,     input, "Records of this worker's partitions that are not taken in yet (lag), as far as it has heard") \
    METRIC(oldest_waiting,      "baton_input_oldest_seconds",      gauge,     input, "How long the first record that is not taken in yet has been there; 0: none waits") \
    METRIC(turns_queued,        "baton_turns_queued",              gauge,     none, "Turns of this worker's partitions that wait for their next attempt") \
    METRIC(turns_waiting,       "baton_turns_waiting_for_operator", gauge,    none, "Turns of this worker's partitions that are parked now") \
    METRIC(oldest_turn,         "baton_turns_oldest_seconds",      gauge,     none, "Age of the oldest turn of this worker's partitions that is queued or runs; 0: there is none") \
    METRIC(leases_held,         "baton_leases_held",               gauge,     none, "Attempts that run here while another worker has their partition") \
    METRIC(partitions_owned,    "baton_partitions_owned",          gauge,     none, "Partitions that are this worker's") \
    METRIC(spans_exported,      "baton_trace_spans_exported_total", counter,  none, "Spans that the collector took (traces.endpoint)") \
    METRIC(spans_dropped,       "baton_trace_spans_dropped_total", counter,   none, "Spans that were dropped: the collector was away for longer than the queue lasts, or refused them") \
    METRIC(reloads,             "baton_reloads_total",             counter,   none, "Times that configuration and key were read again (SIGHUP)") \
    METRIC(reloads_failed,      "baton_reloads_failed_total",      counter,   none, "Times that they could not be, and what was read before stayed in force") \
    METRIC(profiles_resting,    "baton_profiles_resting",          gauge,     none, "Credential profiles that are not used: their quota is spent, or they were refused") \
    METRIC(topics_blocked,      "baton_topics_blocked",            gauge,     none, "Topics that could not be written to last") \
    METRIC(ready,               "baton_ready",                     gauge,     none, "1 while this process can do its work (/readyz)") \
    METRIC(runs_started,        "baton_runs_started_total",        counter,   none, "Runs that were started") \
    METRIC(runs_open,           "baton_runs_open",                 gauge,     none, "Runs of this coordinator's partitions that have not ended, those that wait for a person included") \
    METRIC(runs_ended,          "baton_runs_ended_total",          counter,   none, "Ends of runs; a run that is opened again may end again") \
    METRIC(handoffs_sent,       "baton_handoffs_sent_total",       counter,   none, "Turns that a coordinator published")

#define METRIC_LABELS(LABEL) \
    LABEL(none,  "",      1,             no_word) \
    LABEL(class, "class", FAILURE_COUNT, failure_of) \
    LABEL(input, "input", 4,             input_of)
/* clang-format on */

#endif
