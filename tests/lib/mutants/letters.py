"""Faults in lists and in replays of many: what was replaced is listed, pages overlap, what is written already is written
again, other bytes are signed. Called by table.py."""
LISTS, AGAIN = "fleet/test_84_lists.py", "fleet/test_84_letters_again.py"

ROWS = (
    ("a_page_has_what_an_older_record_says", "FIELD D", "topics/tail.c",
     "if (one->entry.row != NULL && (seen || !fine)) {", "if (one->entry.row != NULL && !fine) {",
     f"{LISTS} test_d_what_was_replayed_is_on_no_page kafka"),
    ("a_page_begins_anew", "FIELD D", "topics/tail.c",
     "const bool behind = !tail->has_before || tail_place_newer(&tail->before, place);", "const bool behind = true;",
     f"{LISTS} test_d_pages_are_whole_and_newest_first"),
    ("a_page_ends_too_soon", "FIELD D", "topics/tail.c",
     "if (tail->count == tail->spec.max &&\n            !tail_place_newer(&cursor->best, &tail->heap[0].place)) {", "if (tail->count == tail->spec.max) {",
     f"{LISTS} test_d_pages_are_whole_and_newest_first"),
    ("what_waits_is_written_again", "FIELD D", "producer/written.c",
     "one->waits = one->waits || source->kind == SOURCE_input;", "one->waits = one->waits;",
     f"{AGAIN} test_d_what_waits_or_was_rejected_again_is_not_written_twice"),
    ("a_later_letter_does_not_count", "FIELD D", "producer/written.c",
     "one->later = one->later || (source->kind == SOURCE_letters && is_later(one, record));", "one->later = false;",
     f"{AGAIN} test_d_what_waits_or_was_rejected_again_is_not_written_twice"),
    ("an_expired_record_is_signed_as_it_is", "RECORD section 3", "producer/resign.c",
     "buf_printf(out, \"\\\"%s\\\"\", wall_text(times[which]).s);", "buf_add(out, spans[which].at, spans[which].len);\n        (void)times;",
     f"{AGAIN} test_d_what_expired_is_signed_again_by_its_origin"),
)
