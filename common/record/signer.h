/*
 * A private key in use: signs the records of one principal. Loaded once at start, never printed,
 * never logged; its memory is cleansed. Const after loading: any thread may sign with it.
 */
#ifndef BATON_RECORD_SIGNER_H
#define BATON_RECORD_SIGNER_H

#include "baton/code.h"
#include "common/base/id.h"

#include <stddef.h>

enum proof_class { PROOF_turn, PROOF_pass, PROOF_control, PROOF_request, PROOF_outcome };

/* `1 <key id> <128 hex digits>` and NUL: the value of the header baton-sig. */
#define PROOF_TEXT_LEN (2 + 16 + 1 + 128)
struct proof_text {
    char s[PROOF_TEXT_LEN + 1];
};

struct signer;

/*
 * The newest private key of a principal in the folder of keys. Refuses unsafe files before anything
 * else (key_unsafe). unauthenticated: there is none; err names the command that makes one. A key
 * with passphrase asks on the terminal, and is refused when unattended.
 */
baton_code signer_load(const char *keys_dir, const char *principal, struct signer **ret_signer,
                       struct baton_error *err);
void signer_free(struct signer *signer);
struct key_id signer_key_id(const struct signer *signer);

/* Signs a record (RECORD.md section 2, "One proof for everything"). statement is NULL but for a
 * pass. */
baton_code signer_sign(const struct signer *signer, const char *fleet, enum proof_class class,
                       const void *key, size_t key_len, const char *statement,
                       const struct digest *digest, struct proof_text *ret_proof,
                       struct baton_error *err);

/* SHA-256. */
struct digest digest_of(const void *bytes, size_t len);

/* What every process that may hold a key does first: no core dumps, not traceable. */
void process_hold_keys(void);

#endif
