/*
 * The one proof of every record: which bytes are signed, and how they are shown in a header
 * (RECORD.md section 2). Digests stand here too, since they are what is signed. Any thread.
 */
#ifndef BATON_RECORD_PROOF_H
#define BATON_RECORD_PROOF_H

#include "common/base/id.h"
#include "common/record/json.h"
#include "common/record/signer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIGNATURE_LEN 64
#define SIGNATURE_HEX (2 * SIGNATURE_LEN)
#define PROOF_RECORD_KEY_MAX 256 /* our keys are ids: 64 bytes and a prefix */
#define PROOF_STATEMENT_MAX 256  /* of a pass: ten short words */
#define PROOF_MESSAGE_MAX                                                                          \
    (14 + 4 * 4 + ID_MAX + 8 + PROOF_RECORD_KEY_MAX + PROOF_STATEMENT_MAX + DIGEST_LEN)

/* "turn", "pass", "control", "request", "outcome". */
const char *proof_class_word(enum proof_class class);

/*
 * Writes the bytes that are signed and returns their number; 0 if fleet, key or statement are
 * longer than any of ours. statement NULL counts as empty.
 */
size_t proof_message(const char *fleet, enum proof_class class, const void *key, size_t key_len,
                     const char *statement, const struct digest *digest,
                     uint8_t ret_message[PROOF_MESSAGE_MAX]);

/* Reads `1 <key id> <signature>`, nothing more or less. *ret_signature_hex points into text. */
bool proof_text_parse(const char *text, size_t text_len, struct key_id *ret_key_id,
                      const char **ret_signature_hex);

/* SHA-256 over prefix and lp of each part; a part that is absent (at NULL) counts as empty. */
struct digest digest_of_parts(const void *prefix, size_t prefix_len, const struct json_span *parts,
                              size_t n_parts);

#endif
