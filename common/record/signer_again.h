/*
 * A private key read again while its process runs (SIGHUP): another one is taken only if others would
 * believe what it signs.
 *
 * In: worker/reload.c, producer/coordinator/reload.c
 */
#ifndef BATON_RECORD_SIGNER_AGAIN_H
#define BATON_RECORD_SIGNER_AGAIN_H

#include "baton/code.h"

#include <stdbool.h>

struct signer;
struct trust;

struct signer_again {
    const char *keys_dir;
    const char *principal;
    const struct trust *trust; /* in force; NULL: none was read */
    const char *trust_dir;     /* whence it was read: for the message */
    bool required;             /* proof: required */
};

/*
 * *ret_fresh is the caller's: the principal's key, if it is another one than `held` (NULL: none was
 * held); NULL: nothing is to be changed. Errors: as signer_load, but that none is there is none where
 * none was and none is required; unauthenticated: the trust in force does not know it, or revokes it.
 */
baton_code signer_load_again(const struct signer_again *again, const struct signer *held,
                             struct signer **ret_fresh, struct baton_error *err);

#endif
