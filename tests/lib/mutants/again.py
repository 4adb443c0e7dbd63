"""Faults in what is done again: lines that are published a second time, and what SIGHUP reads. Called by table.py."""
LINES, RELOAD = "fleet/test_88_publish_lines.py", "fleet/test_88_reload.py"

ROWS = (
    ("a_line_has_a_new_key_each_time", "I19", "producer/publish_line.c",
     "    const struct digest digest = digest_of(bytes, len);\n    char hex",
     "    struct digest digest = digest_of(bytes, len);\n    random_bytes(&digest, sizeof(digest));\n    char hex",
     f"{LINES} test_lines_become_turns_and_bad_ones_are_refused_by_number"),
    ("published_though_the_log_gave_up", "I19", "producer/publish_lines.c",
     "    } else {\n        unknown_from(b, 0, b->count);\n    }", "    } else {\n        b->totals.published += (int64_t)b->count;\n    }",
     f"{LINES} test_a_log_that_gives_up_is_told"),
    ("all_or_nothing_goes_on", "S10", "producer/publish_lines.c",
     "b->interrupted ||\n        b->totals.refused > 0) {", "b->interrupted) {",
     f"{LINES} test_all_or_nothing"),
    ("a_wait_outlasts_the_deadline", "section 4, Time", "worker/settle.c",
     "    delay_ms = within_deadline(w, record, delay_ms);\n", "    (void)within_deadline;\n",
     f"{LINES} test_a_deadline_ends_a_wait"),
    ("a_profile_forgets_its_refusal", "R-33", "worker/reload.c",
     "            rests[i] = w->rests[at];\n", "",
     f"{RELOAD} test_a_profile_keeps_its_refusal_by_name"),
    ("a_key_that_nobody_believes_is_taken", "RECORD section 4", "common/record/signer_again.c",
     "rc = judge(again, fresh, err);", "rc = BATON_OK * judge(again, fresh, err);",
     f"{RELOAD} test_a_key_that_nobody_trusts_is_not_taken"),
    ("what_needs_a_restart_is_not_named", "S10", "common/base/config_again.c",
     "    if (keys->len > 0 && buf_ok(keys)) {", "    if (false) {",
     f"{RELOAD} test_what_needs_a_restart_is_named"),
)
