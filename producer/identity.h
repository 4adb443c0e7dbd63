/*
 * Who publishes and operates here: the configured identity, its private key, and the trust folder.
 *
 * Opened before anything else is touched, so that an unsafe key or folder is refused first. Const
 * after opening: any thread.
 */
#ifndef BATON_PRODUCER_IDENTITY_H
#define BATON_PRODUCER_IDENTITY_H

#include "baton/code.h"
#include "common/base/config.h"
#include "common/record/signer.h"
#include "common/record/trust.h"

#include <stdbool.h>

struct identity {
    char name[ID_MAX + 1];
    char fleet[ID_MAX + 1];
    bool required;                           /* proofs are */
    struct signer *signer;                   /* NULL only with proof: off */
    struct trust *trust;                     /* NULL only with proof: off */
    const struct trust_principal *principal; /* NULL: the trust folder does not know the name */
};

/*
 * The name: `identity` of the configuration, else the login name in lower case. Errors: key_unsafe,
 * unauthenticated (no private key; says which command makes one), bad_config (the trust folder),
 * bad_mode (BATON_MODE has a value that is none).
 */
baton_code identity_open(const struct config *config, struct identity *ret_identity,
                         struct baton_error *err);
void identity_close(struct identity *identity);

/* The name alone; bad_config if there is none to be had. */
baton_code identity_name(const struct config *config, char ret_name[ID_MAX + 1],
                         struct baton_error *err);

/* The header baton-sig of a record, or "" where nothing signs (proof: off, no key). */
baton_code identity_prove(const struct identity *identity, enum proof_class class, const char *key,
                          const struct digest *digest, struct proof_text *ret_proof,
                          struct baton_error *err);

/* May this identity do it? not_permitted, naming the right; always ok with proof: off. */
baton_code identity_may_create(const struct identity *identity, const char *service, enum role role,
                               struct baton_error *err);
baton_code identity_may_operate(const struct identity *identity, const char *service,
                                struct baton_error *err);

#endif
