/*
 * Which rejected records must not be written again: the turn is known to a turn log, the same bytes wait in
 * their topic, or a later letter has the same bytes (an earlier replay was rejected again, and that letter counts).
 *
 * Topics are read once, and then on from where the last look ended, so a look costs what came since. Memory:
 * about 100 bytes for each record that is asked about, whatever the topics hold. Main thread.
 *
 * In: producer/replay_letter.c  Out: topics/scan.c
 */
#ifndef BATON_PRODUCER_WRITTEN_H
#define BATON_PRODUCER_WRITTEN_H

#include "baton/code.h"
#include "producer/session.h"
#include "topics/letters.h"

#include <stddef.h>

enum written_state {
    WRITTEN_no,
    WRITTEN_known, /* a turn log knows its turn */
    WRITTEN_waits, /* it is in its topic, and nobody has taken it yet (not seen where that topic may not be
                      read: then its owner takes one of the two) */
    WRITTEN_later, /* a later letter has the same bytes */
    WRITTEN_again, /* an earlier letter has the same bytes and code: it was replayed, and rejected in the same way */
};

struct written;
baton_code written_new(struct session *session, struct written **ret_written,
                       struct baton_error *err);
void written_free(struct written *written);

/* Before the first look: this one will be asked about, by the number that is returned. */
size_t written_note(struct written *written, const struct letter *letter);
/* Reads what came since the last look. */
baton_code written_look(struct written *written, struct baton_error *err);
/*
 * Of a letter that was noted, as of the last look. Fails as scan_hidden_end does if its turn is not known and a turn
 * log may not be read: it may be known there.
 */
baton_code written_ask(const struct written *written, size_t noted, enum written_state *ret_what,
                       struct baton_error *err);

#endif
