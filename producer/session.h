/*
 * What most commands begin with: configuration, and for those that need them the log and the
 * identity. Main thread; done in any case.
 */
#ifndef BATON_PRODUCER_SESSION_H
#define BATON_PRODUCER_SESSION_H

#include "common/base/command.h"
#include "common/log/log.h"
#include "producer/identity.h"
#include "topics/outcomes.h"

struct session {
    struct config *config;
    struct log *log;
    struct identity identity;
    bool has_identity;
};

/* Configuration and log: for commands that only read. */
baton_code session_open(struct command *cmd, struct session *session, struct baton_error *err);
/* Identity and trust first, then the log: for commands that sign. */
baton_code session_open_signing(struct command *cmd, struct session *session,
                                struct baton_error *err);
void session_done(struct session *session);

/* Whom to believe on `outcomes`; contract: a session that signs. */
struct outcome_trust session_trust(const struct session *session);

#endif
