/*
 * Signing an expired handoff again: same id, same content, new times (RECORD.md section 3). Only its origin may,
 * so it takes the origin's private key. Called by replay_letter.c. Main thread.
 */
#ifndef BATON_PRODUCER_RESIGN_H
#define BATON_PRODUCER_RESIGN_H

#include "baton/code.h"
#include "common/record/turn.h"
#include "producer/session.h"

/* The key that was used last: many letters are of one origin, and a passphrase is asked once. */
struct resigner {
    struct session *session;
    char origin[ID_MAX + 1]; /* "": none yet */
    struct signer *signer;   /* owned, but for that of the session's own identity */
    bool borrowed;
};
void resigner_done(struct resigner *resigner);

struct resigned {
    struct turn *turn;       /* with its new times; turn_free */
    struct proof_text proof; /* "" where nothing signs */
};

/*
 * value: of a handoff that is too old, addressed first to `service`. Errors: those of turn_parse (it would be rejected
 * again whatever is signed); unauthenticated: the origin's private key is not here, and err names it; not_permitted:
 * the origin may not create that role there any more.
 */
baton_code resign(struct resigner *resigner, const char *service, const void *value, size_t len,
                  struct resigned *ret_resigned, struct baton_error *err);

#endif
