/* A private key read again while its process runs. See signer_again.h for who calls it. */
#include "common/record/signer_again.h"

#include "common/record/signer.h"
#include "common/record/trust.h"

#include <string.h>

/* Would others believe what it signs? */
static baton_code judge(const struct signer_again *again, const struct signer *fresh,
                        struct baton_error *err)
{
    const struct key_id id = signer_key_id(fresh);
    if (!again->required || again->trust == NULL || trust_key_find(again->trust, id.s) != NULL) {
        return BATON_OK;
    }
    return baton_fail(err, BATON_E_unauthenticated,
                      "the key %s of %s is %s in %s, so nobody would believe what it signs; copy "
                      "the trust folder that has it, or make another by `baton keys rotate %s`",
                      id.s, again->principal,
                      trust_revokes(again->trust, id.s) ? "revoked" : "not known", again->trust_dir,
                      again->principal);
}

baton_code signer_load_again(const struct signer_again *again, const struct signer *held,
                             struct signer **ret_fresh, struct baton_error *err)
{
    struct signer *fresh = NULL;
    baton_code rc = signer_load(again->keys_dir, again->principal, &fresh, err);
    if (rc == BATON_E_unauthenticated && !again->required && held == NULL) {
        *ret_fresh = NULL; /* there was none, and none is needed */
        return BATON_OK;
    }
    const bool same = rc == BATON_OK && held != NULL &&
                      strcmp(signer_key_id(fresh).s, signer_key_id(held).s) == 0;
    if (rc == BATON_OK && !same) {
        rc = judge(again, fresh, err);
    }
    if (rc != BATON_OK || same) {
        signer_free(fresh);
        fresh = NULL;
    }
    if (rc == BATON_OK) {
        *ret_fresh = fresh;
    }
    return rc;
}
