/*
 * Who wrote a note into the turn log: the members `worker` and `boot` that notes about a worker have in
 * common. Called by the notes beside it.
 */
#ifndef BATON_RECORD_NOTE_WRITER_H
#define BATON_RECORD_NOTE_WRITER_H

#include "common/base/id.h"
#include "common/base/jsonw.h"
#include "common/record/json.h"

/* Into the object that is open. */
void note_writer_encode(struct jsonw *w, const struct plain_id *worker, const struct boot_id *boot);

/* root: an object. False: one of them is missing, or no id; what is returned then is of no use. */
bool note_writer_read(const struct json_value *root, struct plain_id *ret_worker,
                      struct boot_id *ret_boot);

#endif
