"""Faults in the two logs' drivers, in what the engine makes of a doubtful commit, and in what is forgotten: the checks of a
commit, what must be seen before it counts, what hangs, retention. Called by table.py.

Not here, since no test can bring it about at will: confirm_judge(), bring_out() and keep_still() want a broker that
passes markers over while a producer lives (tests/model/hang.pml has their mutants, tests/chaos the broker), and so does
that a note is given to nobody: where a takeover writes one that stays, it says nothing to who is given it; that a
handoff was trimmed before its turn is forgotten, since the round that asks trims first.
"""
MOCK, LOCAL, LIFE = "unit/test_kafka_commit", "unit/test_local_commit", "unit/test_worker_3_life"
CONFORMANCE = "conformance/conformance_log"
COMMIT, UNDONE = "unit/test_engine_3_commit", "fleet/test_58_undone.py"
HANGS = f"{UNDONE} test_what_lies_open_of_an_id_is_dropped_by_who_takes_it_over kafka"

ROWS = (
    # ---- Kafka: whose transaction it is ----
    ("kafka_old_generation_sent", "rules 13, 14", "common/log/kafka/commit.c",
     "    if (member->place != PLACE_assigned || member->metadata == NULL ||\n        txn->generation != member->generation) {",
     "    if (member->place != PLACE_assigned || member->metadata == NULL) {",
     f"{MOCK} test_old_generation_is_not_sent"),
    ("kafka_partition_of_another_sent", "rule 13", "common/log/kafka/commit.c",
     "        if (!ours(member, txn->offsets[i].partition)) {", "        if (false) {",
     f"{MOCK} test_a_partition_of_another_is_not_sent"),
    ("kafka_refused_generation_is_an_abort", "rule 14", "common/log/kafka/commit.c",
     "    return cause == RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION ||\n           cause == RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID ||",
     "    return cause == RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID ||",
     f"{MOCK} test_A12_B07_each_error_has_its_verdict"),
    ("kafka_refused_member_is_an_abort", "rule 14", "common/log/kafka/commit.c",
     "           cause == RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID ||\n", "",
     f"{MOCK} test_A12_B07_each_error_has_its_verdict"),
    ("kafka_fenced_is_unknown", "rule 4", "common/log/kafka/commit.c",
     "return verdict(fenced ? LOG_VERDICT_fenced : LOG_VERDICT_unknown, kafka_code(cause), -1);",
     "(void)fenced;\n    return verdict(LOG_VERDICT_unknown, kafka_code(cause), -1);",
     f"{MOCK} test_A12_B07_each_error_has_its_verdict"),
    # ---- Kafka: what is seen, and what hangs (hang.pml) ----
    ("kafka_told_unseen", "M_TOLD_UNSEEN", "common/log/kafka/commit.c",
     "    const baton_code rc = confirm_wait(member, deadline, err);\n    if (rc != BATON_OK || member->txn == TXN_broken) {",
     "    const baton_code rc = BATON_OK;\n    (void)deadline;\n    if (rc != BATON_OK || member->txn == TXN_broken) {",
     f"{MOCK} test_a_commit_is_none_before_it_is_seen"),
    ("kafka_abort_unseen", "M_ABORT_UNSEEN", "common/log/kafka/commit.c",
     "                confirm_ended(member, member->current, HANG_abort);", "                (void)0;",
     f"{MOCK} test_nothing_is_begun_before_an_abort_is_seen"),
    ("kafka_begun_unseen", "M_BEGIN_UNSEEN", "common/log/kafka/confirm.c",
     "    if (owed(&member->own)) {\n        return &member->own;\n    }", "",
     f"{MOCK} test_nothing_is_begun_before_an_abort_is_seen"),
    ("kafka_what_hangs_stays", "LOG.md, hang.c", "common/log/kafka/hang.c",
     "    bool good = hang_write(rk, list, how);", "    bool good = true;", HANGS),
    ("kafka_what_hangs_is_committed", "LOG.md, hang.c", "common/log/kafka/hang.c",
     "    bool good = hang_write(rk, list, how);", "    bool good = hang_write(rk, list, HANG_commit);", HANGS),
    ("kafka_dropped_without_a_note", "rule 5, hang.c", "common/log/kafka/hang.c",
     "    const bool good = hang_write(rk, own, HANG_commit);", "    const bool good = true;", HANGS),
    ("note_is_not_heeded", "rule 5", "common/engine/ownership.c",
     "    if (batch->next_offset >= part->high && part->note_at > part->owner_at &&\n        !engine->reread[number]) {", "    if (false) {", HANGS),
    # ---- the local log (members.pml) ----
    ("local_old_generation", "M_NO_GENERATION", "common/log/local/commit.c",
     "if (!standing->member || standing->generation != txn->generation || !owns_all(standing, txn)) {",
     "if (!standing->member || !owns_all(standing, txn)) {",
     f"{CONFORMANCE} test_old_generation_is_lost"),
    ("local_twin_commits", "M_NO_BOOT", "common/log/local/commit.c",
     "    if (standing->member && standing->twin) {", "    if (false) {",
     f"{CONFORMANCE} test_B04_twin"),
    ("local_unknown_is_written_again", "M_NO_NUMBER", "common/log/local/commit.c",
     "    if (member->unsure && standing.member && !standing.twin && standing.txn == member->txn) {", "    if (false) {",
     f"{LOCAL} test_unknown_that_happened"),
    ("local_doubt_outlives", "M_DOUBT_OUTLIVES", "common/log/local/commit.c",
     "    /* What is not committed is not there; nothing has to be settled. */\n    member_forget_unsure(member);\n",
     "    (void)member;\n",
     f"{LOCAL} test_unknown_then_renew"),
    ("local_join_keeps_the_generation", "M_JOIN_NO_RAISE", "common/log/local/queries.sql",
     "UPDATE consumer SET generation = generation + 1, partitions = :partitions", "UPDATE consumer SET generation = generation, partitions = :partitions",
     "unit/test_engine_3_commit test_rule_13_an_assignment_change_drops_the_batch"),
    ("failed_repetition_is_a_drop", "rule 15, M_ERROR_IS_DROPPED", "common/engine/batch.c",
     "    if (doubt && baton_code_class(rc) == BATON_CLASS_retry) {", "    if (false) {",
     f"{COMMIT} test_rule_15_a_repetition_that_fails_leaves_the_doubt"),
    # ---- retention ----
    ("forgotten_at_its_end", "rule 30", "worker/retention.h",
     "#define TOMBSTONE_AFTER_MS (14LL * 24 * 3600 * 1000)", "#define TOMBSTONE_AFTER_MS 0",
     f"{LIFE} test_rule_30_a_closed_turn_leaves_by_the_dates_of_the_log"),
    ("forgotten_before_it_was_read", "rule 30, M_TOMBSTONE_UNREAD", "worker/retention.c",
     "rc != BATON_OK || count == 0 || !read_and_trimmed(w, partitions[i])", "rc != BATON_OK || count == 0",
     f"{LIFE} test_rule_30_a_closed_turn_stays_before_its_handoffs_are_read"),
    ("open_turn_is_forgotten", "rule 30", "common/store/image.c",
     "turn_state_open(record->state) ? (struct wall_ms){0} : place->at", "place->at",
     "unit/test_store_2_image test_ended_turns_by_age"),
    ("outcomes_are_trimmed", "rule 30", "common/engine/engine.c",
     "if (trimmed && feed->committed > low) {", "if (feed->committed > low) {",
     "unit/test_engine_5_coordinator test_outcomes_are_left_to_their_age"),
    ("untaken_handoff_is_trimmed", "rule 30", "common/engine/engine.c",
     "rc = log_trim(engine->spec.log, topic, number, feed->committed, err);", "rc = log_trim(engine->spec.log, topic, number, high, err);",
     "unit/test_engine_1_round test_rule_30_trim_deletes_only_what_was_taken"),
)
