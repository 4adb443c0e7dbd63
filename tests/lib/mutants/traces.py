"""Faults in traces: what is told although it did not happen, whose child a span is, what waits without a bound, and
what may be sent where. Called by table.py."""
TRACES = "fleet/test_86_traces.py"
COLLECTOR = "fleet/test_86_collector.py"

ROWS = (
    ("a_dropped_batch_is_told", "rule 10", "worker/round.c",
     "    span_list_clear(&w->spans);\n    clear_in_batch(w);", "    clear_in_batch(w);",
     f"{TRACES} test_a_batch_that_the_log_does_not_take_tells_nothing"),
    ("a_pass_has_the_span_of_before", "D10", "worker/spans.c",
     "    memcpy(trace.span, pass_id(record).s, sizeof(trace.span));\n", "",
     f"{TRACES} test_d10_d11_one_trace_through_everything"),
    ("a_trace_that_is_not_sampled_is_told", "RECORD section 5", "worker/spans.c",
     "           ret_trace->sampled;", "           (ret_trace->sampled || true);",
     f"{TRACES} test_x_a_traceparent_is_information"),
    ("a_replay_has_the_span_of_the_one_before", "D10", "worker/spans.c",
     "record->state == TURN_delegated ? record->to_attempt : record->attempt);", "record->attempt);",
     f"{TRACES} test_each_replay_is_a_span_of_its_own"),
    ("spans_that_were_taken_are_sent_again", "D10", "common/trace/collector.c",
     "    if (result != CURLE_OK && status < 200) {", "    if (result != CURLE_OK) {",
     f"{COLLECTOR} test_an_answer_that_breaks_off_after_its_status_is_one"),
    ("traces_ca_is_beside_the_systems", "RECORD section 5", "common/trace/collector.c",
     " &&\n             lib.easy_setopt(easy, CURLOPT_CAPATH, NULL) == CURLE_OK", "",
     f"{COLLECTOR} test_traces_ca_is_instead_of_the_systems_certificates"),
    ("spans_wait_without_a_bound", "RECORD section 5", "common/trace/tracer.c",
     "    while (tracer->queue.count > (size_t)tracer->config->traces.queue) {", "    while (false) {",
     "unit/test_span test_what_waits_is_bounded"),
    ("a_proxy_of_the_environment_is_asked", "RECORD section 5", "common/trace/collector.c",
     "           lib.easy_setopt(easy, CURLOPT_PROXY, \"\") == CURLE_OK &&\n", "",
     f"{COLLECTOR} test_x_the_environment_sends_spans_nowhere_else"),
)
