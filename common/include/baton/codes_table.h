/*
 * Every code that Baton answers with: the closed list.
 *
 * CODE(number, word, class, exit status, text). A number never changes and is never used again.
 * The class decides what a program does about it (see baton/code.h), the exit status is what the
 * command line ends with, the text is what a person reads. enum, parser, `--help` and the
 * documentation come from here.
 */
#ifndef BATON_CODES_TABLE_H
#define BATON_CODES_TABLE_H

/* clang-format off */
#define BATON_CODES(CODE) \
    CODE(0,   ok,                   ok,       0, "done") \
    /* request: what the caller asked for is not well formed */ \
    CODE(1,   usage,                invalid,  2, "a function or command was called with unusable arguments") \
    CODE(2,   invalid_request,      invalid,  2, "the request is not well formed") \
    CODE(3,   key_unsafe,           config,   2, "a key file or the trust folder has unsafe owner or permissions") \
    CODE(4,   unsupported_field,    invalid,  2, "a field is not known here") \
    CODE(5,   unsupported_option,   invalid,  2, "an option is not known here") \
    CODE(6,   bad_service,          invalid,  2, "not a service name: [a-z0-9-]{1,48}, not 'coordinator'") \
    CODE(7,   bad_mode,             invalid,  2, "BATON_MODE is neither attended nor unattended") \
    CODE(8,   bad_invoke,           invalid,  2, "invoke is none of allow, ask, deny") \
    CODE(9,   bad_alias,            invalid,  2, "an alias is not a plain name") \
    CODE(10,  alias_conflict,       invalid,  2, "an alias is used twice") \
    CODE(11,  bad_config,           config,   2, "the configuration is wrong") \
    /* identity of a record: it goes to the dead-letter topic */ \
    CODE(20,  invalid_envelope,     invalid,  7, "the record is not a well-formed turn") \
    CODE(21,  bad_signature,        invalid,  7, "the record's proof does not verify") \
    CODE(22,  unknown_key,          invalid,  7, "the record is signed by a key that is not trusted here") \
    CODE(23,  turn_conflict,        invalid,  7, "another turn with this id and other content is known") \
    CODE(24,  wrong_partition,      invalid,  7, "the record is not on the partition of its key") \
    CODE(25,  schema_unsupported,   invalid,  7, "the record's version is not known to this program") \
    CODE(26,  wrong_service,        invalid,  7, "the record is addressed to another service") \
    CODE(27,  handoff_expired,      invalid,  7, "the record was appended after it expired, or lies in the future") \
    CODE(28,  role_unresolved,      invalid,  7, "the record names no role") \
    CODE(29,  role_not_served,      invalid,  7, "this service does not serve the role of the turn") \
    CODE(30,  role_mismatch,        invalid,  7, "the stored role differs from the role of the signed turn") \
    /* routing */ \
    CODE(40,  source_unknown,       refused,  3, "the sender is no node of the workflow") \
    CODE(41,  no_transitions,       refused,  3, "the sender declares no transition") \
    CODE(42,  unknown_target,       refused,  3, "no declared transition leads to the target") \
    CODE(43,  ambiguous_target,     refused,  3, "several declared transitions lead to the target") \
    CODE(44,  no_target,            refused,  3, "the target resolves to nothing") \
    CODE(45,  self_target,          refused,  3, "the target is the sender's own slot") \
    CODE(46,  topology_denied,      refused,  3, "no channel permits this handoff") \
    CODE(47,  cycle_limit,          refused,  3, "the transition has reached its cycle limit") \
    /* validator */ \
    CODE(50,  hook_denied,          refused,  3, "the hook may not run here") \
    CODE(51,  hook_blocked,         refused,  3, "the hook blocks this handoff") \
    CODE(52,  hook_retry,           refused,  3, "the hook asks to try again later") \
    CODE(53,  hook_unavailable,     refused,  3, "the bound hook could not run or gave no verdict") \
    CODE(54,  patch_invalid,        refused,  3, "the hook's patch is not valid") \
    CODE(55,  rate_limited,         refused,  3, "the rate limit is reached") \
    /* state */ \
    CODE(60,  run_terminal,         refused,  6, "the run has ended") \
    CODE(61,  turn_open,            refused,  6, "the turn before it is still open") \
    CODE(62,  stale_revision,       refused,  6, "the task has a newer revision") \
    CODE(63,  subject_changed,      refused,  6, "the subject of the turn differs from the one frozen") \
    CODE(64,  subject_unavailable,  refused,  6, "the subject of the turn is not to be had") \
    CODE(65,  report_stale,         refused,  6, "the attempt has ended or is held under another lease") \
    CODE(66,  one_time_run,         refused,  6, "this run may run once only") \
    CODE(67,  handoff_denied,       refused,  6, "the prepared handoff was denied") \
    CODE(68,  approval_expired,     refused,  6, "the approval came too late") \
    CODE(69,  handoff_accepted,     refused,  6, "the prepared handoff was accepted before") \
    CODE(70,  limit_changed,        refused,  6, "the limit fell below the number shown for approval") \
    CODE(71,  turn_closed,          refused,  6, "the turn has ended") \
    CODE(72,  not_parked,           refused,  6, "the turn is not parked at that attempt") \
    CODE(73,  replays_exhausted,    refused,  6, "the turn's budget of replays is spent") \
    CODE(74,  duplicate,            refused,  6, "the record was taken in before") \
    /* busy */ \
    CODE(80,  run_busy,             retry,    6, "another process works on the run") \
    CODE(81,  place_busy,           retry,    6, "another attempt holds the place") \
    CODE(82,  handoff_busy,         retry,    6, "another process decides on the handoff") \
    CODE(83,  store_busy,           config,   6, "another process has the worker's store") \
    /* policy */ \
    CODE(90,  not_permitted,        refused,  4, "the signer has no right to do this") \
    CODE(91,  unauthenticated,      refused,  4, "there is no trusted private key to sign with") \
    CODE(92,  person_required,      refused,  4, "only a person may do this") \
    CODE(93,  invoke_denied,        refused,  4, "agents may not start this") \
    CODE(94,  confirm_needed,       refused,  4, "a person must confirm this") \
    CODE(95,  unattended_denied,    refused,  4, "this needs a person and nobody is there") \
    CODE(96,  nested_start,         refused,  4, "a run may not be started from inside an attempt") \
    CODE(97,  handoff_not_available, refused, 4, "the service is not set up for handoffs") \
    CODE(98,  handoff_disabled,     refused,  4, "prepared handoffs are switched off") \
    CODE(99,  access_lost,          refused,  4, "access to a reference was lost") \
    CODE(100, agent_unsupported,    refused,  4, "this executor may not do this") \
    CODE(101, handoff_exclusive,    refused,  4, "a result asks for a prepared handoff and for something else") \
    CODE(102, step_limit,           refused,  4, "a result asks for more than one prepared handoff") \
    CODE(103, daily_limit,          refused,  4, "the daily limit is reached") \
    CODE(104, wrong_lease_kind,     refused,  4, "the lease is of another kind") \
    /* content */ \
    CODE(110, handoff_invalid,      invalid,  2, "the prepared handoff is not valid") \
    CODE(111, handoff_edit_invalid, invalid,  2, "the edit of the prepared handoff is not valid") \
    CODE(112, budget_exceeded,      invalid,  2, "the plan is over its budget") \
    CODE(113, reference_unknown,    invalid,  2, "a reference is not known") \
    CODE(114, duplicate_reference,  invalid,  2, "two references name one object") \
    CODE(115, scope_unavailable,    invalid,  2, "the scope is not to be had") \
    CODE(116, handoff_kind_mismatch, invalid, 2, "this is no prepared handoff") \
    CODE(117, proposal_kind_mismatch, invalid, 2, "this is no proposal") \
    CODE(118, record_too_large,     invalid,  2, "the record is too large") \
    /* execution */ \
    CODE(120, no_verdict,           invalid,  7, "the executor ended without a verdict of the role") \
    CODE(121, readonly_violated,    invalid,  7, "a read-only attempt changed its place") \
    CODE(122, finish_failed,        invalid,  7, "the work could not be handed back") \
    CODE(123, missing_capability,   invalid,  7, "the worker lacks what the turn needs") \
    CODE(124, needs_local_worker,   invalid,  7, "the turn needs a local worker") \
    CODE(125, place_missing,        invalid,  7, "the turn's directory is not there or not allowed") \
    CODE(126, payload_unavailable,  invalid,  7, "the turn's payload is not to be had") \
    CODE(127, deadline_exceeded,    invalid,  7, "the turn's deadline has passed") \
    CODE(128, attempts_exhausted,   invalid,  7, "the turn's budget of attempts is spent") \
    CODE(129, worker_killed,        invalid,  7, "the turn's attempts crashed, were killed or were lost too often") \
    CODE(130, executor_failed,      invalid,  7, "the executor failed and no action is left") \
    CODE(131, cost_exhausted,       invalid,  7, "the turn's budget of costs is spent") \
    /* lookup */ \
    CODE(140, unknown_service,      invalid,  5, "no such service: it is not configured or has no topics") \
    CODE(141, run_not_found,        invalid,  5, "no such run") \
    CODE(142, run_ambiguous,        invalid,  5, "several runs have this id") \
    CODE(143, turn_not_found,       invalid,  5, "no such turn") \
    CODE(144, handoff_not_found,    invalid,  5, "no such handoff") \
    CODE(145, result_not_found,     invalid,  5, "no such result") \
    CODE(146, key_not_found,        invalid,  5, "no such key or principal") \
    /* results */ \
    CODE(150, result_unsupported,   invalid,  7, "the result has another shape") \
    CODE(151, result_invalid,       invalid,  7, "the result's origin is not proven") \
    /* infrastructure */ \
    CODE(160, publish_failed,       retry,    8, "the log did not take the record") \
    CODE(161, queue_failed,         retry,    8, "the run was created and not queued") \
    CODE(162, service_unavailable,  retry,    8, "the log cannot be reached") \
    CODE(163, store_failed,         internal, 8, "the store cannot be used") \
    CODE(164, timed_out,            retry,    8, "the time allowed has passed") \
    CODE(165, disk_full,            retry,    8, "the disk is full") \
    CODE(166, topic_missing,        config,   8, "a topic is missing or wrongly made") \
    CODE(167, no_memory,            internal, 8, "out of memory") \
    CODE(168, stopped,              retry,    8, "the program was told to stop") \
    CODE(169, twin,                 config,   6, "another process runs under the same worker id") \
    CODE(170, unexpected,           internal, 1, "an unexpected error")
/* clang-format on */

#endif
